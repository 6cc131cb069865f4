"""The training scripts of fixtures/: the originals learn under tests/cuda_on_cpu.py, the converted ones do the same.

Losses are compared to the last digit: the original whose CUDA calls land on the CPU, against its conversion with
``AI_DEVICE=cpu``; and a script with a CPU path of its own, against its conversion with ``AI_DEVICE`` unset.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from fixture_runs import (
    CUDA_ONLY,
    FIRST_RUNS,
    FIXTURES,
    HARNESS,
    ROOT,
    RUNS,
    WITH_CPU_PATH,
    Started,
    losses_of,
    run_python,
)

from codemods.engine.outcome import Request
from codemods.engine.run import run
from codemods.report.patch import write

DEVICES = ("npu", "mlu")
UNDER_AUTOCAST = {"amp_gan", "package_with_scripts"}
"""Runs with torch.cuda.amp, which is off on the CPU."""

without_gpu = pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="tells nothing on a machine with a GPU")


class Originals(Started):
    """All runs of the originals: under the harness, and the first of each script as it is."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path) -> None:
        super().__init__(pool, folder)
        self.harness = {name: self.start(run.under_harness, f"{name}_harness") for name, run in RUNS.items()}
        self.plain = {name: self.start(RUNS[name].on_plain_cpu, f"{name}_plain") for name in FIRST_RUNS}


class Converted(Started):
    """All runs of the converted scripts: on the CPU by AI_DEVICE, and by their own CPU path without it."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path) -> None:
        super().__init__(pool, folder)
        self.fixtures = converted_copy(folder / "fixtures")
        self.selected = {
            name: self.start(partial(run.with_ai_device, "cpu", fixtures=self.fixtures), f"{name}_selected")
            for name, run in RUNS.items()
        }
        self.unset = {
            name: self.start(partial(RUNS[name].on_plain_cpu, fixtures=self.fixtures), f"{name}_unset")
            for name in WITH_CPU_PATH
        }


class Rehearsed(Started):
    """All runs on virtual devices: converted, on each of two vendors' devices, and unconverted."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path, converted: Path) -> None:
        super().__init__(pool, folder)
        self.devices = {
            (name, device): self.start(partial(run.rehearsed, device, fixtures=converted), f"{name}_{device}")
            for name, run in RUNS.items()
            for device in DEVICES
        }
        self.originals = {
            name: self.start(partial(RUNS[name].rehearsed, "npu", fixtures=FIXTURES), f"{name}_original")
            for name in FIRST_RUNS
        }


def converted_copy(folder: Path) -> Path:
    """A copy of fixtures/ in which every script folder and repository is converted as a repository of its own."""
    for kind in ("scripts", "repositories"):
        shutil.copytree(FIXTURES / kind, folder / kind)
        for root in (path for path in (folder / kind).iterdir() if path.is_dir()):
            outcome = run(Request(paths=(root,)))
            write(outcome)
            assert not outcome.failures
    return folder


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def started(pool: ThreadPoolExecutor, tmp_path_factory: pytest.TempPathFactory) -> Originals:
    return Originals(pool, tmp_path_factory.mktemp("originals"))


