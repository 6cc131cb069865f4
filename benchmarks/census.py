"""Counts places that are hard-wired to CUDA, before and after a conversion, without any code of the tool.

    python benchmarks/census.py FOLDER ...

A place is what plain ``ast`` finds: a name chain with ``.cuda`` in it, a ``"cuda"`` or ``"nccl"`` string, a device
string that is built, ``is_cuda``, an import of torch.cuda. The tool is run on a copy as a program, through its command
line. A place is converted if it is gone afterwards; one that is still there is reported if the tool names its line when
it is run on the result once more, and was left without a word otherwise. The second run must not change anything.
"""

from __future__ import annotations

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
    for node in ast.walk(tree):
        kind = _kind(node, foreign) if id(node) not in docstrings else ""
        if kind:
            yield node.lineno, node.end_lineno or node.lineno, kind  # type: ignore[attr-defined]


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


def convert(root: Path) -> dict[str, set[int]]:
    """Converts a folder with the command line; gives the lines of each file where a finding has no edit."""
    command = [sys.executable, "-m", "codemods", "convert", ".", "--format", "json", "--write"]
    report = json.loads(subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return {f["path"]: {n["line"] for n in f["findings"] if not n["applied"]} for f in report["files"]}


def main() -> None:
    total: Counter[str] = Counter()
    for folder in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "copy"
            shutil.copytree(folder, copy, symlinks=True)
            before = read(copy)
            convert(copy)
            after = read(copy)
            reported = convert(copy)
            assert read(copy) == after, f"{folder}: a second run changes more"
        count = sum(map(len, before.values()))
        rest = sum(map(len, after.values()))
        silent = [
            f"{folder}/{name}:{first} {kind}"
            for name, sites in after.items()
            for first, last, kind in sites
            if not reported.get(name, set()) & set(range(first, last + 1))
        ]
        total.update(before=count, after=rest, silent=len(silent))
        print(f"{Path(folder).name}: {count} places, {rest} left, {len(silent)} without a word")
        for line in silent:
            print("   ", line)
    print(f"all: {total['before']} places, {total['after']} left, {total['silent']} without a word")


if __name__ == "__main__":
    main()
