"""Places that are hard to see or easy to get wrong, as real code has them."""

from __future__ import annotations

import ast
import codecs
import re

import pytest
from conversion import after, body_after, both_ways, converted, findings_of, is_left, rules_of

from codemods.findings import Tier
from codemods.source.document import SourceError

# -- classes and functions of their own called cuda ------------------------------------------------------------------


def test_a_call_of_a_class_with_its_own_cuda_is_reported() -> None:
    source = (
        "class Batch:\n    def cuda(self):\n        return self\n\n\nbatch = Batch()\nbatch.cuda()\nBatch().cuda(0)\n"
    )
    assert is_left(source)
    assert [finding.line for finding in findings_of(source, "UC106")] == [7, 8]


def test_a_call_in_the_class_with_its_own_cuda_is_reported() -> None:
    source = "class Batch:\n    def cuda(self):\n        return self\n\n    def go(self):\n        return self.cuda()\n"
    assert is_left(source)
    assert findings_of(source, "UC106")


def test_the_cuda_of_the_base_class_is_reported() -> None:
    source = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def cuda(self, device=None):\n"
        "        super().cuda(device)\n        return self\n"
    )
    assert is_left(source)
    assert findings_of(source, "UC106")


def test_other_receivers_beside_such_a_class_are_converted() -> None:
    source = "class Batch:\n    def cuda(self):\n        self.x = self.x.cuda()\n\n\nmodel = model.cuda()\n"
    assert "self.x = self.x.to(ai_device.device())" in after(source)
    assert "model = model.to(ai_device.device())" in after(source)


def test_an_annotated_parameter_tells_the_class() -> None:
    source = (
        "class Batch:\n    def cuda(self):\n        return self\n\n"
        "\ndef f(b: Batch, c: 'Batch'):\n    b.cuda()\n    c.cuda()\n"
    )
    assert is_left(source)


def test_a_function_of_a_module_is_left() -> None:
    assert is_left("import mylib\n\nmylib.cuda(x)\n")
    assert is_left("import mylib as m\n\nm.cuda()\n")


def test_a_function_called_cuda_is_left() -> None:
    assert is_left("def cuda(x):\n    return x\n\n\ncuda(1)\n")


# -- cuda as the program's own name ----------------------------------------------------------------------------------

OWN_NAMES = {
    "variable": "cuda = True\nif cuda:\n    print(cuda)\n",
    "variable of the guard": "cuda = flag and not no_cuda\n",
    "parameter": "def f(cuda=False):\n    return not cuda\n",
    "attribute that is set": "self.cuda = True\nargs.cuda = not args.no_cuda\nopt.use_cuda = 1\n",
    "attribute that is read": (
        "if args.cuda:\n    pass\nif self.cuda and opt.cuda:\n    pass\nx = 1 if args.cuda else 2\n"
    ),
    "attribute that is passed": "run(args.cuda)\nrun(cuda=args.cuda)\nrun(self.cuda, x)\n",
    "attribute that is compared": "assert args.cuda == 1\n",
    "keyword": "run(cuda=True)\n",
    "dictionary": "opts = {'cuda': True, 'use_cuda': False}\nprint(opts['cuda'], opts.get('cuda'))\n",
    "names around it": "use_cuda = cuda_id = my_cuda_thing = nocuda = 1\n",
    "function name": "def load_cuda_ext():\n    pass\n\n\nload_cuda_ext()\n",
    "class name": "class CudaTimer:\n    pass\n\n\nCudaTimer()\n",
    "module name": "import my_cuda_ops\nfrom ops.cuda import gemm\nfrom .cuda import thing\n",
    "option": "parser.add_argument('--cuda', action='store_true')\nparser.add_argument('--no-cuda', dest='cuda')\n",
    "method that is not torch's": "with cfg.cuda_guard():\n    cfg.cuda_thing()\n",
    "del": "del args.cuda\n",
    "global": "def f():\n    global cuda\n    cuda = 1\n",
    "formatted": "print(f'{args.cuda} {use_cuda}')\n",
}


@pytest.mark.parametrize("source", tuple(OWN_NAMES.values()), ids=tuple(OWN_NAMES))
def test_the_programs_own_names_are_left_without_a_word(source: str) -> None:
    conversion = both_ways(source)
    assert conversion.after == source.encode()
    assert conversion.findings == ()