@pytest.fixture(scope="module")
def converted(started: Originals, tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return Converted(started.pool, tmp_path_factory.mktemp("converted"))


@pytest.fixture(scope="module")
def rehearsed(converted: Converted, tmp_path_factory: pytest.TempPathFactory) -> Rehearsed:
    return Rehearsed(converted.pool, tmp_path_factory.mktemp("rehearsed"), converted.fixtures)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("name", RUNS)
def test_original_learns_under_the_harness(name: str, started: Originals) -> None:
    values = [loss for _, loss in losses_of(started.harness[name].result())]
    assert len(values) >= 3
    assert all(math.isfinite(value) for value in values)
    part = math.ceil(len(values) / 4)
    assert mean(values[-part:]) < 0.8 * mean(values[:part]), values


@without_gpu
@pytest.mark.parametrize("name", WITH_CPU_PATH)
def test_cpu_path_prints_the_losses_of_the_harness(name: str, started: Originals) -> None:
    assert losses_of(started.plain[name].result()) == losses_of(started.harness[name].result())


@without_gpu
@pytest.mark.parametrize("name", CUDA_ONLY)
def test_original_without_cpu_path_needs_cuda(name: str, started: Originals) -> None:
    finished = started.plain[name].result()
    assert finished.returncode != 0
    assert any(word in finished.stderr for word in ("CUDA", "GPU")), finished.stderr


@pytest.mark.parametrize("name", RUNS)
def test_converted_script_has_the_losses_of_the_original(name: str, started: Originals, converted: Converted) -> None:
    assert losses_of(converted.selected[name].result()) == losses_of(started.harness[name].result())


@without_gpu
@pytest.mark.parametrize("name", WITH_CPU_PATH)
def test_converted_script_keeps_its_cpu_path(name: str, started: Originals, converted: Converted) -> None:
    assert losses_of(converted.unset[name].result()) == losses_of(started.plain[name].result())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", RUNS)
def test_converted_script_has_the_losses_of_the_cpu_on_a_virtual_device(
    name: str, device: str, converted: Converted, rehearsed: Rehearsed
) -> None:
    expected = losses_of(converted.selected[name].result())
    finished = rehearsed.devices[name, device].result()
    losses = losses_of(finished)
    if name in UNDER_AUTOCAST:
        assert [loss for _, loss in losses] == pytest.approx([loss for _, loss in expected], rel=0.1)
    else:
        assert losses == expected
    assert "CUDA still named: nowhere." in finished.stderr


@pytest.mark.parametrize("name", FIRST_RUNS)
def test_unconverted_script_does_not_pass_a_rehearsal(name: str, rehearsed: Rehearsed) -> None:
    finished = rehearsed.originals[name].result()
    assert finished.returncode in (1, 2)
    places = re.findall(r"^ *(\S+\.py:\d+)\b.*$", finished.stderr, re.MULTILINE)
    assert "CUDA" in finished.stderr
    assert any(Path(RUNS[name].script).parts[1] in place for place in places), finished.stderr


def test_every_training_script_has_a_run() -> None:
    scripts = {path.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("**/train.py")}
    assert scripts <= {run.script for run in RUNS.values()}


def test_layouts_that_a_conversion_must_keep() -> None:
    legacy, last_line, tabs = (
        (FIXTURES / "scripts" / name / "train.py").read_bytes()
        for name in ("tensor_types_legacy", "rl_rng_checkpoint", "amp_gan")
    )
    assert legacy.count(b"\r\n") == legacy.count(b"\n") > 0
    assert not last_line.endswith(b"\n")
    assert b"\n\t" in tabs


def test_export_reads_the_checkpoint_of_the_package(started: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = FIXTURES / "repositories" / "package_with_scripts"
    losses_of(started.harness["package_with_scripts"].result())
    monkeypatch.setenv("PYTHONPATH", str(repository))
    export = run_python(
        [str(HARNESS), str(repository / "tools" / "export.py")], started.folder / "package_with_scripts_harness"
    )
    assert export.returncode == 0, export.stderr
    assert "largest difference 0.0" in export.stdout


PROBE = """
import pickle, sys, warnings
import torch, torch.distributed as dist, torch.nn as nn
from torch.cuda.amp import GradScaler, autocast, custom_fwd

warnings.simplefilter("ignore")
cpu = torch.device("cpu")
for place in (torch.device("cuda"), torch.device("cuda", 1), torch.device(0), torch.device(type="cuda", index=2)):
    assert place == cpu and isinstance(place, torch.device)
assert pickle.loads(pickle.dumps(torch.device("cuda"))) == cpu
assert torch.device("meta").type == "meta" and torch.device(device=0) == cpu

generator = torch.Generator(device="cuda:0").manual_seed(3)
drawn = torch.rand(2, device="cuda", generator=generator)
assert torch.equal(drawn, torch.rand(2, generator=torch.Generator().manual_seed(3)))
assert isinstance(generator, torch.Generator) and torch.Generator().device == cpu

x = torch.ones(2, 3, 4, 4)
assert x.cuda(0, non_blocking=True) is x and x.pin_memory() is x and x.to(0) is x and x.to("cuda:1") is x
assert x.to("cuda", torch.float64).dtype == torch.float64 and not x.is_cuda
assert x.cuda(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
assert x.new_zeros(1, device="cuda").device == cpu and torch.zeros_like(x, device="cuda:0").device == cpu
assert nn.Linear(2, 2, device="cuda").cuda().to(device="cuda").to(0).weight.device == cpu
assert x.untyped_storage().cuda().device == cpu
torch.set_default_device("cuda"); assert torch.zeros(1).device == cpu; torch.set_default_device(None)

assert torch.cuda.FloatTensor is torch.FloatTensor and x.type("torch.cuda.LongTensor").dtype == torch.int64
assert x.type() == "torch.FloatTensor"
torch.set_default_tensor_type("torch.cuda.DoubleTensor"); assert torch.zeros(1).dtype == torch.float64
torch.set_default_tensor_type(torch.cuda.FloatTensor)

torch.save({"x": x}, "x.pt")
for location in (None, "cuda", "cuda:0", torch.device("cuda"), lambda s, l: s.cuda(0), {"cuda:1": "cuda:0"}):
    assert torch.equal(torch.load("x.pt", map_location=location)["x"], x)

state = torch.cuda.get_rng_state(); first = torch.rand(1); torch.cuda.set_rng_state(state)
assert torch.rand(1) == first and torch.cuda.get_rng_state_all() == []
torch.cuda.set_rng_state_all([])
torch.cuda.manual_seed_all(5); first = torch.rand(1); torch.manual_seed(5); assert torch.rand(1) == first
with torch.random.fork_rng(): torch.rand(9)

def product_dtype(context):
    with context: return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype

assert product_dtype(autocast()) == product_dtype(autocast(True, torch.bfloat16)) == torch.float32
assert product_dtype(torch.autocast("cuda")) == product_dtype(torch.amp.autocast("cuda:0")) == torch.float32
assert product_dtype(torch.autocast("cuda", dtype=torch.bfloat16)) == torch.bfloat16
assert product_dtype(torch.autocast("cuda", torch.bfloat16, False)) == torch.float32
assert product_dtype(torch.autocast("cpu")) == torch.bfloat16
assert autocast()(lambda: torch.is_autocast_enabled())() is False
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == torch.bfloat16
    with autocast(): assert not torch.is_autocast_enabled()

class Double(torch.autograd.Function):
    @staticmethod
    @custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x): assert x.dtype == torch.float32 and not torch.is_autocast_enabled(); return x * 2
    @staticmethod
    @torch.cuda.amp.custom_bwd
    def backward(ctx, grad): return grad * 2

with torch.autocast("cuda", dtype=torch.bfloat16): assert Double.apply(torch.ones(1, dtype=torch.bfloat16)) == 2
for scaler in (GradScaler(1024.0), torch.amp.GradScaler("cuda", 2.0, 2.0, 0.5, 9, True), torch.GradScaler()):
    assert not scaler.is_enabled() and scaler.scale(x) is x and scaler.state_dict() == {}
assert torch.amp.GradScaler("cpu").is_enabled()

torch.cuda.set_device("cuda:1"); torch.cuda.synchronize(); torch.cuda.empty_cache()
assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
assert torch.cuda.max_memory_allocated() == 0 and torch.cuda.get_device_properties(0).name == "cpu"
begin, end, side = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Stream()
begin.record(); side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.cuda.device(0), torch.cuda.nvtx.range("x"): end.record(side)
end.synchronize(); assert begin.elapsed_time(end) >= 0 and side.record_event().query()
x.record_stream(torch.cuda.current_stream()); torch.cuda.nvtx.range_push("x"); torch.cuda.nvtx.range_pop()

dist.init_process_group("nccl", "file://" + sys.argv[1], rank=0, world_size=1, device_id=torch.device("cuda", 0))
assert dist.get_backend() == "gloo" and dist.get_backend(dist.new_group(backend="nccl")) == "gloo"
net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2))).cuda()
parallel = nn.parallel.DistributedDataParallel(net, device_ids=[0], output_device=0)
parallel(x).sum().backward(); assert parallel.device_ids is None
assert torch.equal(nn.DataParallel(net.eval(), device_ids=[0, 1]).cuda()(x), net(x))
batch, = next(iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), pin_memory=True)))
assert torch.equal(batch, x[:1])
dist.destroy_process_group()
print("all mapped", __name__, sys.argv[0].endswith("probe.py"))
"""


def test_harness_maps_what_its_documentation_lists(tmp_path: Path) -> None:
    script = tmp_path / "probe.py"
    script.write_text(PROBE, "utf-8")
    finished = run_python([str(HARNESS), str(script), str(tmp_path / "rendezvous")], tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "all mapped __main__ True\n"


def test_harness_runs_as_a_module_and_tells_its_usage(tmp_path: Path) -> None:
    script = tmp_path / "hello.py"
    script.write_text("import sys, torch; print(torch.ones(1).cuda().item(), sys.argv[1:])", "utf-8")
    asked = subprocess.run(
        [sys.executable, "-m", "tests.cuda_on_cpu", str(script), "--flag"], cwd=ROOT, capture_output=True, text=True
    )
    assert asked.stdout == "1.0 ['--flag']\n"
    assert "usage" in run_python([str(HARNESS)], tmp_path).stderr
