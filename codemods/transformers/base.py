"""What all codemods share: how they see names and places, and how they replace a node.

A codemod is a libcst transformer. Its ``leave_*`` methods return the node that they were given, or

    return self.rewrite("UC101", original, replacement)

and the composition turns the difference between the two into minimal edits: parts of the original that live on in the
replacement are left alone, so that edits inside them survive and comments and layout stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar, cast

import libcst as cst
from libcst.metadata import CodeSpan

from codemods.analysis.device_layers import LayerInUse
from codemods.analysis.module import Module
from codemods.analysis.project import Project
from codemods.catalogue import Rule, load_catalogue
from codemods.findings import Finding, Tier
from codemods.source.edits import Edit
from codemods.transformers.cuda_tests import CudaTests
from codemods.transformers.device_lists import DeviceLists
from codemods.transformers.regions import BACKEND_CLASS, Region, region_at

Node = TypeVar("Node", bound=cst.CSTNode)


@dataclass
class Context:
    """Everything a codemod may ask about the file it works on."""

    module: Module
    project: Project
    helper: str
    """Local name of the helper in this file."""
    helper_module: str
    """The module as an ``import ... from`` names it, e.g. ``.ai_device``."""
    families: frozenset[str] = frozenset()
    """The families of rules that are off unless asked for, and were."""
    ancestors: list[cst.CSTNode] = field(default_factory=list)
    spans: Mapping[cst.CSTNode, CodeSpan] = field(default_factory=dict)
    base: int = 0
    """Byte offset of the text that ``spans`` refers to."""
    drafts: list[Draft] = field(default_factory=list)
    catalogue: Mapping[str, Rule] = field(default_factory=load_catalogue)

    @cached_property
    def tests(self) -> CudaTests | None:
        """The tests of the file, where they were asked for."""
        return CudaTests(self.module, self.project.top_level) if "tests" in self.families else None

    @cached_property
    def device_lists(self) -> DeviceLists | None:
        """The devices that the tests of the file run on, where they were asked for."""
        return DeviceLists(self.module, self.tests) if self.tests is not None else None

    def test_obstacle(self, offset: int) -> str:
        """Why the condition of a test stays as it is; empty where tests were not asked for."""
        return self.tests.obstacle(offset) if self.tests is not None else ""

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

    family: ClassVar[str] = ""
    """The option that switches the codemod on; empty for those that are always on."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    def places(self) -> Iterable[int]:
        """Offsets of statements that it has to see, where no word in them tells."""
        return ()

    # -- reports and replacements ---------------------------------------------------------------------------------

    def report(
        self, rule: str, node: cst.CSTNode, detail: str = "", *, tier: Tier | None = None, group: str | None = None
    ) -> None:
        """Reports a place without an edit."""
        start, end = self.context.span(node)
        if rule != BACKEND_CLASS.rule and self.region(node) is BACKEND_CLASS:
            rule, detail, tier = BACKEND_CLASS.rule, "", BACKEND_CLASS.tier
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
                self.report(region.rule, original, region.detail, tier=region.tier)
            return original
        known = self.context.catalogue[rule]
        tier = known.tier if tier is None else tier
        draft = Draft(rule, tier, _message(known, detail), start, end, group, replacement, uses_helper=uses_helper)
        self.context.drafts.append(draft)
        return cast(Node, replacement)

    def region(self, node: cst.CSTNode) -> Region | None:
        """The scripted function, kernel or test that stays around a node."""
        tests = self.context.tests
        return region_at(self.context.module, self.offset(node), tests.obstacle_of if tests else None)

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
        """``ai_device.<name>``; ``name`` may have dots. A framework's device layer comes first where it is at hand."""
        layer = self._layer()
        if layer is not None and name in layer.layer.functions:
            return cst.parse_expression(f"{layer.expression}.{name}")
        node: cst.BaseExpression = cst.Name(self.context.helper)
        for part in name.split("."):
            node = cst.Attribute(node, cst.Name(part))
        return node

    def call_helper(self, name: str, *args: cst.BaseExpression | cst.Arg | None) -> cst.BaseExpression:
        """``ai_device.<name>(...)``; an argument that is ``None`` is left out."""
        layer = self._layer()
        of_layer = {"device_type": layer.layer.type, "backend": layer.layer.backend} if layer is not None else {}
        if layer is not None and not args and of_layer.get(name):
            return cst.parse_expression(f"{layer.expression}.{of_layer[name]}")
        return cst.Call(self.helper(name), arguments(args))

    def device(self, index: cst.BaseExpression | None = None) -> cst.BaseExpression:
        """``ai_device.device(...)``, or the device of a framework's layer."""
        layer = self._layer()
        if layer is not None and index is None:
            return cst.parse_expression(f"{layer.expression}.{layer.layer.device}")
        if layer is not None and layer.layer.indexed_device:
            function = cst.parse_expression(f"{layer.expression}.{layer.layer.indexed_device}")
            return cst.Call(function, arguments([index]))
        return self.call_helper("device", index)

    def _layer(self) -> LayerInUse | None:
        """The device layer of a framework that the statement being visited can use."""
        layers = self.context.module.layers
        return layers.at(self.context.span(self.context.ancestors[-1])[0]) if layers else None

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
