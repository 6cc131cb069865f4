"""Operators that torch takes apart in another way on a device than on the CPU, run here in the CPU's way.

A recurrent layer or attention decomposes above the level at which the virtual device sees it, by the device of its
tensors. So that the numbers are those of the CPU, such an operator is run whole on the CPU tensors inside, with a
gradient graph of its own between those; for autograd outside it is one function. It has no second derivative.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from codemods.rehearse.dispatch import Unwrapping
from codemods.rehearse.operation import operation
from codemods.rehearse.registration import register_kernels
from codemods.rehearse.tensor import DeviceTensor, wrap

aten = torch.ops.aten

_WHOLE = (
    "scaled_dot_product_attention",
    "lstm.input",
    "lstm.data",
    "gru.input",
    "gru.data",
    "rnn_tanh.input",
    "rnn_tanh.data",
    "rnn_relu.input",
    "rnn_relu.data",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
)


def register() -> None:
    """Registers the whole way of these operators."""
    kernels = {}
    for name in _WHOLE:
        packet, _, overload = name.partition(".")
        operator = getattr(getattr(aten, packet), overload or "default")
        kernels[operator] = _whole(operator)
    register_kernels(kernels, "AutogradPrivateUse1")


def _whole(overload: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        flat, spec = pytree.tree_flatten((args, kwargs))
        results = _on_host(overload, spec, *flat)
        return tuple(results) if len(overload._schema.returns) > 1 else results

    return run


class _OnHost(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, overload: Any, spec: Any, *flat: Any) -> Any:
        device = next(one.device for one in flat if isinstance(one, DeviceTensor))
        _check(overload, flat, device)
        inner = [_leaf(one) for one in flat]
        args, kwargs = pytree.tree_unflatten(inner, spec)
        with torch.enable_grad():
            results = operation(overload).run(overload, args, kwargs)
        ctx.results = [results] if isinstance(results, torch.Tensor) else list(results)
        ctx.inner, ctx.device, ctx.name = inner, device, overload
        outer = tuple(wrap(one.detach(), device) for one in ctx.results)
        return outer[0] if isinstance(results, torch.Tensor) else outer

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        asked = [i for i, one in enumerate(ctx.inner) if isinstance(one, torch.Tensor) and one.requires_grad]
        pairs = [
            (result, grad.host)
            for result, grad in zip(ctx.results, grads, strict=True)
            if grad is not None and result.requires_grad
        ]

        def back() -> Any:
            return torch.autograd.grad(
                [result for result, _ in pairs],
                [ctx.inner[i] for i in asked],
                [grad for _, grad in pairs],
                retain_graph=True,
                allow_unused=True,
            )

        found = operation(ctx.name).run(back, (), {})
        given: list[Any] = [None] * len(ctx.inner)
        for position, grad in zip(asked, found, strict=True):
            given[position] = None if grad is None else wrap(grad, ctx.device)
        return (None, None, *given)


_on_host: Any = _OnHost.apply


def _leaf(value: Any) -> Any:
    if not isinstance(value, DeviceTensor):
        return value
    return value.host.detach().requires_grad_(value.requires_grad and value.host.is_floating_point())


def _check(overload: Any, flat: Any, device: torch.device) -> None:
    unwrapping = Unwrapping(operation(overload))
    for one in flat:
        unwrapping.of(one)
    unwrapping.check()
