"""``uncuda check`` as a user calls it: what is said, fixed and shown, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from conversion import Run, Tree
from fixture_runs import FIXTURES
from test_command_line import on_a_terminal, uncuda

import codemods
from codemods.check.pipeline import Mode, check
from codemods.check.reported import Reported
from codemods.cli.main import cli
from codemods.engine.outcome import Request
from codemods.findings import Tier
from codemods.runtime import helper_source
from codemods.source.document import SourceError

CALL = "import torch\n\nx = torch.ones(1).cuda()\n"
CALL_AFTER = "import torch\n\nimport ai_device\n\nx = torch.ones(1).to(ai_device.device())\n"
INDEX = "import torch\n\nx = torch.ones(1).to(0)\n"
GRAPH = "import torch\n\ng = torch.cuda.CUDAGraph()\n"
NOTE = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
BROKEN = "x.cuda(\n"
MIXED = "import torch\n\nx = torch.ones(1).cuda()\ny = torch.ones(1).to(0)\ng = torch.cuda.CUDAGraph()\n"


def codes(run: Run) -> list[str]:
    """The rules of the findings that are printed, in their order."""
    return [line.split()[1] for line in run.stdout.splitlines()]


# -- what is printed -------------------------------------------------------------------------------------------------


def test_one_line_a_finding(tree: Tree) -> None:
    tree.write({"pkg/a.py": MIXED, "b.py": "import os\n"})
    run = tree.run("check", ".")
    assert run.exit_code == 1
    first, second, third = run.stdout.splitlines()
    assert first == "pkg/a.py:3:5 UC101 [*] moves to CUDA; move to the selected device"
    assert second.startswith("pkg/a.py:4:5 UC104 an integer is a CUDA index")
    assert third.startswith("pkg/a.py:5:5 UC503 ")
    assert run.stderr == (
        "3 findings in 1 file; 1 marked [*] can be fixed with --fix; 1 more with --fix --unsafe-fixes\n"
    )
    assert tree.files() == {"pkg/a.py": MIXED.encode(), "b.py": b"import os\n"}


@pytest.mark.parametrize("source", ["", "import os\n", NOTE, "# x.cuda()\n", CALL_AFTER])
def test_quiet_where_there_is_nothing_to_say(tree: Tree, source: str) -> None:
    tree.write({"a.py": source, "ai_device.py": helper_source()})
    for arguments in ((), ("--fix",), ("--diff",), ("--stats",)):
        assert tree.run("check", ".", *arguments) == Run(0, "", b"", "")


def test_the_working_directory_is_checked_where_no_path_is_given(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    assert tree.run("check").stdout == tree.run("check", ".").stdout != ""


def test_paths_are_shown_from_the_working_directory(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"pkg/a.py": GRAPH, "b.py": GRAPH})
    monkeypatch.chdir(tree.root / "pkg")
    places = [line.split()[0] for line in tree.run("check", "..").stdout.splitlines()]
    assert places == ["../b.py:3:5", "a.py:3:5"]


def test_notes(tree: Tree) -> None:
    tree.write({"a.py": NOTE})
    run = tree.run("check", ".", "--notes")
    assert run.exit_code == 0
    assert run.stdout.startswith("a.py:3:1 UC901 info: ")


def test_stats(tree: Tree) -> None:
    tree.write({"a.py": MIXED, "b.py": CALL})
    lines = tree.run("check", ".", "--stats").stderr.splitlines()
    assert "    2  UC101  [*]  `.cuda()` moves to one vendor's device" in lines
    assert "    1  UC503       a part of `torch.cuda` without a general form" in lines


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tree: Tree) -> None:
    tree.write({"a.py": BROKEN, "b.py": GRAPH})
    run = tree.run("check", ".", "missing.py")
    assert run.exit_code == 2
    assert codes(run) == ["UC503"]
    assert "a.py:1: does not parse" in run.stderr
    assert "missing.py: does not exist" in run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal(tree: Tree) -> None:
    # A tab, and characters that take two places.
    tree.write({"a.py": "import torch\n\nif True:\n\tx = '日本', torch.ones(1).cuda(), torch.cuda.CUDAGraph()\n"})
    plain = on_a_terminal(tree, "check", ".", NO_COLOR="1").replace("\r", "").splitlines()
    plain = [line for line in (_without_controls(line).rstrip() for line in plain) if line]
    assert plain[-11:-7] == [
        "a.py:4:12 UC101 [*] moves to CUDA; move to the selected device",
        " 4 | x = '日本', torch.ones(1).cuda(), torch.cuda.CUDAGraph()",
        "   |             ^^^^^^^^^^^^^^^^^^^^",
        "   + x = '日本', torch.ones(1).to(ai_device.device()), torch.cuda.CUDAGraph()",
    ]
    shown = on_a_terminal(tree, "check", ".")
    assert "\x1b[31m^^^^" in shown
    assert "2 findings in 1 file" in shown
    assert "`.cuda()` moves to one vendor's device" in shown


def _without_controls(line: str) -> str:
    return re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", line)


# -- exit codes ------------------------------------------------------------------------------------------------------

WARNING = {"pyproject.toml": "[tool.uncuda]\nseverity = {UC = 'warning'}\n"}


@pytest.mark.parametrize(
    ("files", "arguments", "expected"),
    [
        ({}, (), 0),
        ({"a.py": "import os\n"}, (), 0),
        ({"a.py": NOTE}, (), 0),
        ({"a.py": NOTE}, ("--notes",), 0),
        ({"a.py": CALL}, (), 1),
        ({"a.py": GRAPH}, (), 1),
        ({"a.py": BROKEN}, (), 2),
        ({"a.py": BROKEN, "b.py": CALL}, (), 2),
        ({"a.py": CALL}, ("--fix",), 1),  # a hook that changed something fails
        ({"a.py": CALL_AFTER, "ai_device.py": helper_source()}, ("--fix",), 0),
        ({"a.py": INDEX}, ("--fix",), 1),
        ({"a.py": NOTE}, ("--fix",), 0),
        ({"a.py": BROKEN, "b.py": CALL}, ("--fix",), 2),
        ({"a.py": CALL}, ("--diff",), 1),
        ({"a.py": GRAPH}, ("--diff",), 1),
        ({"a.py": NOTE}, ("--diff",), 0),
        ({"a.py": CALL}, ("--exit-zero",), 0),
        ({"a.py": CALL}, ("--exit-zero", "--fix"), 0),
        ({"a.py": BROKEN}, ("--exit-zero",), 2),
        ({"a.py": GRAPH, **WARNING}, (), 0),
        ({"a.py": CALL, **WARNING}, ("--fix",), 1),
        ({"a.py": CALL, **WARNING}, ("--diff",), 1),
        ({"a.py": CALL}, ("--ignore", "UC1"), 0),
        ({"a.py": CALL}, ("--exclude", "a.py"), 0),
    ],
)
@pytest.mark.parametrize("format_", ["text", "json"])
def test_exit_codes(tree: Tree, files: dict[str, str], arguments: tuple[str, ...], expected: int, format_: str) -> None:
    if format_ == "json" and "--diff" in arguments:
        pytest.skip("does not go together")
    tree.write(files)
    assert tree.run("check", ".", "--format", format_, *arguments).exit_code == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("--format", "xml"),
        ("--no-such-option",),
        ("--jobs", "0"),
        ("--select", "UC999"),
        ("--ignore", "UC999"),
        ("--extend-select", "UC999"),
        ("--helper-name", "not-a-name"),
        ("--stdin-filename", "a.py"),
        ("-", "a.py"),
        ("--diff", "--format", "json"),
        ("-", "--fix", "--format", "sarif"),
    ],
)
def test_wrong_usage_is_2(tree: Tree, arguments: tuple[str, ...]) -> None:
    tree.write({"a.py": CALL})
    run = tree.run("check", *arguments)
    assert run.exit_code == 2
    assert run.stderr
    assert run.stdout == ""


def test_an_own_module_of_the_helpers_name(tree: Tree) -> None:
    tree.write({"a.py": CALL, "ai_device.py": "MINE = 1\n"})
    run = tree.run("check", "a.py", "--fix")
    assert run.exit_code == 2
    assert "choose another name with --helper-name" in run.stderr
    assert tree.read("a.py") == CALL
    assert codes(tree.run("check", "a.py")) == ["UC101"]
    (finding,) = json.loads(tree.run("check", "a.py", "--format", "json").stdout)["findings"]
    assert (finding["rule"], finding["fix"], finding["edits"]) == ("UC101", "safe", [])


# -- fixes -----------------------------------------------------------------------------------------------------------


def test_fix_writes_what_is_safe_with_the_helper(tree: Tree) -> None:
    tree.write({"a.py": MIXED, "b.py": GRAPH})
    expected = tree.run("convert", ".", "--tier", "safe").stdout
    assert tree.run("check", ".", "--diff").stdout == expected
    run = tree.run("check", ".", "--fix")
    assert run.exit_code == 1
    assert tree.read("ai_device.py") == helper_source()
    assert tree.read("a.py") == CALL_AFTER + MIXED.partition(".cuda()\n")[2]
    assert "wrote ai_device.py\nwrote a.py\n" in run.stderr
    assert codes(run) == ["UC104", "UC503", "UC503"]


def test_what_a_fix_leaves_is_said_with_its_new_place(tree: Tree) -> None:
    tree.write(
        {
            "a.py": MIXED,
            "b.py": "import torch\nfrom torch.cuda import amp\n\n\n"
            "def f(x, é):\n    'é'; x.to(0)  # uncuda: ignore[UC2]\n"
            "    with amp.autocast():\n        return torch.cuda.CUDAGraph(), x.cuda(), torch.ones(1).to(1)\n",
        }
    )
    first = tree.run("check", ".", "--fix")
    second = tree.run("check", ".")
    assert first.stdout == second.stdout != ""
    assert second.stderr in first.stderr


def test_a_second_fix_changes_nothing(tree: Tree) -> None:
    tree.write({"a.py": MIXED, "pkg/__init__.py": "", "pkg/b.py": CALL})
    tree.run("check", ".", "--fix", "--unsafe-fixes")
    before = tree.files()
    run = tree.run("check", ".", "--fix", "--unsafe-fixes")
    assert tree.files() == before
    assert "wrote" not in run.stderr


def test_unsafe_fixes(tree: Tree) -> None:
    tree.write({"a.py": MIXED})
    assert "[*]" in tree.run("check", ".", "--unsafe-fixes").stdout.splitlines()[1]
    assert tree.files() == {"a.py": MIXED.encode()}
    expected = tree.run("convert", ".").stdout
    assert tree.run("check", ".", "--diff", "--unsafe-fixes").stdout == expected
    run = tree.run("check", ".", "--fix", "--unsafe-fixes")
    assert ".to(ai_device.device(0))" in tree.read("a.py")
    assert codes(run) == ["UC503"]


def test_diff_changes_nothing_and_leaves_standard_output_to_the_patch(tree: Tree) -> None:
    tree.write({"a.py": MIXED})
    for arguments in (("--diff",), ("--diff", "--fix")):
        run = tree.run("check", ".", *arguments)
        assert tree.files() == {"a.py": MIXED.encode()}
        assert "+x = torch.ones(1).to(ai_device.device())\n" in run.stdout
        assert "UC" not in run.stdout.partition("--- a/a.py")[2]
        assert run.stderr.startswith("a.py:4:5 UC104 ")
        assert "UC101" not in run.stderr


def test_the_patch_is_one_that_git_takes(tree: Tree) -> None:
    tree.write({"a.py": MIXED, "pkg/b.py": CALL.replace("\n", "\r\n")})
    tree.git_init()
    patch = tree.run("check", ".", "--diff").stdout_bytes
    subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=tree.root, input=patch, check=True)
    assert tree.run("check", ".", "--diff").stdout == ""
    assert "ai_device.py" in tree.files()


def test_a_waived_place_is_not_fixed(tree: Tree) -> None:
    source = CALL.replace("()\n", "()  # uncuda: ignore[UC101]\n") + "y = torch.ones(1).cuda()\n"
    tree.write({"a.py": source})
    tree.run("check", ".", "--fix")
    assert "x = torch.ones(1).cuda()  # uncuda" in tree.read("a.py")
    assert "y = torch.ones(1).to(ai_device.device())" in tree.read("a.py")


def test_what_cannot_be_written_is_still_reported(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"a.py": CALL, "b.py": CALL})

    def write(path: Path, data: bytes) -> None:
        if path.name == "b.py":
            raise SourceError(path, "cannot be written: no space left on device")
        path.write_bytes(data)

    monkeypatch.setattr("codemods.report.patch.write_atomically", write)
    run = tree.run("check", ".", "--fix")
    assert run.exit_code == 2
    assert run.stdout.splitlines() == ["b.py:3:5 UC101 [*] moves to CUDA; move to the selected device"]
    assert "b.py: cannot be written: no space left on device" in run.stderr


def test_nothing_is_fixed_without_the_helper(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"a.py": CALL})

    def write(path: Path, data: bytes) -> None:
        raise SourceError(path, "cannot be written: read-only file system")

    monkeypatch.setattr("codemods.report.patch.write_atomically", write)
    run = tree.run("check", ".", "--fix")
    assert (run.exit_code, codes(run)) == (2, ["UC101"])
    assert "ai_device.py: cannot be written: read-only file system" in run.stderr
    assert tree.files() == {"a.py": CALL.encode()}


# -- filters: the place where a baseline and the lines of a change come in --------------------------------------------


def _checked(tree: Tree, mode: Mode, kept: Sequence[str]) -> list[str]:
    def only_kept(reported: list[Reported]) -> list[Reported]:
        return [item for item in reported if item.finding.rule in kept]

    request = Request(paths=(tree.root,), tier=Tier.REVIEW)
    checked = check(request, mode, [only_kept])
    assert not checked.failed
    return [item.finding.rule for item in checked.reported]


def test_what_a_filter_takes_out_is_neither_reported_nor_fixed(tree: Tree) -> None:
    tree.write({"a.py": MIXED, "pkg/b.py": INDEX, "pkg/c.py": GRAPH})
    assert _checked(tree, Mode.REPORT, ["UC104"]) == ["UC104", "UC104"]
    assert _checked(tree, Mode.FIX, ["UC101", "UC503"]) == ["UC503", "UC503"]
    assert tree.read("a.py").startswith(CALL_AFTER)
    assert ".to(0)" in tree.read("a.py")
    assert tree.read("pkg/b.py") == INDEX
    assert set(tree.files()) == {"a.py", "ai_device.py", "pkg/b.py", "pkg/c.py"}


def test_what_belongs_to_a_place_that_a_filter_takes_out_is_left(tree: Tree) -> None:
    source = "import torch\n\nx = torch.ones(1)\nif torch.cuda.is_available():\n    x = x.cuda()\n"
    tree.write({"a.py": source})
    assert _checked(tree, Mode.FIX, ["UC101"]) == ["UC101"]
    assert tree.files() == {"a.py": source.encode()}


# -- what is chosen --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ("", (), ["UC101", "UC104", "UC503"]),
        ("", ("--select", "uc101"), ["UC101"]),
        ("", ("--select", "UC1", "--ignore", "UC101"), ["UC104"]),
        ("", ("--extend-select", "UC5"), ["UC101", "UC104", "UC503"]),
        ("select = ['UC1']", (), ["UC101", "UC104"]),
        ("select = ['uc1']", (), ["UC101", "UC104"]),
        ("select = ['UC101']", ("--extend-select", "UC5"), ["UC101", "UC503"]),
        ("select = ['UC101']", ("--select", "UC104"), ["UC104"]),
        ("ignore = ['UC101', 'UC503']", ("--extend-select", "UC5"), ["UC104", "UC503"]),
        ("per-file-ignores = {'a.py' = ['UC1']}", (), ["UC503"]),
        ("per-file-ignores = {'a.py' = ['uc101'], '*.py' = ['UC5']}", (), ["UC104"]),
        ("per-file-ignores = {'tests/*' = ['UC1']}", (), ["UC101", "UC104", "UC503"]),
    ],
)
def test_rules(tree: Tree, settings: str, options: tuple[str, ...], expected: list[str]) -> None:
    tree.write({"a.py": MIXED, "pyproject.toml": f"[tool.uncuda]\n{settings}\n"})
    assert codes(tree.run("check", "a.py", *options)) == expected


def test_rules_by_file_are_from_the_settings_folder(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write(
        {
            "pyproject.toml": "[tool.uncuda.per-file-ignores]\n'tests/' = ['UC1']\n",
            "tests/deep/a.py": CALL,
            "pkg/tests/b.py": CALL,
            "pkg/c.py": CALL,
        }
    )
    monkeypatch.chdir(tree.root / "tests")
    assert [line.split(":")[0] for line in tree.run("check", "..").stdout.splitlines()] == ["../pkg/c.py"]
    tree.run("convert", "..", "--write")
    assert tree.read("tests/deep/a.py") == CALL


def test_severity(tree: Tree) -> None:
    tree.write(
        {
            "a.py": MIXED,
            "pyproject.toml": "[tool.uncuda.severity]\nUC1 = 'warning'\nUC104 = 'error'\nuc5 = 'info'\n",
        }
    )
    run = tree.run("check", "a.py")
    assert run.exit_code == 1
    first, second, third = (line.split(" ", 2)[2] for line in run.stdout.splitlines())
    assert first.startswith("[*] warning: moves")
    assert second.startswith("an integer")
    assert third.startswith("info: ")


@pytest.mark.parametrize(
    "line",
    ["severity = {UC1 = 'fatal'}", "severity = {UC999 = 'error'}", "per-file-ignores = {'a' = ['UC999']}"],
)
def test_settings_that_cannot_be_used(tree: Tree, line: str) -> None:
    tree.write({"pyproject.toml": f"[tool.uncuda]\n{line}\n", "a.py": CALL})
    run = tree.run("check", ".")
    assert run.exit_code == 2
    assert run.stdout == ""


def test_excluded_files_that_are_named_are_left_out(tree: Tree) -> None:
    tree.write({"pyproject.toml": "[tool.uncuda]\nexclude = ['old/']\n", "old/a.py": CALL, "b.py": CALL})
    run = tree.run("check", "old/a.py", "b.py", "--fix")
    assert tree.read("old/a.py") == CALL
    assert "wrote b.py" in run.stderr


# -- standard input --------------------------------------------------------------------------------------------------


def piped(tree: Tree, text: str | bytes, *arguments: str) -> Run:
    result = CliRunner().invoke(cli, ["check", "-", *arguments], input=text, prog_name="uncuda")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Run(result.exit_code, result.stdout, result.stdout_bytes, result.stderr)


def test_standard_input(tree: Tree) -> None:
    tree.write({"pkg/a.py": "import os\n"})
    run = piped(tree, MIXED, "--stdin-filename", "pkg/a.py")
    assert run.exit_code == 1
    tree.write({"pkg/a.py": MIXED})
    assert (run.stdout, run.stderr) == (tree.run("check", "pkg/a.py").stdout, tree.run("check", "pkg/a.py").stderr)


def test_standard_input_of_a_file_that_is_not_there(tree: Tree) -> None:
    run = piped(tree, GRAPH, "--stdin-filename", "new/folder/a.py")
    assert run.stdout.startswith("new/folder/a.py:3:5 UC503 ")
    assert tree.files() == {}


def test_standard_input_without_a_name(tree: Tree) -> None:
    assert piped(tree, GRAPH).stdout.startswith("stdin.py:3:5 UC503 ")
    assert piped(tree, "import os\n") == Run(0, "", b"", "")


def test_standard_input_is_seen_in_its_repository(tree: Tree) -> None:
    tree.write({"net.py": "class Net:\n    def cuda(self):\n        return self\n"})
    text = "from net import Net\n\nm = Net().cuda()\n"
    assert "UC106" in piped(tree, text, "--stdin-filename", "a.py").stdout
    tree.write({"pyproject.toml": "[tool.uncuda]\nignore = ['UC106']\nexclude = ['old.py']\n"})
    assert "UC106" not in piped(tree, text, "--stdin-filename", "a.py").stdout
    assert piped(tree, CALL, "--stdin-filename", "old.py") == Run(0, "", b"", "")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (CALL, CALL_AFTER.encode()),
        (CALL.replace("\n", "\r\n").encode(), CALL_AFTER.replace("\n", "\r\n").encode()),
        (b"\xef\xbb\xbf" + CALL.encode(), b"\xef\xbb\xbf" + CALL_AFTER.encode()),
        (GRAPH, GRAPH.encode()),
        ("import os", b"import os"),
        (BROKEN, BROKEN.encode()),
        ("", b""),
    ],
)
def test_fixed_text_goes_to_standard_output(tree: Tree, raw: str | bytes, expected: bytes) -> None:
    tree.write({"a.py": "import os\n", "ai_device.py": helper_source()})
    before = tree.files()
    run = piped(tree, raw, "--stdin-filename", "a.py", "--fix")
    assert run.stdout_bytes == expected
    assert tree.files() == before
    changed = expected != (raw if isinstance(raw, bytes) else raw.encode())
    assert run.exit_code == (2 if raw == BROKEN else 1 if changed or raw == GRAPH else 0)
    assert ("UC503" in run.stderr) == (raw == GRAPH)


def test_an_excluded_text_comes_out_as_it_went_in(tree: Tree) -> None:
    run = piped(tree, CALL, "--stdin-filename", "a.py", "--fix", "--exclude", "a.py")
    assert (run.exit_code, run.stdout) == (0, CALL)


def test_a_helper_that_a_fixed_text_needs_is_named(tree: Tree) -> None:
    run = piped(tree, CALL, "--stdin-filename", "a.py", "--fix")
    assert run.stderr == "uncuda: the text imports ai_device.py, which --fix writes beside a file\n"
    assert tree.files() == {}


def test_diff_of_standard_input(tree: Tree) -> None:
    tree.write({"a.py": "import os\n", "ai_device.py": helper_source()})
    run = piped(tree, CALL, "--stdin-filename", "a.py", "--diff")
    assert run.exit_code == 1
    assert run.stdout.startswith("diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n")
    assert "-x = torch.ones(1).cuda()\n" in run.stdout


def test_standard_input_as_json(tree: Tree) -> None:
    assert '"path": "a.py"' in piped(tree, CALL, "--stdin-filename", "a.py", "--format", "json").stdout


# -- as a process ----------------------------------------------------------------------------------------------------


def test_piped_output_is_plain_and_without_a_bar(tree: Tree) -> None:
    tree.write({"a.py": MIXED})
    done = uncuda(tree, "check", ".", FORCE_COLOR="")
    assert b"\x1b" not in done.stdout + done.stderr
    assert done.stdout.decode() == tree.run("check", ".").stdout


_LOADED = """
import sys
from codemods.cli.main import cli
try:
    cli(['check', *sys.argv[1:]])
