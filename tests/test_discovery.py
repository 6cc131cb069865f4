from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.source.discovery import Found, Skipped, discover, repository_root


@pytest.fixture(autouse=True)
def in_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def ignore(name: str, *lines: str) -> None:
    tree(name)
    Path(name).write_text("\n".join(lines) + "\n")
    Path(".git").mkdir(exist_ok=True)


def found(paths: Sequence[str] = (".",), exclude: Sequence[str] = (), other: bool = False) -> list[str]:
    items = discover([Path(path) for path in paths], exclude)
    return [str(item.path) for item in items if isinstance(item, Found) and (other or item.kind != "other")]


def skipped(paths: Sequence[str] = (".",), exclude: Sequence[str] = ()) -> dict[str, str]:
    items = discover([Path(path) for path in paths], exclude)
    return {str(item.path): item.reason for item in items if isinstance(item, Skipped)}


def failures(paths: Sequence[str] = (".",)) -> list[str]:
    items = discover([Path(path) for path in paths])
    return [str(item.path) for item in items if isinstance(item, Skipped) and item.failed]


def tracked_by_git() -> list[str]:
    command = ["git", "ls-files", "-co", "--exclude-per-directory=.gitignore", "*.py"]
    return sorted(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[:-1])


def test_kinds_and_order() -> None:
    tree("b/net.py", "b.py", "a.pyi", "z.pyw", "nb.ipynb", "k.cu", "k.cuh", "README.md", "a/B.py", "a/a.py", "Makefile")
    items = [item for item in discover([Path()]) if isinstance(item, Found)]
    assert [(str(item.path), item.kind) for item in items] == [
        ("Makefile", "other"),
        ("README.md", "other"),
        ("a/B.py", "python"),
        ("a/a.py", "python"),
        ("a.pyi", "python"),
        ("b/net.py", "python"),
        ("b.py", "python"),
        ("k.cu", "cuda-source"),
        ("k.cuh", "cuda-source"),
        ("nb.ipynb", "notebook"),
        ("z.pyw", "python"),
    ]
    assert {item.root for item in items} == {Path()}


def test_each_file_once_in_the_order_of_the_paths() -> None:
    tree("a/x.py", "a/y.py", "b.py")
    assert found(["b.py", "a/y.py", "a", ".", str(Path("b.py").absolute())]) == ["b.py", "a/y.py", "a/x.py"]


def test_no_path_means_nothing() -> None:
    tree("x.py")
    assert found([]) == []


def test_root_of_a_named_file_is_its_folder() -> None:
    tree("a/x.py")
    assert list(discover([Path("a/x.py")])) == [Found(Path("a/x.py"), Path("a"), "python")]


NO_SOURCE = (
    ".git .hg .venv venv node_modules __pycache__ lib/site-packages build dist .tox .eggs "
    "third_party vendor pkg/_vendor extern external"
)


@pytest.mark.parametrize("folder", NO_SOURCE.split())
def test_folders_that_hold_no_source_of_the_project(folder: str) -> None:
    tree(f"{folder}/deep/er/net.py", "net.py")
    assert found() == ["net.py"]
    assert list(skipped()) == [folder]
    assert failures() == []


def test_they_are_entered_when_named() -> None:
    tree("third_party/a/net.py", "third_party/build/x.py")
    assert found(["third_party/a/net.py"]) == ["third_party/a/net.py"]
    assert found(["third_party"]) == ["third_party/a/net.py"]


def test_a_virtual_environment_of_any_name() -> None:
    tree("env/pyvenv.cfg", "env/lib/x.py", "rl/env/maze.py", "rl/venv2/pyvenv.cfg", "rl/venv2/x.py")
    assert found() == ["rl/env/maze.py"]
    assert skipped() == {"env": "virtual environment", "rl/venv2": "virtual environment"}


def test_a_package_named_like_build_output_is_source() -> None:
    tree("pkg/dist/__init__.py", "pkg/dist/ddp.py", "pkg/build/lib/x.py")
    assert found() == ["pkg/dist/__init__.py", "pkg/dist/ddp.py"]


