"""Every case in fixtures/cases: what is converted, what is said, and how the result runs."""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cases import Behaviour, Case, Result, in_form, load_case, load_cases, result_of
from click.testing import CliRunner
from notebooks import validate

from codemods.analysis.notebook_code import NotebookCode
from codemods.analysis.project import Project
from codemods.cli.main import cli
from codemods.engine.convert import HelperNames, Options, convert
from codemods.engine.notebook import convert_notebook
from codemods.engine.outcome import Outcome, Request
from codemods.engine.run import run
from codemods.findings import Finding, Tier
from codemods.runtime import helper_source
from codemods.source.document import Document
from codemods.source.notebook import read_notebook

CASES = {case.id: case for case in load_cases()}
CONVERTED = [(case.id, form) for case in CASES.values() if not case.failure for form in case.form]
CHANGED = [(name, form) for name, form in CONVERTED if CASES[name].outputs is not CASES[name].inputs]
BESIDE = "import torch\n\nx = torch.ones(2).cuda()\n"

by_case = pytest.mark.parametrize(("name", "form"), CONVERTED)
by_change = pytest.mark.parametrize(("name", "form"), CHANGED)


def written(root: Path, files: Mapping[str, bytes]) -> Path:
    """A repository of files with these contents."""
    (root / ".git").mkdir(parents=True)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def in_bytes(texts: Mapping[str, str], form: str) -> dict[str, bytes]:
    return {name: in_form(text, form) for name, text in texts.items()}


@cache
def converted(name: str, form: str, second: bool = False) -> tuple[Outcome, dict[str, bytes]]:
    """The outcome of a case and the bytes of its files after it, or those of a second run on the result."""
    case = CASES[name]
    files = converted(name, form)[1] if second else in_bytes(case.inputs, form)
    helper = {"ai_device.py": helper_source().encode()} if second else {}
    with TemporaryDirectory() as folder:
        root = written(Path(folder).resolve(), {**files, **in_bytes(case.files, "utf-8"), **helper})
        outcome = run(Request((root,), exclude=tuple(case.exclude), exclude_root=root))
        after = {c.document.path.relative_to(root).as_posix(): c.after for c in outcome.changed}
    return outcome, {**files, **after}


def said(finding: Finding) -> str:
    place = f"{finding.line}" if finding.cell is None else f"{finding.cell}:{finding.line}"
    return f"{place} {finding.rule} {finding.tier.label}"


def needs_a_person(outcome: Outcome) -> list[str]:
    findings = (f for c in outcome.conversions for f in c.findings if f.tier is Tier.MANUAL)
    return sorted(finding.rule for finding in findings)


# -- What is converted and said ------------------------------------------------------------------------------------


@by_case
def test_the_output_is_the_expected_one(name: str, form: str) -> None:
    outcome, after = converted(name, form)
    assert not outcome.failures
    assert after == in_bytes(CASES[name].outputs, form)


@by_case
def test_the_findings_are_the_expected_ones(name: str, form: str) -> None:
    outcome, _ = converted(name, form)
    expected = list(CASES[name].findings)
    assert sorted(said(f) for c in outcome.conversions for f in c.findings) == sorted(expected)
    assert outcome.exit_code == (1 if any(not finding.endswith("note") for finding in expected) else 0)


@pytest.mark.parametrize("name", [case.id for case in CASES.values() if case.says])
def test_the_findings_say_what_matters(name: str) -> None:
    outcome, _ = converted(name, CASES[name].form[0])
    for line, text in CASES[name].says.items():
        here = [f"{f.rule} {f.message}" for c in outcome.conversions for f in c.findings if f.line == int(line)]
        assert any(text in message for message in here), f"line {line}: {here}"


