"""Bare integers where a device is taken: ``.to(0)``, ``device=rank``, ``torch.device(gpu)``."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.analysis.integer_devices import INDEX_NAME, is_index, is_index_parameter
from codemods.analysis.names import dotted_name as ast_dotted_name
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import with_value
from codemods.transformers.roles import Role, argument_role


class IntegerDevices(Codemod):
    """Makes a device of an integer: it means CUDA on torch before 2.5, and on some backends later."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func) or ""
        if name.startswith("torch.cuda.") or _is_cuda_method(original_node):
            return updated_node  # they take an index
        for position, arg in enumerate(original_node.args):
            if arg.star or not self._is_index(arg.value):
                continue
            value = self.device(updated_node.args[position].value)
            role = argument_role(self, original_node, arg)
            if role is Role.TORCH_DEVICE:
                return self.rewrite("UC104", original_node, value)
            if role is Role.OBJECT and (arg.keyword is None or arg.keyword.value == "device"):
                return self.rewrite("UC104", original_node, with_value(updated_node, position, value))
        return updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """``device = rank % torch.cuda.device_count()``, used for nothing but devices, becomes one where it is made."""
        names = [target.target.value for target in original_node.targets if isinstance(target.target, cst.Name)]
        if not set(names) & self.context.module.device_variables or len(names) != len(original_node.targets):
            return updated_node
        if self.is_helper_call(updated_node.value, "device"):
            return updated_node
        return self.rewrite("UC104", original_node, updated_node.with_changes(value=self.device(updated_node.value)))

    # -- what is known to be an index ------------------------------------------------------------------------------

    def _is_index(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Integer):
            return True
        name = (dotted_name(node) or "").split(".")[-1]
        if INDEX_NAME.search(name):
            return not self._holds_device(node)
        return isinstance(node, cst.Name) and self._holds_index(node)

    def _holds_device(self, node: cst.BaseExpression) -> bool:
        """Whether a variable is assigned a device, whatever it is called: ``gpu = torch.device("cuda")``."""
        names = self.context.module.names
        values = names.values(node.value, self.offset(node)) if isinstance(node, cst.Name) else None
        makers = {"torch.device", f"{self.context.helper}.device", f"{self.context.helper}.available_device"}
        calls = (value.func for value in values or () if isinstance(value, ast.Call))
        return any(
            (names.qualified(ast_dotted_name(f) or "", self.offset(node)) or ast_dotted_name(f)) in makers
            for f in calls
        )

    def _holds_index(self, node: cst.Name) -> bool:
        """Whether a variable holds an index wherever it is assigned, or a parameter is given one."""
        if node.value in self.context.module.device_variables:
            return False  # it is a device already, from where it is assigned
        bindings = self.context.module.names.bindings(node.value, self.offset(node))
        if len(bindings) == 1 and isinstance(bindings[0].node, ast.arg):
            return self._is_given_index(node)
        values = [b.value for b in bindings if b.kind == "assign" and b.value is not None]
        return bool(values) and len(values) == len(bindings) and all(map(is_index, values))

    def _is_given_index(self, node: cst.Name) -> bool:
        """Whether a call anywhere in the repository gives the parameter an index."""
        around = self.context.module.statements.path_to(self.offset(node))
        function = next((s for s in reversed(around) if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)), None)
        given = self.context.project.index_arguments
        return function is not None and is_index_parameter(function, node.value, given)


def _is_cuda_method(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "cuda"
