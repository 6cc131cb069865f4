"""Tests that need CUDA: what their conditions decide, and whether they are about CUDA itself.

A test that happens to run on CUDA may run on another device. One of a CUDA kernel, of cuDNN or of NCCL may not:
widening its condition would run it where it can only fail. What lies in other files counts as being about CUDA only
where its name says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from codemods.analysis.module import Module
from codemods.analysis.names import dotted_name
from codemods.cuda_api import find_package, load_cuda_api
from codemods.toml import read_rules
from codemods.transformers.regions import asks_for_cuda, is_skip, is_test_condition

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Unit: TypeAlias = Definition | ast.Module
"""What a condition decides: a test, a class of tests, or all tests of a module."""

_OPERATORS = re.compile(r"torch\.ops\.(?!aten\.|prims\.|torchvision\.|quantized\.|c10d\.)\w+\.")
_KERNEL_SOURCE = re.compile(r"__global__\s+void|\w\.cu\Z")
_QUESTIONS = ("torch.version.cuda", "torch.backends.cudnn.version", "torch.backends.cudnn.is_available")
_SET_UP = ("setUp", "setUpClass", "setup_method", "setup_class", "asyncSetUp")


@dataclass(frozen=True)
class Knowledge:
    """What is known of tests: the content of ``rules/tests.toml``."""

    reasons: re.Pattern[str]
    """What the reason of a condition says of a test that is about CUDA itself."""
    words: frozenset[str]
    """Words in names that tell the same."""
    called: frozenset[str]
    """Words that do so in the name of a function of unknown origin."""
    conditions: Mapping[tuple[str, str], str]
    """By library and name, conditions that mean CUDA, and what the library has for any accelerator."""
    torch: frozenset[str]
    """Names of torch's own tests that mean CUDA."""


@cache
def load_knowledge() -> Knowledge:
    """What ``rules/tests.toml`` holds."""
    data = read_rules("tests.toml")
    conditions = {
        (library, name): instead
        for table in data["conditions"]
        for library in table["libraries"]
        for name, instead in table.items()
        if name != "libraries"
    }
    return Knowledge(
        reasons=re.compile("|".join(data["reasons"]), re.IGNORECASE),
        words=frozenset(data["words"]),
        called=frozenset(data["called"]),
        conditions=conditions,
        torch=frozenset(data["torch"]["names"]),
    )


