"""The hooks of `.pre-commit-hooks.yaml`, run by the real pre-commit in real git repositories."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from repositories import GitRepository, needs_git

pytest.importorskip("pre_commit", reason="pre-commit is not installed")

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
yaml: Any = importlib.import_module("yaml")  # comes with pre-commit, without types
HOOKS: dict[str, dict[str, Any]] = {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))}

pytestmark = [needs_git, pytest.mark.skipif(sys.platform == "win32", reason="tried on POSIX systems only")]

CALL = "import torch\n\nx = torch.ones(1).cuda()\n"
PLAIN = "import torch\n\nx = torch.ones(1)\n"
LINE = "x = torch.ones(1).cuda()\n"
FIXED = "x = torch.ones(1).to(ai_device.device())\n"


def config_for(hook: str) -> str:
    """A configuration that runs a hook as its manifest says, but from here instead of an environment of its own."""
    arguments = HOOKS[hook]["entry"].removeprefix("uncuda ")
    local = {
        **HOOKS[hook],
        "entry": f"'{sys.executable}' -m codemods {arguments}",
        "language": "system",
        "verbose": True,
    }
    return json.dumps({"repos": [{"repo": "local", "hooks": [local]}]})  # JSON is YAML


class Repository(GitRepository):
    """A repository that has one of the hooks."""

    def prepare(self, home: Path) -> None:
        """Sets the environment of pre-commit up."""
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.environment |= {"PRE_COMMIT_HOME": str(home), "PYTHONPATH": path, "PRE_COMMIT_COLOR": "never"}
        self.environment.pop("UNCUDA_CACHE_DIR", None)  # the usual place

    def pre_commit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", *arguments]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)

    def at(self, root: Path) -> Repository:
        """Another work tree with the same environment."""
        other = Repository(root)
        other.environment = self.environment
        return other

    def index(self) -> str:
        """What is staged."""
        return self.git("ls-files", "--stage") + self.git("diff", "--cached")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def repository_with(hook: str, root: Path, home: Path) -> Repository:
    root.mkdir(parents=True)
    repository = Repository(root)
    repository.prepare(home)
    repository.git("init", "-q", "-b", "main")
    repository.write({".pre-commit-config.yaml": config_for(hook)})
    return repository


@pytest.fixture
def check(tmp_path: Path, home: Path) -> Repository:
    """A repository with `uncuda-check` and one commit."""
    repository = repository_with("uncuda-check", tmp_path / "repository", home)
    repository.commit({"plain.py": PLAIN})
    return repository


@pytest.fixture
def fix(tmp_path: Path, home: Path) -> Repository:
    """A repository with `uncuda-fix` and one commit."""
    repository = repository_with("uncuda-fix", tmp_path / "repository", home)
    repository.commit({"plain.py": PLAIN})
    return repository


# -- the manifest ----------------------------------------------------------------------------------------------------


def test_pre_commit_takes_the_manifest(check: Repository) -> None:
    done = check.pre_commit("validate-manifest", str(MANIFEST))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_hooks() -> None:
    assert list(HOOKS) == ["uncuda-check", "uncuda-fix"]
    for hook in HOOKS.values():
        assert hook["entry"].startswith("uncuda ")
        assert hook["language"] == "python"
        assert "pass_filenames" not in hook  # the names are passed: never the whole tree on a commit


def _examples() -> tuple[Any, Any]:
    """The two examples of docs/ci.md."""
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    config, workflow = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return yaml.safe_load(config), yaml.safe_load(workflow)


def test_pre_commit_takes_the_example(check: Repository) -> None:
    config, _ = _examples()
    check.write({"example.yaml": json.dumps(config)})
    done = check.pre_commit("validate-config", "example.yaml")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    (source,) = config["repos"]
    assert {hook["id"] for hook in source["hooks"]} <= HOOKS.keys()
    assert all(hook["args"][-1] == "--" for hook in source["hooks"])


def test_the_example_of_a_workflow() -> None:
    _, workflow = _examples()
    assert workflow[True] == "pull_request"  # YAML takes `on` for a truth value, and GitHub does not
    steps = workflow["jobs"]["check"]["steps"]
    assert [step["run"].split()[0] for step in steps if "run" in step] == ["pip", "uncuda"]
    assert steps[0]["with"]["fetch-depth"] == 2


# -- uncuda-check ----------------------------------------------------------------------------------------------------


def test_staged_code_is_checked_and_nothing_written(check: Repository) -> None:
    check.write({"train.py": CALL, "other.py": PLAIN})
    check.git("add", "-A")
    before = check.index()
    done = check.pre_commit("run")
    assert done.returncode == 1
    assert "train.py" in done.stdout
    assert check.read("train.py") == CALL
    assert check.index() == before
    assert check.git("status", "--porcelain") == "A  other.py\nA  train.py\n"  # the cache is not to be seen


def test_clean_code_passes(check: Repository) -> None:
    check.write({"other.py": PLAIN + "y = 1\n"})
    check.git("add", "-A")
    done = check.pre_commit("run")
    assert (done.returncode, "Passed" in done.stdout) == (0, True)


def test_unstaged_code_is_not_checked(check: Repository) -> None:
    check.write({"plain.py": PLAIN + "y = 1\n"})
    check.git("add", "-A")
    check.write({"plain.py": PLAIN + "y = 1\n" + LINE})
    assert check.pre_commit("run").returncode == 0
    assert check.read("plain.py") == PLAIN + "y = 1\n" + LINE


def test_a_notebook_is_passed(check: Repository) -> None:
    cell = {
        "cell_type": "code",
        "source": ["import torch\n", LINE],
        "metadata": {},
        "outputs": [],
        "execution_count": 1,
    }
    check.write({"a.ipynb": json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})})
    check.git("add", "-A")
    done = check.pre_commit("run")
    assert (done.returncode, "a.ipynb" in done.stdout) == (1, True)


def test_other_files_are_not_passed(check: Repository) -> None:
    check.write({"notes.md": LINE, "data.txt": LINE})
    check.git("add", "-A")
    assert "no files to check" in check.pre_commit("run").stdout


def test_a_file_that_cannot_be_read_fails(check: Repository) -> None:
    check.write({"bad.py": "x.cuda(\n"})
    check.git("add", "-A")
    done = check.pre_commit("run")
    assert done.returncode == 1
    assert "exit code: 2" in done.stdout
    assert "bad.py:1: does not parse" in done.stdout


@pytest.mark.parametrize("hook", ["uncuda-check", "uncuda-fix"])
def test_an_excluded_file_that_is_named(hook: str, tmp_path: Path, home: Path) -> None:
    repository = repository_with(hook, tmp_path / "repository", home)
    repository.write({"pyproject.toml": '[tool.uncuda]\nexclude = ["third_party/"]\n', "third_party/kern/net.py": CALL})
    repository.git("add", "-A")
    done = repository.pre_commit("run")
    assert (done.returncode, "Passed" in done.stdout) == (0, True)
    assert repository.read("third_party/kern/net.py") == CALL


def test_renamed_and_deleted_files(check: Repository) -> None:
    check.commit({"a.py": CALL, "b.py": CALL, "c.py": PLAIN})
    check.git("mv", "a.py", "moved.py")
    check.git("rm", "-q", "b.py")
    done = check.pre_commit("run")
    assert done.returncode == 1
    assert "moved.py" in done.stdout
    assert "a.py" not in done.stdout.replace("b/moved.py", "")
    assert "does not exist" not in done.stdout


def test_only_deleted_files(check: Repository) -> None:
    check.git("rm", "-q", "plain.py")
    done = check.pre_commit("run")
    assert (done.returncode, "no files to check" in done.stdout) == (0, True)


def test_names_with_blanks_and_letters(check: Repository) -> None:
    check.write({"with blank.py": CALL, "größe.py": CALL, "-dash.py": PLAIN})
    check.git("add", "-A")
    done = check.pre_commit("run")
    assert done.returncode == 1
    assert "exit code: 1" in done.stdout
    assert "with blank.py" in done.stdout


# -- uncuda-fix ------------------------------------------------------------------------------------------------------


def test_a_fix_fails_the_hook_and_is_not_staged(fix: Repository) -> None:
    fix.write({"train.py": CALL})
    fix.git("add", "-A")
    before = fix.index()
    done = fix.pre_commit("run")
    assert done.returncode == 1
    assert FIXED in fix.read("train.py")
    assert fix.index() == before
    assert fix.git("status", "--porcelain") == "AM train.py\n?? ai_device.py\n"
    fix.git("add", "-A")
    assert fix.pre_commit("run").returncode == 0


def test_a_staged_hunk_is_fixed_beside_one_that_is_not_staged(fix: Repository) -> None:
    """Case wf-01: the index is as before, and the file holds the fix and the other hunk."""
    between = "".join(f"y{number} = {number}\n" for number in range(20))
    staged = f"import torch\n\n{LINE}{between}"
    fix.write({"train.py": staged})
    fix.git("add", "-A")
    fix.write({"train.py": staged + LINE})
    before = fix.index()
    done = fix.pre_commit("run")
    assert done.returncode == 1
    assert fix.index() == before
    assert fix.read("train.py") == f"import torch\n\nimport ai_device\n\n{FIXED}{between}{LINE}"


def test_hunks_that_touch_lose_nothing(fix: Repository) -> None:
    """Where a fix changes the lines around an unstaged hunk, pre-commit takes the fix back."""
    fix.write({"train.py": CALL})
    fix.git("add", "-A")
    fix.write({"train.py": CALL + LINE})
    before = fix.index()
    done = fix.pre_commit("run")
    assert done.returncode == 1
    assert fix.index() == before
    assert fix.read("train.py") == CALL + LINE


def test_git_is_told_to_change_nothing(fix: Repository, tmp_path: Path) -> None:
    git = shutil.which("git")
    log = tmp_path / "log"
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\nexec "{git}" "$@"\n')
    wrapper.chmod(0o755)
    fix.write({"train.py": CALL})
    fix.git("add", "-A")
    fix.environment["PATH"] = f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}"
    assert fix.pre_commit("run").returncode == 1
    words = log.read_text().split()
    assert "diff" in words
    assert not {"add", "stash", "commit", "update-index", "reset"} & set(words)


# -- kinds of repositories -------------------------------------------------------------------------------------------


def test_before_the_first_commit(tmp_path: Path, home: Path) -> None:
    repository = repository_with("uncuda-check", tmp_path / "repository", home)
    repository.write({"train.py": CALL})
    repository.git("add", "-A")
    assert "train.py" in repository.pre_commit("run").stdout
    repository.write({"train.py": PLAIN})
    repository.git("add", "-A")
    assert repository.pre_commit("run").returncode == 0


@pytest.mark.parametrize("hook", ["uncuda-check", "uncuda-fix"])
def test_a_linked_work_tree(hook: str, tmp_path: Path, home: Path) -> None:
    repository = repository_with(hook, tmp_path / "repository", home)
    repository.commit()
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "feature")
    linked = repository.at(tmp_path / "linked")
    linked.write({"train.py": CALL})
    linked.git("add", "-A")
    before = linked.index()
    assert linked.pre_commit("run").returncode == 1
    assert linked.index() == before
    assert (FIXED in linked.read("train.py")) == (hook == "uncuda-fix")
    assert repository.git("status", "--porcelain") == ""


def test_a_submodule(tmp_path: Path, home: Path, check: Repository) -> None:
    inner = repository_with("uncuda-check", tmp_path / "inner", home)
    inner.commit({"plain.py": PLAIN})
    check.git("submodule", "--quiet", "add", inner.root.as_uri(), "part")
    check.git("commit", "-q", "-m", "submodule")
    part = check.at(check.root / "part")
    part.write({"train.py": CALL})
    part.git("add", "-A")
    done = part.pre_commit("run")
    assert (done.returncode, "train.py" in done.stdout) == (1, True)
    part.git("commit", "-q", "-m", "train")
    check.git("add", "part")
    assert "no files to check" in check.pre_commit("run").stdout  # its files are checked where they are committed


def test_the_checkout_of_a_ci_run(tmp_path: Path, check: Repository) -> None:
    """Shallow, detached, without branches and names."""
    check.commit({"train.py": CALL})
    check.commit({"other.py": PLAIN})
    check.git("clone", "-q", "--depth=2", check.root.as_uri(), str(tmp_path / "clone"))
    clone = check.at(tmp_path / "clone")
    clone.git("checkout", "-q", "--detach")
    clone.git("branch", "-q", "-D", "main")
    whole = clone.pre_commit("run", "--all-files")
    assert (whole.returncode, "train.py" in whole.stdout) == (1, True)
    assert clone.pre_commit("run", "--from-ref", "HEAD^", "--to-ref", "HEAD").returncode == 0


@pytest.mark.parametrize(
    "arguments", [("commit", "-m", "x"), ("commit", "-m", "x", "train.py"), ("commit", "-am", "x")]
)
def test_a_commit_is_stopped_until_the_code_is_clean(check: Repository, arguments: tuple[str, ...]) -> None:
    assert check.pre_commit("install").returncode == 0
    check.write({"train.py": CALL})
    check.git("add", "-A")
    head = check.git("rev-parse", "HEAD")
    check.git(*arguments, code=1)
    assert check.git("rev-parse", "HEAD") == head
    check.write({"train.py": PLAIN})
    check.git("add", "-A")
    check.git(*arguments)
    assert check.git("rev-parse", "HEAD") != head
