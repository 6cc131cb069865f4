"""The files beside the Python, as conversions like those of Python files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.companions.find import companion_findings, may_concern
from codemods.companions.kinds import kind_of
from codemods.companions.remarks import NOTHING_KNOWN, Knowledge
from codemods.companions.vocabulary import load_vocabulary
from codemods.engine.outcome import Options, Outcome, Request
from codemods.source.discovery import Skipped
from codemods.source.document import Document, SourceError
from codemods.source.packaging import PACKAGING_FILES
from codemods.source.repository import Repository

if TYPE_CHECKING:
    from codemods.engine.convert import Conversion

_TRANSLATING = ("UC206", "UC207", "UC301")
"""Rules whose edits take a value that names CUDA for the selected device."""
_SETTING_NAME = re.compile(rb"""(?:\.|\[["']|["'])([\w-]*(?:device|backend))\b""", re.IGNORECASE)
_ENTRY_POINT = re.compile(r"([\w.-]+)[\"']?\s*=\s*[\"']?[\w.]+:\w+")


def convert_companion(
    document: Document, knowledge: Knowledge = NOTHING_KNOWN, options: Options | None = None
) -> Conversion | None:
    """What the rules say of a file beside the Python; None if they say nothing, or it is none of a kind that they know.

    Raises:
        SourceError: the file is nested too deeply to be read
    """
    kind = kind_of(document.path)
    try:
        found = companion_findings(document, kind, knowledge) if kind else ()
    except RecursionError:
        raise SourceError(document.path, "is nested too deeply to be read") from None
    options = options or Options()
    findings = tuple(finding for finding in found if options.wants(finding))
    if not findings:
        return None
    from codemods.engine.convert import Conversion  # brings libcst, so only where something was found

    return Conversion(document, findings, after=document.raw)


def add_companions(request: Request, repository: Repository, kinds: Mapping[Path, str], outcome: Outcome) -> None:
    """Adds what the rules say of files, given with their kinds, to the outcome.

    A file that cannot be read is a failure only where it was named: those of a tree can be of any encoding, or data.
    """
    known = knowledge_of(repository, outcome, request.helper_name)
    for path, kind in kinds.items():
        try:
            document = _document(path, kind, outcome)
            conversion = convert_companion(document, known, request.options) if document else None
        except SourceError as error:
            if path in request.paths:
                outcome.failures.append(error)
            else:
                reason = error.reason if error.line is None else f"line {error.line}: {error.reason}"
                outcome.skipped.append(Skipped(path, reason))
        except Exception as error:  # noqa: BLE001
            reason = f"left as it is: {type(error).__name__}: {error} (a fault of uncuda; please report it)"
            outcome.failures.append(SourceError(path, reason))
        else:
            outcome.conversions += [conversion] if conversion else []


def _document(path: Path, kind: str, outcome: Outcome) -> Document | None:
    """The file, if it is worth to be looked into."""
    largest = load_vocabulary().largest
    try:
        if path.stat().st_size > largest:
            outcome.skipped.append(Skipped(path, f"larger than {largest // 1_000_000} MB: taken for data"))
            return None
        raw = path.read_bytes()
    except OSError as error:
        raise SourceError(path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    outcome.files += 1
    return Document.from_bytes(path, raw) if may_concern(raw, kind) else None


def knowledge_of(repository: Repository, outcome: Outcome, helper: str) -> Knowledge:
    """What a repository's Python, its packaging and the names of its files say of the files beside them."""
    return Knowledge(
        device_settings=frozenset(_mapped_settings(repository, outcome, helper)),
        modules=frozenset(_modules(repository.root)),
        commands=frozenset(_commands(repository.root)),
    )


def _mapped_settings(repository: Repository, outcome: Outcome, helper: str) -> Iterator[str]:
    """The settings and options that a converted place takes, be it converted in this run or before."""
    for conversion in outcome.conversions:
        for finding in conversion.applied:
            if finding.rule in _TRANSLATING:
                yield from _setting_names(conversion.document.utf8[finding.start : finding.end])
    name = re.escape(helper.encode())
    taken = re.compile(rb"%s\.device\([\w.]+[.\[][^()\n]*\)|add_argument\([^\n]*\btype=%s\.\w+" % (name, name))
    for _, raw in repository.python_files():
        if helper.encode() in raw:
            for match in taken.finditer(raw):
                yield from _setting_names(match.group())


def _setting_names(code: bytes) -> Iterator[str]:
    return (match[1].decode().lower().lstrip("-").replace("-", "_") for match in _SETTING_NAME.finditer(code))


def _modules(root: Path) -> set[str]:
    found: set[str] = set()
    for folder in (root, root / "src"):
        with suppress(OSError):  # no such folder, or none that may be read
            found |= {path.stem for path in folder.iterdir() if path.suffix == ".py" or _is_package(path)}
    return found


def _is_package(path: Path) -> bool:
    return path.is_dir() and next(path.glob("*.py"), None) is not None


def _commands(root: Path) -> set[str]:
    found: set[str] = set()
    for name in PACKAGING_FILES:
        with suppress(OSError):
            found.update(_ENTRY_POINT.findall((root / name).read_text("utf-8", "replace")))
    return found
