"""The examples of the catalogue are its tests: each converts to what it says, in every layout and both ways."""

from __future__ import annotations

import ast
import codecs
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from conversion import both_ways, converted, rules_of

from codemods.catalogue import Example, Rule, load_catalogue, load_kinds
from codemods.engine.companions import convert_companion
from codemods.engine.convert import Conversion, Options
from codemods.findings import Finding, Tier
from codemods.source.document import Document

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = load_catalogue()


def _cases(*, python: bool) -> Iterator[object]:
    for rule in CATALOGUE.values():
        for number, example in enumerate(rule.examples):
            if example.is_python == python:
                yield pytest.param(rule, example, id=f"{rule.code}-{number}")


each_example = pytest.mark.parametrize(("rule", "example"), tuple(_cases(python=True)))
each_example_beside = pytest.mark.parametrize(("rule", "example"), tuple(_cases(python=False)))


@each_example
def test_before_becomes_after(rule: Rule, example: Example) -> None:
    conversion = converted(example.before, options=_options(example))
    assert conversion.after.decode() == example.after
    assert (rule.code in rules_of(conversion)) == example.finding


@each_example
def test_both_ways_agree(rule: Rule, example: Example) -> None:
    both_ways(example.before, options=_options(example))


@each_example
def test_after_parses_and_converts_to_itself(rule: Rule, example: Example) -> None:
    ast.parse(example.after)
    again = converted(example.after, options=_options(example))
    assert again.after.decode() == example.after
    assert not again.applied


@each_example
def test_line_ends_of_windows(rule: Rule, example: Example) -> None:
    before, after = (text.replace("\n", "\r\n").encode() for text in (example.before, example.after))
    assert both_ways(before, options=_options(example)).after == after


@each_example
def test_byte_order_mark(rule: Rule, example: Example) -> None:
    conversion = both_ways(codecs.BOM_UTF8 + example.before.encode(), options=_options(example))
    assert conversion.after == codecs.BOM_UTF8 + example.after.encode()


@each_example
def test_tabs(rule: Rule, example: Example) -> None:
    assert both_ways(_tabbed(example.before), options=_options(example)).after.decode() == _tabbed(example.after)


@each_example
def test_no_last_line_end(rule: Rule, example: Example) -> None:
    conversion = both_ways(example.before.rstrip("\n"), options=_options(example))
    assert conversion.after.decode() == example.after.rstrip("\n")


@each_example
def test_inside_a_function(rule: Rule, example: Example) -> None:
    """Imports stay above; what the example does is done in a method, except where the place is what it is about."""
    before_head, before_body = _split(example.before)
    after_head, after_body = _split(example.after)
    if before_body is None or after_body is None:
        pytest.skip("imports are all there is")
    if not _means_the_same_in_a_function(before_body):
        pytest.skip("module level is what the example is about")
    result = both_ways(before_head + _in_method(before_body), options=_options(example)).after.decode()
    assert _one_blank_line(result) == _one_blank_line(after_head + _in_method(after_body))


