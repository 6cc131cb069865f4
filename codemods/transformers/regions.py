"""Regions of a module in which nothing is rewritten: compiled functions, kernels, tests that need CUDA by design."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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
_KERNELS = {"triton.jit", "triton.autotune", "triton.heuristics", "numba.cuda.jit"}


@dataclass(frozen=True)
class Region:
    """Why nothing is rewritten here: the rule that says so."""

    rule: str
    tier: Tier


_SCRIPT = Region("UC806", Tier.MANUAL)
_KERNEL = Region("UC804", Tier.NOTE)
_CUDA_TEST = Region("UC807", Tier.NOTE)


def region_at(module: Module, offset: int) -> Region | None:
    """The region around an offset, if any."""
    for statement in module.statements.path_to(offset):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside_body = offset >= module.lines.start(statement.body[0])
            for decorator in statement.decorator_list:
                region = _region_of(decorator, module)
                if region is not None and (inside_body or region is not _CUDA_TEST):
                    return region
    return None


def _region_of(decorator: ast.expr, module: Module) -> Region | None:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    dotted = dotted_name(function)
    name = module.names.qualified(dotted, module.lines.start(decorator)) if dotted else None
    if name in _SCRIPTED:
        return _SCRIPT
    if name in _KERNELS:
        return _KERNEL
    if isinstance(decorator, ast.Call) and is_test_condition(dotted) and _asks_for_cuda(decorator, module):
        return _CUDA_TEST
    return None


def is_test_condition(dotted: str | None) -> bool:
    """Whether a decorator or call by this name decides if, or with what, a test runs."""
    last = (dotted or "").split(".")[-1]
    return last in ("skipif", "skipIf", "skipUnless", "parametrize", "xfail", "skip", "skipTest", "importorskip")


def _asks_for_cuda(call: ast.Call, module: Module) -> bool:
    return any("torch.cuda.is_available" in name for name in _names_in(call, module))


def _names_in(node: ast.AST, module: Module) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute | ast.Name):
            dotted = dotted_name(child)
            if dotted:
                yield module.names.qualified(dotted, module.lines.start(child)) or ""
