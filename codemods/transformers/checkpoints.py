"""Checkpoints: where ``torch.load`` puts what it reads, and devices that are written into files."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.analysis.names import dotted_name as ast_dotted_name
from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import NO_SPACE, CudaDevice, argument, cuda_device, has_star, string_value

_PICKLED = "the whole module is pickled, with the device of each parameter"


class Checkpoints(Codemod):
    """Loads checkpoints on the selected device, and leaves the files as they are."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func)
        if name == "torch.load":
            return self._load(original_node, updated_node)
        if name == "torch.save":
            self._save(original_node)
        return updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """``map_location=lambda storage, loc: storage.cuda(i)``"""
        if original_node.keyword is None or original_node.keyword.value != "map_location":
            return updated_node
        device = _storage_device(original_node.value, updated_node.value)
        if device is not None:
            return self.rewrite("UC612", original_node, updated_node.with_changes(value=self.device(device.index)))
        literal = cuda_device(original_node.value)
        if literal is not None and isinstance(literal.index, cst.Integer):
            self.report("UC612", original_node, "every process loads to the same device", tier=Tier.NOTE)
        if isinstance(original_node.value, cst.Integer) or string_value(original_node.value) == "gpu":
            self.report("UC612", original_node, "torch.load refuses this value on every device", tier=Tier.MANUAL)
        return updated_node

    def leave_DictElement(self, original_node: cst.DictElement, updated_node: cst.DictElement) -> cst.DictElement:
        """``{"cuda:0": f"cuda:{rank}"}``: the keys are tags inside the saved file and stay, the values are devices."""
        if cuda_device(original_node.key) is None:
            return updated_node
        device = cuda_device(original_node.value, updated_node.value)
        if device is None:
            return updated_node
        text = cst.Call(cst.Name("str"), [cst.Arg(self.device(device.index))])
        return self.rewrite("UC612", original_node, updated_node.with_changes(key=original_node.key, value=text),
                            "the keys are tags of the saved file and stay")  # fmt: skip

    # -- torch.load ------------------------------------------------------------------------------------------------

    def _load(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        if argument(original, 1, "map_location") is not None or not original.args:
            return updated
        if has_star(original):
            self.report("UC611", original, "map_location may be among the arguments that cannot be seen")
            return updated
        place = cst.Arg(self.call_helper("map_location"), keyword=cst.Name("map_location"), equal=NO_SPACE)
        first = updated.args[0]
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        if len(updated.args) == 1:
            behind = place.with_changes(comma=first.comma, whitespace_after_arg=first.whitespace_after_arg)
            args = [first.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")), behind]
        else:
            args = [first, place.with_changes(comma=comma), *updated.args[1:]]
        return self.rewrite("UC611", original, updated.with_changes(args=args))

    # -- torch.save ------------------------------------------------------------------------------------------------

    def _save(self, call: cst.Call) -> None:
        if not call.args:
            return
        saved = call.args[0].value
        if isinstance(saved, cst.Dict):
            for element in saved.elements:
                if isinstance(element, cst.DictElement) and self._is_device(element.value):
                    self.report("UC613", element)
                elif isinstance(element, cst.DictElement) and self._is_module_parameter(element.value):
                    self.report("UC613", element, _PICKLED)
        elif self._is_module_parameter(saved):
            self.report("UC613", call, _PICKLED)

    def _is_device(self, node: cst.BaseExpression) -> bool:
        name = dotted_name(node)
        if name is None:
            asks = isinstance(node, cst.Call) and self.qualified(node.func) == "torch.device"
            return asks or self.is_helper_call(node, "device", "available_device")
        makers = {"torch.device", f"{self.context.helper}.device", f"{self.context.helper}.available_device"}
        values = self.context.module.names.values(name, self.offset(node)) or []
        return any(isinstance(value, ast.Call) and ast_dotted_name(value.func) in makers for value in values)

    def _is_module_parameter(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value in ("net", "model", "module")


def _storage_device(original: cst.BaseExpression, updated: cst.BaseExpression) -> CudaDevice | None:
    """The device that a ``lambda storage, loc: storage.cuda(...)`` moves to."""
    if not isinstance(original, cst.Lambda) or not isinstance(updated, cst.Lambda):
        return None
    body, kept = original.body, updated.body
    if not isinstance(body, cst.Call) or not isinstance(kept, cst.Call) or not isinstance(body.func, cst.Attribute):
        return None
    first = original.params.params[0].name.value if original.params.params else None
    if dotted_name(body.func) != f"{first}.cuda" or len(body.args) > 1:
        return None
    if not body.args:
        return CudaDevice(None)
    literal = cuda_device(body.args[0].value)
    return literal if literal is not None else CudaDevice(kept.args[0].value)
