"""What a name means: aliases of every kind are followed, names that mean something else are left alone."""

from __future__ import annotations

import sys

import pytest
from conversion import after, body_after, both_ways, converted, findings_of, is_left, meaning, names_in

ALIASES = {
    "module": ("import torch\n", "torch.cuda.empty_cache()\n", "ai_device.empty_cache()\n"),
    "module under a name": ("import torch as th\n", "th.cuda.empty_cache()\n", "ai_device.empty_cache()\n"),
    "submodule": ("import torch.cuda\n", "torch.cuda.empty_cache()\n", "ai_device.empty_cache()\n"),
    "submodule under a name": ("import torch.cuda as tc\n", "tc.empty_cache()\n", "ai_device.empty_cache()\n"),
    "deep submodule": ("import torch.cuda.amp\n", "s = torch.cuda.amp.GradScaler()\n", "s = ai_device.GradScaler()\n"),
    "deep submodule under a name": (
        "import torch.cuda.amp as a\n",
        "s = a.GradScaler()\n",
        "s = ai_device.GradScaler()\n",
    ),
    "module from a package": ("from torch import cuda\n", "cuda.empty_cache()\n", "ai_device.empty_cache()\n"),
    "module from a package, renamed": (
        "from torch import cuda as tc\n",
        "tc.empty_cache()\n",
        "ai_device.empty_cache()\n",
    ),
    "amp": ("from torch.cuda import amp\n", "s = amp.GradScaler()\n", "s = ai_device.GradScaler()\n"),
    "nvtx": ("import torch.cuda.nvtx as nvtx\n", "nvtx.range_push('a')\n", "ai_device.nvtx.range_push('a')\n"),
    "one of several": ("import os, torch as th, sys\n", "th.cuda.empty_cache()\n", "ai_device.empty_cache()\n"),
}


@pytest.mark.parametrize(("imports", "use", "expected"), ALIASES.values(), ids=ALIASES)
def test_aliases(imports: str, use: str, expected: str) -> None:
    assert body_after(imports + "\n" + use) == expected
    both_ways(imports + "\n" + use)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("from torch.cuda.amp import autocast as ac\n", "from ai_device import autocast as ac\n"),
        (
            "from torch.cuda import empty_cache, device as dv\n",
            "from ai_device import empty_cache, device_guard as dv\n",
        ),
        ("from torch.cuda import device\n", "from ai_device import device_guard as device\n"),
        ("from torch.cuda.memory import empty_cache\n", "from ai_device import empty_cache\n"),
        ("from torch.cuda.amp.autocast_mode import autocast\n", "from ai_device import autocast\n"),
    ],
)
def test_names_imported_from_cuda(before: str, expected: str) -> None:
    name = before.split()[-1]
    assert after(f"{before}\nprint({name})\n") == f"{expected}\nprint({name})\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("from torch import load as fetch\n\nx = fetch(p)\n", "x = fetch(p, map_location=ai_device.map_location())\n"),
        ("from torch import is_autocast_enabled as on\n\nx = on()\n", "x = ai_device.is_autocast_enabled()\n"),
        ("from torch.amp import GradScaler as Scaler\n\nx = Scaler()\n", "x = ai_device.GradScaler()\n"),
        ("from torch import device as dv\n\nx = dv(0)\n", "x = ai_device.device(0)\n"),
        (
            "from torch.profiler import ProfilerActivity as PA\n\nx = PA.CUDA\n",
            "x = ai_device.profiler_activity()\n",
        ),
        (
            "from torch.distributed import init_process_group as start\n\nstart('nccl')\n",
            "start(ai_device.backend())\n",
        ),
    ],
)
def test_a_name_that_hides_the_word_is_followed(before: str, expected: str) -> None:
    assert body_after(before) == expected
    both_ways(before)


