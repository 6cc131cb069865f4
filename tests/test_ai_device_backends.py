"""The helper with a stand-in for torch_npu or torch_mlu; one process a case, because torch takes one such plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from standin_backend import write_plugin

from codemods.runtime import device_table

TESTS = Path(__file__).parent
VARIABLES = ("AI_DEVICE", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "AI_DEVICE_MASK")


def run(folder: Path, script: str, **variables: str) -> str:
    """Runs a script that can import the helper, and the plugins in ``folder``; what it prints."""
    path = os.pathsep.join(map(str, (folder, TESTS, device_table.HELPER.parent)))
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**environment, "PYTHONPATH": path, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_npu_is_loaded_at_the_first_call_and_forwarded_to(tmp_path: Path) -> None:
    script = """
        import sys
        import torch
        import ai_device
        from ai_device import GradScaler, device, memory_allocated

        assert "torch_npu" not in sys.modules
        assert device() == torch.device("npu")
        assert "torch_npu" in sys.modules
        assert ai_device.device_type() == "npu"
        assert device(1) == device("cuda:1") == device(torch.device("cuda", 1)) == torch.device("npu", 1)
        assert device("cpu") == torch.device("cpu") and device("npu:1") == torch.device("npu", 1)
        assert ai_device.available_device() == torch.device("npu")
        assert ai_device.is_available() and ai_device.is_usable() and ai_device.device_count() == 2

        assert ai_device.backend() == ai_device.backend("nccl") == "hccl"
        assert ai_device.backend("cpu:gloo,cuda:nccl") == "cpu:gloo,npu:hccl"
        assert ai_device.device_ids(0, 1) == [0, 1] and ai_device.output_device(1) == 1
        assert ai_device.device_ids("cuda:1") == [torch.device("npu", 1)]
        assert ai_device.device_id(1) == torch.device("npu", 1)
        assert ai_device.device_choices(["cpu", "cuda"]) == ["cpu", "cuda", "npu"]
        assert [ai_device.device_name(name) for name in ("cuda", "cuda:1", "cpu")] == ["npu", "npu:1", "cpu"]
        assert callable(ai_device.map_location())
        assert ai_device.profiler_activity() is torch.profiler.ProfilerActivity.PrivateUse1
        assert ai_device.tensor_type("torch.cuda.HalfTensor") == "torch.npu.HalfTensor"
        assert ai_device.FloatTensor is torch.npu.FloatTensor
        assert ai_device.Stream is torch.npu.Stream and ai_device.Event is torch.npu.Event
        assert ai_device.OutOfMemoryError is torch.OutOfMemoryError

        calls = torch.npu.calls
        calls.clear()
        assert memory_allocated("cuda:1") == 512 and memory_allocated(device=torch.device("cuda", 0)) == 512
        ai_device.synchronize(1)
        ai_device.synchronize()
        ai_device.set_device("cuda:1")
        assert ai_device.current_device() == 1
        ai_device.manual_seed_all(3)
        ai_device.empty_cache()
        assert ai_device.get_device_name(0) == "Stand-in npu"
        assert ai_device.initial_seed() == 7 and ai_device.mem_get_info() == (3, 4)
        assert calls == [
            ("memory_allocated", 1), ("memory_allocated", 0), ("synchronize", 1), ("synchronize", 0), ("set_device", 1),
            ("manual_seed_all", 3), ("empty_cache",), ("get_device_name", 0), ("initial_seed",), ("mem_get_info", 1),
        ], calls
        assert ai_device.get_device_properties().total_memory == 4
        assert ai_device.get_device_capability() == (0, 0)
        assert ai_device.is_bf16_supported() is True and ai_device.is_initialized() is False
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE="ascend")


def test_npu_compiles_with_the_backend_of_the_table(tmp_path: Path) -> None:
    script = """
        import torch
        import ai_device

        given = []

        def compile_(model=None, **options):
            given.append(options)
            return model

        torch.compile = compile_
        net = torch.nn.Linear(2, 1)

        @ai_device.compile
        def double(x):
            return 2 * x

        assert given == [] and double(2) == 4 and given == [{"backend": "inductor"}]
        assert ai_device.compile(net, dynamic=False) is net and ai_device.graph_mode(net) is net
        assert given[1:] == [{"dynamic": False, "backend": "inductor"}, {"backend": "inductor"}]
        assert sorted(net.state_dict()) == ["bias", "weight"]
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE="ascend")


def test_a_list_of_devices_does_not_load_the_plugin(tmp_path: Path) -> None:
    script = """
        import sys
        import ai_device

        assert ai_device.devices(["cpu", "cuda", "cuda:1"]) == ["cpu", "npu", "npu:1"]
        assert "torch_npu" not in sys.modules
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE="ascend")


