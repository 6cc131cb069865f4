"""Converts one file: from its bytes to findings, edits and new bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codemods.analysis.module import Module, parse
from codemods.analysis.project import Project
from codemods.engine import imports
from codemods.engine.outcome import Options as Options
from codemods.engine.waivers import without_waived
from codemods.findings import Finding, applicable
from codemods.source.document import Document, SourceError
from codemods.source.edits import Edit, apply_edits


@dataclass(frozen=True)
class HelperNames:
    """How a file names the helper."""

    statement: str = "import ai_device"
    """The import of the module as a whole."""
    module: str = "ai_device"
    """The module as ``from ... import`` names it."""
    name: str = "ai_device"
    """The local name that the statement binds."""
    targets: tuple[Path, ...] = ()
    """The files that have to be there for it."""

    def renamed(self, name: str) -> HelperNames:
        """The same helper under another local name."""
        if name == self.name:
            return self
        stem = self.statement.rpartition(" as ")[0] or self.statement
        return replace(self, statement=f"{stem} as {name}", name=name)


@dataclass(frozen=True)
class CellChange:
    """What becomes of a code cell of a notebook."""

    number: int
    start: int
    """Where its source starts in the JSON text, in UTF-8."""
    before: bytes
    """The source."""
    after: bytes


@dataclass(frozen=True)
class Conversion:
    """What became of one file."""

    document: Document
    findings: tuple[Finding, ...]
    """Everything the selected rules found, in the order of the text."""
    applied: tuple[Finding, ...] = ()
    """The findings whose edits are part of ``after``."""
    edits: tuple[Edit, ...] = field(default=(), repr=False)
    """All edits, those of imports included."""
    after: bytes = field(default=b"", repr=False)
    """The new content of the file; the old one if nothing changed."""
    needs_helper: bool = False
    """Whether the new content imports the helper."""
    cells: tuple[CellChange, ...] = field(default=(), repr=False)
    """The cells that change, of a notebook."""
    failures: tuple[SourceError, ...] = ()
    """Cells of a notebook that could not be read."""
    helper: HelperNames = HelperNames()
    """How the file names the helper."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.edits)

    @property
    def left(self) -> list[Finding]:
        """The findings that were not converted."""
        applied = set(map(id, self.applied))
        return [finding for finding in self.findings if id(finding) not in applied]


def convert(
    document: Document,
    project: Project,
    helper: HelperNames,
    options: Options,
    *,
    whole_module: bool = False,
) -> Conversion:
    """Converts a file.

    Raises:
        SourceError: the file does not parse, or cannot be changed safely
    """
    return convert_module(Module(document), document, project, helper, options, whole_module=whole_module)


def convert_module(
    module: Module,
    document: Document,
    project: Project,
    helper: HelperNames,
    options: Options,
    *,
    besides: Sequence[Finding] = (),
    whole_module: bool = False,
) -> Conversion:
    """Converts a module.

    Args:
        besides: findings that do not come from its Python

    Raises:
        SourceError: it cannot be read, or changed safely
    """
    from codemods.engine.rewrite import rewrite  # with libcst, which a file that is known already does not need

    helper = helper.renamed(imports.choose_name(module, helper.name))
    found = rewrite(module, project, helper.name, helper.module, options.families, whole_module=whole_module)
    found = _two_sources_once(without_waived(module, [*found, *besides]))
    findings = tuple(sorted(filter(options.wants, found), key=lambda finding: finding.start))
    if document.path.name == "setup.py":
        findings = tuple(finding.left_alone() for finding in findings)  # it is run where the helper is not
    applied = tuple(applicable(findings, options.tier))
    return apply_findings(module, document, helper, findings, applied)


def _two_sources_once(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with UC352 at its first place alone, and nowhere if AI_DEVICE chooses nothing in the file."""
    chosen = any(finding.uses_helper for finding in findings)
    first = next((finding for finding in findings if finding.rule == "UC352" and chosen), None)
    return [finding for finding in findings if finding.rule != "UC352" or finding is first]


def apply_findings(
    module: Module, document: Document, helper: HelperNames, findings: Sequence[Finding], applied: Sequence[Finding]
) -> Conversion:
    """The conversion that makes the edits of ``applied`` and what they need of imports.

    Raises:
        SourceError: the result would not parse
    """
    edits = all_edits(module, helper, applied)
    if not edits:
        return Conversion(document, tuple(findings), after=document.raw, helper=helper)
    _verify(document, edits)
    return Conversion(
        document=document,
        findings=tuple(findings),
        applied=tuple(applied),
        edits=tuple(edits),
        after=document.with_edits(edits),
        needs_helper=names_helper(applied),
        helper=helper,
    )


def names_helper(applied: Iterable[Finding]) -> bool:
    """Whether the edits of findings import the helper or something from it."""
    return any(f.uses_helper or (f.edits and f.rule in ("UC401", "UC502")) for f in applied)


def all_edits(module: Module, helper: HelperNames, applied: Sequence[Finding]) -> list[Edit]:
    """The edits of findings with those of imports that they call for."""
    edits = [edit for finding in applied for edit in finding.edits]
    return edits + _import_edits(module, helper, applied, edits) if edits else []


def _import_edits(module: Module, helper: HelperNames, applied: Sequence[Finding], edits: Sequence[Edit]) -> list[Edit]:
    """The helper's import, and the removal of imports that nothing needs any more."""
    uses = [finding.start for finding in applied if finding.uses_helper]
    needed = bool(uses) and not imports.helper_is_imported(module, helper.name, min(uses))
    return imports.import_edits(module, edits, helper.statement if needed else None, min(uses, default=0))


def _verify(document: Document, edits: Sequence[Edit]) -> None:
    try:
        parse(document.path, apply_edits(document.utf8, edits).decode())
    except (SourceError, ValueError) as error:
        reason = error.reason if isinstance(error, SourceError) else str(error)
        raise SourceError(document.path, f"left as it is: the converted text would be wrong ({reason})") from None
