from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.patch.unified import file_patch, hunks
from codemods.source.document import Document
from codemods.source.edits import Edit, apply_edits


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    subprocess.run(["git", "config", "core.autocrlf", "false"], cwd=folder, check=True)
    return folder


def apply(repository: Path, patch: bytes) -> None:
    result = subprocess.run(
        ["git", "apply", "--whitespace=error-all", "-"], cwd=repository, input=patch, capture_output=True
    )
    # Blanks at a line's end are the user's; git only has to find and take the change.
    if b"whitespace" in result.stderr:
        result = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=repository, input=patch)
    assert result.returncode == 0, (result.stderr, patch)


def check(repository: Path, before: bytes, after: bytes, edits: list[Edit] | None, name: str = "net.py") -> bytes:
    """The patch, after git has made the change with it."""
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    patch = file_patch(name, before, after, edits)
    if patch:
        apply(repository, patch)
    assert path.read_bytes() == after
    path.unlink()
    return patch


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


def change(text: bytes, old: bytes, new: str) -> Edit:
    start = text.index(old)
    return Edit(start, start + len(old), new)


def test_the_form_is_gits() -> None:
    before = numbered(10)
    edits = [change(before, b"5", "five")]
    assert file_patch("pkg/net.py", before, apply_edits(before, edits), edits).decode() == (
        "diff --git a/pkg/net.py b/pkg/net.py\n"
        "--- a/pkg/net.py\n"
        "+++ b/pkg/net.py\n"
        "@@ -2,7 +2,7 @@\n"
        " line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n"
    )


def test_nothing_to_say() -> None:
    assert file_patch("net.py", b"x\n", b"x\n", []) == b""
    assert hunks(b"x\n", b"x\n") == []


@pytest.mark.parametrize("gap", [6, 7])
def test_near_changes_share_a_hunk(repository: Path, gap: int) -> None:
    before = numbered(30)
    edits = [change(before, b"line 10\n", "ten\n"), change(before, b"line %d\n" % (11 + gap), "later\n")]
    after = apply_edits(before, edits)
    check(repository, before, after, edits)
    assert len(hunks(before, after, edits)) == (1 if gap == 6 else 2)
    assert hunks(before, after, edits) == hunks(before, after)


def test_hunks_know_their_places() -> None:
    before = numbered(30)
    edits = [Edit(0, 0, "import a\nimport b\n"), change(before, b"line 20\n", "")]
    first, second = hunks(before, apply_edits(before, edits), edits)
    assert (first.header, second.header) == (b"@@ -1,3 +1,5 @@\n", b"@@ -17,7 +19,6 @@\n")
    assert (second.before_start, second.before_count, second.after_start, second.after_count) == (16, 7, 18, 6)
    assert second.lines[3] == b"-line 20\n"


def test_neighbouring_lines_read_as_one_change() -> None:
    before = b"a\nb\nc\n"
    edits = [Edit(0, 1, "A"), Edit(2, 3, "B")]
    (hunk,) = hunks(before, apply_edits(before, edits), edits)
    assert hunk.lines == (b"-a\n", b"-b\n", b"+A\n", b"+B\n", b" c\n")


def test_an_edit_over_many_lines_shows_only_those_that_change() -> None:
    before = b"f(\n  a,\n  b,\n  c,\n)\n"
    edits = [Edit(0, len(before) - 1, "f(\n  a,\n  B,\n  c,\n)")]
    (hunk,) = hunks(before, apply_edits(before, edits), edits)
    assert [line for line in hunk.lines if not line.startswith(b" ")] == [b"-  b,\n", b"+  B,\n"]


CONTENTS = {
    "crlf": b"a\r\nb\r\nc\r\nd\r\ne\r\n",
    "mixed": b"a\nb\r\nc\rd\n\r\ne\n",
    "lone cr": b"a\rb\rc\rd\re\r",
    "no last newline": b"a\nb\nc\nd\ne",
    "mark": b"\xef\xbb\xbfa\nb\nc\nd\ne\n",
    "gbk": "# coding: gbk\na = '好'\nb = 1\nc\nd\ne\n".encode("gbk"),
    "form feed": "a\x0c\u2028b\nc\nd\ne\n".encode(),
}