def test_what_npu_lacks_is_silent_or_explained(tmp_path: Path) -> None:
    script = """
        import torch
        import ai_device

        assert ai_device.max_memory_allocated() == ai_device.max_memory_cached() == 0
        assert ai_device.memory_cached() == 1024  # by its newer name
        assert ai_device.memory_stats() == {} and ai_device.memory_snapshot() == [] and ai_device.memory_summary() == ""
        torch.npu.calls.clear()
        assert ai_device.reset_max_memory_allocated() is None
        assert torch.npu.calls == [("reset_peak_memory_stats", 0)]
        assert ai_device.ipc_collect() is None and ai_device.init() is None
        assert ai_device.can_device_access_peer(0, 1) is False
        for call, hint in ((ai_device.utilization, "npu-smi"), (ai_device.default_stream, "current_stream")):
            try:
                call()
            except RuntimeError as error:
                assert "npu has no " in str(error) and hint in str(error), error
            else:
                raise AssertionError(call)
        for name in ("DoubleTensor", "FloatStorage", "ExternalStream"):
            try:
                getattr(ai_device, name)
            except AttributeError as error:
                assert "npu has no " + name in str(error), error
            else:
                raise AssertionError(name)
        assert ai_device.nvtx.range_push("x") == ai_device.nvtx.range_pop() == 0
        with ai_device.nvtx.range("x"):
            pass
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE=" NPU ")


def test_precision_on_npu_and_its_own_scaler(tmp_path: Path) -> None:
    script = """
        import torch
        import ai_device
        from ai_device import GradScaler, autocast, custom_fwd

        scaler = GradScaler(1024.0, enabled=False)
        assert type(scaler) is torch.npu.amp.GradScaler and scaler.dynamic and not scaler.is_enabled()
        assert GradScaler(init_scale=8.0).get_scale() == 8.0

        assert not ai_device.is_autocast_enabled()
        with autocast() as entered:
            assert entered.fast_dtype is torch.float16 and torch.is_autocast_enabled("npu")
            assert ai_device.is_autocast_enabled() and ai_device.get_autocast_dtype() is torch.float16
            with autocast(False):
                assert not ai_device.is_autocast_enabled()
        with autocast(True, torch.bfloat16):
            assert ai_device.get_autocast_dtype() is torch.bfloat16
        ai_device.set_autocast_enabled(True)
        ai_device.set_autocast_dtype(torch.bfloat16)
        assert torch.is_autocast_enabled("npu") and torch.get_autocast_dtype("npu") is torch.bfloat16
        ai_device.set_autocast_enabled(False)

        class Context:
            pass

        seen = []
        forward = custom_fwd(lambda ctx, x: seen.append(torch.is_autocast_enabled("npu")), cast_inputs=torch.float32)
        with autocast():
            forward(Context(), torch.ones(1))
        assert seen == [False]
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE="npu")


