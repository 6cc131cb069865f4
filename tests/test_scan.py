"""The byte scan: nothing that a rule speaks of may hide from it, and files without CUDA are not opened."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conversion import both_ways, converted

from codemods.analysis.scan import load_triggers
from codemods.catalogue import Example, load_catalogue
from codemods.cuda_api import load_cuda_api, load_packages
from codemods.engine.convert import Options

TRIGGERS = load_triggers()


def _examples() -> Iterator[object]:
    for rule in load_catalogue().values():
        for number, example in enumerate(rule.examples):
            if example.finding and example.is_python:
                yield pytest.param(example, id=f"{rule.code}-{number}")


@pytest.mark.parametrize("example", tuple(_examples()))
def test_files_of_which_a_rule_speaks_are_opened(example: Example) -> None:
    assert load_triggers(example.options).mentioned_in(example.before.encode())


@pytest.mark.parametrize("example", tuple(_examples()))
def test_each_finding_lies_in_a_statement_that_holds_a_place(example: Example) -> None:
    """Statement-wise and whole-module conversion agree, and every single statement shows its findings alone."""
    options = Options(families=example.options)
    whole = converted(example.before, whole_module=True, options=options)
    assert both_ways(example.before, options=options).findings == whole.findings


@pytest.mark.parametrize("text", ["@torch.compile\ndef f(x):\n    return x\n", "net = torch.jit.script(net)\n"])
def test_graph_mode_is_looked_for_only_where_it_was_asked_for(text: str) -> None:
    assert not TRIGGERS.mentioned_in(text.encode())
    assert load_triggers(frozenset({"graph"})).mentioned_in(text.encode())


@pytest.mark.parametrize("package", tuple(load_packages()))
@pytest.mark.parametrize("statement", ["import {}\n", "import {} as p\n", "from {} import x\n", "    import {}\n"])
def test_imports_of_packages_are_found(package: str, statement: str) -> None:
    text = statement.format(package).encode()
    assert TRIGGERS.mentioned_in(text)
    start = text.index(package.encode())
    assert any(start <= place < start + len(package) for place in TRIGGERS.offsets(text))


@pytest.mark.parametrize("package", tuple(load_packages()))
def test_packages_are_reported_when_they_are_imported(package: str) -> None:
    source = f"if True:\n    import {package}\n"
    assert {finding.rule for finding in both_ways(source).findings} & {"UC801", "UC804"}


def test_a_package_further_back_in_an_import_is_found() -> None:
    source = "import os, flash_attn\n"
    assert TRIGGERS.mentioned_in(source.encode())
    assert [finding.rule for finding in both_ways(source).findings] == ["UC801"]


def test_a_package_behind_a_semicolon_is_found() -> None:
    source = "import os; import flash_attn\n"
    assert TRIGGERS.mentioned_in(source.encode())
    assert [finding.rule for finding in both_ways(source).findings] == ["UC801"]


@pytest.mark.parametrize(
    "text",
    [
        "flash_attn_v9 = 1\n",
        "import flash_attn_v9\n",
        "x = 'import flash_attn'\n",
        "# import flash_attn\n",
        "import os\n\nprint(os.name)\n",
        "device = pick()\nx = x.to(device)\n",
        "import json\n\njson.load(f)\n",
        "torchload = 1\n",
        "",
    ],
)
def test_files_without_cuda_are_not_opened(text: str) -> None:
    assert not TRIGGERS.mentioned_in(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "x.cuda ()\n",
        "x . cuda()\n",
        "torch.load(p)\n",
        "torch . load(p)\n",
        "from torch import load\n",
        "from torch import (\n    nn,\n    load,\n)\n",
        "import torch as th\n\nth.load(p)\n",
        "x = 'CUDA_HOME'\n",
        "dist.init_process_group('nccl')\n",
        "import torch\n\nx = x.to(0)\n",
        "from torch.utils.cpp_extension import load\n\nload(name='a', sources=['a.cu'])\n",
        "import torch\n\nx = x.to(rank)\n",
        "import torch\n\nd = torch.device(0)\n",
        "from torch.amp import GradScaler\n",
        "import torch\n\ntorch.is_autocast_enabled()\n",
    ],
)
def test_files_with_something_to_say_are_opened(text: str) -> None:
    assert TRIGGERS.mentioned_in(text.encode())


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert TRIGGERS.mentioned_in(b"\xff\xfe\x00cuda\x80")
    assert not TRIGGERS.mentioned_in(bytes(range(256)))


def test_places_are_where_the_words_are() -> None:
    text = "é = 1\nx = y.cuda()\n# cuda\n'nccl'\n".encode()
    assert {text.index(b"cuda"), text.rindex(b"cuda"), text.index(b"nccl")} <= TRIGGERS.offsets(text)


NAMES_ELSEWHERE = [
    name
    for name, known in load_cuda_api().items()
    if not name.startswith("torch.cuda") and not known.form and known.action in ("helper", "report")
]


@pytest.mark.parametrize("name", NAMES_ELSEWHERE)
def test_names_outside_of_torch_cuda_are_found(name: str) -> None:
    assert TRIGGERS.mentioned_in(f"import torch\n\n{name}\n".encode())


def test_a_generic_guard_in_front_of_code_for_cuda_is_seen() -> None:
    both_ways(
        "import torch\n\nif torch.accelerator.is_available():\n"
        "    x = torch.ones(1).cuda()\n    torch.cuda.empty_cache()\n"
    )


def test_no_trigger_is_the_word_device_alone() -> None:
    assert not TRIGGERS.mentioned_in(b"def f(x, device):\n    return x.to(device)\n")


def test_words_are_plain() -> None:
    assert all(re.fullmatch(rb"[\w-]+", word) for word in TRIGGERS.words)
