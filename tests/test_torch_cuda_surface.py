"""Every name of rules/torch_cuda.toml, written as a user writes it: converted, or said why not; never silent."""

from __future__ import annotations

import ast
from importlib import import_module
from operator import attrgetter

import pytest
from conversion import both_ways, converted

from codemods.cuda_api import CudaName, load_cuda_api
from codemods.findings import Tier

NAMES = load_cuda_api()
CUDA = {name: known for name, known in NAMES.items() if name.startswith("torch.cuda.")}
HELPER = {name: known for name, known in CUDA.items() if known.action == "helper"}
KEPT = {name: known for name, known in NAMES.items() if known.action == "keep" and not known.form}
WHERE_CALLED = ("torch.distributed.is_nccl_available", "torch.utils.cpp_extension.CUDAExtension")
"""Names that have a rule of their own, which looks at calls."""
REPORTED = {
    name: known
    for name, known in NAMES.items()
    if known.action == "report" and not known.form and name not in WHERE_CALLED
}


def _spellings(name: str) -> dict[str, str]:
    """The name by each kind of import: what stands in the file, with USE for the name."""
    module, _, last = name.rpartition(".")
    return {
        "dotted": f"import torch\n\nUSE({name})\n",
        "renamed root": f"import torch as th\n\nUSE({name.replace('torch', 'th', 1)})\n",
        "from": f"from {module} import {last}\n\nUSE({last})\n",
        "from, renamed": f"from {module} import {last} as other\n\nUSE(other)\n",
        "module, renamed": f"import {module} as m\n\nUSE(m.{last})\n",
    }


each_spelling = pytest.mark.parametrize("spelling", tuple(_spellings("torch.cuda.init")))


@each_spelling
@pytest.mark.parametrize("name", HELPER)
def test_a_name_with_a_counterpart_becomes_the_helpers(name: str, spelling: str) -> None:
    source = _spellings(name)[spelling]
    conversion = converted(source)
    assert _final_name(conversion.after.decode()) == f"ai_device.{HELPER[name].helper}"


@pytest.mark.parametrize("name", HELPER)
def test_calls_of_a_name_with_a_counterpart(name: str) -> None:
    """The call stays as it is, whatever its arguments are; where it stands may ask for another form."""
    if name == "torch.cuda.is_available":
        pytest.skip("what becomes of it is decided by its place")
    source = f"import torch\n\nvalue = {name}(a, *b, c=1, **d)\n"
    expected = f"import ai_device\n\nvalue = ai_device.{HELPER[name].helper}(a, *b, c=1, **d)\n"
    assert both_ways(source).after.decode() == expected


@each_spelling
@pytest.mark.parametrize("name", REPORTED)
def test_a_name_without_a_counterpart_is_reported_with_its_reason(name: str, spelling: str) -> None:
    source = _spellings(name)[spelling]
    conversion = converted(source)
    assert conversion.after.decode() == source
    messages = [finding.message for finding in conversion.findings if finding.tier > Tier.NOTE]
    assert any(_reason(REPORTED[name]) in message for message in messages)


@pytest.mark.parametrize("name", WHERE_CALLED)
def test_a_name_with_a_rule_of_its_own_is_reported_where_it_is_called(name: str) -> None:
    for source in (source.replace("USE(", "").replace(")", "(a)") for source in _spellings(name).values()):
        conversion = both_ways(source)
        assert conversion.after.decode() == source
        assert [finding.tier for finding in conversion.findings] == [Tier.MANUAL]


@each_spelling
@pytest.mark.parametrize("name", [name for name in KEPT if name.startswith("torch.cuda.")])
def test_a_harmless_name_is_noted_with_its_reason(name: str, spelling: str) -> None:
    source = _spellings(name)[spelling]
    conversion = converted(source)
    assert conversion.after.decode() == source
    assert any(_reason(KEPT[name]) in finding.message for finding in conversion.findings)
    assert {finding.tier for finding in conversion.findings} <= {Tier.NOTE}


@pytest.mark.parametrize("name", [name for name in KEPT if name.startswith(("torch.backends.", "torch.version."))])
def test_settings_are_noted_where_they_are_read_and_set(name: str) -> None:
    for use in (f"print({name})", f"{name} = True", f"{name}.x(True)", f"{name}: bool = True", f"del {name}"):
        source = f"import torch\n\n{use}\n"
        conversion = both_ways(source)
        assert conversion.after.decode() == source
        assert any(_reason(KEPT[name]) in finding.message for finding in conversion.findings)


@pytest.mark.parametrize("name", CUDA)
def test_no_name_is_passed_over_in_silence(name: str) -> None:
    assert converted(f"import torch\n\nUSE({name})\n").findings


@pytest.mark.parametrize("name", sorted({known.helper for known in HELPER.values()}))
def test_the_helper_has_every_name_that_is_put_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AI_DEVICE", raising=False)
    pytest.importorskip("torch")
    assert attrgetter(name)(import_module("codemods.runtime.ai_device")) is not None


@pytest.mark.parametrize(
    "name",
    ["torch.cuda.no_such_name", "torch.cuda._lazy_init", "torch.cuda.amp.no_such_name", "torch.cuda.random.x.y"],
)
def test_a_name_that_is_not_in_the_table_is_reported(name: str) -> None:
    source = f"import torch\n\n{name}()\n"
    conversion = both_ways(source)
    assert conversion.after.decode() == source
    assert [finding.rule for finding in conversion.findings] == ["UC503"]


def test_attributes_behind_a_name_are_kept() -> None:
    source = (
        "import torch\n\nn = torch.cuda.get_device_properties(0).total_memory\nk = torch.cuda.Stream.priority_range\n"
    )
    assert both_ways(source).after.decode() == source.replace("torch.cuda", "ai_device").replace(
        "import torch", "import ai_device"
    )


def _reason(known: CudaName) -> str:
    return known.reason.rstrip(".")


def _final_name(text: str) -> str:
    """The full name of the argument of ``USE``, as the imports of the text say."""
    tree = ast.parse(text)
    meanings: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            meanings.update(
                (a.asname or a.name.partition(".")[0], a.name if a.asname else a.name.partition(".")[0])
                for a in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            meanings.update((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)
    (call,) = (
        n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "USE"
    )
    root, _, rest = ast.unparse(call.args[0]).partition(".")
    assert root in meanings, f"{root} is not imported in:\n{text}"
    return f"{meanings[root]}.{rest}" if rest else meanings[root]
