"""``uncuda convert``, ``explain`` and ``rules`` as a user calls them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conversion import Tree
from notebooks import as_json, notebook_of

import codemods
from codemods.catalogue import load_catalogue
from codemods.runtime import helper_source, is_helper

CALL = "import torch\n\nx = torch.ones(1).cuda()\n"
CALL_AFTER = "import torch\n\nimport ai_device\n\nx = torch.ones(1).to(ai_device.device())\n"
INDEX = "import torch\n\ncuda = torch.ones(1).to(0)\n"
GRAPH = "import torch\n\ng = torch.cuda.CUDAGraph()\n"
NOTE = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
MIXED = (
    "import torch\n\ntorch.cuda.set_device(0)\nx = torch.ones(1).cuda().to(1)\ng = torch.cuda.CUDAGraph()\n"
    "torch.backends.cudnn.benchmark = True\n"
)


def uncuda(tree: Tree, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    path = os.pathsep.join([str(Path(codemods.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    command = [sys.executable, "-m", "codemods", *arguments]
    return subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, check=False)


# -- what is printed and written -------------------------------------------------------------------------------------


def test_a_patch_is_printed_and_nothing_is_written(tree: Tree) -> None:
    tree.write({"train.py": CALL})
    run = tree.run("convert", ".")
    assert run.exit_code == 1
    assert tree.files() == {"train.py": CALL.encode()}
    assert "--- a/train.py\n+++ b/train.py\n" in run.stdout
    assert "--- /dev/null\n+++ b/ai_device.py\n" in run.stdout
    assert "-x = torch.ones(1).cuda()\n" in run.stdout
    assert "+x = torch.ones(1).to(ai_device.device())\n" in run.stdout
    assert "1 file read, 1 to change: 1 site converted (1 safe, 0 to review)" in run.stderr


def test_only_the_patch_goes_to_standard_output(tree: Tree) -> None:
    tree.write({"train.py": MIXED, "bad.py": "x.cuda(\n", "k.cu": "", "n.ipynb": '{"cells": ["cuda"]}'})
    run = tree.run("convert", ".", "--stats")
    allowed = ("diff --git ", "new file mode ", "index ", "--- ", "+++ ", "@@ ", " ", "+", "-", "\\ No newline")
    assert all(line.startswith(allowed) or not line for line in run.stdout.splitlines())
    assert not re.search(r"^(diff|@@|---|\+\+\+)", run.stderr, re.MULTILINE)


def test_write(tree: Tree) -> None:
    tree.write({"train.py": CALL})
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 1
    assert run.stdout == ""
    assert tree.read("train.py") == CALL_AFTER
    assert tree.read("ai_device.py") == helper_source()
    assert "wrote ai_device.py\nwrote train.py\n" in run.stderr


def test_a_second_run_changes_nothing(tree: Tree) -> None:
    tree.write(
        {"train.py": MIXED, "pkg/__init__.py": "", "pkg/net.py": CALL, "pkg/sub/run.py": CALL, "test_a.py": CALL}
    )
    tree.run("convert", ".", "--write")
    before = tree.files()
    run = tree.run("convert", ".", "--write")
    assert tree.files() == before
    assert "wrote" not in run.stderr
    assert tree.run("convert", ".").stdout == ""


def test_a_second_run_over_fully_converted_files_has_nothing_to_say(tree: Tree) -> None:
    tree.write({"train.py": CALL})
    tree.run("convert", ".", "--write")
    run = tree.run("convert", ".")
    assert (run.exit_code, run.stdout) == (0, "")


def test_git_takes_the_patch(tree: Tree) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    files: dict[str, str | bytes] = {
        "train.py": MIXED,
        "pkg/__init__.py": "",
        "pkg/net.py": CALL.replace("\n", "\r\n"),
        "no_end.py": CALL.rstrip("\n"),
        "bom.py": b"\xef\xbb\xbf" + CALL.encode(),
        "latin.py": b"# coding: latin-1\n" + CALL.encode() + b"# caf\xe9\n",
        "mit leer.py": CALL,
        "größe.py": CALL,
    }
    tree.write(files)
    tree.git_init()
    assert tree.run("convert", ".", "--output", "change.patch").exit_code == 1
    patch = (tree.root / "change.patch").read_bytes()
    (tree.root / "change.patch").rename(tree.root.parent / "change.patch")
    before = tree.files()
    subprocess.run(["git", "apply", "--whitespace=nowarn", "../change.patch"], cwd=tree.root, check=True)
    applied = tree.files()
    tree_again = Tree(tree.root.parent / "again")
    tree_again.write(before)
    os.chdir(tree_again.root)
    tree_again.run("convert", ".", "--write")
    assert applied == tree_again.files()
    subprocess.run(["git", "apply", "-R", "--whitespace=nowarn", "../change.patch"], cwd=tree.root, check=True)
    assert tree.files() == before
    assert b"a/gr" in patch


def test_output_and_printing_are_the_same_patch(tree: Tree) -> None:
    tree.write({"train.py": CALL, "pkg/a.py": MIXED})
    printed = tree.run("convert", ".").stdout_bytes
    run = tree.run("convert", ".", "--output", str(tree.root.parent / "a.patch"))
    assert run.stdout == ""
    assert (tree.root.parent / "a.patch").read_bytes() == printed


def test_paths_of_the_patch_start_at_the_root_of_the_repository(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"pkg/train.py": CALL})
    monkeypatch.chdir(tree.root / "pkg")
    assert "+++ b/pkg/train.py" in tree.run("convert", "train.py").stdout


def test_places_are_shown_from_the_working_directory(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"pkg/train.py": GRAPH})
    monkeypatch.chdir(tree.root / "pkg")
    assert tree.run("convert", "train.py").stderr.startswith("train.py:3:5 UC503 manual ")


def test_what_is_left_is_said_with_its_place(tree: Tree) -> None:
    tree.write({"train.py": MIXED})
    run = tree.run("convert", ".")
    assert re.search(r"^train\.py:5:5 UC503 manual \S.*", run.stderr, re.MULTILINE)
    assert "1 site left to a person, 1 note" in run.stderr


def test_notes_are_said_when_they_are_asked_for(tree: Tree) -> None:
    tree.write({"train.py": MIXED})
    place = re.compile(r"^train\.py:6:1 UC901 note \S.*", re.MULTILINE)
    assert place.search(tree.run("convert", ".", "--notes").stderr)
    assert not place.search(tree.run("convert", ".").stderr)


# -- exit codes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 0),
        ({"a.py": ""}, 0),
        ({"a.py": "import os\n"}, 0),
        ({"a.py": "# x.cuda()\n"}, 0),
        ({"a.py": NOTE}, 0),
        ({"a.py": CALL}, 1),
        ({"a.py": GRAPH}, 1),
        ({"a.cu": ""}, 1),
        ({"a.ipynb": '{"cells": [{"cell_type": "code", "source": ["x.cuda()"]}]}'}, 1),
        ({"a.ipynb": '{"cells": [{"cell_type": "code", "source": ["x.cuda("]}]}'}, 2),
        ({"a.ipynb": '{"cells": [{"cell_type": "markdown", "source": ["x.cuda()"]}]}'}, 0),
        ({"a.ipynb": '{"cells": []}'}, 0),
        ({"a.py": "x.cuda(\n"}, 2),
        ({"a.py": "x.cuda(\n", "b.py": CALL}, 2),
        ({"a.txt": "x.cuda()"}, 0),
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_exit_codes(tree: Tree, files: dict[str, str], expected: int, write: bool) -> None:
    tree.write(files)
    assert tree.run("convert", ".", *(["--write"] if write else [])).exit_code == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert",),
        ("convert", ".", "--tier", "brave"),
        ("convert", ".", "--format", "xml"),
        ("convert", ".", "--jobs", "0"),
        ("convert", ".", "--no-such-option"),
        ("convert", "missing"),
        ("explain", "UC999"),
        ("explain",),
        ("no-such-verb",),
    ],
)
def test_wrong_usage_is_2(tree: Tree, arguments: tuple[str, ...]) -> None:
    run = tree.run(*arguments)
    assert run.exit_code == 2
    assert run.stderr
    assert run.stdout == ""


def test_a_code_that_does_not_exist_is_wrong_usage(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    for option in ("--select", "--ignore"):
        run = tree.run("convert", ".", option, "UC999")
        assert run.exit_code == 2
        assert "UC999" in run.stderr


def test_an_invalid_name_for_the_helper_is_wrong_usage(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    for name in ("not-a-name", "class", "", "a.b"):
        run = tree.run("convert", ".", "--helper-name", name)
        assert run.exit_code == 2
        assert run.stdout == ""


# -- what is chosen --------------------------------------------------------------------------------------------------


def changed_lines(stdout: str) -> list[str]:
    """The added lines of a patch, those of the helper left out."""
    files = stdout.split("diff --git ")
    parts = (part for part in files if not part.startswith("a/ai_device.py"))
    return [line[1:] for part in parts for line in part.splitlines() if re.match(r"\+(?!\+\+)", line)]


def test_tiers(tree: Tree) -> None:
    tree.write({"a.py": INDEX})
    assert "cuda = torch.ones(1).to(ai_device.device(0))" in changed_lines(tree.run("convert", ".").stdout)
    assert "cuda = torch.ones(1).to(ai_device.device(0))" in changed_lines(
        tree.run("convert", ".", "--tier", "review").stdout
    )
    safe = tree.run("convert", ".", "--tier", "safe")
    assert safe.stdout == ""
    assert "a.py:3:8 UC104 review" in safe.stderr
    assert safe.exit_code == 1


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--select", "UC101", {"UC101"}),
        ("--select", "uc101", {"UC101"}),
        ("--select", "UC5", {"UC501", "UC503"}),
        ("--select", "UC101,UC5", {"UC101", "UC501", "UC503"}),
        ("--select", "UC101, UC104", {"UC101", "UC104"}),
        ("--ignore", "UC5,UC9", {"UC101", "UC104"}),
        ("--ignore", "UC", set()),
    ],
)
def test_select_and_ignore(tree: Tree, option: str, value: str, expected: set[str]) -> None:
    tree.write({"a.py": MIXED})
    assert rules_in(report(tree, option, value)) == expected


def test_select_and_ignore_given_often(tree: Tree) -> None:
    tree.write({"a.py": MIXED})
    found = report(tree, "--select", "UC101", "--select", "UC5", "--ignore", "UC503")
    assert rules_in(found) == {"UC101", "UC501"}


def test_exclude(tree: Tree) -> None:
    tree.write({"a.py": CALL, "b/c.py": CALL, "b/d.py": CALL})
    paths = {file["path"] for file in report(tree, "--exclude", "b/c.py")["files"]}
    assert paths == {"a.py", "b/d.py"}
    assert {file["path"] for file in report(tree, "--exclude", "b/")["files"]} == {"a.py"}


def test_exclude_holds_for_paths_that_are_named(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    run = tree.run("convert", "a.py", "--exclude", "a.py")
    assert (run.exit_code, run.stdout) == (0, "")


def test_only_the_named_files_are_converted(tree: Tree) -> None:
    tree.write({"a.py": CALL, "b.py": CALL})
    tree.run("convert", "a.py", "--write")
    assert tree.read("a.py") == CALL_AFTER
    assert tree.read("b.py") == CALL


def test_a_folder_above_the_working_directory(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"a.py": CALL, "pkg/b.py": CALL})
    (tree.root / "link").symlink_to("pkg")
    monkeypatch.chdir(tree.root / "pkg")
    for path in ("..", "../pkg/..", "../link/.."):
        run = tree.run("convert", path)
        assert "--- a/a.py\n+++ b/a.py\n" in run.stdout
        assert "--- a/pkg/b.py\n+++ b/pkg/b.py\n" in run.stdout


def test_a_link_that_is_named_by_way_of_a_folder_above_is_not_followed(tree: Tree) -> None:
    tree.write({"pkg/a.py": CALL})
    (tree.root / "link.py").symlink_to("pkg/a.py")
    assert tree.run("convert", "pkg/../link.py").stdout == ""


def test_paths_named_twice_count_once(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    run = tree.run("convert", "a.py", ".", "./a.py", str(tree.root / "a.py"), "--write")
    assert "1 file read" in run.stderr
    assert tree.read("a.py") == CALL_AFTER


def test_ignored_and_vendored_folders_are_skipped(tree: Tree) -> None:
    names = [
        "build/a.py", "third_party/a.py", ".venv/lib/a.py", "node_modules/a.py", "out/a.py", "logs/deep/a.py",
        "__pycache__/a.py", ".git/hooks/a.py", "env/lib/a.py",
    ]  # fmt: skip
    tree.write(dict.fromkeys(names, CALL))
    tree.write({".gitignore": "out/\n**/logs/\n", "env/pyvenv.cfg": "", "a.py": CALL, "src/a.py": CALL})
    assert [file["path"] for file in report(tree)["files"]] == ["a.py", "src/a.py"]
    tree.run("convert", ".", "--write")
    assert all((tree.root / name).read_text() == CALL for name in names)


def test_an_ignored_file_that_is_named_is_converted(tree: Tree) -> None:
    tree.write({".gitignore": "a.py\n", "a.py": CALL})
    tree.run("convert", "a.py", "--write")
    assert tree.read("a.py") == CALL_AFTER


def test_stubs_and_scripts_without_a_suffix_are_converted(tree: Tree) -> None:
    script = "#!/usr/bin/env python3\nimport torch\n\ntorch.ones(1).cuda()\n"
    tree.write({"run": script, "net.pyi": "import torch\n\ndef f(s: torch.cuda.Stream) -> None: ...\n"})
    tree.run("convert", "run", "net.pyi", "--write")
    assert tree.read("run").startswith("#!/usr/bin/env python3\nimport torch\n")
    assert ".to(ai_device.device())" in tree.read("run")
    assert "s: ai_device.Stream" in tree.read("net.pyi")


# -- the helper ------------------------------------------------------------------------------------------------------


def test_the_helper_is_not_converted(tree: Tree) -> None:
    tree.write({"ai_device.py": helper_source(), "a.py": CALL})
    tree.run("convert", ".", "--write")
    assert tree.read("ai_device.py") == helper_source()
    assert tree.run("convert", "ai_device.py").exit_code == 0


def test_an_old_helper_is_brought_up_to_date(tree: Tree) -> None:
    old = helper_source().replace(f"# uncuda helper {codemods.__version__}", "# uncuda helper 0.0.1") + "# old\n"
    tree.write({"ai_device.py": old, "a.py": CALL})
    tree.run("convert", ".", "--write")
    assert tree.read("ai_device.py") == helper_source()


def test_no_helper_is_written_where_nothing_needs_it(tree: Tree) -> None:
    tree.write({"a.py": GRAPH, "b.py": NOTE})
    tree.run("convert", ".", "--write")
    assert set(tree.files()) == {"a.py", "b.py"}


def test_an_own_module_of_that_name_is_a_conflict(tree: Tree) -> None:
    tree.write({"ai_device.py": "def device():\n    return 'mine'\n", "a.py": CALL})
    before = tree.files()
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 2
    assert "--helper-name" in run.stderr
    assert "ai_device.py" in run.stderr
    assert tree.files() == before


def test_another_name_for_the_helper(tree: Tree) -> None:
    tree.write(
        {"ai_device.py": "MINE = 1\n", "a.py": CALL, "b.py": "from torch.cuda import synchronize\n\nsynchronize()\n"}
    )
    run = tree.run("convert", ".", "--write", "--helper-name", "accel")
    assert run.exit_code == 1
    assert tree.read("a.py") == CALL_AFTER.replace("ai_device", "accel")
    assert tree.read("b.py") == "from accel import synchronize\n\nsynchronize()\n"
    assert is_helper(tree.read("accel.py"))
    assert tree.read("ai_device.py") == "MINE = 1\n"
    assert tree.run("convert", ".", "--helper-name", "accel").stdout == ""


def test_a_helper_of_the_repository(tree: Tree) -> None:
    tree.write(
        {"pkg/__init__.py": "", "pkg/device.py": "X = 1\n", "pkg/net.py": CALL, "run.py": "import pkg.net\n" + CALL}
    )
    run = tree.run("convert", ".", "--write", "--helper", "pkg.device")
    assert run.exit_code == 1
    assert "ai_device.py" not in tree.files()
    assert "pkg/ai_device.py" not in tree.files()
    for name in ("pkg/net.py", "run.py"):
        assert "import pkg.device as ai_device\n" in tree.read(name)
    assert tree.read("pkg/device.py") == "X = 1\n"


def test_a_helper_that_does_not_exist(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    run = tree.run("convert", ".", "--write", "--helper", "pkg.device")
    assert run.exit_code == 2
    assert "pkg.device" in run.stderr
    assert tree.files() == {"a.py": CALL.encode()}


# -- settings --------------------------------------------------------------------------------------------------------


def test_settings_of_the_project_are_used(tree: Tree) -> None:
    tree.write({
        "pyproject.toml": (
            "[tool.uncuda]\nselect = ['UC1', 'UC5']\nignore = ['UC503']\nexclude = ['old/']\ntier = 'safe'\n"
            "helper-name = 'accel'\n"
        ),
        "a.py": MIXED,
        "old/a.py": CALL,
    })  # fmt: skip
    found = report(tree)
    assert [file["path"] for file in found["files"]] == ["a.py"]
    assert rules_in(found) == {"UC101", "UC104", "UC501"}
    assert found["helpers"] == ["accel.py"]
    assert {f["rule"] for f in found["files"][0]["findings"] if f["applied"]} == {"UC101", "UC501"}


def test_the_command_line_is_stronger_than_the_settings(tree: Tree) -> None:
    tree.write(
        {"pyproject.toml": "[tool.uncuda]\nselect = ['UC5']\ntier = 'safe'\nhelper-name = 'accel'\n", "a.py": MIXED}
    )
    found = report(tree, "--select", "UC1", "--tier", "review", "--helper-name", "dev")
    assert rules_in(found) == {"UC101", "UC104"}
    assert found["helpers"] == ["dev.py"]
    assert all(finding["applied"] for finding in found["files"][0]["findings"])


def test_settings_are_found_from_a_folder_below(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"pyproject.toml": "[tool.uncuda]\nexclude = ['pkg/old/']\n", "pkg/a.py": CALL, "pkg/old/a.py": CALL})
    monkeypatch.chdir(tree.root / "pkg")
    assert [file["path"] for file in report(tree)["files"]] == ["a.py"]


@pytest.mark.parametrize("text", ["[tool.uncuda]\nselct = []\n", "[tool.uncuda]\ntier = 'bold'\n", "[tool.uncuda\n"])
def test_settings_that_cannot_be_used(tree: Tree, text: str) -> None:
    tree.write({"pyproject.toml": text, "a.py": CALL})
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 2
    assert "pyproject.toml" in run.stderr
    assert tree.read("a.py") == CALL


# -- views -----------------------------------------------------------------------------------------------------------


def report(tree: Tree, *arguments: str) -> Any:
    return json.loads(tree.run("convert", ".", "--format", "json", *arguments).stdout)


def rules_in(found: Any) -> set[str]:
    return {finding["rule"] for file in found["files"] for finding in file["findings"]}


def test_json(tree: Tree) -> None:
    source = "# é\nimport torch\n\nx = 'é', torch.ones(1).cuda()\ng = torch.cuda.CUDAGraph()\n"
    tree.write({
        "a.py": source, "bad.py": "x = 1\nx.cuda(\n", "k.cu": "", "build/b.py": CALL,
        "n.ipynb": as_json(notebook_of("CUDA.jl", metadata={"kernelspec": {"language": "julia"}})),
    })  # fmt: skip
    (tree.root / "lost.py").symlink_to("nowhere")
    found = report(tree)
    assert found["uncuda"] == codemods.__version__
    assert found["helpers"] == ["ai_device.py"]
    assert found["cuda_sources"] == ["k.cu"]
    assert found["notebooks"] == [{"path": "n.ipynb", "language": "julia"}]
    assert {"path": "build", "reason": "build output", "failed": False} in found["skipped"]
    assert [item["path"] for item in found["skipped"] if item["failed"]] == ["lost.py"]
    (failure,) = found["failures"]
    assert (failure["path"], failure["cell"], failure["line"]) == ("bad.py", None, 2)
    (file,) = found["files"]
    assert (file["path"], file["changed"]) == ("a.py", True)
    call, graph = file["findings"]
    assert (call["rule"], call["tier"], call["applied"], call["line"], call["column"]) == ("UC101", "safe", True, 4, 10)
    assert source.encode()[call["start"] : call["end"]] == b"torch.ones(1).cuda()"
    assert (graph["rule"], graph["tier"], graph["applied"], graph["edits"]) == ("UC503", "manual", False, [])
    text = source.encode()
    for edit in sorted(call["edits"], key=lambda edit: -edit["start"]):
        text = text[: edit["start"]] + edit["replacement"].encode() + text[edit["end"] :]
    assert text.decode() == source.replace(".cuda()", ".to(ai_device.device())")


def test_json_of_a_tree_with_nothing_to_say(tree: Tree) -> None:
    tree.write({"a.py": "import os\n"})
    found = report(tree)
    assert (found["files"], found["helpers"], found["failures"]) == ([], [], [])


def test_json_with_write(tree: Tree) -> None:
    tree.write({"a.py": CALL})
    run = tree.run("convert", ".", "--format", "json", "--write")
    assert json.loads(run.stdout)["files"][0]["changed"]
    assert tree.read("a.py") == CALL_AFTER


def test_one_process_or_two_give_the_same(tree: Tree) -> None:
    tree.write({f"p{i}/m{i}.py": (CALL, MIXED, GRAPH, "x.cuda(\n", NOTE)[i % 5] for i in range(30)})
    one, two = (tree.run("convert", ".", "--jobs", str(jobs), "--stats") for jobs in (1, 2))
    assert one == two
    assert one.exit_code == 2
    as_json = [tree.run("convert", ".", "--jobs", str(jobs), "--format", "json").stdout for jobs in (1, 2)]
    assert as_json[0] == as_json[1]


def test_the_order_of_the_paths_does_not_matter(tree: Tree) -> None:
    tree.write({"a.py": CALL, "b.py": MIXED, "c/d.py": CALL})
    paths = ["a.py", "b.py", "c"]
    assert tree.run("convert", *paths).stdout == tree.run("convert", *reversed(paths)).stdout


def test_stats(tree: Tree) -> None:
    tree.write({"a.py": MIXED, "b.py": CALL})
    lines = tree.run("convert", ".", "--stats").stderr.splitlines()
    assert any(re.match(r"UC101 +converted +2 +left +0 ", line) for line in lines)
    assert any(re.match(r"UC503 +converted +0 +left +1 ", line) for line in lines)
    assert not any(line.startswith("UC") for line in tree.run("convert", ".").stderr.splitlines())


def test_what_is_piped_is_plain(tree: Tree) -> None:
    tree.write({"a.py": MIXED.replace("\n", "\r\n")})
    done = uncuda(tree, "convert", ".", FORCE_COLOR="")
    assert done.returncode == 1
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"+x = torch.ones(1).to(ai_device.device())" in done.stdout
    assert b"ai_device.device(1))\r\n" in done.stdout
    assert done.stdout == tree.run("convert", ".").stdout_bytes


def on_a_terminal(tree: Tree, *arguments: str, **variables: str) -> str:
    """What the command writes to a terminal."""
    import pty

    path = os.pathsep.join([str(Path(codemods.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment = {**kept, "PYTHONPATH": path, "TERM": "xterm-256color", "COLUMNS": "120", **variables}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "codemods", *arguments]
    with subprocess.Popen(
        command, cwd=tree.root, env=environment, stdout=theirs, stderr=theirs, stdin=theirs
    ) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            pieces.append(piece)
        process.wait()
    os.close(ours)
    return b"".join(pieces).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_colours_on_a_terminal_unless_told_not_to(tree: Tree) -> None:
    tree.write({"a.py": MIXED})
    assert "\x1b[32m+x = torch" in on_a_terminal(tree, "convert", ".")
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3\d|9\d)(?:;\d+)*m", on_a_terminal(tree, "convert", ".", NO_COLOR="1"))


def test_a_pipe_that_is_closed_is_no_error(tree: Tree) -> None:
    tree.write({"a.py": "import torch\n\n" + f"print(torch.cuda.memory_allocated(), '{'x' * 300}')\n" * 300})
    path = str(Path(codemods.__file__).parent.parent)
    command = f'"{sys.executable}" -m codemods convert . | head -c 10 > /dev/null'
    done = subprocess.run(
        ["bash", "-c", command], cwd=tree.root, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


def test_neither_libcst_nor_rich_is_imported_where_nothing_is_found(tree: Tree) -> None:
    tree.write({"a.py": "import os\n"})
    code = (
        "import sys\nfrom codemods.cli.main import cli\ntry:\n    cli(['convert', '.'])\nexcept SystemExit as end:\n"
        "    print(end.code, sorted({'libcst', 'rich', 'torch'} & set(sys.modules)))\n"
    )
    path = str(Path(codemods.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree.root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0 []\n"


def test_nothing_of_the_repository_is_run(tree: Tree) -> None:
    trap = "raise SystemExit('ran')\nopen('ran', 'w')\nx.cuda()\n"
    tree.write(dict.fromkeys(("setup.py", "conftest.py", "sitecustomize.py", "torch.py", "libcst.py", "a.py"), trap))
    done = uncuda(tree, "convert", str(tree.root))
    assert done.returncode == 1
    assert not (tree.root / "ran").exists()


# -- explain and rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(load_catalogue()))
def test_explain(tree: Tree, code: str) -> None:
    rule = load_catalogue()[code]
    run = tree.run("explain", code)
    assert run.exit_code == 0
    assert run.stdout.startswith(f"# {code} {rule.name}\n")
    assert rule.why in run.stdout
    assert run.stdout == tree.run("explain", rule.name).stdout == tree.run("explain", code.lower()).stdout
    assert run.stdout.count("```") == 2 * len(rule.examples)


def test_explain_of_an_unknown_code_suggests_one(tree: Tree) -> None:
    assert "did you mean UC502?" in tree.run("explain", "UC502x").stderr


def test_rules(tree: Tree) -> None:
    run = tree.run("rules")
    assert run.exit_code == 0
    assert [line.split()[0] for line in run.stdout.splitlines()] == sorted(load_catalogue())


def test_help_and_version(tree: Tree) -> None:
    assert tree.run("--version").stdout == f"uncuda, version {codemods.__version__}\n"
    for arguments in ((), ("convert",), ("explain",), ("rules",)):
        run = tree.run(*arguments, "--help")
        assert run.exit_code == 0
        assert run.stdout.startswith("Usage: uncuda")
        assert run.stdout == tree.run(*arguments, "-h").stdout
