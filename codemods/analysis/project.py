"""What is known of a repository beyond one file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codemods.analysis.names import dotted_name

_OWN_CUDA = re.compile(rb"^[ \t]+(?:async[ \t]+)?def[ \t]+cuda[ \t]*\(", re.MULTILINE)


@dataclass(frozen=True)
class OwnCuda:
    """A class of the repository that defines a method ``cuda`` of its own."""

    name: str
    path: Path
    has_to: bool
    """Whether it defines ``to`` as well."""


@dataclass(frozen=True)
class Project:
    """Knowledge that crosses files; the same for every file of a run."""

    own_cuda: Mapping[str, OwnCuda] = field(default_factory=dict)
    """Classes with a ``cuda`` method of their own, by name."""

    @classmethod
    def of(cls, files: Iterable[tuple[Path, bytes]]) -> Project:
        """Reads what is needed from the repository's files, given as paths and bytes."""
        found: dict[str, OwnCuda] = {}
        for path, raw in files:
            if _OWN_CUDA.search(raw):
                found.update((own.name, own) for own in _own_cuda_classes(path, raw))
        return cls(own_cuda=found)


def _own_cuda_classes(path: Path, raw: bytes) -> Iterable[OwnCuda]:
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # the file is reported when its turn comes
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}
            bases = {dotted_name(base) or "" for base in node.bases}
            if "cuda" in methods:
                inherits_to = any(base.split(".")[-1] in ("Module", "Tensor") for base in bases)
                yield OwnCuda(node.name, path, has_to="to" in methods and not inherits_to)