def test_a_name_without_counterpart_keeps_its_import_and_the_others_are_replaced_where_they_are_used() -> None:
    source = "from torch.cuda import CUDAGraph, empty_cache\n\ngraph = CUDAGraph()\nempty_cache()\n"
    result = after(source)
    assert "CUDAGraph" in result.splitlines()[0]
    assert result.endswith("graph = CUDAGraph()\nai_device.empty_cache()\n")
    assert findings_of(source, "UC503")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "def run():\n    import torch as th\n    th.cuda.empty_cache()\n",
            "import ai_device\n\ndef run():\n    pass\n    ai_device.empty_cache()\n",
        ),
        (
            "def run():\n    from torch import cuda\n\n    return cuda.device_count()\n",
            "import ai_device\n\ndef run():\n    pass\n\n    return ai_device.device_count()\n",
        ),
        (
            "class Box:\n    import torch as th\n    n = th.cuda.device_count()\n\n    def f(self, th):\n"
            "        return th.cuda.device_count()\n",
            "import ai_device\n\nclass Box:\n    pass\n    n = ai_device.device_count()\n\n    def f(self, th):\n"
            "        return th.cuda.device_count()\n",
        ),
    ],
)
def test_imports_inside_blocks(before: str, expected: str) -> None:
    """The import may go or stay; what counts is that its name is followed within its block and not beyond."""
    result = after(before)
    uses = [line.strip() for line in expected.splitlines() if "device_count" in line or "empty_cache" in line]
    assert [line.strip() for line in result.splitlines() if "device_count" in line or "empty_cache" in line] == uses
    compile(result, "x", "exec")


def test_an_import_inside_a_function_does_not_reach_another() -> None:
    source = (
        "def one():\n    from torch import cuda\n\n    cuda.empty_cache()\n\n\n"
        "def two(cuda):\n    cuda.empty_cache()\n\n\ndef three():\n    cuda.empty_cache()\n"
    )
    result = after(source)
    assert result.count("ai_device.empty_cache()") == 1
    assert "def two(cuda):\n    cuda.empty_cache()\n\n\ndef three():\n    cuda.empty_cache()\n" in result


def test_a_function_sees_the_import_of_the_function_around_it() -> None:
    source = (
        "def outer():\n    import torch as t\n\n    def inner():\n        t.cuda.synchronize()\n\n    return inner\n"
    )
    assert "ai_device.synchronize()" in after(source)


def test_an_import_in_try_with_none_as_the_fallback_is_certain() -> None:
    source = (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n\nif torch:\n    torch.cuda.empty_cache()\n"
    )
    assert "    ai_device.empty_cache()\n" in after(source)
    assert "    import torch\nexcept ImportError:\n    torch = None\n" in after(source)


def test_alias_by_assignment() -> None:
    source = "import torch\n\nc = torch.cuda\nc.empty_cache()\nprint(c.memory_allocated())\n"
    result = after(source)
    assert "ai_device.empty_cache()" in result
    assert "ai_device.memory_allocated()" in result


def test_both_ways_see_an_alias_by_assignment() -> None:
    both_ways("import torch\n\nc = torch.cuda\nc.empty_cache()\n")


def test_alias_of_a_function_by_assignment() -> None:
    source = "import torch\n\nsync = torch.cuda.synchronize\nsync()\n"
    assert body_after(source) == "sync = ai_device.synchronize\nsync()\n"


def test_alias_by_assignment_of_the_root() -> None:
    source = "import torch\n\nt = torch\nt.cuda.empty_cache()\n"
    assert "ai_device.empty_cache()" in after(source)


def test_alias_by_tuple_assignment() -> None:
    source = "import torch\n\nc, n = torch.cuda, 3\nc.empty_cache()\n"
    assert "ai_device.empty_cache()" in after(source)


