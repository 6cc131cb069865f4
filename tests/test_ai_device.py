"""The helper on the machine at hand: without AI_DEVICE it is torch.cuda, with AI_DEVICE=cpu everything is the CPU."""

from __future__ import annotations

import ast
import copy
import functools
import importlib.util
import pickle
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
import torch

from codemods.runtime import device_table

HELPER = device_table.HELPER


def load_helper() -> Any:
    """A fresh copy of the helper, with nothing selected yet."""
    spec = importlib.util.spec_from_file_location("ai_device", HELPER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ai_device"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("AI_DEVICE", raising=False)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    yield load_helper()
    sys.modules.pop("ai_device", None)


@pytest.fixture
def select(helper: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    def selected(value: str) -> Any:
        monkeypatch.setenv("AI_DEVICE", value)
        return helper

    return selected


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Makes torch.cuda say that there are two devices; what set_device is given."""
    given: list[Any] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", given.append)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: getattr(given[-1], "index", given[-1]) if given else 0)
    return given


def outcome(function: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    try:
        result = function(*args)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the thing to compare
        return "raises", (type(error), str(error))
    simple = isinstance(result, (int, float, str, bool, list, dict, tuple, type(None), torch.dtype))
    return "returns", result if simple else type(result)


# -- AI_DEVICE unset: torch.cuda itself ----------------------------------------------------------------------------

CALLED_WITHOUT_ARGUMENTS = """
    can_device_access_peer clock_rate current_device current_stream default_stream device_count empty_cache
    get_device_capability get_device_name get_device_properties get_rng_state get_rng_state_all init initial_seed
    ipc_collect is_available is_bf16_supported is_initialized list_gpu_processes manual_seed max_memory_allocated
    max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached memory_reserved
    memory_snapshot memory_stats memory_summary memory_usage power_draw reset_accumulated_memory_stats
    reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats seed seed_all set_device
    set_per_process_memory_fraction synchronize temperature utilization Stream Event ExternalStream FloatTensor
    DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor BoolTensor
    FloatStorage ComplexFloatStorage OutOfMemoryError
"""
FORWARDED: list[tuple[str, tuple[Any, ...]]] = [
    *((name, ()) for name in CALLED_WITHOUT_ARGUMENTS.split()),
    ("can_device_access_peer", (0, 1)),
    ("get_device_name", (0,)),
    ("get_rng_state", ("cuda:1",)),
    ("manual_seed", (1,)),
    ("manual_seed", ("x",)),
    ("manual_seed_all", (1,)),
    ("memory_allocated", ("cuda:1",)),
    ("set_device", (0,)),
    ("set_device", (-1,)),
    ("set_device", ("cpu",)),
    ("set_per_process_memory_fraction", (0.5,)),
    ("set_rng_state", (torch.zeros(4, dtype=torch.uint8),)),
    ("set_rng_state_all", ([],)),
    ("set_stream", (None,)),
    ("stream", (None,)),
    ("synchronize", (0,)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", ["", "  "])
@pytest.mark.parametrize(("name", "args"), FORWARDED)
def test_unset_does_what_torch_cuda_does(
    select: Callable[[str], Any], value: str, name: str, args: tuple[Any, ...]
) -> None:
    ours, (kind, expected) = outcome(getattr(select(value), name), *args), outcome(getattr(torch.cuda, name), *args)

    if kind == "raises" and issubclass(expected[0], TypeError) and "positional argument" in expected[1]:
        assert ours[0] == "raises"
        assert ours[1][0] is TypeError
    else:
        assert ours == (kind, expected)


def test_every_name_of_torch_cuda_in_the_helper_was_compared(helper: Any) -> None:
    functions = {name for name, value in vars(helper).items() if isfunction(value) and hasattr(torch.cuda, name)}

    assert functions - {name for name, _ in FORWARDED} - {"device"} == set()


def test_unset_is_cuda_without_a_gpu_too(helper: Any) -> None:
    assert helper.device() == torch.device("cuda")
    assert helper.device(1) == helper.device("1") == helper.device("cuda:1") == torch.device("cuda", 1)
    assert helper.device(torch.device("cuda", 1)) == torch.device("cuda", 1)
    assert helper.device("cpu") == torch.device("cpu")
    assert helper.device("meta") == torch.device("meta")
    assert helper.device_type() == "cuda"
    assert helper.available_device() == helper.available_device(1) == torch.device("cpu")
    assert helper.is_available() is helper.is_usable() is False
    assert helper.backend() == "nccl"
    assert helper.backend("cpu:gloo,cuda:nccl") == "cpu:gloo,cuda:nccl"
    assert helper.device_ids(0, 1) == [0, 1]
    assert helper.output_device(1) == 1
    assert helper.device_id(1) == torch.device("cuda", 1)
    assert helper.map_location() is None
    assert helper.pin_memory_device() == "cuda"
    assert helper.profiler_activity() is torch.profiler.ProfilerActivity.CUDA
    assert helper.tensor_type("torch.cuda.HalfTensor") == "torch.cuda.HalfTensor"
    assert helper.OutOfMemoryError is torch.cuda.OutOfMemoryError
    assert helper.Stream is torch.cuda.Stream
    assert helper.FloatTensor is vars(torch.cuda)["FloatTensor"]
    assert not helper.is_autocast_enabled()
    assert helper.get_autocast_dtype() is torch.float16


def test_unset_available_device_keeps_the_index_where_there_is_cuda(
    helper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    assert helper.available_device(1) == torch.device("cuda", 1)
    assert helper.available_device("cpu") == torch.device("cpu")
    assert helper.is_available() is helper.is_usable() is True


@pytest.mark.parametrize("wrong", [True, False])
def test_a_bool_is_no_index(helper: Any, wrong: bool) -> None:
    with pytest.raises(TypeError, match="bool"):
        helper.device(wrong)


@pytest.mark.parametrize("wrong", [-1, "cuda:", "CUDA", "", 1.5])
def test_a_wrong_index_fails_as_in_torch(helper: Any, wrong: Any) -> None:
    with pytest.raises((RuntimeError, TypeError)):
        helper.device(wrong)


def test_unset_autocast_and_scaler_are_off_without_a_gpu(helper: Any) -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"), helper.autocast(True, torch.bfloat16):
        assert torch.ones(2, 2).matmul(torch.ones(2, 2)).dtype is torch.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not helper.GradScaler(1024.0).is_enabled()


def test_unset_pin_memory_fails_as_the_tensor_does(helper: Any) -> None:
    tensor = torch.ones(1)

    assert outcome(helper.pin_memory, tensor) == outcome(tensor.pin_memory)


def test_unset_nvtx_is_that_of_torch(helper: Any) -> None:
    for name in ("range_push", "range_start", "mark"):
        assert outcome(getattr(helper.nvtx, name), "x") == outcome(getattr(torch.cuda.nvtx, name), "x")
    assert outcome(helper.nvtx.range_pop) == outcome(torch.cuda.nvtx.range_pop)
    with pytest.raises(RuntimeError, match="NVTX"), helper.nvtx.range("x"):
        pass


def test_unset_device_guard(helper: Any) -> None:
    with pytest.raises((RuntimeError, AssertionError)), helper.device_guard(0):
        pass
    for nothing in (None, "cpu", torch.device("cpu"), torch.ones(1)):
        with helper.device_guard(nothing):
            pass


def test_unset_default_tensor_type(helper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(torch, "set_default_tensor_type", given.append)

    helper.set_default_tensor_type("torch.cuda.FloatTensor")
    helper.set_default_tensor_type(torch.DoubleTensor)

    assert given == ["torch.cuda.FloatTensor", torch.DoubleTensor]


# -- AI_DEVICE=cpu: everything runs on the CPU ---------------------------------------------------------------------


@pytest.mark.parametrize("value", ["cpu", " CPU ", "cpu:0", "auto"])
def test_cpu_devices(select: Callable[[str], Any], value: str) -> None:
    helper = select(value)

    for index in (None, 1, "1", "cuda", "cuda:1", torch.device("cuda", 1), "cpu"):
        assert helper.device(index) == torch.device("cpu")
        assert helper.available_device(index) == torch.device("cpu")
    assert helper.device_type() == "cpu"
    assert helper.is_available() is False
    assert helper.is_usable() is True
    assert helper.device_count() == 1
    assert helper.current_device() == 0
    assert helper.set_device(3) is None
    assert helper.device_ids(0) is helper.output_device(0) is helper.device_id(0) is None


def test_cpu_distributed_and_names(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    assert helper.backend() == helper.backend("nccl") == "gloo"
    assert helper.backend("gloo") == "gloo"
    assert helper.backend("cpu:gloo,cuda:nccl") == helper.backend("cuda:nccl") == "cpu:gloo"
    assert helper.device_choices(["cuda", "mps"]) == ["cuda", "mps", "cpu"]
    assert helper.device_choices(["cpu", "cuda"]) == ["cpu", "cuda"]
    assert [helper.device_name(name) for name in ("cuda", "cuda:1", "cpu", "mps:0")] == ["cpu", "cpu", "cpu", "mps:0"]
    assert [helper.device_name(name) for name in ("", "0,1", "auto", "cuda:x", "cuda12")] == [
        "",
        "0,1",
        "auto",
        "cuda:x",
        "cuda12",
    ]
    assert callable(helper.map_location())
    assert helper.profiler_activity() is torch.profiler.ProfilerActivity.CPU
    assert helper.pin_memory_device() == ""
    tensor = torch.ones(1)
    assert helper.pin_memory(tensor) is tensor


def test_cpu_queries(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    for name in ("synchronize", "empty_cache", "ipc_collect", "init", "reset_peak_memory_stats"):
        assert getattr(helper, name)() is None
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_cached"):
        assert getattr(helper, name)("cuda:0") == 0
    assert helper.synchronize(device="cuda:0") is None
    assert helper.set_per_process_memory_fraction(0.5, device=0) is None
    assert helper.memory_stats() == {}
    assert helper.memory_stats() is not helper.memory_stats()
    assert helper.memory_snapshot() == []
    assert helper.memory_summary() == ""
    assert isinstance(helper.list_gpu_processes(), str)
    assert helper.get_device_name(0) == "cpu"
    assert helper.get_device_capability() == (0, 0)
    assert helper.is_bf16_supported()
    assert helper.is_initialized() is False
    assert helper.can_device_access_peer(0, 1) is False
    assert helper.get_device_properties(0).total_memory == helper.mem_get_info()[1]
    for name in ("utilization", "temperature"):
        with pytest.raises(RuntimeError, match=rf"cpu has no {name}\(\).*: look at top"):
            getattr(helper, name)()


def test_cpu_random_numbers(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    helper.manual_seed(1)
    first, state = torch.rand(3), helper.get_rng_state()
    second = torch.rand(3)
    helper.manual_seed_all(1.0)
    assert helper.initial_seed() == torch.initial_seed() == 1
    assert torch.equal(torch.rand(3), first)
    helper.set_rng_state(state, "cuda:0")
    assert torch.equal(torch.rand(3), second)
    helper.seed()
    helper.seed_all()
    assert torch.initial_seed() != 1
    assert helper.get_rng_state_all() == []
    assert helper.set_rng_state_all([torch.zeros(16, dtype=torch.uint8)]) is None
    helper.manual_seed(1)
    with helper.fork_rng(devices=[0]):
        torch.rand(3)
    with helper.fork_rng(), helper.fork_rng(device_type="cuda"), helper.fork_rng(enabled=False):
        pass
    assert torch.equal(torch.rand(3), first)


def test_cpu_autocast_is_off(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for autocast in (helper.autocast(), helper.autocast(True, torch.float16), helper.autocast(enabled=False)):
            with autocast:
                assert torch.ones(2, 2).matmul(torch.ones(2, 2)).dtype is torch.float32
        scaler = helper.GradScaler(2.0**12, growth_interval=500, enabled=True)
    assert not scaler.is_enabled()
    assert isinstance(scaler, helper.GradScaler)
    assert isinstance(scaler, torch.amp.GradScaler)
    assert not pickle.loads(pickle.dumps(scaler)).is_enabled()
    decorated = helper.autocast()(lambda: torch.is_autocast_enabled("cpu"))
    assert decorated() is False


def test_cpu_scaler_can_be_derived_from(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    class Scaler(helper.GradScaler):  # type: ignore[name-defined,misc]
        pass

    assert type(Scaler(enabled=True)) is Scaler


def test_cpu_autocast_state(select: Callable[[str], Any]) -> None:
    helper = select("cpu")
    before = helper.get_autocast_dtype()

    assert before is torch.get_autocast_dtype("cpu")
    with torch.autocast("cpu", dtype=torch.float16):
        assert helper.is_autocast_enabled()
        assert helper.get_autocast_dtype() is torch.float16
    helper.set_autocast_enabled(True)
    helper.set_autocast_dtype(torch.float16)
    assert torch.is_autocast_enabled("cpu")
    assert torch.get_autocast_dtype("cpu") is torch.float16
    helper.set_autocast_enabled(False)
    helper.set_autocast_dtype(before)


@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.parametrize("value", ["", "cpu"])
def test_custom_function_is_decorated_at_the_first_call(select: Callable[[str], Any], value: str) -> None:
    helper = select("no such device")  # a class body must not ask for the device

    class Double(torch.autograd.Function):
        @staticmethod
        @helper.custom_fwd(cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            """Doubles."""
            return x * 2

        @staticmethod
        @helper.custom_bwd  # type: ignore[untyped-decorator]
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    class Same(torch.autograd.Function):
        @staticmethod
        @helper.custom_fwd  # type: ignore[untyped-decorator]
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

    select(value)
    x = torch.ones(2, requires_grad=True)
    result = Double.apply(x).sum()  # type: ignore[no-untyped-call]
    result.backward()

    assert result.item() == 4
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]
    assert Double.forward.__doc__ == "Doubles."
    assert Same.apply(x).tolist() == [1, 1]  # type: ignore[no-untyped-call]


def test_cpu_custom_forward_casts_under_autocast(select: Callable[[str], Any]) -> None:
    helper = select("cpu")
    seen: list[torch.dtype] = []

    class Watch(torch.autograd.Function):
        @staticmethod
        @helper.custom_fwd(cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.dtype)
            return x.clone()

    with torch.autocast("cpu"):
        Watch.apply(torch.ones(1, dtype=torch.bfloat16))  # type: ignore[no-untyped-call]

    assert seen == [torch.float32]


def test_cpu_streams_and_events(select: Callable[[str], Any]) -> None:
    helper = select("cpu")
    side, start, end = helper.Stream(), helper.Event(enable_timing=True), helper.Event(enable_timing=True)

    with pytest.raises(RuntimeError, match="recorded"):
        start.elapsed_time(end)
    start.record()
    side.wait_stream(helper.current_stream())
    with helper.stream(side), helper.stream(None):
        torch.ones(1)
    helper.set_stream(side)
    side.wait_event(side.record_event())
    side.synchronize()
    end.record(side)
    end.synchronize()
    end.wait()

    assert start.elapsed_time(end) > 0
    assert end.elapsed_time(start) == -start.elapsed_time(end)
    assert side.query() is end.query() is True
    assert side.device == torch.device("cpu")
    assert helper.current_stream("cuda:0") == helper.default_stream() == helper.current_stream()
    assert helper.record_stream(torch.ones(1), side) is None
    with pytest.raises(AttributeError, match="cpu has no ExternalStream"):
        _ = helper.ExternalStream


def test_cpu_guards_and_markers_are_silent(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    for target in (0, None, "cuda:1", torch.device("cuda", 1), torch.ones(1)):
        with helper.device_guard(target):
            pass
    helper.nvtx.range_end(helper.nvtx.range_start("x"))
    assert helper.nvtx.range_push("x") == helper.nvtx.range_pop() == 0
    helper.nvtx.mark("x")
    with helper.nvtx.range("{} of {}", 1, 2):
        pass
    assert helper.nvtx.range("x")(lambda: 5)() == 5


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_cpu_tensor_types(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    assert helper.FloatTensor is torch.FloatTensor
    assert helper.LongStorage is torch.LongStorage
    assert helper.tensor_type("torch.cuda.HalfTensor") == "torch.HalfTensor"
    assert helper.tensor_type("torch.HalfTensor") == "torch.HalfTensor"
    for kind in ("torch.cuda.DoubleTensor", vars(torch.cuda)["DoubleTensor"]):
        helper.set_default_tensor_type(kind)
        assert torch.ones(1).dtype is torch.float64
        helper.set_default_tensor_type("torch.FloatTensor")
        assert torch.ones(1).dtype is torch.float32


def test_names_can_be_imported_one_by_one(select: Callable[[str], Any]) -> None:
    helper = select("cpu")
    namespace: dict[str, Any] = {}

    exec("from ai_device import Event, FloatTensor, OutOfMemoryError, Stream, device, nvtx, synchronize", namespace)

    assert namespace["device"] is helper.device
    assert namespace["Event"] is helper.Event
    with pytest.raises(ImportError, match="NoSuchThing"):
        exec("from ai_device import NoSuchThing", namespace)
    with pytest.raises(AttributeError, match="'ai_device' has no attribute 'NoSuchTensor'"):
        _ = helper.NoSuchTensor


def test_compiles_without_a_graph_break(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    @torch.compile(backend="eager", fullgraph=True)
    def step(x: torch.Tensor) -> torch.Tensor:
        with helper.autocast():
            y = x.to(helper.device(0))
        return y.to(helper.device()) + 1

    assert step(torch.ones(2)).tolist() == [2, 2]


# -- Graph mode ----------------------------------------------------------------------------------------------------


class Small(torch.nn.Module):
    """A module that can be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(x).relu().sum()
        return result


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What torch.compile is given, in place of compiling it."""
    given: list[tuple[Any, dict[str, Any]]] = []

    def compile_(model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(compile_, **options)
        given.append((model, options))
        return model

    monkeypatch.setattr(torch, "compile", compile_)
    return given


@pytest.fixture
def there(helper: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Selects a device as if it were there, with what its line of the table is to say."""

    def select(kind: str, **changes: Any) -> Any:
        known = next(device for device in helper._DEVICES if device.type == kind)._replace(**changes)
        helper._selections[kind] = helper._Selection(known, kind, None)
        monkeypatch.setenv("AI_DEVICE", kind)
        return helper

    return select


@pytest.mark.parametrize("options", [{}, {"backend": "inductor", "mode": "reduce-overhead"}, {"backend": "eager"}])
@pytest.mark.parametrize("value", ["", "cuda", "cpu"])
def test_compile_is_that_of_torch(
    there: Callable[..., Any],
    helper: Any,
    compiled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    options: Any,
) -> None:
    if value == "cuda":
        there("cuda")
    monkeypatch.setenv("AI_DEVICE", value)
    model = Small()
    assert helper.compile(model, **options) is model
    assert helper.compile(**options)(model) is model
    assert helper.compile_module(model, **options) is model
    assert [options for _, options in compiled] == [options] * 3
    assert [given for given, _ in compiled] == [model, model, model._call_impl]


def test_compile_takes_the_compiler_of_the_device(there: Callable[..., Any], compiled: list[Any]) -> None:
    helper, model = there("hpu"), Small()
    assert helper.compile(model, dynamic=True) is model
    helper.compile(model, backend="inductor")
    helper.compile(model, backend=None)
    helper.compile(model, backend="aot_eager", mode="default")
    with pytest.warns(UserWarning, match="hpu_backend, the compiler of hpu, does not take mode or options"):
        helper.compile(model, mode="max-autotune", options={"a": 1}, fullgraph=True)
    assert [options for _, options in compiled] == [
        {"dynamic": True, "backend": "hpu_backend"},
        {"backend": "hpu_backend"},
        {"backend": "hpu_backend"},
        {"backend": "aot_eager", "mode": "default"},
        {"fullgraph": True, "backend": "hpu_backend"},
    ]


def test_modes_go_to_inductor(there: Callable[..., Any], compiled: list[Any]) -> None:
    there("musa").compile(Small(), mode="reduce-overhead")
    assert compiled[0][1] == {"mode": "reduce-overhead", "backend": "inductor"}


@pytest.mark.parametrize(
    ("kind", "version", "reason"),
    [
        ("mlu", (2, 7), "No compiler for torch.compile is known on mlu"),
        ("mps", (2, 7), "torch.compile on mps needs torch 2.8"),
        ("npu", (2, 5), "torch.compile on npu needs torch 2.7"),
    ],
)
def test_without_a_compiler_the_model_stays(
    there: Callable[..., Any],
    compiled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    version: tuple[int, int],
    reason: str,
) -> None:
    helper, model = there(kind), Small()
    monkeypatch.setattr(helper, "_TORCH", version)
    with pytest.warns(UserWarning, match=reason):
        assert helper.compile(model) is model
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert helper.compile_module(model) is model
        assert helper.graph_mode(model) is model
    assert compiled == []


def test_torch_before_compile(there: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "compile")
    monkeypatch.delattr(torch.nn.Module, "compile")
    helper, model = there("npu"), Small()
    with pytest.warns(UserWarning, match=r"Compiling needs torch 2\.0"):
        assert helper.compile(model) is model
    with pytest.warns(UserWarning, match=r"Compiling needs torch 2\.1"):
        assert helper.graph_mode(model) is model
    assert helper.compile(lambda x: x + 1)(1) == 2
    monkeypatch.delenv("AI_DEVICE")
    with pytest.raises(AttributeError):
        helper.compile(model)


def test_a_decorator_compiles_at_the_first_call(
    select: Callable[[str], Any], compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = select("no such device")  # an import must not fail: it is asked for when the function is called

    @helper.compile  # type: ignore[untyped-decorator]
    def one(x: int) -> int:
        return x + 1

    @helper.compile(fullgraph=True)  # type: ignore[untyped-decorator]
    def two(x: int) -> int:
        return x + 2

    assert one.__name__ == "one"
    assert compiled == []
    monkeypatch.setenv("AI_DEVICE", "cpu")
    assert (one(1), one(2), two(1)) == (2, 3, 3)
    assert [options for _, options in compiled] == [{}, {"fullgraph": True}]


def test_a_decorated_function_is_compiled_with_its_caller(select: Callable[[str], Any]) -> None:
    helper = select("cpu")

    @helper.compile(backend="eager")  # type: ignore[untyped-decorator]
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    outer = torch.compile(lambda x: inner(x) * 2, backend="eager", fullgraph=True)
    assert outer(torch.ones(1)).item() == 4


def test_graph_mode_stays_out_of_what_was_eager_on_cuda(helper: Any, compiled: list[Any], monkeypatch: Any) -> None:
    model = Small()
    for value in ("", "cpu"):
        monkeypatch.setenv("AI_DEVICE", value)
        assert helper.graph_mode(model) is model
    assert compiled == []
    helper.compile_module(model)
    assert len(compiled) == 1


def test_graph_mode_takes_eager_modules_only(there: Callable[..., Any], compiled: list[Any]) -> None:
    helper, model = there("hpu"), Small()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        scripted = torch.jit.trace(Small(), torch.ones(2))  # type: ignore[no-untyped-call]
    for other in (scripted, "no module", None):
        assert helper.graph_mode(other) is other
    assert compiled == []
    assert helper.graph_mode(helper.graph_mode(model)) is model
    assert len(compiled) == 1
    wrapped = Small()
    wrapped._orig_mod = model
    assert helper.graph_mode(wrapped) is wrapped
    assert len(compiled) == 1


def test_a_model_in_graph_mode_trains_saves_and_copies_as_before(there: Callable[..., Any]) -> None:
    seen = []

    def counting(graph: Any, inputs: Any) -> Any:
        seen.append(graph)
        return graph.forward

    helper = there("xla", compile_backend=counting)
    torch.manual_seed(0)
    model = Small()
    eager = pickle.loads(pickle.dumps(model))
    keys, kind = list(model.state_dict()), type(model)
    assert helper.graph_mode(model) is model
    x = torch.ones(2)
    model(x).backward()
    eager(x).backward()
    assert len(seen) == 1
    assert torch.equal(model.inner.weight.grad, eager.inner.weight.grad)
    assert (list(model.state_dict()), type(model)) == (keys, kind)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(copied(x), eager(x))
    assert len(seen) == 1  # a copy is eager again


def test_devices_of_a_list(select: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("cpu", "cuda", "cuda:1", None, torch.device("meta"))
    helper = select("")
    assert helper.devices(names) == list(names)
    monkeypatch.setenv("AI_DEVICE", "cpu")
    assert helper.devices(["cpu", "cuda", "cuda:1"]) == ["cpu"]
    monkeypatch.setenv("AI_DEVICE", "npu:1")  # no such device is here, and none is asked for
    assert helper.devices(names) == ["cpu", "npu", "npu:1", None, torch.device("meta")]
    monkeypatch.setenv("AI_DEVICE", "mps")
    assert helper.devices(names) == ["cpu", "mps", None, torch.device("meta")]
    monkeypatch.setenv("AI_DEVICE", "auto")
    assert helper.devices(["cpu", "cuda"]) == list(dict.fromkeys(["cpu", helper.device_type()]))
    monkeypatch.setenv("AI_DEVICE", "gpu0")
    with pytest.raises(RuntimeError, match="names no device"):
        helper.devices(names)


# -- What AI_DEVICE may say ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", ["1", "cuda:", "cuda:x", "cuda:-1", "cuda:1:0", "foo", "gpu", ":1", "auto:1", "npu,mlu"]
)
def test_a_wrong_value_is_explained(select: Callable[[str], Any], wrong: str) -> None:
    helper = select(wrong)

    for ask in (helper.device, helper.device_type, helper.is_available, helper.backend, helper.synchronize):
        with pytest.raises(RuntimeError, match=r"AI_DEVICE='.*' names no device.*'auto', 'cpu'.*npu.*ascend") as error:
            ask()
        assert repr(wrong) in str(error.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("cuda", "cuda"), ("CUDA:0", "cuda"), ("metax", "cuda"), ("PPU", "cuda"), ("xpu:1", "xpu"), ("mps", "mps")],
)
def test_a_device_that_is_not_there_is_an_error(select: Callable[[str], Any], value: str, kind: str) -> None:
    helper = select(value)

    for ask in (helper.device, helper.available_device, helper.is_available, helper.is_usable, helper.device_type):
        with pytest.raises(RuntimeError, match=f"finds no {kind} device. Found here: cpu") as error:
            ask()
        assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    ("value", "package"),
    [("npu", "torch_npu"), ("Ascend:1", "torch_npu"), ("寒武纪", "torch_mlu"), ("hpu", "habana_frameworks.torch")],
)
def test_a_plugin_that_is_not_there_is_named(select: Callable[[str], Any], value: str, package: str) -> None:
    with pytest.raises(RuntimeError, match=f"needs the package {package}, and its import failed.*To install: "):
        select(value).device()


def test_the_value_is_read_at_each_call(select: Callable[[str], Any]) -> None:
    assert select("cpu").device_type() == "cpu"
    assert select("").device_type() == "cuda"
    assert select("auto").device_type() == "cpu"


@pytest.mark.parametrize("value", ["cuda:1", "nvidia:1", "metax:1", " PPU : 1 "])
def test_the_index_in_the_variable_is_that_of_the_current_device(
    select: Callable[[str], Any], two_gpus: list[Any], value: str
) -> None:
    helper = select(value)

    assert helper.device() == helper.device("cuda") == helper.available_device() == torch.device("cuda", 1)
    assert helper.device("cpu") == torch.device("cpu")
    assert two_gpus == []
    assert helper.current_device() == 1
    assert helper.current_device() == 1
    assert two_gpus == [1]
    assert helper.is_available() is helper.is_usable() is True
    assert helper.backend() == "nccl"


def test_an_index_in_the_code_wins_with_one_warning(select: Callable[[str], Any], two_gpus: list[Any]) -> None:
    helper = select("cuda:1")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert helper.device(1) == torch.device("cuda", 1)
        assert not caught
        assert helper.device(0) == helper.device("cuda:0") == torch.device("cuda", 0)
    assert [str(one.message) for one in caught] == [
        "AI_DEVICE='cuda:1': the index is not used where the code gives one."
    ]
    assert helper.device() == torch.device("cuda", 1)


def test_set_device_in_the_code_decides_for_the_rest(select: Callable[[str], Any], two_gpus: list[Any]) -> None:
    helper = select("cuda:1")
    helper.set_device(-1)
    assert helper.device() == torch.device("cuda", 1)

    with pytest.warns(UserWarning, match="the index is not used"):
        helper.set_device("cuda:0")

    assert helper.device() == torch.device("cuda")
    assert helper.current_device() == 0
    assert two_gpus == [1, -1, torch.device("cuda", 0)]


def test_a_guard_in_the_code_decides_within_it(
    select: Callable[[str], Any], two_gpus: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[Any] = []

    class Guard:
        def __init__(self, place: Any) -> None:
            entered.append(place)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(torch.cuda, "device", Guard)
    helper = select("cuda:1")

    with helper.device_guard(0):
        assert helper.device() == torch.device("cuda")
    with helper.device_guard("cpu"), helper.device_guard(torch.ones(1)):
        assert helper.device() == torch.device("cuda", 1)
    assert helper.device() == torch.device("cuda", 1)
    assert entered == [0]


def test_a_launcher_voids_the_index_with_one_warning(
    select: Callable[[str], Any], two_gpus: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    helper = select("cuda:1")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert helper.device() == helper.available_device() == torch.device("cuda")
        assert helper.device(0) == torch.device("cuda", 0)
        helper.synchronize = helper.current_device()
    assert [str(one.message) for one in caught] == [
        "AI_DEVICE='cuda:1': the index is ignored, because LOCAL_RANK is set."
    ]
    assert two_gpus == []


def test_an_index_that_is_too_large_is_an_error(select: Callable[[str], Any], two_gpus: list[Any]) -> None:
    with pytest.raises(RuntimeError, match=r"AI_DEVICE='cuda:2': this machine has 2 cuda device\(s\)"):
        select("cuda:2").device()


def test_auto_takes_the_accelerator_that_is_there(
    select: Callable[[str], Any], two_gpus: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert select("auto").device() == torch.device("cuda")
    assert load_helper().is_available() is True
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    assert load_helper().device() == torch.device("xpu")


# -- Devices that torch knows without a plugin ---------------------------------------------------------------------


@pytest.fixture
def mps(select: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "device_count", lambda: 1)
    return select("mps:0")


def test_mps_has_no_index_and_no_streams(mps: Any) -> None:
    assert mps.device(1) == mps.device("cuda:1") == mps.available_device() == torch.device("mps")
    assert mps.current_device() == 0
    assert mps.set_device(1) is mps.device_ids(1) is mps.device_id(1) is None
    assert mps.device_count() == 1
    assert mps.is_available() is True
    assert mps.backend("cpu:gloo,cuda:nccl") == "cpu:gloo,mps:gloo"
    assert type(mps.current_stream()) is mps.Stream
    assert callable(mps.map_location())
    assert mps.profiler_activity() is torch.profiler.ProfilerActivity.CPU
    assert mps.get_device_name() == "mps"
    assert mps.get_device_properties().multi_processor_count >= 1
    tensor = torch.ones(1)
    assert mps.pin_memory(tensor) is tensor
    with mps.device_guard(1), mps.stream(None):
        pass


def test_mps_functions_take_no_device(mps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def recorder(name: str) -> Callable[[], int]:
        def function() -> int:
            calls.append(name)
            return 5

        return function

    for name in ("synchronize", "seed", "current_allocated_memory", "driver_allocated_memory", "empty_cache"):
        monkeypatch.setattr(torch.mps, name, recorder(name))
    for name in ("manual_seed", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.mps, name, lambda value, name=name: calls.append((name, value)))

    mps.synchronize("cuda:0")
    mps.manual_seed_all(3)
    mps.seed_all()
    mps.set_per_process_memory_fraction(0.5, device="cuda")
    assert mps.memory_allocated(0) == mps.memory_cached(device=0) == 5
    assert mps.max_memory_allocated(0) == 0
    assert calls == [
        "synchronize",
        ("manual_seed", 3),
        "seed",
        ("set_per_process_memory_fraction", 0.5),
        "current_allocated_memory",
        "driver_allocated_memory",
    ]


def test_mps_random_state_is_forked_too(mps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    states = [torch.zeros(1)]
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda device="mps": states[-1])
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda state, device="mps": states.append(state))

    with mps.fork_rng(devices=[0, 1]):
        states.append(torch.ones(1))
    assert torch.equal(states[-1], torch.zeros(1))
    assert mps.get_rng_state_all() == [states[-1]]
    mps.set_rng_state_all([torch.ones(1), torch.zeros(1)])
    assert torch.equal(states[-1], torch.ones(1))


def test_mps_event_waits_for_the_device(mps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waits.append(1))

    start, end = mps.Event(enable_timing=True), mps.Event(enable_timing=True)
    start.record()
    end.record()

    assert len(waits) == 2
    assert start.elapsed_time(end) >= 0


def test_mps_has_no_legacy_tensor_types(mps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match=r"torch.tensor\(data, dtype=torch.int64, device=ai_device.device\(\)\)"):
        _ = mps.LongTensor
    with pytest.raises(AttributeError, match=r"torch.UntypedStorage\(size, device=ai_device.device\(\)\)"):
        _ = mps.FloatStorage
    assert mps.tensor_type("torch.cuda.HalfTensor") == "torch.mps.HalfTensor"  # equal to no tensor's type, as before
    given: list[Any] = []
    monkeypatch.setattr(torch, "set_default_dtype", given.append)
    monkeypatch.setattr(torch, "set_default_device", given.append)
    mps.set_default_tensor_type("torch.cuda.HalfTensor")
    assert given == [torch.float16, torch.device("mps")]


def test_mps_precision_depends_on_the_version_of_torch(mps: Any) -> None:
    assert mps.autocast().device == "mps"
    assert mps.autocast().fast_dtype is torch.float16
    assert mps.GradScaler().is_enabled()
    mps._TORCH = (2, 4)
    with pytest.warns(UserWarning, match="autocast on mps needs torch 2.5"), mps.autocast():
        assert not torch.is_autocast_enabled("mps")
    with pytest.warns(UserWarning, match="does not scale gradients on mps"):
        assert not mps.GradScaler().is_enabled()


def test_xpu_forwards_to_torch_xpu(select: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 2)
    monkeypatch.setattr(torch.xpu, "set_device", lambda device: calls.append(("set_device", device)))
    monkeypatch.setattr(torch.xpu, "synchronize", lambda device=None: calls.append(("synchronize", device)))
    monkeypatch.setattr(torch.xpu, "memory_allocated", lambda device=None: 7)
    helper = select("Intel:1")

    assert helper.device() == torch.device("xpu", 1)
    with pytest.warns(UserWarning, match="the index is not used"):
        helper.synchronize("cuda:0")
    assert helper.memory_allocated() == 7
    assert helper.get_device_capability() == (0, 0)
    assert helper.backend() == "xccl"
    assert helper.device_ids(0, "cuda:1") == [0, torch.device("xpu", 1)]
    assert helper.output_device(1) == 1
    assert helper.device_id(1) == torch.device("xpu", 1)
    assert helper.autocast().fast_dtype is torch.float16
    assert helper.profiler_activity() is torch.profiler.ProfilerActivity.XPU
    assert helper.Stream is torch.xpu.Stream
    assert helper.pin_memory_device() == ""
    assert calls == [("set_device", 1), ("synchronize", torch.device("xpu", 0))]
    with pytest.raises(RuntimeError, match=r"xpu has no default_stream\(\).*use current_stream\(\)"):
        helper.default_stream()


def test_xpu_of_older_torch(select: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "oneccl_bindings_for_pytorch", torch)
    helper = select("xpu")
    helper._TORCH = (2, 3)

    assert helper.device() == torch.device("xpu")  # intel_extension_for_pytorch is not here, the device is
    assert helper.backend() == "ccl"
    assert helper.pin_memory_device() == "xpu"
    pinned: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *device: pinned.append(device))
    helper.pin_memory(torch.ones(1))
    assert pinned == [("xpu",)]


def test_hpu_has_bfloat16_and_no_scaler(select: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = types.ModuleType("habana_frameworks.torch")
    for name in ("habana_frameworks", "habana_frameworks.torch", "habana_frameworks.torch.distributed"):
        monkeypatch.setitem(sys.modules, name, plugin)
    monkeypatch.setitem(sys.modules, "habana_frameworks.torch.distributed.hccl", plugin)
    monkeypatch.setattr(torch, "hpu", types.SimpleNamespace(is_available=lambda: True), raising=False)
    helper = select("gaudi2")

    assert helper.device(1) == torch.device("hpu", 1)
    assert helper.backend() == "hccl"
    assert helper.autocast().fast_dtype is torch.bfloat16
    assert helper.empty_cache() is None
    with pytest.warns(UserWarning, match="does not scale gradients on hpu"):
        assert not helper.GradScaler().is_enabled()


def test_xla_has_a_module_of_its_own(select: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    plugin = types.ModuleType("torch_xla")
    monkeypatch.setattr(plugin, "manual_seed", lambda seed: calls.append(("manual_seed", seed)), raising=False)
    monkeypatch.setattr(plugin, "sync", lambda: calls.append("sync"), raising=False)
    for name in ("torch_xla", "torch_xla.distributed", "torch_xla.distributed.xla_backend"):
        monkeypatch.setitem(sys.modules, name, plugin)
    assert select("auto").device_type() == "cpu"
    helper = select("TPU")

    assert helper.device(3) == torch.device("xla")
    assert helper.backend("cpu:gloo,cuda:nccl") == "cpu:gloo,xla:xla"
    helper.manual_seed_all(3)
    helper.synchronize(0)
    assert calls == [("manual_seed", 3), "sync"]
    assert helper.device_ids(0) is None
    assert helper.memory_allocated() == 0
    with helper.fork_rng(), helper.device_guard(0):
        pass
    for name in ("mem_get_info", "get_device_properties"):
        with pytest.raises(RuntimeError, match=f"xla has no {name}"):
            getattr(helper, name)(0)


# -- Older torch and Python ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_older_torch_takes_the_classes_of_torch_cuda(helper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []

    def decorator(name: str) -> Callable[..., Any]:
        def decorate(function: Any, **_: Any) -> Any:
            used.append(name)
            return function

        return decorate

    for name in ("custom_fwd", "custom_bwd"):
        monkeypatch.setattr(torch.cuda.amp, name, decorator(name))

    class OldScaler:
        def __init__(self, init_scale: float, enabled: bool, **_: Any) -> None:
            self.settings = init_scale, enabled

    monkeypatch.setattr(torch.cuda.amp, "GradScaler", OldScaler)
    hidden = torch.amp
    monkeypatch.setattr(torch, "amp", type("amp", (), {"autocast": hidden.autocast}))
    old = load_helper()
    old._TORCH = (1, 13)

    assert old.GradScaler(8.0).settings == (8.0, True)
    forward, backward = old.custom_fwd(cast_inputs=torch.float32)(lambda: 5), old.custom_bwd(lambda: 6)
    assert used == []
    assert (forward(), forward(), backward()) == (5, 5, 6)
    assert used == ["custom_fwd", "custom_bwd"]
    assert old.is_autocast_enabled() is False
    assert old.get_autocast_dtype() is torch.float16
    monkeypatch.setenv("AI_DEVICE", "cpu")
    assert old.GradScaler(8.0).settings == (8.0, False)
    assert old.get_autocast_dtype() is torch.bfloat16
    old.set_autocast_enabled(False)
    with old.fork_rng():
        pass


def test_parses_on_python_3_8() -> None:
    ast.parse(HELPER.read_text(encoding="utf-8"), feature_version=(3, 8))


IN_TORCH_1_13 = """
    torch.nn torch.nn.Module torch.nn.Module.__init__ torch.nn.DataParallel torch.distributed torch.serialization
    torch.serialization.default_restore_location
    torch.FloatTensor torch.Tensor torch.UntypedStorage torch.__version__ torch.__version__.split torch.amp
    torch.autocast torch.backends torch.bfloat16 torch.cuda torch.cuda.OutOfMemoryError torch.cuda.amp
    torch.cuda.amp.GradScaler torch.cuda.device_of torch.cuda.is_available torch.cuda.nvtx torch.cuda.nvtx.range
    torch.default_generator torch.device torch.dtype torch.get_rng_state torch.jit torch.jit.ScriptModule torch.ones
    torch.profiler
    torch.profiler.ProfilerActivity torch.random torch.random.fork_rng torch.set_default_dtype
    torch.set_default_tensor_type torch.set_rng_state
"""
"""Names that torch 1.13.1 has, as far as the helper spells them out."""

GUARDED = {"torch.compile": "2.0", "torch.set_default_device": "2.0"}
"""Names that came later, behind a test in the helper."""

IN_TORCH_CUDA_1_13 = """
    can_device_access_peer current_device current_stream default_stream empty_cache get_device_capability
    get_device_name get_device_properties get_rng_state get_rng_state_all init initial_seed ipc_collect
    is_bf16_supported list_gpu_processes manual_seed manual_seed_all max_memory_allocated max_memory_cached
    max_memory_reserved mem_get_info memory_allocated memory_cached memory_reserved memory_snapshot memory_stats
    memory_summary memory_usage reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached
    reset_peak_memory_stats seed seed_all set_device set_per_process_memory_fraction set_rng_state
    set_rng_state_all set_stream stream synchronize utilization
"""
LATER_IN_TORCH_CUDA = {"clock_rate", "power_draw", "temperature"}  # 2.1; code that calls them needs it anyway


def test_uses_only_names_of_torch_1_13_or_asks_first() -> None:
    source = HELPER.read_text(encoding="utf-8")
    tree = ast.parse(source)
    chains = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    torch_names = {chain for chain in chains if chain.startswith("torch.") and "(" not in chain}
    forwarded = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("_forward", "_call")
        and isinstance(node.args[0], ast.Constant)
    }

    assert torch_names - set(IN_TORCH_1_13.split()) == set(GUARDED)
    for name in GUARDED:
        assert f'hasattr(torch, "{name.rpartition(".")[2]}")' in source
    assert forwarded - set(IN_TORCH_CUDA_1_13.split()) == LATER_IN_TORCH_CUDA


# -- Import --------------------------------------------------------------------------------------------------------


def test_import_touches_nothing_and_a_fork_works(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os
            import sys

            import torch

            before = set(sys.modules)
            sys.path.insert(0, sys.argv[1])
            import ai_device
            from ai_device import GradScaler, autocast, custom_fwd, device, memory_allocated, nvtx, synchronize

            new = {name.split(".")[0] for name in set(sys.modules) - before}
            assert new <= {"ai_device"}, new
            assert ai_device._selections == {}
            assert not torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork()
            child = os.fork()
            if child == 0:
                os.environ["AI_DEVICE"] = "cpu"
                ok = torch.ones(2).to(device()).sum().item() == 2 and not torch.cuda._is_in_bad_fork()
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
            print("done")
            """
        ),
        encoding="utf-8",
    )
    environment = {"AI_DEVICE": "no such device", "PATH": ""}
    done = subprocess.run(
        [sys.executable, str(script), str(HELPER.parent)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_checkpoint_of_cuda_is_read_on_the_cpu_and_its_cpu_parts_stay(
    tmp_path: Path, select: Callable[[str], Any]
) -> None:
    """The file says ``cuda:0`` for the weights and ``cpu`` for the random-number state, as a run on CUDA writes it."""
    written = tmp_path / "checkpoint.pt"
    weights, state = torch.arange(3.0), torch.get_rng_state()

    def tag(storage: Any) -> str:
        return "cuda:0" if storage.nbytes() == weights.nbytes else "cpu"

    torch.serialization.register_package(0, tag, lambda storage, location: None)
    try:
        torch.save({"weights": weights, "rng": state}, written)
    finally:
        torch.serialization._package_registry.pop(0)
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(written)
    read = torch.load(written, map_location=select("cpu").map_location())
    assert torch.equal(read["weights"], weights)
    torch.set_rng_state(read["rng"])