def test_a_flag_takes_the_answer_for_the_selected_device() -> None:
    source = (
        "import torch\n\n\nclass Trainer:\n    def __init__(self):\n        self.cuda = torch.cuda.is_available()\n"
    )
    assert "        self.cuda = ai_device.is_available()\n" in after(source)


def test_a_method_call_on_an_attribute_called_cuda() -> None:
    """``dgl.cuda.GPUCache`` and ``self.torch.cuda.empty_cache()`` are other objects' business."""
    for source in ("import dgl\n\ndgl.cuda.GPUCache(1)\n", "self.torch.cuda.empty_cache()\n", "self.cuda.sync()\n"):
        assert is_left(source)


# -- .cuda that is not called ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\nxs = list(map(torch.Tensor.cuda, xs))\n",
        "import torch\n\nmove = torch.nn.Module.cuda\n",
        "import torch\n\nf = {'gpu': torch.Tensor.cuda}\n",
        "xs = map(x.cuda, ys)\n",
        "from functools import partial\n\nmove = partial(model.cuda, 0)\n",
    ],
)
def test_a_method_that_is_handed_on_is_reported(source: str) -> None:
    assert is_left(source)
    assert findings_of(source, "UC105")


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n\n\n@pytest.mark.cuda\ndef test_a():\n    pass\n",
        "import cupy as cp\n\nd = cp.cuda.Device\n",
        "if hasattr(x, 'cuda'):\n    pass\n",
    ],
)
def test_other_uses_of_the_attribute_are_left(source: str) -> None:
    assert is_left(source)
    both_ways(source)


# -- patches and look-ups --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        "monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)",
        "mock.patch.object(torch.cuda, 'is_available', return_value=False)",
        "setattr(torch.cuda, 'empty_cache', f)",
        "run(torch.cuda)",
        "module = getattr(torch, 'cuda')",
        "torch.cuda.is_available = lambda: True",
        "torch.cuda.synchronize = f",
        "m = torch.cuda if x else torch.xpu",
    ],
)
def test_the_module_as_a_value_is_reported(use: str) -> None:
    source = f"import torch\n\n{use}\n"
    assert is_left(source)
    assert findings_of(source, "UC504")


@pytest.mark.parametrize(
    "use",
    [
        "module = getattr(torch, device_type, torch.cuda)",
        "module = getattr(torch, device.type, torch.cuda)",
    ],
)
def test_a_lookup_with_cuda_as_the_fallback_is_agnostic_already(use: str) -> None:
    source = f"import torch\n\n{use}\nmodule.empty_cache()\n"
    assert is_left(source)
    assert all(finding.tier is Tier.NOTE for finding in converted(source).findings)


@pytest.mark.parametrize(
    "source",
    [
        "with mock.patch('torch.cuda.is_available', return_value=False):\n    pass\n",
        "@mock.patch('torch.cuda.device_count')\ndef test_a(m):\n    pass\n",
        "monkeypatch.setattr('torch.cuda.is_available', f)\n",
        "@patch('torch.cuda.FloatTensor')\ndef test_a(m):\n    pass\n",
    ],
)
def test_names_that_are_patched_by_text_are_left(source: str) -> None:
    assert is_left(source)


def test_agnostic_code_is_left() -> None:
    source = (
        "import torch\n\n"
        "kind = torch.accelerator.current_accelerator().type if hasattr(torch, 'accelerator') else 'cuda'\n"
    )
    assert is_left(source)


# -- numba, cupy, pycuda ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        (
            "from numba import cuda\n\n\n@cuda.jit\ndef k(x):\n"
            "    i = cuda.grid(1)\n    x[i] = 1\n\n\nk[1, 2](cuda.to_device(a))\n"
        ),
        "import numba.cuda\n\n\n@numba.cuda.jit('void(int32)', device=True)\ndef k(x):\n    pass\n",
        "import pycuda.driver as cuda\nimport pycuda.autoinit\n\ncuda.memcpy_htod(a, b)\n",
        "import cupy\n\nk = cupy.RawKernel(code, 'f')\ncupy.cuda.Stream.null.synchronize()\n",
    ],
)
def test_other_libraries_of_cuda_are_reported_at_their_import_and_left(source: str) -> None:
    assert is_left(source)
    assert findings_of(source, "UC801")