def test_gitignore() -> None:
    ignore(".gitignore", "# notes", "*.log", "/data", "runs/", "gen_*.py", "!gen_keep.py", "a/**/tmp.py")
    ignore("sub/.gitignore", "!gen_sub.py", "local.py")
    tree("data/x.py", "sub/data/x.py", "runs/x.py", "sub/runs/x.py", "gen_x.py", "gen_keep.py", "x.log", "a/b/c/tmp.py")
    tree("sub/gen_sub.py", "sub/gen_x.py", "sub/local.py", "local.py", "sub/deeper/local.py")
    assert found() == ["gen_keep.py", "local.py", "sub/data/x.py", "sub/gen_sub.py"]
    assert "x.log" not in found(other=True)
    ignored = "a/b/c/tmp.py data gen_x.py runs sub/deeper/local.py sub/gen_x.py sub/local.py sub/runs"
    assert skipped() == {".git": "version control", **dict.fromkeys(ignored.split(), "ignored by git")}
    assert failures() == []


def test_gitignore_above_the_path_counts() -> None:
    ignore(".gitignore", "gen.py", "/src/out")
    tree("src/gen.py", "src/net.py", "src/out/x.py")
    assert found(["src"]) == ["src/net.py"]


def test_gitignore_above_the_repository_does_not() -> None:
    tree("x/.git/HEAD", "x/net.py")
    Path(".gitignore").write_text("*.py\n")
    assert found(["x"]) == ["x/net.py"]


def test_named_paths_are_taken_though_ignored() -> None:
    ignore(".gitignore", "out/", "gen.py")
    tree("out/a/x.py", "gen.py")
    assert found(["out", "gen.py"]) == ["out/a/x.py", "gen.py"]


@pytest.mark.parametrize(
    "lines",
    [
        ["out/**", "!out/keep.py"],
        ["out/*", "!out/keep.py"],
        ["*", "!*/", "!*.py", "out/x*"],
        ["out/", "!out/"],
        ["/*.py", "x.py", "\\!y.py", "trailing.py  "],
        ["!", "\\", "[z-a]", "out/x.py", "\ufeff", "[!t]op.py", "[^a].py"],
        ["out/**", "!out/**/", "!out/**/*.py", "y.py"],
    ],
)
def test_gitignore_as_git_reads_it(lines: list[str]) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    Path(".gitignore").write_text("\n".join(lines), encoding="utf-8")
    tree("out/keep.py", "out/x.py", "out/deep/keep.py", "top.py", "y.py", "!y.py", "trailing.py", "a.py")
    assert sorted(found()) == tracked_by_git()


SEGMENT = st.sampled_from(["a", "b", "*", "?", "**", "a*", "*b", "[ab]", "[!a]", "\\\\a", "*.py", "a.py"])
PATTERN = st.builds(
    lambda negated, first, segments, last: negated + first + "/".join(segments) + last,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENT, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " "]),
)


@given(top=st.lists(PATTERN, max_size=4), inner=st.lists(PATTERN, max_size=2))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_gitignore_as_git_reads_it(top: list[str], inner: list[str]) -> None:
    tree(*(f"{folder}{name}.py" for folder in ("", "a/", "b/", "a/b/", "b/a/", "a/a/b/") for name in ("a", "b", "ab")))
    subprocess.run(["git", "init", "-q", "."], check=True)
    Path(".gitignore").write_text("\n".join(top))
    Path("a/.gitignore").write_text("\n".join(inner))
    assert sorted(found()) == tracked_by_git()


def test_a_pattern_cannot_stop_the_walk() -> None:
    ignore(".gitignore", "/".join(["**", "*a*a*a*a*a*a*a*a*a*a*a*a*b"] * 20), "*a" * 60 + "*b")
    tree("/".join(["a" * 200] * 10) + "/x.py")
    assert len(found()) == 1


def test_a_gitignore_that_is_no_file_of_the_tree_is_not_read() -> None:
    tree("net.py", "pipe/net.py", "folder/.gitignore/x.py")
    Path("rules").write_text("*.py\n")
    Path(".gitignore").symlink_to("rules")
    os.mkfifo("pipe/.gitignore")
    assert found() == ["folder/.gitignore/x.py", "net.py", "pipe/net.py"]


