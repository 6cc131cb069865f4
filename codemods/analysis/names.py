"""What the names of a module mean: imports and aliases, scopes, shadowing, star imports, simple values.

One pass over the ``ast`` collects what every scope binds. Questions are then asked by byte offset, so that they can
come from any tree of the same text. A name whose meaning is not certain has none: ``qualified`` answers ``None``.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from codemods.analysis.positions import Lines


@dataclass
class Binding:
    """One place that gives a name a meaning in a scope."""

    kind: str
    """``import``, ``assign``, ``parameter``, ``definition`` or ``other`` (loops, ``with``, unpacking, ``del``, ...)."""
    offset: int
    target: str | None = None
    """Dotted name, of an import."""
    value: ast.expr | None = None
    """The assigned expression, or the default of a parameter."""
    node: ast.AST | None = None
    """The definition, parameter or import alias."""


@dataclass
class Scope:
    """A region of the text with names of its own."""

    kind: str
    """``module``, ``class``, ``function`` (``lambda`` included) or ``comprehension``."""
    start: int
    end: int
    parent: Scope | None
    node: ast.AST
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Names declared ``global`` or ``nonlocal``."""
    outside: tuple[int, int] = (0, 0)
    """A stretch that belongs to the scope around: the first iterable of a comprehension."""

    def bind(self, name: str, binding: Binding) -> None:
        """Adds a meaning for a name, in the scope that a declaration sends it to."""
        declared = self.elsewhere.get(name)
        owner: Scope | None = self if declared is None else self.parent
        while owner is not None and owner.parent is not None and declared is not None:
            if declared == "nonlocal" and owner.kind == "function" and name in owner.bindings:
                break
            owner = owner.parent
        (owner or self).bindings.setdefault(name, []).append(binding)

    def holds(self, offset: int) -> bool:
        """Whether a place (behind the start) belongs to this scope."""
        return offset < self.end and not self.outside[0] <= offset < self.outside[1]


class Names:
    """The meanings of names in one module.

    Args:
        tree: the parsed module
        lines: offsets of the same text
    """

    def __init__(self, tree: ast.Module, lines: Lines) -> None:
        collector = _Collector(tree, lines)
        self.module = collector.scopes[0]
        self.star_imports: list[str] = collector.star_imports
        self.uses: list[tuple[str, int]] = collector.uses
        self.imports: list[ast.Import | ast.ImportFrom] = collector.imports
        self.strings: list[str] = collector.strings
        self.scopes = sorted(collector.scopes, key=lambda scope: scope.start)
        self._starts = [scope.start for scope in self.scopes]
        self._meanings: dict[int, str | None] = {}  # by the identity of a list of bindings

    def scope_at(self, offset: int) -> Scope:
        """The innermost scope around an offset."""
        scope: Scope | None = self.scopes[bisect_right(self._starts, offset) - 1]
        while scope is not None and not scope.holds(offset):
            scope = scope.parent
        return scope or self.module

    def bindings(self, name: str, offset: int) -> list[Binding]:
        """Every binding that a name used at an offset can refer to; empty for a built-in or unknown name."""
        scope: Scope | None = self.scope_at(offset)
        innermost = True
        while scope is not None:
            declared = scope.elsewhere.get(name)
            if declared == "global":
                return self.module.bindings.get(name, [])
            visible = scope.kind != "class" or innermost
            if visible and declared is None and name in scope.bindings:
                return scope.bindings[name]
            innermost = False
            scope = scope.parent
        return []

    def qualified(self, dotted: str, offset: int) -> str | None:
        """The full name of ``dotted`` at an offset, e.g. ``torch.cuda.amp`` for ``th.cuda.amp``; ``None`` if unsure."""
        return self._qualified(dotted, offset, frozenset())

    def _qualified(self, dotted: str, offset: int, seen: frozenset[str]) -> str | None:
        root, _, rest = dotted.partition(".")
        if root in seen:
            return None
        bindings = self.bindings(root, offset)
        if not seen and id(bindings) in self._meanings:
            return _joined(self._meanings[id(bindings)], rest)
        meanings = {self._meaning(binding, seen | {root}) for binding in bindings}
        meanings.discard("None")  # `except ImportError: amp = None` is a fall-back, not another meaning
        meaning = meanings.pop() if len(meanings) == 1 else None
        if not seen and bindings:
            self._meanings[id(bindings)] = meaning
        return _joined(meaning, rest)

    def _meaning(self, binding: Binding, seen: frozenset[str]) -> str | None:
        if binding.kind == "import":
            return binding.target
        if binding.kind != "assign" or binding.value is None:
            return None
        if isinstance(binding.value, ast.Constant) and binding.value.value is None:
            return "None"
        dotted = dotted_name(binding.value)
        return self._qualified(dotted, binding.offset, seen) if dotted else None

    def values(self, name: str, offset: int) -> list[ast.expr] | None:
        """All expressions a name can hold at an offset, or ``None`` if one of them is not known."""
        found = self.bindings(name, offset)
        values = [binding.value for binding in found if binding.kind == "assign" and binding.value is not None]
        return values if found and len(values) == len(found) else None

    def string(self, name: str, offset: int) -> str | None:
        """The string that a name holds wherever it is assigned, if it is one and the same."""
        values = self.values(name, offset)
        if not values or not all(isinstance(value, ast.Constant) and isinstance(value.value, str) for value in values):
            return None
        texts = {value.value for value in values if isinstance(value, ast.Constant)}
        return str(texts.pop()) if len(texts) == 1 else None

    def imported_as(self, prefix: str) -> Iterator[str]:
        """The local names, in any scope, of imports whose full name starts with ``prefix``."""
        for scope in self.scopes:
            for name, bindings in scope.bindings.items():
                if any(b.kind == "import" and b.target and _starts_with(b.target, prefix) for b in bindings):
                    yield name

    def aliases(self, prefixes: tuple[str, ...], besides: tuple[str, ...]) -> set[str]:
        """Local names whose spelling need not tell that they stand for something of torch.

        Those are ``from torch import ... as ...``, imports below one of the prefixes, and variables that were assigned
        a name below one of them; an alias of a module in ``besides`` is not one of them.
        """
        return {
            name
            for scope in self.scopes
            for name, bindings in scope.bindings.items()
            if any(self._hides(binding, prefixes, besides) for binding in bindings)
        }

    def _hides(self, binding: Binding, prefixes: tuple[str, ...], besides: tuple[str, ...]) -> bool:
        if binding.kind == "import":
            target = binding.target or ""
            renamed = isinstance(binding.node, ast.alias) and binding.node.asname is not None and "." in target
            renamed = renamed and target.startswith("torch.") and target not in besides
            return renamed or any(_starts_with(target, p) for p in prefixes)
        dotted = dotted_name(binding.value) if binding.kind == "assign" and binding.value is not None else None
        target = (self.qualified(dotted, binding.offset) or "") if dotted and "." in dotted else ""
        return any(_starts_with(target, prefix) for prefix in prefixes)

    def offsets_of(self, names: Collection[str]) -> list[int]:
        """Where names are bound, in any scope."""
        return [b.offset for scope in self.scopes for name in names for b in scope.bindings.get(name, [])]

    def all_bound(self) -> set[str]:
        """Every name that is bound in any scope of the module."""
        return {name for scope in self.scopes for name in scope.bindings}

    def classes(self) -> Iterator[ast.ClassDef]:
        """Every class definition of the module."""
        for scope in self.scopes:
            if isinstance(scope.node, ast.ClassDef):
                yield scope.node


