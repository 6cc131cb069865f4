"""How fast the converter is, beside libcst on whole modules and beside ``ast``, on the same files in the same run.

python benchmarks/convert.py [FOLDER]

CPU time is measured, not wall time, in one process. The sample holds one file that mentions CUDA in every ``--one-in``
files, as training repositories do; the same folder, options and seed give the same sample. Take a real repository for
figures that mean something: the fixtures are short and full of CUDA.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import itertools
import os
import pstats
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import (
    ByteSpanPositionProvider,
    MetadataWrapper,
    ParentNodeProvider,
    QualifiedNameProvider,
    ScopeProvider,
)

from codemods.engine.outcome import Request
from codemods.engine.run import run
from codemods.source.discovery import Found, discover
from codemods.source.document import Document, SourceError

_MENTIONS_CUDA = re.compile(rb"cuda|nccl", re.IGNORECASE)
_PROVIDERS = (ByteSpanPositionProvider, ScopeProvider, QualifiedNameProvider, ParentNodeProvider)
_FIXTURES = Path(__file__).parent.parent / "fixtures"


@dataclass(frozen=True)
class Sample:
    """The files of one measurement, in a folder of their own."""

    folder: Path
    texts: tuple[str, ...]
    hits: int
    """Files that mention CUDA."""

    @property
    def lines(self) -> int:
        return sum(text.count("\n") for text in self.texts)


# -- The sample ----------------------------------------------------------------------------------------------------


def build_sample(source: Path, target: Path, *, size: int, one_in: int, seed: int) -> Sample:
    """Copies files of ``source`` to ``target``: ``size`` of them, of which one in ``one_in`` mentions CUDA.

    A folder that has too few of a kind gives them several times, under other names.
    """
    paths = [item.path for item in discover([source]) if isinstance(item, Found) and item.kind == "python"]
    random.Random(seed).shuffle(paths)
    with_cuda = [path for path in paths if _MENTIONS_CUDA.search(path.read_bytes())]
    hits = max(1, size // one_in)
    known = set(with_cuda)
    drawn = [*_draw(with_cuda, hits), *_draw([path for path in paths if path not in known], size - hits)]
    (target / ".git").mkdir()  # the converter takes the folder for a repository of its own
    texts = []
    for number, (path, text) in enumerate(drawn):
        copy = target / path.relative_to(source)
        if copy.exists():
            copy = copy.with_name(f"{copy.stem}_{number}.py")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        texts.append(text)
    return Sample(target, tuple(texts), hits)


def _draw(paths: Sequence[Path], number: int) -> Iterator[tuple[Path, str]]:
    readable = [(path, text) for path in paths[: 2 * number] if (text := _readable(path)) is not None]
    if not readable:
        sys.exit("the folder needs Python files that mention CUDA and others that do not")
    return itertools.islice(itertools.cycle(readable), number)


def _readable(path: Path) -> str | None:
    """The text of a file that both parsers read, else None."""
    try:
        text = Document.read(path).text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
        cst.parse_module(text)
    except (SourceError, SyntaxError, ValueError, RecursionError, cst.ParserSyntaxError):
        return None
    return text


# -- What is measured ----------------------------------------------------------------------------------------------


def whole_modules(sample: Sample) -> None:
    """libcst on every file: parse, four metadata providers, a transformer that changes nothing, print."""
    for text in sample.texts:
        wrapper = MetadataWrapper(cst.parse_module(text))
        wrapper.resolve_many(_PROVIDERS)
        assert wrapper.visit(cst.CSTTransformer()).code == text


def syntax_trees(sample: Sample) -> None:
    """``ast.parse`` on every file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in sample.texts:
            ast.parse(text)


def converter(sample: Sample) -> None:
    """The converter from discovery on, reading the files from disk, in one process."""
    outcome = run(Request(paths=(sample.folder,), jobs=1))
    if outcome.failures:
        sys.exit(f"the figures would not compare: {outcome.failures[0]}")


def cpu_seconds(work: Callable[[Sample], None], sample: Sample) -> float:
    start = time.process_time()
    work(sample)
    return time.process_time() - start


def start_up_seconds(command: Sequence[str], folder: Path) -> float:
    """CPU time of a child, user and system."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


# -- The tables ----------------------------------------------------------------------------------------------------


def report_throughput(sample: Sample, repeats: int) -> None:
    print(
        f"{len(sample.texts)} files, {sample.hits} of them mention CUDA, {sample.lines:,} lines; median of {repeats}\n"
    )
    first = cpu_seconds(converter, sample)
    seconds = {
        name: statistics.median(cpu_seconds(work, sample) for _ in range(repeats))
        for name, work in {
            "libcst, whole modules": whole_modules,
            "ast.parse": syntax_trees,
            "uncuda": converter,
        }.items()
    }
    seconds["uncuda, first run"] = first
    print(f"{'':32}{'CPU s':>10}{'lines/s':>14}{'x libcst':>12}")
    for name, value in seconds.items():
        ratio = seconds["libcst, whole modules"] / value
        print(f"{name:32}{value:10.3f}{sample.lines / value:14,.0f}{ratio:12.1f}")


def report_start_up(runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plain.py").write_text("import torch\n\nx = torch.ones(2)\n")
        script = Path(sys.executable).with_name("uncuda")
        tool = [str(script)] if script.exists() else [sys.executable, "-m", "codemods"]
        commands = {
            "python -c 'import click'": [sys.executable, "-c", "import click"],
            "uncuda convert, no CUDA": [*tool, "convert", "plain.py"],
        }
        measured: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                measured[name].append(start_up_seconds(command, folder))
    click, uncuda = (statistics.median(values) for values in measured.values())
    print(f"\nstart-up, median of {runs}{'CPU ms':>22}{'x click':>12}")
    for name, value in zip(commands, (click, uncuda), strict=True):
        print(f"{name:32}{value * 1000:10.1f}{value / click:12.2f}")


def report_profile(sample: Sample) -> None:
    profile = cProfile.Profile()
    profile.runcall(converter, sample)
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=_FIXTURES, help="default: the fixtures")
    parser.add_argument("--one-in", type=int, default=9, metavar="N", help="one file in N mentions CUDA (default: 9)")
    parser.add_argument("--files", type=int, default=300, metavar="N", help="size of the sample (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--start-ups", type=int, default=15, metavar="N", help="default: 15")
    parser.add_argument("--profile", action="store_true", help="profile the converter instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as target:
        sample = build_sample(
            options.folder.resolve(), Path(target), size=options.files, one_in=options.one_in, seed=options.seed
        )
        if options.profile:
            converter(sample)
            report_profile(sample)
            return
        report_throughput(sample, options.repeats)
    report_start_up(options.start_ups)


if __name__ == "__main__":
    main()
