"""The devices that tests run on: lists that parametrise a test, a fixture or a loop, and comparisons with an element.

A list, what guards it, and the comparisons of its elements with "cuda" change together or not at all: a list that
follows the selected device beside a comparison that does not would leave a branch of the test dead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codemods.analysis.module import Module
from codemods.analysis.names import dotted_name
from codemods.transformers.branches import choice_is_portable, is_portable
from codemods.transformers.cuda_tests import CudaTests, Definition
from codemods.transformers.regions import is_skip

_DEVICE = re.compile(r"device|^dev$", re.IGNORECASE)
_CUDA = re.compile(r"cuda(?::\d+)?\Z")
_QUESTIONS = ("is_available", "device_count")


@dataclass
class _Source:
    """One list and the variable that takes its elements."""

    variable: str
    scope: ast.AST
    """Where the variable is read."""
    whole: list[ast.expr] = field(default_factory=list)
    """Lists that name CUDA whether it is there or not."""
    single: list[ast.expr] = field(default_factory=list)
    """Strings that are in a list only if CUDA is there, or beside other values."""

    def places(self) -> Iterator[ast.expr]:
        yield from self.whole
        yield from self.single


class DeviceLists:
    """The lists of devices of one module, by their byte offsets."""

    def __init__(self, module: Module, tests: CudaTests) -> None:
        self._module = module
        self.whole: set[int] = set()
        """Lists that the selected device is put into."""
        self.single: set[int] = set()
        """Strings that become the selected device."""
        self.comparisons: set[int] = set()
        """Comparisons with "cuda" that become comparisons with the selected device."""
        self.covered: set[int] = set()
        """Strings inside of lists that the selected device is put into."""
        self.kept: dict[int, str] = {}
        """Strings that stay, and why."""
        sources = list(self._sources())
        obstacles = {id(source): self._obstacle(source, tests) for source in sources}
        shared = self._shared_obstacles(sources, obstacles)
        for source in sources:
            obstacle = next((shared[place] for place in map(self._at, source.places()) if place in shared), "")
            if obstacle:
                strings = (text for place in source.places() for text in _cuda_strings(place))
                self.kept.update((self._at(text), obstacle) for text in strings)
                continue
            self.whole.update(map(self._at, source.whole))
            self.covered.update(self._at(text) for place in source.whole for text in _cuda_strings(place))
            self.single.update(map(self._at, source.single))
            self.comparisons.update(map(self._at, self._comparisons(source)))

    def _shared_obstacles(self, sources: Iterable[_Source], obstacles: dict[int, str]) -> dict[int, str]:
        """A list that several tests use stays for all of them if it stays for one."""
        return {
            self._at(place): obstacles[id(source)]
            for source in sources
            if obstacles[id(source)]
            for place in source.places()
        }

    def _at(self, node: ast.expr) -> int:
        """Where an expression starts: a list, whose parentheses may count or not, at its first element."""
        first = node.elts[0] if isinstance(node, ast.List | ast.Tuple | ast.Set) else node
        return self._module.lines.start(first)

    # -- the lists -------------------------------------------------------------------------------------------------

    def _sources(self) -> Iterator[_Source]:
        for node in ast.walk(self._module.tree):
            if isinstance(node, Definition):
                for decorator in node.decorator_list:
                    yield from self._decorator(decorator, node)
            elif isinstance(node, ast.Assign) and _is_name(node.targets[0], "pytestmark"):
                yield from self._decorator(node.value, self._module.tree)
            elif isinstance(node, ast.For) and self._module.is_test and isinstance(node.target, ast.Name):
                yield from self._collected(node.target.id, node, node.iter)

    def _decorator(self, decorator: ast.expr, scope: ast.AST) -> Iterator[_Source]:
        calls = [node for node in ast.walk(decorator) if isinstance(node, ast.Call)]
        for call in calls:
            last = (dotted_name(call.func) or "").split(".")[-1]
            if last == "parametrize" and len(call.args) > 1:
                names = _argument_names(call.args[0])
                for position, name in enumerate(names):
                    yield from self._collected(name, scope, call.args[1], position if len(names) > 1 else None)
            elif last == "fixture" and isinstance(scope, ast.FunctionDef):
                for keyword in call.keywords:
                    if keyword.arg == "params":
                        yield from self._collected(scope.name, self._module.tree, keyword.value)

    def _collected(
        self, variable: str, scope: ast.AST, values: ast.expr, position: int | None = None
    ) -> Iterator[_Source]:
        if _DEVICE.search(variable):
            source = _Source(variable, scope)
            self._collect(source, values, position, guarded=False)
            if source.whole or source.single:
                yield source

    def _collect(self, source: _Source, values: ast.expr, position: int | None, *, guarded: bool) -> None:
        if isinstance(values, ast.List | ast.Tuple | ast.Set):
            self._collect_elements(source, values, position, guarded=guarded)
        elif isinstance(values, ast.IfExp):
            self._collect(source, values.body, position, guarded=guarded or _asks(values.test))
            self._collect(source, values.orelse, position, guarded=guarded or _asks(values.test))
        elif isinstance(values, ast.BinOp) and isinstance(values.op, ast.Add):
            self._collect(source, values.left, position, guarded=guarded)
            self._collect(source, values.right, position, guarded=guarded)
        elif isinstance(values, ast.Name):
            self._collect_variable(source, values, position)

    def _collect_elements(
        self, source: _Source, values: ast.List | ast.Tuple | ast.Set, position: int | None, *, guarded: bool
    ) -> None:
        for element in values.elts:
            parts = _parts(element)
            if parts is None and position is None and _names_cuda(element):
                if guarded:
                    source.single.append(element)
                elif values not in source.whole:
                    source.whole.append(values)
            elif parts is not None:
                place = position or 0
                if place < len(parts) and _names_cuda(parts[place]):
                    source.single.append(parts[place])

    def _collect_variable(self, source: _Source, variable: ast.Name, position: int | None) -> None:
        """A list under a name: what it is made of, and what is appended to it."""
        names = self._module.names
        for value in names.values(variable.id, self._at(variable)) or []:
            if not isinstance(value, ast.Name):
                self._collect(source, value, position, guarded=False)
        for statement in ast.walk(self._module.tree):
            if isinstance(statement, ast.If) and _asks(statement.test):
                for call in ast.walk(statement):
                    if isinstance(call, ast.Call) and dotted_name(call.func) == f"{variable.id}.append":
                        source.single += [value for value in call.args if _names_cuda(value)]

    # -- what keeps them -------------------------------------------------------------------------------------------

    def _obstacle(self, source: _Source, tests: CudaTests) -> str:
        around = self._tests_around(source)
        subject = next(filter(None, map(tests.subject, around)), "")
        if subject:
            return f"the test {subject}"
        for node in ast.walk(source.scope):
            if isinstance(node, ast.Compare) and _compares(node, source.variable) and not self._follows(node):
                return f"line {node.lineno} compares it with 'cuda'"
            is_key = isinstance(node, ast.Subscript) and _is_name(node.slice, source.variable)
            if is_key or _asks_for_prefix(node, source.variable):
                return f"line {getattr(node, 'lineno', 0)} depends on its name"
        return ""

    def _tests_around(self, source: _Source) -> list[Definition]:
        if isinstance(source.scope, Definition):
            return [source.scope]
        if isinstance(source.scope, ast.For):
            around = reversed(self._module.statements.path_to(self._module.lines.start(source.scope)))
            inner = next((s for s in around if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)), None)
            return [inner] if inner is not None else []
        return []

    def _comparisons(self, source: _Source) -> Iterator[ast.Compare]:
        return (n for n in ast.walk(source.scope) if isinstance(n, ast.Compare) and _compares(n, source.variable))

    def _follows(self, comparison: ast.Compare) -> bool:
        """Whether a comparison with "cuda" may ask for the selected device, by what depends on the answer."""
        sides = [comparison.left, *comparison.comparators]
        names_type = any(isinstance(side, ast.Constant) and side.value == "cuda" for side in sides)
        if not names_type or len(sides) != 2 or not isinstance(comparison.ops[0], ast.Eq | ast.NotEq):
            return False
        around = self._module.statements.path_to(self._at(comparison))
        statement = around[-1] if around else None
        if isinstance(statement, ast.If) and _holds(statement.test, comparison):
            if any(map(is_skip, statement.body)):
                return _asks(statement.test) and isinstance(comparison.ops[0], ast.Eq)
            return choice_is_portable(statement, self._module.statements.following(statement), self._module)
        choices = (n for n in ast.walk(statement or self._module.tree) if isinstance(n, ast.IfExp))
        choice = next((choice for choice in choices if _holds(choice.test, comparison)), None)
        return choice is not None and is_portable([ast.Expr(choice.body), ast.Expr(choice.orelse)], self._module, 0)


def _argument_names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",")]
    elements = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    return [str(e.value) if isinstance(e, ast.Constant) else "" for e in elements]


def _parts(element: ast.expr) -> list[ast.expr] | None:
    """The values of an element that holds several: a tuple, or ``pytest.param(...)``."""
    if isinstance(element, ast.Tuple | ast.List):
        return element.elts
    if isinstance(element, ast.Call) and (dotted_name(element.func) or "").split(".")[-1] == "param":
        return element.args
    return None


def _names_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_CUDA.match(node.value))


def _cuda_strings(node: ast.expr) -> Iterator[ast.expr]:
    return (n for n in ast.walk(node) if isinstance(n, ast.expr) and _names_cuda(n))


def _asks(test: ast.expr) -> bool:
    """Whether a test asks if, or how many, devices there are."""
    return any(isinstance(node, ast.Attribute) and node.attr in _QUESTIONS for node in ast.walk(test))


def _compares(node: ast.Compare, variable: str) -> bool:
    sides = [node.left, *node.comparators]
    names = any(_is_name(side, variable) for side in sides)
    return names and any(_names_cuda(part) for side in sides for part in ast.walk(side) if isinstance(part, ast.expr))


def _asks_for_prefix(node: ast.AST, variable: str) -> bool:
    """``device.startswith("cuda")``"""
    if not isinstance(node, ast.Call) or dotted_name(node.func) != f"{variable}.startswith":
        return False
    return any(isinstance(a, ast.Constant) and str(a.value).startswith("cuda") for a in node.args)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _holds(tree: ast.expr, node: ast.expr) -> bool:
    return any(child is node for child in ast.walk(tree))