def _joined(meaning: str | None, rest: str) -> str | None:
    return f"{meaning}.{rest}" if meaning and rest else meaning


def dotted_name(node: ast.AST) -> str | None:
    """``a.b.c`` for a chain of attributes on a name, else ``None``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def _starts_with(dotted: str, prefix: str) -> bool:
    return dotted == prefix or dotted.startswith(prefix + ".")


class _Collector:
    """Walks a module once and collects its scopes, bindings and uses of names."""

    def __init__(self, tree: ast.Module, lines: Lines) -> None:
        self.lines = lines
        self.star_imports: list[str] = []
        self.uses: list[tuple[str, int]] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.strings: list[str] = []
        module = Scope("module", 0, 1 << 62, None, tree)
        self.scopes = [module]
        for statement in tree.body:
            self.visit(statement, module)

    def visit(self, node: ast.AST, scope: Scope) -> None:
        """Collects from a node and everything below it."""
        special = _SPECIAL.get(type(node))
        if special is not None:
            special(self, node, scope)
        else:
            self.visit_children(node, scope)

    def visit_children(self, node: ast.AST, scope: Scope) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item, scope)
            elif isinstance(value, ast.AST):
                self.visit(value, scope)

    def name(self, node: ast.Name, scope: Scope) -> None:
        offset = self.lines.start(node)
        if type(node.ctx) is ast.Load:
            self.uses.append((node.id, offset))
        else:
            scope.bind(node.id, Binding("other", offset))

    def leaf(self, node: ast.AST, scope: Scope) -> None:
        """Nodes below which nothing is bound."""

    def constant(self, node: ast.Constant, scope: Scope) -> None:
        if isinstance(node.value, str):
            self.strings.append(node.value)

    def import_(self, node: ast.Import, scope: Scope) -> None:
        self.imports.append(node)
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            scope.bind(name, Binding("import", self.lines.start(node), target=target, node=alias))

    def import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        self.imports.append(node)
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.star_imports.append(module)
                continue
            target = f"{module}.{alias.name}" if not module.endswith(".") else module + alias.name
            scope.bind(alias.asname or alias.name, Binding("import", self.lines.start(node), target=target, node=alias))

    def assign(self, node: ast.Assign, scope: Scope) -> None:
        self.visit(node.value, scope)
        for target in node.targets:
            self._assign_target(target, node.value, scope)

    def ann_assign(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.visit(node.annotation, scope)
        if node.value is not None:
            self.visit(node.value, scope)
            self._assign_target(node.target, node.value, scope)
        elif not isinstance(node.target, ast.Name):
            self.visit(node.target, scope)

    def named_expr(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.visit(node.value, scope)
        owner = scope
        while owner.kind == "comprehension" and owner.parent is not None:
            owner = owner.parent
        self._assign_target(node.target, node.value, owner)

    def _assign_target(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, Binding("assign", self.lines.start(target), value=value))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for part, part_value in zip(target.elts, value.elts, strict=True):
                self._assign_target(part, part_value, scope)
        else:
            self.visit(target, scope)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        scope.bind(node.name, Binding("definition", self.lines.start(node), node=node))
        for outer in (*node.decorator_list, *self._annotations_and_defaults(node.args)):
            self.visit(outer, scope)
        if node.returns is not None:
            self.visit(node.returns, scope)
        inner = self._open("function", self._body_start(node), self.lines.end(node), scope, node)
        self._bind_parameters(node.args, inner)
        for statement in node.body:
            self.visit(statement, inner)

    def lambda_(self, node: ast.Lambda, scope: Scope) -> None:
        for outer in self._annotations_and_defaults(node.args):
            self.visit(outer, scope)
        inner = self._open("function", self.lines.start(node.body), self.lines.end(node.body), scope, node)
        self._bind_parameters(node.args, inner)
        self.visit(node.body, inner)

    def class_(self, node: ast.ClassDef, scope: Scope) -> None:
        scope.bind(node.name, Binding("definition", self.lines.start(node), node=node))
        for outer in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outer, scope)
        inner = self._open("class", self._body_start(node), self.lines.end(node), scope, node)
        for statement in node.body:
            self.visit(statement, inner)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope) -> None:
        inner = self._open("comprehension", self.lines.start(node), self.lines.end(node), scope, node)
        first = node.generators[0].iter
        inner.outside = self.lines.start(first), self.lines.end(first)
        self.visit(first, scope)
        for generator in node.generators:
            self.visit(generator.target, inner)
            for part in (*generator.ifs, *([generator.iter] if generator.iter is not first else [])):
                self.visit(part, inner)
        elements = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for element in elements:
            self.visit(element, inner)

    def global_(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            scope.elsewhere[name] = "global" if isinstance(node, ast.Global) else "nonlocal"

    def handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            scope.bind(node.name, Binding("other", self.lines.start(node)))
        self.visit_children(node, scope)

    def capture(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name:
            scope.bind(node.name, Binding("other", self.lines.start(node)))
        self.visit_children(node, scope)

    def mapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        if node.rest:
            scope.bind(node.rest, Binding("other", self.lines.start(node)))
        self.visit_children(node, scope)

    def _open(self, kind: str, start: int, end: int, parent: Scope, node: ast.AST) -> Scope:
        scope = Scope(kind, start, end, parent, node)
        self.scopes.append(scope)
        return scope

    def _body_start(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
        """Where the body begins: everything before it (decorators, defaults, bases) belongs to the scope outside."""
        first = node.body[0]
        decorators = getattr(first, "decorator_list", None)
        return self.lines.start(decorators[0] if decorators else first)

    def _bind_parameters(self, args: ast.arguments, scope: Scope) -> None:
        positional = [*args.posonlyargs, *args.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
        pairs = [*zip(positional, defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        pairs += [(arg, None) for arg in (args.vararg, args.kwarg) if arg is not None]
        for arg, default in pairs:
            scope.bind(arg.arg, Binding("parameter", self.lines.start(arg), value=default, node=arg))

    @staticmethod
    def _annotations_and_defaults(args: ast.arguments) -> Iterator[ast.expr]:
        yield from args.defaults
        yield from (default for default in args.kw_defaults if default is not None)
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None and arg.annotation is not None:
                yield arg.annotation


_SPECIAL: dict[type[ast.AST], Callable[[_Collector, Any, Scope], None]] = {
    ast.Name: _Collector.name,
    ast.Constant: _Collector.constant,
    ast.Import: _Collector.import_,
    ast.ImportFrom: _Collector.import_from,
    ast.Assign: _Collector.assign,
    ast.AnnAssign: _Collector.ann_assign,
    ast.NamedExpr: _Collector.named_expr,
    ast.FunctionDef: _Collector.function,
    ast.AsyncFunctionDef: _Collector.function,
    ast.Lambda: _Collector.lambda_,
    ast.ClassDef: _Collector.class_,
    ast.ListComp: _Collector.comprehension,
    ast.SetComp: _Collector.comprehension,
    ast.DictComp: _Collector.comprehension,
    ast.GeneratorExp: _Collector.comprehension,
    ast.Global: _Collector.global_,
    ast.Nonlocal: _Collector.global_,
    ast.ExceptHandler: _Collector.handler,
    ast.MatchAs: _Collector.capture,
    ast.MatchStar: _Collector.capture,
    ast.MatchMapping: _Collector.mapping,
    ast.Load: _Collector.leaf,
    ast.Store: _Collector.leaf,
}
