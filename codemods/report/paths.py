"""Paths as users read them."""

from __future__ import annotations

import os
from pathlib import Path


def shown(path: Path, base: Path) -> str:
    """A path relative to a folder where it lies below it, with ``/``."""
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        return Path(os.path.relpath(path, base)).as_posix()