class CudaTests:
    """The tests of one module.

    Args:
        top_level: names that an import finds in the repository itself, so that they are no package of somebody else's
    """

    def __init__(self, module: Module, top_level: frozenset[str] = frozenset()) -> None:
        self._module = module
        self._top_level = top_level
        self._known = load_knowledge()
        self._definitions: dict[str, list[Definition]] = {}
        for node in ast.walk(module.tree):
            if isinstance(node, Definition):
                self._definitions.setdefault(node.name, []).append(node)
        self._subjects: dict[int, str] = {}

    # -- what a condition decides ----------------------------------------------------------------------------------

    def decided_at(self, offset: int) -> list[Unit] | None:
        """The tests that a condition at an offset decides, as far as they are in this module; None if it is none."""
        around = self._module.statements.path_to(offset)
        for statement in around:
            if isinstance(statement, Definition) and self._is_in_decorators(statement, offset):
                return self._with_those_that_share_a_name(statement) if _conditions(statement) else None
        innermost = around[-1] if around else None
        inner = next((s for s in reversed(around) if isinstance(s, Definition)), None)
        if isinstance(innermost, ast.If) and any(map(is_skip, innermost.body)):
            in_set_up = isinstance(inner, ast.FunctionDef) and inner.name in _SET_UP
            classes = [s for s in around if isinstance(s, ast.ClassDef)]
            return [classes[-1] if in_set_up and classes else inner or self._module.tree]
        if isinstance(innermost, ast.Assign | ast.AnnAssign):
            decided = self._decided_by(_targets(innermost))
            is_condition = innermost.value is not None and _holds_condition(innermost.value)
            return decided if decided or is_condition else None
        if isinstance(innermost, ast.Return) and inner is not None and _holds_condition(innermost):
            return self._decided_by({inner.name})
        return None

    def obstacle(self, offset: int) -> str:
        """Why a condition at an offset has to stay: what the tests that it decides are about; empty if it may go."""
        around = self._module.statements.path_to(offset)
        innermost = around[-1] if around else None
        if innermost is not None and not isinstance(innermost, Definition):
            subject = self._reason([innermost]) or self._subject_of_condition(innermost)
            if subject:
                return f"it {subject}"
        if any(self._is_in_decorators(s, offset, "xfail") for s in around if isinstance(s, Definition)):
            return "it expects a failure that is CUDA's"
        outer = [s for s in around if isinstance(s, Definition) and self._needs_cuda(s)]
        return self._obstacle_of(self.decided_at(offset) or []) or next(filter(None, map(self.obstacle_of, outer)), "")

    def _needs_cuda(self, test: Definition) -> bool:
        return any(asks_for_cuda(condition, self._module) for condition in _conditions(test))

    def obstacle_of(self, test: Definition) -> str:
        """Why a test with a condition in its decorators has to stay; empty if it may run on other devices."""
        return self._obstacle_of(self._with_those_that_share_a_name(test))

    def _obstacle_of(self, units: Iterable[Unit]) -> str:
        for unit in units:
            subject = self.subject(unit)
            if subject:
                name = unit.name if isinstance(unit, Definition) else "the module"
                return f"{name} {subject}"
        return ""

    def _is_in_decorators(self, statement: Definition, offset: int, name: str = "") -> bool:
        """Whether an offset lies in a decorator, one that calls a function of this name if there is one."""
        return any(
            self._module.lines.start(decorator) <= offset < self._module.lines.end(decorator)
            for decorator in statement.decorator_list
            if not name or (isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == name)
        )

    def _with_those_that_share_a_name(self, test: Definition) -> list[Unit]:
        names = {
            node.id
            for decorator in test.decorator_list
            if asks_for_cuda(decorator, self._module)
            for node in ast.walk(decorator)
            if isinstance(node, ast.Name)
        }
        flags = {name for name in names if self._module.names.values(name, self._module.lines.start(test))}
        return [test, *(unit for unit in self._decided_by(flags) if unit is not test)] if flags else [test]

    def _decided_by(self, names: set[str]) -> list[Unit]:
        """The tests whose conditions name one of these variables, or one that was made of them."""
        names = set(names)
        assigned = [s for s in ast.walk(self._module.tree) if isinstance(s, ast.Assign | ast.AnnAssign)]
        while True:
            made = {name for s in assigned if s.value and _names(s.value) & names for name in _targets(s)} - names
            if not made:
                break
            names |= made
        units: list[Unit] = [self._module.tree] if "pytestmark" in names else []
        for definitions in self._definitions.values():
            units += [d for d in definitions if any(_names(decorator) & names for decorator in d.decorator_list)]
        for node in ast.walk(self._module.tree):
            if isinstance(node, ast.If) and _names(node.test) & names and any(map(is_skip, node.body)):
                around = self._module.statements.path_to(self._module.lines.start(node))
                inner = next((s for s in reversed(around) if isinstance(s, Definition)), None)
                units.append(inner or self._module.tree)
        return units

    # -- what a test is about --------------------------------------------------------------------------------------

    def subject(self, unit: Unit) -> str:
        """What of CUDA's own a test is about: ``uses Triton``; empty if nothing is seen."""
        key = id(unit)
        if key not in self._subjects:
            self._subjects[key] = ""  # for functions that call each other
            self._subjects[key] = self._subject(unit)
        return self._subjects[key]

    def _subject(self, unit: Unit) -> str:
        if isinstance(unit, Definition):
            words = _words(unit.name)
            if words & self._known.words or (words and _words_in_order(unit.name)[-1] in ("kernel", "kernels")):
                return "is about CUDA by its name"
        return self._reason([unit]) or next(filter(None, self._subjects_in(unit)), "")

    def _subject_of_condition(self, statement: ast.stmt) -> str:
        header: ast.AST = statement.test if isinstance(statement, ast.If) else statement
        return next(filter(None, self._subjects_in(header)), "")

    def _reason(self, nodes: Iterable[ast.AST]) -> str:
        for node in nodes:
            for call in ast.walk(node):
                if not isinstance(call, ast.Call) or not is_test_condition(dotted_name(call.func)):
                    continue
                for text in _texts(call):
                    if self._known.reasons.search(text):
                        return f"is about CUDA by the reason that it gives: {text.strip()!r}"
        return ""

    def _subjects_in(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Call):
            yield self._of_call(node)
        if isinstance(node, ast.Attribute | ast.Name) and (dotted := dotted_name(node)) is not None:
            yield self._of_name(dotted, node)
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNEL_SOURCE.search(node.value):
            yield "compiles CUDA source"
        for child in ast.iter_child_nodes(node):
            yield from self._subjects_in(child)

    def _of_name(self, dotted: str, node: ast.Attribute | ast.Name) -> str:
        qualified = self._module.names.qualified(dotted, self._module.lines.start(node))
        local = self._local(dotted, qualified)
        if local:
            return next(filter(None, map(self.subject, local)), "")
        name = qualified or dotted
        package = None if name.partition(".")[0] in self._top_level else find_package(name)
        if qualified and package is not None and not package.has_cpu:
            return f"uses {package.title}"
        if name.startswith("torch.cuda.") and (entry := load_cuda_api().get(name)) and entry.action == "report":
            return f"uses {name}"
        if name.startswith("torch.utils.cpp_extension.") or _OPERATORS.match(name):
            return f"uses {name}"
        if name in _QUESTIONS or _words(name.rpartition(".")[2]) & self._known.words:
            return f"uses {name}"
        return ""

    def _of_call(self, call: ast.Call) -> str:
        """A function of unknown origin that is called after CUDA or a kernel."""
        name = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
        dotted = dotted_name(call.func)
        qualified = self._module.names.qualified(dotted, self._module.lines.start(call)) if dotted else None
        is_known = name == "cuda" or name in self._definitions
        if is_known or (qualified or "").startswith(("torch.", "pytest.", "unittest.")):
            return ""
        return f"calls {name}" if _words(name) & self._known.called else ""

    def _local(self, dotted: str, qualified: str | None) -> list[Definition]:
        """The definitions of this module that a name may mean: a function, a class, or a method of ``self``."""
        root, _, rest = dotted.partition(".")
        if root in ("self", "cls"):
            return self._definitions.get(rest, [])
        return self._definitions.get(root, []) if qualified is None and not rest else []


def _conditions(definition: Definition) -> list[ast.expr]:
    return [decorator for decorator in definition.decorator_list if _holds_condition(decorator)]


def _holds_condition(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and is_test_condition(dotted_name(n.func)) for n in ast.walk(node))


def _targets(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _texts(call: ast.Call) -> Iterator[str]:
    """The strings among the arguments of a condition, which give its reason."""
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        for node in ast.walk(value):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _words(name: str) -> set[str]:
    return set(_words_in_order(name))


def _words_in_order(name: str) -> list[str]:
    """``test_fused_kernel`` and ``TestFusedKernel`` as words."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)] or [""]
