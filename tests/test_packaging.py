"""What is installed: all of it, in one version, and as little as possible loaded."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import codemods
from codemods.runtime import helper_source, helper_version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = SETTINGS["tool"]["setuptools"]

FOLDERS = {path.parent.name for path in (ROOT / "codemods").glob("*/__init__.py")} - {"rules"}
# From the bottom to the top: a folder imports those before it. Above them lie the capabilities, then the command line.
SHARED = ("source", "analysis", "transformers", "companions", "runtime", "engine", "patch", "report")

RUN = """
import json, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))  # None: the import fails
sys.argv = ["uncuda", *sys.argv[2:]]
from codemods.cli.main import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def uncuda(
    folder: Path, *arguments: str, without: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """A run of the command where some packages cannot be imported, and the modules that it loaded."""
    command = [sys.executable, "-c", RUN, json.dumps(without), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done, set(json.loads(done.stderr.splitlines()[-1]))


def packages_loaded(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text("import torch\n\nx = torch.ones(2).cuda()\n", encoding="utf-8")
    (tmp_path / "plain.py").write_text("import torch\n\nx = torch.ones(2)\n", encoding="utf-8")
    return tmp_path


def test_convert_works_without_torch(repository: Path) -> None:
    done, _ = uncuda(repository, "convert", ".", without=("torch",))
    assert done.returncode == 1
    assert "+x = torch.ones(2).to(ai_device.device())\n" in done.stdout


def test_a_file_without_cuda_loads_neither_libcst_nor_rich(repository: Path) -> None:
    done, modules = uncuda(repository, "convert", "plain.py")
    assert done.returncode == 0
    assert not packages_loaded(modules) & {"libcst", "rich", "torch", "concurrent", "multiprocessing"}


def test_a_file_with_cuda_loads_libcst_alone(repository: Path) -> None:
    done, modules = uncuda(repository, "convert", "train.py")
    assert done.returncode == 1
    assert packages_loaded(modules) & {"libcst", "rich", "torch"} == {"libcst"}
    assert not modules & {"libcst.matchers", "libcst.codemod"}


@pytest.mark.parametrize("arguments", [("rules",), ("explain", "UC101"), ("--help",)])
def test_the_catalogue_is_shown_without_libcst(repository: Path, arguments: tuple[str, ...]) -> None:
    done, _ = uncuda(repository, *arguments, without=("libcst", "rich", "torch"))
    assert (done.returncode, bool(done.stdout)) == (0, True)


def test_one_version(repository: Path) -> None:
    done, _ = uncuda(repository, "--version")
    assert done.stdout == f"uncuda, version {codemods.__version__}\n"
    assert importlib.metadata.version("uncuda") == codemods.__version__
    assert helper_version(helper_source()) == codemods.__version__
    assert codemods.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="uncuda")
    assert command.value == SETTINGS["project"]["scripts"]["uncuda"]
    assert callable(command.load())


def test_every_package_is_in_the_wheel() -> None:
    folders = {folder.parent for folder in (ROOT / "codemods").rglob("__init__.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders} | {"codemods.rules"}
    assert set(SETUPTOOLS["packages"]) == names


def test_every_data_file_is_in_the_wheel() -> None:
    patterns = SETUPTOOLS["package-data"]["codemods.rules"]
    packed = {path for pattern in patterns for path in (ROOT / "rules").glob(pattern)}
    data = {path for path in (ROOT / "rules").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert data <= packed
    assert not [path for path in (ROOT / "codemods").rglob("*") if path.suffix in (".toml", ".json", ".md")]


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_folders_import_downwards(folder: str) -> None:
    if folder in SHARED:
        allowed = {*SHARED[: SHARED.index(folder)], folder}
    else:
        allowed = FOLDERS if folder == "cli" else {*SHARED, folder}
    imported = {name.split(".")[1] for name in _imports_of(ROOT / "codemods" / folder)}
    assert imported & FOLDERS <= allowed


def _imports_of(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        if file.name == "__main__.py":
            continue  # hands over to the command line
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("codemods."):
                yield node.module or ""
