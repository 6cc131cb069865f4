"""Configuration files: settings in YAML, JSON and TOML, and the other kinds of text within them."""

from __future__ import annotations

import time

import pytest
from companions import findings_in, places_in, said_of
from hypothesis import given
from hypothesis import strategies as st

from codemods.companions.entries import json_entries, toml_entries, yaml_entries
from codemods.companions.remarks import Knowledge
from codemods.devices import load_devices

YAML = {
    "device: cuda": ["cuda"],
    "'device': \"cuda:0\"  # comment": ["cuda:0"],
    "train.device: cuda": ["cuda"],
    "DEVICE: CUDA": ["CUDA"],
    "map_location: cuda:1\neval_device: cuda": ["cuda:1", "cuda"],
    "a:\n  - device: cuda\n  - {device: cuda, tag: [cuda]}\n": ["cuda", "cuda"],
    "devices: [cuda:0, 'cuda:1', cpu]": ["cuda:0", "cuda:1"],
    "devices:\n  - cuda:0\n  - 'cuda:1'\n": ["cuda:0", "cuda:1"],
    "devices:\n- cuda:0\n- cpu\nname: cuda\n": ["cuda:0"],
    "a: {b: 1,  # device: cuda\n  device: cuda}\n": ["cuda"],
    "device: &main cuda\nother: *main": ["cuda"],
    "device: !!str cuda": ["cuda"],
    "---\ndevice: cuda\n---\ndevice: cuda:1\n": ["cuda", "cuda:1"],
    "device:\n  cuda\n": ["cuda"],
    "device:\n  type: cuda\n": ["cuda"],
    "device: ${oc.env:DEVICE,cuda}": ["${oc.env:DEVICE,cuda}"],
    "text: |\n  device: cuda\n\n  device: cuda\ndevice: cuda:2\n": ["cuda:2"],
    "- |\n  device: cuda\n- device: cuda:2\n": ["cuda:2"],
    'text: "two lines\n  device: cuda"\ndevice: cuda:2': ["cuda:2"],
    "x: 'it''s device: cuda'\ndevice: cuda:2": ["cuda:2"],
    "trainer: {accelerator: gpu}": ["gpu"],
}


@pytest.mark.parametrize("text", YAML)
def test_devices_in_yaml(text: str) -> None:
    assert said_of("conf/train.yaml", text) == [f"UC721 manual: {value}" for value in YAML[text]]


LEFT_IN_YAML = [
    "# device: cuda\n",
    "device: cpu  # cuda\n",
    "name: cuda\nlanguage: cuda\nmodel: model_cuda_v2\n",
    "about: put device: cuda here\n",
    "about: |\n  device: cuda\n  backend: nccl\n",
    "about: >-\n  device: cuda\n",
    "defaults:\n  - device: cuda\n  - override /trainer: gpu\n",
    "device:cuda\n",
    "device: auto\naccelerator: auto\nbackend: gloo\n",
    "url: http://host:80/cuda\npath: /usr/local/cuda/lib\n",
    "device: cuda is best\n",
]


@pytest.mark.parametrize("text", LEFT_IN_YAML)
def test_what_is_left_alone_in_yaml(text: str) -> None:
    assert said_of("conf/train.yaml", text) == []


JSON = {
    '{"device": "cuda", "device": "cuda:1"}': ["cuda", "cuda:1"],
    '{"a": [1, {"device": "cuda"}, [{"device": "cuda:1"}]], "device": "cuda:2"}': ["cuda", "cuda:1", "cuda:2"],
    '{"devices": ["cuda:0", "cpu"]}': ["cuda:0"],
    '// "device": "cuda"\n{/* "device": "cuda" */ "device":\n"cuda:1",}': ["cuda:1"],
    '{"text": "\\"device\\": \\"cuda\\"", "name": "cuda"}': [],
    '["device", "cuda"]': [],
}


@pytest.mark.parametrize("text", JSON)
def test_devices_in_json(text: str) -> None:
    assert said_of("train.json", text) == [f"UC721 manual: {value}" for value in JSON[text]]


TOML = {
    'device = "cuda" # comment': ["cuda"],
    '[a.b]\ndevice = \'cuda\'\n[[c]]\n"device" = "cuda:1"': ["cuda", "cuda:1"],
    'a = {tag = "cuda", device = "cuda:1"}': ["cuda:1"],
    'devices = [\n  "cuda:0", # "cuda:1"\n  "cuda:2",\n]\nname = "cuda"': ["cuda:0", "cuda:2"],
    'a.device = "cuda"': ["cuda"],
    'text = """\ndevice = "cuda"\n"""\n': [],
    "text = '''\ndevice = \"cuda\"\n'''\n# device = \"cuda\"\n": [],
}


@pytest.mark.parametrize("text", TOML)
def test_devices_in_toml(text: str) -> None:
    assert said_of("train.toml", text) == [f"UC721 manual: {value}" for value in TOML[text]]


