"""Devices that come from a configuration: ``torch.device(cfg.device)``, ``x.to(config["device"])``."""

from __future__ import annotations

import ast
import re

import libcst as cst

from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import string_value, with_value
from codemods.transformers.roles import Role, argument_role

_HOLDER = re.compile(r"(?:^|_)(?:args?|opts?|options|cfg|conf|config|configs|hparams|flags|settings)$", re.IGNORECASE)


class ConfiguredDevices(Codemod):
    """Takes a CUDA device that a configuration names for the selected device, where the code uses it as a device."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not self.context.project.cuda_settings:
            return updated_node
        for position, arg in enumerate(original_node.args):
            if arg.star or not self._is_setting(arg.value):
                continue
            device = self.device(updated_node.args[position].value)
            role = argument_role(self, original_node, arg)
            if role is Role.TORCH_DEVICE:
                return self.rewrite("UC207", original_node, device)
            if role is Role.OBJECT:
                return self.rewrite("UC207", original_node, with_value(updated_node, position, device))
        return updated_node

    def _is_setting(self, node: cst.BaseExpression) -> bool:
        """Whether an expression reads a setting that can name CUDA."""
        name, holder = _setting(node)
        if name.lower() not in self.context.project.cuda_settings or holder is None or self._is_written_here(holder):
            return False
        return any(map(_HOLDER.search, (dotted_name(holder) or "").split(".")))

    def _is_written_here(self, holder: cst.CSTNode) -> bool:
        """Whether the settings are a dictionary of this module, whose devices are converted where they stand."""
        values = self.context.module.names.values(dotted_name(holder) or "", self.offset(holder))
        return bool(values) and all(isinstance(value, ast.Dict) for value in values or ())


def _setting(node: cst.BaseExpression) -> tuple[str, cst.CSTNode | None]:
    """The name of a setting and what it is taken from: ``cfg.device``, ``cfg["device"]``, ``cfg.get("device")``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value, node.value
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return string_value(node.slice[0].slice.value) or "", node.value
    function = node.func if isinstance(node, cst.Call) else None
    if (
        isinstance(node, cst.Call)
        and isinstance(function, cst.Attribute)
        and function.attr.value == "get"
        and node.args
    ):
        return string_value(node.args[0].value) or "", function.value
    return "", None
