"""Launch scripts: what is found in them, in every form in which a shell takes it, and what is left alone."""

from __future__ import annotations

import time

import pytest
from companions import findings_in, places_in, said_of
from hypothesis import given
from hypothesis import strategies as st

from codemods.companions.remarks import Knowledge
from codemods.companions.shell import shell_remarks
from codemods.companions.shell_words import commands
from codemods.devices import load_devices

KNOWN = Knowledge(modules=frozenset({"pkg"}), commands=frozenset({"mytrain"}))

# -- CUDA_VISIBLE_DEVICES --------------------------------------------------------------------------------------------

MAPPED = [
    "CUDA_VISIBLE_DEVICES=0,1 torchrun train.py",
    'CUDA_VISIBLE_DEVICES="0,1" python train.py',
    "CUDA_VISIBLE_DEVICES=$GPUS python train.py",
    "CUDA_VISIBLE_DEVICES=${1:-0} python3.10 train.py",
    "CUDA_VISIBLE_DEVICES=0 OMP_NUM_THREADS=1 accelerate launch train.py",
    "env CUDA_VISIBLE_DEVICES=0 python train.py",
    "CUDA_VISIBLE_DEVICES=0 nohup python train.py > log 2>&1 &",
    "CUDA_VISIBLE_DEVICES=0 python -m pkg.train",
    "CUDA_VISIBLE_DEVICES=0 python -m torch.distributed.launch --nproc_per_node 1 train.py",
    "CUDA_VISIBLE_DEVICES=0 pytest tests",
    "CUDA_VISIBLE_DEVICES=0 mytrain --lr 1",
    "CUDA_VISIBLE_DEVICES=0 ./train.sh",
    "CUDA_VISIBLE_DEVICES=0 ./train.py",
    "CUDA_VISIBLE_DEVICES=0 $PYTHON train.py",
    "export CUDA_VISIBLE_DEVICES=0,1",
    "declare -x CUDA_VISIBLE_DEVICES=0",
    "setenv CUDA_VISIBLE_DEVICES 0",
    "for i in 0 1; do CUDA_VISIBLE_DEVICES=$i python train.py & done",
    "run() { CUDA_VISIBLE_DEVICES=0 python train.py; }",
    'bash -c "CUDA_VISIBLE_DEVICES=0 python train.py"',
    'ssh host "cd net && CUDA_VISIBLE_DEVICES=0 python train.py"',
    'screen -S a -X stuff "CUDA_VISIBLE_DEVICES=0 python train.py^M"',
    "tmux send-keys -t a 'CUDA_VISIBLE_DEVICES=0 python train.py' Enter",
    "bash <<EOF\nCUDA_VISIBLE_DEVICES=0 python train.py\nEOF\n",
    "x=$(CUDA_VISIBLE_DEVICES=0 python train.py)",
    "CUDA_VISIBLE_DEVICES=0 \\\n  python train.py",
    "docker run -e CUDA_VISIBLE_DEVICES=0 image python train.py",
]


@pytest.mark.parametrize("text", MAPPED)
def test_a_mask_that_the_helper_passes_on_is_a_note(text: str) -> None:
    (finding,) = findings_in("train.sh", text, KNOWN)
    assert (finding.rule, finding.tier.label) == ("UC711", "note")
    assert "npu ASCEND_RT_VISIBLE_DEVICES" in finding.message


NOT_MAPPED = {
    'CUDA_VISIBLE_DEVICES="" python train.py': "AI_DEVICE=cpu",
    "CUDA_VISIBLE_DEVICES= python train.py": "AI_DEVICE=cpu",
    "CUDA_VISIBLE_DEVICES=-1 python train.py": "AI_DEVICE=cpu",
    "CUDA_VISIBLE_DEVICES=1,0 python train.py": "ascending",
    "CUDA_VISIBLE_DEVICES=GPU-8932f937 python train.py": "ascending",
    "CUDA_VISIBLE_DEVICES=0 python -m vllm.entrypoints.api": "not known to be one of this repository",
    "CUDA_VISIBLE_DEVICES=0 vllm serve model": "not known to be one of this repository",
}


