"""What all codemods share: how they see names and places, how they replace a node, how they run in one traversal.

A codemod is a libcst transformer. Its ``leave_*`` methods return the node that they were given, or

    return self.rewrite("UC101", original, replacement)

and the composition turns the difference between the two into minimal edits: parts of the original that live on in the
replacement are left alone, so that edits inside them survive and comments and layout stay where they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar, cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from codemods.analysis.module import Module
from codemods.analysis.project import Project
from codemods.catalogue import Rule, load_catalogue
from codemods.findings import Finding, Tier
from codemods.source.edits import Edit
from codemods.transformers.regions import Region, region_at

Node = TypeVar("Node", bound=cst.CSTNode)

_LAYOUT = {
    cst.SimpleWhitespace,
    cst.ParenthesizedWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Comment,
    cst.Newline,
}


@dataclass
class Context:
    """Everything a codemod may ask about the file it works on."""

    module: Module
    project: Project
    helper: str
    """Local name of the helper in this file."""
    helper_module: str
    """The module as an ``import ... from`` names it, e.g. ``.ai_device``."""
    ancestors: list[cst.CSTNode] = field(default_factory=list)
    spans: Mapping[cst.CSTNode, CodeSpan] = field(default_factory=dict)
    base: int = 0
    """Byte offset of the text that ``spans`` refers to."""
    drafts: list[Draft] = field(default_factory=list)
    catalogue: Mapping[str, Rule] = field(default_factory=load_catalogue)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Byte offsets of a node of the tree that is being visited."""
        span = self.spans[node]
        start = self.base + span.start
        return start, start + span.length


@dataclass(eq=False)
class Draft:
    """A finding in the making."""

    rule: str
    tier: Tier
    message: str
    start: int
    end: int
    group: str | None
    replacement: cst.CSTNode | None = None
    edits: list[Edit] = field(default_factory=list)
    uses_helper: bool = True

    def finding(self, module: Module, helper: str) -> Finding:
        """The finished finding; ``helper`` is the helper's local name."""
        line, column = module.position(self.start)
        return Finding(
            rule=self.rule,
            tier=self.tier,
            message=self.message,
            start=self.start,
            end=self.end,
            line=line,
            column=column,
            edits=tuple(sorted(self.edits)),
            group=self.group,
            uses_helper=self.uses_helper and any(helper in edit.replacement for edit in self.edits),
        )


