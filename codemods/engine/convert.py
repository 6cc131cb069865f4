"""Converts one file: from its bytes to findings, edits and new bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codemods.analysis.module import Module, parse
from codemods.analysis.project import Project
from codemods.engine import imports
from codemods.findings import Finding, Tier, applicable
from codemods.source.document import Document, SourceError
from codemods.source.edits import Edit, apply_edits


@dataclass(frozen=True)
class Options:
    """What is found and how much of it is applied."""

    tier: Tier = Tier.REVIEW
    """Edits up to this tier are applied."""
    select: tuple[str, ...] = ()
    """Prefixes of rule codes; empty selects all."""
    ignore: tuple[str, ...] = ()
    """Prefixes of rule codes that are left out."""

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is among the selected rules."""
        chosen = not self.select or finding.rule.startswith(self.select)
        return chosen and not (self.ignore and finding.rule.startswith(self.ignore))


@dataclass(frozen=True)
class HelperNames:
    """How a file names the helper."""

    statement: str = "import ai_device"
    """The import of the module as a whole."""
    module: str = "ai_device"
    """The module as ``from ... import`` names it."""
    name: str = "ai_device"
    """The local name that the statement binds."""

    def renamed(self, name: str) -> HelperNames:
        """The same helper under another local name."""
        if name == self.name:
            return self
        stem = self.statement.rpartition(" as ")[0] or self.statement
        return HelperNames(f"{stem} as {name}", self.module, name)


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
    from codemods.engine.rewrite import rewrite  # with libcst, which a file that is known already does not need

    module = Module(document)
    helper = helper.renamed(imports.choose_name(module, helper.name))
    found = rewrite(module, project, helper.name, helper.module, whole_module=whole_module)
    findings = tuple(finding for finding in found if options.wants(finding))
    if document.path.name == "setup.py":
        findings = tuple(_reported_only(finding) for finding in findings)  # it is run where the helper is not
    applied = tuple(applicable(findings, options.tier))
    return apply_findings(module, document, helper, findings, applied)


def apply_findings(
    module: Module, document: Document, helper: HelperNames, findings: Sequence[Finding], applied: Sequence[Finding]
) -> Conversion:
    """The conversion that makes the edits of ``applied`` and what they need of imports.

    Raises:
        SourceError: the result would not parse
    """
    edits = [edit for finding in applied for edit in finding.edits]
    if not edits:
        return Conversion(document, tuple(findings), after=document.raw)
    edits += _import_edits(module, helper, applied, edits)
    _verify(document, edits)
    moved = any(f.rule in ("UC401", "UC502") and not f.uses_helper for f in applied)
    return Conversion(
        document=document,
        findings=tuple(findings),
        applied=tuple(applied),
        edits=tuple(edits),
        after=document.with_edits(edits),
        needs_helper=moved or any(finding.uses_helper for finding in applied),
    )


def _reported_only(finding: Finding) -> Finding:
    return replace(finding, edits=(), tier=Tier.MANUAL if finding.edits else finding.tier, uses_helper=False)


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
