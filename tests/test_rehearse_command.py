"""``uncuda rehearse`` on small scripts: what they see, where they stop, what is said, and the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codemods.cli.rehearse import command
from codemods.errors import UserError
from codemods.rehearse.launch import check_torch, rehearsable

SECONDS = 120  # no run may hang the tests
TRAIN = """\
import os, sys
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1).to(os.environ["AI_DEVICE"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    loss = model(torch.ones(2, 4).to("npu")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", step, loss.item())
print("argv", sys.argv, __name__, sys.path[0], os.environ.get("RANK"))
"""
NAMED = TRAIN + "model.cuda()\n"
GUARDED = """\
import torch

try:
    torch.ones(1).cuda()
except AssertionError:
    print("went on")
"""
FALLBACK = """\
import torch

torch.cholesky_inverse(torch.eye(2, device="npu"))
print("computed")
"""
HANGS = """\
import time
import torch

def wait():
    time.sleep(600)

print("begins", flush=True)
wait()
"""
SPAWNS = """\
import sys

import torch
import torch.multiprocessing as mp


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor(index)


def work(rank):
    x = torch.ones(2, device=f"npu:{rank}")
    sys.stdout.write(f"device {(x + x).device}\\n")


if __name__ == "__main__":
    torch.relu(torch.ones(2, device="npu"))
    mp.spawn(work, nprocs=2)
    print("batches", len(list(torch.utils.data.DataLoader(Data(), num_workers=1))))
"""
RANKS = """\
import os, sys
import torch
import torch.distributed as dist

dist.init_process_group("hccl")
rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(rank)
total = torch.tensor([rank + 1.0], device="npu")
dist.all_reduce(total)
sys.stdout.write(f"rank {rank} of {os.environ['WORLD_SIZE']}: {total.item()}\\n")
if len(sys.argv) > 1 and rank == 1:
    raise ValueError("this rank fails")
dist.barrier()
dist.destroy_process_group()
"""
PLAIN = "print('no torch here')\n"
TESTS = """\
import os
import torch

LOADED = torch.ones(2, device="npu")  # at import, before any fixture


def test_runs_on_the_device():
    assert os.environ["AI_DEVICE"] == "npu"
    assert (LOADED + LOADED).device.type == "npu"


def test_names_cuda():
    torch.ones(1).cuda()
"""


@dataclass(frozen=True)
class Case:
    """One run."""

    script: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    as_module: bool = False


CASES = {
    "train": Case(TRAIN, ("--html", "page.html"), ("3", "--device", "mine")),
    "module": Case(TRAIN, (), ("1",), as_module=True),
    "named": Case(NAMED, ("--json", "report.json"), ("1",)),
    "guarded": Case(GUARDED),
    "fallback": Case(FALLBACK),
    "strict": Case(FALLBACK, ("--strict",)),
    "steps": Case(TRAIN, ("--max-steps", "2"), ("5",)),
    "hangs": Case(HANGS, ("--timeout", "8")),
    "spawns": Case(SPAWNS, ("--json", "report.json")),
    "ranks": Case(RANKS, ("--nproc", "2")),
    "failing rank": Case(RANKS, ("--nproc", "2"), ("fail",)),
    "plain": Case(PLAIN),
}
Finished = subprocess.CompletedProcess[str]


def start_command(case: Case, folder: Path) -> list[str]:
    folder.mkdir()
    (folder / "train.py").write_text(case.script)
    script = ("-m", "train") if case.as_module else ("train.py",)
    return [sys.executable, "-m", "codemods.rehearse", *case.options, *script, *case.arguments]


def environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "AI_DEVICE"} | {"OMP_NUM_THREADS": "1"}


def rehearse(case: Case, folder: Path) -> Finished:
    return subprocess.run(
        start_command(case, folder),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
    )


class Runs:
    """All runs, started in the background two at a time."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path) -> None:
        self.folder = folder
        self._started: dict[str, Future[Finished]] = {
            name: pool.submit(rehearse, case, folder / name) for name, case in CASES.items()
        }

    def __getitem__(self, name: str) -> Finished:
        return self._started[name].result()

    def report(self, name: str) -> Any:
        """The report that a run wrote as JSON."""
        self[name]
        return json.loads((self.folder / name / "report.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    with ThreadPoolExecutor(2) as pool:
        yield Runs(pool, tmp_path_factory.mktemp("rehearsals"))
        pool.shutdown(cancel_futures=True)


def plain_losses(folder: Path, steps: int) -> list[str]:
    """What the training prints as its losses on a CPU without a rehearsal."""
    (folder / "plain.py").write_text(TRAIN.replace('"npu"', '"cpu"'))
    finished = subprocess.run(
        [sys.executable, "plain.py", str(steps)],
        cwd=folder,
        env=environment() | {"AI_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in finished.stdout.splitlines() if line.startswith("loss")]


def test_a_script_runs_as_by_python_and_keeps_its_output(runs: Runs, tmp_path: Path) -> None:
    finished = runs["train"]
    assert finished.returncode == 0, finished.stderr
    *losses, last = finished.stdout.splitlines()
    assert losses == plain_losses(tmp_path, 3)
    folder = runs.folder / "train"
    assert last == f"argv {['train.py', '3', '--device', 'mine']} __main__ {folder} None"
    assert "reached the end" in finished.stderr
    assert "3 optimizer steps" in finished.stderr
    assert (folder / "page.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_module_runs_as_by_python_m(runs: Runs) -> None:
    finished = runs["module"]
    assert finished.returncode == 0, finished.stderr
    assert f"argv {[str(runs.folder / 'module' / 'train.py'), '1']} __main__" in finished.stdout


def test_a_cuda_name_stops_the_script_and_is_placed(runs: Runs) -> None:
    finished = runs["named"]
    assert finished.returncode == 2
    line = NAMED.count("\n")
    assert f"train.py:{line}: AssertionError: Torch not compiled with CUDA enabled" in finished.stderr
    assert "`uncuda convert` finds that place: UC101" in finished.stderr
    report = runs.report("named")
    assert (report["exit_code"], report["end"]["rule"]) == (2, "UC101")
    assert [(name["site"]["path"], name["site"]["line"]) for name in report["named"]] == [("train.py", line)]


def test_a_cuda_name_that_does_not_stop_the_script_is_a_finding(runs: Runs) -> None:
    finished = runs["guarded"]
    assert (finished.returncode, finished.stdout) == (1, "went on\n")
    assert "train.py:4" in finished.stderr


def test_an_operator_without_a_kernel_is_a_finding(runs: Runs) -> None:
    finished = runs["fallback"]
    assert (finished.returncode, finished.stdout) == (1, "computed\n")
    assert "aten::cholesky_inverse" in finished.stderr
    assert "train.py:3 (1)" in finished.stderr


def test_strict_makes_it_an_error(runs: Runs) -> None:
    finished = runs["strict"]
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "train.py:3: " in finished.stderr


def test_max_steps_ends_the_script_before_the_next_step(runs: Runs) -> None:
    finished = runs["steps"]
    assert finished.returncode == 0, finished.stderr
    assert [line.split()[:2] for line in finished.stdout.splitlines()] == [["loss", "0"], ["loss", "1"]]
    assert "stopped after 2 optimizer steps (--max-steps)" in finished.stderr


def test_a_timeout_tells_where_the_script_was(runs: Runs) -> None:
    finished = runs["hangs"]
    assert (finished.returncode, finished.stdout) == (2, "begins\n")
    assert "train.py:5: stopped after 8 s (--timeout)" in finished.stderr


def test_spawned_processes_take_part(runs: Runs) -> None:
    finished = runs["spawns"]
    assert finished.returncode == 0, finished.stderr
    assert sorted(finished.stdout.splitlines()) == ["batches 2", "device npu:0", "device npu:1"]
    report = runs.report("spawns")
    calls = {use["overload"]: use["calls"] for use in report["operators"]}
    assert calls["aten::add.Tensor"] == 2  # one in each spawned process
    assert calls["aten::relu"] == 1  # a forked worker does not count it again
    assert report["processes"] == 4


def test_ranks_are_started_as_by_torchrun(runs: Runs) -> None:
    finished = runs["ranks"]
    assert finished.returncode == 0, finished.stderr
    assert sorted(finished.stdout.splitlines()) == ["rank 0 of 2: 3.0", "rank 1 of 2: 3.0"]
    assert "2 ranks" in finished.stderr


def test_the_rank_that_fails_first_is_named(runs: Runs) -> None:
    finished = runs["failing rank"]
    assert finished.returncode == 2
    assert "train.py:12: rank 1: ValueError: this rank fails" in finished.stderr


def test_a_script_without_torch_is_told(runs: Runs) -> None:
    finished = runs["plain"]
    assert (finished.returncode, finished.stdout) == (2, "no torch here\n")
    assert "does not import it" in finished.stderr


def test_nothing_outlives_a_terminated_rehearsal(tmp_path: Path) -> None:
    script = HANGS.replace('"begins"', '"begins", __import__("os").getpid()')
    process = subprocess.Popen(
        start_command(Case(script), tmp_path / "run"),
        cwd=tmp_path / "run",
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline().split()[1])
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "interrupted" in said
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_pytest_runs_a_project_on_the_device(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(TESTS)
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "codemods.rehearse.plugin", "--uncuda-device", "ascend", "-q", "."],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert finished.returncode == 1, finished.stdout + finished.stderr
    assert "1 failed, 1 passed" in finished.stdout
    assert "rehearsal on a virtual npu (Huawei Ascend NPU)" in finished.stdout
    (row,) = (line for line in finished.stdout.splitlines() if line.startswith("  test_project.py:13"))
    assert "UC101" in row


def test_pytest_is_told_what_cannot_be_rehearsed(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "codemods.rehearse.plugin", "--uncuda-device", "abacus"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert finished.returncode == 4
    assert "there is no device 'abacus'" in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.py",), "there is no file nowhere.py"),
        (("--device", "abacus", __file__), "there is no device 'abacus'"),
        (("--device", "metax", __file__), "runs CUDA code as it is"),
        (("--device", "mps", __file__), "is built into torch and cannot be rehearsed"),
        (("--adapter-version", "newest", __file__), "'newest' is no version"),
        (("--max-steps", "0", __file__), "max-steps"),
        (("--json", "no/such/report.json", __file__), "there is no folder no/such"),
        ((), "SCRIPT"),
    ],
)
def test_bad_usage_is_told_in_a_line(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_torch_that_is_too_old_or_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "2.9.1+cu128")
    with pytest.raises(UserError, match=r"needs torch 2\.13 or newer, and 2\.9\.1\+cu128 is installed"):
        check_torch()

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(UserError, match=r"install uncuda\[torch\]"):
        check_torch()


def test_the_devices_that_adapters_add_to_torch_can_be_rehearsed() -> None:
    assert [rehearsable(name).type for name in ("npu", "Cambricon", "s60", "musa", "supa")] == [
        "npu",
        "mlu",
        "gcu",
        "musa",
        "supa",
    ]