# -- decorators ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("@torch.cuda.amp.custom_fwd\ndef f(ctx):\n    pass\n", "@ai_device.custom_fwd\ndef f(ctx):\n    pass\n"),
        ("@torch.cuda.amp.custom_bwd\ndef f(ctx):\n    pass\n", "@ai_device.custom_bwd\ndef f(ctx):\n    pass\n"),
        (
            "@torch.cuda.amp.custom_fwd(cast_inputs=torch.float16)\ndef f(ctx):\n    pass\n",
            "@ai_device.custom_fwd(cast_inputs=torch.float16)\ndef f(ctx):\n    pass\n",
        ),
        (
            "@torch.cuda.amp.autocast(enabled=False)\ndef f():\n    pass\n",
            "@ai_device.autocast(enabled=False)\ndef f():\n    pass\n",
        ),
        ("@torch.cuda.amp.autocast(False)\ndef f():\n    pass\n", "@ai_device.autocast(False)\ndef f():\n    pass\n"),
        (
            "@torch.amp.autocast('cuda')\ndef f():\n    pass\n",
            "@torch.amp.autocast(ai_device.device_type())\ndef f():\n    pass\n",
        ),
        (
            "@torch.amp.autocast(device_type='cuda')\ndef f():\n    pass\n",
            "@torch.amp.autocast(device_type=ai_device.device_type())\ndef f():\n    pass\n",
        ),
        (
            "@torch.amp.custom_fwd(device_type='cuda')\ndef f(ctx):\n    pass\n",
            "@torch.amp.custom_fwd(device_type=ai_device.device_type())\ndef f(ctx):\n    pass\n",
        ),
    ],
)
def test_decorators(before: str, expected: str) -> None:
    both_ways("import torch\n\n" + before)
    assert body_after("import torch\n\n" + before) == expected


@pytest.mark.parametrize(
    "decorator",
    [
        "@pytest.mark.skipif(not torch.cuda.is_available(), reason='a')",
        "@pytest.mark.skipif(torch.cuda.is_available(), reason='a')",
        "@unittest.skipUnless(torch.cuda.is_available(), 'a')",
        "@unittest.skipIf(not torch.cuda.is_available(), 'a')",
        "@pytest.mark.skipif(torch.cuda.device_count() < 2, reason='a')",
        "@pytest.mark.parametrize('device', ['cpu', 'cuda'])",
    ],
)
def test_conditions_of_tests_are_left_and_said(decorator: str) -> None:
    source = f"import pytest\nimport torch\nimport unittest\n\n\n{decorator}\ndef test_a():\n    pass\n"
    assert is_left(source, path="test_a.py")
    assert {finding.tier for finding in converted(source, path="test_a.py").findings} <= {Tier.NOTE, Tier.MANUAL}
    assert converted(source, path="test_a.py").findings


# -- texts -----------------------------------------------------------------------------------------------------------


def test_code_that_is_executed_is_reported() -> None:
    source = "CODE = 'x = x.cuda()'\nexec(CODE)\nexec('y.cuda()')\n"
    assert is_left(source)
    assert [finding.line for finding in findings_of(source, "UC809")] == [2, 3]


@pytest.mark.parametrize(
    "source",
    [
        '"""Runs on cuda:\n\n>>> x.cuda()\n"""\n',
        'EXAMPLE = """\n>>> import torch\n>>> pipe = pipe.to("cuda")\n"""\n',
        "# x.cuda()\nprint('no cuda device')\n",
        "log.info('using cuda:0 of %s', name)\n",
        "raise RuntimeError('CUDA is required')\n",
        "path = 'csrc/cuda/kernel.cu'\n",
        "name = f'cuda-{version}.tar.gz'\n",
        "print(f'cuda:{i}')\n",
        "parser.add_argument('--gpu', help='cuda')\n",
        "x = {'cuda': 1}['cuda']\n",
        "assert name != 'cudaMalloc'\n",
        "label = 'cuda'\n",
        "def f():\n    'cuda'\n",
        "x = b'cuda'\n",
    ],
)
def test_texts_are_left(source: str) -> None:
    assert is_left(source)
    both_ways(source)


@pytest.mark.parametrize(
    "source",
    [
        "import os\n\nos.system('nvidia-smi')\n",
        "import subprocess\n\nsubprocess.run(['nvidia-smi', '-L'])\n",
        "import subprocess\n\nsubprocess.check_output('nvidia-smi --query-gpu=memory.free', shell=True)\n",
        "import os\n\nos.popen('nvidia-smi').read()\n",
    ],
)
def test_commands_of_nvidia_are_reported(source: str) -> None:
    assert is_left(source)
    assert findings_of(source, "UC703")


