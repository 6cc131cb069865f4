"""What holds for every source: tried on random compositions of idioms in random layouts."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

from conversion import both_ways, converted, outside_edits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.analysis.module import Module
from codemods.engine.convert import Conversion, HelperNames, Options, apply_findings
from codemods.findings import Finding, Tier, applicable
from codemods.source.document import Document

few = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)

IMPORTS = [
    "import torch",
    "import torch as th",
    "import os, torch",
    "import torch, os",
    "import torch.cuda",
    "import torch.cuda as tc",
    "import torch.distributed as dist",
    "import torch.nn as nn",
    "from torch import cuda",
    "from torch import nn, cuda",
    "from torch import (\n    cuda,  # device\n    nn,  # layers\n)",
    "from torch.cuda import amp",
    "from torch.cuda.amp import GradScaler, autocast as ac",
    "from torch.cuda import CUDAGraph, synchronize",
    "from torch.amp import GradScaler as GS",
    "from torch.nn.parallel import DistributedDataParallel as DDP",
    "from numba import cuda as ncuda",
    "try:\n    from torch.cuda.amp import autocast\nexcept ImportError:\n    autocast = None",
    "if True:\n    import torch",
    "import ai_device",
    "from pkg import ai_device",
]

STATEMENTS = [
    "x = x.cuda()",
    "x = x.cuda(non_blocking=True,)",
    "x, y = x.cuda(gpu, non_blocking=True), y.cuda(0)",
    "x = x.cuda(\n    gpu,  # which\n    non_blocking=True,\n)",
    "x = x.to('cuda'); y = y.to(\"cuda:1\")",
    "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "device = 'cuda' if th.cuda.is_available() and flag else 'cpu'",
    "n = torch.cuda.device_count() if torch.cuda.is_available() else 0",
    "x = torch.zeros(1, device=f'cuda:{i}')",
    "x = torch.load(path)",
    "x = torch.load(\n    path,\n    map_location='cuda:0',  # why\n)",
    "torch.cuda.synchronize()",
    "tc.empty_cache(); cuda.synchronize()",
    "print(f'{torch.cuda.memory_allocated() / 2**20:.1f} MB {x.is_cuda}')",
    "dist.init_process_group('nccl', rank=r)",
    "dist.init_process_group(backend='cpu:gloo,cuda:nccl')",
    "model = DDP(model, device_ids=[rank], output_device=rank)",
    "scaler = torch.amp.GradScaler('cuda', enabled=True)",
    "scaler = amp.GradScaler(1024.0)",
    "scaler = GS('cuda')",
    "s: 'torch.cuda.Stream' = torch.cuda.Stream()",
    "g = torch.cuda.CUDAGraph()",
    "torch.backends.cudnn.benchmark = True",
    "m = getattr(torch, kind, torch.cuda)",
    "t = torch.cuda.FloatTensor(3)",
    "torch.set_default_tensor_type('torch.cuda.FloatTensor')",
    "x = x.pin_memory().cuda(non_blocking=True)",
    "args.cuda = torch.cuda.is_available()",
    "assert torch.cuda.is_available(), 'CUDA é'",
    "torch = other",
    "name = 'é漢😀'; x = x.cuda()",
    "f = lambda a=torch.cuda.device_count(): a.cuda()",
    "x = [t.cuda() for t in (torch.ones(1), y) if t.is_cuda]",
    "ncuda.jit(f)",
    "pass",
    "unrelated(1,   2)  # cuda",
    "'''a text\nwith cuda'''",
]

HEADERS = [
    "if torch.cuda.is_available():",
    "if not torch.cuda.is_available():",
    "if x.is_cuda:",
    "if device.type == 'cuda':",
    "while torch.cuda.memory_allocated() > 1:",
    "for i in range(torch.cuda.device_count()):",
    "with torch.cuda.amp.autocast(enabled=True):",
    "with torch.autocast('cuda', dtype=torch.bfloat16), torch.cuda.stream(s):",
    "with torch.cuda.device(0):  # why",
    "def f(x, device='cuda', *, n=torch.cuda.device_count()):",
    "async def g(torch):",
    "@torch.cuda.amp.custom_fwd\ndef h(ctx):",
    "class A(torch.nn.Module):",
    "class B:\n    def cuda(self):\n        return self\n\n    def go(self):",
    "try:\n    torch.cuda.init()\nexcept torch.cuda.OutOfMemoryError:",
    "match x:\n    case 1 if torch.cuda.is_available():",
]

NOISE = ["", "", "# cuda", "\n", "# é\n\n"]


@st.composite
def blocks(draw: st.DrawFn, depth: int = 2) -> str:
    """A few statements, some of them compound."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        noise = draw(st.sampled_from(NOISE))
        if depth and draw(st.integers(0, 2)) == 0:
            header = draw(st.sampled_from(HEADERS))
            levels = 1 if header.endswith("go(self):") or "case" in header else 0
            part = f"{header}\n{textwrap.indent(draw(blocks(depth - 1)), '    ' * (levels + 1))}"
        else:
            part = draw(st.sampled_from(STATEMENTS))
        parts.append(f"{noise}\n{part}" if noise else part)
    return "\n".join(parts)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """A module in a random layout."""
    head = draw(
        st.sampled_from(
            ["", "", '"""Doc: cuda."""\n\n', "#!/usr/bin/env python\n# é\n", "from __future__ import annotations\n"]
        )
    )
    imports = "\n".join(draw(st.lists(st.sampled_from(IMPORTS), max_size=4, unique=True)))
    text = f"{head}{imports}\n\n\n{draw(blocks())}\n"
    if "\n    '''" not in text and draw(st.booleans()):
        text = _indented_by(text, draw(st.sampled_from(["\t", "  "])))
    if draw(st.integers(0, 3)) == 0:
        text = text.rstrip("\n")
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    mark = draw(st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]))
    return mark + text.replace("\n", newline).encode()


