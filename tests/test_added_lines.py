"""Which lines a change adds, by real git repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conversion import converted
from repositories import GitRepository, needs_git

from codemods.check.added_lines import AddedLines
from codemods.check.reported import Reported
from codemods.source.git import GitError

pytestmark = needs_git

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    repository = GitRepository.new(tmp_path / "repository")
    repository.commit({"a.py": TEN})
    return repository


def held(added: AddedLines, path: Path, last: int = 14) -> list[int]:
    return [line for line in range(1, last + 1) if added.holds(path, line)]


def changed(*numbers: int, text: str = TEN) -> str:
    """The text with some lines changed."""
    lines = text.splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = f"changed {number}\n"
    return "".join(lines)


# -- the work tree ---------------------------------------------------------------------------------------------------


def test_a_clean_work_tree_adds_nothing(repository: GitRepository) -> None:
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == []


def test_changed_and_new_lines_are_added(repository: GitRepository) -> None:
    repository.write({"a.py": changed(2, 3, 7) + "more\n"})
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [2, 3, 7, 11]


def test_removed_lines_add_nothing(repository: GitRepository) -> None:
    repository.write({"a.py": TEN.replace("line 3\nline 4\n", "")})
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == []


def test_a_place_of_several_lines_is_added_if_one_of_them_is(repository: GitRepository) -> None:
    repository.write({"a.py": changed(5)})
    added = AddedLines.staged(repository.root)
    path = repository.root / "a.py"
    assert added.holds(path, 3, 5)
    assert added.holds(path, 4, 8)
    assert not added.holds(path, 1, 4)
    assert not added.holds(path, 6, 9)


def test_untracked_files_are_added_and_ignored_ones_are_not(repository: GitRepository) -> None:
    repository.write({"new.py": TEN, "sub/new.py": TEN, ".gitignore": "out/\n", "out/new.py": TEN})
    added = AddedLines.staged(repository.root)
    assert added.holds(repository.root / "new.py", 1)
    assert added.holds(repository.root / "sub" / "new.py", 9)
    assert not added.holds(repository.root / "out" / "new.py", 1)


def test_a_file_that_does_not_exist_is_not_added(repository: GitRepository) -> None:
    assert not AddedLines.staged(repository.root).holds(repository.root / "none.py", 1)


def test_a_missing_last_line_end(repository: GitRepository) -> None:
    repository.write({"a.py": TEN.rstrip("\n"), "b.py": "x\n"})
    repository.commit()
    repository.write({"a.py": changed(3, text=TEN).rstrip("\n") + "!", "b.py": "x\ny"})
    added = AddedLines.staged(repository.root)
    assert held(added, repository.root / "a.py") == [3, 10]
    assert held(added, repository.root / "b.py") == [2]


def test_text_that_looks_like_a_patch(repository: GitRepository) -> None:
    odd = "-- a/x\n++ b/other.py\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ No newline at end of file\n"
    repository.commit({"b.py": odd})
    repository.write({"b.py": odd.replace("a/x", "a/y"), "a.py": changed(4)})
    added = AddedLines.staged(repository.root)
    assert held(added, repository.root / "a.py") == [4]
    assert held(added, repository.root / "b.py") == [1, 4]
    assert not added.holds(repository.root / "other.py", 1)


@pytest.mark.parametrize(
    "name",
    [
        "with blank.py",
        'with "quotes".py',
        "größe.py",
        "back\\slash.py",
        "tab\there.py",
        "line\nend.py",
        " .py",
        "b/b/b.py",
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="such names are not possible")
def test_odd_names(repository: GitRepository, name: str) -> None:
    repository.commit({name: TEN})
    repository.write({name: changed(6), f"{name}.new": TEN})
    added = AddedLines.staged(repository.root)
    assert held(added, repository.root / name) == [6]
    assert added.holds(repository.root / f"{name}.new", 1)
    repository.git("add", name)
    repository.write({name: TEN})
    assert AddedLines.staged(repository.root).contents == {repository.root / name: changed(6).encode()}


@pytest.mark.skipif(sys.platform != "linux", reason="such names are not possible")
def test_a_name_that_is_no_text(repository: GitRepository) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    repository.commit({name: TEN})
    repository.write({name: changed(6)})
    assert held(AddedLines.staged(repository.root), repository.root / name) == [6]
    repository.git("add", "-A")
    repository.write({name: TEN})
    assert AddedLines.staged(repository.root).contents == {repository.root / name: changed(6).encode()}


def test_a_repository_behind_a_link(repository: GitRepository, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository.root)
    repository.write({"a.py": changed(2)})
    assert held(AddedLines.staged(tmp_path / "link"), tmp_path / "link" / "a.py") == [2]


def test_from_a_folder_inside(repository: GitRepository) -> None:
    repository.write({"a.py": changed(2), "sub/b.py": TEN})
    added = AddedLines.staged(repository.root / "sub")
    assert held(added, repository.root / "a.py") == [2]
    assert added.holds(repository.root / "sub" / "b.py", 1)


def test_windows_line_ends(repository: GitRepository) -> None:
    text = TEN.replace("\n", "\r\n")
    repository.commit({"a.py": text})
    repository.write({"a.py": text.replace("line 4", "changed")})
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [4]


def test_many_warnings_of_git_stop_nothing(repository: GitRepository) -> None:
    repository.git("config", "core.autocrlf", "true")
    repository.commit({f"{'n' * 100}{number}.py": "x\r\n" for number in range(900)})
    repository.write({f"{'n' * 100}{number}.py": "x\ny\n" for number in range(900)})
    assert held(AddedLines.staged(repository.root), repository.root / f"{'n' * 100}7.py") == [2]


def test_a_conflict(repository: GitRepository) -> None:
    repository.git("checkout", "-q", "-b", "other")
    repository.commit({"a.py": changed(3, text=TEN.replace("line 3", "x"))})
    repository.git("checkout", "-q", "main")
    repository.commit({"a.py": TEN.replace("line 3", "ours")})
    repository.git("merge", "other", code=1)
    added = AddedLines.against(repository.root, "HEAD")
    assert held(added, repository.root / "a.py") == [3, 5, 6, 7]
    assert not AddedLines.staged(repository.root).holds(repository.root / "a.py", 1)


# -- staged content --------------------------------------------------------------------------------------------------


def test_only_what_is_staged_counts(repository: GitRepository) -> None:
    repository.write({"a.py": changed(2), "staged.py": TEN, "loose.py": TEN})
    repository.git("add", "a.py", "staged.py")
    repository.write({"a.py": "above\n" + changed(2, 8)})
    added = AddedLines.staged(repository.root)
    assert held(added, repository.root / "a.py") == [2]
    assert held(added, repository.root / "staged.py", 10) == list(range(1, 11))
    assert not added.holds(repository.root / "loose.py", 1)
    assert added.contents == {repository.root / "a.py": changed(2).encode()}


def test_a_staged_line_that_was_changed_again(repository: GitRepository) -> None:
    repository.write({"a.py": changed(2)})
    repository.git("add", "a.py")
    repository.write({"a.py": TEN.replace("line 2", "fixed"), "b.py": TEN})
    added = AddedLines.staged(repository.root)
    assert held(added, repository.root / "a.py") == [2]
    assert added.contents == {repository.root / "a.py": changed(2).encode()}


def test_staged_files_that_are_gone_again(repository: GitRepository) -> None:
    repository.commit({"b.py": TEN})
    repository.write({"a.py": changed(2), "new.py": TEN})
    repository.git("add", "-A")
    repository.git("rm", "-q", "--cached", "b.py")
    for name in ("a.py", "new.py"):
        (repository.root / name).unlink()
    contents = AddedLines.staged(repository.root).contents
    assert contents == {repository.root / "a.py": changed(2).encode(), repository.root / "new.py": TEN.encode()}


def test_a_file_with_loose_changes_alone_is_no_staged_one(repository: GitRepository) -> None:
    repository.commit({"b.py": TEN})
    repository.write({"a.py": changed(2)})
    repository.git("add", "a.py")
    repository.write({"b.py": changed(2)})
    added = AddedLines.staged(repository.root)
    assert added.contents == {}
    assert held(added, repository.root / "b.py") == []


def test_a_renamed_file_adds_what_was_changed_in_it(repository: GitRepository) -> None:
    repository.git("mv", "a.py", "moved.py")
    assert held(AddedLines.staged(repository.root), repository.root / "moved.py") == []
    repository.write({"moved.py": changed(9)})
    repository.git("add", "moved.py")
    assert held(AddedLines.staged(repository.root), repository.root / "moved.py") == [9]


def test_a_deleted_file_stops_nothing(repository: GitRepository) -> None:
    repository.commit({"b.py": TEN})
    repository.git("rm", "-q", "a.py")
    repository.write({"b.py": changed(1)})
    repository.git("add", "b.py")
    assert held(AddedLines.staged(repository.root), repository.root / "b.py") == [1]


def test_before_the_first_commit_everything_is_new(tmp_path: Path) -> None:
    repository = GitRepository.new(tmp_path / "new")
    repository.write({"a.py": TEN, "b.py": TEN})
    assert held(AddedLines.staged(repository.root), repository.root / "a.py", 10) == list(range(1, 11))
    repository.git("add", "b.py")
    added = AddedLines.staged(repository.root)
    assert added.holds(repository.root / "b.py", 1)
    assert not added.holds(repository.root / "a.py", 1)


def test_a_file_that_is_only_announced(repository: GitRepository) -> None:
    repository.write({"new.py": TEN})
    repository.git("add", "-N", "new.py")
    assert AddedLines.staged(repository.root).holds(repository.root / "new.py", 3)


def test_another_hash(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path)
    repository.git("init", "-q", "--object-format=sha256")
    repository.write({"a.py": TEN})
    repository.git("add", "a.py")
    assert AddedLines.staged(tmp_path).holds(tmp_path / "a.py", 3)


# -- against a revision ----------------------------------------------------------------------------------------------


def test_the_branch_counts_from_where_it_left_the_base(repository: GitRepository) -> None:
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"a.py": changed(2), "b.py": TEN})
    repository.git("checkout", "-q", "main")
    repository.commit({"a.py": changed(9)})
    repository.git("checkout", "-q", "feature")
    repository.write({"a.py": changed(2, 5), "loose.py": TEN})
    added = AddedLines.against(repository.root, "main")
    assert held(added, repository.root / "a.py") == [2, 5]
    assert added.holds(repository.root / "b.py", 1)
    assert added.holds(repository.root / "loose.py", 1)


def test_the_door(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"a.py": changed(2)})
    repository.write({"a.py": changed(2, 4)})
    path = repository.root / "a.py"
    assert held(AddedLines.of_change(repository.root), path) == [4]
    assert held(AddedLines.of_change(repository.root, "HEAD^"), path) == [2, 4]
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD^")
    assert held(AddedLines.of_change(repository.root), path) == [2, 4]
    assert held(AddedLines.of_change(repository.root, "HEAD"), path) == [4]


@pytest.mark.parametrize("base", ["nowhere", "origin/main", "", "-p", "--output=x", "HEAD:a.py", "a b"])
def test_a_base_that_is_no_commit(repository: GitRepository, base: str) -> None:
    with pytest.raises(GitError, match="there is no revision"):
        AddedLines.against(repository.root, base)
    assert sorted(path.name for path in repository.root.iterdir()) == [".git", "a.py"]


def test_a_base_without_common_history(repository: GitRepository) -> None:
    repository.git("checkout", "-q", "--orphan", "lone")
    repository.commit({"c.py": TEN})
    with pytest.raises(GitError, match="no common history"):
        AddedLines.against(repository.root, "main")


def test_a_base_before_the_first_commit_of_a_branch(repository: GitRepository) -> None:
    repository.git("checkout", "-q", "--orphan", "lone")
    repository.write({"a.py": changed(3)})
    assert held(AddedLines.against(repository.root, "main"), repository.root / "a.py") == [3]


def _clone(repository: GitRepository, folder: Path, *options: str) -> GitRepository:
    repository.git("clone", "-q", *options, repository.root.as_uri(), str(folder))
    return GitRepository(folder)


def test_a_shallow_clone_says_what_to_fetch(repository: GitRepository, tmp_path: Path) -> None:
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.py": TEN})
    clone = _clone(repository, tmp_path / "clone", "--depth=1")
    with pytest.raises(GitError, match=r"no revision 'origin/main'.*shallow.*git fetch --deepen"):
        AddedLines.against(clone.root, "origin/main")
    clone.git("fetch", "-q", "--depth=1", "origin", "main:refs/remotes/origin/main")
    with pytest.raises(GitError, match=r"no common history.*shallow.*git fetch --deepen"):
        AddedLines.against(clone.root, "origin/main")
    clone.git("fetch", "-q", "--unshallow")
    assert AddedLines.against(clone.root, "origin/main").holds(clone.root / "b.py", 1)


def test_the_merge_commit_that_a_ci_run_checks_out(repository: GitRepository, tmp_path: Path) -> None:
    """Two commits deep and detached: the first parent is the base."""
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.py": TEN})
    repository.git("checkout", "-q", "main")
    repository.commit({"a.py": changed(1)})
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "feature")
    clone = _clone(repository, tmp_path / "clone", "--depth=2")
    clone.git("checkout", "-q", "--detach")
    added = AddedLines.against(clone.root, "HEAD^")
    assert added.holds(clone.root / "b.py", 1)
    assert held(added, clone.root / "a.py") == []


# -- kinds of repositories -------------------------------------------------------------------------------------------


def test_a_linked_work_tree(repository: GitRepository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "feature")
    linked = GitRepository(tmp_path / "linked")
    linked.write({"a.py": changed(3)})
    repository.write({"a.py": changed(8)})
    assert held(AddedLines.staged(linked.root), linked.root / "a.py") == [3]
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [8]


def test_a_submodule_is_a_repository_of_its_own(repository: GitRepository, tmp_path: Path) -> None:
    inner = GitRepository.new(tmp_path / "inner")
    inner.commit({"in.py": TEN})
    repository.git("submodule", "--quiet", "add", inner.root.as_uri(), "part")
    repository.commit()
    part = GitRepository(repository.root / "part")
    part.write({"in.py": changed(4), "new.py": TEN})
    repository.write({"a.py": changed(2)})
    outside = AddedLines.staged(repository.root)
    assert held(outside, repository.root / "a.py") == [2]
    assert held(outside, part.root / "in.py") == []
    assert held(AddedLines.staged(part.root), part.root / "in.py") == [4]
    part.commit()
    repository.git("add", "part")  # a staged submodule is no staged line
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [2]


def test_a_repository_inside_that_is_not_tracked(repository: GitRepository) -> None:
    inner = GitRepository.new(repository.root / "inner")
    inner.commit({"in.py": TEN})
    assert not AddedLines.staged(repository.root).holds(inner.root / "in.py", 1)


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not a git repository"):
        AddedLines.staged(tmp_path)


def test_no_work_tree(tmp_path: Path) -> None:
    GitRepository(tmp_path).git("init", "-q", "--bare")
    with pytest.raises(GitError, match="work tree"):
        AddedLines.staged(tmp_path)


def test_no_git(repository: GitRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="git is not installed"):
        AddedLines.staged(repository.root)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no such folder"):
        AddedLines.staged(tmp_path / "none")


# -- hooks -----------------------------------------------------------------------------------------------------------

PRINT = """
import sys
from pathlib import Path
from codemods.check.added_lines import AddedLines
added = AddedLines.staged(Path(sys.argv[1]))
lines = [line for line in range(1, 15) if added.holds(Path(sys.argv[1]) / "a.py", line)]
Path(sys.argv[2]).write_text(repr(lines))
"""


def in_hook(repository: GitRepository, seen: Path, asked: Path, *command: str) -> str:
    """What is added by what a hook sees while git runs a command."""
    folder = repository.root / repository.git("rev-parse", "--git-path", "hooks").strip()
    folder.mkdir(exist_ok=True)
    script = seen.with_name("ask.py")
    script.write_text(PRINT)
    hook = folder / "pre-commit"
    path = Path(__file__).resolve().parent.parent
    hook.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" "{script}" "{asked}" "{seen}"\n')
    hook.chmod(0o755)
    repository.git(*command)
    return seen.read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="the hook is a shell script")
class TestInHooks:
    def test_a_commit(self, repository: GitRepository, tmp_path: Path) -> None:
        repository.write({"a.py": changed(2)})
        repository.git("add", "a.py")
        assert in_hook(repository, tmp_path / "seen", repository.root, "commit", "-m", "x") == "[2]"

    def test_a_commit_of_everything(self, repository: GitRepository, tmp_path: Path) -> None:
        repository.write({"a.py": changed(2)})
        assert in_hook(repository, tmp_path / "seen", repository.root, "commit", "-a", "-m", "x") == "[2]"

    def test_a_commit_of_one_file(self, repository: GitRepository, tmp_path: Path) -> None:
        """Git makes an index for it; the usual one holds something else."""
        repository.commit({"b.py": TEN})
        repository.write({"a.py": changed(2), "b.py": changed(5)})
        repository.git("add", "b.py")
        assert in_hook(repository, tmp_path / "seen", repository.root, "commit", "-m", "x", "a.py") == "[2]"

    def test_a_linked_work_tree(self, repository: GitRepository, tmp_path: Path) -> None:
        repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "feature")
        linked = GitRepository(tmp_path / "linked")
        linked.write({"a.py": changed(3)})
        assert in_hook(linked, tmp_path / "seen", linked.root, "commit", "-a", "-m", "x") == "[3]"

    def test_another_repository(self, repository: GitRepository, tmp_path: Path) -> None:
        """The variables of the hook speak of its own repository."""
        other = GitRepository.new(tmp_path / "other")
        other.commit({"a.py": TEN})
        other.write({"a.py": changed(7)})
        repository.write({"a.py": changed(2)})
        assert in_hook(repository, tmp_path / "seen", other.root, "commit", "-a", "-m", "x") == "[7]"


def test_a_work_tree_that_only_variables_lead_to(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.root / ".git").rename(tmp_path / "elsewhere")
    repository.write({"a.py": changed(2)})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", "elsewhere")
    monkeypatch.setenv("GIT_WORK_TREE", "repository")
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [2]


# -- what a repository configures ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are shell scripts")
def test_nothing_that_a_repository_configures_is_run(repository: GitRepository, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = tmp_path / "command"
    command.write_text(f'#!/bin/sh\necho "$0 $@" >> "{ran}"\ncat\n')
    command.chmod(0o755)
    repository.commit({".gitattributes": "*.py diff=evil filter=evil\n"})
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command", "diff.external"):
        repository.git("config", key, str(command))
    for key in ("core.fsmonitor", "core.pager", "core.editor"):
        repository.git("config", key, str(command))
    repository.git("config", "filter.evil.required", "true")
    (repository.root / ".git" / "hooks" / "post-index-change").write_text(command.read_text())
    (repository.root / ".git" / "hooks" / "post-index-change").chmod(0o755)
    repository.write({"a.py": changed(2)})
    index = (repository.root / ".git" / "index").read_bytes()
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [2]
    assert held(AddedLines.against(repository.root, "main"), repository.root / "a.py") == [2]
    assert not ran.exists(), ran.read_text()
    assert (repository.root / ".git" / "index").read_bytes() == index
    repository.git("diff")
    assert ran.exists()  # it would have


@pytest.mark.parametrize(
    "setting",
    ["diff.noprefix=true", "diff.mnemonicPrefix=true", "color.ui=always", "core.quotePath=true", "diff.context=9",
     "diff.orderFile=nowhere", "diff.relative=true", "diff.renames=false", "diff.interHunkContext=9",
     "diff.wsErrorHighlight=all", "diff.suppressBlankEmpty=true", "diff.ignoreSubmodules=none"],
)  # fmt: skip
def test_settings_of_users_change_nothing(repository: GitRepository, setting: str) -> None:
    repository.git("config", *setting.split("="))
    repository.git("mv", "a.py", "größe.py")
    repository.write({"größe.py": changed(2, 5)})
    repository.git("add", "-A")
    assert held(AddedLines.staged(repository.root), repository.root / "größe.py") == [2, 5]


def test_attributes_hide_no_line(repository: GitRepository) -> None:
    repository.commit({".gitattributes": "*.py binary\n"})
    repository.write({"a.py": changed(2)})
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [2]


# -- findings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_findings_on_added_lines(repository: GitRepository, end: str) -> None:
    source = "import torch\n\nx = torch.ones(2).cuda()\n# form\x0cfeed\ny = torch.ones(\n    2\n).cuda()\n"
    repository.commit({"a.py": source.replace("\n", end)})
    after = source.replace("    2", "    3").replace("\n", end)
    repository.write({"a.py": after})
    conversion = converted(after.encode())
    path = repository.root / "a.py"
    reported = [Reported(path, conversion.document, finding) for finding in conversion.findings]
    lines = [item.finding.line for item in AddedLines.staged(repository.root).only(reported)]
    assert lines == ([3, 5] if end == "\r" else [5])  # for git all of the last file is one line


def test_the_command_line_of_git_is_plumbing(repository: GitRepository) -> None:
    """An alias or a setting cannot take the place of the commands that are used."""
    repository.git("config", "alias.diff-index", "!false")
    repository.write({"a.py": changed(2)})
    assert held(AddedLines.staged(repository.root), repository.root / "a.py") == [2]


def test_a_folder_that_git_does_not_trust(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    if subprocess.run(["git", "status"], cwd=repository.root, capture_output=True).returncode == 0:
        pytest.skip("this git trusts all")
    with pytest.raises(GitError, match=r"dubious ownership.*safe\.directory"):
        AddedLines.staged(repository.root)
