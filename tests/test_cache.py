"""The cache: the same answers as without it, sooner; and nothing worse than slowness whatever is in it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from conversion import Tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repositories import GitRepository, needs_git

import codemods
from codemods.engine import cache as cache_module
from codemods.engine import tool_digest
from codemods.engine.cache import FOLDER, Cache
from codemods.engine.conversion_record import pack, unpack
from codemods.engine.convert import Conversion
from codemods.engine.outcome import Outcome, Request
from codemods.engine.run import run
from codemods.findings import Finding, Tier
from codemods.source.document import Document
from codemods.toml import rules_folder

CALL = "import torch\n\nx = torch.ones(1).cuda()\n"
FILES: dict[str, str | bytes] = {
    "train.py": CALL + "g = torch.cuda.CUDAGraph()\n",
    "net.py": "import torch.nn as nn\n\n\nclass Batch:\n    def cuda(self):\n        return self\n",
    "use.py": "from net import Batch\n\nbatch = Batch()\nbatch.cuda()\n",
    "latin.py": b"# coding: latin-1\n" + CALL.encode() + b"# caf\xe9\n",
    "bom.py": b"\xef\xbb\xbf" + CALL.replace("\n", "\r\n").encode(),
    "guard.py": "import torch\n\ndev = 'cuda' if torch.cuda.is_available() else 'cpu'\n",
    "plain.py": "import torch\n",
    "bad.py": "x.cuda(\n",
    "conf.yaml": "device: cuda\n",
    "n.ipynb": '{"cells": [{"cell_type": "code", "source": ["import net\\n", "x.cuda()"]}]}',
}


@pytest.fixture
def cached(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository whose cache is in its usual place, and warm."""
    monkeypatch.delenv("UNCUDA_CACHE_DIR")
    tree.write(FILES)
    tree.run("convert", ".")
    return tree


def cache_file(tree: Tree) -> Path:
    (file,) = (tree.root / FOLDER).glob("*.json")
    return file


def answer(root: Path, *names: str, **asked: Any) -> tuple[Any, ...]:
    """Everything that a run says, with or without a cache."""
    request = Request(tuple(root / name for name in names) or (root,), jobs=1, **asked)
    return told(run(request))


def told(outcome: Outcome) -> tuple[Any, ...]:
    changes = [
        (c.document, c.findings, c.edits, c.after, c.needs_helper, [c.findings.index(f) for f in c.applied])
        for c in outcome.conversions
    ]
    failures = sorted(map(str, outcome.failures))
    return changes, outcome.helpers, failures, outcome.cuda_sources, outcome.notebooks, outcome.files


# -- the same answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--format", "json"), ("--tier", "safe"), ("--select", "UC1"), ("--stats",)])
def test_a_warm_run_says_what_a_cold_one_says(tree: Tree, arguments: tuple[str, ...]) -> None:
    tree.write(FILES)
    without = tree.run("convert", ".", "--no-cache", *arguments)
    assert tree.run("convert", ".", *arguments) == without
    assert tree.run("convert", ".", *arguments) == without


def test_a_warm_run_writes_what_a_cold_one_writes(tree: Tree) -> None:
    tree.write(FILES)
    tree.run("convert", ".")
    tree.run("convert", ".", "--write")
    warm = tree.files()
    for name in warm:
        (tree.root / name).unlink()
    tree.write(FILES)
    tree.run("convert", ".", "--write", "--no-cache")
    assert tree.files() == warm


