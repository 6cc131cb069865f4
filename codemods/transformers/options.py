"""Command-line options: the values that an option for a device or a collective backend accepts."""

from __future__ import annotations

import re

import libcst as cst

from codemods.findings import Tier
from codemods.transformers.base import Codemod
from codemods.transformers.expressions import argument, cuda_device, string_value
from codemods.transformers.roles import BACKEND_NAME, DEVICE_NAME, names_option


class Options(Codemod):
    """Adds the selected device, or its backend, to the values that an option accepts."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        choices = self._choices(original_node)
        if choices is None:
            return updated_node
        rule, helper = _kind(choices.value)
        if not rule or not self._is_for(original_node, BACKEND_NAME if rule == "UC301" else DEVICE_NAME):
            return updated_node
        position = original_node.args.index(choices)
        kept = updated_node.args[position]
        wrapped = kept.with_changes(value=self.call_helper(helper, kept.value))
        args = [*updated_node.args[:position], wrapped, *updated_node.args[position + 1 :]]
        return self.rewrite(rule, original_node, updated_node.with_changes(args=args), tier=Tier.SAFE)

    def _choices(self, call: cst.Call) -> cst.Arg | None:
        """The argument that lists an option's values."""
        function = call.func
        if isinstance(function, cst.Attribute) and function.attr.value == "add_argument":
            return argument(call, None, "choices")
        return argument(call, 0, "choices") if self.qualified(function) == "click.Choice" else None

    def _is_for(self, call: cst.Call, names: re.Pattern[str]) -> bool:
        """Whether the option is called accordingly; a ``click.Choice`` does not know its option."""
        return names_option(call, names) or not isinstance(call.func, cst.Attribute) or call.func.attr.value == "Choice"


def _kind(values: cst.BaseExpression) -> tuple[str, str]:
    """The rule and the helper's function for a list of values; empty if it names nothing of CUDA."""
    if not isinstance(values, cst.List | cst.Tuple):
        return "", ""
    if any(cuda_device(element.value) for element in values.elements):
        return "UC206", "device_choices"
    if any(string_value(element.value) == "nccl" for element in values.elements):
        return "UC301", "backend_choices"
    return "", ""