@pytest.mark.parametrize("text", NOT_MAPPED)
def test_a_mask_that_it_cannot_pass_on_is_for_a_person(text: str) -> None:
    (finding,) = findings_in("train.sh", text, KNOWN)
    assert (finding.rule, finding.tier.label) == ("UC711", "manual")
    assert NOT_MAPPED[text] in finding.message


# -- other variables -------------------------------------------------------------------------------------------------


def test_a_variable_with_counterparts_names_them_and_their_doubts() -> None:
    (finding,) = findings_in("train.sh", "export NCCL_SOCKET_IFNAME=eth0\n")
    assert (finding.rule, finding.tier.label) == ("UC712", "manual")
    assert "npu HCCL_SOCKET_IFNAME (unverified)" in finding.message


def test_a_variable_that_nobody_else_reads_is_a_note() -> None:
    assert said_of("train.sh", "NCCL_IB_DISABLE=1 python a.py") == ["UC712 note: NCCL_IB_DISABLE=1"]


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH", "CUDNN_HOME", "NCCL_HOME"])
def test_the_place_of_the_toolkit(name: str) -> None:
    assert said_of("build.sh", f"export {name}=/opt/x\n") == [f"UC718 manual: {name}=/opt/x"]


# -- arguments -------------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "python train.py --device cuda": "--device cuda",
    "python train.py --device=cuda:0": "--device=cuda:0",
    "python train.py --device 'cuda'": "--device 'cuda'",
    'python train.py --device="cuda"': '--device="cuda"',
    "python train.py \\\n  --device \\\n  cuda": "--device \\\n  cuda",
    "python train.py --device=${DEVICE:-cuda}": "--device=${DEVICE:-cuda}",
    "python train.py --eval-device cuda": "--eval-device cuda",
    "python train.py --map-location cuda": "--map-location cuda",
    "python train.py --dist-backend nccl": "--dist-backend nccl",
    "python train.py --dist_backend=nccl": "--dist_backend=nccl",
    "python train.py --backend cpu:gloo,cuda:nccl": "--backend cpu:gloo,cuda:nccl",
    "python train.py model.device=cuda": "model.device=cuda",
    "python train.py ++trainer.accelerator=gpu": "++trainer.accelerator=gpu",
    "torchrun --nproc_per_node=gpu train.py": "--nproc_per_node=gpu",
    "srun python train.py --device cuda": "--device cuda",
    "poetry run python train.py --device cuda": "--device cuda",
    "conda run -n env python train.py --device cuda": "--device cuda",
    '"$PYTHON" train.py --device cuda': "--device cuda",
    "./train.py --device cuda": "--device cuda",
    "OPTIONS='--lr 1 --device cuda'\npython train.py $OPTIONS": "--device cuda",
    "OPTIONS=(--lr 1 # --device cuda:1\n --device cuda)\npython train.py": "--device cuda",
    'sbatch --wrap="python train.py --device cuda"': "--device cuda",
}


@pytest.mark.parametrize("text", ARGUMENTS)
def test_an_argument_that_names_cuda(text: str) -> None:
    assert said_of("train.sh", text) == [f"UC713 manual: {ARGUMENTS[text]}"]


@pytest.mark.parametrize("name", ["device", "train.device", "dist_backend"])
def test_an_argument_that_provably_reaches_a_converted_place_is_a_note(name: str) -> None:
    known = Knowledge(device_settings=frozenset({name}))
    flag, value = name.replace("_", "-"), "nccl" if "backend" in name else "cuda"
    assert said_of("train.sh", f"python a.py --{flag} {value}", known) == [f"UC713 note: --{flag} {value}"]
    (override,) = findings_in("train.sh", f"python a.py x.{name}={value}", known)
    assert override.tier.label == "note"
    assert "means the selected device" in override.message


@pytest.mark.parametrize("flag", ["--gpu 0", "--gpus=8", "--gpu_ids 0,1", "--num-gpus 2", "--use_cuda", "--no-cuda"])
def test_numbers_and_switches_are_notes(flag: str) -> None:
    (said,) = said_of("train.sh", f"python train.py {flag}")
    assert said == f"UC714 note: {flag}"


# -- programs --------------------------------------------------------------------------------------------------------