def test_kernels_in_texts_are_reported() -> None:
    source = 'SOURCE = r"""\n#include <cuda.h>\n__global__ void f(float* x) {}\n"""\n'
    assert is_left(source)
    assert findings_of(source, "UC805")


# -- f-strings -------------------------------------------------------------------------------------------------------

INSIDE_F_STRINGS = [
    "print(f'{torch.cuda.memory_allocated() / 2**20:.1f} MB')\n",
    'print(f"{torch.cuda.get_device_name(0)}")\n',
    "print(f'{x.cuda()} {y.to(\"cuda\")}')\n",
    "print(f\"{torch.device('cuda')}\")\n",
    "print(f\"{torch.device('cuda:1')} {'a' if x.is_cuda else 'b'}\")\n",
    "print(f\"{'cuda' if torch.cuda.is_available() else 'cpu'}\")\n",
    "print(f\"{torch.device('cuda' if torch.cuda.is_available() else 'cpu')}\")\n",
    "print(f\"{torch.zeros(1, device='cuda:%d' % i)}\")\n",
    'print(f"{load(torch.load(p))}")\n',
    "print(f'''{torch.cuda.device_count()}\n{torch.cuda.current_device()}''')\n",
    "print(f'{torch.cuda.is_available()=} {torch.cuda.device_count()!r:>4}')\n",
    "print(f'{torch.cuda.device_count():{torch.cuda.device_count()}}')\n",
    "print(rf'\\d{torch.cuda.device_count()}' F'{torch.cuda.device_count()}')\n",
    "print(f\"{torch.autocast('cuda')}\")\n",
    "print(f\"{dist.init_process_group(backend='nccl')}\")\n",
    "print(f\"{dist.init_process_group(backend='cpu:gloo,cuda:nccl')}\")\n",
    "print(f\"{x.type('torch.cuda.FloatTensor')}\")\n",
    "print(f\"{torch.load('a.pt')}\")\n",
    "print(f\"{torch.load('a.pt')} {torch.set_rng_state(s)}\")\n",
]


@pytest.mark.parametrize("use", INSIDE_F_STRINGS)
def test_inside_an_f_string_no_quote_is_added(use: str) -> None:
    """Before Python 3.12 an f-string cannot hold its own kind of quote, and no backslash."""
    source = "import torch\nimport torch.distributed as dist\n\n" + use
    conversion = both_ways(source)
    ast.parse(conversion.after, feature_version=(3, 8))
    for edit in conversion.edits:
        inside = source[: edit.start].count("\n") >= 3
        kept = source.encode()[edit.start : edit.end].decode()
        assert not inside or set(re.findall(r"['\"\\]", edit.replacement)) <= set(re.findall(r"['\"\\]", kept))


def test_a_converted_value_in_an_f_string_keeps_layout_and_format() -> None:
    source = "import torch\n\nprint(f'{torch.cuda.memory_allocated() / 2**20:.1f} MB')\n"
    assert body_after(source) == "print(f'{ai_device.memory_allocated() / 2**20:.1f} MB')\n"


