"""What is known of a repository beyond one file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codemods.analysis.configured import cuda_settings
from codemods.analysis.integer_devices import INDEX_ARGUMENTS
from codemods.analysis.names import dotted_name
from codemods.analysis.notebook_code import NotebookCode
from codemods.source.document import Document, SourceError
from codemods.source.facts import Fact, Facts, is_flag, is_text
from codemods.source.notebook import read_notebook

_OWN_CUDA = re.compile(rb"def[ \t]+cuda[ \t]*\(")


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
    top_level: frozenset[str] = frozenset()
    """Names that an import finds at the root of the repository, or in its ``src`` folder."""

    index_arguments: frozenset[tuple[str, str | int]] = frozenset()
    """Functions that are called with an integer for a device: name, and keyword or position from 0."""
    cuda_settings: frozenset[str] = frozenset()
    """Names of settings, in lower case, that can name CUDA at run time whatever the code says."""

    @classmethod
    def of(
        cls,
        files: Iterable[tuple[Path, bytes]],
        root: Path | None = None,
        settings: Iterable[bytes] = (),
        facts: Facts | None = None,
    ) -> Project:
        """Reads what is needed from the repository's Python files and notebooks, and from its configuration files."""
        facts = facts or Facts()
        files = list(files)
        found: dict[str, OwnCuda] = {}
        top_level: set[str] = set()
        for path, raw in files:
            if path.suffix == ".ipynb":
                code = _code_of_notebook(path, raw)
                found.update((name, OwnCuda(name, path, has_to)) for name, has_to in _own_cuda_classes(code))
                continue
            if root is not None and path.is_relative_to(root):
                parts = path.relative_to(root).with_suffix("").parts
                top_level.add(parts[1] if parts[0] == "src" and len(parts) > 1 else parts[0])
            found.update((name, OwnCuda(name, path, has_to)) for name, has_to in facts.of(_OWN_CUDA_CLASSES, raw))
        contents = [raw for _, raw in files]
        return cls(
            own_cuda=found,
            top_level=frozenset(top_level),
            index_arguments=frozenset(argument for raw in contents for argument in facts.of(INDEX_ARGUMENTS, raw)),
            cuda_settings=frozenset(cuda_settings(contents, settings, facts)),
        )


def _code_of_notebook(path: Path, raw: bytes) -> bytes:
    if b"def cuda" not in raw:
        return b""
    try:
        return NotebookCode(read_notebook(Document.from_bytes(path, raw))).document.raw
    except SourceError:
        return b""  # the file is reported when its turn comes


def _own_cuda_classes(raw: bytes) -> list[tuple[str, bool]]:
    """The classes with a method ``cuda``, and whether they have ``to`` as well."""
    return list(_classes(raw)) if _OWN_CUDA.search(raw) else []


def _classes(raw: bytes) -> Iterator[tuple[str, bool]]:
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
                yield node.name, "to" in methods and not inherits_to


_OWN_CUDA_CLASSES = Fact(
    "classes with cuda",
    _own_cuda_classes,
    list,
    lambda value: [(is_text(name), is_flag(has_to)) for name, has_to in value],
)
