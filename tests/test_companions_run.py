"""The files beside the Python on the command line: which are looked at, how they are shown, what narrows them down."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from conversion import Tree

from codemods.companions.find import companion_findings
from codemods.companions.remarks import Knowledge
from codemods.findings import Finding
from codemods.source.document import Document

SCRIPT = "#!/bin/bash\nnvidia-smi\npython train.py --device cuda\n"
MASK = "CUDA_VISIBLE_DEVICES=0 python train.py\n"


def codes(stderr: str) -> list[str]:
    """``file CODE`` of each line about a place."""
    lines = [line.split() for line in stderr.splitlines() if " UC" in line]
    return [f"{words[0].split(':')[0]} {words[1]}" for words in lines]


def skipped_in(stdout: str) -> list[dict[str, Any]]:
    return [item for item in json.loads(stdout)["skipped"] if item["path"] != ".git"]


def test_a_tree(tree: Tree) -> None:
    tree.write(
        {
            "train.py": "import torch\n\nx = torch.ones(1).cuda()\n",
            "scripts/train.sh": SCRIPT,
            "conf/a.yaml": "device: cuda\n",
            "conf/b.json": '{"backend": "nccl"}',
            "pyproject.toml": '[project]\nname = "a"\ndependencies = ["xformers"]\n',
            "Dockerfile": "FROM nvidia/cuda:12.1.0\n",
            "requirements/gpu.txt": "flash-attn\n",
            "notes.txt": "flash-attn\nnvidia-smi\n",
            "README.md": SCRIPT,
            "poetry.lock": 'device = "cuda"\n',
        }
    )
    before = tree.files()
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 1
    assert codes(run.stderr) == [
        "Dockerfile UC731",
        "conf/a.yaml UC721",
        "conf/b.json UC722",
        "pyproject.toml UC734",
        "requirements/gpu.txt UC734",
        "scripts/train.sh UC715",
        "scripts/train.sh UC713",
    ]
    assert "scripts/train.sh:3:17 UC713 manual names a CUDA device or NCCL" in run.stderr
    after = tree.files()
    assert {name for name in after if after[name] != before.get(name)} == {"train.py", "ai_device.py"}
    again = tree.run("convert", ".", "--write")
    assert codes(again.stderr) == codes(run.stderr)
    assert tree.files() == after


def test_a_file_that_is_named(tree: Tree) -> None:
    tree.write({"train.sh": SCRIPT, "other.sh": SCRIPT})
    run = tree.run("convert", "train.sh")
    assert (run.exit_code, run.stdout) == (1, "")
    assert codes(run.stderr) == ["train.sh UC715", "train.sh UC713"]
    assert "1 file read" in run.stderr


def test_notes_alone_are_no_exit_code_and_shown_on_demand(tree: Tree) -> None:
    tree.write({"train.sh": MASK})
    run = tree.run("convert", ".")
    assert (run.exit_code, codes(run.stderr)) == (0, [])
    assert "1 note" in run.stderr
    assert codes(tree.run("convert", ".", "--notes").stderr) == ["train.sh UC711"]


def test_json(tree: Tree) -> None:
    tree.write({"é.sh": "é=1; nvidia-smi\n"})
    (file,) = json.loads(tree.run("convert", ".", "--format", "json").stdout)["files"]
    (finding,) = file["findings"]
    assert (file["path"], file["changed"]) == ("é.sh", False)
    assert (finding["rule"], finding["line"], finding["column"]) == ("UC715", 1, 6)
    assert "é=1; nvidia-smi\n".encode()[finding["start"] : finding["end"]] == b"nvidia-smi"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--select", "UC71"], ["train.sh UC715", "train.sh UC713"]),
        (["--select", "UC713"], ["train.sh UC713"]),
        (["--ignore", "UC7"], []),
        (["--exclude", "*.sh"], ["conf.yaml UC721"]),
        (["--tier", "safe"], ["conf.yaml UC721", "train.sh UC715", "train.sh UC713"]),
    ],
)
def test_what_narrows_a_run_down(tree: Tree, arguments: list[str], expected: list[str]) -> None:
    tree.write({"train.sh": SCRIPT, "conf.yaml": "device: cuda\n"})
    assert codes(tree.run("convert", ".", *arguments).stderr) == expected


def test_the_settings_of_the_project_hold(tree: Tree) -> None:
    settings = '[tool.uncuda]\nignore = ["UC715"]\nexclude = ["conf/"]\n'
    tree.write({"pyproject.toml": settings, "train.sh": SCRIPT, "conf/a.yaml": "device: cuda\n"})
    assert codes(tree.run("convert", ".").stderr) == ["train.sh UC713"]
    assert codes(tree.run("convert", "conf/a.yaml", "train.sh").stderr) == ["train.sh UC713"]


def test_what_git_ignores_and_vendored_code_are_not_looked_at(tree: Tree) -> None:
    tree.write({".gitignore": "out/\n*.local.sh\n", "a.local.sh": SCRIPT, "out/a.sh": SCRIPT, "vendor/a.sh": SCRIPT})
    assert codes(tree.run("convert", ".").stderr) == []


def test_scripts_without_an_ending(tree: Tree) -> None:
    tree.write(
        {
            "train": SCRIPT,
            "data": SCRIPT,
            "tool": "#!/usr/bin/env perl\nnvidia-smi\n",
            "env": "#!/usr/bin/env bash\nnvidia-smi",
        }
    )
    for name in ("train", "tool", "env"):
        (tree.root / name).chmod(0o755)
    assert codes(tree.run("convert", ".").stderr) == ["env UC715", "train UC715", "train UC713"]


BAD = {
    "not UTF-8": (b"# caf\xe9\nnvidia-smi\n", "not valid UTF-8"),
    "UTF-16": (b"\xff\xfen\0v\0i\0d\0i\0a\0-\0s\0m\0i\0nvidia", "UTF-16"),
    "NUL bytes": (b"nvidia-smi\0\n", "NUL bytes"),
}


@pytest.mark.parametrize(("raw", "reason"), BAD.values(), ids=BAD)
def test_a_file_that_cannot_be_read_fails_only_where_it_is_named(tree: Tree, raw: bytes, reason: str) -> None:
    tree.write({"bad.sh": raw, "good.sh": SCRIPT})
    run = tree.run("convert", ".", "--format", "json")
    assert run.exit_code == 1
    (skipped,) = skipped_in(run.stdout)
    assert (skipped["path"], skipped["failed"]) == ("bad.sh", False)
    assert reason in skipped["reason"]
    named = tree.run("convert", "bad.sh", "good.sh")
    assert named.exit_code == 2
    assert len([line for line in named.stderr.splitlines() if line.startswith("bad.sh:") and reason in line]) == 1
    assert codes(named.stderr) == ["good.sh UC715", "good.sh UC713"]


@pytest.mark.parametrize("name", ["data.json", "data.yaml"])
def test_large_files_are_data(tree: Tree, name: str) -> None:
    tree.write({name: '{"device": "cuda", "x": "' + "a" * 1_000_000 + '"}'})
    run = tree.run("convert", ".", "--format", "json")
    assert run.exit_code == 0
    (skipped,) = skipped_in(run.stdout)
    assert skipped == {"path": name, "reason": "larger than 1 MB: taken for data", "failed": False}


def test_a_mask_of_a_command_that_the_repository_installs_is_a_note(tree: Tree) -> None:
    text = "CUDA_VISIBLE_DEVICES=0 trainer --lr 1\nCUDA_VISIBLE_DEVICES=0 python -m pkg.run\n"
    tree.write({"train.sh": text})
    assert tree.run("convert", ".").exit_code == 1
    tree.write(
        {"pyproject.toml": '[project.scripts]\ntrainer = "pkg.run:main"\n', "pkg/__init__.py": "", "pkg/run.py": ""}
    )
    assert tree.run("convert", ".").exit_code == 0


def test_files_beside_the_python_without_cuda_load_no_libcst(tree: Tree) -> None:
    tree.write({"train.sh": "python train.py\n", "a.yaml": "device: cpu  # not cuda\n", "pyproject.toml": ""})
    program = "import sys; from codemods.cli.main import main\ntry: main()\nfinally: print('libcst' in sys.modules)"
    command = [sys.executable, "-c", program, "convert", "."]
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n")


def test_a_fault_in_one_file_stops_no_other(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(document: Document, kind: str, known: Knowledge) -> tuple[Finding, ...]:
        if document.path.name == "bad.sh":
            raise ValueError("wrong")
        return companion_findings(document, kind, known)

    monkeypatch.setattr("codemods.engine.companions.companion_findings", faulty)
    tree.write({"bad.sh": SCRIPT, "good.sh": SCRIPT})
    run = tree.run("convert", ".")
    assert run.exit_code == 2
    assert "bad.sh: left as it is: ValueError: wrong (a fault of uncuda; please report it)" in run.stderr
    assert codes(run.stderr) == ["good.sh UC715", "good.sh UC713"]
