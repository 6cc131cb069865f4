"""``uncuda convert --tests``: conditions of tests and the devices that they run on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conversion import Tree, both_ways
from standin_backend import write_plugin

from codemods.engine.convert import Conversion, Options
from codemods.findings import Tier

TESTS = Options(families=frozenset({"tests"}))
HEAD = "import unittest\n\nimport pytest\nimport torch\n"


def asked(body: str, *, path: str = "test_net.py") -> Conversion:
    """The conversion of a test file with ``--tests``, which is the same both ways, and converts to itself."""
    source = body if "import torch" in body else f"{HEAD}\n\n{body}"
    conversion = both_ways(source, path=path, options=TESTS)
    again = both_ways(conversion.after, path=path, options=TESTS)
    assert again.after == conversion.after
    return conversion


def body_of(conversion: Conversion) -> str:
    lines = conversion.after.decode().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("import ", "from "))).strip("\n") + "\n"


def reported(conversion: Conversion) -> list[str]:
    return [finding.rule for finding in conversion.left if finding.tier is Tier.MANUAL]


# -- conditions ------------------------------------------------------------------------------------------------------

CONDITIONS = {
    "skipif": (
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\n'
        "def test_a():\n    torch.ones(1).cuda()\n",
        '@pytest.mark.skipif(not ai_device.is_available(), reason="no GPU")\n'
        "def test_a():\n    torch.ones(1).to(ai_device.device())\n",
    ),
    "skipIf and skipUnless": (
        'class TestA(unittest.TestCase):\n    @unittest.skipIf(not torch.cuda.is_available(), "no GPU")\n'
        "    def test_a(self):\n        torch.cuda.synchronize()\n\n"
        '    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")\n    def test_b(self):\n        pass\n',
        'class TestA(unittest.TestCase):\n    @unittest.skipIf(not ai_device.is_available(), "no GPU")\n'
        "    def test_a(self):\n        ai_device.synchronize()\n\n"
        '    @unittest.skipUnless(ai_device.is_available(), "no GPU")\n    def test_b(self):\n        pass\n',
    ),
    "number of devices": (
        '@unittest.skipIf(torch.cuda.device_count() < 2, "two GPUs")\ndef test_a():\n    torch.cuda.set_device(1)\n',
        '@unittest.skipIf(ai_device.device_count() < 2, "two GPUs")\ndef test_a():\n    ai_device.set_device(1)\n',
    ),
    "class": (
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\nclass TestA:\n'
        "    def test_a(self):\n        torch.ones(1).cuda()\n",
        '@pytest.mark.skipif(not ai_device.is_available(), reason="no GPU")\nclass TestA:\n'
        "    def test_a(self):\n        torch.ones(1).to(ai_device.device())\n",
    ),
    "skip inside": (
        'def test_a():\n    if not torch.cuda.is_available():\n        pytest.skip("no GPU")\n'
        "    torch.ones(1).cuda()\n",
        'def test_a():\n    if not ai_device.is_available():\n        pytest.skip("no GPU")\n'
        "    torch.ones(1).to(ai_device.device())\n",
    ),
    "skipTest": (
        "class TestA(unittest.TestCase):\n    def setUp(self):\n        if not torch.cuda.is_available():\n"
        '            self.skipTest("no GPU")\n\n    def test_a(self):\n        torch.ones(1).cuda()\n',
        "class TestA(unittest.TestCase):\n    def setUp(self):\n        if not ai_device.is_available():\n"
        '            self.skipTest("no GPU")\n\n    def test_a(self):\n        torch.ones(1).to(ai_device.device())\n',
    ),
    "SkipTest": (
        'def test_a():\n    if not torch.cuda.is_available():\n        raise unittest.SkipTest("no GPU")\n',
        'def test_a():\n    if not ai_device.is_available():\n        raise unittest.SkipTest("no GPU")\n',
    ),
    "pytestmark": (
        'pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\n\n\n'
        "def test_a():\n    torch.ones(1).cuda()\n",
        'pytestmark = pytest.mark.skipif(not ai_device.is_available(), reason="no GPU")\n\n\n'
        "def test_a():\n    torch.ones(1).to(ai_device.device())\n",
    ),
    "flag": (
        'HAS_CUDA = torch.cuda.is_available()\n\n\n@unittest.skipUnless(HAS_CUDA, "no GPU")\ndef test_a():\n    pass\n',
        'HAS_CUDA = ai_device.is_available()\n\n\n@unittest.skipUnless(HAS_CUDA, "no GPU")\ndef test_a():\n    pass\n',
    ),
    "marker": (
        'needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\n\n\n'
        "@needs_gpu\ndef test_a():\n    torch.ones(1).cuda()\n",
        'needs_gpu = pytest.mark.skipif(not ai_device.is_available(), reason="no GPU")\n\n\n'
        "@needs_gpu\ndef test_a():\n    torch.ones(1).to(ai_device.device())\n",
    ),
    "function that makes the condition": (
        'def requires_gpu(test):\n    return unittest.skipUnless(torch.cuda.is_available(), "no GPU")(test)\n\n\n'
        "@requires_gpu\ndef test_a():\n    pass\n",
        'def requires_gpu(test):\n    return unittest.skipUnless(ai_device.is_available(), "no GPU")(test)\n\n\n'
        "@requires_gpu\ndef test_a():\n    pass\n",
    ),
    "the other way round": (
        '@pytest.mark.skipif(torch.cuda.is_available(), reason="slow there")\ndef test_a():\n    pass\n',
        '@pytest.mark.skipif(ai_device.is_available(), reason="slow there")\ndef test_a():\n    pass\n',
    ),
}


@pytest.mark.parametrize(("before", "after"), tuple(CONDITIONS.values()), ids=tuple(CONDITIONS))
def test_a_condition_asks_for_the_selected_device(before: str, after: str) -> None:
    conversion = asked(before)
    assert body_of(conversion) == after
    assert reported(conversion) == []


@pytest.mark.parametrize(("before", "after"), tuple(CONDITIONS.values()), ids=tuple(CONDITIONS))
def test_without_the_option_conditions_stay(before: str, after: str) -> None:
    source = f"{HEAD}\n\n{before}"
    conversion = both_ways(source, path="test_net.py")
    assert not {f.rule for f in conversion.findings} & {"UC821", "UC822", "UC823", "UC824"}
    assert "is_available()" not in before or "torch.cuda.is_available()" in conversion.after.decode()


CUDAS_OWN = {
    "reason": (
        "",
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA kernel")\ndef test_a():\n',
        "kernel",
    ),
    "no CPU": ("", '@unittest.skipUnless(torch.cuda.is_available(), "not supported on CPU")\ndef test_a():\n', "CPU"),
    "name": ("", '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_cudnn_lstm():\n', "name"),
    "Triton": (
        "import triton\n",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_a():\n    triton.cdiv(3, 2)\n',
        "Triton",
    ),
    "kernel of this file": (
        "import triton\n\n\n@triton.jit\ndef add(x):\n    pass\n\n\ndef launch(x):\n    add[(1,)](x)\n",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_a():\n    launch(torch.ones(1).cuda())\n',
        "Triton",
    ),
    "package": (
        "import flash_attn\n",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_a():\n    flash_attn.flash_attn_func()\n',
        "uses",
    ),
    "graph": (
        "",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_a():\n    torch.cuda.CUDAGraph()\n',
        "CUDAGraph",
    ),
    "extension": (
        "from torch.utils import cpp_extension\n",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\n'
        'def test_a():\n    cpp_extension.load("a", ["a.cu"])\n',
        "cpp_extension",
    ),
    "operator": (
        "",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_a():\n    torch.ops.mine.add(1)\n',
        "torch.ops.mine.add",
    ),
    "function called after a kernel": (
        "from mylib import add_cuda\n",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\ndef test_a():\n    add_cuda(1)\n',
        "calls add_cuda",
    ),
    "version": (
        "",
        '@unittest.skipUnless(torch.cuda.is_available() and torch.version.cuda, "no GPU")\ndef test_a():\n    pass\n',
        "torch.version.cuda",
    ),
    "flag that another test needs": (
        "import triton\n\nHAS_CUDA = torch.cuda.is_available()\n",
        '@unittest.skipUnless(HAS_CUDA, "no GPU")\ndef test_a():\n    triton.cdiv(3, 2)\n\n\n'
        '@unittest.skipUnless(HAS_CUDA, "no GPU")\ndef test_b():\n    torch.ones(1).cuda()\n',
        "test_a uses Triton",
    ),
    "class with such a test": (
        "import triton\n",
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\nclass TestA(unittest.TestCase):\n'
        "    def test_a(self):\n        self._launch()\n\n    def _launch(self):\n        triton.cdiv(3, 2)\n",
        "TestA uses Triton",
    ),
    "set-up of such a class": (
        "import triton\n",
        "class TestA(unittest.TestCase):\n    def setUp(self):\n        if not torch.cuda.is_available():\n"
        '            self.skipTest("no GPU")\n\n    def test_a(self):\n        triton.cdiv(3, 2)\n',
        "TestA uses Triton",
    ),
    "module": (
        'import triton\n\npytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\n',
        "def test_a():\n    triton.cdiv(3, 2)\n",
        "the module uses Triton",
    ),
    "flag of a module": (
        "import triton\n\nHAS_CUDA = torch.cuda.is_available()\npytestmark = pytest.mark.skipif(not HAS_CUDA)\n",
        "def test_a():\n    triton.cdiv(3, 2)\n",
        "the module uses Triton",
    ),
    "expected failure": (
        "",
        "@pytest.mark.xfail(torch.cuda.is_available())\ndef test_a():\n    pass\n",
        "expects a failure",
    ),
    "text": (
        "",
        '@pytest.mark.skipif("not torch.cuda.is_available()")\ndef test_a():\n    pass\n',
        "its condition is a text",
    ),
}


@pytest.mark.parametrize(("head", "test", "word"), tuple(CUDAS_OWN.values()), ids=tuple(CUDAS_OWN))
def test_tests_of_what_is_cudas_own_stay_and_say_why(head: str, test: str, word: str) -> None:
    test = test if test.count("\n") > 2 or not test.endswith("():\n") else test + "    torch.ones(1).cuda()\n"
    source = f"{HEAD}{head}\n\n{test}"
    conversion = asked(source)
    assert conversion.after.decode() == source
    assert any(f.rule == "UC807" and f.tier is Tier.MANUAL and word in f.message for f in conversion.findings)


def test_a_marker_for_other_files_says_that_its_tests_are_not_seen() -> None:
    source = f'{HEAD}\nneeds_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\n'
    (finding,) = [f for f in asked(source, path="utils.py").findings if f.rule == "UC821"]
    assert finding.tier is Tier.REVIEW
    assert "other files" in finding.message


def test_the_class_of_a_test_keeps_it() -> None:
    source = (
        '@unittest.skipUnless(torch.cuda.is_available(), "CUDA kernel")\nclass TestA:\n'
        '    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")\n    def test_a(self):\n        pass\n'
    )
    conversion = asked(source)
    assert not conversion.changed
    assert [f.rule for f in conversion.findings if f.tier is Tier.MANUAL] == ["UC807", "UC807"]


def test_scripted_functions_inside_a_test_stay() -> None:
    source = (
        '@unittest.skipUnless(torch.cuda.is_available(), "no GPU")\nclass TestA:\n    @torch.jit.script\n'
        "    def move(x):\n        return x.cuda()\n"
    )
    conversion = asked(source)
    assert "return x.cuda()" in conversion.after.decode()
    assert "UC806" in reported(conversion)


# -- devices ---------------------------------------------------------------------------------------------------------

DEVICES = {
    "list": (
        '@pytest.mark.parametrize("device", ["cpu", "cuda"])\ndef test_a(device):\n    torch.ones(1, device=device)\n',
        '@pytest.mark.parametrize("device", ai_device.devices(["cpu", "cuda"]))\n'
        "def test_a(device):\n    torch.ones(1, device=device)\n",
    ),
    "tuple": (
        '@pytest.mark.parametrize("device", ("cpu", "cuda:0"))\ndef test_a(device):\n    pass\n',
        '@pytest.mark.parametrize("device", ai_device.devices(("cpu", "cuda:0")))\ndef test_a(device):\n    pass\n',
    ),
    "several arguments": (
        '@pytest.mark.parametrize("device, n", [("cpu", 1), ("cuda", 2)])\ndef test_a(device, n):\n    pass\n',
        '@pytest.mark.parametrize("device, n", [("cpu", 1), (str(ai_device.device()), 2)])\n'
        "def test_a(device, n):\n    pass\n",
    ),
    "guarded": (
        '@pytest.mark.parametrize("device", ["cpu"] + (["cuda"] if torch.cuda.is_available() else []))\n'
        "def test_a(device):\n    pass\n",
        '@pytest.mark.parametrize("device", ["cpu"] + '
        "([str(ai_device.device())] if ai_device.is_available() else []))\n"
        "def test_a(device):\n    pass\n",
    ),
    "guarded as a whole": (
        'DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]\n\n\n'
        '@pytest.mark.parametrize("device", DEVICES)\ndef test_a(device):\n    pass\n',
        'DEVICES = ["cpu", str(ai_device.device())] if ai_device.is_available() else ["cpu"]\n\n\n'
        '@pytest.mark.parametrize("device", DEVICES)\ndef test_a(device):\n    pass\n',
    ),
    "list under a name": (
        'DEVICES = ["cpu", "cuda"]\n\n\n@pytest.mark.parametrize("device", DEVICES)\ndef test_a(device):\n    pass\n',
        'DEVICES = ai_device.devices(["cpu", "cuda"])\n\n\n'
        '@pytest.mark.parametrize("device", DEVICES)\ndef test_a(device):\n    pass\n',
    ),
    "tuple under a name": (
        'DEVICES = ("cpu", "cuda")\n\n\n@pytest.mark.parametrize("device", DEVICES)\ndef test_a(device):\n    pass\n',
        'DEVICES = ai_device.devices(("cpu", "cuda"))\n\n\n'
        '@pytest.mark.parametrize("device", DEVICES)\ndef test_a(device):\n    pass\n',
    ),
    "appended": (
        'devices = ["cpu"]\nif torch.cuda.is_available():\n    devices.append("cuda")\n\n\n'
        '@pytest.mark.parametrize("device", devices)\ndef test_a(device):\n    pass\n',
        'devices = ["cpu"]\nif ai_device.is_available():\n    devices.append(str(ai_device.device()))\n\n\n'
        '@pytest.mark.parametrize("device", devices)\ndef test_a(device):\n    pass\n',
    ),
    "param with a mark": (
        'gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")\n\n\n'
        '@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu)])\n'
        "def test_a(device):\n    pass\n",
        'gpu = pytest.mark.skipif(not ai_device.is_available(), reason="no GPU")\n\n\n'
        '@pytest.mark.parametrize("device", ["cpu", pytest.param(str(ai_device.device()), marks=gpu)])\n'
        "def test_a(device):\n    pass\n",
    ),
    "fixture": (
        '@pytest.fixture(params=["cpu", "cuda"])\ndef device(request):\n    return request.param\n',
        '@pytest.fixture(params=ai_device.devices(["cpu", "cuda"]))\ndef device(request):\n    return request.param\n',
    ),
    "loop": (
        'def test_a():\n    for device in ["cpu"] + (["cuda"] if torch.cuda.is_available() else []):\n'
        "        torch.ones(1, device=device)\n",
        'def test_a():\n    for device in ["cpu"] + ([str(ai_device.device())] if ai_device.is_available() else []):\n'
        "        torch.ones(1, device=device)\n",
    ),
    "comparison whose branch is portable": (
        '@pytest.mark.parametrize("device", ["cpu", "cuda"])\n'
        "def test_a(device):\n    x = torch.ones(1, device=device)\n"
        '    if device == "cuda":\n        torch.cuda.synchronize()\n    tol = 1e-3 if device == "cuda" else 1e-5\n',
        '@pytest.mark.parametrize("device", ai_device.devices(["cpu", "cuda"]))\n'
        "def test_a(device):\n    x = torch.ones(1, device=device)\n    if device == ai_device.device_type():\n"
        "        ai_device.synchronize()\n    tol = 1e-3 if device == ai_device.device_type() else 1e-5\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), tuple(DEVICES.values()), ids=tuple(DEVICES))
def test_the_selected_device_is_among_the_devices_of_a_test(before: str, after: str) -> None:
    conversion = asked(before)
    assert body_of(conversion) == after
    assert reported(conversion) == []


KEPT_LISTS = {
    "comparison": '    if device == "cuda":\n        mylib.tune()\n',
    "comparison with an index": '    assert device != "cuda:0" or mylib.works()\n',
    "branch for an index": '    if device == "cuda:0":\n        torch.cuda.synchronize()\n',
    "membership": '    if device in ("cuda", "xpu"):\n        mylib.tune()\n',
    "prefix": '    if device.startswith("cuda"):\n        mylib.tune()\n',
    "key": '    tolerance = {"cpu": 1e-5, "cuda": 1e-3}[device]\n',
    "subject": "    torch.cuda.CUDAGraph()\n",
}


@pytest.mark.parametrize("body", tuple(KEPT_LISTS.values()), ids=tuple(KEPT_LISTS))
def test_a_list_stays_where_something_depends_on_its_names(body: str) -> None:
    test = f'@pytest.mark.parametrize("device", ["cpu", "cuda"])\ndef test_a(device):\n{body}'
    conversion = asked(test)
    assert '["cpu", "cuda"]' in body_of(conversion)
    assert "ai_device.devices" not in body_of(conversion)
    assert "UC109" in reported(conversion)


def test_a_list_of_two_tests_stays_for_both() -> None:
    source = (
        'DEVICES = ["cpu", "cuda"]\n\n\n@pytest.mark.parametrize("device", DEVICES)\n'
        'def test_a(device):\n    pass\n\n\n@pytest.mark.parametrize("device", DEVICES)\n'
        'def test_b(device):\n    if device == "cuda":\n        mylib.tune()\n'
    )
    assert not asked(source).changed


def test_lists_of_other_things_stay() -> None:
    source = '@pytest.mark.parametrize("name", ["cpu", "cuda"])\ndef test_a(name):\n    pass\n'
    assert not asked(source).changed


def test_loops_of_programs_stay() -> None:
    source = 'import torch\n\nfor device in ["cpu", "cuda"]:\n    torch.ones(1, device=device)\n'
    assert not asked(source, path="train.py").changed


# -- conditions that are imported --------------------------------------------------------------------------------------


def test_a_condition_of_a_library_is_reported_with_what_it_has_beside_it() -> None:
    source = "from accelerate.test_utils import require_multi_gpu\n\n\n@require_multi_gpu\ndef test_a():\n    pass\n"
    (finding,) = both_ways(source, options=TESTS).findings
    assert (finding.rule, finding.tier) == ("UC823", Tier.MANUAL)
    assert "accelerate has require_multi_device" in finding.message


def test_a_condition_of_the_repository_is_noted() -> None:
    source = "from .utils import requires_cuda\n\n\n@requires_cuda\ndef test_a():\n    pass\n"
    (finding,) = both_ways(source, options=TESTS).findings
    assert (finding.rule, finding.tier) == ("UC823", Tier.NOTE)


def test_the_tests_of_torch_itself_are_reported() -> None:
    source = "from torch.testing._internal.common_cuda import TEST_CUDA, tf32_on_and_off\n"
    (finding,) = both_ways(source, options=TESTS).findings
    assert finding.rule == "UC824"
    assert finding.message.endswith(": TEST_CUDA")


# -- on the command line, and run --------------------------------------------------------------------------------------

SUITE = """\
import unittest