SHADOWED = {
    "parameter": "import torch\n\n\ndef f(torch):\n    torch.cuda.empty_cache()\n",
    "keyword-only parameter": "import torch\n\n\ndef f(*, torch=None):\n    torch.cuda.empty_cache()\n",
    "positional-only parameter": "import torch\n\n\ndef f(torch, /):\n    torch.cuda.empty_cache()\n",
    "star parameter": "import torch\n\n\ndef f(*torch):\n    torch.cuda.empty_cache()\n",
    "two stars": "import torch\n\n\ndef f(**torch):\n    torch.cuda.empty_cache()\n",
    "parameter of a lambda": "import torch\n\nf = lambda torch: torch.cuda.empty_cache()\n",
    "parameter of an outer function": "import torch\n\n\ndef f(torch):\n    return lambda: torch.cuda.empty_cache()\n",
    "assignment": "import torch\n\ntorch = object()\ntorch.cuda.empty_cache()\n",
    "later assignment": "import torch\n\ntorch.cuda.empty_cache()\ntorch = object()\n",
    "annotated assignment": "import torch\n\ntorch: object = object()\ntorch.cuda.empty_cache()\n",
    "augmented assignment": "import torch\n\ntorch += 1\ntorch.cuda.empty_cache()\n",
    "unpacking": "import torch\n\n(torch, b), c = x\ntorch.cuda.empty_cache()\n",
    "starred unpacking": "import torch\n\na, *torch = x\ntorch.cuda.empty_cache()\n",
    "assignment in the function": "import torch\n\n\ndef f():\n    torch = get()\n    torch.cuda.empty_cache()\n",
    "assignment below the use": "import torch\n\n\ndef f():\n    torch.cuda.empty_cache()\n    torch = 1\n",
    "class": "import torch\n\n\nclass torch:\n    pass\n\n\ntorch.cuda.empty_cache()\n",
    "function": "import torch\n\n\ndef torch():\n    pass\n\n\ntorch.cuda.empty_cache()\n",
    "loop": "import torch\n\nfor torch in x:\n    torch.cuda.empty_cache()\n",
    "async loop": "import torch\n\n\nasync def f():\n    async for torch in x:\n        torch.cuda.empty_cache()\n",
    "list comprehension": "import torch\n\nx = [torch.cuda.empty_cache() for torch in y]\n",
    "set comprehension": "import torch\n\nx = {torch.cuda.empty_cache() for torch in y}\n",
    "dict comprehension": "import torch\n\nx = {torch: torch.cuda.empty_cache() for torch in y}\n",
    "generator": "import torch\n\nx = any(torch.cuda.empty_cache() for a, torch in y)\n",
    "walrus": "import torch\n\nif (torch := get()):\n    torch.cuda.empty_cache()\n",
    "walrus in a comprehension": "import torch\n\nx = [torch := y for y in z]\ntorch.cuda.empty_cache()\n",
    "match capture": "import torch\n\nmatch x:\n    case torch:\n        torch.cuda.empty_cache()\n",
    "match as": "import torch\n\nmatch x:\n    case [1, 2] as torch:\n        torch.cuda.empty_cache()\n",
    "match star": "import torch\n\nmatch x:\n    case [1, *torch]:\n        torch.cuda.empty_cache()\n",
    "match rest": "import torch\n\nmatch x:\n    case {1: 2, **torch}:\n        torch.cuda.empty_cache()\n",
    "match in a class pattern": "import torch\n\nmatch x:\n    case P(a=torch):\n        torch.cuda.empty_cache()\n",
    "except as": "import torch\n\ntry:\n    pass\nexcept E as torch:\n    torch.cuda.empty_cache()\n",
    "with as": "import torch\n\nwith x as torch:\n    torch.cuda.empty_cache()\n",
    "with as, unpacked": "import torch\n\nwith x as (a, torch):\n    torch.cuda.empty_cache()\n",
    "del": "import torch\n\ndel torch\ntorch.cuda.empty_cache()\n",
    "another import": "import torch\nimport paddle as torch\n\ntorch.cuda.empty_cache()\n",
    "conditional imports": (
        "if x:\n    import torch\nelse:\n    import torchlike as torch\n\ntorch.cuda.empty_cache()\n"
    ),
    "global": "import torch\n\n\ndef f():\n    global torch\n    torch = 1\n\n\ntorch.cuda.empty_cache()\n",
    "class scope": "import torch\n\n\nclass A:\n    torch = get()\n    torch.cuda.empty_cache()\n",
    "import inside a function only": "def f():\n    import torch\n\n\ntorch.cuda.empty_cache()\n",
    "not imported": "torch.cuda.empty_cache()\n",
    "module of the repository": "from . import torch\n\ntorch.cuda.empty_cache()\n",
    "attribute of something else": "import torch\n\nself.torch.cuda.empty_cache()\n",
    "call": "import torch\n\ntorch().cuda.empty_cache()\n",
    "alias with two meanings": "import torch\n\nc = torch.cuda\nc = other\nc.empty_cache()\n",
    "alias in two branches": "import torch\n\nc = torch.cuda if x else torch.npu\nc.empty_cache()\n",
    "alias of itself": "torch = torch\ntorch.cuda.empty_cache()\n",
    "alias in a circle": "a = b\nb = a\na.cuda.empty_cache()\n",
}


