"""Whatever is wrong with one path is one line of the report, and everything else is converted all the same."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conversion import Run, Tree

GOOD = "import torch\n\nx = torch.ones(1).cuda()\n"
GOOD_AFTER = "import torch\n\nimport ai_device\n\nx = torch.ones(1).to(ai_device.device())\n"


def convert_beside_good_files(tree: Tree, *arguments: str) -> Run:
    """Converts the tree with a good file before and one behind the bad one, in the order of names."""
    tree.write({"a_good.py": GOOD, "z_good.py": GOOD})
    run = tree.run("convert", ".", "--write", *arguments)
    assert tree.read("a_good.py") == GOOD_AFTER
    assert tree.read("z_good.py") == GOOD_AFTER
    assert not [name for name in tree.files() if ".uncuda-" in name]
    assert "Traceback" not in run.stderr + run.stdout
    assert "a fault of uncuda" not in run.stderr
    return run


def lines_about(run: Run, name: str) -> list[str]:
    return [line for line in run.stderr.splitlines() if line.startswith((f"{name}:", f"uncuda: {name}"))]


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "no Python": (b"this is x.cuda() no Python\n", "bad.py:1: does not parse"),
    "unfinished": (b"x = (\n    y.cuda()\n", "bad.py:1: does not parse"),
    "bad indentation": (b"if x:\n    y.cuda()\n   z.cuda()\n", "bad.py:3: does not parse"),
    "merge leftovers": (b"x = 1\n<<<<<<< HEAD\nx.cuda()\n=======\n>>>>>>> a\n", "bad.py:2: does not parse"),
    "template": (b"import {{ name }}\nx.cuda()\n", "bad.py:1: does not parse"),
    "print of Python 2": (b"x = y.cuda()\nprint 'sum', x\n", "bad.py:2: does not parse"),
    "exec of Python 2": (b"y.cuda()\nexec 'x = 1'\n", "bad.py:2: does not parse"),
    "async as a keyword argument": (
        b"y = 1\nx = y.cuda(async=True)\n",
        "bad.py:2: does not parse: `async` is a keyword",
    ),
    "async, spaced": (b"y = 1\nx = y.cuda(gpu, async = True)\n", "bad.py:2: does not parse: `async` is a keyword"),
    "async on a line of its own": (
        b"y = 1\nx = y.cuda(\n    gpu,\n    async=True)\n",
        "bad.py:4: does not parse: `async` is a keyword",
    ),
    "undeclared encoding": (b"# caf\xe9\nx = y.cuda()\n", "bad.py:1: not valid UTF-8 (byte 0xe9 at line 1)"),
    "unknown encoding": (b"# -*- coding: klingon -*-\nx = y.cuda()\n", "bad.py: declares an encoding"),
    "encoding that does not fit": (b"# -*- coding: ascii -*-\nx = '\xc3\xa9'.cuda()\n", "bad.py:2: not valid ascii"),
    "encoding that is none": (b"# coding: hex\nx = y.cuda()\n", "bad.py: declares the encoding"),
    "mark and cookie that differ": (b"\xef\xbb\xbf# coding: latin-1\nx = y.cuda()\n", "bad.py:1: starts with the mark"),
    "UTF-16": (b"\xff\xfex = y.cuda()\n", "bad.py:1: is UTF-16"),
    "NUL bytes": (b"x = y.cuda()\n\0\n", "bad.py:2: contains NUL bytes"),
    "brackets": (b"x = " + b"(" * 500 + b"y.cuda()" + b")" * 500 + b"\n", "bad.py"),
    "link stored as text": (b"../cuda/model.py", "bad.py:1: does not parse"),
}


@pytest.mark.parametrize(("raw", "message"), tuple(UNREADABLE.values()), ids=tuple(UNREADABLE))
def test_a_file_that_cannot_be_understood(tree: Tree, raw: bytes, message: str) -> None:
    tree.write({"bad.py": raw})
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    (line,) = lines_about(run, "bad.py")
    assert line.startswith(message)
    assert tree.files()["bad.py"] == raw
    assert "1 path could not be read or converted" in run.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_bad_files(tree: Tree, jobs: str) -> None:
    tree.write({f"bad{i}.py": b"x.cuda( \n" for i in range(5)})
    run = convert_beside_good_files(tree, "--jobs", jobs)
    assert run.exit_code == 2
    assert [len(lines_about(run, f"bad{i}.py")) for i in range(5)] == [1] * 5


def test_a_bad_file_without_cuda_is_nobodys_business(tree: Tree) -> None:
    tree.write({"bad.py": b"print 'old'\n\xe9"})
    assert convert_beside_good_files(tree).exit_code == 1


def test_the_same_without_writing(tree: Tree) -> None:
    tree.write({"bad.py": "x.cuda(\n", "good.py": GOOD})
    before = tree.files()
    run = tree.run("convert", ".")
    assert run.exit_code == 2
    assert "+++ b/good.py" in run.stdout
    assert tree.files() == before


# -- paths -----------------------------------------------------------------------------------------------------------


def test_a_path_that_does_not_exist(tree: Tree) -> None:
    tree.write({"good.py": GOOD})
    run = tree.run("convert", "missing.py", "good.py", "--write")
    assert run.exit_code == 2
    assert len(lines_about(run, "missing.py")) == 1
    assert tree.read("good.py") == GOOD_AFTER


def test_the_same_behind_a_good_path(tree: Tree) -> None:
    tree.write({"good.py": GOOD})
    run = tree.run("convert", "good.py", "missing.py", "--write")
    assert run.exit_code == 2
    assert len(lines_about(run, "missing.py")) == 1
    assert tree.read("good.py") == GOOD_AFTER


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tree: Tree) -> None:
    tree.write({"bad.py": GOOD})
    (tree.root / "bad.py").chmod(0)
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_file_that_the_system_does_not_give(tree: Tree, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    tree.write({"bad.py": GOOD})
    refuse(monkeypatch, "read_bytes", "bad.py", number)
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert lines_about(run, "bad.py") == [f"bad.py: cannot be read: {os.strerror(number).lower()}"]


def test_a_folder_that_cannot_be_entered(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"locked/inner.py": GOOD})
    scandir = os.scandir

    def refusing(path: Any = ".") -> Any:
        if os.fspath(path).endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "locked")) == 1


def test_a_link_to_nothing(tree: Tree) -> None:
    (tree.root / "bad.py").symlink_to("nowhere.py")
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1


def test_a_link_to_itself(tree: Tree) -> None:
    (tree.root / "bad.py").symlink_to("bad.py")
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1


def test_a_circle_of_folders(tree: Tree) -> None:
    tree.write({"pkg/inner.py": GOOD})
    (tree.root / "pkg" / "again").symlink_to(tree.root, target_is_directory=True)
    assert convert_beside_good_files(tree).exit_code == 1
    assert "ai_device" in tree.read("pkg/inner.py")


@pytest.mark.parametrize("named", [False, True])
def test_a_link_out_of_the_tree_is_never_written_through(tree: Tree, named: bool) -> None:
    outside = tree.root.parent / "outside.py"
    outside.write_text(GOOD)
    (tree.root / "link.py").symlink_to(outside)
    run = convert_beside_good_files(tree, *(["link.py"] if named else []))
    assert outside.read_text() == GOOD
    assert (tree.root / "link.py").is_symlink()
    assert run.exit_code == 1


def test_a_link_to_a_folder_out_of_the_tree_is_not_entered(tree: Tree) -> None:
    outside = tree.root.parent / "outside"
    outside.mkdir()
    (outside / "net.py").write_text(GOOD)
    (tree.root / "link").symlink_to(outside, target_is_directory=True)
    assert convert_beside_good_files(tree).exit_code == 1
    assert (outside / "net.py").read_text() == GOOD


def test_a_pipe_is_not_opened(tree: Tree) -> None:
    os.mkfifo(tree.root / "pipe.py")
    assert convert_beside_good_files(tree).exit_code == 1


def test_a_folder_with_the_name_of_a_file(tree: Tree) -> None:
    tree.write({"net.py/inner.py": GOOD})
    assert convert_beside_good_files(tree).exit_code == 1
    assert "ai_device" in tree.read("net.py/inner.py")


@pytest.mark.parametrize("name", ["mit leer.py", "größe.py", "a'b.py", "-x.py", "[red].py", "new\nline.py"])
def test_odd_names(tree: Tree, name: str) -> None:
    tree.write({name: GOOD})
    assert convert_beside_good_files(tree).exit_code == 1
    assert tree.read(name) == GOOD_AFTER


def test_a_name_that_is_no_text(tree: Tree) -> None:
    path = os.fsencode(tree.root) + b"/caf\xe9.py"
    Path(os.fsdecode(path)).write_text(GOOD)
    assert convert_beside_good_files(tree).exit_code == 1
    assert Path(os.fsdecode(path)).read_text() == GOOD_AFTER


@pytest.mark.parametrize("arguments", [(), ("--format", "json"), ("--output", "p.patch")])
def test_a_name_that_is_no_text_in_every_view(tree: Tree, arguments: tuple[str, ...]) -> None:
    Path(os.fsdecode(os.fsencode(tree.root) + b"/caf\xe9.py")).write_text(GOOD)
    assert tree.run("convert", ".", *arguments).exit_code == 1


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xef\xbb\xbf", b"# cuda\n", b"# cuda", b"'cuda'", b"\f\n", b"# cuda\r"])
def test_files_with_nothing_in_them(tree: Tree, raw: bytes) -> None:
    tree.write({"empty.py": raw})
    assert tree.run("convert", ".", "--write").exit_code == 0
    assert tree.files() == {"empty.py": raw}


def test_a_long_file(tree: Tree) -> None:
    lines = 50_000
    middle = lines // 2
    text = ["import torch\n", *(f"a{i} = f(a{i}, {i})\n" for i in range(lines))]
    text[middle] = "x = x.cuda()\n"
    tree.write({"long.py": "".join(text)})
    run = tree.run("convert", "long.py", "--write")
    assert run.exit_code == 1
    old, new = set(text), tree.read("long.py").splitlines(keepends=True)
    assert [line for line in new if line not in old] == ["import ai_device\n", "x = x.to(ai_device.device())\n"]


def test_a_long_line(tree: Tree) -> None:
    tree.write({"long.py": "import torch\nx = [" + "1, " * 5_000 + "y.cuda()]\n"})
    assert tree.run("convert", "long.py", "--write").exit_code == 1
    assert tree.read("long.py").endswith("1, y.to(ai_device.device())]\n")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + " + ".join(f"a{i}" for i in range(5000)) + "\ny = y.cuda()\n",
        "x = " + " + ".join(f"a{i}" for i in range(5000)) + " + y.cuda()\n",
        "x = f" + ".f(1)" * 3000 + "\ny = y.cuda()\n",
        "x = y.cuda() if a else " * 300 + "0\n",
        "x = " + "[" * 90 + "y.cuda()" + "]" * 90 + "\n",
        "x = " + "-" * 900 + "y.cuda()\n",
        "\n".join("    " * i + f"if a{i}:" for i in range(95)) + "\n" + "    " * 95 + "x = x.cuda()\n",
        "if a:\n    b\n" + "elif a:\n    b\n" * 2000 + "else:\n    x = x.cuda()\n",
        "x = 'a' " + "'b' " * 5000 + "\ny = y.cuda()\n",
    ],
    ids=["chain", "chain with a hit", "dots", "choices", "lists", "signs", "blocks", "elif", "strings"],
)
def test_deep_files_are_converted_or_named(tree: Tree, text: str) -> None:
    tree.write({"deep.py": text})
    run = convert_beside_good_files(tree)
    if run.exit_code == 2:
        assert len(lines_about(run, "deep.py")) == 1
        assert tree.read("deep.py") == text
    else:
        assert ".cuda()" not in tree.read("deep.py")


# -- writing ---------------------------------------------------------------------------------------------------------


def test_a_file_that_may_not_be_written(tree: Tree) -> None:
    tree.write({"bad.py": GOOD})
    (tree.root / "bad.py").chmod(0o444)
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1
    assert tree.read("bad.py") == GOOD
    assert stat.S_IMODE((tree.root / "bad.py").stat().st_mode) == 0o444
    assert "wrote bad.py" not in run.stderr


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_in_the_middle_of_a_file(tree: Tree, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    tree.write({"bad.py": GOOD + "# the bad one\n"})
    write = os.write

    def full(descriptor: int, data: Any) -> int:
        if b"the bad one" in bytes(data):
            write(descriptor, bytes(data)[:10])
            raise OSError(number, os.strerror(number))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1
    assert tree.read("bad.py") == GOOD + "# the bad one\n"


def test_a_helper_that_cannot_be_written_leaves_all_files(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Converted files would import what is not there."""
    tree.write({"a.py": GOOD, "b.py": GOOD})
    before = tree.files()
    write = os.write

    def full(descriptor: int, data: Any) -> int:
        if b"uncuda helper" in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 2
    assert len(lines_about(run, "ai_device.py")) == 1
    assert tree.files() == before


