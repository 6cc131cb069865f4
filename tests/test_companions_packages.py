"""Images and packages: Dockerfiles, requirements, and the dependencies in other files."""

from __future__ import annotations

import re

import pytest
from companions import findings_in, places_in, said_of
from hypothesis import given
from hypothesis import strategies as st

from codemods.companions.remarks import Knowledge
from codemods.cuda_api import load_packages
from codemods.devices import load_devices

# -- requirements ----------------------------------------------------------------------------------------------------

REQUIREMENTS = {
    "torch==2.1.0+cu118": "UC733 manual: torch==2.1.0+cu118",
    "torch==2.1.0+cu118 \\\n    --hash=sha256:ab": "UC733 manual: torch==2.1.0+cu118",
    "torch @ https://host/torch-1.13.0%2Bcu117-cp310-linux.whl": None,
    "--extra-index-url https://host/whl/cu118": "UC733 manual: https://host/whl/cu118",
    "--find-links=https://host/whl/cu118/x.html": "UC733 manual: https://host/whl/cu118/x.html",
    "flash-attn>=2.3; python_version > '3.8'  # fast": "UC734 manual: flash-attn>=2.3; python_version > '3.8'",
    "FLASH_ATTN": "UC734 manual: FLASH_ATTN",
    "-e git+https://github.com/NVIDIA/apex.git@23.05#egg=apex": "UC734 manual: git+https://github.com/NVIDIA/apex.git@23.05#egg=apex",
    "git+https://github.com/Dao-AILab/flash-attention": "UC734 manual: git+https://github.com/Dao-AILab/flash-attention",
    "cupy-cuda12x": "UC734 manual: cupy-cuda12x",
    "cupy-cuda111>=8": "UC734 manual: cupy-cuda111>=8",
    "transformer_engine[pytorch]==1.2": "UC734 manual: transformer_engine[pytorch]==1.2",
    "nvidia-cublas-cu12==12.1.3.1": "UC734 manual: nvidia-cublas-cu12==12.1.3.1",
    "nvidia-ml-py": "UC734 manual: nvidia-ml-py",
    "bitsandbytes": "UC734 manual: bitsandbytes",
    "spconv-cu120": "UC734 note: spconv-cu120",
    "vllm": "UC734 note: vllm",
}


@pytest.mark.parametrize("line", REQUIREMENTS)
@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-dev.txt", "requirements/gpu.txt", "constraints.txt"]
)
def test_requirements(file: str, line: str) -> None:
    expected = REQUIREMENTS[line] or f"UC733 manual: {line}"
    assert said_of(file, f"numpy\n{line}\n") == [expected]
    assert places_in(file, f"numpy\n{line}")[0][0] == 2


@pytest.mark.parametrize(
    "line",
    ["torch>=2", "# flash-attn", "torch  # +cu118", "-r flash-attn.txt", "-c apex.txt", "./apex", "-e .",
     "model_cuda_v2", "flash", "tritonclient[http]", "--index-url https://host/simple", ""],
)  # fmt: skip
def test_requirements_that_are_left_alone(line: str) -> None:
    assert said_of("requirements.txt", f"{line}\n") == []


def test_every_distribution_of_the_table_is_found_with_its_reason_and_offers() -> None:
    for package in load_packages().values():
        for name in package.distributions:
            (finding,) = findings_in("requirements.txt", f"{name}==1.0\n")
            assert finding.rule == "UC734"
            assert package.reason.rstrip(".") in finding.message
            assert all(offer.use in finding.message for offer in package.instead)
            doubts = sum(offer.unverified for offer in package.instead)
            assert finding.message.count("(unverified)") == doubts


def test_a_build_for_cuda_says_what_to_install_for_every_vendor() -> None:
    (finding,) = findings_in("requirements.txt", "torch==2.1.0+cu118\n")
    assert "CUDA 11.8" in finding.message
    for device in load_devices():
        assert device.name == "nvidia" or f"{device.title}: {device.install}" in finding.message


def test_no_host_is_named_that_the_user_has_not_named() -> None:
    text = "torch==2.1.0+cu118\n--extra-index-url https://host/whl/cu118\nflash-attn\nnvidia-cublas-cu12\n"
    for finding in findings_in("requirements.txt", text):
        assert not re.search(r"https?://|\.org\b|\.com\b", finding.message)


def test_the_repository_s_own_package_is_not_reported() -> None:
    known = Knowledge(modules=frozenset({"xformers"}))
    assert said_of("requirements.txt", "xformers\nflash-attn\n", known) == ["UC734 manual: flash-attn"]


def test_dependencies_of_a_project() -> None:
    text = """
[build-system]
requires = ["setuptools", "flash_attn"]

[project]
name = "xformers-demo"
dependencies = [
    "torch==2.1+cu118",
    # "apex",
    "xformers; extra == 'x'",
]

[project.optional-dependencies]
gpu = ["cupy-cuda12x"]

[dependency-groups]
dev = ["bitsandbytes", {include-group = "gpu"}]

[tool.poetry.dependencies]
triton = "^2.1"
apex = {git = "https://github.com/NVIDIA/apex", branch = "master"}

[[tool.uv.index]]
name = "pytorch"
url = "https://host/whl/cu121"
"""
    assert said_of("pyproject.toml", text) == [
        "UC734 manual: flash_attn",
        "UC733 manual: torch==2.1+cu118",
        "UC734 manual: xformers; extra == 'x'",
        "UC734 manual: cupy-cuda12x",
        "UC734 manual: bitsandbytes",
        "UC734 manual: ^2.1",
        "UC734 manual: https://github.com/NVIDIA/apex",
        "UC733 manual: https://host/whl/cu121",
    ]


