"""Counts places that are hard-wired to CUDA, before and after a conversion, without any code of the tool.

    python benchmarks/census.py FOLDER ... [--tests]

Places in tests are counted apart: what they ask of CUDA is left unless ``--tests`` is given.

A place is what plain ``ast`` finds: a name chain with ``.cuda`` in it, a ``"cuda"`` or ``"nccl"`` string, a device
string that is built, ``is_cuda``, an import of torch.cuda. The tool is run on a copy as a program, through its command
line. A place is converted if it is gone afterwards, or given to the helper; one that is still there is reported if the
tool names its line when it is run on the result once more, and was left without a word otherwise. The second run must
not change anything.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

DEVICE = re.compile(r"cuda(:\d+)?$")
SKIPPED = {".git", "node_modules", "build", "dist", "third_party", "vendor", "extern", "external"}


def places(source: str) -> Iterator[tuple[int, int, str]]:
    """First and last line, and kind, of each place in a source."""
    tree = ast.parse(source)
    docstrings = {id(s.value) for s in ast.walk(tree) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)}
    foreign = _names_of_other_libraries(tree)
    converted = {id(part) for call in ast.walk(tree) if _is_helper_call(call) for part in ast.walk(call)}
    for node in ast.walk(tree):
        kind = _kind(node, foreign) if id(node) not in docstrings | converted else ""
        if kind:
            yield node.lineno, node.end_lineno or node.lineno, kind  # type: ignore[attr-defined]


def _is_helper_call(node: ast.AST) -> bool:
    """``ai_device.devices(["cuda", "cpu"])``: what the helper is given is converted."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "ai_device"
    )


def _names_of_other_libraries(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("torch"):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(a.asname or a.name.split(".")[0] for a in node.names if not a.name.startswith("torch"))
    return names


def _kind(node: ast.AST, foreign: set[str]) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
        return ".cuda()"
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute | ast.Name):
        inner = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        root = node.value.value if isinstance(node.value, ast.Attribute) else None
        if inner == "cuda" and isinstance(root, ast.Name) and root.id not in foreign and root.id in ("torch", "th"):
            return "torch.cuda.*"
    if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
        return "is_cuda"
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.cuda") and not node.level:
        return "import torch.cuda"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if DEVICE.match(node.value):
            return "'cuda'"
        if node.value == "nccl":
            return "'nccl'"
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        return "f'cuda:{}'" if str(node.values[0].value) == "cuda:" else ""
    return ""


def read(root: Path) -> dict[str, list[tuple[int, int, str]]]:
    """The places of each Python file below a folder that parses."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        if path.is_symlink() or SKIPPED & set(path.relative_to(root).parts) or path.name == "ai_device.py":
            continue
        try:
            found[path.relative_to(root).as_posix()] = list(places(path.read_text(encoding="utf-8-sig")))
        except (SyntaxError, ValueError, RecursionError, OSError):
            continue
    return found


def convert(root: Path, options: list[str]) -> dict[str, set[int]]:
    """Converts a folder with the command line; gives the lines of each file where a finding has no edit."""
    command = [sys.executable, "-m", "codemods", "convert", ".", "--format", "json", "--write", *options]
    report = json.loads(subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return {f["path"]: {n["line"] for n in f["findings"] if not n["applied"]} for f in report["files"]}


def is_test(name: str) -> bool:
    """Whether a file is one of the repository's tests, by its path."""
    parts = Path(name).parts
    return (
        bool({"test", "tests", "unit_tests"} & set(parts))
        or re.match(r"test_|.*_test\.py|conftest", parts[-1]) is not None
    )


def count(folder: str, options: list[str]) -> Counter[str]:
    """Converts a copy of a folder, prints what became of its places and gives the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy, symlinks=True)
        before = read(copy)
        convert(copy, options)
        after = read(copy)
        reported = convert(copy, options)
        assert read(copy) == after, f"{folder}: a second run changes more"
    silent = [
        f"{folder}/{name}:{first} {kind}"
        for name, sites in after.items()
        for first, last, kind in sites
        if not reported.get(name, set()) & set(range(first, last + 1))
    ]
    figures: Counter[str] = Counter(silent=len(silent))
    for kind, files in (("before", before), ("after", after)):
        for name, sites in files.items():
            figures[f"{kind} in tests" if is_test(name) else kind] += len(sites)
    print(f"{Path(folder).name}: {line(figures)}")
    for place in silent:
        print("   ", place)
    return figures


def line(figures: Counter[str]) -> str:
    """The figures in words."""
    places, rest = figures["before"], figures["after"]
    in_tests, rest_in_tests = figures["before in tests"], figures["after in tests"]
    share = 100 * (places - rest) / places if places else 100
    both = places + in_tests
    share_of_both = 100 * (both - rest - rest_in_tests) / both if both else 100
    return (
        f"{places} places, {rest} left ({share:.0f} % converted); {in_tests} in tests, {rest_in_tests} left "
        f"({share_of_both:.0f} % of both); {figures['silent']} without a word"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--tests", action="store_true", help="convert what tests ask of CUDA as well")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for folder in options.folders:
        total += count(folder, ["--tests"] if options.tests else [])
    print(f"all: {line(total)}")


if __name__ == "__main__":
    main()
