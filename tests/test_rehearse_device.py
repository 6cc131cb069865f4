"""The virtual device: tensors, strictness, the vendor's names, precision, saving, and what a rehearsal records.

A virtual device changes torch for the whole process, so the checks run in processes of their own, one a device: this
file run as a script, ``python test_rehearse_device.py <device>``.
"""

from __future__ import annotations

import copy
import io
import math
import os
import pickle
import subprocess
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
from fixture_runs import ROOT

from codemods.errors import UserError
from codemods.rehearse.backend import install
from codemods.rehearse.listing import read_listing
from codemods.rehearse.recording import Recording, Site

KINDS = ("npu", "mlu", "musa", "gcu", "supa")
BACKENDS = {"npu": "hccl", "mlu": "cncl", "musa": "mccl", "gcu": "eccl", "supa": "bccl"}
torch: Any = import_module("torch")  # much of what is looked at here has no types
HERE = Path(__file__).resolve()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool
        pool.shutdown(cancel_futures=True)


# -- Without a device ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cuda", "metax", "dcu"])
def test_nothing_to_rehearse_where_cuda_works(name: str) -> None:
    with pytest.raises(UserError, match="nothing to rehearse"):
        install(name)


@pytest.mark.parametrize("name", ["hpu", "xpu", "mps", "tpu"])
def test_devices_with_a_key_of_their_own_cannot_be_rehearsed(name: str) -> None:
    with pytest.raises(UserError, match=r"under a key of its own.*rehearsed are npu, supa, mlu, gcu, musa"):
        install(name)


def test_unknown_devices_are_named() -> None:
    with pytest.raises(UserError, match="no device 'quantum'"):
        install("quantum")


def test_versions_of_an_adapter_offer_their_own_names() -> None:
    newest = read_listing("npu")
    older = read_listing("npu", "2.5.1")
    assert newest.version == "2.14.0"
    assert older.version == "2.5.1.post1"
    assert "get_device_limit" in newest.modules["torch_npu.npu"]
    assert "get_device_limit" not in older.modules["torch_npu.npu"]
    assert read_listing("npu", "2.8").version == "2.7.1"
    assert read_listing("npu", "2.7.1.post2").version == "2.7.1"
    with pytest.raises(UserError, match=r"torch_npu 1\.11 are not known; known are 2\.1\.0"):
        read_listing("npu", "1.11")
    with pytest.raises(UserError, match="'latest' is no version"):
        read_listing("npu", "latest")


@pytest.mark.parametrize("kind", KINDS)
def test_listings_hold_what_torch_asks_for(kind: str) -> None:
    listing = read_listing(kind)
    names = listing.modules.get(listing.namespace, {})
    assert listing.version == "" or {"is_available", "current_device", "memory_allocated", "Stream"} <= set(names)
    assert not [name for names in listing.modules.values() for name in names if name.startswith("_")]


def test_recordings_merge_and_travel_as_json() -> None:
    one = Recording("npu", "torch_npu 2.7.1")
    site = Site("train.py", 3)
    one.operator("aten::add.Tensor").count = 2
    one.operators["aten::add.Tensor"].sites[site] = 2
    one.add_traffic("device to host", "item", site, 4)
    one.add_cuda("Tensor.cuda", site)
    one.add_remark("not rehearsed", "torch.compile", site)
    one.peak_memory[0] = 7
    other = Recording.from_dict(one.as_dict())
    assert other == one
    other.merge(one)
    assert other.operators["aten::add.Tensor"].count == 4
    assert other.operators["aten::add.Tensor"].sites == {site: 4}
    assert other.traffic["device to host", "item", site].bytes == 8
    assert other.cuda["Tensor.cuda", site].count == 2
    one.clear()
    assert one.as_dict()["operators"] == one.as_dict()["traffic"] == []


# -- On the virtual devices ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcomes(pool: ThreadPoolExecutor) -> dict[str, Future[dict[str, str]]]:
    """For each device what every check found: nothing, or what went wrong."""
    return {kind: pool.submit(outcomes_on, kind) for kind in (*KINDS, "strict")}


