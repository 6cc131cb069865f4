"""Operators that torch has for devices and not for the CPU, as formulas: those of synchronised batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def kernel_of(overload: Any) -> Callable[..., Any]:
    """What computes an operator on CPU tensors: the operator itself wherever the CPU has it."""
    found: Callable[..., Any] = _FORMULAS.get(overload, overload)
    return found


def _across(values: Tensor) -> list[int]:
    """The dimensions that a statistic of each channel goes over."""
    return [dim for dim in range(values.dim()) if dim != 1]


def _by_channel(statistic: Tensor, values: Tensor) -> Tensor:
    return statistic.view(1, -1, *[1] * (values.dim() - 2))


def _stats(values: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    wide = values.float()
    variance, mean = torch.var_mean(wide, _across(wide), correction=0)
    return mean, torch.rsqrt(variance + eps)


def _gather_stats(
    values: Tensor,
    means: Tensor,
    invstds: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    shares = (counts / counts.sum()).view(-1, 1)
    mean = (means * shares).sum(0)
    variance = ((invstds**-2 - eps + (means - mean) ** 2) * shares).sum(0)
    total = counts.sum()
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(momentum * mean)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(momentum * variance * total / (total - 1))
    return mean, torch.rsqrt(variance + eps)


def _apply(
    values: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    normal = (values.float() - _by_channel(mean, values)) * _by_channel(invstd, values)
    if weight is not None:
        normal = normal * _by_channel(weight, values)
    if bias is not None:
        normal = normal + _by_channel(bias, values)
    return normal.to(values.dtype)


def _backward_sums(
    grad: Tensor,
    values: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    grad, off = grad.float(), values.float() - _by_channel(mean, values)
    sums, weighted = grad.sum(_across(grad)), (grad * off).sum(_across(grad))
    return sums, weighted, weighted * invstd if weight_g else None, sums if bias_g else None


def _backward(
    grad: Tensor,
    values: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sums: Tensor,
    weighted: Tensor,
    counts: Tensor,
) -> Tensor:
    total, off = counts.sum(), values.float() - _by_channel(mean, values)
    centred = grad.float() - _by_channel(sums / total, grad) - off * _by_channel(invstd**2 * weighted / total, grad)
    scale = invstd if weight is None else invstd * weight
    return (centred * _by_channel(scale, grad)).to(values.dtype)


_FORMULAS: dict[Any, Callable[..., Any]] = {
    aten.batch_norm_stats.default: _stats,
    aten.batch_norm_gather_stats_with_counts.default: _gather_stats,
    aten.batch_norm_elemt.default: _apply,
    aten.batch_norm_backward_reduce.default: _backward_sums,
    aten.batch_norm_backward_elemt.default: _backward,
}
