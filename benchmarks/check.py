"""What a check costs: cold, warm and on a few files as a hook passes them, beside other tools in the same run.

python benchmarks/check.py FOLDER ...

CPU time of child processes is measured, user and system, with one process each; the median of several runs. ``ruff``
has its default rules and no cache, ``compileall`` writes into a folder of its own, ``libcst`` parses whole modules with
the metadata that a codemod usually asks for. The figures mean something on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

WHOLE_MODULES = """
import sys, warnings
from pathlib import Path
import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, QualifiedNameProvider, ScopeProvider
warnings.simplefilter("ignore")
for path in Path(sys.argv[1]).rglob("*.py"):
    try:
        wrapper = MetadataWrapper(cst.parse_module(path.read_bytes()))
        wrapper.resolve_many([PositionProvider, ScopeProvider, QualifiedNameProvider, ParentNodeProvider])
    except Exception:
        continue
"""


def cpu_seconds(command: Sequence[str], folder: Path, **variables: str) -> float:
    """CPU time of a command that runs in a folder, its children included."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed tool has its bytecode
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def median(runs: int, command: Sequence[str], folder: Path, **variables: str) -> float:
    return statistics.median(cpu_seconds(command, folder, **variables) for _ in range(runs))


def gather(folders: Sequence[Path], target: Path) -> int:
    """Copies the Python files of repositories into one, and gives their number."""
    number = 0
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.is_symlink() or ".git" in path.parts:
                continue
            copy = target / folder.name / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            number += 1
    (target / ".git").mkdir()
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--without-libcst", action="store_true", help="leave out whole modules, which take minutes")
    options = parser.parse_args()
    script = Path(sys.executable).with_name("uncuda")
    check = [str(script), "check", "--jobs", "1"]
    with tempfile.TemporaryDirectory() as name:
        target = Path(name) / "tree"
        target.mkdir()
        files = gather([folder.resolve() for folder in options.folders], target)
        few = [str(path) for path in sorted(target.rglob("*.py"))[:: max(1, files // 5)][:5]]
        ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "."]
        compiled = [sys.executable, "-X", f"pycache_prefix={name}/pyc", "-m", "compileall", "-q", "-f", "."]
        seconds = {
            "ruff check, no cache": median(options.runs, ruff, target),
            "python -m compileall": median(1, compiled, target),
            "uncuda check, cold": median(options.runs, [*check, "--no-cache", "."], target),
        }
        cpu_seconds([*check, "."], target)
        seconds["uncuda check, warm"] = median(options.runs, [*check, "."], target)
        if not options.without_libcst:
            seconds["libcst, whole modules"] = cpu_seconds([sys.executable, "-c", WHOLE_MODULES, "."], target)
        print(f"{files} files of {len(options.folders)} repositories; CPU seconds, one process\n")
        base = seconds["ruff check, no cache"]
        for title, value in seconds.items():
            print(f"{title:28}{value:10.2f}{value / base:10.1f} x ruff")
        click = median(5 * options.runs, [sys.executable, "-c", "import click"], target)
        five = median(5 * options.runs, [*check, *few], target)
        print(f"\n{'import click':28}{click * 1000:8.0f} ms")
        print(f"{'uncuda check, five files':28}{five * 1000:8.0f} ms{five / click:8.1f} x click")


if __name__ == "__main__":
    main()