def test_the_message_names_the_devices_of_the_table() -> None:
    (device,) = findings_in("train.yaml", "device: cuda")
    (backend,) = findings_in("train.yaml", "backend: nccl")
    for known in load_devices():
        if known.type != "cuda":
            assert known.type in device.message
            assert f"{known.type} {known.backend}" in backend.message


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", "train:\n  device: cuda\ndist:\n  backend: nccl\n"),
        ("a.json", '{"train": {"device": "cuda"}, "dist": {"backend": "nccl"}}'),
        ("a.toml", '[train]\ndevice = "cuda"\n[dist]\nbackend = "nccl"\n'),
    ],
)
def test_a_value_that_provably_reaches_a_converted_place_is_a_note(file: str, text: str) -> None:
    assert said_of(file, text) == ["UC721 manual: cuda", "UC722 manual: nccl"]
    by_name = Knowledge(device_settings=frozenset({"device", "backend"}))
    assert said_of(file, text, by_name) == ["UC721 note: cuda", "UC722 note: nccl"]
    by_path = Knowledge(device_settings=frozenset({"train.device", "other.backend"}))
    assert said_of(file, text, by_path) == ["UC721 note: cuda", "UC722 manual: nccl"]


NOT_LOOKED_AT = [
    "package-lock.json",
    "conda-lock.yml",
    "poetry.lock",
    "uv.lock",
    "a.ipynb",
    "tsconfig.json",
]


@pytest.mark.parametrize("file", NOT_LOOKED_AT)
def test_files_that_are_not_looked_at(file: str) -> None:
    assert said_of(file, '{"device": "cuda"}\ndevice: cuda\ndevice = "cuda"\n') == []


def test_steps_of_ci_are_shell() -> None:
    text = """
jobs:
  test:
    container: nvidia/cuda:12.1.0-devel-ubuntu22.04
    strategy: {matrix: {device: [cpu, cuda]}}
    steps:
      - run: nvidia-smi
      - name: nvidia-smi
        run: |
          pip install torch --index-url https://host/whl/cu121
          python train.py --device cuda
"""
    assert said_of(".github/workflows/ci.yml", text) == [
        "UC731 manual: nvidia/cuda:12.1.0-devel-ubuntu22.04",
        "UC721 manual: cuda",
        "UC715 manual: nvidia-smi",
        "UC733 manual: https://host/whl/cu121",
        "UC713 manual: --device cuda",
    ]
    assert places_in(".github/workflows/ci.yml", text)[-1] == (11, 27)


def test_a_compose_file() -> None:
    text = """
services:
  train:
    image: nvcr.io/nvidia/pytorch:24.01-py3
    runtime: nvidia
    command: ["python", "train.py", "--device", "cuda"]
    environment:
      CUDA_VISIBLE_DEVICES: "0,1"
      NCCL_DEBUG: INFO
  eval:
    environment: [NVIDIA_VISIBLE_DEVICES=all, 'CUDA_LAUNCH_BLOCKING=1']
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}
"""
    assert said_of("compose.yaml", text) == [
        "UC731 manual: nvcr.io/nvidia/pytorch:24.01-py3",
        "UC716 manual: nvidia",
        'UC713 manual: --device", "cuda',
        "UC711 note: 0,1",
        "UC712 manual: INFO",
        "UC732 note: NVIDIA_VISIBLE_DEVICES=all",
        "UC712 manual: CUDA_LAUNCH_BLOCKING=1",
        "UC716 manual: nvidia",
    ]


def test_a_pod() -> None:
    text = "containers:\n- image: a\n  args: [--device, cuda]\n  env:\n  - name: NCCL_SOCKET_IFNAME\n    value: eth0\n"
    limits = "  resources:\n    limits:\n      nvidia.com/gpu: 8\n"
    assert said_of("pod.yml", text + limits) == [
        "UC713 manual: --device, cuda",
        "UC712 manual: NCCL_SOCKET_IFNAME",
        "UC716 manual: 8",
    ]


PIECES = st.sampled_from(
    ["device", ": ", "cuda", "\n", "  ", "- ", "{", "}", "[", "]", ",", '"', "'", "|", ">", "&a ", "#", "=", '"""',
     "\r\n", "---\n", "é", "\\", "\t", "//", "/*"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=16).map("".join))
def test_any_text_is_read_and_values_are_where_they_are_said_to_be(text: str) -> None:
    for reader in (yaml_entries, json_entries, toml_entries):
        for entry in reader(text):
            assert text[entry.start : entry.end] == entry.value
    for file in ("a.yaml", "a.json", "a.toml"):
        findings_in(file, text)


@pytest.mark.parametrize(
    "piece", ["- ", " ", "a: ", '{"a":', "{a=", "[", "/*", "'", '"""', "a:\n", "k: v # c\n", "a b "]
)
def test_long_texts_are_read_in_time(piece: str) -> None:
    started = time.monotonic()
    for file in ("a.yaml", "a.json", "a.toml"):
        findings_in(file, "cuda\n" + piece * (200_000 // len(piece)))
    assert time.monotonic() - started < 10


def test_deep_nesting_is_read() -> None:
    for file in ("a.yaml", "a.json", "a.toml"):
        findings_in(file, "a: " + "[" * 20000 + "cuda" + "]" * 20000)
        findings_in(file, '{"device": ' * 20000 + '"cuda"')
