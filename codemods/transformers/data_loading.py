"""The way of data to the device: pinned memory, and moves that stand in worker processes."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.transformers.base import Codemod
from codemods.transformers.expressions import string_value

_WORKER_METHODS = {"__getitem__", "__getitems__", "collate_fn", "collate", "worker_init_fn"}


class DataLoading(Codemod):
    """Pins memory where that works, and reports moves in workers."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = original_node.func
        if not isinstance(function, cst.Attribute) or not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        if function.attr.value == "pin_memory" and not original_node.args and self._is_moved_to_cuda():
            return self.rewrite("UC621", original_node, self.call_helper("pin_memory", updated_node.func.value))
        if function.attr.value == "record_stream" and len(original_node.args) == 1:
            tensor, stream = updated_node.func.value, updated_node.args[0]
            return self.rewrite("UC510", original_node, self.call_helper("record_stream", tensor, stream.value))
        if self._moves_to_device(original_node, function.attr.value) and self._is_in_worker(original_node):
            self.report("UC623", original_node)
        return updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        keyword = original_node.keyword.value if original_node.keyword else None
        if keyword != "pin_memory_device" or string_value(original_node.value) != "cuda":
            return updated_node
        device = self.call_helper("pin_memory_device")
        return self.rewrite("UC622", original_node, updated_node.with_changes(value=device))

    def _is_moved_to_cuda(self) -> bool:
        """``x.pin_memory().cuda(...)`` or ``x.pin_memory().to("cuda", ...)``"""
        method, call = self.parent(), self.parent(2)
        if not isinstance(method, cst.Attribute) or not isinstance(call, cst.Call):
            return False
        if method.attr.value == "cuda":
            return True
        first = call.args[0].value if call.args else None
        return method.attr.value == "to" and (string_value(first) or "").startswith("cuda")

    def _moves_to_device(self, call: cst.Call, method: str) -> bool:
        """``.cuda()``, or what it becomes."""
        target = call.args[0].value if method == "to" and call.args else None
        return method == "cuda" or (target is not None and self.is_helper_call(target, "device"))

    def _is_in_worker(self, node: cst.CSTNode) -> bool:
        around = self.context.module.statements.path_to(self.offset(node))
        return any(isinstance(s, ast.FunctionDef) and s.name in _WORKER_METHODS for s in around)