def outcomes_on(kind: str) -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [sys.executable, str(HERE), kind], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return dict(line.split("\t", 1) for line in finished.stdout.splitlines() if "\t" in line)


def check_tensors_say_where_they_are(kind: str, recording: Recording) -> None:
    one = torch.ones(2, 3, device=kind)
    assert str(one.device) == f"{kind}:0"
    assert repr(one) == f"tensor([[1., 1., 1.],\n        [1., 1., 1.]], device='{kind}:0')"
    assert one.type() == f"torch.{kind}.FloatTensor"
    assert getattr(one, f"is_{kind}")
    assert not one.is_cuda
    assert getattr(torch.ones(1), kind)(1).device.index == 1
    assert (one + 1).device == one.t().device == one.new_zeros(1).device == torch.rand_like(one).device == one.device
    assert f"{torch.tensor(2.5, device=kind):.2f}" == "2.50"
    assert repr(torch.nn.Parameter(one[0])).startswith("Parameter containing:")
    assert (one.requires_grad_() * 2).sum().backward() is None
    assert torch.tensor([[1, 2]], device=kind).tolist() == [[1, 2]]
    with pytest.raises(TypeError, match=f"can't convert {kind}:0 device type tensor to numpy"):
        one.detach().numpy()
    assert one.detach().cpu().numpy().shape == (2, 3)


def check_views_and_in_place_operators(kind: str, recording: Recording) -> None:
    base = torch.zeros(2, 3, device=kind)
    base.view(6)[1:3].fill_(7)
    base.t()[0].add_(1)
    assert base.tolist() == [[1, 7, 7], [1, 0, 0]]
    assert base._is_view() is False
    assert base[0]._base is base
    assert base.t_().shape == (3, 2)
    assert base.stride() == (1, 3)
    assert torch.add(base, 1, out=torch.empty(0, device=kind)).shape == (3, 2)
    assert torch.empty(3, device=kind).resize_(5).shape == (5,)
    assert torch._C._is_alias_of(base, base[1:])
    assert not torch._C._is_alias_of(base, base.clone())
    mask = torch.tensor([True, False, True], device=kind)
    base[mask] = 9
    assert base.tolist() == [[9, 9], [7, 0], [9, 9]]


def check_devices_do_not_mix(kind: str, recording: Recording) -> None:
    one = torch.ones(2, device=kind)
    with pytest.raises(RuntimeError, match=f"at least two devices, {kind}:0 and cpu"):
        one + torch.ones(2)
    with pytest.raises(RuntimeError, match=f"at least two devices, {kind}:0 and {kind}:1"):
        one + torch.ones(2, device=f"{kind}:1")
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.cat([torch.ones(2), one])
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.nn.Linear(2, 2)(one[None])
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.nn.functional.scaled_dot_product_attention(one.view(1, 1, 2), one.view(1, 1, 2), torch.ones(1, 1, 2))
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.rand(2, device=kind, generator=torch.Generator())
    assert (one * torch.tensor(2.0)).tolist() == [2, 2]
    assert one[torch.tensor([0])].tolist() == [1]


