"""Mixed precision: what ``torch.amp`` and autocast's state functions say of CUDA without naming it."""

from __future__ import annotations

import libcst as cst

from codemods.transformers.base import Codemod
from codemods.transformers.expressions import argument, has_star, string_value

_STATE = {
    "torch.is_autocast_enabled": "is_autocast_enabled",
    "torch.get_autocast_gpu_dtype": "get_autocast_dtype",
    "torch.set_autocast_gpu_dtype": "set_autocast_dtype",
    "torch.set_autocast_enabled": "set_autocast_enabled",
}
_WITH_DEVICE = {"torch.is_autocast_enabled": 1, "torch.set_autocast_enabled": 2}
"""How many arguments the form for any device has; fewer means CUDA."""


class MixedPrecision(Codemod):
    """Scalers and state queries that mean CUDA unless told otherwise."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func)
        if name in ("torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler"):
            return self._scaler(original_node, updated_node)
        if name in _STATE and len(original_node.args) < _WITH_DEVICE.get(name, 99):
            return self.rewrite("UC404", original_node, updated_node.with_changes(func=self.helper(_STATE[name])))
        return updated_node

    def _scaler(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """``torch.amp.GradScaler("cuda", ...)``: without its device, the arguments are those of the CUDA class."""
        device = argument(original, 0, "device")
        if device is not None and string_value(device.value) != "cuda":
            return updated
        if has_star(original):
            self.report("UC403", original, "its arguments cannot be seen")
            return updated
        args = [kept for arg, kept in zip(original.args, updated.args, strict=True) if arg is not device]
        return self.rewrite("UC403", original, updated.with_changes(func=self.helper("GradScaler"), args=args))
