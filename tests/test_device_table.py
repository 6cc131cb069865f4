"""The device table in rules/devices, its loader, and the copy of it in the helper."""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import pytest

import codemods
from codemods.devices import Device, DeviceError, find_devices, load_devices, read_devices
from codemods.runtime import device_table, helper_source, helper_version, is_helper
from codemods.toml import rules_folder

VENDORS = """
    amd_rocm apple_mps ascend biren cambricon enflame gaudi hygon_dcu iluvatar intel_xpu kunlunxin metax
    moorethreads nvidia thead_ppu xla_tpu
"""
FILES = rules_folder() / "devices"


def device(name: str) -> Device:
    return next(one for one in load_devices() if one.name == name)


# -- The facts -----------------------------------------------------------------------------------------------------


def test_every_vendor_has_a_file() -> None:
    assert [one.name for one in load_devices()] == VENDORS.split()


def test_no_alias_means_two_vendors() -> None:
    counts = Counter(alias for one in load_devices() for alias in one.aliases)

    assert [alias for alias, count in counts.items() if count > 1] == []
    assert {"cuda", "npu", "mlu", "musa", "gcu", "supa", "hpu", "xpu", "mps", "xla", "ascend", "昇腾"} <= set(counts)
    assert "gpu" not in counts


@pytest.mark.parametrize(
    ("name", "kind", "backend", "plugin"),
    [
        ("nvidia", "cuda", "nccl", ""),
        ("metax", "cuda", "nccl", ""),
        ("ascend", "npu", "hccl", "torch_npu"),
        ("cambricon", "mlu", "cncl", "torch_mlu"),
        ("moorethreads", "musa", "mccl", "torch_musa"),
        ("enflame", "gcu", "eccl", "torch_gcu"),
        ("biren", "supa", "bccl", "torch_supa"),
        ("gaudi", "hpu", "hccl", "habana_frameworks.torch"),
        ("apple_mps", "mps", "gloo", ""),
    ],
)
def test_devices_are_as_known(name: str, kind: str, backend: str, plugin: str) -> None:
    one = device(name)

    assert (one.type, one.backend, one.plugin) == (kind, backend, plugin)
    assert one.cuda_compatible == (kind == "cuda")


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("ascend", ["ascend"]),
        ("NPU", ["ascend"]),
        ("xpu", ["intel_xpu", "kunlunxin"]),
        ("hccl", ["ascend", "gaudi"]),
        ("mccl", ["metax", "moorethreads"]),
        ("xccl", ["intel_xpu", "kunlunxin"]),
        ("no such word", []),
    ],
)
def test_ambiguous_words_name_all_that_they_may_mean(word: str, names: list[str]) -> None:
    assert [one.name for one in find_devices(word)] == names


def test_what_was_not_seen_is_marked() -> None:
    assert not device("ascend").is_verified("env.NCCL_SOCKET_IFNAME")
    assert device("ascend").is_verified("env.CUDA_LAUNCH_BLOCKING")
    assert not device("kunlunxin").is_verified("autocast_dtypes")
    for one in load_devices():
        assert one.sources
        assert (one.float64 != "unknown") or not one.is_verified("float64")
        assert (one.cpu_fallback != "unknown") or not one.is_verified("cpu_fallback")
        if one.autocast_dtypes:
            assert one.autocast_default in one.autocast_dtypes


def test_compilers_are_as_known() -> None:
    known = {one.type: (one.compile_backend, one.compile_since) for one in load_devices() if not one.cuda_compatible}
    assert known["npu"] == ("inductor", "2.7")
    assert known["hpu"] == ("hpu_backend", "")
    assert known["mlu"] == ("", "")
    for one in load_devices():
        assert bool(one.compile_backend) <= bool(one.compile_backends)
        assert (one.torchscript != "unknown") or not one.is_verified("torchscript")
        assert one.is_verified("compile_backends") or not one.is_verified("compile_backend")


def test_counterparts_of_variables() -> None:
    assert device("ascend").env["CUDA_LAUNCH_BLOCKING"] == "ASCEND_LAUNCH_BLOCKING"
    assert device("cambricon").env["CUDA_LAUNCH_BLOCKING"] == ""
    for one in load_devices():
        if (counterpart := one.env.get("CUDA_VISIBLE_DEVICES")) is not None:
            assert counterpart in one.visible_devices


def test_which_devices_are_given_the_mask_of_cuda() -> None:
    given = {one.type: one.mask_variable for one in load_devices() if one.mask_variable}
    assert given["npu"] == "ASCEND_RT_VISIBLE_DEVICES"
    assert not {"cuda", "mlu", "hpu", "xla", "mps"} & set(given)  # read it themselves, or have no such indices


# -- The loader ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FILES, tmp_path / "devices"))


def test_a_vendor_is_one_file_and_nothing_else(folder: Path) -> None:
    text = (folder / "cambricon.toml").read_text(encoding="utf-8")
    for before, after in (('"cambricon"', '"newcomer"'), ("mlu", "newdev"), ("neuware", "newware"), ("寒武纪", "新")):
        text = text.replace(before, after)
    text = text.replace('"bang"', '"nbang"').replace('"hanwuji"', '"xin"')
    (folder / "newcomer.toml").write_text(text, encoding="utf-8")

    devices = read_devices(folder)
    table = device_table.render(devices)

    assert "newcomer" in [one.name for one in devices]
    assert 'type="newdev"' in table
    assert 'plugin="torch_newdev"' in table


