"""Which file is of which kind."""

from __future__ import annotations

import os
import re
from pathlib import Path

from codemods.companions.vocabulary import load_vocabulary

_SHELL_SHEBANG = re.compile(rb"#![^\r\n]*\b(?:ba|da|z|k)?sh\b")


def kind_of(path: Path) -> str | None:
    """``shell``, ``yaml``, ``json``, ``toml``, ``ini``, ``dockerfile`` or ``requirements``; None for any other file.

    A file without an ending is opened if it may be executed, to see whether a shell is to run it.
    """
    vocabulary = load_vocabulary()
    name = path.name
    for names, kind in vocabulary.kinds:
        if name in names:
            return kind or None
    if name.endswith(".txt"):
        return vocabulary.folders.get(path.parent.name)
    return "shell" if "." not in name and _is_run_by_a_shell(path) else None


def _is_run_by_a_shell(path: Path) -> bool:
    # Data without an ending can be many files: only those that may be executed are worth to be opened.
    if not os.access(path, os.X_OK):
        return False
    try:
        with path.open("rb") as file:
            return _SHELL_SHEBANG.match(file.read(128)) is not None
    except OSError:
        return False
