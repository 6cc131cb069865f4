"""Legacy tensor types as text: ``"torch.cuda.FloatTensor"`` and the default tensor type."""

from __future__ import annotations

import re

import libcst as cst

from codemods.transformers.base import Codemod
from codemods.transformers.expressions import string_value

_TYPE = re.compile(r"torch\.cuda\.(?:sparse\.)?\w+Tensor\Z")


class TensorTypes(Codemod):
    """Replaces type strings, and the default tensor type with its device."""

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        text = string_value(original_node)
        if text is None or not _TYPE.match(text) or self._is_label():
            return updated_node
        if self._is_argument_of("torch.set_default_tensor_type") or self._is_argument_of_helper():
            return updated_node
        return self.rewrite("UC601", original_node, self.call_helper("tensor_type", original_node))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self.qualified(original_node.func) != "torch.set_default_tensor_type" or len(original_node.args) != 1:
            return updated_node
        value = original_node.args[0].value
        name = string_value(value) or self.qualified(value) or ""
        if not _TYPE.match(name):
            return updated_node
        text = value if string_value(value) else cst.SimpleString(f'"{name}"')
        replacement = self.call_helper("set_default_tensor_type", text)
        return self.rewrite("UC602", original_node, replacement)

    def _is_label(self) -> bool:
        return isinstance(self.parent(), cst.Expr | cst.FormattedStringExpression)

    def _is_argument_of(self, function: str) -> bool:
        call = self.parent(2)
        return isinstance(call, cst.Call) and self.qualified(call.func) == function

    def _is_argument_of_helper(self) -> bool:
        call = self.parent(2)
        return call is not None and self.is_helper_call(call, "tensor_type", "set_default_tensor_type")
