"""Regions of a module in which nothing is rewritten: compiled functions, kernels, tests that need CUDA by design."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from codemods.analysis.module import Module
from codemods.analysis.names import dotted_name
from codemods.findings import Tier

_SCRIPTED = {
    "torch.jit.script",
    "torch.jit.script_method",
    "torch.jit.export",
    "torch.jit.script_if_tracing",
    "torch.jit.interface",
}
_LAYER = re.compile(r"(?:Accelerator|Platform|DeviceBackend|DeviceInterface)(?:Base|Interface|ABC)?$")
_KERNELS = {"triton.jit", "triton.autotune", "triton.heuristics", "numba.cuda.jit"}


Obstacle: TypeAlias = Callable[[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef], str]


@dataclass(frozen=True)
class Region:
    """Why nothing is rewritten here: the rule that says so."""

    rule: str
    tier: Tier
    detail: str = ""


BACKEND_CLASS = Region("UC354", Tier.NOTE)
_SCRIPT = Region("UC806", Tier.MANUAL)
_KERNEL = Region("UC804", Tier.NOTE)
_TEST_CONDITION = Region("UC807", Tier.MANUAL)
_TEST_BODY = Region("UC807", Tier.NOTE)


def region_at(module: Module, offset: int, obstacle: Obstacle | None = None) -> Region | None:
    """The region around an offset, if any.

    Args:
        obstacle: tells of a test that needs CUDA why it stays as it is; one that it says nothing of is no region.
            Without it all of them stay.
    """
    for statement in module.statements.path_to(offset):
        if isinstance(statement, ast.ClassDef) and _is_backend_class(statement):
            return BACKEND_CLASS
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in statement.decorator_list:
                region = _region_of(decorator, module)
                if region is _TEST_CONDITION:
                    detail = obstacle(statement) if obstacle is not None else ""
                    if obstacle is not None and not detail:
                        continue
                    inside = offset >= module.lines.start(statement.body[0])
                    region = replace(_TEST_BODY if inside else _TEST_CONDITION, detail=detail)
                if region is not None:
                    return region
    return None


def _is_backend_class(node: ast.ClassDef) -> bool:
    """``class CudaAccelerator(BaseAccelerator)``: CUDA's side of a device layer, which has classes for others."""
    bases = ((dotted_name(base) or "").rpartition(".")[2] for base in node.bases)
    return "cuda" in node.name.lower() and any(_LAYER.search(base) and "cuda" not in base.lower() for base in bases)


def _region_of(decorator: ast.expr, module: Module) -> Region | None:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    dotted = dotted_name(function)
    name = module.names.qualified(dotted, module.lines.start(decorator)) if dotted else None
    if name in _SCRIPTED:
        return _SCRIPT
    if name in _KERNELS:
        return _KERNEL
    if isinstance(decorator, ast.Call) and is_test_condition(dotted) and asks_for_cuda(decorator, module):
        return _TEST_CONDITION
    return None


def decides_tests(module: Module, name: str) -> bool:
    """Whether a variable stands in the condition of a test: ``@unittest.skipIf(not TEST_CUDA, ...)``."""
    return any(
        isinstance(decorator, ast.Call)
        and is_test_condition(dotted_name(decorator.func))
        and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(decorator))
        for statement in ast.walk(module.tree)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for decorator in statement.decorator_list
    )


def is_test_condition(dotted: str | None) -> bool:
    """Whether a decorator or call by this name decides if, or with what, a test runs."""
    last = (dotted or "").split(".")[-1]
    return last in ("skipif", "skipIf", "skipUnless", "parametrize", "xfail", "skip", "skipTest", "importorskip")


def is_skip(statement: ast.stmt) -> bool:
    """Whether a statement skips the test that it stands in."""
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return (dotted_name(raised) or "").split(".")[-1] == "SkipTest"
    return call_name(statement).split(".")[-1] in ("skip", "skipTest")


def call_name(statement: ast.stmt) -> str:
    """The name of the function that a statement calls, empty if it is no call."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return dotted_name(statement.value.func) or ""
    return ""


def asks_for_cuda(node: ast.AST, module: Module) -> bool:
    """Whether an expression names ``torch.cuda``, or a variable that was made of it."""
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and child.attr == "cuda":
            return True
        if isinstance(child, ast.Name):
            values = module.names.values(child.id, module.lines.start(child)) or []
            if any(isinstance(part, ast.Attribute) and part.attr == "cuda" for v in values for part in ast.walk(v)):
                return True
    return False