def test_dependencies_in_setup_cfg() -> None:
    text = """
[metadata]
name = apex
[options]
install_requires =
    torch
    # apex
    xformers
[options.extras_require]
x = flash-attn
"""
    assert said_of("setup.cfg", text) == ["UC734 manual: xformers", "UC734 manual: flash-attn"]


def test_an_environment_of_conda() -> None:
    text = """
name: net
channels: [pytorch, nvidia]
dependencies:
  - python=3.9
  - pytorch=1.12.1=py3.8_cuda11.3_cudnn8.3.2_0
  - pytorch-cuda=12.1
  - cudatoolkit=11.3
  - nvidia::cuda-toolkit
  - cudnn
  - pip:
      - torch-scatter
      - nvidia-cudnn-cu12==8.9
"""
    assert said_of("environment.yml", text) == [
        "UC733 manual: pytorch=1.12.1=py3.8_cuda11.3_cudnn8.3.2_0",
        "UC733 manual: pytorch-cuda=12.1",
        "UC733 manual: cudatoolkit=11.3",
        "UC733 manual: nvidia::cuda-toolkit",
        "UC733 manual: cudnn",
        "UC734 note: torch-scatter",
        "UC734 manual: nvidia-cudnn-cu12==8.9",
    ]


# -- Dockerfiles -----------------------------------------------------------------------------------------------------

DOCKERFILES = {
    "FROM nvidia/cuda:12.1.0-devel-ubuntu22.04 AS base": ["UC731 manual: nvidia/cuda:12.1.0-devel-ubuntu22.04"],
    "from --platform=linux/amd64 nvcr.io/nvidia/pytorch:24.01-py3": ["UC731 manual: nvcr.io/nvidia/pytorch:24.01-py3"],
    "FROM pytorch/pytorch:${V}-cuda${C}-devel": ["UC731 manual: pytorch/pytorch:${V}-cuda${C}-devel"],
    "ARG BASE=nvidia/cuda:11.8.0\nFROM ${BASE}": ["UC731 manual: BASE=nvidia/cuda:11.8.0"],
    "FROM python:3.11\nFROM ubuntu\n# FROM nvidia/cuda:11.8.0\nFROM ${BASE}": [],
    "ENV NVIDIA_VISIBLE_DEVICES all": ["UC732 note: NVIDIA_VISIBLE_DEVICES all"],
    "ENV A=1 \\\n    # NCCL_DEBUG=INFO\n    CUDA_HOME=/usr/local/cuda \\\n\n    NCCL_DEBUG=INFO": [
        "UC718 manual: CUDA_HOME=/usr/local/cuda",
        "UC712 manual: NCCL_DEBUG=INFO",
    ],
    "ENV LD_LIBRARY_PATH /usr/local/cuda/lib64:$LD_LIBRARY_PATH": [
        "UC718 manual: LD_LIBRARY_PATH /usr/local/cuda/lib64:$LD_LIBRARY_PATH"
    ],
    "ENV PATH=/usr/local/cuda/bin:$PATH LD_LIBRARY_PATH=/opt/lib": [],
    'ENV CUDA_VISIBLE_DEVICES=""': ['UC711 manual: CUDA_VISIBLE_DEVICES=""'],
    "RUN --mount=type=cache,target=/x pip install flash-attn": ["UC734 manual: flash-attn"],
    "RUN apt-get update \\\n  # the tools\n\n && pip install \\\n  xformers \\\n && nvidia-smi\nRUN nvcc -V": [
        "UC734 manual: xformers",
        "UC715 manual: nvidia-smi",
        "UC715 manual: nvcc",
    ],
    "RUN <<EOF\npip install apex\nnvidia-smi\nEOF\nRUN nvcc -V": [
        "UC734 manual: apex",
        "UC715 manual: nvidia-smi",
        "UC715 manual: nvcc",
    ],
    'CMD ["python", "train.py", "--device=cuda"]': ["UC713 manual: --device=cuda"],
    "ENTRYPOINT python train.py --dist-backend nccl": ["UC713 manual: --dist-backend nccl"],
    'LABEL about="nvidia-smi"\nCOPY nvidia-smi /usr/bin\nWORKDIR /cuda': [],
}


@pytest.mark.parametrize("text", DOCKERFILES)
@pytest.mark.parametrize("file", ["Dockerfile", "Dockerfile.gpu", "train.dockerfile", "Containerfile"])
def test_dockerfiles(file: str, text: str) -> None:
    assert said_of(file, text) == DOCKERFILES[text]
    assert said_of(file, text.replace("\n", "\r\n")) == DOCKERFILES[text]


@pytest.mark.parametrize("file", ["docker/docker-rocm/Dockerfile", "Dockerfile.npu", "docker/ascend/Dockerfile"])
def test_a_file_for_another_device_has_notes_only(file: str) -> None:
    assert said_of(file, "RUN pip install flash-attn") == ["UC734 note: flash-attn"]


PIECES = st.sampled_from(
    ["FROM ", "RUN ", "ENV ", "nvidia/cuda", "\\\n", "\n", "# x\n", "NCCL_DEBUG=", " ", '["', '"]', "<<EOF", "EOF\n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_read(text: str) -> None:
    for file in ("Dockerfile", "requirements.txt", "setup.cfg"):
        for finding in findings_in(file, text):
            assert 0 <= finding.start <= finding.end <= len(text.encode())