@pytest.mark.parametrize("before", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("known", [True, False], ids=["edits", "no edits"])
def test_git_takes_it(repository: Path, before: bytes, known: bool) -> None:
    document = Document.from_bytes(Path("net.py"), before)
    utf8 = document.utf8
    last = len(utf8)
    variants = [
        [Edit(0, 0, "import x" + document.newline)],
        [Edit(last, last, "# end")],
        [change(utf8, b"a", "AA"), change(utf8, b"b", ""), change(utf8, b"e", "E")],
        [change(utf8, utf8[utf8.index(b"b") : last], "")],
        [Edit(0, last, "")],
    ]
    for edits in variants:
        check(repository, before, document.with_edits(edits), edits if known else None)


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b"x\n"), (b"", b"x"), (b"x\n", b""), (b"x", b""), (b"x", b"x\n"), (b"x\n", b"x"), (b"\n", b"\n\n")],
)
def test_empty_files_and_last_lines(repository: Path, before: bytes, after: bytes) -> None:
    check(repository, before, after, None)
    check(repository, before, after, [Edit(0, len(before), after.decode())])


NAMES = [
    "a b.py",
    "tab\there.py",
    'quo"te.py',
    "back\\slash.py",
    "模型.py",
    "é/ü.py",
    "line\nend.py",
    "\x7f.py",
    "$x'`.py",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_quoted_as_git_does(repository: Path, name: str) -> None:
    patch = check(repository, b"x = 1\n", b"x = 2\n", None, name)
    path = repository / name
    path.write_bytes(b"x = 1\n")
    subprocess.run(["git", "add", "--intent-to-add", name], cwd=repository, check=True)
    subprocess.run(["git", "add", name], cwd=repository, check=True)
    path.write_bytes(b"x = 2\n")
    git = subprocess.run(["git", "diff", "--", name], cwd=repository, check=True, capture_output=True).stdout
    assert [line for line in git.split(b"\n") if not line.startswith(b"index ")] == patch.split(b"\n")
    path.unlink()
    subprocess.run(["git", "rm", "-q", "--cached", name], cwd=repository, check=True)


def test_a_name_that_is_no_utf8(repository: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    assert b'"a/caf\\351.py"' in check(repository, b"x = 1\n", b"x = 2\n", None, name)


@pytest.mark.parametrize("content", [b"import os\r\nx = 1\r\n", b"no end", b""])
@pytest.mark.parametrize("mode", [0o644, 0o755])
@pytest.mark.parametrize("name", ["ai_device.py", "pkg/模 型.py"])
def test_new_files(repository: Path, content: bytes, mode: int, name: str) -> None:
    apply(repository, file_patch(name, None, content, None, mode))
    path = repository / name
    assert path.read_bytes() == content
    assert bool(path.stat().st_mode & 0o100) is (mode == 0o755)
    path.unlink()


def test_a_patch_of_several_files(repository: Path) -> None:
    (repository / "one.py").write_bytes(b"1")
    (repository / "two.py").write_bytes(b"2\n")
    parts = [file_patch("one.py", b"1", b"one"), file_patch("new.py", None, b"n\n"), file_patch("two.py", b"2\n", b"")]
    apply(repository, b"".join(parts))
    assert [(repository / name).read_bytes() for name in ("one.py", "new.py", "two.py")] == [b"one", b"n\n", b""]


def test_edits_that_do_not_lead_to_the_result_are_not_believed(repository: Path) -> None:
    for edits in ([Edit(0, 1, "wrong")], [Edit(0, 99, "")], [Edit(0, 2, ""), Edit(1, 2, "")]):
        check(repository, b"a\nb\nc\n", b"a\nB\nc\n", edits)


WORDS = st.lists(st.sampled_from(["a", "b", " ", "\n", "\n", "\r\n", "\r", "é", "好", "\x0c"]), max_size=30)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    pieces = [piece.encode() for piece in draw(WORDS)] * draw(st.sampled_from([1, 1, 4]))
    starts = [sum(map(len, pieces[:index])) for index in range(len(pieces) + 1)]
    cuts = sorted(draw(st.lists(st.sampled_from(starts), max_size=8)))
    edits = [Edit(start, end, "".join(draw(WORDS)[:4])) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    return b"".join(pieces), edits


@given(edited())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_git_takes_any_edit(repository: Path, case: tuple[bytes, list[Edit]]) -> None:
    before, edits = case
    after = apply_edits(before, edits)
    check(repository, before, after, edits)


@given(edited(), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_hunks_hold_both_sides(case: tuple[bytes, list[Edit]], context: int) -> None:
    before, edits = case
    after = apply_edits(before, edits)
    for known in (edits, None):
        rebuilt = []
        done = 0
        old = before.split(b"\n")
        old = [line + b"\n" for line in old[:-1]] + old[-1:]
        for hunk in hunks(before, after, known, context):
            rebuilt += old[done : hunk.before_start]
            assert len(rebuilt) == hunk.after_start
            rebuilt += [line[1:] for line in hunk.lines if line[:1] != b"-"]
            done = hunk.before_start + hunk.before_count
            assert old[hunk.before_start : done] == [line[1:] for line in hunk.lines if line[:1] != b"+"]
        assert b"".join(rebuilt + old[done:]) == after