def test_exclude_holds_for_named_paths_too() -> None:
    tree("pkg/net.py", "pkg/gen/x.py", "legacy/kern/net.py")
    exclude = ["legacy/", "gen"]
    assert found([".", "legacy/kern/net.py", "legacy", "pkg/gen/x.py"], exclude) == ["pkg/net.py"]
    assert skipped(["legacy/kern/net.py"], exclude) == {"legacy/kern/net.py": "excluded"}
    assert failures(["legacy/kern/net.py"]) == []


def test_exclude_refers_to_its_own_folder(in_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree("a/net.py", "a/b/net.py")
    monkeypatch.chdir(in_tree / "a")
    items = list(discover([Path()], ["/a/b"], exclude_root=in_tree))
    assert [str(item.path) for item in items] == ["b", "net.py"]
    assert [type(item) for item in items] == [Skipped, Found]


def test_links_are_never_followed(tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.py").touch()
    tree("pkg/net.py")
    Path("to_file.py").symlink_to("pkg/net.py")
    Path("to_folder").symlink_to("pkg")
    Path("pkg/up").symlink_to("..")
    Path("out").symlink_to(outside)
    Path("out.py").symlink_to(outside / "x.py")
    assert found() == ["pkg/net.py"]
    assert skipped() == {
        "to_file.py": "symbolic link within the tree",
        "to_folder": "symbolic link within the tree",
        "pkg/up": "symbolic link within the tree",
        "out": f"symbolic link out of the tree, to {outside}",
        "out.py": f"symbolic link out of the tree, to {outside / 'x.py'}",
    }
    assert failures() == []


def test_broken_links_and_loops_fail_if_they_stand_for_source() -> None:
    tree("net.py")
    Path("gone.py").symlink_to("nowhere")
    Path("data").symlink_to("/mnt/no/such/data")
    Path("loop.py").symlink_to("loop.py")
    assert found() == ["net.py"]
    assert skipped()["gone.py"] == skipped()["data"] == "does not exist, or is a symbolic link to nothing"
    assert skipped()["loop.py"] == "symbolic link that leads to itself"
    assert failures() == ["gone.py", "loop.py"]


def test_named_links() -> None:
    tree("pkg/net.py")
    Path("link.py").symlink_to("pkg/net.py")
    Path("folder").symlink_to("pkg")
    Path("loop").symlink_to("loop")
    assert found(["link.py", "folder"]) == ["folder/net.py"]
    assert skipped(["link.py"]) == {
        "link.py": f"a symbolic link; name the file itself: {os.path.realpath('pkg/net.py')}"
    }
    assert failures(["link.py", "loop", "no.py", "net.py/x.py"]) == ["loop", "no.py", "net.py/x.py"]


def test_what_is_neither_file_nor_folder() -> None:
    os.mkfifo("pipe.py")
    assert found() == []
    assert skipped() == {"pipe.py": "not a regular file"}
    assert failures(["pipe.py"]) == ["pipe.py"]


def test_an_unreadable_folder_fails_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    tree("a/x.py", "b/x.py", "c/x.py")
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert found() == ["a/x.py", "c/x.py"]
    assert skipped() == {"b": "cannot be read: permission denied"}
    assert failures() == ["b"]


@pytest.mark.parametrize(
    ("first_line", "taken"),
    [
        (b"#!/usr/bin/env python3\n", True),
        (b"#!/usr/bin/python3.11 -u\r\n", True),
        (b"#!/bin/sh\npython", False),
        (b"import torch\n", False),
        (b"", False),
    ],
)
def test_scripts_without_extension_when_named(first_line: bytes, taken: bool) -> None:
    tree("bin/train")
    Path("bin/train").write_bytes(first_line)
    assert bool(found(["bin/train"])) is taken
    assert found(["bin"]) == []
    assert found(["bin"], other=True) == ["bin/train"]


def test_folders_nested_deeper_than_python_calls() -> None:
    tree("/".join(["d"] * 300) + "/net.py")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        count = len(found())
    finally:
        sys.setrecursionlimit(limit)
    assert count == 1


def test_repository_root() -> None:
    tree("repo/.git/HEAD", "repo/ops/setup.py", "repo/ops/x.py", "loose/pyproject.toml", "loose/a/x.py", "alone/x.py")
    assert repository_root(Path("repo/ops/x.py")) == Path("repo").absolute()
    assert repository_root(Path("loose/a")) == Path("loose").absolute()
    assert repository_root(Path("alone/x.py")) == Path("alone").absolute()
