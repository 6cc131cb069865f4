"""Which rule of the converter finds a place that a rehearsal stumbled over."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from codemods.analysis.module import Module
from codemods.analysis.project import Project
from codemods.findings import Finding
from codemods.source.document import Document, SourceError


def rule_at(path: Path, line: int) -> str | None:
    """The code of the rule with a finding in the statement that runs at a line: the nearest where there are more."""
    module = _module(path)
    if module is None:
        return None
    first, last = _statement_around(module.tree, line)
    inside = [finding for finding in _findings(path) if first <= finding.line <= last]
    nearest = min(inside, key=lambda finding: (abs(finding.line - line), -finding.tier), default=None)
    return nearest.rule if nearest else None


@cache
def _module(path: Path) -> Module | None:
    try:
        return Module(Document.read(path))
    except SourceError:
        return None


@cache
def _findings(path: Path) -> tuple[Finding, ...]:
    from codemods.engine.convert import HelperNames, Options, convert  # with libcst, which most reports do not need

    try:
        document = Document.read(path)
        return convert(document, Project.of([(path, document.raw)]), HelperNames(), Options()).findings
    except SourceError:
        return ()


def _statement_around(tree: ast.Module, line: int) -> tuple[int, int]:
    """The first and last line of the innermost statement at a line, or of the header of a compound one."""
    spans = [_span(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [span for span in spans if span[0] <= line <= span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=(line, line))


def _span(statement: ast.stmt) -> tuple[int, int]:
    body: list[ast.stmt] = getattr(statement, "body", [])
    end = statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, body[0].lineno - 1) if body else end
