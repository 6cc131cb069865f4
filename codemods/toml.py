"""Reads TOML on every supported Python."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def rules_folder() -> Path:
    """The folder ``rules``, wherever it is installed."""
    return Path(str(import_module("codemods.rules").__file__)).parent


def read_rules(name: str) -> dict[str, Any]:
    """The content of a file of the ``rules`` folder, e.g. ``triggers.toml``."""
    return tomllib.loads((rules_folder() / name).read_text(encoding="utf-8"))