def test_a_shared_alias_is_an_error(folder: Path) -> None:
    file = folder / "metax.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('"maca"', '"npu"'), encoding="utf-8")

    with pytest.raises(DeviceError, match="the alias 'npu' is claimed by ascend and by metax"):
        read_devices(folder)


@pytest.mark.parametrize("alias", ["CUDA", "910", "my gpu", "npu:0", ""])
def test_an_alias_that_cannot_be_typed_is_an_error(folder: Path, alias: str) -> None:
    file = folder / "metax.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('"maca"', f'"{alias}"'), encoding="utf-8")

    with pytest.raises(DeviceError, match=r"metax\.toml: the alias .* must be lower case"):
        read_devices(folder)


@pytest.mark.parametrize("alias", ["auto", "cpu"])
def test_the_words_of_the_variable_itself_are_taken(folder: Path, alias: str) -> None:
    file = folder / "metax.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('"maca"', f'"{alias}"'), encoding="utf-8")

    with pytest.raises(DeviceError, match=f"'{alias}' is claimed by AI_DEVICE itself and by metax"):
        read_devices(folder)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('name = "ascend"', 'name = "other"', "name must be that of the file, 'ascend'"),
        ('name = "ascend"', "name = ", "not valid TOML"),
        ('backend = "hccl"', "", "the key 'backend' is missing"),
        ('backend = "hccl"', 'backend = "hccl"\nbackened = 1', "unknown key 'backened'"),
        ('backend = "hccl"', "backend = 1", "backend must be a string, not 1"),
        ("autoload = true", 'autoload = "yes"', "autoload must be true or false"),
        ('visible_devices = ["ASCEND_RT_VISIBLE_DEVICES"]', 'visible_devices = "X"', "must be a list of strings"),
        ('confidence = "high"', 'confidence = "sure"', "confidence must be one of high, medium, low"),
        ('grad_scaler = "vendor"', 'grad_scaler = "own"', "grad_scaler must be one of torch, vendor, none"),
        ('autoload_since = "2.5"', 'autoload_since = "new"', "autoload_since must be a version of torch"),
        ('torchscript = "yes"', 'torchscript = "maybe"', "torchscript must be one of yes, no, unknown"),
        ('compile_since = "2.7"', 'compile_since = "new"', "compile_since must be a version of torch"),
        ('compile_backend = "inductor"', 'compile_backend = "own"', "compile_backend must be one of compile_backends"),
        ('"env.NCCL_SOCKET_IFNAME"', '"env.NCCL_NOTHING"', "unverified names 'env.NCCL_NOTHING'"),
        ('"ascend", "npu"', '"ascend"', "aliases must hold the type 'npu'"),
        ('NCCL_BUFFSIZE = "HCCL_BUFFSIZE"', "NCCL_BUFFSIZE = 1", "env must be a table of strings"),
        ("dali = []", "dali = 1", "libraries must be a table of lists of strings"),
    ],
)
def test_a_wrong_file_is_explained(folder: Path, before: str, after: str, message: str) -> None:
    file = folder / "ascend.toml"
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after, 1), encoding="utf-8")

    with pytest.raises(DeviceError, match=message) as error:
        read_devices(folder)
    assert "ascend.toml" in str(error.value)


def test_devices_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        device("ascend").type = "cuda"  # type: ignore[misc]
    with pytest.raises(TypeError):
        device("ascend").env["X"] = "Y"  # type: ignore[index]


# -- The table in the helper ---------------------------------------------------------------------------------------


def test_the_helper_carries_the_table() -> None:
    source = device_table.HELPER.read_text(encoding="utf-8")

    assert device_table.replace_table(source, device_table.render(load_devices())) == source


def test_check_tells_a_stale_table_and_a_run_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = device_table.HELPER.read_text(encoding="utf-8")
    stale = tmp_path / "ai_device.py"
    stale.write_text(good.replace('"hccl"', '"nccl"', 1), encoding="utf-8")
    monkeypatch.setattr(device_table, "HELPER", stale)

    assert device_table.main(["--check"]) == 1
    assert "differs from rules/devices; run python -m codemods.runtime.device_table" in capsys.readouterr().out
    assert device_table.main([]) == 0
    assert stale.read_text(encoding="utf-8") == good
    assert device_table.main(["--check"]) == 0


def test_a_helper_without_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match="device table"):
        device_table.replace_table("import torch\n", device_table.render(load_devices()))


def test_lines_of_the_table_are_short_enough() -> None:
    assert max(map(len, device_table.render(load_devices()).splitlines())) <= 120


# -- The helper as it is written into a repository -----------------------------------------------------------------


def test_the_helper_is_stamped_and_recognised() -> None:
    source = helper_source()

    assert source.startswith(f"# uncuda helper {codemods.__version__}\n")
    assert is_helper(source)
    assert helper_version(source) == codemods.__version__
    assert is_helper("# Copyright\n\n" + source.replace("\n", "\r\n"))
    assert not is_helper("import torch\n")
    assert not is_helper('"""Tells of a line that says # uncuda helper 1.0"""\n')
    assert helper_version("import torch\n") is None


def test_the_helper_can_have_another_name() -> None:
    source = helper_source("accelerator")

    assert "ai_device" not in source
    assert "accelerator.device()" in source
    assert "AI_DEVICE" in source
