"""Shared by the tests of the converter: sources in, conversions out, and the command line on a small tree."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from codemods.analysis.module import Module
from codemods.analysis.names import Names
from codemods.analysis.project import Project
from codemods.cli.main import cli
from codemods.engine.convert import Conversion, HelperNames, Options, convert
from codemods.findings import Finding
from codemods.source.document import Document


def converted(
    source: str | bytes, *, path: str = "train.py", whole_module: bool = False, options: Options | None = None
) -> Conversion:
    """The conversion of one file that is a repository of its own."""
    raw = source.encode() if isinstance(source, str) else source
    file = Path(path)
    document = Document.from_bytes(file, raw)
    project = Project.of([(file, raw)])
    return convert(document, project, HelperNames(), options or Options(), whole_module=whole_module)


def after(source: str, *, path: str = "train.py", options: Options | None = None) -> str:
    """The converted text."""
    return converted(source, path=path, options=options).after.decode()


def body_after(source: str, *, path: str = "train.py") -> str:
    """The converted text without the lines that import the helper, torch and what belongs to it."""
    kept = [line for line in after(source, path=path).splitlines() if not line.startswith(("import ", "from "))]
    return "\n".join(kept).strip("\n") + "\n"


def rules_of(conversion: Conversion) -> list[str]:
    """The codes of the findings, in the order of the text."""
    return [finding.rule for finding in conversion.findings]


def findings_of(source: str, rule: str, *, path: str = "train.py") -> list[Finding]:
    """What one rule finds in a source."""
    return [finding for finding in converted(source, path=path).findings if finding.rule == rule]


def is_left(source: str, *, path: str = "train.py") -> bool:
    """Whether a source comes out as it went in."""
    return converted(source, path=path).after == source.encode()


def both_ways(source: str | bytes, *, path: str = "train.py", options: Options | None = None) -> Conversion:
    """The conversion of the statements that hit, once it is known to equal that of the module as a whole."""
    by_statement = converted(source, path=path, options=options)
    as_a_whole = converted(source, path=path, whole_module=True, options=options)
    assert by_statement.after == as_a_whole.after
    assert by_statement.findings == as_a_whole.findings
    return by_statement


def outside_edits(conversion: Conversion) -> tuple[list[bytes], list[bytes]]:
    """The stretches of bytes between the edits, before and after; no edit may touch them.

    For files in UTF-8; the stretches of the new text are found by the lengths of the replacements.
    """
    old, new = conversion.document.raw, conversion.after
    shift = len(old) - len(conversion.document.utf8)
    before, behind = [], []
    old_at = new_at = 0
    for edit in sorted(conversion.edits, key=lambda edit: (edit.start, edit.end)):
        length = edit.start + shift - old_at
        before.append(old[old_at : old_at + length])
        behind.append(new[new_at : new_at + length])
        new_at += length + len(edit.replacement.encode())
        old_at = edit.end + shift
    return [*before, old[old_at:]], [*behind, new[new_at:]]


def names_in(source: str) -> Names:
    """The names of a module."""
    return Module(Document.from_bytes(Path("module.py"), source.encode())).names


def meaning(source: str, dotted: str, at: str | None = None) -> str | None:
    """The full name of ``dotted`` where it stands last in a source, or where it stands behind ``at``."""
    offset = source.rindex(dotted) if at is None else source.index(dotted, source.index(at))
    return names_in(source).qualified(dotted, len(source[:offset].encode()))


@dataclass(frozen=True)
class Run:
    """What a command said."""

    exit_code: int
    stdout: str
    stdout_bytes: bytes
    stderr: str


class Tree:
    """A small repository on disk, and the command line run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".git").mkdir(parents=True, exist_ok=True)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Writes files, given by their paths below the root."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, name: str) -> str:
        """The text of a file, with its line ends as they are."""
        return (self.root / name).read_bytes().decode()

    def files(self) -> dict[str, bytes]:
        """All files but git's, with their bytes."""
        paths = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {path.relative_to(self.root).as_posix(): _content(path) for path in paths}

    def git_init(self) -> None:
        """Makes the root a repository that git itself takes for one."""
        (self.root / ".git").rmdir()
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def run(self, *arguments: str) -> Run:
        """Runs a command as ``uncuda ARGUMENTS``; an exception that is no exit fails the test."""
        result = CliRunner().invoke(cli, arguments, prog_name="uncuda")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Run(result.exit_code, result.stdout, result.stdout_bytes, result.stderr)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:  # not read_bytes, which tests make fail
        return file.read()