import pytest
import torch

HAS_CUDA = torch.cuda.is_available()
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.mark.skipif(not HAS_CUDA, reason="needs a GPU")
def test_on_the_device():
    assert torch.device("cuda").type != "cpu"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_pair(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA")
    assert torch.device(device).type == device


@pytest.mark.parametrize("device", DEVICES)
def test_listed(device):
    assert torch.device(device).type == device


class TestOld(unittest.TestCase):
    @unittest.skipIf(torch.cuda.device_count() < 2, "two GPUs")
    def test_two(self):
        assert torch.device("cuda:1").index == 1
"""


def run_suite(tree: Tree, plugins: Path, device: str | None) -> str:
    """The last line of pytest on the tree."""
    environment = {name: value for name, value in os.environ.items() if name not in ("AI_DEVICE", "LOCAL_RANK")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(plugins), str(Path(__file__).parent)])}
    if device is not None:
        environment["AI_DEVICE"] = device
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "test_net.py"]
    done = subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r" in [\d.]+s.*", "", done.stdout.strip().splitlines()[-1])


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="counts what is skipped without a GPU")
def test_a_converted_suite_runs_where_it_did_and_on_the_selected_device(tree: Tree, tmp_path: Path) -> None:
    tree.write({"test_net.py": SUITE})
    before = run_suite(tree, tmp_path, None)
    assert before == "2 passed, 3 skipped"

    assert tree.run("convert", ".", "--tests", "--write").exit_code == 1
    assert "torch.cuda" not in tree.read("test_net.py")
    assert run_suite(tree, tmp_path, None) == before
    assert run_suite(tree, tmp_path, "cpu") == "2 passed, 2 skipped"  # the CPU once
    assert run_suite(tree, write_plugin(tmp_path / "plugins", "npu"), "npu") == "6 passed"

    again = tree.run("convert", ".", "--tests")
    assert again.stdout == ""


def test_the_settings_ask_for_tests_as_well(tree: Tree) -> None:
    tree.write({"test_net.py": SUITE, "pyproject.toml": "[tool.uncuda]\ntests = true\n"})
    asked_for = tree.run("convert", ".").stdout
    assert "+HAS_CUDA = ai_device.is_available()" in asked_for
    tree.write({"pyproject.toml": "[tool.uncuda]\ntests = false\n"})
    assert tree.run("convert", ".", "--tests").stdout == asked_for
    assert "+HAS_CUDA" not in tree.run("convert", ".").stdout
