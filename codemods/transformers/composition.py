"""Runs several codemods in one traversal, and turns what they replace into minimal edits."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar, cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from codemods.findings import Tier
from codemods.source.edits import Edit
from codemods.transformers.base import Codemod, Context, Draft

Node = TypeVar("Node", bound=cst.CSTNode)

_LAYOUT = {
    cst.SimpleWhitespace,
    cst.ParenthesizedWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Comment,
    cst.Newline,
}


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
