"""The runs of the training scripts in fixtures/: originals under tests/cuda_on_cpu.py, and converted copies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
HARNESS = ROOT / "tests" / "cuda_on_cpu.py"
SECONDS = 120  # no run may hang the tests

Finished: TypeAlias = "subprocess.CompletedProcess[str]"


@dataclass(frozen=True)
class Run:
    """One table of fixtures/scripts/scripts.toml."""

    script: str
    about: str
    processes: int
    has_cpu_path: bool
    args: list[str]
    cpu_args: list[str] = field(default_factory=list)

    def under_harness(self, folder: Path) -> Finished:
        """The original, with its CUDA calls landing on the CPU."""
        return run_python([*self._launcher(), str(HARNESS), str(FIXTURES / self.script), *self.args], folder)

    def on_plain_cpu(self, folder: Path, fixtures: Path = FIXTURES) -> Finished:
        """The script on a machine without CUDA, by its own CPU path."""
        return run_python([str(fixtures / self.script), *(self.cpu_args or self.args)], folder)

    def with_ai_device(self, device: str, folder: Path, fixtures: Path) -> Finished:
        """A converted copy of the script with AI_DEVICE set."""
        return run_python([*self._launcher(), str(fixtures / self.script), *self.args], folder, AI_DEVICE=device)

    def rehearsed(self, device: str, folder: Path, fixtures: Path, processes: int | None = None) -> Finished:
        """The script on one virtual device a process."""
        ranks = processes or self.processes
        options = ["--device", device, *(["--nproc", str(ranks)] if ranks > 1 else ["--count", "1"])]
        return run_python(["-m", "codemods.rehearse", *options, str(fixtures / self.script), *self.args], folder)

    def _launcher(self) -> list[str]:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}"]
        return launcher if self.processes > 1 else []


def run_python(arguments: list[str], folder: Path, **variables: str) -> Finished:
    """Run Python in a folder, which replaces ``{folder}`` in an argument. One thread, so that sums keep their order."""
    command = [sys.executable, *(argument.replace("{folder}", str(folder)) for argument in arguments)]
    return subprocess.run(
        command,
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "AI_DEVICE"}
        | {"OMP_NUM_THREADS": "1"}
        | variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
    )


def losses_of(finished: Finished) -> list[tuple[int, float]]:
    """Give step and loss of every line ``loss <step> <loss>``."""
    assert finished.returncode == 0, finished.stdout + finished.stderr
    lines = (line.split() for line in finished.stdout.splitlines())
    return [(int(words[1]), float(words[2])) for words in lines if len(words) == 3 and words[0] == "loss"]


def read_runs() -> dict[str, Run]:
    tables = tomllib.loads((FIXTURES / "scripts" / "scripts.toml").read_text("utf-8"))
    return {name: Run(**table) for name, table in tables.items()}


RUNS = read_runs()
FIRST_RUNS = {run.script: name for name, run in reversed(RUNS.items())}.values()  # one for each script
WITH_CPU_PATH = [name for name in FIRST_RUNS if RUNS[name].has_cpu_path]
CUDA_ONLY = [name for name in FIRST_RUNS if not RUNS[name].has_cpu_path]


class Started:
    """Runs in the background, two at a time, each in a folder of its own."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path) -> None:
        self.folder = folder
        self.pool = pool

    def start(self, run: Callable[[Path], Finished], folder: str) -> Future[Finished]:
        """Starts a run in a new folder of this name."""
        (self.folder / folder).mkdir()
        return self.pool.submit(run, self.folder / folder)
