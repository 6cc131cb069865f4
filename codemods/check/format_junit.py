"""Findings as a test report in JUnit's XML, which most CI servers show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from codemods.check.format_text import place, said
from codemods.check.report import Entry, Problem, Report
from codemods.check.severity import Severity
from codemods.report.paths import shown

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, base: Path) -> str:
    """The report as XML: an error is a test that fails, anything less one that passes with a word."""
    failures = sum(entry.severity is Severity.ERROR for entry in report.entries)
    problems = len(report.problems)
    figures = {
        "name": "uncuda",
        "tests": str(len(report.entries) + problems or 1),
        "failures": str(failures),
        "errors": str(problems),
    }
    root = ElementTree.Element("testsuites", figures)
    suite = ElementTree.SubElement(root, "testsuite", {**figures, "skipped": "0"})
    for problem in report.problems:
        _add_problem(suite, problem, base)
    for entry in report.entries:
        _add_finding(suite, entry, report, base)
    if not len(suite):
        ElementTree.SubElement(suite, "testcase", {"name": "nothing found", "classname": "uncuda"})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _add_finding(suite: ElementTree.Element, entry: Entry, report: Report, base: Path) -> None:
    rule = entry.finding.rule
    case = _case(suite, f"{place(entry, base)} {rule}", shown(entry.path, base), entry.finding.line)
    text = f"{place(entry, base)} {rule} {said(entry, report)}"
    if entry.severity is Severity.ERROR:
        failure = ElementTree.SubElement(case, "failure", {"type": rule, "message": _clean(entry.finding.message)})
        failure.text = _clean(text)
    else:
        ElementTree.SubElement(case, "system-out").text = _clean(text)


def _add_problem(suite: ElementTree.Element, problem: Problem, base: Path) -> None:
    path = shown(problem.path, base)
    case = _case(suite, path, path, problem.line)
    error = ElementTree.SubElement(case, "error", {"type": "failure", "message": _clean(problem.reason)})
    error.text = _clean(f"{path}: {problem.reason}")


def _case(suite: ElementTree.Element, name: str, path: str, line: int | None) -> ElementTree.Element:
    attributes = {"name": _clean(name), "classname": _clean(path), "file": _clean(path)}
    if line is not None:
        attributes["line"] = str(line)
    return ElementTree.SubElement(suite, "testcase", attributes)


def _clean(text: str) -> str:
    """The text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("", text)