# -- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("if c: x = x.cuda()\n", "if c: x = x.to(ai_device.device())\n"),
        ("if c: x = x.cuda(); y = y.cuda()\n", "if c: x = x.to(ai_device.device()); y = y.to(ai_device.device())\n"),
        ("a = 1; x = x.cuda(); b = 2\n", "a = 1; x = x.to(ai_device.device()); b = 2\n"),
        ("for x in y: x.cuda()\n", "for x in y: x.to(ai_device.device())\n"),
        ("x = x \\\n    .cuda()\n", "x = x \\\n    .to(ai_device.device())\n"),
        ("x = x.cuda(\n    # why\n)\n", None),
        ("x = x.cuda(\n    non_blocking=True,\n)\n", "x = x.to(\n    ai_device.device(), non_blocking=True,\n)\n"),
        ("x = x.cuda(0,)\n", "x = x.to(ai_device.device(0),)\n"),
        ("x = x.cuda(non_blocking=True,)\n", "x = x.to(ai_device.device(), non_blocking=True,)\n"),
        ("x = x.cuda(\n    gpu,\n    non_blocking=True,\n)\n", ("x = x.to(\n    ai_device.device(gpu),\n"
"    non_blocking=True,\n)\n")),
        ("x = x.cuda(\n    gpu,  # which\n    non_blocking=True,  # why\n)\n",
         "x = x.to(\n    ai_device.device(gpu),  # which\n    non_blocking=True,  # why\n)\n"),
        ("x = (x\n     .float()\n     .cuda())\n", "x = (x\n     .float()\n     .to(ai_device.device()))\n"),
        ("x = x.cuda ( )\n", None),
        ("x = (f(1,  # one\n      2)).cuda()\n", "x = (f(1,  # one\n      2)).to(ai_device.device())\n"),
        ("xs = [x.cuda() for x in xs if x]\n", "xs = [x.to(ai_device.device()) for x in xs if x]\n"),
        ("f = lambda x: x.cuda()\n", "f = lambda x: x.to(ai_device.device())\n"),
        ("x = a.cuda() if c else b.cuda()\n", "x = a.to(ai_device.device()) if c else b.to(ai_device.device())\n"),
        ("x = x.cuda().cuda()\n", "x = x.to(ai_device.device()).to(ai_device.device())\n"),
        ("x = f(x.cuda(i.cuda()))\n", "x = f(x.to(ai_device.device(i.to(ai_device.device()))))\n"),
        ("x.cuda()[0] += y\n", "x.to(ai_device.device())[0] += y\n"),
        ("return_ = await_(x).cuda()\n", "return_ = await_(x).to(ai_device.device())\n"),
        ("x = -x.cuda()\n", "x = -x.to(ai_device.device())\n"),
        ("x, y = x.cuda(), y.cuda()\n", "x, y = x.to(ai_device.device()), y.to(ai_device.device())\n"),
        ("(x := y.cuda())\n", "(x := y.to(ai_device.device()))\n"),
        ("x = y.cuda() @ z.cuda().t()\n", "x = y.to(ai_device.device()) @ z.to(ai_device.device()).t()\n"),
        ("x = {**f(x.cuda())}\n", "x = {**f(x.to(ai_device.device()))}\n"),
        ("x = x.cuda(device=i)\n", "x = x.to(ai_device.device(i))\n"),
        ("x = x.cuda(non_blocking=b, device=i)\n", "x = x.to(ai_device.device(i), non_blocking=b)\n"),
        ("x = x.cuda(i, True)\n", "x = x.to(ai_device.device(i), non_blocking=True)\n"),
        ("x = x.cuda('cuda:1')\n", "x = x.to(ai_device.device(1))\n"),
        ("x = x.cuda(f'cuda:{i}')\n", "x = x.to(ai_device.device(i))\n"),
        ("x = x.cuda(None)\n", "x = x.to(ai_device.device())\n"),
        ("x = x.cuda(a if b else None)\n", "x = x.to(ai_device.device(a if b else None))\n"),
        ("x = x.cuda(y.get_device())\n", "x = x.to(y.device)\n"),
        ("x = x.cuda(memory_format=m)\n", "x = x.to(ai_device.device(), memory_format=m)\n"),
    ],
)  # fmt: skip
def test_moves(before: str, expected: str | None) -> None:
    conversion = both_ways(before)
    result = conversion.after.decode()
    ast.parse(result)
    assert ".cuda" not in result
    if expected is not None:
        assert body_after(before) == expected


@pytest.mark.parametrize(
    "before", ["x = x.cuda(*args)\n", "x = x.cuda(**kw)\n", "x = x.cuda(0, True, None, 4)\n", "x = x.cuda(foo=1)\n"]
)
def test_moves_whose_arguments_are_not_known_are_reported(before: str) -> None:
    assert is_left(before)
    assert findings_of(before, "UC101")


def test_annotations() -> None:
    source = (
        "from __future__ import annotations\n\nimport torch\n\n\n"
        "def f(s: torch.cuda.Stream, e: torch.cuda.Event | None = None) -> torch.cuda.FloatTensor:\n"
        "    x: list[torch.cuda.Stream] = []\n"
    )
    result = after(source)
    assert "def f(s: ai_device.Stream, e: ai_device.Event | None = None) -> ai_device.FloatTensor:\n" in result
    assert "    x: list[ai_device.Stream] = []\n" in result


def test_annotations_in_quotes_keep_their_import() -> None:
    source = "import torch\n\n\ndef f(s: 'torch.cuda.Stream'):\n    torch.cuda.synchronize()\n"
    result = after(source)
    assert "import torch\n" in result
    assert "s: 'torch.cuda.Stream'" in result