@pytest.mark.parametrize("source", SHADOWED.values(), ids=SHADOWED)
def test_shadowed_names_are_left(source: str) -> None:
    conversion = both_ways(source)
    assert b"ai_device" not in conversion.after
    assert conversion.after == source.encode()


SHADOWED_ELSEWHERE = {
    "parameter of another function": "def g(torch):\n    return torch\n\n\ntorch.cuda.empty_cache()\n",
    "parameter default": "def f(torch=torch.cuda.empty_cache()):\n    return torch\n",
    "default of a lambda": "f = lambda torch=torch.cuda.empty_cache(): torch\n",
    "decorator": "@wrap(torch.cuda.empty_cache())\ndef f(torch):\n    return torch\n",
    "annotation": "def f(torch: torch.cuda.empty_cache()) -> torch.cuda.empty_cache():\n    return torch\n",
    "base class": "class A(make(torch.cuda.empty_cache())):\n    torch = 1\n",
    "decorator of a class": "@wrap(torch.cuda.empty_cache())\nclass A:\n    torch = 1\n",
    "method of a class that binds it": (
        "class A:\n    torch = 1\n\n    def f(self):\n        torch.cuda.empty_cache()\n"
    ),
    "after a comprehension": "x = [torch for torch in y]\ntorch.cuda.empty_cache()\n",
    "after a lambda": "x = lambda torch: torch\ntorch.cuda.empty_cache()\n",
    "attribute of the name": "x.torch = 1\ntorch.cuda.empty_cache()\n",
    "keyword of the name": "f(torch=1)\ntorch.cuda.empty_cache()\n",
    "annotation without a value": "torch: object\ntorch.cuda.empty_cache()\n",
    "global read": "def f():\n    global torch\n    torch.cuda.empty_cache()\n",
    "method of the name": "class A:\n    def torch(self):\n        torch.cuda.empty_cache()\n",
    "local function of the name": "def f():\n    def torch():\n        pass\n\n\ntorch.cuda.empty_cache()\n",
    "first iterable of a comprehension": "x = [torch for torch in torch.cuda.empty_cache()]\n",
}


@pytest.mark.parametrize("body", SHADOWED_ELSEWHERE.values(), ids=SHADOWED_ELSEWHERE)
def test_names_shadowed_somewhere_else_are_followed(body: str) -> None:
    source = "import torch\n\n\n" + body
    conversion = both_ways(source)
    assert conversion.after.count(b"ai_device.empty_cache()") == body.count("torch.cuda.empty_cache()")
    assert conversion.after.decode().endswith(body.replace("torch.cuda.empty_cache", "ai_device.empty_cache"))


def test_nonlocal_reaches_the_function_around() -> None:
    source = (
        "import torch\n\n\ndef f():\n    torch = 1\n\n    def g():\n        nonlocal torch\n"
        "        torch.cuda.empty_cache()\n"
    )
    assert is_left(source)


def test_nonlocal_assignment_makes_the_name_of_the_function_around_uncertain() -> None:
    source = (
        "def f():\n    import torch\n\n    def g():\n        nonlocal torch\n        torch = 1\n\n    g()\n"
        "    torch.cuda.empty_cache()\n"
    )
    assert is_left(source)


def test_global_in_a_function_skips_the_function_around() -> None:
    source = (
        "import torch\n\n\ndef f(torch):\n    def g():\n        global torch\n        torch.cuda.empty_cache()\n"
        "    return g\n"
    )
    assert "        ai_device.empty_cache()\n" in after(source)


def test_global_import_in_a_function() -> None:
    source = "def f():\n    global torch\n    import torch\n\n\ndef g():\n    torch.cuda.empty_cache()\n"
    result = after(source)
    assert "    ai_device.empty_cache()\n" in result
    compile(result, "x", "exec")


def test_star_import_is_reported_and_not_followed() -> None:
    source = "from torch import *\nfrom common import *\n\nif cuda.is_available():\n    cuda.empty_cache()\n"
    assert is_left(source)
    assert [finding.line for finding in findings_of(source, "UC810")] == [4, 5]


