"""Number formats that a device may lack: never changed, always said."""

from __future__ import annotations

import libcst as cst

from codemods.transformers.base import Codemod

_FLOAT64 = {"torch.float64", "torch.double"}
_COMPLEX = {
    "torch.stft", "torch.istft", "torch.view_as_complex", "torch.view_as_real", "torch.complex", "torch.polar",
    "torch.complex64", "torch.complex128",
}  # fmt: skip


class Precision(Codemod):
    """Notes float64, complex numbers, and float16 in code that is moved to a device."""

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        name = self.qualified(original_node)
        if name in _FLOAT64:
            self.report("UC603", original_node)
        elif (
            name is not None
            and (name in _COMPLEX or name.startswith("torch.fft."))
            and not self._goes_on(original_node)
        ):
            self.report("UC604", original_node)
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = original_node.func
        if isinstance(function, cst.Attribute) and not original_node.args:
            if function.attr.value == "double":
                self.report("UC603", original_node)
            elif function.attr.value == "half":
                self.report("UC405", original_node)
        return updated_node

    def _goes_on(self, node: cst.Attribute) -> bool:
        parent = self.parent()
        return isinstance(parent, cst.Attribute) and parent.value is node