def test_lambdas_as_map_location() -> None:
    for before, expected in (
        ("lambda storage, loc: storage.cuda(0)", "ai_device.device(0)"),
        ("lambda s, l: s.cuda(args.gpu)", "ai_device.device(args.gpu)"),
        ("lambda storage, loc: storage.cuda()", "ai_device.device()"),
        ("lambda storage, loc: storage", "lambda storage, loc: storage"),
        ("lambda s, l: restore(s, 'cpu')", "lambda s, l: restore(s, 'cpu')"),
    ):
        source = f"import torch\n\nx = torch.load(p, map_location={before})\n"
        assert body_after(source) == f"x = torch.load(p, map_location={expected})\n"
        both_ways(source)


def test_indices_in_other_types() -> None:
    source = "import torch\n\nif x.get_device() == -1:\n    pass\ndevice = torch.device(args.gpu)\n"
    assert "if x.get_device() == -1:" in after(source)


def test_default_tensor_types() -> None:
    for before, expected in (
        (
            "torch.set_default_tensor_type('torch.cuda.FloatTensor')",
            "ai_device.set_default_tensor_type('torch.cuda.FloatTensor')",
        ),
        ("torch.set_default_device('cuda')", "torch.set_default_device(ai_device.device())"),
    ):
        assert body_after(f"import torch\n\n{before}\n") == f"{expected}\n"
    source = "import torch\n\ntorch.set_default_tensor_type(torch.cuda.HalfTensor)\n"
    assert body_after(source) == 'ai_device.set_default_tensor_type("torch.cuda.HalfTensor")\n'


def test_conditional_import_of_amp() -> None:
    source = (
        "try:\n    from torch.cuda.amp import autocast, GradScaler\n"
        "except ImportError:\n    autocast = GradScaler = None\n"
    )
    assert after(source) == source.replace("torch.cuda.amp", "ai_device")


def test_old_and_new_autocast_by_version() -> None:
    source = "import torch\n\nautocast = torch.cuda.amp.autocast if torch.__version__ >= '1.6' else dummy\n"
    assert body_after(source) == "autocast = ai_device.autocast if torch.__version__ >= '1.6' else dummy\n"


# -- layouts ---------------------------------------------------------------------------------------------------------

PLAIN = "import torch\n\n\ndef f(x):\n    if x:\n        return x.cuda()  # é\n"
PLAIN_AFTER = (
    "import torch\n\nimport ai_device\n\n\ndef f(x):\n    if x:\n        return x.to(ai_device.device())  # é\n"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("indent", ["    ", "\t", "  ", " "])
@pytest.mark.parametrize("ends", [True, False])
def test_layouts(newline: str, bom: bytes, indent: str, ends: bool) -> None:
    def laid_out(text: str) -> bytes:
        text = text.replace("    ", indent).replace("\n", newline)
        return bom + (text if ends else text.removesuffix(newline)).encode()

    assert both_ways(laid_out(PLAIN)).after == laid_out(PLAIN_AFTER)


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "cp1252", "euc-jp", "utf-8", "utf_8", "UTF8"])
def test_declared_encodings_are_kept(encoding: str) -> None:
    word = "é" if encoding in ("latin-1", "cp1252") else "把"
    source = f"# -*- coding: {encoding} -*-\nimport torch\n\nx = '{word}', x.cuda()  # {word}\n".encode(encoding)
    expected = source.replace(b".cuda()", b".to(ai_device.device())").replace(
        b"import torch\n", b"import torch\n\nimport ai_device\n"
    )
    assert both_ways(source).after == expected


UNPRINTABLE = {
    "blanks at the end behind an empty line": (
        "import torch\n\nx = x.cuda()\n\n   ",
        "x = x.to(ai_device.device())\n\n   ",
    ),
    "form feed at the start": ("\fimport torch\n\nx = x.cuda()\n", "x = x.to(ai_device.device())\n"),
    "backslash as the first line": ("\\\nimport torch\n\nx = x.cuda()\n", "x = x.to(ai_device.device())\n"),
    "carriage returns": ("import torch\r\rx = x.cuda()\r", "x = x.to(ai_device.device())\r"),
}


@pytest.mark.parametrize(("source", "end"), tuple(UNPRINTABLE.values()), ids=tuple(UNPRINTABLE))
def test_what_libcst_does_not_print_back_is_converted_by_statement(source: str, end: str) -> None:
    result = converted(source).after
    assert result.decode().endswith(end)
    assert result.startswith(source[:8].encode())
    ast.parse(result)


