"""torch.cuda as on a machine without CUDA, with a record of every place that still names it."""

from __future__ import annotations

import functools
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from codemods.rehearse.machine import machine
from codemods.rehearse.sites import asked_for, current_site, doing, is_helper

_TORCH = str(Path(torch.__file__).parent)
_SUBMODULES = ("amp", "graphs", "memory", "nccl", "nvtx", "profiler", "random", "streams")


def watch() -> None:
    """Records calls into torch.cuda, ``.cuda()``, devices named ``cuda`` and the backend ``nccl``."""
    _watch_devices()
    _watch_methods()
    _watch_functions(torch.cuda)
    for name in _SUBMODULES:
        _watch_functions(import_module(f"torch.cuda.{name}"))
    for owner in (torch.cuda.amp.autocast, torch.cuda.amp.GradScaler, torch.cuda.Event, torch.cuda.Stream):
        _watch_class(owner)
    if dist.is_available():
        _watch_backends()


def _record(what: str) -> str:
    """Records a mention; the place as text for an error."""
    site = current_site()
    machine().recording.add_cuda(asked_for(what), site)
    return str(site)


def _watch_devices() -> None:
    """Whatever needs CUDA calls this function of torch, which raises where there is none."""
    start: Any = torch.cuda._lazy_init

    def lazy_init() -> None:
        try:
            start()
        except (AssertionError, RuntimeError) as error:
            raise type(error)(f"{error}: CUDA is named at {_record('device cuda')}") from error

    torch.cuda._lazy_init = lazy_init


def _watch_methods() -> None:
    owners: tuple[Any, ...] = (torch.Tensor, torch.nn.Module)
    for owner in owners:
        owner.cuda = _under_name(owner.cuda, f"{owner.__name__}.cuda")


def _under_name(function: Any, what: str) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with doing(what):
            return function(*args, **kwargs)

    return call


def _watch_functions(module: types.ModuleType) -> None:
    for name, value in list(vars(module).items()):
        is_own = isinstance(value, types.FunctionType) and value.__module__.startswith("torch.cuda")
        if is_own and not name.startswith("_"):
            setattr(module, name, _watched(value, f"{module.__name__}.{name}"))


def _watched(function: Any, what: str) -> Any:
    if hasattr(function, "_rehearsed_watch"):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _is_users(sys._getframe(1)):
            return function(*args, **kwargs)
        _record(what)
        try:
            return function(*args, **kwargs)
        except (AssertionError, AttributeError, RuntimeError) as error:
            if "CUDA is named at" in str(error):
                raise
            raise type(error)(f"{error}: CUDA is named at {current_site()}") from error

    call._rehearsed_watch = True  # type: ignore[attr-defined]
    return call


def _watch_class(owner: Any) -> None:
    made = owner.__init__ if "__init__" in vars(owner) else None
    if made is None:
        return

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if _is_users(sys._getframe(1)):
            _record(f"{owner.__module__.rpartition('.')[0]}.{owner.__name__}")
        made(self, *args, **kwargs)

    owner.__init__ = init


def _is_users(frame: Any) -> bool:
    """Whether a call comes from outside torch and the helper, which ask torch.cuda of themselves."""
    file = frame.f_code.co_filename
    return not file.startswith(_TORCH) and not is_helper(file)


def _watch_backends() -> None:
    for module in (dist, dist.distributed_c10d):
        for name in ("init_process_group", "new_group"):
            setattr(module, name, _watching_nccl(getattr(module, name)))


def _watching_nccl(function: Any) -> Any:
    if hasattr(function, "_rehearsed_watch"):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        asked = [one for one in (*args, kwargs.get("backend")) if isinstance(one, str)]
        if not any("nccl" in one for one in asked):
            return function(*args, **kwargs)
        site = _record("backend nccl")
        try:
            return function(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            raise type(error)(f"{error}: nccl is named at {site}") from error

    call._rehearsed_watch = True  # type: ignore[attr-defined]
    return call
