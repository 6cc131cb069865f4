"""The operator lists: how many overloads each holds, and what becomes of an overload on a device.

The numbers were counted in what the lists were made from: for each list the overloads that the adapter's own
declarations name (source and commit stand in the file's first lines), for the states the aten overloads of torch that
need a kernel of their own, have one for CUDA, and are neither for quantized tensors nor for one library.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codemods.devices import load_devices
from codemods.errors import UserError
from codemods.operators import Operators, State, load_operators
from codemods.toml import rules_folder

LISTS = sorted((rules_folder() / "operators").glob("*.txt"))
COUNTS = {
    # what op-plugin and Ascend/pytorch declare
    ("npu", None): ("2.14", 1067),
    ("npu", "2.13"): ("2.14", 1067),
    ("npu", "2.9"): ("2.9", 1084),
    ("npu", "2.7"): ("2.9", 1084),
    # mlu_functions.yaml of two branches
    ("mlu", None): ("2.4", 799),
    ("mlu", "2.1"): ("2.1", 788),
    # musa_functions.yaml at HEAD and at v2.5.0
    ("musa", None): ("2.7.1", 1212),
    ("musa", "2.5"): ("2.5.0", 978),
    ("gcu", None): ("2.10", 455),
    ("hpu", None): ("1.19", 1034),
    ("supa", None): ("1.0.0", 50),
    ("xla", None): ("2.9", 389),
    # native_functions.yaml of torch
    ("xpu", None): ("2.14.1", 1223),
    ("xpu", "2.13"): ("2.13", 1231),
    ("mps", None): ("2.14.1", 958),
    ("mps", "2.7.1"): ("2.7.1", 739),
    ("cuda", None): ("2.14.1", 1268),
    ("cuda", "2.7"): ("2.7.1", 1230),
    ("cpu", None): ("2.14.1", 1070),
    ("cpu", "2.7.1"): ("2.7.1", 1052),
}
LIBRARY = re.compile(r"::_?(use_)?(cudnn|cslt)|::_?miopen|fake_quantize|quantized_tensor")
REFERENCES = {"2.14.1": 3116, "2.7.1": 3160, "2.5.1": 3146}


@pytest.mark.parametrize(("device", "version"), COUNTS)
def test_lists_hold_what_the_adapters_declare(device: str, version: str | None) -> None:
    newest, kernels = COUNTS[device, version]
    operators = load_operators(device, version)
    assert (operators.versions[0], len(operators.kernels)) == (newest, kernels)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_list_says_where_it_is_from_and_names_each_overload_once(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    header = [line for line in lines if line.startswith("# ")]
    assert any(line.startswith("# source: ") and "commit" in line for line in header)
    sections: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("["):
            section = sections[line] = []
        elif line and not line.startswith("# "):
            section.append(line)
    for section in sections.values():
        assert len(section) == len(set(section))
        assert all("::" in line.split()[0] for line in section)
    declared = next(line for line in header if line.startswith("# count: ")).removeprefix("# count: ")
    everything = [line for section in sections.values() for line in section]
    counted = sections.get("[kernel]", everything)
    assert len(counted) == int(declared)


@pytest.mark.parametrize("version", REFERENCES)
def test_the_references_classify_every_overload_once(version: str) -> None:
    text = (rules_folder() / "operators" / f"reference_{version}.txt").read_text(encoding="utf-8")
    overloads = [line.split()[0] for line in text.splitlines() if "::" in line and not line.startswith("# ")]
    assert len(overloads) == len(set(overloads)) == REFERENCES[version]


@pytest.mark.parametrize(
    ("overload", "state"),
    [
        ("aten::relu", State.KERNEL),
        ("aten.relu.default", State.KERNEL),
        ("aten.add.Tensor", State.KERNEL),
        ("npu::npu_fusion_attention", State.KERNEL),
        ("aten::linear", State.DECOMPOSES),
        ("aten::cross_entropy_loss", State.DECOMPOSES),
        ("aten::_cholesky_solve_helper", State.FALLBACK),
        ("aten::_assert_async", State.FALLBACK),
        ("mylib::my_operator", State.UNKNOWN),
    ],
)
def test_states_on_a_device_that_falls_back(overload: str, state: State) -> None:
    assert load_operators("npu").state(overload) is state


def test_without_a_fallback_an_operator_without_a_kernel_is_missing() -> None:
    assert load_operators("musa").state("aten::_conv_depthwise2d") is State.MISSING
    assert load_operators("xpu").state("aten::_conv_depthwise2d") is State.MISSING


def test_the_kernel_of_a_structured_operator_serves_its_other_forms() -> None:
    operators = load_operators("gcu")
    assert "aten::add.Tensor" not in operators.kernels
    assert "aten::add.out" in operators.kernels
    assert operators.state("aten::add.Tensor") is operators.state("aten::add_.Tensor") is State.KERNEL


def test_what_an_adapter_always_sends_to_the_cpu_is_a_fallback_even_without_a_general_one() -> None:
    assert load_operators("xpu").state("aten::_cholesky_solve_helper") is State.FALLBACK


def test_a_card_adds_what_the_adapter_does_on_it() -> None:
    overload = "aten::slow_conv3d_forward"
    assert load_operators("l600").state(overload) is State.FALLBACK
    assert load_operators("gcu").state("aten::convolution_backward") is State.KERNEL
    assert load_operators("S60").state("aten::convolution_backward") is State.FALLBACK


def states_of_cuda_kernels(operators: Operators, cuda: Operators) -> list[State]:
    """The states of what needs a kernel and has one on CUDA, without what is quantized or made for one library."""
    needed = cuda.kernels & operators.reference.needs_kernel
    return [operators.state(name) for name in needed if not LIBRARY.search(name)]


@pytest.mark.parametrize(
    ("device", "version", "cuda", "absent"),
    [
        ("npu", None, None, 299),
        ("npu", "2.7", "2.7", 280),
        ("musa", None, "2.7", 94),
        ("xpu", None, None, 81),
    ],
)
def test_as_many_kernels_of_cuda_are_absent_as_were_counted(
    device: str, version: str | None, cuda: str | None, absent: int
) -> None:
    states = states_of_cuda_kernels(load_operators(device, version), load_operators("cuda", cuda))
    assert sum(state in (State.FALLBACK, State.MISSING) for state in states) == absent


@pytest.mark.parametrize("device", ["metax", "ppu", "dcu", "iluvatar", "kunlunxin", "amd"])
def test_without_a_public_list_everything_is_unknown(device: str) -> None:
    operators = load_operators(device)
    assert operators.state("aten::relu") is operators.state("aten::linear") is State.UNKNOWN
    assert "No public operator list" in operators.provenance


def test_an_incomplete_list_calls_what_it_lacks_unknown() -> None:
    operators = load_operators("supa")
    assert operators.state("aten::relu") is State.UNKNOWN
    assert operators.state(min(operators.kernels)) is State.KERNEL


def test_the_provenance_names_repository_and_commit() -> None:
    provenance = load_operators("npu").provenance
    assert "2.14 and 2.13" in provenance
    assert "Ascend/op-plugin" in provenance
    assert "517f2e7d0f202f38b76310706cb977ca2388ad21" in provenance


@pytest.mark.parametrize(
    ("version", "used"),
    [("2.20", "2.14"), ("2.12", "2.9"), ("2.13.0", "2.14"), ("v2.7.1.post2", "2.9"), ("1.11", "2.9"), ("2", "2.14")],
)
def test_the_newest_list_that_is_not_newer_is_used(version: str, used: str) -> None:
    assert load_operators("npu", version).versions[0] == used


@pytest.mark.parametrize(("device", "version", "named"), [("npu", "newest", "newest"), ("abacus", None, "abacus")])
def test_wrong_names_and_versions_are_told(device: str, version: str | None, named: str) -> None:
    with pytest.raises(UserError, match=named):
        load_operators(device, version)


def test_the_lists_agree_with_the_device_table_on_what_becomes_of_an_absent_kernel() -> None:
    expected = {"on": State.FALLBACK, "off": State.MISSING, "none": State.MISSING, "unknown": State.UNKNOWN}
    for device in load_devices():
        operators = load_operators(device.name)
        if operators.versions:
            assert operators.absent is expected[device.cpu_fallback], device.name
