"""``uncuda convert --graph``: ``torch.compile``, TorchScript, and models that are trained without either."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conversion import Tree, both_ways
from standin_backend import write_plugin

from codemods.engine.convert import Conversion, Options
from codemods.findings import Finding, Tier

GRAPH = Options(families=frozenset({"graph"}))


def asked(source: str) -> Conversion:
    """The conversion of a file with ``--graph``, which is the same both ways, and converts to itself."""
    conversion = both_ways(source, options=GRAPH)
    again = both_ways(conversion.after, options=GRAPH)
    assert again.after == conversion.after
    return conversion


def found(source: str, rule: str) -> list[Finding]:
    return [finding for finding in asked(source).findings if finding.rule == rule]


# -- torch.compile -----------------------------------------------------------------------------------------------------

CALLS = {
    "call": ("model = torch.compile(model)\n", "model = ai_device.compile(model)\n"),
    "options": (
        "model = torch.compile(model, fullgraph=True, **extra)\n",
        "model = ai_device.compile(model, fullgraph=True, **extra)\n",
    ),
    "inductor": (
        "model = torch.compile(model, backend='inductor')\n",
        "model = ai_device.compile(model, backend='inductor')\n",
    ),
    "None": ("model = torch.compile(model, backend=None)\n", "model = ai_device.compile(model, backend=None)\n"),
    "setting": (
        "model = torch.compile(model, backend=args.backend, mode=args.mode)\n",
        "model = ai_device.compile(model, backend=args.backend, mode=args.mode)\n",
    ),
    "decorator": ("@torch.compile\ndef f(x):\n    return x\n", "@ai_device.compile\ndef f(x):\n    return x\n"),
    "decorator with options": (
        "@torch.compile(dynamic=False)\ndef f(x):\n    return x\n",
        "@ai_device.compile(dynamic=False)\ndef f(x):\n    return x\n",
    ),
    "value": ("build = map(torch.compile, models)\n", "build = map(ai_device.compile, models)\n"),
    "comment": (
        "model = torch.compile(\n    model,  # as fast as it gets\n)\n",
        "model = ai_device.compile(\n    model,  # as fast as it gets\n)\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), tuple(CALLS.values()), ids=tuple(CALLS))
def test_compiled_code_takes_the_compiler_of_the_device(before: str, after: str) -> None:
    source = f"import torch\n\nprint(torch.__version__)\n{before}"
    assert asked(source).after.decode() == f"import torch\n\nimport ai_device\n\nprint(torch.__version__)\n{after}"
    assert not both_ways(source).findings


def test_compile_under_other_names() -> None:
    assert "x = ai_device.compile(f)\n" in asked("import torch as th\n\nx = th.compile(f)\n").after.decode()
    assert "x = ai_device.compile(f)\n" in asked("from torch import compile\n\nx = compile(f)\n").after.decode()
    assert "x = ai_device.compile(f)\n" in asked("from torch import compile as c\n\nx = c(f)\n").after.decode()


@pytest.mark.parametrize(
    "source",
    [
        "import re\n\nx = re.compile('a')\n",
        "x = compile('1', 'f', 'eval')\n",
        "import torch\n\ntorch.compile = lambda f: f\n",
        "import torch\n\nok = hasattr(torch, 'compile')\n",
        "import torch\n\ntorch.compiler.reset()\n",
        "model = keras.Model()\nmodel.compile(optimizer='adam', loss='mse')\n",
        "from lib import Net\n\nnet = Net()\nnet.compile()\n",
    ],
)
def test_what_only_looks_like_it_stays(source: str) -> None:
    assert asked(source).findings == ()


@pytest.mark.parametrize(
    ("backend", "tier", "word"),
    [
        ('"cudagraphs"', Tier.MANUAL, "musagraphs on musa"),
        ('"tensorrt"', Tier.MANUAL, "kept"),
        ('"aot_eager"', Tier.NOTE, "works on every device"),
        ("custom", Tier.MANUAL, "kept"),
        ("get_backend()", Tier.MANUAL, "kept"),
        ("NAME", Tier.MANUAL, "kept"),
    ],
)
def test_a_backend_by_name_is_kept(backend: str, tier: Tier, word: str) -> None:
    source = (
        "import torch\n\nNAME = 'tensorrt'\n\n\ndef custom(graph, inputs):\n    return graph\n\n\n"
        f"model = torch.compile(model, backend={backend})\n"
    )
    conversion = asked(source)
    assert not conversion.changed
    (finding,) = conversion.findings
    assert (finding.rule, finding.tier) == ("UC632", tier)
    assert word in finding.message


def test_what_only_a_compiled_model_has_is_reported() -> None:
    source = "import torch\n\nmodel = torch.compile(model)\nraw = model._orig_mod\n"
    assert [(f.rule, f.tier) for f in asked(source).left] == [("UC631", Tier.MANUAL)]


def test_a_mode_with_graphs_is_converted_and_reported() -> None:
    source = "import torch\n\nmodel = torch.compile(model, mode='max-autotune')\n"
    assert [f.rule for f in asked(source).findings] == ["UC631", "UC633"]
    assert [f.rule for f in asked(source).applied] == ["UC631"]


def test_modules_that_compile_themselves() -> None:
    source = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def fast(self):\n        self.compile(dynamic=True)\n\n\n"
        "net = Net().eval()\nnet.compile()\nnet.compile(backend='eager')\nother = torch.nn.Linear(2, 2)\n"
        "other.compile(mode='default')\n"
    )
    after = asked(source).after.decode()
    assert "        ai_device.compile_module(self, dynamic=True)\n" in after
    assert "\nai_device.compile_module(net)\nnet.compile(backend='eager')\n" in after
    assert after.endswith("ai_device.compile_module(other, mode='default')\n")


def test_what_is_not_verified_is_said() -> None:
    (finding,) = found("import torch\n\nmodel = torch.compile(model)\n", "UC631")
    assert "openxla on xla (unverified)" in finding.message
    assert "npu (from torch 2.7)" in finding.message


# -- TorchScript and graphs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement", ["f = torch.jit.script(f)", "f = torch.jit.trace(f, x)", "@torch.jit.script\ndef g(x):\n    return x"]
)
def test_torchscript_is_reported_with_what_is_known(statement: str) -> None:
    (finding,) = found(f"import torch\n\n{statement}\n", "UC635")
    assert finding.tier is Tier.MANUAL
    assert "works on npu; does not work on mlu" in finding.message
    assert "not known on gcu" in finding.message


def test_cuda_graphs_are_reported_once_with_what_the_devices_offer() -> None:
    source = "import torch\n\nwith torch.cuda.graph(torch.cuda.CUDAGraph()):\n    pass\n"
    findings = asked(source).findings
    assert [f.rule for f in findings] == ["UC503", "UC503"]
    assert all("graphs: none on mps, xla (unverified)" in f.message for f in findings)
    assert not any("graphs: " in f.message for f in both_ways(source).findings)


# -- models that are trained -------------------------------------------------------------------------------------------

HEAD = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from lib import Net, make

device = pick()
"""
TAIL = """\
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in data:
    net(x).sum().backward()
    optimizer.step()
"""

