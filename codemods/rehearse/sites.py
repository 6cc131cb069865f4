"""Which line of the user's code is running."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from codemods.rehearse.recording import Site

_HELPER = "ai_device.py"
_SKIPPED = tuple(
    str(folder)
    for folder in (
        Path(torch.__file__).parent,
        Path(__file__).parent,
        Path(sysconfig.get_paths()["stdlib"]),
    )
)
_LIBRARIES = sysconfig.get_paths()["purelib"]
_is_users: dict[CodeType, bool] = {}
_sites: dict[tuple[CodeType, int], Site] = {}
_local = threading.local()


def current_site() -> Site:
    """The innermost line outside torch, the standard library, the helper and this package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        users = _is_users.get(code)
        if users is None:
            users = _is_users[code] = _belongs_to_user(code.co_filename)
        if users:
            place = (code, frame.f_lineno)
            return _sites.get(place) or _sites.setdefault(place, Site(code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return Site("", 0)


def is_helper(file: str) -> bool:
    """Whether a file is the helper that converted code imports."""
    return Path(file).name == _HELPER


def _belongs_to_user(file: str) -> bool:
    if file.startswith("<frozen") or is_helper(file):
        return False
    inside_libraries = file.startswith(_LIBRARIES) and not file.startswith(_SKIPPED[:2])
    return inside_libraries or not file.startswith(_SKIPPED)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Names what the user's code asked for, so that the copy or wait below is recorded under that name."""
    before = getattr(_local, "what", "")
    _local.what = before or what
    try:
        yield
    finally:
        _local.what = before


def asked_for(otherwise: str) -> str:
    """What the user's code asked for, by ``doing``."""
    return getattr(_local, "what", "") or otherwise