TOOLS = [
    "nvidia-smi",
    "/usr/bin/nvidia-smi -L",
    "watch -n 1 nvidia-smi",
    "if nvidia-smi &> /dev/null; then echo yes; fi",
    "N=$(nvidia-smi -L | wc -l)",
    "N=`nvidia-smi -L | wc -l`",
    'echo "there are $(nvidia-smi -L | wc -l)"',
    "command -v nvidia-smi || exit 1",
    "ssh host 'nvidia-smi'",
    "while true; do nvidia-smi; done",
    "cat <(nvidia-smi)",
    "[ -f x ] && nvidia-smi",
]


@pytest.mark.parametrize("text", TOOLS)
def test_a_tool_of_nvidia(text: str) -> None:
    (finding,) = findings_in("train.sh", text)
    assert finding.rule == "UC715"
    for device in load_devices():
        assert device.name == "nvidia" or not device.monitor or device.monitor in finding.message


@pytest.mark.parametrize("tool", ["nvcc", "nsys", "ncu", "nvprof", "compute-sanitizer"])
def test_other_tools(tool: str) -> None:
    assert said_of("train.sh", f"{tool} python train.py") == [f"UC715 manual: {tool}"]


def test_a_container_is_given_gpus_an_image_and_arguments() -> None:
    text = (
        "docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=0 nvcr.io/nvidia/pytorch:24.01-py3 python a.py --device cuda\n"
    )
    assert said_of("run.sh", text) == [
        "UC716 manual: --gpus",
        "UC732 note: NVIDIA_VISIBLE_DEVICES=0",
        "UC731 manual: nvcr.io/nvidia/pytorch:24.01-py3",
        "UC713 manual: --device cuda",
    ]


def test_a_scheduler_is_asked_for_gpus() -> None:
    asked = "#SBATCH --gres=gpu:a100:8\n#SBATCH --gpus-per-node=8\n#PBS -l select=1:ngpus=4\n"
    text = f"#!/bin/bash\n{asked}srun --gres=gpu:1 python a.py\n"
    assert said_of("train.slurm", text) == [
        "UC717 note: --gres=gpu:a100:8",
        "UC717 note: --gpus-per-node=8",
        "UC717 note: ngpus=4",
        "UC717 note: --gres=gpu:1",
    ]


INSTALLED = {
    "pip install torch==2.1.0+cu118": "UC733 manual: torch==2.1.0+cu118",
    "python -m pip install flash-attn --no-build-isolation": "UC734 manual: flash-attn",
    'uv pip install "xformers<0.1"': 'UC734 manual: "xformers<0.1"',
    "pip install ./flash_attn-2.5+cu122torch2.1-cp310-cp310-linux_x86_64.whl": None,
    "conda create -n env python=3.9 pytorch-cuda=12.1 -c nvidia": "UC733 manual: pytorch-cuda=12.1",
    "sudo apt-get install -y nvidia-cuda-toolkit": "UC733 manual: nvidia-cuda-toolkit",
    "pip install numpy --extra-index-url=https://host/whl/cu118": "UC733 manual: --extra-index-url=https://host/whl/cu118",
}


@pytest.mark.parametrize("text", INSTALLED)
def test_what_is_installed(text: str) -> None:
    expected = INSTALLED[text]
    assert said_of("setup.sh", text) == [expected or f"UC734 manual: {text.split()[-1]}"]


INLINE = [
    'python -c "import torch; torch.zeros(1).cuda()"',
    "python3 -c 'import torch\nx = torch.device(\"cuda\")'",
    "python - <<EOF\nimport torch\ntorch.cuda.init()\nEOF\n",
    "python <<'PY'\nx.cuda()\nPY\n",
    "\tpython <<-END\n\tx.cuda()\n\tEND\n",
    "python -c 'from a import run; run(\"--device=cuda\")'",
]


@pytest.mark.parametrize("text", INLINE)
def test_python_within_a_script(text: str) -> None:
    (finding,) = findings_in("check.sh", text)
    assert (finding.rule, finding.tier.label) == ("UC719", "manual")


# -- what is left alone ----------------------------------------------------------------------------------------------