@pytest.mark.parametrize("name", [case.id for case in CASES.values() if case.mentions])
def test_the_report_names_the_files_beside(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    root = written(tmp_path, {**in_bytes(case.inputs, "utf-8"), **in_bytes(case.files, "utf-8")})
    result = CliRunner().invoke(cli, ["convert", str(root)])
    for text in case.mentions:
        assert text in result.output


# -- What holds for every conversion -------------------------------------------------------------------------------


@by_change
def test_the_output_parses(name: str, form: str) -> None:
    for path, raw in converted(name, form)[1].items():
        if form == "notebook":
            validate(raw)
            assert not NotebookCode(read_notebook(Document.from_bytes(Path(path), raw))).failures
        else:
            ast.parse(raw, path)


@by_change
def test_a_second_run_changes_nothing_and_says_what_was_left(name: str, form: str) -> None:
    first, after = converted(name, form)
    second, again = converted(name, form, second=True)
    assert again == after
    assert not second.helpers
    assert needs_a_person(second) == needs_a_person(first)
    assert second.exit_code == (1 if needs_a_person(first) else 0)


@by_case
def test_statement_by_statement_equals_the_whole_module(name: str, form: str) -> None:
    form = "utf-8" if form == "large" else form  # libcst takes 10 s for the large table
    for path, raw in in_bytes(CASES[name].inputs, form).items():
        document = Document.from_bytes(Path(path), raw)
        project = Project.of([(Path(path), raw)])
        convert_one = convert_notebook if form == "notebook" else convert
        small = convert_one(document, project, HelperNames(), Options())
        whole = convert_one(document, project, HelperNames(), Options(), whole_module=True)
        assert whole.after == small.after
        assert whole.findings == small.findings


@by_change
def test_no_other_line_moves(name: str, form: str) -> None:
    """Each line that is not kept was named by a finding, or is an import."""
    outcome, _ = converted(name, form)
    for done in outcome.changed:
        before = done.document.raw.splitlines(keepends=True)
        now = done.after.splitlines(keepends=True)
        spots = {n for f in done.applied for n in _lines(done.document.utf8, f.start, f.end)}
        for tag, start, end, _, _ in difflib.SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
            for number in range(start + 1, end + 1) if tag != "equal" else ():
                assert number in spots or re.match(rb'\s*"?(?:from|import)\b', before[number - 1])


def _lines(utf8: bytes, start: int, end: int) -> range:
    return range(utf8.count(b"\n", 0, start) + 1, utf8.count(b"\n", 0, end) + 2)


# -- Files that cannot be converted --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [case.id for case in CASES.values() if case.failure])
def test_a_file_that_fails_is_named_and_stops_nothing(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (path, text), *_ = case.inputs.items()
    root = written(tmp_path, {path: in_form(text, case.form[0]), "beside.py": BESIDE.encode()})
    outcome = run(Request((root,)))
    assert outcome.exit_code == 2
    (failure,) = outcome.failures
    assert failure.path == root / path
    assert failure.line == case.failure["line"]
    assert all(part in failure.reason for part in _texts(case.failure["says"]))
    assert [c.document.path.name for c in outcome.changed] == ["beside.py"]


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(part) for part in value]


def test_an_expression_that_is_too_deep_fails_alone(tmp_path: Path) -> None:
    case = load_case("fmt-23")
    deep = {path: text.replace("1 + 1 + 1", " + ".join(["1"] * 5000)) for path, text in case.inputs.items()}
    root = written(tmp_path, {**in_bytes(deep, "utf-8"), "beside.py": BESIDE.encode()})
    outcome = run(Request((root,)))
    names = [c.document.path.name for c in outcome.changed]
    assert names in (["beside.py"], ["beside.py", "input.py"])  # newer Pythons read it
    assert [failure.path.name for failure in outcome.failures] == (["input.py"] if len(names) == 1 else [])


# -- The surroundings of single cases ------------------------------------------------------------------------------


def test_the_executable_bit_stays(tmp_path: Path) -> None:
    script = written(tmp_path, in_bytes(CASES["fmt-02"].inputs, "utf-8")) / "input.py"
    script.chmod(0o755)
    CliRunner().invoke(cli, ["convert", "--write", str(script)])
    assert script.read_text() == CASES["fmt-02"].outputs["input.py"]
    assert stat.S_IMODE(script.stat().st_mode) == 0o755


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("order", [("one.py", "two.py"), ("two.py", "one.py")])
def test_no_state_leaks_from_file_to_file(order: tuple[str, str], jobs: int, tmp_path: Path) -> None:
    root = written(tmp_path, in_bytes(CASES["fmt-27"].inputs, "utf-8"))
    outcome = run(Request(tuple(root / name for name in order), jobs=jobs))
    assert {c.document.path.name: c.after.decode() for c in outcome.changed} == {
        "one.py": CASES["fmt-27"].outputs["one.py"]
    }


def test_an_excluded_file_stays_when_it_is_named(tmp_path: Path) -> None:
    case = CASES["wf-02"]
    root = written(tmp_path, in_bytes(case.inputs, "utf-8"))
    outcome = run(Request((root / "third_party/kern/net.py",), exclude=tuple(case.exclude), exclude_root=root))
    assert not outcome.conversions
    assert outcome.exit_code == 0
    assert [skipped.path.name for skipped in outcome.skipped]


def test_a_link_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", {"net.py": BESIDE.encode()})
    root = written(tmp_path / "inside", {"own.py": BESIDE.encode()})
    (root / "linked").symlink_to(outside, target_is_directory=True)
    assert [c.document.path.name for c in run(Request((root,))).changed] == ["own.py"]


def test_an_unreadable_file_is_a_failure(tmp_path: Path) -> None:
    root = written(tmp_path, in_bytes(CASES["wf-03"].inputs, "utf-8"))
    (root / "gone.py").symlink_to(root / "nowhere.py")
    outcome = run(Request((root / "gone.py", root / "input.py")))
    assert outcome.exit_code == 2
    assert [c.document.path.name for c in outcome.changed] == ["input.py"]


def test_one_rule_alone_brings_only_the_imports_it_needs() -> None:
    text = CASES["wf-05"].inputs["input.py"]
    document = Document.from_bytes(Path("input.py"), text.encode())
    options = Options(select=("UC401",))
    done = convert(document, Project.of([(Path("input.py"), text.encode())]), HelperNames(), options)
    assert done.after.decode() == text.replace("torch.cuda.amp", "ai_device")


# -- How the programs run ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder_of_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run for every program: ``<case>/<input or output>/<AI_DEVICE>``."""
    folder = tmp_path_factory.mktemp("programs")
    jobs = [job for case in CASES.values() if _can_run(case) for job in _prepared(case, folder / case.id)]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "ai_device.py").write_text(helper_source(), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key not in ("LOCAL_RANK", "RANK", "WORLD_SIZE")}
    runner = Path(__file__).with_name("cases.py")
    command = [sys.executable, "-W", "ignore", str(runner), str(folder / "jobs.json")]
    subprocess.run(command, env=environment, timeout=300, check=True)
    return folder


