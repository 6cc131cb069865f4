"""Device strings: ``"cuda"``, ``"cuda:1"``, ``f"cuda:{i}"`` and ``torch.device(...)`` of them."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import (
    CudaDevice,
    argument,
    cuda_device,
    has_star,
    is_other_device,
    lists_other_things,
    names_other_devices,
    string_value,
)
from codemods.transformers.roles import Role, device_role


class DeviceLiterals(Codemod):
    """Replaces device strings by the selected device, each by what its place takes."""

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        device = cuda_device(original_node)
        return updated_node if device is None else self._replace("UC102", original_node, updated_node, device)

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        return self._built(original_node, updated_node)

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        return self._built(original_node, updated_node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self.qualified(original_node.func) == "torch.device":
            return self._torch_device(original_node, updated_node)
        return self._built(original_node, updated_node)

    def _built(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        """A device string put together at run time."""
        device = cuda_device(original, updated)
        return updated if device is None else self._replace("UC103", original, updated, device)

    def _replace(
        self, rule: str, original: cst.BaseExpression, updated: cst.BaseExpression, device: CudaDevice
    ) -> cst.BaseExpression:
        if self._is_fallback():
            self.report(rule, original, "the fall-back of a look-up that is device-agnostic already", tier=Tier.NOTE)
            return updated
        role = device_role(self, original)
        if role is Role.OBJECT or role is Role.TORCH_DEVICE:
            return self.rewrite(rule, original, self.device(device.index))
        if role is Role.STRING:
            return self.rewrite(rule, original, self._text(original, device))
        if role is Role.OPTION:
            return self.rewrite("UC206", original, self._text(original, device))
        if role is Role.TYPE:
            return self.rewrite(rule, original, self.call_helper("device_type"))
        lists = self.context.device_lists
        harmless = self._harmless(original) if role is Role.UNKNOWN else ""
        if harmless:
            self.report("UC109", original, harmless, tier=Tier.NOTE)
        elif role is Role.UNKNOWN and (lists is None or self.offset(original) not in lists.covered):
            self.report("UC109", original, lists.kept.get(self.offset(original), "") if lists is not None else "")
        return updated

    def _text(self, original: cst.BaseExpression, device: CudaDevice) -> cst.BaseExpression:
        """The device as a string; its type alone where an index is put behind it later."""
        if device.index is None and self._is_extended(original):
            return self.call_helper("device_type")
        return cst.Call(cst.Name("str"), [cst.Arg(self.device(device.index))])

    def _is_fallback(self) -> bool:
        """``torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else "cuda"``"""
        choice = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.IfExp)), None)
        return choice is not None and "torch.accelerator." in cst.Module([]).code_for_node(choice.body)

    def _harmless(self, original: cst.BaseExpression) -> str:
        """Why a string whose use cannot be seen is no choice of CUDA; empty if nothing tells so."""
        lists = [a for a in reversed(self.context.ancestors) if isinstance(a, cst.List | cst.Tuple | cst.Set)]
        if any(map(names_other_devices, lists)) or self._function_knows_others(original):
            return "other devices are named beside it"
        if any(map(lists_other_things, lists)):
            return "it stands among other labels"
        assignment = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.Assign)), None)
        names = [dotted_name(target.target) or "" for target in assignment.targets] if assignment else []
        return "the constant is CUDA's name" if any("cuda" in name.lower() for name in names) else ""

    def _function_knows_others(self, original: cst.BaseExpression) -> bool:
        """``return "cuda"`` in a function that returns the names of other devices elsewhere."""
        if not any(isinstance(a, cst.Return) for a in self.context.ancestors):
            return False
        around = self.context.module.statements.path_to(self.offset(original))
        function = next((s for s in reversed(around) if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)), None)
        constants = (node.value for node in ast.walk(function) if isinstance(node, ast.Constant)) if function else ()
        return any(isinstance(value, str) and is_other_device(value) for value in constants)

    def _is_extended(self, original: cst.BaseExpression) -> bool:
        """Whether the variable that takes the string is put into longer strings, or names a type for autocast."""
        parent = self.parent()
        if not isinstance(parent, cst.Assign) or not isinstance(parent.targets[0].target, cst.Name):
            return False
        name = parent.targets[0].target.value
        return any(_extends(node, name) for node in ast.walk(self.context.module.tree))

    def _torch_device(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """``torch.device`` of a device string, with or without an index."""
        kind, index = argument(original, 0, "device", "type"), argument(original, 1, "index")
        if kind is None or has_star(original) or len(original.args) > 2:
            return updated
        kept = updated.args[original.args.index(kind)].value
        if len(original.args) == 1 and self._is_current_device(kind.value) and self.is_helper_call(kept, "device"):
            return self.rewrite("UC501", original, kept)
        if cuda_device(kind.value) is None or not self.is_helper_call(kept, "device", "device_type"):
            return updated
        rule = "UC102" if string_value(kind.value) else "UC103"
        if index is None:
            return self.rewrite(rule, original, kept)
        return self.rewrite(rule, original, self.device(updated.args[original.args.index(index)].value))

    def _is_current_device(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.qualified(node.func) == "torch.cuda.current_device"


def _extends(node: ast.AST, name: str) -> bool:
    """Whether a node builds a longer string from the variable, or hands it to autocast as a type."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return isinstance(node.left, ast.Name) and node.left.id == name
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
        is_first = (
            isinstance(first, ast.FormattedValue) and isinstance(first.value, ast.Name) and first.value.id == name
        )
        rest = node.values[1] if len(node.values) > 1 else None
        return is_first and isinstance(rest, ast.Constant) and str(rest.value).startswith(":")
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "autocast":
        return any(isinstance(arg, ast.Name) and arg.id == name for arg in node.args[:1])
    return False