MORE: Mapping[str, tuple[str, ...]] = {
    "train.py": (CALL, CALL + "from net import Batch\nb = Batch()\nb.cuda()\n", "x.cuda(\n", ""),
    "net.py": ("class Batch:\n    def cuda(self):\n        return self\n", "class Batch:\n    pass\n", CALL),
    "pkg/__init__.py": ("", "from . import deep\n"),
    "pkg/deep.py": (CALL, "from .. import net\n" + CALL, "def run(rank):\n    x.to(rank)\n"),
    "start.py": ("import pkg.deep\n", "from pkg.deep import run\nrun(rank)\nrun(gpu)\n", "import hydra\n"),
    "setup.py": (CALL, "from setuptools import setup\n\nsetup(packages=['pkg'])\n"),
    "conf.yaml": ("device: cuda\n", "train_device: cuda:0\n", "device: cpu\n"),
    "opts.py": ("import torch\nmodel.to(cfg.device)\nmodel.to(cfg.train_device)\n",
                "class A:\n    device: str = 'cuda'\n\n\ndef f(a):\n    model.to(a.device)\n"),
}  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_changes_the_cache_is_never_out_of_date(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder) / "repository")
        cache_dir = Path(folder) / "cache"
        for _ in range(5):
            name = data.draw(st.sampled_from(sorted(MORE)))
            content = data.draw(st.sampled_from([*MORE[name], None]))
            if content is not None:
                tree.write({name: content})
            elif (tree.root / name).exists():
                (tree.root / name).unlink()
            asked = {"helper_name": data.draw(st.sampled_from(["ai_device", "accelerator"]))}
            expected = answer(tree.root, **asked)
            assert answer(tree.root, cache=True, cache_dir=cache_dir, **asked) == expected


@pytest.mark.parametrize(
    "asked",
    [
        {"select": ("UC1",)},
        {"ignore": ("UC1",)},
        {"tier": Tier.SAFE},
        {"helper_name": "accelerator"},
        {"exclude": ("net.py",)},
    ],
)
def test_what_is_asked_for_counts(tree: Tree, asked: dict[str, Any]) -> None:
    tree.write(FILES)
    answer(tree.root, cache=True)
    assert answer(tree.root, cache=True, **asked) == answer(tree.root, **asked)


def test_the_place_of_a_file_counts(tree: Tree) -> None:
    source = "import torch\n\n\ndef test_it():\n    assert torch.ones(1).cuda().is_cuda\n"
    tree.write({"train.py": source})
    answer(tree.root, cache=True)
    for name in ("setup.py", "test_train.py", "pkg/__init__.py"):
        tree.write({name: source})
        assert answer(tree.root, cache=True) == answer(tree.root)


def test_another_place_for_the_whole_repository(tree: Tree, tmp_path: Path) -> None:
    tree.write(FILES)
    store = tmp_path / "store"
    answer(tree.root, cache=True, cache_dir=store)
    moved = tmp_path / "tests" / "moved"
    shutil.copytree(tree.root, moved)
    assert answer(moved, cache=True, cache_dir=store) == answer(moved)


def test_processes_give_the_same(tree: Tree) -> None:
    tree.write({**FILES, **{f"more{number}.py": CALL + f"# {number}\n" for number in range(30)}})
    request = Request((tree.root,), jobs=2, cache=True)
    assert told(run(request)) == told(run(request)) == answer(tree.root)


# -- sooner ----------------------------------------------------------------------------------------------------------

