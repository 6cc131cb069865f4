"""Operators that make tensors of the device from nothing, and those that reach it below the tensor subclass."""

from __future__ import annotations

from typing import Any

import torch

from codemods.rehearse.copies import SPECIAL
from codemods.rehearse.dispatch import call
from codemods.rehearse.registration import register_kernels

_WITH_TWO_WAYS = (
    torch.ops.aten.mish_backward.default,
    torch.ops.aten.native_channel_shuffle.default,
    torch.ops.aten.silu_backward.default,
)
"""Operators for which torch has a kernel for the CPU, and a formula for devices that have none."""


def register() -> None:
    """Registers the virtual device's way of operators that take a device and no tensor, and of copies.

    ``torch.tensor(data, device=...)`` copies with the tensor subclass switched off.
    """
    register_kernels({overload: _called(overload) for overload in (*_factories(), *_WITH_TWO_WAYS)}, "PrivateUse1")
    register_kernels(SPECIAL, "PrivateUse1")


def _factories() -> list[Any]:
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        packet, _, overload = name[len("aten::") :].partition(".")
        try:
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
        except AttributeError:
            continue  # an operator without a Python name
        if _makes_called(operator) and not torch._C._dispatch_has_kernel_for_dispatch_key(
            name, "CompositeImplicitAutograd"
        ):
            found.append(operator)
    return found


def _makes_called(operator: Any) -> bool:
    arguments = operator._schema.arguments
    takes_tensors = any("Tensor" in str(one.type) for one in arguments)
    return not takes_tensors and any(one.name == "device" for one in arguments)


def _called(overload: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return call(overload, args, kwargs)

    return make
