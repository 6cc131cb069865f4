"""Distributed training: collective backends, device indices of wrappers, data parallelism."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import libcst as cst

from codemods.analysis.names import dotted_name as ast_dotted_name
from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.branches import choice_is_portable
from codemods.transformers.expressions import compares_with_itself, names_other_devices, string_value
from codemods.transformers.roles import Role, backend_role

_PAIRS = re.compile(r"(?:cpu:gloo,)?cuda:nccl(?:,cpu:gloo)?\Z")
_CHOOSES = re.compile(r"(?:get_)?(?:current_)?(?:torch_)?device(?:_id|_index)?")
_NCCL_AVAILABLE = "torch.distributed.is_nccl_available"
_DATA_PARALLEL = {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"}
_COLLECTIVES = {
    f"torch.distributed.{name}"
    for name in (
        "all_reduce",
        "all_gather",
        "all_gather_into_tensor",
        "reduce_scatter",
        "all_to_all",
        "broadcast",
        "reduce",
    )
}


class Backends(Codemod):
    """Replaces ``nccl`` by the backend of the selected device."""

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        text = string_value(original_node)
        if text == "nccl":
            return self._replace(original_node, updated_node, self.call_helper("backend"))
        if text and _PAIRS.match(text):
            return self._replace(original_node, updated_node, self.call_helper("backend", original_node))
        return updated_node

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        """``if backend == "nccl"``: follows the backend only where the branch is portable."""
        sides = [original_node.left, *(target.comparator for target in original_node.comparisons)]
        if not any(string_value(side) == "nccl" for side in sides):
            return updated_node
        single = original_node.comparisons[0]
        test = self.parent()
        if isinstance(test, cst.If) and isinstance(single.operator, cst.Equal) and string_value(single.comparator):
            around = self.context.module.statements.path_to(self.offset(original_node))
            statement = next((s for s in reversed(around) if isinstance(s, ast.If)), None)
            module = self.context.module
            if statement and choice_is_portable(statement, module.statements.following(statement), module):
                target = updated_node.comparisons[0].with_changes(comparator=self.call_helper("backend"))
                changed = updated_node.with_changes(comparisons=[target])
                if not compares_with_itself(changed):
                    return self.rewrite("UC302", original_node, changed)
        self.report("UC302", original_node)
        return updated_node

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        """``"nccl" if dist.is_nccl_available() else "gloo"``"""
        test = original_node.test
        asks = isinstance(test, cst.Call) and self.qualified(test.func) == _NCCL_AVAILABLE
        if asks and string_value(original_node.body) == "nccl" and string_value(original_node.orelse) == "gloo":
            return self.rewrite("UC307", original_node, self.call_helper("available_backend"), tier=Tier.SAFE)
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self.qualified(original_node.func) == _NCCL_AVAILABLE:
            self.report("UC307", original_node)
        return updated_node

    def _replace(
        self, original: cst.SimpleString, updated: cst.SimpleString, backend: cst.BaseExpression
    ) -> cst.BaseExpression:
        role = backend_role(self, original)
        if role is Role.STRING:
            return self.rewrite("UC301", original, backend)
        if role is Role.OPTION:
            return self.rewrite("UC301", original, backend, tier=Tier.REVIEW)
        tables = (a for a in self.context.ancestors if isinstance(a, cst.Dict))
        if role is Role.UNKNOWN and any(map(names_other_devices, tables)):
            self.report("UC301", original, "other devices have theirs beside it", tier=Tier.NOTE)
        elif role is Role.UNKNOWN:
            self.report("UC301", original, "its use cannot be seen", tier=Tier.MANUAL)
        return updated


class DeviceIndices(Codemod):
    """Arguments that take device indices: none of them exists on the CPU or on a single-device backend."""

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        keyword = original_node.keyword.value if original_node.keyword else None
        value = original_node.value
        if keyword in _CHANGES and not self._is_none(value) and not self._is_chosen(value):
            change = _CHANGES[keyword](self, original_node, updated_node)
            return updated_node if change is None else self.rewrite("UC303", original_node, change)
        return updated_node

    def _is_none(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == "None"

    def _device_ids(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        if not isinstance(original.value, cst.List) or not isinstance(updated.value, cst.List):
            if self._is_data_parallel():
                return None  # data parallelism is reported as such
            self.report("UC303", original, "the list is built elsewhere", tier=Tier.MANUAL)
            return None
        indices = [element.value for element in updated.value.elements]
        return updated.with_changes(value=self.call_helper("device_ids", *indices))

    def _output_device(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        return updated.with_changes(value=self.call_helper("output_device", updated.value))

    def _device_id(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        call = self.parent()
        name = (dotted_name(call.func) or "").split(".")[-1] if isinstance(call, cst.Call) else ""
        if name not in ("init_process_group", "FSDP", "FullyShardedDataParallel", "partial", "fully_shard", "dict"):
            return None
        value = updated.value
        if isinstance(value, cst.Call) and self.is_helper_call(value, "device") and len(value.args) == 1:
            value = value.args[0].value
        return updated.with_changes(value=self.call_helper("device_id", value))

    def _is_data_parallel(self) -> bool:
        call = self.parent()
        if not isinstance(call, cst.Call):
            return False
        return self.qualified(call.func) in _DATA_PARALLEL or self.is_helper_call(call, "DataParallel")

    def _is_chosen(self, node: cst.BaseExpression) -> bool:
        """Whether the helper gives the value, or a function of the repository that chooses devices."""
        name = (dotted_name(node.func) or "") if isinstance(node, cst.Call) else ""
        own = _CHOOSES.fullmatch(name.rpartition(".")[2]) is not None
        return name.startswith(self.context.helper + ".") or (own and not name.startswith("torch."))


_CHANGES: dict[str, Callable[[DeviceIndices, cst.Arg, cst.Arg], cst.Arg | None]] = {
    "device_ids": DeviceIndices._device_ids,
    "output_device": DeviceIndices._output_device,
    "device_id": DeviceIndices._device_id,
}


class Parallelism(Codemod):
    """Several devices: driven by one process, selected by rank, or joined by collectives."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func) or ""
        if name in _DATA_PARALLEL:
            replacement = updated_node.with_changes(func=self.helper("DataParallel"))
            return self.rewrite("UC304", original_node, replacement)
        if name == "torch.nn.parallel.data_parallel":
            self.report("UC304", original_node, tier=Tier.MANUAL)
        elif name.endswith("SyncBatchNorm.convert_sync_batchnorm"):
            self.report("UC305", original_node)
        elif self._sets_device(original_node, name) and self._is_global_rank(original_node.args[0].value):
            self.report("UC306", original_node.args[0])
        elif name in _COLLECTIVES and all(draft.rule != "UC308" for draft in self.context.drafts):
            self.report("UC308", original_node.func)  # once a file: the others behave the same
        return updated_node

    def _sets_device(self, call: cst.Call, name: str) -> bool:
        """Whether a call selects a device by its index, converted or not."""
        return bool(call.args) and (name == "torch.cuda.set_device" or self.is_helper_call(call, "set_device"))

    def _is_global_rank(self, node: cst.BaseExpression) -> bool:
        """Whether an index comes from the rank among all hosts."""
        if not isinstance(node, cst.Name):
            return False
        values = self.context.module.names.values(node.value, self.offset(node)) or []
        return any(_is_global_rank(value) for value in values)


def _is_global_rank(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and value.args and ast_dotted_name(value.func) == "int":
        return _is_global_rank(value.args[0])
    if isinstance(value, ast.Call):
        return (ast_dotted_name(value.func) or "").endswith("get_rank") or _reads_rank(value.args)
    return isinstance(value, ast.Subscript) and _reads_rank([value.slice])


def _reads_rank(args: list[ast.expr]) -> bool:
    return bool(args) and isinstance(args[0], ast.Constant) and args[0].value == "RANK"
