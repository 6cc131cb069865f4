"""Mixed precision on the virtual device: torch.autocast casts as it does on accelerators.

The lists say which operators run in the lower precision, which in float32, and which in the widest precision of their
arguments. They are those that torch has for CUDA, which adapters take over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from codemods.rehearse.machine import machine
from codemods.rehearse.registration import let_through, register_kernels
from codemods.rehearse.tensor import DeviceTensor

_LOWER = """
    _convolution _convolution.deprecated conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
    conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm
    bmm chain_matmul linalg_multi_dot lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell lstm.input gru.input rnn_tanh.input
    rnn_relu.input lstm.data gru.data rnn_tanh.data rnn_relu.data scaled_dot_product_attention
"""
_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
    pow.Scalar softplus layer_norm native_layer_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim
    cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
    smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
    multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
    upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d
    norm.Scalar norm.ScalarOpt_dim norm.names_ScalarOpt_dim
"""
_FLOAT32_UNLESS_TOLD = """
    prod prod.dim_int prod.dim_Dimname softmax.int softmax.Dimname log_softmax.int log_softmax.Dimname cumprod cumsum
    linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList sum.dim_DimnameList
"""
_WIDEST = """
    addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put tensordot scatter_add cat stack vdot
"""
_REFUSED = "binary_cross_entropy"

_cast_weights: dict[int, tuple[Any, Any]] = {}  # by the weight's id: the weight, kept alive, and its cast

_KEY: Any = getattr(torch._C.DispatchKey, "AutocastPrivateUse1")  # noqa: B009 - torch's types lack it

Kernel = Callable[..., Any]


def register() -> None:
    """Registers the casts."""
    let_through("AutocastPrivateUse1")
    ways = ((_LOWER, _in_lower), (_FLOAT32, _in_float32), (_FLOAT32_UNLESS_TOLD, _unless_told), (_WIDEST, _in_widest))
    overloads = [(_overload(name), way) for names, way in ways for name in names.split()]
    kernels = {overload: way(overload) for overload, way in overloads if overload is not None}
    kernels[torch.ops.aten.binary_cross_entropy.default] = _refuse
    register_kernels(kernels, "AutocastPrivateUse1")
    _forget_weights_with_torch()


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)


def _without_autocast(overload: Any, args: Any, kwargs: Any) -> Any:
    keys = torch._C.DispatchKeySet(_KEY)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        return overload(*args, **kwargs)


def _in_lower(overload: Any) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.get_autocast_dtype(machine().kind)
        return _without_autocast(overload, *_cast((args, kwargs), dtype))

    return kernel


def _in_float32(overload: Any) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        return _without_autocast(overload, *_cast((args, kwargs), torch.float32))

    return kernel


def _unless_told(overload: Any) -> Kernel:
    position = next(i for i, one in enumerate(overload._schema.arguments) if one.name == "dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        told = kwargs.get("dtype") if len(args) <= position else args[position]
        if told is None and isinstance(args[0], torch.Tensor) and _is_eligible(args[0]):
            args, kwargs = args[:position], {**kwargs, "dtype": torch.float32}
        return _without_autocast(overload, args, kwargs)

    return kernel


def _in_widest(overload: Any) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        found: list[torch.dtype] = []
        _collect(args, found)
        dtype = torch.get_autocast_dtype(machine().kind)
        for one in found:
            dtype = torch.promote_types(dtype, one)
        return (
            _without_autocast(overload, *_cast((args, kwargs), dtype))
            if found
            else _without_autocast(overload, args, kwargs)
        )

    return kernel


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        f"{_REFUSED} and BCELoss are unsafe to autocast: use binary_cross_entropy_with_logits or BCEWithLogitsLoss, or "
        "leave autocast for the loss"
    )


def _is_eligible(tensor: Any) -> bool:
    return isinstance(tensor, DeviceTensor) and tensor.is_floating_point() and tensor.dtype is not torch.float64


def _collect(value: Any, found: list[torch.dtype]) -> None:
    if _is_eligible(value):
        found.append(value.dtype)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _collect(one, found)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(one, dtype) for one in value)
    if isinstance(value, dict):
        return {key: _cast(one, dtype) for key, one in value.items()}
    if not _is_eligible(value) or value.dtype is dtype:
        return value
    is_weight = value.is_leaf and value.requires_grad and value.dtype is torch.float32 and dtype is not torch.float32
    if not (is_weight and torch.is_autocast_cache_enabled()):
        return value.to(dtype)
    if id(value) not in _cast_weights:
        _cast_weights[id(value)] = value, value.to(dtype)
    return _cast_weights[id(value)][1]


def _forget_weights_with_torch() -> None:
    """Ends the life of cast weights when torch ends that of its own, as it leaves the outermost autocast."""
    forget = torch.clear_autocast_cache

    def clear_autocast_cache() -> None:
        _cast_weights.clear()
        forget()

    torch.clear_autocast_cache = clear_autocast_cache