def test_what_cannot_be_cut_out_nor_printed_back_is_an_error_that_names_the_file() -> None:
    """Never a guess: nothing is written."""
    with pytest.raises(SourceError, match=r"train\.py"):
        converted("\fx = x.cuda()\n\n   ", whole_module=True)


def test_comments_inside_calls_stay() -> None:
    source = (
        "import torch\n\nmodel = DDP(\n    model,  # the model\n    device_ids=[rank],  # one each\n"
        "    # and out\n    output_device=rank,\n)\n"
    )
    result = after(source)
    assert all(comment in result for comment in ("# the model", "# one each", "# and out"))
    both_ways(source)


def test_a_comment_that_would_be_lost_keeps_the_code() -> None:
    """A replacement that takes no comments along must not swallow them."""
    source = (
        "import torch\n\ndevice = torch.device(\n    'cuda'  # the first card\n    if torch.cuda.is_available()\n"
        "    else 'cpu'  # slow\n)\n"
    )
    result = after(source)
    assert "# the first card" in result
    assert "# slow" in result


def test_a_comment_in_a_device_call_is_kept() -> None:
    result = after("import torch\n\nd = torch.device(  # first\n    'cuda:0'  # card\n)\n")
    assert "# first" in result
    assert "# card" in result


@pytest.mark.parametrize(
    "call",
    [
        "x.cuda(\n    # why\n)",
        "x.cuda(  # why\n)",
        "x.cuda(\n    non_blocking=True,  # why\n)",
        "x.cuda(\n    0,  # why\n)",
        "x.cuda(\n    non_blocking=True,\n    # why\n)",
        "torch.load(\n    p,  # why\n)",
        "torch.load(\n    p  # why\n)",
        "torch.load(  # why\n    p,\n    weights_only=True,\n)",
        "torch.load(\n    p,  # why\n    weights_only=True,\n)",
        "torch.amp.GradScaler(\n    'cuda',  # why\n    init_scale=2.0,\n)",
        "torch.amp.GradScaler(\n    # why\n    'cuda',\n    init_scale=2.0,\n)",
        "torch.device(\n    'cuda',  # why\n    index,\n)",
        "torch.device(f'cuda:{i}')  # why",
        "x.to(\n    'cuda',  # why\n)",
        "torch.nn.parallel.DistributedDataParallel(\n    m,\n    device_ids=[\n        rank,  # why\n    ],\n)",
        "x.pin_memory(  # why\n).cuda()",
        "x.record_stream(\n    s,  # why\n)",
    ],
)
def test_no_comment_is_lost(call: str) -> None:
    source = f"import torch\n\ny = {call}\n"
    conversion = both_ways(source)
    assert conversion.after.count(b"# why") == 1
    ast.parse(conversion.after)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("torch.load(\n    p\n)", "torch.load(\n    p, map_location=ai_device.map_location()\n)"),
        ("torch.load(\n    p,\n)", "torch.load(\n    p, map_location=ai_device.map_location(),\n)"),
        (
            "torch.load(\n    p,\n    weights_only=True\n)",
            "torch.load(\n    p,\n    map_location=ai_device.map_location(), weights_only=True\n)",
        ),
        ("torch.load(p, )", "torch.load(p, map_location=ai_device.map_location(), )"),
        ("torch.load( p )", "torch.load( p, map_location=ai_device.map_location() )"),
    ],
)
@pytest.mark.parametrize("head", ["y = ", "def f():\n    y = ", "def f():\n    if "])
def test_an_argument_that_is_added_keeps_the_layout(before: str, expected: str, head: str) -> None:
    tail = ":\n        pass\n" if head.endswith("if ") else "\n"
    conversion = both_ways(f"import torch\n\n{head}{before}{tail}")
    assert conversion.after.decode() == f"import torch\n\nimport ai_device\n\n{head}{expected}{tail}"


MULTI_LINE = (
    "g(\n        x.cuda(\n            i,\n            non_blocking=True,\n        ),\n"
    "        torch.load(\n            p,\n            weights_only=True,\n        ),\n    )"
)