@given(sources())
@few
def test_both_ways_give_the_same(source: bytes) -> None:
    both_ways(source)


@given(sources())
@few
def test_the_result_parses_and_converts_to_itself(source: bytes) -> None:
    result = converted(source).after
    ast.parse(result)
    again = converted(result)
    assert again.after == result
    assert not again.applied


@given(sources())
@few
def test_bytes_outside_the_edits_stay(source: bytes) -> None:
    conversion = converted(source)
    before, behind = outside_edits(conversion)
    assert before == behind
    assert (b"\r" in source) or (b"\r" not in conversion.after)
    assert source.endswith(b"\n") == conversion.after.endswith(b"\n")


@given(sources())
@few
def test_no_comment_is_lost(source: bytes) -> None:
    result = converted(source).after
    for comment in (b"# cuda", b"# which", b"# why", "# é".encode()):
        assert result.count(comment) == source.count(comment)


@given(sources(), st.data())
@few
def test_any_choice_of_groups_parses(source: bytes, data: st.DataObject) -> None:
    """A reviewer may reject any group; what is left is whole."""
    whole = converted(source)
    units = sorted({_unit(finding) for finding in whole.applied})
    kept = data.draw(st.sets(st.sampled_from(units))) if units else set()
    chosen = [finding for finding in whole.applied if _unit(finding) in kept]
    partial = _applied(whole, chosen)
    ast.parse(partial.after)
    assert partial.changed == bool(chosen)
    assert _binds_the_helper(partial)


@given(sources(), st.sampled_from(["UC1", "UC2", "UC4", "UC5", "UC101", "UC502"]))
@few
def test_any_selection_of_rules_parses(source: bytes, code: str) -> None:
    for options in (Options(select=(code,)), Options(ignore=(code,)), Options(tier=Tier.SAFE)):
        conversion = converted(source, options=options)
        ast.parse(conversion.after)
        assert conversion.changed == bool(conversion.applied)
        assert _binds_the_helper(conversion)


@given(sources())
@few
def test_the_helper_is_imported_where_it_is_used(source: bytes) -> None:
    assert _binds_the_helper(converted(source))


@given(sources())
@few
def test_groups_are_applied_together_or_not_at_all(source: bytes) -> None:
    conversion = converted(source, options=Options(tier=Tier.SAFE))
    applied = {id(finding) for finding in conversion.applied}
    for group in {f.group for f in conversion.findings if f.group is not None}:
        members = [f for f in conversion.findings if f.group == group and f.edits]
        assert len({id(finding) in applied for finding in members}) <= 1


@given(sources())
@few
def test_findings_are_in_order_and_point_into_the_text(source: bytes) -> None:
    conversion = converted(source)
    text = conversion.document.utf8
    starts = [finding.start for finding in conversion.findings]
    assert starts == sorted(starts)
    for finding in conversion.findings:
        assert 0 <= finding.start < finding.end <= len(text)
        line_start = _line_start(text, finding.line)
        assert len(text[line_start : finding.start].decode()) == finding.column - 1


def _unit(finding: Finding) -> str:
    return finding.group or f"{finding.start}-{finding.rule}"


def _applied(whole: Conversion, chosen: list[Finding]) -> Conversion:
    module = Module(Document.from_bytes(Path("train.py"), whole.document.raw))
    helper = HelperNames()
    for name in ("_ai_device", "__ai_device"):
        if f"import ai_device as {name}".encode() in whole.after:
            helper = helper.renamed(name)
    return apply_findings(module, whole.document, helper, whole.findings, applicable(chosen, Tier.REVIEW))


def _binds_the_helper(conversion: Conversion) -> bool:
    """Whether every use of the helper stands below an import of it at module level."""
    tree = ast.parse(conversion.after)
    for name in ("ai_device", "_ai_device"):
        uses = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]
        imports = [
            statement.lineno
            for statement in tree.body
            if isinstance(statement, ast.Import | ast.ImportFrom)
            and any((alias.asname or alias.name) == name for alias in statement.names)
        ]
        if uses and (not imports or min(imports) > min(uses)):
            return False
    return True


def _line_start(text: bytes, line: int) -> int:
    position = 0
    for _ in range(line - 1):
        ends = [at for at in (text.find(b"\n", position), text.find(b"\r", position)) if at >= 0]
        position = min(ends) + (2 if text[min(ends) : min(ends) + 2] == b"\r\n" else 1)
    return position


def _indented_by(text: str, indent: str) -> str:
    lines = text.split("\n")
    depths = [(len(line) - len(line.lstrip(" "))) for line in lines]
    return "\n".join(
        indent * (d // 4) + " " * (d % 4) + line.lstrip(" ") for d, line in zip(depths, lines, strict=True)
    )
