"""Baselines: which findings they know while their files change, and what their files look like."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
from conversion import Tree
from hypothesis import given
from hypothesis import strategies as st

from codemods.check.baseline import Baseline, BaselineError, Entry, Scope, stale_lines
from codemods.check.reported import Reported
from codemods.engine.outcome import Outcome, Request
from codemods.engine.run import run

TRAIN = "import torch\n\n\ndef go(model, x):\n    model = model.cuda()\n    return model(x.cuda())\n"


def checked(tree: Tree, *names: str, **narrowed: tuple[str, ...]) -> tuple[list[Reported], Scope]:
    """What a run over files, or the whole tree, finds, and what it looked at."""
    request = Request(tuple(tree.root / name for name in names) or (tree.root,), exclude_root=tree.root, **narrowed)  # type: ignore[arg-type]
    outcome = run(request)
    return _reported(outcome), Scope.of(request, outcome)


def _reported(outcome: Outcome) -> list[Reported]:
    return [Reported(c.document.path, c.document, f) for c in outcome.conversions for f in c.findings]


def baseline_of(tree: Tree, source: str = TRAIN) -> Baseline:
    tree.write({"train.py": source})
    return Baseline.of(checked(tree)[0], tree.root)


def split(baseline: Baseline, tree: Tree, *names: str) -> tuple[list[str], list[str]]:
    """The texts of the new places and of the stale entries."""
    reported, scope = checked(tree, *names)
    new, stale = baseline.split(reported, tree.root, scope)
    return [_text(item) for item in new], [entry.place for entry in stale]


def _text(item: Reported) -> str:
    return item.document.utf8[item.finding.start : item.finding.end].decode()


# -- what is known ---------------------------------------------------------------------------------------------------


def test_nothing_is_new_after_the_baseline_was_taken(tree: Tree) -> None:
    assert len(baseline_of(tree).entries) == 2
    assert split(baseline_of(tree), tree) == ([], [])


CHANGES = {
    "moved lines": "# one\n# two\nimport os\n" + TRAIN,
    "renamed surroundings": TRAIN.replace("go(", "run(").replace("return model(", "return net("),
    "another name on the line": TRAIN.replace("    model = model", "    net = model").replace("n model(", "n net("),
    "indented": "import torch\n\n\nclass A:\n" + indent(TRAIN.partition("\n\n\n")[2], "    "),
    "tabs": TRAIN.replace("    ", "\t"),
    "windows": TRAIN.replace("\n", "\r\n"),
    "old macintosh": TRAIN.replace("\n", "\r"),
    "byte-order mark": "\ufeff" + TRAIN,
    "no last line end": TRAIN.rstrip("\n"),
    "another order": TRAIN.replace("    model = model.cuda()\n", "")
    + "\n\ndef late(model):\n    model = model.cuda()\n",
    "comment": TRAIN.replace("model.cuda()", "model.cuda()  # fast"),
}


@pytest.mark.parametrize("source", CHANGES.values(), ids=CHANGES)
def test_a_known_place_stays_known(tree: Tree, source: str) -> None:
    baseline = baseline_of(tree)
    tree.write({"train.py": source})
    assert split(baseline, tree) == ([], [])


def test_a_place_that_a_formatter_wrapped_stays_known(tree: Tree) -> None:
    baseline = baseline_of(tree, "import torch\n\ntorch.ones(2, 3, device='cuda').to('cuda:0', non_blocking=True)\n")
    arguments = "(\n    2,\n    3,\n    device='cuda',\n)", "(\n    'cuda:0',\n    non_blocking=True,\n)"
    wrapped = "import torch\n\ntorch.ones{}.to{}\n".format(*arguments)
    tree.write({"train.py": wrapped})
    assert split(baseline, tree) == ([], [])


def test_a_long_place_stays_known_when_it_is_wrapped(tree: Tree) -> None:
    numbers = [str(number) for number in range(200)]
    baseline = baseline_of(tree, f"import torch\n\ntorch.tensor([{', '.join(numbers)}]).cuda()\n")
    assert all(len(entry.place) < 200 for entry in baseline.entries)
    tree.write({"train.py": "import torch\n\ntorch.tensor(\n    [\n" + ",\n".join(numbers) + ",\n    ],\n).cuda()\n"})
    assert split(baseline, tree) == ([], [])
    tree.write({"train.py": "import torch\n\ntorch.tensor([" + ", ".join(numbers) + ", 7]).cuda()\n"})
    new, stale = split(baseline, tree)
    assert len(new) == len(stale) == 1


def test_one_more_of_an_equal_place_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"train.py": TRAIN + "\n\ndef more(x):\n    y = x.cuda()\n"})
    reported, scope = checked(tree)
    new, stale = baseline.split(reported, tree.root, scope)
    assert [item.finding.line for item in new] == [10]
    assert stale == []


def test_of_equal_places_the_one_on_the_new_line_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"train.py": TRAIN.replace("def go", "def early(x):\n    y = x.cuda()\n\n\ndef go")})
    reported, _ = checked(tree)
    new, _ = baseline.split(reported, tree.root)
    assert [item.finding.line for item in new] == [5]


def test_another_rule_at_a_known_place_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    reported, _ = checked(tree)
    other = replace(reported[0], finding=replace(reported[0].finding, rule="UC999"))
    assert baseline.split([other, *reported[1:]], tree.root)[0] == [other]


def test_the_same_place_in_another_file_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"pkg/train.py": TRAIN})
    assert len(split(baseline, tree)[0]) == 2


# -- stale entries ---------------------------------------------------------------------------------------------------


def test_a_converted_place_leaves_a_stale_entry(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"train.py": TRAIN.replace("model = model.cuda()", "pass")})
    assert split(baseline, tree) == ([], ["model.cuda()"])


def test_stale_entries_are_said_with_the_remedy(tree: Tree) -> None:
    baseline = baseline_of(tree)
    lines = list(stale_lines(baseline.entries, Path("base.json")))
    assert lines[0] == "train.py: UC101 `model.cuda()` is in the baseline and no longer found"
    assert lines[-1] == "base.json: run with --write-baseline to drop what is no longer found"
    assert list(stale_lines([], Path("base.json"))) == []


def test_what_a_run_did_not_look_at_is_not_stale(tree: Tree) -> None:
    tree.write({"a/one.py": TRAIN, "ab/two.py": TRAIN, "a/bad.py": TRAIN})
    baseline = Baseline.of(checked(tree)[0], tree.root)
    tree.write({"a/one.py": "", "ab/two.py": "", "a/bad.py": "x.cuda(\n"})
    assert {entry.path for entry in baseline.split([], tree.root, checked(tree, "a")[1])[1]} == {"a/one.py"}
    assert {entry.path for entry in baseline.split([], tree.root, checked(tree)[1])[1]} == {"a/one.py", "ab/two.py"}
    scope = checked(tree, exclude=("ab/",))[1]
    assert {entry.path for entry in baseline.split([], tree.root, scope)[1]} == {"a/one.py"}


def test_what_a_run_was_not_asked_for_is_not_stale(tree: Tree) -> None:
    baseline = baseline_of(tree)
    for narrowed in ({"select": ("UC3",)}, {"ignore": ("UC1",)}):
        reported, scope = checked(tree, **narrowed)
        assert baseline.split(reported, tree.root, scope) == ([], [])


def test_a_deleted_file_leaves_stale_entries(tree: Tree) -> None:
    baseline = baseline_of(tree)
    (tree.root / "train.py").unlink()
    assert split(baseline, tree) == ([], ["model.cuda()", "x.cuda()"])


# -- moved files -----------------------------------------------------------------------------------------------------


def test_a_moved_file_is_known(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"pkg/run.py": "import os\n" + TRAIN})
    (tree.root / "train.py").unlink()
    assert split(baseline, tree) == ([], [])
    assert split(baseline, tree, "pkg/run.py") == ([], [])


def test_a_moved_file_with_one_more_place_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"run.py": TRAIN + "y.cuda()\n"})
    (tree.root / "train.py").unlink()
    new, stale = split(baseline, tree)
    assert (len(new), len(stale)) == (3, 2)


def test_a_file_that_could_have_moved_to_two_places_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"run.py": TRAIN, "walk.py": TRAIN})
    (tree.root / "train.py").unlink()
    new, stale = split(baseline, tree)
    assert (len(new), len(stale)) == (4, 2)


def test_a_copied_file_is_new(tree: Tree) -> None:
    baseline = baseline_of(tree)
    tree.write({"run.py": TRAIN})
    assert len(split(baseline, tree)[0]) == 2


# -- the file --------------------------------------------------------------------------------------------------------


def test_what_is_written_is_what_is_read(tree: Tree) -> None:
    tree.write({"größe.py": TRAIN, "a b.py": TRAIN.replace("x.cuda()", "x['…\"'].cuda()")})
    baseline = Baseline.of(checked(tree)[0], tree.root)
    file = tree.root / "base.json"
    baseline.write(file)
    assert Baseline.load(file) == baseline
    first = file.read_bytes()
    Baseline.of(reversed(checked(tree)[0]), tree.root).write(file)
    assert file.read_bytes() == first
    lines = first.decode("ascii").splitlines()
    assert len(lines) == len(baseline.entries) + 3
    assert json.loads(first)["uncuda-baseline"] == 1
    assert not re.search(r'"(?:line|start)": \d', first.decode())


def test_an_empty_baseline(tree: Tree) -> None:
    file = tree.root / "base.json"
    Baseline().write(file)
    assert Baseline.load(file) == Baseline()


def test_git_merges_baselines(tree: Tree) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    tree.git_init()
    tree.write({f"{name}.py": TRAIN for name in "abcdefgh"})
    entries = Baseline.of(checked(tree)[0], tree.root).entries
    file = tree.root / "base.json"

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=tree.root, check=True, capture_output=True)

    def commit(kept: tuple[Entry, ...]) -> None:
        Baseline(kept).write(file)
        git("add", "base.json")
        git("commit", "-qm", "x")

    commit(entries)
    git("branch", "other")
    commit(entries[:-1])
    git("checkout", "-q", "other")
    commit((*entries[:8], *entries[9:]))
    git("merge", "-q", "-m", "x", "-")
    assert Baseline.load(file).entries == (*entries[:8], *entries[9:-1])


def test_a_narrow_run_updates_its_part(tree: Tree) -> None:
    tree.write({"a.py": TRAIN, "b.py": TRAIN})
    baseline = Baseline.of(checked(tree)[0], tree.root)
    tree.write({"a.py": "", "b.py": ""})
    reported, scope = checked(tree, "a.py")
    assert {entry.path for entry in baseline.updated(reported, tree.root, scope).entries} == {"b.py"}
    reported, scope = checked(tree)
    assert baseline.updated(reported, tree.root, scope) == Baseline()


ENTRY = '{"path": "a.py", "rule": "UC101", "place": "x.cuda()", "line": "x.cuda()"}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "--write-baseline"),
        ("", "not valid JSON"),
        ("<<<<<<< HEAD\n{}\n", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "no baseline"),
        ('{"a": 1}', "no baseline"),
        ('{"uncuda-baseline": 2, "findings": []}', "version 2"),
        ('{"uncuda-baseline": "1", "findings": []}', "version '1'"),
        ('{"uncuda-baseline": 1}', "finding 1 is not whole"),
        ('{"uncuda-baseline": 1, "findings": {}}', "finding 1 is not whole"),
        ('{"uncuda-baseline": 1, "findings": [{}]}', "finding 1 is not whole"),
        (f'{{"uncuda-baseline": 1, "findings": [{ENTRY}, 3]}}', "finding 2 is not whole"),
        ('{"uncuda-baseline": 1, "findings": [{"path": 7, "rule": "", "place": "", "line": ""}]}', "1 is not whole"),
    ],
)
def test_a_file_that_is_no_baseline(tmp_path: Path, content: str | bytes | None, said: str) -> None:
    file = tmp_path / "base.json"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(BaselineError) as caught:
        Baseline.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="cannot be read"):
        Baseline.load(tmp_path)


# -- properties ------------------------------------------------------------------------------------------------------

_WORDS = st.text("ab.", min_size=1, max_size=2)
_ENTRIES = st.lists(st.builds(Entry, _WORDS, st.sampled_from(["UC101", "UC2"]), _WORDS, _WORDS), max_size=12)


@given(_ENTRIES)
def test_every_baseline_comes_back(tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]) -> None:
    file = tmp_path_factory.mktemp("baseline") / "base.json"
    baseline = Baseline(tuple(sorted(entries)))
    baseline.write(file)
    assert Baseline.load(file) == baseline
