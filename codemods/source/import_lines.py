"""What the import lines of a file say, read by pattern: cheap enough for every file of a repository."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codemods.source.facts import Fact, is_flag, is_number, is_text

_IMPORT = re.compile(
    rb"^([ \t]*)"
    rb"(?:from\b[ \t]*(\.*)[ \t]*([\w.]*)[ \t]+import\b[ \t]*(\([^)]*\)|[^\r\n#;]*)|import[ \t]+([^\r\n#;]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")
_MAIN_GUARD = re.compile(rb"^if\b[^\n]*\b__name__\b[^\n]*\b__main__\b", re.MULTILINE)
_ACTION = re.compile(rb"^(?:for|while|with)\b|^\w+[ \t]*=[ \t]*[\w.]+\.parse_args\(", re.MULTILINE)
_SHEBANG = re.compile(rb"#![^\n]*\bpython")


@dataclass(frozen=True)
class ImportLine:
    """One imported module."""

    module: str
    """Dotted, without leading dots; empty for ``from . import x``."""
    level: int
    """Number of leading dots."""
    names: tuple[str, ...]
    """What is taken out of it; empty for ``import module``."""
    certain: bool
    """Whether it stands at the left margin, so that the file cannot be loaded without it."""


@dataclass(frozen=True)
class ImportLines:
    """What is known of a file without parsing it."""

    imports: tuple[ImportLine, ...]
    is_program: bool
    """Made to be run: it has a main guard or a shebang."""
    acts: bool
    """Does work when it is loaded."""
    changes_path: bool
    """Speaks of ``sys.path``."""

    @property
    def level(self) -> int:
        """How many packages it must lie in for its relative imports to work; 0 if it has none."""
        return max((line.level for line in self.imports if line.certain), default=0)


def read_import_lines(raw: bytes, notebook: bool = False) -> ImportLines:
    """The import lines of a Python file, or of the code cells of a notebook."""
    source = _cells(raw) if notebook else raw
    return ImportLines(
        imports=tuple(line for match in _IMPORT.finditer(source) for line in _lines(match)),
        is_program=bool(_SHEBANG.match(source) or (b"__main__" in source and _MAIN_GUARD.search(source))),
        acts=bool(_ACTION.search(source)),
        changes_path=b"sys.path" in source,
    )


def _pack(lines: ImportLines) -> list[Any]:
    imports = [[line.module, line.level, line.names, line.certain] for line in lines.imports]
    return [imports, lines.is_program, lines.acts, lines.changes_path]


def _unpack(value: Any) -> ImportLines:
    imports, is_program, acts, changes_path = value
    return ImportLines(
        imports=tuple(
            ImportLine(is_text(module), is_number(level), tuple(map(is_text, names)), is_flag(certain))
            for module, level, names, certain in imports
        ),
        is_program=is_flag(is_program),
        acts=is_flag(acts),
        changes_path=is_flag(changes_path),
    )


IMPORT_LINES = Fact("imports", read_import_lines, _pack, _unpack)
IMPORT_LINES_OF_NOTEBOOK = Fact(
    "imports of notebook", lambda raw: read_import_lines(raw, notebook=True), _pack, _unpack
)


def _lines(match: re.Match[bytes]) -> Iterator[ImportLine]:
    indent, dots, module, names, modules = (group.decode() for group in match.groups(b""))
    certain = not indent
    if modules:
        for name in _first_words(modules):
            yield ImportLine(name, 0, (), certain)
    else:
        yield ImportLine(module, len(dots), tuple(_first_words(names.strip("()"))), certain)


def _first_words(text: str) -> Iterator[str]:
    for item in _COMMENT.sub("", text).replace("\\", " ").split(","):
        words = item.split()
        if words:
            yield words[0]


def _cells(raw: bytes) -> bytes:
    """The code of a notebook; nothing if it is none."""
    try:
        cells = json.loads(raw)["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        return "\n".join("".join(source) for source in sources).encode("utf-8", "replace")
    except (ValueError, TypeError, KeyError, RecursionError):
        return b""