def test_a_file_that_changes_meanwhile_is_left(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"bad.py": GOOD})
    changed = GOOD + "# an editor was here\n"
    behind_the_back(monkeypatch, lambda: tree.write({"bad.py": changed}))
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1
    assert tree.read("bad.py") == changed


def test_a_file_that_vanishes_meanwhile_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"bad.py": GOOD})
    behind_the_back(monkeypatch, lambda: (tree.root / "bad.py").unlink())
    run = convert_beside_good_files(tree)
    assert run.exit_code == 2
    assert len(lines_about(run, "bad.py")) == 1


def test_a_patch_that_cannot_be_written(tree: Tree) -> None:
    tree.write({"good.py": GOOD})
    run = tree.run("convert", ".", "--output", "missing/a.patch")
    assert run.exit_code == 2
    assert "missing/a.patch" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_mode_of_a_file_is_kept(tree: Tree) -> None:
    tree.write({"tool.py": GOOD})
    (tree.root / "tool.py").chmod(0o755)
    assert tree.run("convert", ".", "--write").exit_code == 1
    assert stat.S_IMODE((tree.root / "tool.py").stat().st_mode) == 0o755


def refuse(monkeypatch: pytest.MonkeyPatch, method: str, name: str, number: int) -> None:
    """Makes a method of ``Path`` fail for one file."""
    original: Callable[..., Any] = getattr(Path, method)

    def refusing(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.name == name:
            raise OSError(number, os.strerror(number))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, method, refusing)


def behind_the_back(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Does something between the reading and the writing."""
    from codemods.report import patch

    write = patch.write

    def later(outcome: Any) -> Any:
        action()
        return write(outcome)

    monkeypatch.setattr(patch, "write", later)
