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
        if text is None or not _TYPE.match(text) or not self._is_type():
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

    def _is_type(self) -> bool:
        """Whether a text is used as a type: compared, assigned, or given to ``.type()``."""
        parent, call = self.parent(), self.parent(2)
        if isinstance(parent, cst.Arg):
            return (
                isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "type"
            )
        return not isinstance(parent, cst.Expr | cst.FormattedStringExpression | cst.Index)
