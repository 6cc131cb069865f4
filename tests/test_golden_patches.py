"""The patches of fixtures/golden: how each training script and repository of fixtures/ is converted, to the byte.

``UPDATE_GOLDEN=1 pytest tests/test_golden_patches.py`` writes them anew; read the difference before it is committed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fixture_runs import FIXTURES

from codemods.engine.outcome import Outcome, Request
from codemods.engine.run import run
from codemods.report.patch import patch, write

GOLDEN = FIXTURES / "golden"
TREES = sorted(path for kind in ("scripts", "repositories") for path in (FIXTURES / kind).iterdir() if path.is_dir())


@pytest.fixture(params=TREES, ids=lambda tree: tree.name)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of one tree as a git repository of its own."""
    source: Path = request.param
    copy = tmp_path / source.name
    shutil.copytree(source, copy)
    git(copy, "init", "--quiet")
    git(copy, "config", "core.autocrlf", "false")
    return copy


def git(folder: Path, *arguments: str, data: bytes | None = None) -> None:
    subprocess.run(["git", *arguments], cwd=folder, input=data, check=True, capture_output=True)


def converted(tree: Path) -> Outcome:
    outcome = run(Request(paths=(tree,)))
    assert not outcome.failures
    return outcome


def without_helper(text: bytes) -> bytes:
    """The patch without the helper itself, which has tests of its own and changes with every version."""
    parts = text.split(b"diff --git ")
    return b"diff --git ".join(part for part in parts if b"# uncuda helper" not in part)


def test_patch_is_the_golden_one(tree: Path) -> None:
    text = without_helper(patch(converted(tree)))
    golden = GOLDEN / f"{tree.name}.patch"
    if "UPDATE_GOLDEN" in os.environ:
        golden.write_bytes(text)
    assert text == golden.read_bytes()


def test_patch_applies_and_a_second_run_changes_nothing(tree: Path) -> None:
    outcome = converted(tree)
    git(tree, "apply", "-", data=patch(outcome))
    by_git = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts}
    for conversion in outcome.changed:
        assert by_git[conversion.document.path] == conversion.after
    again = converted(tree)
    assert not again.changed
    assert not again.helpers


def test_writing_gives_what_the_patch_gives(tree: Path) -> None:
    outcome = converted(tree)
    written = write(outcome)
    assert sorted(written) == sorted([*outcome.helpers, *(c.document.path for c in outcome.changed)])
    for conversion in outcome.changed:
        assert conversion.document.path.read_bytes() == conversion.after