class Codemod(cst.CSTTransformer):
    """Base of all codemods: one family of idioms each."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    # -- reports and replacements ---------------------------------------------------------------------------------

    def report(
        self, rule: str, node: cst.CSTNode, detail: str = "", *, tier: Tier | None = None, group: str | None = None
    ) -> None:
        """Reports a place without an edit."""
        start, end = self.context.span(node)
        known = self.context.catalogue[rule]
        tier = known.tier if tier is None else tier
        if tier in (Tier.SAFE, Tier.REVIEW):
            tier = Tier.MANUAL
        self.context.drafts.append(Draft(rule, tier, _message(known, detail), start, end, group))

    def rewrite(
        self,
        rule: str,
        original: Node,
        replacement: cst.BaseExpression | Node,
        detail: str = "",
        *,
        tier: Tier | None = None,
        group: str | None = None,
        uses_helper: bool = True,
    ) -> Node:
        """Replaces a node, unless it stands where nothing may be replaced; then the place is reported."""
        start, end = self.context.span(original)
        region = self.region(original)
        if region is not None:
            if not any(draft.start == start and draft.rule == region.rule for draft in self.context.drafts):
                self.report(region.rule, original, tier=region.tier)
            return original
        known = self.context.catalogue[rule]
        tier = known.tier if tier is None else tier
        draft = Draft(rule, tier, _message(known, detail), start, end, group, replacement, uses_helper=uses_helper)
        self.context.drafts.append(draft)
        return cast(Node, replacement)

    def region(self, node: cst.CSTNode) -> Region | None:
        """The scripted function, kernel or CUDA-only test around a node."""
        return region_at(self.context.module, self.offset(node))

    # -- where a node stands and what it means --------------------------------------------------------------------

    def parent(self, level: int = 1) -> cst.CSTNode | None:
        """The ``level``-th node around the one that is being left."""
        return self.context.ancestors[-level] if len(self.context.ancestors) >= level else None

    def offset(self, node: cst.CSTNode) -> int:
        """Byte offset of an original node."""
        return self.context.span(node)[0]

    def qualified(self, node: cst.CSTNode) -> str | None:
        """Full name of a name or attribute chain of the original tree, ``None`` if it is not known for sure."""
        dotted = dotted_name(node)
        return self.context.module.names.qualified(dotted, self.offset(node)) if dotted else None

    # -- new nodes ------------------------------------------------------------------------------------------------

    def helper(self, name: str) -> cst.BaseExpression:
        """``ai_device.<name>``; ``name`` may have dots."""
        node: cst.BaseExpression = cst.Name(self.context.helper)
        for part in name.split("."):
            node = cst.Attribute(node, cst.Name(part))
        return node

    def call_helper(self, name: str, *args: cst.BaseExpression | cst.Arg | None) -> cst.Call:
        """``ai_device.<name>(...)``; an argument that is ``None`` is left out."""
        return cst.Call(self.helper(name), arguments(args))

    def device(self, index: cst.BaseExpression | None = None) -> cst.Call:
        """``ai_device.device(...)``."""
        return self.call_helper("device", index)

    def is_helper_call(self, node: cst.CSTNode, *names: str) -> bool:
        """Whether a new node is ``ai_device.<name>(...)`` for one of the names."""
        calls = {f"{self.context.helper}.{name}" for name in names}
        return isinstance(node, cst.Call) and dotted_name(node.func) in calls


def arguments(args: Iterable[cst.BaseExpression | cst.Arg | None]) -> list[cst.Arg]:
    """Call arguments with ``, `` between them."""
    present = [arg if isinstance(arg, cst.Arg) else cst.Arg(arg) for arg in args if arg is not None]
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [
        arg.with_changes(comma=comma if i < len(present) - 1 else cst.MaybeSentinel.DEFAULT)
        for i, arg in enumerate(present)
    ]


def dotted_name(node: cst.CSTNode | None) -> str | None:
    """``a.b.c`` for a chain of attributes on a name, else ``None``."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def _message(rule: Rule, detail: str) -> str:
    return f"{rule.message}: {detail}" if detail else rule.message


@cache
def _has_exact_span(kind: type[cst.CSTNode]) -> bool:
    """Whether the span of such a node holds all of its text; that of a parameter list, say, does not."""
    return issubclass(kind, cst.BaseExpression | cst.BaseSmallStatement | cst.Arg)