LOADED = """
import json, sys
sys.argv = ["uncuda", *sys.argv[1:]]
from codemods.cli.main import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_a_warm_run_does_not_import_libcst(tree: Tree) -> None:
    tree.write({"train.py": CALL, "guard.py": FILES["guard.py"]})
    assert "libcst" in loaded(tree.root, "convert", ".")
    assert not loaded(tree.root, "convert", ".") & {"libcst", "rich", "torch", "concurrent", "multiprocessing"}
    assert not loaded(tree.root, "convert", "train.py") & {"libcst"}


def test_a_warm_run_parses_nothing(cached: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    (cached.root / "bad.py").unlink()
    cached.run("convert", ".")
    without = cached.run("convert", ".", "--no-cache")
    parsed: list[str] = []
    parse = ast.parse

    def counted(source: str) -> ast.Module:
        parsed.append(source)
        return parse(source)

    monkeypatch.setattr(ast, "parse", counted)
    assert cached.run("convert", ".") == without
    assert parsed == []
    cached.write({"train.py": CALL})
    cached.run("convert", ".")
    assert len(parsed) == 2  # the file, and what becomes of it


def test_a_run_that_finds_nothing_new_does_not_write(cached: Tree) -> None:
    before = cache_file(cached).stat()
    cached.run("convert", ".")
    assert cache_file(cached).stat().st_mtime_ns == before.st_mtime_ns
    assert cache_file(cached).stat().st_ino == before.st_ino


def test_a_few_files_without_cuda_do_without_a_cache(cached: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "of", lambda *_: pytest.fail("the cache was asked"))
    assert cached.run("convert", "plain.py").exit_code == 0


def test_failures_are_said_again(cached: Tree) -> None:
    run = cached.run("convert", ".")
    assert run.exit_code == 2
    assert "bad.py:1: does not parse" in run.stderr


# -- what a damaged cache does ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"{}", b"\xff\x00", b'{"facts": [], "conversions": {}}', b"[" * 100_000,
     b'{"facts": {"a": 1}, "conversions": {}}', b'{"facts": {"a": ["b", {}]}, "conversions": {}}'],
)  # fmt: skip
def test_a_damaged_cache_is_made_anew_with_a_word(cached: Tree, content: bytes) -> None:
    without = cached.run("convert", ".", "--no-cache")
    good = cache_file(cached).read_bytes()
    cache_file(cached).write_bytes(content)
    damaged = cached.run("convert", ".")
    said = f"{cache_file(cached)}: the cache was damaged and is made anew\n"
    assert (damaged.exit_code, damaged.stdout) == (without.exit_code, without.stdout)
    assert damaged.stderr.replace(said, "", 1) == without.stderr
    assert said in damaged.stderr
    assert json.loads(cache_file(cached).read_bytes()) == json.loads(good)
    assert cached.run("convert", ".") == without


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a document, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


@pytest.mark.parametrize("value", [None, -1, 10**9, "x", [], {}, True, 0.5, [[1, 2]], 10**400])
def test_entries_of_another_shape_stop_nothing(cached: Tree, value: Any) -> None:
    good = cache_file(cached).read_bytes()
    count = len(list(_places(json.loads(good))))
    for number in range(0, count, 7):
        document = json.loads(good)
        container, key = list(_places(document))[number]
        container[key] = value
        cache_file(cached).write_text(json.dumps(document))
        assert cached.run("convert", ".").exit_code == 2  # for the file that does not parse, as ever


def test_an_entry_that_cannot_be_is_found_anew(cached: Tree) -> None:
    without = cached.run("convert", ".", "--no-cache")
    document = json.loads(cache_file(cached).read_bytes())
    for entry in document["conversions"].values():
        entry[1][2] = [[5, 3, "x"], [0, 10**6, "y"]]
    for entry in document["facts"].values():
        entry[1] = dict.fromkeys(entry[1], 7)
    cache_file(cached).write_text(json.dumps(document))
    assert cached.run("convert", ".") == without


# -- where it lies ---------------------------------------------------------------------------------------------------


def test_git_and_backups_pass_over_it(cached: Tree) -> None:
    assert cached.read(f"{FOLDER}/.gitignore") == "*\n"
    assert cached.read(f"{FOLDER}/CACHEDIR.TAG").startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert not list((cached.root / FOLDER).glob("*.tmp"))


@needs_git
def test_git_does_not_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNCUDA_CACHE_DIR")
    repository = GitRepository.new(tmp_path / "repository")
    repository.commit({"train.py": CALL})
    answer(repository.root, cache=True)
    assert (repository.root / FOLDER).is_dir()
    assert repository.git("status", "--porcelain") == ""
    assert answer(repository.root, cache=True) == answer(repository.root)


def test_it_is_no_part_of_what_is_looked_at(cached: Tree) -> None:
    (cached.root / FOLDER / "odd.py").write_text(CALL)
    assert "odd" not in cached.run("convert", ".").stdout


def test_a_chosen_folder(cached: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(cached.root / FOLDER)
    monkeypatch.setenv("UNCUDA_CACHE_DIR", str(tmp_path / "by variable"))
    cached.run("convert", ".")
    cached.run("convert", ".", "--cache-dir", str(tmp_path / "by option"))
    for name in ("by variable", "by option"):
        (folder,) = (tmp_path / name).iterdir()
        assert folder.name.startswith("repository-")
        assert len(list(folder.glob("*.json"))) == 1
    assert not (cached.root / FOLDER).exists()


def test_without_a_cache_nothing_is_kept(cached: Tree) -> None:
    shutil.rmtree(cached.root / FOLDER)
    cached.run("convert", ".", "--no-cache")
    assert not (cached.root / FOLDER).exists()


def test_only_where_git_would_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNCUDA_CACHE_DIR")
    (tmp_path / "train.py").write_text(CALL)
    answer(tmp_path, cache=True)
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def _nowhere(tree: Tree) -> None:
    shutil.rmtree(tree.root / FOLDER)
    (tree.root / FOLDER).write_text("")


def _folder_in_place_of_the_file(tree: Tree) -> None:
    file = cache_file(tree)
    file.unlink()
    (file / "more").mkdir(parents=True)


def _read_only(tree: Tree) -> None:
    cache_file(tree).unlink()
    (tree.root / FOLDER).chmod(0o500)


@pytest.mark.parametrize("spoil", [_nowhere, _folder_in_place_of_the_file, _read_only])
def test_where_nothing_can_be_written_there_is_no_cache(cached: Tree, spoil: Callable[[Tree], None]) -> None:
    without = cached.run("convert", ".", "--no-cache")
    spoil(cached)
    assert cached.run("convert", ".") == without
    if (cached.root / FOLDER).is_dir():
        (cached.root / FOLDER).chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_is_not_followed(cached: Tree, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (cached.root / FOLDER).rename(elsewhere)
    (elsewhere / f"{'0' * 32}.json").write_text("mine")
    os.utime(elsewhere / f"{'0' * 32}.json", (0, 0))
    (cached.root / FOLDER).symlink_to(elsewhere)
    cached.write({"train.py": CALL})
    before = sorted((path.name, path.read_bytes()) for path in elsewhere.iterdir())
    cached.run("convert", ".")
    assert sorted((path.name, path.read_bytes()) for path in elsewhere.iterdir()) == before


@needs_git
@pytest.mark.parametrize("kind", ["plain", "linked", "split", "compressed"])
def test_a_cache_that_came_with_the_repository_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.delenv("UNCUDA_CACHE_DIR")
    repository = GitRepository.new(tmp_path / "repository")
    repository.commit({"train.py": CALL})
    answer(repository.root, cache=True)
    repository.git("add", "-f", FOLDER)
    repository.git("commit", "-q", "-m", "x")
    if kind == "split":
        repository.git("update-index", "--split-index")
    elif kind == "compressed":
        repository.git("update-index", "--index-version", "4")
    elif kind == "linked":
        repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
        repository = GitRepository(tmp_path / "linked")
    for file in (repository.root / FOLDER).glob("*.json"):
        document = json.loads(file.read_bytes())
        for entry in document["conversions"].values():
            entry[1] = [[], [], [], False]
        file.write_text(json.dumps(document))
    outcome = run(Request((repository.root,), cache=True))
    assert outcome.conversions
    assert outcome.remarks == [
        f"{repository.root / FOLDER}: is under version control, so it is not used; remove it from there"
    ]
    assert repository.git("status", "--porcelain", "--", "train.py") == ""


# -- runs beside each other, and time --------------------------------------------------------------------------------


def test_runs_beside_each_other(tree: Tree) -> None:
    tree.write(FILES)
    command = [sys.executable, "-m", "codemods", "convert", "."]
    environment = {**os.environ, "PYTHONPATH": str(Path(codemods.__file__).parent.parent)}

    def go(_: int) -> bytes:
        return subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, check=False).stdout

    with ThreadPoolExecutor(4) as pool:
        outputs = set(pool.map(go, range(8)))
    assert len(outputs) == 1
    assert tree.run("convert", ".").stdout_bytes in outputs
    assert not list(Path(os.environ["UNCUDA_CACHE_DIR"]).rglob("*.tmp"))


def test_what_is_of_no_use_goes(cached: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = json.loads(cache_file(cached).read_bytes())
    (cached.root / FOLDER / f"{'0' * 32}.json").write_text("{}")
    (cached.root / FOLDER / f"{'0' * 16}.tmp").write_text("")
    (cached.root / FOLDER / "notes.json").write_text("{}")
    now = time.time()
    cached.write({"train.py": CALL})
    for days in (10, 20):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * 24 * 60 * 60)
        cached.run("convert", ".")
    later = json.loads(cache_file_of_this_version(cached).read_bytes())
    assert len(later["conversions"]) == len(entries["conversions"])  # the old text of train.py went, its new one came
    assert later["conversions"].keys() != entries["conversions"].keys()
    names = {path.name for path in (cached.root / FOLDER).iterdir()}
    assert names == {".gitignore", "CACHEDIR.TAG", "notes.json", cache_file_of_this_version(cached).name}


def cache_file_of_this_version(tree: Tree) -> Path:
    return tree.root / FOLDER / f"{tool_digest.tool_digest()}.json"


def test_entries_are_not_too_many(cached: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST_ENTRIES", 3)
    cached.write({"train.py": CALL})
    cached.run("convert", ".")
    document = json.loads(cache_file(cached).read_bytes())
    assert (len(document["facts"]), len(document["conversions"])) == (3, 3)


# -- versions --------------------------------------------------------------------------------------------------------


def test_the_digest_is_that_of_the_tool_and_its_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = tool_digest.tool_digest.__wrapped__
    now = digest()
    assert digest() == now
    rules = tmp_path / "rules"
    shutil.copytree(rules_folder(), rules)
    monkeypatch.setattr(tool_digest, "rules_folder", lambda: rules)
    assert digest() == now
    (rules / "triggers.toml").write_text((rules / "triggers.toml").read_text() + "\n")
    changed = digest()
    assert changed != now
    package = tmp_path / "codemods"
    shutil.copytree(Path(codemods.__file__).parent, package)
    monkeypatch.setattr(codemods, "__file__", str(package / "__init__.py"))
    assert digest() == changed
    for name in ("findings.py", "analysis/names.py", "transformers/placement.py", "engine/imports.py"):
        file = package / name
        file.write_text(file.read_text() + "\n")
        assert digest() != changed
        changed = digest()
    monkeypatch.setattr(sys, "version_info", (3, 99))
    assert digest() != changed


def test_a_record_has_every_field(tree: Tree) -> None:
    """Who adds a field has to keep it in the record, or a warm run lacks it; what has failures is not kept."""
    assert [field.name for field in fields(Conversion)] == [
        "document", "findings", "applied", "edits", "after", "needs_helper", "cells", "failures", "helper",
    ]  # fmt: skip
    assert [field.name for field in fields(Finding)] == [
        "rule", "tier", "message", "start", "end", "line", "column", "edits", "group", "uses_helper", "cell",
    ]  # fmt: skip
    tree.write(FILES)
    for conversion in run(Request((tree.root,))).conversions:
        document = Document.read(conversion.document.path)
        again = unpack(json.loads(json.dumps(pack(conversion))), document, conversion.helper)
        assert again == conversion
        assert [id(f) for f in again.applied] == [
            id(again.findings[conversion.findings.index(f)]) for f in again.applied
        ]