LEFT = [
    "# CUDA_VISIBLE_DEVICES=0 python train.py --device cuda; nvidia-smi\n",
    "python train.py # --device cuda\n",
    'echo "run nvidia-smi, or python train.py --device cuda"\n',
    "echo nvidia-smi --device cuda\n",
    "cat <<EOF\nnvidia-smi\nCUDA_VISIBLE_DEVICES=0 python train.py --device cuda\nEOF\n",
    'usage="python train.py --device cuda"\n',
    'if [ -z "$CUDA_VISIBLE_DEVICES" ]; then exit; fi\n',
    "unset CUDA_VISIBLE_DEVICES NCCL_DEBUG\n",
    "export CUDA_VISIBLE_DEVICES\n",
    "CUDA_VERSION=11.8 CUDA=118\nmodel_cuda_v2=1\nMODEL=model_cuda_v2\n",
    "export PATH=/usr/local/cuda/bin:$PATH\n",
    "cp nvidia-smi.log /usr/local/cuda/x\n",
    "python cuda.py --name cuda --config configs/cuda.yaml --device cpu --device_map auto\n",
    "python train.py --gpt-size 3 --gpu-memory-utilization 0.9 --backend gloo\n",
    "pip uninstall -y apex flash-attn\n",
    "pip install -r requirements/flash-attn.txt ./apex\n",
    "source activate cuda\n",
    "make nvcc\n",
    "case $1 in cuda) echo;; esac\n",
]


@pytest.mark.parametrize("text", LEFT)
def test_it_is_left_alone(text: str) -> None:
    assert said_of("train.sh", text) == []


# -- places ----------------------------------------------------------------------------------------------------------


def test_lines_and_columns_are_those_of_the_file() -> None:
    text = (
        '#!/bin/bash\n\n  é=1; nvidia-smi\nbash -c "echo; \\"$X\\"; nvidia-smi"\npython a.py \\\r\n\t--device cuda\r\n'
    )
    assert places_in("train.sh", text) == [(3, 8), (4, 24), (6, 2)]


def test_a_long_detail_is_given_once_in_a_file() -> None:
    first, second = findings_in("train.sh", "nvidia-smi\n\nnvidia-smi -L\n")
    assert "npu-smi" in first.message
    assert second.message.endswith(": as in line 1")


def test_a_piece_of_another_file_has_places_of_that_file() -> None:
    (remark,) = shell_remarks("nvidia-smi -L\n", base=100)
    assert (remark.start, remark.end) == (100, 110)


def test_a_script_without_an_end_is_read_as_far_as_it_goes() -> None:
    assert said_of("train.sh", "nvidia-smi\npython a.py 'unfinished --device cuda\n") == ["UC715 manual: nvidia-smi"]
    assert said_of("ci.sh", "docker build << x >>\nnvidia-smi\n") == ["UC715 manual: nvidia-smi"]


PIECES = st.sampled_from(
    ["python a.py ", "--device cuda", "$(", ")", "`", '"', "'", "\\", "\n", "((", "))", "<<EOF\n", "EOF\n", "A=(", " ",
     "${", "}", ";", "|", "&", ">", "<(", "# ", "CUDA_VISIBLE_DEVICES=0 ", "nvidia-smi", "é", "\r\n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_read_to_its_end_and_places_are_within(text: str) -> None:
    for command in commands(text):
        for word in command.words:
            assert 0 <= word.start < word.end <= len(text) + 1
            assert all(text[word.place(index)] == character for index, character in enumerate(word.text))
    for finding in findings_in("train.sh", text):
        assert 0 <= finding.start <= finding.end <= len(text.encode())


def test_a_here_document_of_an_indented_script() -> None:
    text = "  cat <<EOF > a.sh\n  nvidia-smi\n  EOF\n  python - <<'PY'\n  x.cuda()\n  PY\n  nvidia-smi\n"
    assert said_of("train.sh", text) == ["UC719 manual: .cuda(", "UC715 manual: nvidia-smi"]


@pytest.mark.parametrize("piece", ["<<a ", "<<a\n", "$(", "'", '"$(', "A=(", "a\\\n", "#SBATCH --gres ", "nvidia-smi "])
def test_long_texts_are_read_in_time(piece: str) -> None:
    started = time.monotonic()
    findings_in("train.sh", "nvidia\n" + piece * (200_000 // len(piece)))
    assert time.monotonic() - started < 10


def test_deep_nesting_is_read() -> None:
    for opening, closing in (("$(", ")"), ("`", "`"), ("(", ")"), ("A=(", ")"), ("${", "}")):
        findings_in("train.sh", opening * 3000 + "nvidia-smi" + closing * 3000)