class Composition(cst.CSTTransformer):
    """Runs several codemods in one traversal and records their edits."""

    def __init__(self, context: Context, codemods: Sequence[Codemod]) -> None:
        super().__init__()
        self.context = context
        self._codemods = codemods
        self._handlers: dict[type[cst.CSTNode], list[Callable[[cst.CSTNode, cst.CSTNode], cst.CSTNode]]] = {}
        self._origins: dict[int, tuple[cst.CSTNode, cst.CSTNode]] = {}
        self._places: Sequence[int] | None = None
        self._first = 0

    def run(self, tree: cst.Module, base: int, places: Sequence[int] | None = None) -> None:
        """Visits a tree.

        Args:
            base: byte offset in the file where the text of the tree starts
            places: ascending offsets in the file that have to be seen; ``None`` for everything
        """
        self.context.spans = spans_of(tree)
        self.context.base = base
        self.context.ancestors.clear()
        self._origins.clear()
        self._places = places
        self._first = len(self.context.drafts)
        tree.visit(self)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Keeps track of where the traversal is; what holds no place to see is not entered.

        The names inside imports are no uses of names: imports are left to the codemods as they stand.
        """
        self.context.ancestors.append(node)
        return not isinstance(node, cst.Import | cst.ImportFrom) and self._holds_place(node)

    def on_leave(self, original: Node, updated: Node) -> Node:
        """Hands a node to each codemod that looks at its type; the first that changes it has it."""
        self.context.ancestors.pop()
        result: cst.CSTNode = updated
        handlers = self._handlers_for(type(original))
        if handlers and self._holds_place(original):
            for handler in handlers:
                changed = handler(original, updated)
                if changed is not updated and changed is not original:
                    result = self._taken(original, updated, changed)
                    break
        self._origins[id(result)] = (result, original)
        return cast(Node, result)

    def _holds_place(self, node: cst.CSTNode) -> bool:
        kind = type(node)
        if kind in _LAYOUT:
            return False
        if self._places is None or not _has_exact_span(kind):
            return True
        span = self.context.spans[node]
        start = self.context.base + span.start
        index = bisect_left(self._places, start)
        return index < len(self._places) and self._places[index] < start + span.length

    def _handlers_for(self, kind: type[cst.CSTNode]) -> list[Callable[[cst.CSTNode, cst.CSTNode], cst.CSTNode]]:
        if kind not in self._handlers:
            own = f"leave_{kind.__name__}"
            self._handlers[kind] = [getattr(c, own) for c in self._codemods if own in type(c).__dict__]
        return self._handlers[kind]

    def _taken(self, original: cst.CSTNode, updated: cst.CSTNode, changed: cst.CSTNode) -> cst.CSTNode:
        """The replacement, with its edits recorded; the node as it was if a comment would be lost."""
        if _comments(original) - _comments(changed):
            self._give_up(changed)
            return updated
        self._record(original, changed)
        return changed

    def _give_up(self, result: cst.CSTNode) -> None:
        """Reports a place instead of replacing it, because a comment inside would be lost."""
        draft = self._draft_of(result)
        draft.replacement, draft.tier = None, Tier.MANUAL
        draft.message += ": a comment inside would be lost, convert it by hand"

    def _draft_of(self, result: cst.CSTNode) -> Draft:
        return next(draft for draft in reversed(self.context.drafts) if draft.replacement is result)

    def _record(self, original: cst.CSTNode, result: cst.CSTNode) -> None:
        draft = self._draft_of(result)
        kept = list(self._kept_in_order(original, result))
        gaps = self._gaps(original, result, kept)
        draft.edits = [edit for gap in gaps if (edit := self._trimmed(gap)) is not None]
        self._absorb(draft, [self.context.span(before) for before, _ in kept])

    def _absorb(self, draft: Draft, kept: Sequence[tuple[int, int]]) -> None:
        """Drops what was found in parts of the original that the replacement does not keep."""

        def is_gone(other: Draft) -> bool:
            inside = draft.start <= other.start and other.end <= draft.end
            same_place = (other.start, other.end) == (draft.start, draft.end)
            if other is draft or not inside or (same_place and not other.edits):
                return False
            return not any(start <= other.start and other.end <= end for start, end in kept)

        recent = self.context.drafts[self._first :]
        self.context.drafts[self._first :] = [other for other in recent if not is_gone(other)]

    def _gaps(
        self, original: cst.CSTNode, result: cst.CSTNode, kept: Sequence[tuple[cst.CSTNode, cst.CSTNode]]
    ) -> Iterator[Edit]:
        """The stretches of the original between the nodes that ``result`` keeps, with their new text."""
        code, places = _render(result, self.context.ancestors)
        old, end = self.context.span(original)
        new = 0
        for before, after in kept:
            kept_start, kept_end = self.context.span(before)
            new_start, new_end = places[after]
            yield Edit(old, kept_start, code[new:new_start].decode())
            old, new = kept_end, new_end
        yield Edit(old, end, code[new:].decode())

    def _kept_in_order(self, original: cst.CSTNode, result: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        """The nodes that live on; one that moved before an earlier one is printed anew with the rest."""
        reached = self.context.span(original)[0]
        for before, after in self._kept(result):
            start, end = self.context.span(before)
            if start >= reached:
                yield before, after
                reached = end

    def _kept(self, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        """The outermost nodes below ``node`` that come from the original, in pairs with what they were."""
        for child in node.children:
            before = self._origin(child)
            if before is not None and isinstance(child, cst.BaseExpression):
                yield before, child
            else:
                yield from self._kept(child)

    def _origin(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """What a node was before the traversal: itself where the traversal did not enter."""
        if node in self.context.spans:
            return node
        known = self._origins.get(id(node))
        return known[1] if known is not None and known[0] is node else None

    def _trimmed(self, gap: Edit) -> Edit | None:
        """The edit cut down to what differs, or ``None`` if nothing does."""
        before = self.context.module.utf8[gap.start : gap.end].decode()
        after = gap.replacement
        if before == after:
            return None
        head = _common_start(before, after)
        tail = _common_start(before[head:][::-1], after[head:][::-1])
        start = gap.start + len(before[:head].encode())
        end = gap.end - len(before[len(before) - tail :].encode())
        return Edit(start, end, after[head : len(after) - tail])


def _comments(node: cst.CSTNode) -> Counter[str]:
    """The comments below a node."""
    found: Counter[str] = Counter()
    pending: list[cst.CSTNode] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.Comment):
            found[current.value] += 1
        pending.extend(current.children)
    return found


def _common_start(one: str, other: str) -> int:
    """How many characters two texts share at the start, without cutting a word in two."""
    differing = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    length = next(differing, min(len(one), len(other)))
    while length and _is_word(one, length - 1) and (_is_word(one, length) or _is_word(other, length)):
        length -= 1
    return length


def _is_word(text: str, index: int) -> bool:
    return index < len(text) and (text[index].isalnum() or text[index] == "_")


def spans_of(tree: cst.Module) -> Mapping[cst.CSTNode, CodeSpan]:
    """The byte spans of all nodes of a tree.

    ``MetadataWrapper.resolve`` would give the same, after one more traversal of the whole tree for nothing: it took a
    fifth of all time.
    """
    return cast(
        Mapping[cst.CSTNode, CodeSpan], ByteSpanPositionProvider()._gen(MetadataWrapper(tree, unsafe_skip_copy=True))
    )


def _render(node: cst.CSTNode, around: Sequence[cst.CSTNode]) -> tuple[bytes, dict[cst.CSTNode, tuple[int, int]]]:
    """The code of a node as it prints within the nodes around it, and the byte offsets of the nodes in it."""
    module = cst.ensure_type(around[0], cst.Module)
    blocks = [a for a in around if isinstance(a, cst.IndentedBlock | cst.Match)]
    indent = "".join(module.default_indent if block.indent is None else block.indent for block in blocks)
    line: cst.BaseStatement | cst.SimpleStatementLine = cst.SimpleStatementLine([_statement_with(node)])
    if indent:
        line = cst.If(cst.Name("x"), cst.IndentedBlock([line], indent=indent))
    holder = module.with_changes(body=[line], header=[], footer=[])
    spans = spans_of(holder)
    start, length = spans[node].start, spans[node].length
    places = {child: (span.start - start, span.start - start + span.length) for child, span in spans.items()}
    return holder.code.encode()[start : start + length], places


def _statement_with(node: cst.CSTNode) -> cst.BaseSmallStatement:
    """A statement that holds a node, to print it."""
    if isinstance(node, cst.BaseSmallStatement):
        return node
    if isinstance(node, cst.Arg):
        return cst.Expr(cst.Call(cst.Name("f"), [node]))
    if isinstance(node, cst.DictElement):
        return cst.Expr(cst.Dict([node]))
    assert isinstance(node, cst.BaseExpression)
    return cst.Expr(node)