def check_current_device(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    assert namespace.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device(kind)
    namespace.set_device(1)
    try:
        assert torch.ones(1, device=kind).device.index == namespace.current_device() == 1
        with namespace.device(0):
            assert torch.ones(1).to(kind).device.index == 0
        with torch.device(kind):
            assert torch.ones(1).device.index == 1
        weight = torch.ones(2, device=kind, requires_grad=True)
        (weight * 2).sum().backward()
        assert weight.grad is not None
        assert weight.grad.device.index == 1
    finally:
        namespace.set_device(f"{kind}:0")
    acts: list[Callable[[], Any]] = [lambda: namespace.set_device(2), lambda: torch.ones(1, device=f"{kind}:7")]
    for act in acts:
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            act()
    torch.accelerator.set_device_index(1)
    assert namespace.current_device() == 1
    torch.accelerator.set_device_index(0)


def trained(place: str, make: Callable[[], Any], batch: Callable[[], tuple[Any, Any]]) -> list[float]:
    torch.manual_seed(5)
    model = make().to(place)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        x, y = (one.to(place) for one in batch())
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


class Recurrent(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        self.lstm = torch.nn.LSTM(8, 6, num_layers=2, dropout=0.3, batch_first=True, bidirectional=True)
        self.gru = torch.nn.GRU(12, 5, batch_first=True)
        self.out = torch.nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.gru(self.lstm(self.embed(x))[0])[0][:, -1])


class Attending(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.encoder(self.embed(x)).mean(1))


def convolving() -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, bias=False),
        torch.nn.BatchNorm2d(8),
        torch.nn.SiLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Dropout2d(0.2),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(72, 3),
    )


def check_training_gives_the_losses_of_the_cpu(kind: str, recording: Recording) -> None:
    images = lambda: (torch.randn(4, 3, 8, 8), torch.randint(0, 3, (4,)))  # noqa: E731
    words = lambda: (torch.randint(0, 11, (4, 7)), torch.randint(0, 3, (4,)))  # noqa: E731
    for make, batch in ((convolving, images), (Recurrent, words), (Attending, words)):
        expected = trained("cpu", make, batch)
        assert trained(kind, make, batch) == expected, make
        assert trained(f"{kind}:1", make, batch) == expected, make


