"""Registers functions as kernels of torch's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_new_library: Any = torch.library.Library
_kept: list[Any] = []  # a registration ends when its library is collected


def register_kernels(kernels: dict[Any, Callable[..., Any]], key: str) -> None:
    """Makes each function the kernel of an overload of ``aten`` for a dispatch key."""
    library = _new_library("aten", "IMPL")
    _kept.append(library)
    for overload, function in kernels.items():
        library.impl(overload, function, key)


def let_through(key: str) -> None:
    """Lets all operators without a kernel for a dispatch key go on to the next key."""
    library = _new_library("_", "IMPL")
    _kept.append(library)
    library.fallback(torch.library.fallthrough_kernel, key)