def test_random_states_streams_and_guards_on_npu(tmp_path: Path) -> None:
    script = """
        import torch
        import ai_device

        npu, one = (ai_device.device(), torch.npu)[1], torch.full((4,), 9, dtype=torch.uint8)
        assert torch.equal(ai_device.get_rng_state(1), npu.states[1])
        ai_device.set_rng_state(one, "cuda:1")
        assert torch.equal(npu.states[1], one)
        states = ai_device.get_rng_state_all()
        with ai_device.fork_rng(devices=["cuda:1"]):
            ai_device.set_rng_state_all([one, one * 2])
        assert torch.equal(npu.states[0], one) and torch.equal(npu.states[1], one)
        ai_device.set_rng_state_all(states)
        with ai_device.fork_rng(devices=[0, 1], device_type="cuda"):
            ai_device.set_rng_state(one, 0)
        assert torch.equal(npu.states[0], states[0])

        with ai_device.device_guard(1):
            assert npu.current == 1 and ai_device.Stream().device_index == 1
        with ai_device.device_guard("cuda:1"), ai_device.device_guard(torch.ones(1)), ai_device.device_guard("cpu"):
            assert npu.current == 1
        assert npu.current == 0

        class OnDevice:
            is_cuda = False
            device = torch.device("npu", 1)

        with ai_device.device_guard(OnDevice()):
            assert npu.current == 1
        side = ai_device.Stream()
        with ai_device.stream(side):
            pass
        ai_device.set_stream(side)
        assert npu.calls[-2:] == [("stream", side), ("set_stream", side)]
        assert isinstance(ai_device.current_stream("cuda:1"), ai_device.Stream)
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE="npu")


def test_index_in_the_variable_on_mlu(tmp_path: Path) -> None:
    script = """
        import warnings
        import torch
        import ai_device

        assert ai_device.device() == ai_device.device("cuda") == torch.device("mlu", 1)
        assert torch.mlu.calls == []
        assert ai_device.Stream().device_index == 1
        assert torch.mlu.calls == [("set_device", 1)]
        ai_device.synchronize()
        assert torch.mlu.calls[1:] == [("synchronize", 1)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with ai_device.device_guard(0):
                assert ai_device.device() == torch.device("mlu") and ai_device.current_device() == 0
            assert ai_device.device() == torch.device("mlu", 1)
            ai_device.set_device(0)
            ai_device.device(0)
        assert len(caught) == 1, caught
        assert ai_device.device() == torch.device("mlu") and ai_device.current_device() == 0
        assert type(ai_device.GradScaler()) is ai_device.GradScaler and ai_device.GradScaler().is_enabled()
        assert ai_device.GradScaler()._device == "mlu"
        assert ai_device.backend() == "cncl"
        """
    run(write_plugin(tmp_path, "mlu"), script, AI_DEVICE="cambricon:1")


def test_a_launcher_voids_the_index_on_mlu(tmp_path: Path) -> None:
    script = """
        import warnings
        import torch
        import ai_device

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert ai_device.device() == ai_device.device() == torch.device("mlu")
            assert ai_device.device(0) == torch.device("mlu", 0)
            ai_device.synchronize()
        assert [str(one.message) for one in caught] == [
            "AI_DEVICE='mlu:1': the index is ignored, because LOCAL_RANK is set."
        ]
        assert torch.mlu.calls == [("synchronize", 0)]
        """
    run(write_plugin(tmp_path, "mlu"), script, AI_DEVICE="mlu:1", LOCAL_RANK="0")


def test_auto_finds_a_plugin_and_passes_over_one_that_fails(tmp_path: Path) -> None:
    write_plugin(tmp_path, "npu", before="raise ImportError('libhccl.so: cannot open shared object file')")
    script = """
        import torch
        import ai_device

        assert ai_device.device() == torch.device("mlu") and ai_device.is_available()
        """
    run(write_plugin(tmp_path, "mlu"), script, AI_DEVICE="auto")


@pytest.mark.parametrize(
    ("before", "patch", "expected"),
    [
        (
            "raise ImportError('libhccl.so: cannot open shared object file')",
            "",
            "needs the package torch_npu, and its import failed: libhccl.so: cannot open shared object file. To",
        ),
        (
            "",
            "standin.is_available = lambda: False",
            "finds no npu device. Found here: cpu. It needs pip install torch-npu",
        ),
    ],
)
def test_a_plugin_that_does_not_work_is_explained(tmp_path: Path, before: str, patch: str, expected: str) -> None:
    script = f"""
        import torch
        import standin_backend
        import ai_device

        make = standin_backend.backend_module

        def broken(kind):
            standin = make(kind)
            {patch}
            return standin

        standin_backend.backend_module = broken
        try:
            ai_device.device()
        except RuntimeError as error:
            print(error)
        """
    told = run(write_plugin(tmp_path, "npu", before), script, AI_DEVICE="npu")

    assert told.startswith("AI_DEVICE='npu' asks for Huawei Ascend NPU, ")
    assert expected in told


def test_unset_does_not_load_a_plugin(tmp_path: Path) -> None:
    script = """
        import sys
        import torch
        import ai_device

        assert ai_device.device() == torch.device("cuda") and not ai_device.is_available()
        ai_device.manual_seed_all(1)
        assert "torch_npu" not in sys.modules
        """
    run(write_plugin(tmp_path, "npu"), script, AI_DEVICE="")


# -- CUDA_VISIBLE_DEVICES --------------------------------------------------------------------------------------------

HEEDS_ITS_MASK = """
import os
import standin_backend

standin_backend.COUNT = len(os.environ.get("ASCEND_RT_VISIBLE_DEVICES", "0,1").split(","))
"""
SHOW_MASK = """
    import os
    import ai_device

    print(ai_device.device_count(), os.environ.get("ASCEND_RT_VISIBLE_DEVICES"), os.environ["CUDA_VISIBLE_DEVICES"])
    """


@pytest.mark.parametrize(("mask", "passed_on"), [("1", "1"), ("0,1", "0,1"), (" 0, 3 ", "0,3")])
def test_the_mask_of_cuda_becomes_that_of_the_device(tmp_path: Path, mask: str, passed_on: str) -> None:
    folder = write_plugin(tmp_path, "npu", before=HEEDS_ITS_MASK)
    said = run(folder, SHOW_MASK, AI_DEVICE="npu", CUDA_VISIBLE_DEVICES=mask)
    assert said == f"{passed_on.count(',') + 1} {passed_on} {mask}\n"


def test_a_mask_set_by_the_program_before_the_first_use_is_passed_on(tmp_path: Path) -> None:
    script = """
        import os
        import torch
        import ai_device

        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        assert ai_device.device_count() == 1 and os.environ["ASCEND_RT_VISIBLE_DEVICES"] == "1"
        """
    assert not run(write_plugin(tmp_path, "npu", before=HEEDS_ITS_MASK), script, AI_DEVICE="npu")


def test_the_mask_of_the_device_itself_wins(tmp_path: Path) -> None:
    folder = write_plugin(tmp_path, "npu", before=HEEDS_ITS_MASK)
    variables = {"CUDA_VISIBLE_DEVICES": "0", "ASCEND_RT_VISIBLE_DEVICES": "0,1"}
    assert run(folder, SHOW_MASK, AI_DEVICE="npu", **variables) == "2 0,1 0\n"


@pytest.mark.parametrize("mask", ["-1", "1,0", "0,0", "GPU-1a2b", "0,", "²"])
def test_a_mask_that_is_no_list_of_ascending_indices_is_not_passed_on(tmp_path: Path, mask: str) -> None:
    said = run(write_plugin(tmp_path, "npu"), SHOW_MASK, AI_DEVICE="npu", CUDA_VISIBLE_DEVICES=mask)
    assert said.startswith(f"2 None {mask}\n")
    assert f"CUDA_VISIBLE_DEVICES={mask!r} is not passed on to npu" in said
    assert "ASCEND_RT_VISIBLE_DEVICES" in said


@pytest.mark.parametrize("value", ["", "cpu"])
def test_without_a_device_of_its_own_nothing_is_passed_on(tmp_path: Path, value: str) -> None:
    script = SHOW_MASK.replace("ai_device.device_count()", "ai_device.device_type()")
    said = run(write_plugin(tmp_path, "npu"), script, AI_DEVICE=value, CUDA_VISIBLE_DEVICES="1")
    assert said == f"{value or 'cuda'} None 1\n"


def test_a_mask_that_comes_too_late_is_said(tmp_path: Path) -> None:
    said = run(write_plugin(tmp_path, "npu"), SHOW_MASK, AI_DEVICE="npu", CUDA_VISIBLE_DEVICES="1")
    assert "CUDA_VISIBLE_DEVICES='1' comes too late for npu" in said


@pytest.mark.parametrize(("mask", "expected"), [("1", "1 1 1"), ("1,0", "2 None 1,0")])
def test_a_child_with_a_mask_of_its_own_gets_that(tmp_path: Path, mask: str, expected: str) -> None:
    script = f"""
        import os, subprocess, sys
        import ai_device

        assert ai_device.device_count() == 2 and os.environ["ASCEND_RT_VISIBLE_DEVICES"] == "0,3"
        child = {textwrap.dedent(SHOW_MASK)!r}
        variables = {{**os.environ, "CUDA_VISIBLE_DEVICES": {mask!r}}}
        subprocess.run([sys.executable, "-c", child], env=variables, check=True)
        """
    folder = write_plugin(tmp_path, "npu", before=HEEDS_ITS_MASK)
    assert run(folder, script, AI_DEVICE="npu", CUDA_VISIBLE_DEVICES="0,3").startswith(f"{expected}\n")


def test_with_auto_only_the_device_that_is_there_gets_the_mask(tmp_path: Path) -> None:
    script = """
        import os
        import ai_device

        assert ai_device.device_type() == "musa"
        assert os.environ["MUSA_VISIBLE_DEVICES"] == "1"
        assert "ZE_AFFINITY_MASK" not in os.environ  # the xpu of torch itself was tried before
        """
    before = HEEDS_ITS_MASK.replace("ASCEND_RT", "MUSA")
    assert not run(write_plugin(tmp_path, "musa", before=before), script, AI_DEVICE="auto", CUDA_VISIBLE_DEVICES="1")