def check_second_derivatives(kind: str, recording: Recording) -> None:
    def penalty(place: str) -> list[float]:
        torch.manual_seed(1)
        critic = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(place)
        x = torch.randn(5, 3).to(place).requires_grad_()
        (grad,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        ((grad.norm(2, dim=1) - 1) ** 2).mean().backward()
        return [parameter.grad.sum().item() for parameter in list(critic.parameters())[:3]]

    assert penalty(kind) == penalty("cpu")


def check_modules_move_and_stay_themselves(kind: str, recording: Recording) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    before, mark = list(model.parameters()), object()
    model[0].weight.mark = mark
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for place in (kind, "cpu", f"{kind}:1"):
        model.to(place)
        assert all(now is then for now, then in zip(model.parameters(), before, strict=True))
        assert {str(one.device) for one in model.state_dict().values()} == {f"{kind}:0" if place == kind else place}
        assert all(isinstance(one, torch.nn.Parameter) for one in before)
    assert model[0].weight.mark is mark
    model(torch.ones(2, 2, device=f"{kind}:1")).sum().backward()
    optimizer.step()
    model.half()
    assert before[0].dtype is torch.float16
    before[0].data = torch.zeros(2, 2, device=f"{kind}:1", dtype=torch.float16)
    assert before[0].sum().item() == 0
    assert copy.deepcopy(model)[0].weight.device.index == 1
    assert torch.ones(3).to(kind).inner(torch.ones(3).to(kind)).item() == 3


def check_parameters_keep_their_hooks_when_state_is_loaded(kind: str, recording: Recording) -> None:
    model = torch.nn.Linear(2, 1).to(kind)
    seen = []
    model.weight.register_hook(lambda grad: seen.append(grad.device))
    model.load_state_dict(torch.nn.Linear(2, 1).state_dict())
    model(torch.ones(1, 2, device=kind)).sum().backward()
    assert seen == [torch.device(kind, 0)]


def check_saving_and_loading(kind: str, recording: Recording) -> None:
    one = torch.arange(6.0).view(2, 3).to(f"{kind}:1")
    model = torch.nn.Linear(2, 2).to(kind)
    buffer = io.BytesIO()
    torch.save({"one": one, "row": one[1], "model": model.state_dict(), "cpu": torch.ones(1)}, buffer)
    with zipfile.ZipFile(buffer) as archive:
        pickled = next(archive.read(name) for name in archive.namelist() if name.endswith("data.pkl"))
    assert f"{kind}:1".encode() in pickled
    assert b"codemods" not in pickled
    places: dict[Any, str] = {None: f"{kind}:1", "cpu": "cpu", kind: f"{kind}:0", f"{kind}:0": f"{kind}:0"}
    for location, place in places.items():
        buffer.seek(0)
        loaded = torch.load(buffer, map_location=location)
        assert str(loaded["one"].device) == place
        assert torch.equal(loaded["one"].cpu(), one.cpu())
        loaded["one"][1, 0] = 9
        assert loaded["row"][0].item() == 9
    functions: dict[str, Any] = {
        "cpu": lambda storage, location: storage,
        f"{kind}:0": lambda storage, location: getattr(storage, kind)(0),
    }
    for place, function in functions.items():
        buffer.seek(0)
        assert str(torch.load(buffer, map_location=function)["one"].device) == place
    buffer.seek(0)
    assert str(torch.load(buffer, map_location={f"{kind}:1": f"{kind}:0"})["one"].device) == f"{kind}:0"
    assert torch.equal(pickle.loads(pickle.dumps(one)).cpu(), one.cpu())
    assert torch.equal(pickle.loads(bytes(ForkingPickler.dumps(one))).cpu(), one.cpu())
    parameter = pickle.loads(pickle.dumps(torch.nn.Parameter(one)))
    assert isinstance(parameter, torch.nn.Parameter)
    whole = io.BytesIO()
    torch.save(model, whole)
    whole.seek(0)
    assert torch.load(whole, weights_only=False).weight.device.type == kind


def check_random_numbers_are_those_of_the_cpu(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    torch.manual_seed(3)
    expected = torch.rand(4)
    namespace.manual_seed_all(3)
    assert torch.equal(torch.rand(4, device=kind).cpu(), expected)
    state = namespace.get_rng_state()
    first = torch.randn(3, device=kind)
    namespace.set_rng_state(state)
    assert torch.equal(torch.randn(3, device=kind), first)
    namespace.set_rng_state_all(namespace.get_rng_state_all())
    generator = torch.Generator(device=kind).manual_seed(3)
    assert generator.device == torch.device(kind, 0)
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator)
    assert torch.equal(torch.rand(4, device=kind, generator=generator).cpu(), expected)
    with torch.random.fork_rng(device_type=kind):
        torch.rand(2, device=kind)


def check_autocast(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    one = torch.ones(2, 2, device=kind)
    for context, dtype in (
        (torch.autocast(kind), torch.float16),
        (torch.autocast(kind, dtype=torch.bfloat16), torch.bfloat16),
        (namespace.amp.autocast(), torch.float16),
        (torch.autocast(kind, enabled=False), torch.float32),
    ):
        with context:
            assert (one @ one).dtype is dtype
            assert torch.nn.functional.linear(one, one).dtype is dtype
            assert (one + one).dtype is torch.float32
            low = one @ one
            assert low.softmax(0).dtype is torch.float32
            assert low.sum().dtype is torch.float32
            assert torch.nn.functional.layer_norm(low, (2,)).dtype is torch.float32
            assert torch.cat([low, one]).dtype is torch.float32
    with torch.autocast(kind), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(one, one)
    assert (one @ one).dtype is torch.float32


def check_gradient_scaling(kind: str, recording: Recording) -> None:
    model = torch.nn.Linear(4, 2).to(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for scaler in (torch.amp.GradScaler(kind, init_scale=64.0), getattr(torch, kind).amp.GradScaler(init_scale=64.0)):
        before = model.weight.detach().clone()
        for value in (1.0, math.inf):
            optimizer.zero_grad()
            with torch.autocast(kind):
                loss = model(torch.full((3, 4), value, device=kind)).sum()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        assert not torch.equal(before, model.weight)
        assert torch.isfinite(model.weight).all()
        assert scaler.get_scale() == 32.0


def check_memory_is_counted(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    namespace.empty_cache()
    namespace.reset_peak_memory_stats()
    before = namespace.memory_allocated()
    one = torch.zeros(1000, 1000, device=kind)
    view = one[10:]
    assert namespace.memory_allocated() - before == 4_000_256  # rounded up to blocks of 512
    del one
    assert namespace.memory_allocated() > before
    del view
    assert namespace.memory_allocated() == before
    assert namespace.max_memory_allocated() == before + 4_000_256
    assert namespace.memory_reserved() >= 4_000_256
    assert recording.peak_memory[0] >= namespace.max_memory_allocated()
    assert namespace.memory_allocated(1) == namespace.memory_allocated(f"{kind}:1")
    free, total = namespace.mem_get_info()
    assert 0 < free <= total
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        torch.empty(total, dtype=torch.int16, device=kind)


def check_streams_and_events(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    side, begin, end = namespace.Stream(), namespace.Event(enable_timing=True), namespace.Event(enable_timing=True)
    begin.record()
    side.wait_stream(namespace.current_stream())
    with namespace.stream(side):
        assert namespace.current_stream() == side
        one = torch.ones(2, device=kind)
        one.record_stream(side)
        end.record()
    assert namespace.current_stream() == namespace.default_stream() != side
    namespace.current_stream().wait_event(end)
    end.synchronize()
    namespace.synchronize()
    assert begin.elapsed_time(end) >= 0
    assert end.query()
    assert isinstance(side, torch.Stream)
    assert side.device == torch.device(kind, 0)


def check_the_namespace_has_what_the_adapter_has(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    with pytest.raises(AttributeError, match="no attribute 'get_gencode_flags_of_nobody'"):
        namespace.get_gencode_flags_of_nobody()
    listing = read_listing(kind)
    if not listing.version:
        assert any(remark.kind == "namespace" for remark in recording.remarks.values())
        return
    names = listing.modules[listing.namespace]
    for name in ("memory_cached", "set_deterministic_level", "is_fp8_supported", "temperature", "default_generators"):
        assert hasattr(namespace, name) == (name in names), name
    assert set(names) == set(dir(namespace))


def check_the_adapter_can_be_imported(kind: str, recording: Recording) -> None:
    package = read_listing(kind).adapter
    assert __import__(package).__version__ == read_listing(kind).version
    with pytest.raises(ImportError, match="in a rehearsal of"):
        __import__(f"{package}.no_such_part")


def check_what_cannot_be_played_says_so(kind: str, recording: Recording) -> None:
    if kind != "npu":
        return
    with pytest.raises(NotImplementedError, match=r"NPUGraph exists on npu, but .*test_rehearse_device\.py"):
        torch.npu.NPUGraph()
    torch.npu.set_compile_mode(jit_compile=False)
    assert {"torch_npu.npu.NPUGraph", "torch_npu.npu.set_compile_mode"} <= {r.text for r in recording.remarks.values()}


def check_legacy_types(kind: str, recording: Recording) -> None:
    namespace = getattr(torch, kind)
    if not hasattr(namespace, "FloatTensor"):
        assert kind in ("gcu", "musa")  # their lists of names do not have them
        return
    assert str(namespace.FloatTensor([1, 2]).device) == f"{kind}:0"
    assert namespace.HalfTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1, device=kind), namespace.FloatTensor)
    assert not isinstance(torch.ones(1), namespace.FloatTensor)
    assert torch.ones(2).type(namespace.LongTensor).dtype is torch.int64
    assert torch.ones(2).type(f"torch.{kind}.HalfTensor").device.type == kind
    torch.set_default_tensor_type(f"torch.{kind}.FloatTensor")
    assert torch.ones(1).device.type == kind
    torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).device.type == "cpu"


def check_float64_is_what_the_chip_makes_of_it(kind: str, recording: Recording) -> None:
    third = torch.tensor([1 / 3], dtype=torch.float64).to(kind)
    if kind in ("mlu", "musa", "gcu"):
        assert third.dtype is torch.float64
        assert third.item() == torch.tensor(1 / 3).item() != 1 / 3
        assert any(remark.kind == "dtype" for remark in recording.remarks.values())
        return
    assert (third * 1).item() == 1 / 3
    with pytest.raises(RuntimeError, match=f"not implemented for float64 on {kind}"):
        third.view(1, 1) @ third.view(1, 1)


def check_cuda_is_absent_and_every_mention_recorded(kind: str, recording: Recording) -> None:
    recording.cuda.clear()
    assert not torch.cuda.is_available()
    mentions: dict[str, Callable[[], Any]] = {
        "Tensor.cuda": lambda: torch.ones(1, device=kind).cuda(),
        "Module.cuda": lambda: torch.nn.Linear(1, 1).cuda(),
        "device cuda": lambda: torch.zeros(1, device="cuda:0"),
        "torch.cuda.set_device": lambda: torch.cuda.set_device(0),
        "torch.cuda.synchronize": lambda: torch.cuda.synchronize(),
    }
    for act in mentions.values():
        with pytest.raises((AssertionError, AttributeError), match=r"CUDA is named at .*test_rehearse_device\.py:\d+"):
            act()
    found = {mention.what for mention in recording.cuda.values()}
    assert {*mentions, "torch.cuda.is_available"} == found
    assert all(mention.site.file == str(HERE) for mention in recording.cuda.values())
    recording.cuda.clear()
    torch.manual_seed(1)
    torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1).step()
    assert not recording.cuda  # torch asks torch.cuda of itself, which is nobody's mention


def check_traffic_is_recorded_with_its_place(kind: str, recording: Recording) -> None:
    recording.traffic.clear()
    one = torch.ones(4).to(kind)
    line = sys._getframe().f_lineno
    one.sum().item()
    one.tolist()
    one.cpu()
    bool(one[0] > 0)
    one.nonzero()
    getattr(torch, kind).synchronize()
    found = {(t.kind, t.via, t.site.line): t for t in recording.traffic.values()}
    assert found.keys() == {
        ("host to device", "to", line - 1),
        ("synchronisation", "item", line + 1),
        ("device to host", "tolist", line + 2),
        ("device to host", "cpu", line + 3),
        ("synchronisation", "bool", line + 4),
        ("synchronisation", "nonzero", line + 5),
        ("synchronisation", "synchronize", line + 6),
    }
    assert found["device to host", "cpu", line + 3].bytes == 16
    assert all(entry.count == 1 for entry in found.values())


def check_operators_are_counted_with_their_place(kind: str, recording: Recording) -> None:
    recording.clear()
    weight = torch.ones(3, device=kind, requires_grad=True)
    line = sys._getframe().f_lineno
    for _ in range(3):
        loss = (weight * weight).sum()
        loss.backward()
    use = recording.operators["aten::mul.Tensor"]
    assert use.count == 9
    assert use.sites == {Site(str(HERE), line + 2): 3, Site(str(HERE), line + 3): 6}
    assert use.seconds > 0
    assert use.state == "kernel"


def check_operators_that_the_target_lacks(kind: str, recording: Recording) -> None:
    one = torch.full((2,), 0.5, device=kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.erfinv(one)
        torch.erfinv(one)
    assert ["aten::erfinv" in str(one.message) for one in caught] == [True]
    assert recording.operators["aten::erfinv"].state == "fallback"
    assert recording.operators["aten::erfinv"].count == 2
    with pytest.raises(NotImplementedError, match=r"aten::digamma.*has no kernel.*test_rehearse_device\.py"):
        torch.digamma(one)


def check_loading_data(kind: str, recording: Recording) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    for options in ({"num_workers": 2}, {"num_workers": 0}):
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True, **options):
            assert batch.is_pinned()
            assert batch.to(kind, non_blocking=True).device.type == kind
    assert not torch.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(1, device=kind).pin_memory()


class OnDevice(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return torch.ones(1).to(self.kind)


def check_forked_workers_cannot_use_the_device(kind: str, recording: Recording) -> None:
    torch.ones(1, device=kind)
    with pytest.raises(RuntimeError, match=f"Cannot re-initialize {kind.upper()} in a forked subprocess"):
        list(torch.utils.data.DataLoader(OnDevice(kind), num_workers=1))


def check_compiling_is_left_out(kind: str, recording: Recording) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(math.sqrt)(4.0) == 2.0
        assert torch.compile()(math.sqrt) is math.sqrt
        torch.nn.Linear(1, 1).compile()
    assert any("torch.compile" in remark.text for remark in recording.remarks.values())


def check_inference_mode_and_sparse(kind: str, recording: Recording) -> None:
    before = torch.zeros(2, 2, device=kind)
    with torch.inference_mode():
        made = torch.ones(2, 2, device=kind)
        assert all(one.is_inference() for one in (made, made.view(-1), before + made))
        views = (
            before.view(-1),
            before[0],
            before.expand(3, 2, 2),
            before.detach(),
            *before.split(1),
            *before.unbind(),
        )
        assert not any(view.is_inference() for view in views)
        views[-1].add_(made[1])
    assert before.tolist() == [[0, 0], [1, 1]]
    with torch.inference_mode():
        assert Recurrent().to(kind).eval()(torch.zeros(1, 3, dtype=torch.int64, device=kind)).device.type == kind
        assert Attending().to(kind).eval()(torch.zeros(1, 3, dtype=torch.int64, device=kind)).device.type == kind
    with pytest.raises(NotImplementedError, match=r"sparse_coo are not rehearsed"):
        torch.ones(2, device=kind).to_sparse()


def check_collective_backend(kind: str, recording: Recording) -> None:
    distributed = torch.distributed
    backend = BACKENDS[kind]
    assert getattr(distributed, f"is_{backend}_available")()
    rendezvous = distributed.HashStore()
    distributed.init_process_group(backend, store=rendezvous, rank=0, world_size=1)
    one = torch.ones(2, device=kind)
    distributed.all_reduce(one)
    assert one.tolist() == [1, 1]
    assert distributed.get_backend() == backend
    distributed.destroy_process_group()


CHECKS = [name for name in list(globals()) if name.startswith("check_")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHECKS)
def test_device(name: str, kind: str, outcomes: dict[str, Future[dict[str, str]]]) -> None:
    assert outcomes[kind].result().get(name, "did not run") == ""


def test_strict_rehearsal_refuses_fallbacks(outcomes: dict[str, Future[dict[str, str]]]) -> None:
    assert outcomes["strict"].result() == {"strict": ""}


def state_of(overload: Any) -> str:
    name = overload._schema.name
    return {"aten::erfinv": "fallback", "aten::digamma": "missing"}.get(name, "kernel")


def run_checks(kind: str) -> None:
    recording = install(kind, operator_state=state_of)
    assert install(kind) is recording
    with pytest.raises(UserError, match=f"rehearses {kind} already"):
        install("mlu" if kind == "npu" else "npu")
    for name in CHECKS:
        report(name, lambda name=name: globals()[name](kind, recording))  # type: ignore[misc]


def report(name: str, check: Callable[[], None]) -> None:
    try:
        check()
    except Exception as error:  # noqa: BLE001 - it is the outcome
        line = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == str(HERE)][-1]
        print(name, f"{type(error).__name__}: {error} ({line.lineno}: {line.line})".replace("\n", " "), sep="\t")
    else:
        print(name, "", sep="\t", flush=True)


def run_strictly() -> None:
    install("npu", strict=True, operator_state=state_of)

    def check() -> None:
        with pytest.raises(RuntimeError, match=r"aten::erfinv has no kernel on npu .*test_rehearse_device\.py:\d+"):
            torch.erfinv(torch.ones(1, device="npu"))

    report("strict", check)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    if sys.argv[1] == "strict":
        run_strictly()
    else:
        run_checks(sys.argv[1])
