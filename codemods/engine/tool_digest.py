"""A digest of everything that decides what is found in a file, apart from the file and the request."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path

import codemods
from codemods.toml import rules_folder

_FOLDERS = ("source", "analysis", "transformers", "runtime", "engine")
"""Those below and beside the engine: nothing else is imported by what finds and converts."""


@cache
def tool_digest() -> str:
    """The digest of this tool, its rules, libcst and Python."""
    digest = blake2b(repr(sys.version_info).encode(), digest_size=16)
    package = Path(codemods.__file__).parent
    sources = [*package.glob("*.py"), *(file for name in _FOLDERS for file in (package / name).glob("*.py"))]
    for file in (*sorted(sources), *sorted(rules_folder().rglob("*.toml")), *_version_of_libcst()):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _version_of_libcst() -> list[Path]:
    """The file with libcst's version, found without importing libcst."""
    found = importlib.util.find_spec("libcst")
    files = [Path(found.origin).with_name("_version.py")] if found is not None and found.origin else []
    return [file for file in files if file.is_file()]