@pytest.mark.parametrize(
    "template",
    [
        "def f():\n    {}\n",
        "def f():\n    if {}:\n        pass\n",
        "def f():\n    with {}:\n        pass\n",
        "def f():\n    for a in {}:\n        pass\n",
        "class A:\n    @{}\n    def f(self, a={}):\n        pass\n",
        "def f():\n    try:\n        pass\n    except {}:\n        pass\n",
        "def f():\n    match x:\n        case 1 if {}:\n            pass\n",
        "def f():\n    if x:\n        pass\n    elif {}:\n        pass\n",
        "def f():\n\tif x:\n\t\tif {}:\n\t\t\tpass\n",
    ],
)
def test_calls_over_several_lines_keep_their_lines_in_every_place(template: str) -> None:
    """Their indentation belongs to the text, however deep the block is."""
    source = "import torch\n\n\n" + template.replace("{}", MULTI_LINE)
    conversion = both_ways(source)
    old, new = source.split("\n"), conversion.after.decode().replace("import ai_device\n\n", "", 1).split("\n")
    assert [_indent(line) for line in new] == [_indent(line) for line in old]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


@pytest.mark.parametrize(
    "use",
    ["print('torch.cuda.FloatTensor')", "log.info('torch.cuda.FloatTensor')", "f(help='torch.cuda.FloatTensor')"],
)
def test_names_of_types_in_messages_are_left(use: str) -> None:
    assert is_left(use + "\n")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("x = x.type('torch.cuda.FloatTensor')", "x = x.type(ai_device.tensor_type('torch.cuda.FloatTensor'))"),
        (
            "ok = x.type() == 'torch.cuda.FloatTensor'",
            "ok = x.type() == ai_device.tensor_type('torch.cuda.FloatTensor')",
        ),
    ],
)
def test_names_of_types_that_are_used_are_converted(before: str, expected: str) -> None:
    assert body_after(before + "\n") == expected + "\n"


def test_a_docstring_that_shows_a_kernel_is_left_without_a_word() -> None:
    assert both_ways('def f():\n    """Like ``__global__ void f()`` in CUDA."""\n').findings == ()


def test_a_comment_between_the_dots_of_a_name_is_kept() -> None:
    result = after("import torch\n\nx = (torch.cuda  # why\n     .device_count())\n")
    assert "# why" in result
    ast.parse(result)


def test_implicit_concatenation() -> None:
    source = "import torch\n\nx = x.to('cuda' '')\ny = torch.device('cuda' ':1')\n"
    assert is_left(source)
    assert [finding.line for finding in converted(source).findings] == [3, 4]


@pytest.mark.parametrize("literal", ["'cuda'", '"cuda"', "'''cuda'''", "r'cuda'", "u'cuda'", "R'cuda'"])
def test_spellings_of_a_literal(literal: str) -> None:
    assert body_after(f"x = x.to({literal})\n") == "x = x.to(ai_device.device())\n"


def test_parenthesised_names() -> None:
    for before, expected in (
        ("(torch.cuda).empty_cache()", "ai_device.empty_cache()"),
        ("(torch).cuda.empty_cache()", "ai_device.empty_cache()"),
        ("(x).cuda()", "(x).to(ai_device.device())"),
        ("(x.cuda)()", "(x.to)(ai_device.device())"),
        ("x.to(('cuda'))", "x.to((ai_device.device()))"),
    ):
        result = after(f"import torch\n\n{before}\n")
        assert result.splitlines()[-1] == expected
        both_ways(f"import torch\n\n{before}\n")


def test_write_and_read_context() -> None:
    source = "import torch\n\ntorch.cuda.foo = 1\ndel torch.cuda.foo\ntorch.cuda.foo += 1\n"
    assert is_left(source)
    assert len([rule for rule in rules_of(converted(source)) if rule in ("UC503", "UC504")]) == 3


def test_match_patterns_are_left_and_what_they_choose_is_converted() -> None:
    source = (
        "import torch\n\n\ndef pick(kind):\n    match kind:\n        case 'gpu' | 'cuda':\n"
        "            return torch.device('cuda')\n        case str(k) if (n := len(k)) > 3:\n"
        "            return torch.device(f'cuda:{n - 4}')\n"
    )
    result = both_ways(source).after.decode()
    assert "        case 'gpu' | 'cuda':\n            return ai_device.device()\n" in result
    assert "            return ai_device.device(n - 4)\n" in result
    assert any(finding.line == 6 for finding in converted(source).findings)


def test_what_follows_a_converted_name_is_asked_of_the_helper() -> None:
    source = "import torch\n\ntorch.cuda.synchronize.assert_called()\n"
    assert rules_of(converted(source)) == ["UC501"]
    assert body_after(source) == "ai_device.synchronize.assert_called()\n"
