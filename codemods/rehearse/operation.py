"""What is known of an operator: which results are its arguments, whether it makes the host wait, its use so far."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from codemods.rehearse.device_kernels import kernel_of
from codemods.rehearse.errors import FallbackRefusedError, MissingOperatorError
from codemods.rehearse.machine import machine
from codemods.rehearse.recording import OperatorUse, Site
from codemods.rehearse.sites import current_site

_HOST_ARGUMENTS = (
    "aten::copy_",
    "aten::_copy_from",
    "aten::set_",
    "aten::index",
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
    "aten::_ctc_loss",
    "aten::_pack_padded_sequence",
    "aten::_pad_packed_sequence",
    "aten::_foreach_copy_",
    "aten::record_stream",
    "aten::unique_consecutive",
    "aten::_fused_adam",
    "aten::_fused_sgd",
    "aten::_fused_adagrad",
    "aten::lstm",
    "aten::gru",
    "aten::rnn_",
)
"""Beginnings of operators that take tensors of the CPU beside those of the device, as hardware does."""

_WAITS = {
    "aten::nonzero": "nonzero",
    "aten::masked_select": "masked_select",
    "aten::_unique": "unique",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique",
    "aten::equal": "equal",
    "aten::is_nonzero": "bool",
    "aten::repeat_interleave": "repeat_interleave",
    "aten::bincount": "bincount",
}
"""Operators whose result has a size or value that the host must wait for."""

_MATRIX_PRODUCTS = ("mm", "bmm", "addmm", "addmv", "mv", "baddbmm", "addbmm", "addr", "convolution", "linear", "matmul")


class Operation:
    """An operator overload and how it is run on the tensors inside."""

    def __init__(self, overload: Any) -> None:
        schema = overload._schema
        self.overload = overload
        self.kernel = kernel_of(overload)
        """What computes it on CPU tensors."""
        self.name: str = schema.name
        self.is_matrix_product = schema.name.partition("::")[2] in _MATRIX_PRODUCTS
        self.takes_host_arguments = schema.name.startswith(_HOST_ARGUMENTS)
        self.waits = _WAITS.get(schema.name)
        self.device_at = next((i for i, one in enumerate(schema.arguments) if one.name == "device"), None)
        self.generator = any(one.name == "generator" for one in schema.arguments)
        self.written = [_argument(schema, returned) for returned in schema.returns]
        """For each result the position and name of the argument that it is, or None."""
        viewed = (_argument(schema, one, views=True) for one in schema.returns if _is_view(one))
        self.viewed = next((one for one in viewed if one is not None), _split_argument(schema))
        """The argument that the results are views of."""
        self.reshapes = bool(
            torch.Tag.inplace_view in overload.tags or _has_out(schema) or schema.name.startswith("aten::resize")
        )
        """Whether it may change the shape of an argument."""
        self.use = self._use()

    def _use(self) -> OperatorUse:
        overload = self.overload
        name = self.name if overload._overloadname == "default" else f"{self.name}.{overload._overloadname}"
        use = machine().recording.operator(name)
        state = machine().operator_state(overload)
        use.state = str(getattr(state, "value", state))
        if use.state == "fallback":
            self._meet_fallback(name)
        return use

    def _meet_fallback(self, name: str) -> None:
        if not machine().strict:
            warnings.warn(f"{name} has no kernel on {machine().kind} and runs on the CPU there", stacklevel=2)

    def run(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Calls the function on the tensors inside, with its time and its place recorded."""
        use = self.use
        if use.state in ("fallback", "missing"):
            self._refuse(use)
        begin = time.perf_counter()
        try:
            result = function(*args, **kwargs)
        except RuntimeError as error:
            if "can't allocate memory" in str(error):
                raise torch.OutOfMemoryError(f"the virtual device is out of memory: {error}") from error
            raise
        use.seconds += time.perf_counter() - begin
        self.count()
        return result

    def count(self) -> Site:
        """Records a call; the place that it came from."""
        site = current_site()
        self.use.count += 1
        self.use.sites[site] = self.use.sites.get(site, 0) + 1
        return site

    def _refuse(self, use: OperatorUse) -> None:
        kind = machine().kind
        if use.state == "missing":
            site = self.count()
            raise MissingOperatorError(
                f"Could not run '{use.name}' with arguments from the '{kind}' backend: {kind} has no kernel for it and "
                f"does not run it on the CPU instead ({site})"
            )
        if machine().strict:
            site = self.count()
            raise FallbackRefusedError(f"{use.name} has no kernel on {kind} and would run on the CPU there ({site})")


_known: dict[int, Operation] = {}  # by identity: an overload is never freed, and hashing it runs Python


def operation(overload: Any) -> Operation:
    """What is known of an operator overload."""
    known = _known.get(id(overload))
    if known is None:
        known = _known[id(overload)] = Operation(overload)
    return known


def _is_view(returned: Any) -> bool:
    return returned.alias_info is not None and not returned.alias_info.is_write


def _argument(schema: Any, returned: Any, views: bool = False) -> tuple[int, str] | None:
    """The position and name of the argument that a result aliases."""
    info = returned.alias_info
    if info is None or info.is_write == views:
        return None
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.before_set & info.before_set:
            return position, argument.name
    return None


def _split_argument(schema: Any) -> tuple[int, str] | None:
    """The position and name of the argument that a list of results are views of: ``Tensor(a -> *)``."""
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and "*" in argument.alias_info.after_set:
            return position, argument.name
    return None


def _has_out(schema: Any) -> bool:
    return any(one.is_out for one in schema.arguments)