TRAINED = {
    "moved where it is built": ("net = Net(3).to(device)\n", "net = ai_device.graph_mode(Net(3).to(device))\n"),
    "moved by hand": (
        "net = Net(3)\nnet.to(device)\n",
        "net = ai_device.graph_mode(Net(3))\nnet.to(device)\n",
    ),
    "moved into the same name": (
        "net = Net(3)\nnet = net.to(device).train()\n",
        "net = ai_device.graph_mode(Net(3))\nnet = net.to(device).train()\n",
    ),
    "cuda": ("net = Net(3).cuda()\n", "net = ai_device.graph_mode(Net(3).to(ai_device.device()))\n"),
    "torch's own": (
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2)).to(device)\n",
        "net = ai_device.graph_mode(torch.nn.Sequential(torch.nn.Linear(2, 2)).to(device))\n",
    ),
    "pretrained": (
        "net = Net.from_pretrained('x').to(device)\n",
        "net = ai_device.graph_mode(Net.from_pretrained('x').to(device))\n",
    ),
    "under a condition": (
        "if train:\n    net = Net().to(device)\n",
        "if train:\n    net = ai_device.graph_mode(Net().to(device))\n",
    ),
    "distributed": (
        "net = Net().to(device)\nnet = DDP(net)\n",
        "net = Net().to(device)\nnet = ai_device.graph_mode(DDP(net))\n",
    ),
    "distributed under another name": (
        "net = Net().to(device)\nddp = DDP(net)\n",
        "net = Net().to(device)\nddp = ai_device.graph_mode(DDP(net))\n",
    ),
    "state dict": (
        "net = Net().to(device)\nnet.load_state_dict(torch.load('n.pt', map_location='cpu'))\n",
        "net = ai_device.graph_mode(Net().to(device))\nnet.load_state_dict(torch.load('n.pt', map_location='cpu'))\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), tuple(TRAINED.values()), ids=tuple(TRAINED))
def test_a_model_is_compiled_where_it_is_built(before: str, after: str) -> None:
    conversion = asked(HEAD + before + TAIL)
    assert conversion.after.decode().endswith("device = pick()\n" + after + TAIL)
    assert [f.tier for f in conversion.findings if f.rule == "UC634"] == [Tier.REVIEW]


UNCERTAIN = {
    "function": ("net = make().to(device)\n", "may return anything"),
    "two places": ("if big:\n    net = Net(9).to(device)\nelse:\n    net = Net(3).to(device)\n", "several places"),
    "DDP under a condition": ("net = Net().to(device)\nif ddp:\n    net = DDP(net)\n", "under a condition"),
    "FSDP": (
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        "net = Net().to(device)\nnet = FSDP(net)\n",
        "hands it to FSDP",
    ),
    "DataParallel": ("net = Net().to(device)\nnet = torch.nn.DataParallel(net)\n", "hands it to DataParallel"),
    "accelerate": ("net = Net().to(device)\nnet, o = accelerator.prepare(net, o)\n", None),
    "scripted": ("net = Net().to(device)\ntorch.jit.trace(net, x)\n", "traces or scripts"),
    "hook": ("net = Net().to(device)\nnet.register_forward_hook(f)\n", "hook"),
    "second pass": ("net = Net().to(device)\nf(net).backward(retain_graph=True)\n", "retain_graph"),
    "gradients by hand": ("net = Net().to(device)\ntorch.autograd.grad(net(x), x)\n", "by hand"),
}


@pytest.mark.parametrize(("before", "word"), tuple(UNCERTAIN.values()), ids=tuple(UNCERTAIN))
def test_a_model_that_leaves_a_doubt_is_reported(before: str, word: str | None) -> None:
    conversion = asked(HEAD + before + TAIL)
    assert "graph_mode" not in conversion.after.decode()
    findings = [f for f in conversion.findings if f.rule == "UC634"]
    assert [f.tier for f in findings] == ([] if word is None else [Tier.MANUAL])
    assert all(word in f.message for f in findings if word)


SILENT = {
    "compiled": "net = Net().to(device)\nnet = torch.compile(net)\n",
    "compiled under another name": "net = Net().to(device)\nfast = torch.compile(net)\n",
    "compiled by a condition": "net = Net().to(device)\nif fast:\n    net = torch.compile(net)\n",
    "compiled when it is wrapped": "net = Net().to(device)\nddp = DDP(net)\nddp = torch.compile(ddp)\n",
    "compiled in place": "net = Net().to(device)\nnet.compile()\n",
    "never moved": "net = Net()\n",
    "unpacked": "net, ema = make_both()\nnet.to(device)\n",
}


@pytest.mark.parametrize("before", tuple(SILENT.values()), ids=tuple(SILENT))
def test_there_is_nothing_to_compile(before: str) -> None:
    assert not found(HEAD + before + TAIL, "UC634")


def test_a_model_that_only_infers_stays() -> None:
    assert not found(HEAD + "net = Net().to(device)\nprint(net(x))\n", "UC634")


def test_a_parameter_is_built_elsewhere() -> None:
    source = "import torch\n\n\ndef train(net):\n    net.to(device)\n"
    source += "".join(f"    {line}\n" for line in TAIL.splitlines())
    assert not found(source, "UC634")


def test_two_models_with_an_optimizer_each() -> None:
    source = HEAD + (
        "a = Net().to(device)\nb = Net().to(device)\noptimizer = torch.optim.Adam([*a.parameters(), *b.parameters()])\n"
        "b(a(x)).backward()\n"
    )
    after = asked(source).after.decode()
    assert "a = ai_device.graph_mode(Net().to(device))\nb = ai_device.graph_mode(Net().to(device))\n" in after


# -- on the command line, and run --------------------------------------------------------------------------------------

SCRIPT = """\
import warnings

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.inner(x)


@torch.compile(backend="inductor")
def double(x):
    return 2 * x


warnings.simplefilter("ignore")
torch.manual_seed(0)
net = Net().to("cpu")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 2):
    loss = net(x).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
print(sorted(net.state_dict()), type(net).__name__)
"""


def run_script(tree: Tree, plugins: Path, device: str | None) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("AI_DEVICE", "LOCAL_RANK")}
    environment["PYTHONPATH"] = os.pathsep.join([str(plugins), str(Path(__file__).parent)])
    if device is not None:
        environment["AI_DEVICE"] = device
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_converted_script_learns_as_before_everywhere(tree: Tree, tmp_path: Path) -> None:
    tree.write({"train.py": SCRIPT})
    before = run_script(tree, tmp_path, None)
    assert tree.run("convert", ".", "--graph", "--write").exit_code == 1
    assert 'net = ai_device.graph_mode(Net().to("cpu"))' in tree.read("train.py")
    assert run_script(tree, tmp_path, None) == before
    assert run_script(tree, tmp_path, "cpu") == before
    eager = write_plugin(tmp_path / "plugins", "mlu")  # no compiler: everything runs eagerly
    assert run_script(tree, eager, "mlu") == before
    assert tree.run("convert", ".", "--graph").stdout == ""


def test_the_settings_ask_for_graph_mode_as_well(tree: Tree) -> None:
    tree.write({"train.py": SCRIPT})
    assert tree.run("convert", ".").stdout == ""
    asked_for = tree.run("convert", ".", "--graph").stdout
    tree.write({"pyproject.toml": "[tool.uncuda]\ngraph = true\n"})
    assert tree.run("convert", ".").stdout == asked_for