FORMS = {
    "as it is": lambda text: text.encode(),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "byte-order mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@each_example_beside
def test_a_file_beside_the_python_is_reported_in_every_form(
    rule: Rule, example: Example, form: Callable[[str], bytes]
) -> None:
    plain, conversion = (companion(example.file, raw) for raw in (example.before.encode(), form(example.before)))
    assert said(conversion) == said(plain)
    assert (rule.code in {code for code, *_ in said(conversion)}) == example.finding
    assert conversion is None or conversion.after == form(example.before)
    assert example.after == example.before


def companion(file: str, raw: bytes) -> Conversion | None:
    return convert_companion(Document.from_bytes(Path(file), raw))


def said(conversion: Conversion | None) -> list[tuple[str, str, int, int]]:
    findings = conversion.findings if conversion else ()
    return [(finding.rule, finding.message, finding.line, finding.column) for finding in findings]


def test_codes_and_files_agree() -> None:
    files = sorted((ROOT / "rules" / "catalogue").glob("*.toml"))
    assert [(rule.code, rule.name) for rule in CATALOGUE.values()] == [_code_and_name(file) for file in files]


def test_every_code_in_the_codemods_is_in_the_catalogue_and_the_other_way_round() -> None:
    used = {code for file in sorted((ROOT / "codemods").rglob("*.py")) for code in _codes_in(file)}
    assert used == set(CATALOGUE)


@pytest.mark.parametrize("rule", tuple(CATALOGUE.values()), ids=lambda rule: rule.code)
def test_a_rule_is_complete(rule: Rule) -> None:
    assert rule.examples
    assert rule.title
    assert rule.why
    assert not rule.message.endswith(".")
    assert "\n" not in rule.message


@pytest.mark.parametrize("rule", tuple(CATALOGUE.values()), ids=lambda rule: rule.code)
def test_the_examples_show_what_the_tier_says(rule: Rule) -> None:
    """A rule that is applied shows an edit of its own, one that only reports a place that it leaves."""
    found = [finding for example in rule.examples for finding in _findings(example) if finding.rule == rule.code]
    is_applied = rule.tier in (Tier.SAFE, Tier.REVIEW)
    assert any(bool(finding.edits) == is_applied for finding in found)


def _findings(example: Example) -> Sequence[Finding]:
    if example.is_python:
        return converted(example.before, options=_options(example)).findings
    conversion = companion(example.file, example.before.encode())
    return conversion.findings if conversion else ()


def _options(example: Example) -> Options:
    return Options(families=example.options)


def _code_and_name(file: Path) -> tuple[str, str]:
    code, _, name = file.stem.partition("_")
    return code.upper(), name.replace("_", "-")


def _codes_in(file: Path) -> list[str]:
    return re.findall(r"[\"'](UC\d+)[\"']", file.read_text("utf-8"))


def _tabbed(text: str) -> str:
    return re.sub(r"^(?: {4})+", lambda match: "\t" * (len(match.group()) // 4), text, flags=re.MULTILINE)


def _split(text: str) -> tuple[str, str | None]:
    """What stands before the first statement that is no import, and the rest."""
    first = next((s for s in ast.parse(text).body if not isinstance(s, ast.Import | ast.ImportFrom)), None)
    if first is None:
        return text, None
    lines = text.splitlines(keepends=True)
    start = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))]) - 1
    head, body = "".join(lines[:start]), "".join(lines[start:])
    return head.rstrip("\n") + "\n\n\n" if head else "", body


def _in_method(body: str) -> str:
    return "class Trainer:\n    def work(this):\n" + textwrap.indent(body, " " * 8)


def _one_blank_line(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text)


def _means_the_same_in_a_function(body: str) -> bool:
    """Not so for imports further down, and for classes and functions whose kind depends on their place."""
    statements = ast.parse(body).body
    return not any(isinstance(s, ast.Import | ast.ImportFrom) for s in statements)


# -- what reports group by -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", tuple(CATALOGUE.values()), ids=lambda rule: rule.code)
def test_a_rule_belongs_to_one_series(rule: Rule) -> None:
    assert [code for code in load_kinds().series if rule.code.startswith(code)] == [
        load_kinds().series_of(rule.code).code
    ]


@pytest.mark.parametrize("rule", tuple(CATALOGUE.values()), ids=lambda rule: rule.code)
def test_what_can_be_left_to_a_person_has_an_effort(rule: Rule) -> None:
    """Any rule but a note: an edit may be impossible at a place, or held back."""
    assert (rule.effort in load_kinds().efforts) == (rule.tier is not Tier.NOTE)


@pytest.mark.parametrize("rule", [rule for rule in CATALOGUE.values() if rule.cuda_only], ids=lambda rule: rule.code)
def test_what_is_cuda_only_is_never_converted(rule: Rule) -> None:
    assert rule.tier is Tier.MANUAL
    found = [finding for example in rule.examples for finding in _findings(example) if finding.rule == rule.code]
    assert found
    assert not [finding for finding in found if finding.edits]


def test_every_series_has_rules_and_a_text() -> None:
    for code, series in load_kinds().series.items():
        assert any(rule.startswith(code) for rule in CATALOGUE)
        assert series.title
        assert series.about.endswith(".")