except SystemExit as end:
    print(end.code, sorted({'libcst', 'rich', 'torch', 'xml', 'multiprocessing'} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("source", "arguments", "loaded"),
    [
        ("import os\n", (), "0 []"),
        ("import os\n", ("--fix",), "0 []"),
        ("import os\n", ("--format", "json"), "0 []"),
        (CALL, (), "1 ['libcst']"),
    ],
)
def test_only_what_is_needed_is_imported(tree: Tree, source: str, arguments: tuple[str, ...], loaded: str) -> None:
    tree.write({"a.py": source})
    path = str(Path(codemods.__file__).parent.parent)
    command = [sys.executable, "-c", _LOADED, ".", *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == loaded


def test_one_process_or_two_give_the_same(tree: Tree) -> None:
    tree.write({f"p{i}/m{i}.py": (CALL, MIXED, GRAPH, BROKEN, NOTE)[i % 5] for i in range(30)})
    one, two = (tree.run("check", ".", "--jobs", str(jobs), "--stats") for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("name", sorted(path.name for path in (FIXTURES / "repositories").iterdir()))
def test_a_repository(tree: Tree, name: str) -> None:
    """Every way of asking says the same of it, and what a fix leaves is what is found then."""
    shutil.copytree(FIXTURES / "repositories" / name, tree.root, dirs_exist_ok=True)
    lines = tree.run("check").stdout.splitlines()
    found = json.loads(tree.run("check", "--format", "json").stdout)["findings"]
    assert [line.split()[:2] for line in lines] == [
        [f"{item['path']}:{item['start']['line']}:{item['start']['column']}", item["rule"]] for item in found
    ]
    run = tree.run("check", "--fix", "--unsafe-fixes")
    assert run.stdout == tree.run("check", "--unsafe-fixes").stdout
    assert "[*]" not in run.stdout
