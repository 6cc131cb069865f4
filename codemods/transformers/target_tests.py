"""Tests of the target: conditions that ask for CUDA, and the devices that tests run on. Off unless asked for."""

from __future__ import annotations

import re
from typing import ClassVar, TypeAlias

import libcst as cst

from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.cuda_tests import load_knowledge
from codemods.transformers.expressions import cuda_device, string_value
from codemods.transformers.regions import is_test_condition

_List: TypeAlias = cst.List | cst.Tuple | cst.Set
_AVAILABLE = "torch.cuda.is_available"
_MEANS_CUDA = re.compile(
    r"(?:\A|_)(?:requires?|needs?|skip|only)_(?:\w+_)?(?:cuda|gpus?)(?:_|\Z)|(?:cuda|gpu)_only\Z", re.IGNORECASE
)
_TORCH_TESTS = "torch.testing._internal."


class TargetTests(Codemod):
    """Lets tests that need CUDA need the selected device, together with what is inside them."""

    family: ClassVar[str] = "tests"

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """``torch.cuda.is_available()`` in the condition of a test"""
        if self.qualified(original_node.func) != _AVAILABLE or original_node.args:
            return updated_node
        tests, offset = self.context.tests, self.offset(original_node)
        decided = tests.decided_at(offset) if tests is not None else None
        if tests is None or decided is None or tests.obstacle(offset):
            return updated_node  # the rule for guards has it
        detail = "" if decided else "its tests are in other files: see that none of them is about CUDA itself"
        name = "is_usable" if self._stands_beside_a_comparison() else "is_available"
        return self.rewrite("UC821", original_node, self.call_helper(name), detail)

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.BaseExpression:
        return self._replace_list(original_node, updated_node)

    def leave_Set(self, original_node: cst.Set, updated_node: cst.Set) -> cst.BaseExpression:
        return self._replace_list(original_node, updated_node)

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.BaseExpression:
        if original_node.lpar and isinstance(self.parent(), cst.Arg | cst.Assign):
            return updated_node  # replaced with its parentheses, below
        return self._replace_list(original_node, updated_node)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        if not isinstance(original_node.value, cst.Tuple) or not self._is_list_of_devices(original_node.value):
            return updated_node
        devices = self.call_helper("devices", updated_node.value)
        return self.rewrite("UC822", original_node, updated_node.with_changes(value=devices))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.BaseSmallStatement:
        value = original_node.value
        if not isinstance(value, cst.Tuple) or not value.lpar or not self._is_list_of_devices(value):
            return updated_node
        devices = self.call_helper("devices", updated_node.value)
        return self.rewrite("UC822", original_node, updated_node.with_changes(value=devices))

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        lists, offset = self.context.device_lists, self.offset(original_node)
        device = cuda_device(original_node)
        if lists is not None and device is not None and offset in lists.single:
            return self.rewrite("UC822", original_node, cst.Call(cst.Name("str"), [cst.Arg(self.device(device.index))]))
        if "torch.cuda" in (string_value(original_node) or "") and self._is_condition():
            self.report("UC807", original_node, "its condition is a text")
        return updated_node

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        lists = self.context.device_lists
        if lists is None or self.offset(original_node) not in lists.comparisons:
            return updated_node
        device_type = self.call_helper("device_type")
        if cuda_device(original_node.left) is not None:
            return self.rewrite("UC822", original_node, updated_node.with_changes(left=device_type))
        target = updated_node.comparisons[0].with_changes(comparator=device_type)
        return self.rewrite("UC822", original_node, updated_node.with_changes(comparisons=[target]))

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> cst.Decorator:
        """``@require_torch_gpu``: what it asks for is decided where it is defined"""
        condition = original_node.decorator
        condition = condition.func if isinstance(condition, cst.Call) else condition
        name = self.qualified(condition) or ""
        last = (name or dotted_name(condition) or "").rpartition(".")[2]
        if not name or "." not in name or name.startswith("torch."):
            return updated_node
        library = name.lstrip(".").partition(".")[0]
        instead = load_knowledge().conditions.get((library, last))
        if instead is not None:
            self.report("UC823", condition, f"{library} has {instead} beside {last}")
        elif _MEANS_CUDA.search(last):
            self.report("UC823", condition, f"what {last} asks for is decided where it is defined", tier=Tier.NOTE)
        return updated_node

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        module = dotted_name(original_node.module) if original_node.module else None
        if module and (module + ".").startswith(_TORCH_TESTS) and not isinstance(original_node.names, cst.ImportStar):
            names = [dotted_name(alias.name) or "" for alias in original_node.names]
            known = [name for name in names if name in load_knowledge().torch]
            if known:
                self.report("UC824", original_node, ", ".join(known))
        return updated_node

    def _replace_list(self, original: _List, updated: _List) -> cst.BaseExpression:
        if not self._is_list_of_devices(original):
            return updated
        if isinstance(updated, cst.Tuple) and not updated.lpar:
            updated = updated.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return self.rewrite("UC822", original, self.call_helper("devices", updated))

    def _is_list_of_devices(self, node: _List) -> bool:
        lists = self.context.device_lists
        return lists is not None and bool(node.elements) and self.offset(node.elements[0].value) in lists.whole

    def _is_condition(self) -> bool:
        calls = (a for a in self.context.ancestors if isinstance(a, cst.Call))
        return any(is_test_condition(dotted_name(call.func)) for call in calls)

    def _stands_beside_a_comparison(self) -> bool:
        """``device == "cuda" and not torch.cuda.is_available()``: where the CPU is selected, nothing is missing."""
        lists = self.context.device_lists
        inside = [a for a in self.context.ancestors if isinstance(a, cst.BooleanOperation)]
        if lists is None or not inside:
            return False
        start, end = self.context.span(inside[0])
        return any(start <= offset < end for offset in lists.comparisons)
