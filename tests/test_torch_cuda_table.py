"""The tables of torch.cuda names and of CUDA-only packages: complete, well formed, and true of the installed torch."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from types import ModuleType
from typing import Any

import pytest
import torch

from codemods import cuda_api
from codemods.cuda_api import TableError, find_package, load_cuda_api, load_packages
from codemods.toml import read_rules

DEVICE_TYPES = {"npu", "mlu", "musa", "xpu", "mps", "hpu", "gcu", "supa"}

WALKED_MODULES = [
    "torch.cuda",
    *(f"torch.cuda.{name}" for name in ("amp", "memory", "random", "streams", "graphs", "nvtx", "profiler", "nccl")),
    *(f"torch.cuda.{name}" for name in ("comm", "tunable", "gds", "green_contexts", "jiterator", "sparse")),
]

# Public by their spelling only: what those modules import for their own use from typing, contextlib and torch.
# (Modules that they import are told by their name.)
IMPORTED_HELPERS = {
    *("annotations", "Any", "Callable", "cast", "Iterable", "Literal", "NewType", "Optional", "overload", "ParamSpec"),
    *("Self", "Sequence", "TYPE_CHECKING", "TypeAlias", "TypeVar", "Union"),
    *("contextmanager", "deprecated", "lru_cache", "signature"),
    "Tensor",
}


def public_names(module: ModuleType) -> Iterator[str]:
    for name in dir(module):
        value = getattr(module, name)
        foreign = isinstance(value, ModuleType) and not value.__name__.startswith("torch.cuda")
        if not name.startswith("_") and not foreign and name not in IMPORTED_HELPERS:
            yield f"{module.__name__}.{name}"


def torch_names_in(text: str) -> list[str]:
    return re.findall(r"\btorch(?:\.[A-Za-z_]\w*)+", text)


def resolve(dotted: str) -> Any:
    value: Any = torch
    for depth, part in enumerate(dotted.split(".")[1:], start=2):
        if not hasattr(value, part):
            importlib.import_module(".".join(dotted.split(".")[:depth]))
        value = getattr(value, part)
    return value


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("+")[0].split(".")[:2])


@pytest.mark.parametrize("module", WALKED_MODULES)
def test_every_public_name_of_the_installed_torch_is_in_the_table(module: str) -> None:
    unknown = set(public_names(importlib.import_module(module))) - set(load_cuda_api())
    assert not unknown


def test_a_second_way_to_reach_something_has_the_fate_of_the_first() -> None:
    names = load_cuda_api()
    pairs = [
        (second, first)
        for module in WALKED_MODULES[1:]
        for second in public_names(importlib.import_module(module))
        if (first := f"torch.cuda.{second.rpartition('.')[2]}") in names and resolve(first) is resolve(second)
    ]
    assert ("torch.cuda.memory.empty_cache", "torch.cuda.empty_cache") in pairs
    for second, first in pairs:
        assert (names[second].action, names[second].helper) == (names[first].action, names[first].helper), second


@pytest.mark.parametrize(
    ("name", "action", "helper", "tier"),
    [
        ("torch.cuda.synchronize", "helper", "synchronize", "safe"),
        ("torch.cuda.device", "helper", "device_guard", "safe"),
        ("torch.cuda.device_of", "helper", "device_guard", "safe"),
        ("torch.cuda.memory.memory_allocated", "helper", "memory_allocated", "safe"),
        ("torch.cuda.random.manual_seed_all", "helper", "manual_seed_all", "safe"),
        ("torch.cuda.nvtx", "helper", "nvtx", "safe"),
        ("torch.cuda.nvtx.range_push", "helper", "nvtx.range_push", "safe"),
        ("torch.cuda.amp.autocast", "helper", "autocast", "safe"),
        ("torch.cuda.amp.autocast_mode.autocast", "helper", "autocast", "safe"),
        ("torch.get_autocast_gpu_dtype", "helper", "get_autocast_dtype", "safe"),
        ("torch.cuda.get_device_capability", "helper", "get_device_capability", "review"),
        ("torch.cuda.streams.Event", "helper", "Event", "review"),
        ("torch.cuda.FloatTensor", "helper", "FloatTensor", "review"),
        ("torch.Tensor.cuda", "rule", "device", "safe"),
        ("torch.Tensor.is_cuda", "rule", "", "safe"),
        ("torch.distributed.init_process_group", "rule", "backend", "safe"),
        ("torch.backends.cudnn.benchmark", "keep", "", "safe"),
        ("torch.backends.cuda.matmul", "keep", "", "safe"),
        ("torch.version.cuda", "keep", "", "safe"),
        ("torch.cuda.amp", "report", "", "safe"),
        ("torch.cuda.CUDAGraph", "report", "", "safe"),
        ("torch.cuda.comm.scatter", "report", "", "safe"),
        ("torch.cuda.default_generators", "report", "", "safe"),
    ],
)
def test_what_becomes_of_a_name(name: str, action: str, helper: str, tier: str) -> None:
    known = load_cuda_api()[name]
    assert (known.name, known.action, known.helper, known.tier) == (name, action, helper, tier)


def test_vendor_facts_of_a_name() -> None:
    graph = load_cuda_api()["torch.cuda.CUDAGraph"]
    assert graph.renamed["npu"] == "NPUGraph"
    assert (graph.equivalent, graph.since) == ("torch.accelerator.Graph", "2.12")
    init = load_cuda_api()["torch.cuda.init"]
    assert "npu" in init.backends
    assert not {"musa", "mps"} & {*init.backends, *init.unverified, *init.renamed}


def test_device_types_are_known_and_stand_in_one_field_only() -> None:
    for known in load_cuda_api().values():
        types = [*known.backends, *known.unverified, *known.renamed]
        assert set(types) <= DEVICE_TYPES, known.name
        assert max(Counter(types).values(), default=1) == 1, known.name


def test_kept_reported_and_reviewed_names_tell_the_user_why() -> None:
    for known in load_cuda_api().values():
        if known.action in ("keep", "report") or known.tier == "review":
            assert re.fullmatch(r"[A-Z].{10,130}\.", known.reason), known.name


def test_only_names_that_are_rewritten_have_a_helper_or_a_tier_to_review() -> None:
    for known in load_cuda_api().values():
        assert known.action != "helper" or known.helper, known.name
        if known.action in ("keep", "report"):
            assert (known.helper, known.tier) == ("", "safe"), known.name


def test_kept_names_can_be_reached_without_cuda() -> None:
    for known in load_cuda_api().values():
        if known.action == "keep" and known.name != "torch.cuda.AcceleratorError":
            resolve(known.name)


def test_an_equivalent_and_its_release_come_together() -> None:
    for known in load_cuda_api().values():
        assert bool(known.equivalent) == bool(re.fullmatch(r"\d\.\d+", known.since)), known.name


def test_equivalents_exist_in_the_installed_torch() -> None:
    installed = version(torch.__version__)
    seen = 0
    for known in load_cuda_api().values():
        if known.equivalent and version(known.since) <= installed:
            for name in torch_names_in(known.equivalent):
                resolve(name)
                seen += 1
    assert seen > 100


def test_helper_names_exist_in_the_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    # With AI_DEVICE unset the helper hands out torch.cuda's own classes, which every torch has.
    monkeypatch.delenv("AI_DEVICE", raising=False)
    ai_device = pytest.importorskip("codemods.runtime.ai_device", reason="the helper is not there yet")
    for known in load_cuda_api().values():
        value: Any = ai_device
        for part in filter(None, known.helper.split(".")):
            assert hasattr(value, part), f"{known.name}: ai_device has no {known.helper}"
            value = getattr(value, part)


def test_the_file_is_sorted_within_its_groups_and_has_no_idle_reason() -> None:
    text = files("codemods.rules").joinpath("torch_cuda.toml").read_text(encoding="utf-8")
    reasons, names = text.split("[names]\n")
    for is_entry, lines in groupby(names.splitlines(), key=lambda line: line.startswith('"')):
        if is_entry:
            keys = [line.split('"')[1].lower() for line in lines]
            assert keys == sorted(keys)
    declared = re.findall(r"^(\w+) = ", reasons.split("[reasons]\n")[1], re.MULTILINE)
    assert declared == sorted(declared)
    assert set(declared) == set(re.findall(r'reason = "(\w+)"', names))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"action": "rename"}, "torch.cuda.x: action is 'rename', not one of helper, rule, keep, report"),
        ({"action": "helper", "tier": "sure"}, "torch.cuda.x: tier is 'sure', not one of safe, review"),
        ({"action": "report"}, "torch.cuda.x: it needs a reason"),
        ({"action": "helper", "tier": "review"}, "torch.cuda.x: it needs a reason"),
        ({"action": "keep", "reason": "nowhere"}, r"torch.cuda.x: \[reasons\] has no 'nowhere'"),
        ({"action": "helper", "helpr": "y"}, "torch.cuda.x: .*'helpr'"),
        ({"tier": "safe"}, "torch.cuda.x: .*'action'"),
        ({"same_as": "torch.cuda.nowhere"}, "torch.cuda.x: same_as"),
        ({"same_as": "torch.cuda.y", "tier": "review"}, "torch.cuda.x: same_as"),
        ({"same_as": "torch.cuda.second"}, "torch.cuda.x: same_as"),
    ],
)
def test_a_malformed_name_is_an_error_that_tells_where(
    entry: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {"torch.cuda.second": {"same_as": "torch.cuda.y"}, "torch.cuda.y": {"action": "helper"}}
    table = {"reasons": {}, "names": {**others, "torch.cuda.x": entry}}
    monkeypatch.setattr(cuda_api, "read_rules", lambda _: table)
    with pytest.raises(TableError, match=f"torch_cuda.toml: {message}"):
        load_cuda_api.__wrapped__()


def test_a_missing_table_is_an_error_that_tells_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_rules(name: str) -> dict[str, Any]:
        raise FileNotFoundError(2, "No such file or directory", name)

    monkeypatch.setattr(cuda_api, "read_rules", read_rules)
    with pytest.raises(TableError, match=r"packages\.toml: .*No such file.* install uncuda again"):
        load_packages.__wrapped__()


def test_packages_are_found_by_any_of_their_modules() -> None:
    found = {
        module: package.title if (package := find_package(module)) else None
        for module in (
            "flash_attn",
            "flash_attn.bert_padding",
            "flash_attn_interface",
            "apex.optimizers.FusedAdam",
            "numba.cuda.jit",
            "numba",
            "nvidia.dali.fn",
            "nvidia",
            "py3nvml.py3nvml",
            "tritonclient",
            "torch",
        )
    }
    assert found == {
        "flash_attn": "FlashAttention",
        "flash_attn.bert_padding": "FlashAttention",
        "flash_attn_interface": "FlashAttention",
        "apex.optimizers.FusedAdam": "NVIDIA Apex",
        "numba.cuda.jit": "numba.cuda",
        "numba": None,
        "nvidia.dali.fn": "NVIDIA DALI",
        "nvidia": None,
        "py3nvml.py3nvml": "NVML for Python",
        "tritonclient": None,
        "torch": None,
    }


def test_what_vendors_offer_in_place_of_a_package() -> None:
    flash_attn, triton, xformers = (load_packages()[name] for name in ("flash_attn", "triton", "xformers"))
    assert flash_attn.generic == "torch.nn.functional.scaled_dot_product_attention"
    assert [(offer.device, offer.use) for offer in flash_attn.instead if offer.vendor == "ascend"] == [
        ("npu", "torch_npu.npu_fusion_attention")
    ]
    assert [offer.unverified for offer in flash_attn.instead if offer.vendor == "metax"] == [True]
    assert "gaudi" in triton.missing
    assert xformers.missing == ("ascend", "cambricon")
    assert load_packages()["torch_scatter"].has_cpu


def test_packages_are_well_formed() -> None:
    for package in load_packages().values():
        assert re.fullmatch(r"[A-Z].{10,130}\.", package.reason), package.name
        assert package.distributions, package.name
        assert not {offer.vendor for offer in package.instead} & set(package.missing), package.name
        for member in package.members:
            assert member.startswith(f"{package.name}."), member


def test_vendors_of_packages_are_those_of_the_device_table() -> None:
    for package in load_packages().values():
        for offer in package.instead:
            assert offer.device == read_rules(f"devices/{offer.vendor}.toml")["type"], (package.name, offer.vendor)
        for vendor in package.missing:
            assert read_rules(f"devices/{vendor}.toml"), (package.name, vendor)


def test_a_distribution_belongs_to_one_package() -> None:
    packages = {package.name: package for package in load_packages().values()}
    distributions = Counter(
        re.sub(r"[-_.]+", "-", name).lower() for package in packages.values() for name in package.distributions
    )
    assert {name for name, count in distributions.items() if count > 1} == set()


def test_what_packages_are_replaced_by_exists_in_the_installed_torch() -> None:
    texts = [text for package in load_packages().values() for text in (package.generic, *package.members.values())]
    names = {name for text in texts for name in torch_names_in(text)}
    assert "torch.nn.functional.scaled_dot_product_attention" in names
    for name in names:
        resolve(name)


def test_a_package_that_stands_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"title": "A", "reason": "Needs CUDA.", "imports": ["shared"]}
    monkeypatch.setattr(cuda_api, "read_rules", lambda _: {"a": entry, "b": {**entry, "title": "B"}})
    with pytest.raises(TableError, match=r"packages\.toml: shared stands in a and in b"):
        load_packages.__wrapped__()


def test_a_malformed_package_is_an_error_that_tells_where(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"title": "A", "reason": "Needs CUDA.", "instead": [{"vendor": "ascend", "usage": "x"}]}
    monkeypatch.setattr(cuda_api, "read_rules", lambda _: {"a": entry})
    with pytest.raises(TableError, match=r"packages\.toml: a: .*'usage'"):
        load_packages.__wrapped__()