def _can_run(case: Case) -> bool:
    return len(case.inputs) == 1 and not case.failure and not case.is_notebook


def _prepared(case: Case, folder: Path) -> list[tuple[str, str | None]]:
    """Writes the programs of a case and gives their folders with the value of AI_DEVICE."""
    behaviour = case.behaviour
    (before,) = case.inputs.values()
    (after,) = case.outputs.values()
    bare = Behaviour() if not behaviour.compare else behaviour
    programs = [
        ("input", None, _around(before, bare)),
        *([("output", None, _around(after, bare))] if after != before else []),
        *([("output", "", _around(after, bare))] if case.id == "env-03" else []),
        *(("output", value, _around(after, behaviour)) for value in (["cpu"] if behaviour.cpu is not None else [])),
        *(("output", value, _around(after, behaviour)) for value in behaviour.errors),
    ]
    jobs = []
    for kind, value, text in programs:
        place = folder / kind / _name(value)
        place.mkdir(parents=True)
        (place / "program.py").write_bytes(in_form(text, "gbk" if "gbk" in case.form else "utf-8"))
        jobs.append((str(place), value))
    return jobs


def _around(text: str, behaviour: Behaviour) -> str:
    return f"{behaviour.before}\n{text}\n{behaviour.call}\n" if behaviour.before else f"{text}\n{behaviour.call}\n"


def _name(value: str | None) -> str:
    return "unset" if value is None else re.sub(r"\W", "_", value) or "empty"


def _finished(folder: Path, name: str, kind: str, value: str | None) -> Result:
    return result_of(folder / name / kind / _name(value))


RUN = [case.id for case in CASES.values() if _can_run(case)]


@pytest.mark.parametrize("name", RUN)
def test_unset_the_output_does_what_the_input_did(name: str, folder_of_programs: Path) -> None:
    before = _finished(folder_of_programs, name, "input", None)
    changed = CASES[name].outputs is not CASES[name].inputs
    after = _finished(folder_of_programs, name, "output", None) if changed else before
    assert after.printed == before.printed
    assert after.error.partition(":")[0] == before.error.partition(":")[0]
    if CASES[name].behaviour.unset is not None:
        assert re.fullmatch(CASES[name].behaviour.unset or "", after.printed.rstrip("\n"), re.DOTALL)
        assert not after.error


def test_empty_counts_as_unset(folder_of_programs: Path) -> None:
    unset = _finished(folder_of_programs, "env-03", "output", None)
    assert _finished(folder_of_programs, "env-03", "output", "") == unset


@pytest.mark.parametrize("name", [name for name in RUN if CASES[name].behaviour.cpu is not None])
def test_with_the_cpu_selected_the_output_runs(name: str, folder_of_programs: Path) -> None:
    result = _finished(folder_of_programs, name, "output", "cpu")
    assert not result.error
    assert re.fullmatch(CASES[name].behaviour.cpu or "", result.printed.rstrip("\n"), re.DOTALL), result.printed


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in RUN for value in CASES[name].behaviour.errors])
def test_a_device_that_is_not_there_is_a_clear_error(name: str, value: str, folder_of_programs: Path) -> None:
    result = _finished(folder_of_programs, name, "output", value)
    assert all(text in result.error for text in CASES[name].behaviour.errors[value]), result.error
