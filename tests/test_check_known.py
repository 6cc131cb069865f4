"""What ``check`` does not report anew: a baseline, and lines that a change does not add."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conversion import Tree
from notebooks import as_json, notebook_of

OLD = "import torch\n\nx = torch.ones(1).cuda()\n"
NEW = OLD + "y = torch.ones(2).cuda()\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository of git with one commit."""
    tree = Tree(tmp_path)
    tree.git_init()
    tree.write({"a.py": OLD})
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "old")
    monkeypatch.chdir(tmp_path)
    return tree


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def places(stdout: str) -> list[str]:
    return [line.split(" ")[0] for line in stdout.splitlines() if " UC" in line]


def test_a_baseline_leaves_what_is_known(tree: Tree) -> None:
    written = tree.run("check", "--baseline", "known.json", "--write-baseline")
    assert (written.exit_code, written.stdout) == (0, "")
    assert "1 known" in written.stderr
    assert tree.run("check", "--baseline", "known.json").exit_code == 0
    tree.write({"a.py": "import os\n" + NEW})
    again = tree.run("check", "--baseline", "known.json")
    assert (again.exit_code, places(again.stdout)) == (1, ["a.py:5:5"])


def test_what_is_known_is_not_fixed(tree: Tree) -> None:
    tree.run("check", "--baseline", "known.json", "--write-baseline")
    tree.write({"a.py": NEW})
    assert tree.run("check", "--baseline", "known.json", "--fix").exit_code == 1
    assert "x = torch.ones(1).cuda()\n" in tree.read("a.py")
    assert "y = torch.ones(2).to(ai_device.device())\n" in tree.read("a.py")


def test_stale_entries_are_said_and_dropped(tree: Tree) -> None:
    tree.run("check", "--baseline", "known.json", "--write-baseline")
    tree.write({"a.py": "import torch\n"})
    said = tree.run("check", "--baseline", "known.json")
    assert said.exit_code == 0
    assert "no longer found" in said.stderr
    assert "0 known" in tree.run("check", "--baseline", "known.json", "--write-baseline").stderr


def test_only_added_lines_count(tree: Tree) -> None:
    assert tree.run("check", "--added-only").exit_code == 0
    tree.write({"a.py": NEW})
    assert places(tree.run("check", "--added-only").stdout) == ["a.py:4:5"]
    git(tree.root, "commit", "-qam", "new")
    assert tree.run("check", "--added-only").exit_code == 0
    assert places(tree.run("check", "--added-only", "--base", "HEAD~1").stdout) == ["a.py:4:5"]


def test_what_is_staged_is_checked_as_it_is_staged(tree: Tree) -> None:
    tree.write({"a.py": NEW})
    git(tree.root, "add", "a.py")
    tree.write({"a.py": "# a comment\n" + OLD})
    staged = tree.run("check", "--added-only")
    assert places(staged.stdout) == ["a.py:4:5"]
    refused = tree.run("check", "--added-only", "--fix")
    assert (refused.exit_code, tree.read("a.py")) == (2, "# a comment\n" + OLD)
    assert "staged in part" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--write-baseline"], "needs --baseline"),
        (["--baseline", "b.json", "--write-baseline", "--fix"], "does not go with"),
        (["--baseline", "b.json", "--write-baseline", "--added-only"], "does not go with"),
        (["--base", "HEAD"], "needs --added-only"),
        (["--baseline", "missing.json"], "no such baseline"),
        (["--added-only", "--base", "no-such-revision"], "no-such-revision"),
    ],
)
def test_bad_usage(tree: Tree, arguments: list[str], word: str) -> None:
    run = tree.run("check", *arguments)
    assert run.exit_code == 2
    assert word in run.stderr


def test_a_warm_check_says_the_same(tree: Tree) -> None:
    tree.write({"b.py": NEW, "nb.ipynb": "{}"})
    without = tree.run("check", "--no-cache")
    assert tree.run("check") == without
    assert tree.run("check") == without


def test_files_beside_the_python_are_checked_as_well(tree: Tree) -> None:
    tree.write(
        {"nb.ipynb": as_json(notebook_of("import torch\n", "torch.ones(1).cuda()\n")), "c.yaml": "device: cuda\n"}
    )
    said = tree.run("check", "c.yaml", "nb.ipynb").stdout
    assert [line[:27] for line in said.splitlines()[:2]] == [
        "c.yaml:1:9 UC721 names a CU",
        "nb.ipynb:cell 2:1:1 UC101 [",
    ]
    assert tree.run("check", "nb.ipynb", "--fix").exit_code == 1
    assert "to(ai_device.device())" in tree.read("nb.ipynb")
    assert tree.run("check", "nb.ipynb").exit_code == 0