def test_star_import_beside_a_clear_one() -> None:
    source = "from common import *\nimport torch\n\ntorch.cuda.empty_cache()\n"
    assert "ai_device.empty_cache()\n" in after(source)
    assert not findings_of(source, "UC810")


def test_star_import_of_cuda_itself_is_reported() -> None:
    source = "from torch.cuda import *\n\nempty_cache()\n"
    assert is_left(source)
    assert findings_of(source, "UC810")


@pytest.mark.parametrize(
    "source",
    [
        "from numba import cuda\n\ncuda.synchronize()\n",
        "import pycuda.driver as cuda\n\ncuda.init()\n",
        "import cupy as cp\n\ncp.cuda.Device(0).use()\ncp.cuda.Stream.null.synchronize()\n",
        "import tensorflow as torch\n\ntorch.cuda.empty_cache()\n",
        "from mylib import cuda\n\ncuda.empty_cache()\n",
        "from . import cuda\n\ncuda.empty_cache()\n",
        "from .torch import cuda\n\ncuda.empty_cache()\n",
        "import torch_like as th\n\nth.cuda.empty_cache()\n",
    ],
)
def test_other_libraries_are_left(source: str) -> None:
    assert is_left(source)
    both_ways(source)


@pytest.mark.parametrize(
    ("source", "dotted", "expected"),
    [
        ("import torch\ntorch.cuda\n", "torch.cuda", "torch.cuda"),
        ("import torch.cuda\ntorch.nn\n", "torch.nn", "torch.nn"),
        ("import torch.cuda.amp as a\na.autocast\n", "a.autocast", "torch.cuda.amp.autocast"),
        ("from torch import nn as n\nn.Linear\n", "n.Linear", "torch.nn.Linear"),
        ("from ..pkg import x\nx.y\n", "x.y", "..pkg.x.y"),
        ("from . import x\nx.y\n", "x.y", ".x.y"),
        ("import torch\nc = torch.cuda\nc.amp\n", "c.amp", "torch.cuda.amp"),
        ("import torch\nc: object = torch.cuda\nc.amp\n", "c.amp", "torch.cuda.amp"),
        ("import torch\n(c := torch.cuda)\nc.amp\n", "c.amp", "torch.cuda.amp"),
        ("import torch\nimport torch\ntorch.cuda\n", "torch.cuda", "torch.cuda"),
        ("x.y\n", "x.y", None),
        ("x = f()\nx.y\n", "x.y", None),
        ("é = 1\nimport torch\n'é'; torch.cuda\n", "torch.cuda", "torch.cuda"),
    ],
)
def test_qualified(source: str, dotted: str, expected: str | None) -> None:
    assert meaning(source, dotted) == expected


def test_a_type_parameter_shadows() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("type parameters are syntax of Python 3.12")
    assert is_left("import torch\n\n\ndef f[torch]():\n    torch.cuda.empty_cache()\n")


def test_string_values() -> None:
    source = "a = 'cuda'\nb = 'cuda' if x else 'cpu'\nc = 'cpu'\nc = 'cuda'\nd = e = 'gloo'\nfor f in x: pass\n"
    names = names_in(source)
    end = len(source) - 1
    assert {name: names.string(name, end) for name in "abcdefg"} == {
        "a": "cuda",
        "b": None,
        "c": None,
        "d": "gloo",
        "e": "gloo",
        "f": None,
        "g": None,
    }


def test_names_of_all_scopes_count_as_taken() -> None:
    source = "import a\n\n\ndef f(b, *c, d=1, **e):\n    g = [h for h in i]\n\n\nclass J:\n    k: int = 1\n"
    assert names_in(source).all_bound() == {"a", "f", "b", "c", "d", "e", "g", "h", "J", "k"}


def test_a_place_in_a_function_that_shadows_gets_a_free_name_for_the_helper() -> None:
    source = "import torch\n\n\ndef f(ai_device):\n    torch.cuda.empty_cache()\n"
    result = after(source)
    assert "import ai_device as _ai_device\n" in result
    assert "    _ai_device.empty_cache()\n" in result
    assert converted(result).after.decode() == result
