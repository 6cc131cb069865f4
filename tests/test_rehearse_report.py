"""What a rehearsal says: on a terminal, in plain text, as JSON and as a page. Made from records, without a run."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from codemods.operators import State
from codemods.rehearse.launch import Request, Run
from codemods.rehearse.recording import Recording, Site
from codemods.rehearse.report import Report
from codemods.rehearse.report_build import build
from codemods.rehearse.report_html import render as page
from codemods.rehearse.report_json import render as as_json
from codemods.rehearse.report_terminal import print_report
from codemods.rehearse.report_text import report_lines

SCRIPT = """\
import torch

model = torch.nn.Linear(2, 2).cuda()
x = torch.ones(
    2,
    device="cuda:0",
)
print(x)
"""


def record(recording: Recording | None = None, *, pid: int = 1, **values: Any) -> dict[str, Any]:
    """What a process leaves; it got through unless something else is said."""
    seen = (recording or Recording("npu", "torch_npu 2.14")).as_dict()
    return {"pid": pid, "rank": None, "steps": 0, "ended": 1.0, "stopped": None, "recording": seen} | values


def report(
    *records: dict[str, Any],
    base: Path = Path("/project"),
    codes: tuple[int, ...] = (0,),
    request: Request | None = None,
    **values: Any,
) -> Report:
    """The report of a run that left these records."""
    run = Run(request or Request("train.py"), list(codes), main_pids=[1], records=list(records), **values)
    return build(run, base)


def text_of(one: Report) -> str:
    return "\n".join(report_lines(one))


def squeezed(line: str) -> str:
    return " ".join(line.split())


def error(kind: str, message: str, *frames: tuple[str, int, str]) -> dict[str, Any]:
    return {"reason": "error", "type": kind, "message": message, "frames": [list(frame) for frame in frames]}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def busy() -> Recording:
    """Two operators with a kernel, two that fall back, one that nobody knows; copies and waits."""
    seen = Recording("npu", "torch_npu 2.14")
    for name, state, count, seconds in [
        ("aten::mm", "kernel", 400, 0.6),
        ("aten::relu", "kernel", 40, 0.1),
        ("aten::cholesky_inverse", "fallback", 20, 0.1),
        ("aten::grid_sampler_2d", "fallback", 80, 0.1),
        ("mylib::nms", "unknown", 2, 0.1),
    ]:
        use = seen.operator(name)
        use.state, use.count, use.seconds = state, count, seconds
        use.sites = {Site("/project/model.py", 7): count - 1, Site("/project/train.py", 9): 1}
    for _ in range(30):
        seen.add_traffic("host to device", "to", Site("/project/train.py", 20), 2**20)
    for _ in range(10):
        seen.add_traffic("device to host", "item", Site("/project/train.py", 30), 4)
    seen.add_traffic("synchronisation", "synchronize", Site("/project/train.py", 40))
    return seen


def test_nothing_to_say() -> None:
    one = report(record())
    assert one.exit_code == 0
    assert "reached the end" in text_of(one)
    assert "CUDA still named: nowhere." in text_of(one)


def test_operators_are_sorted_by_harm_with_counts_shares_and_callers() -> None:
    one = report(record(busy(), steps=20))
    assert one.exit_code == 1
    assert [use.overload for use in one.without_kernel] == ["aten::grid_sampler_2d", "aten::cholesky_inverse"]
    assert one.share(*one.without_kernel) == pytest.approx(0.2)
    counted = [(state, overloads, calls, round(share, 6)) for state, overloads, calls, share in one.by_state()]
    assert counted == [(State.FALLBACK, 2, 100, 0.2), (State.UNKNOWN, 1, 2, 0.1), (State.KERNEL, 2, 440, 0.7)]
    (line,) = re.findall(r"aten::grid_sampler_2d .*", text_of(one))
    assert squeezed(line) == "aten::grid_sampler_2d runs on the CPU 80 4 10.0% model.py:7 (79), train.py:9 (1)"
    assert "aten::mm" not in text_of(one)


def test_what_makes_the_host_wait_comes_before_what_does_not() -> None:
    one = report(record(busy(), steps=20))
    assert [transfer.via for transfer in one.transfers] == ["item", "synchronize", "to"]
    assert [transfer.waits for transfer in one.transfers] == [True, True, False]
    (line,) = re.findall(r"to +host to device.*", text_of(one))
    assert squeezed(line) == "to host to device no 30 1.5 30 MiB train.py:20 (30)"


def test_processes_are_added_up_and_steps_counted_by_process() -> None:
    one = report(
        record(busy(), steps=20, rank="0"),
        record(busy(), pid=2, steps=20, rank="1"),
        codes=(0, 0),
        request=Request("train.py", nproc=2),
    )
    assert (one.ranks, one.processes, one.steps) == (2, 2, 20)
    assert one.operators[0].calls == 160
    assert one.a_step(160) == "4"
    assert text_of(one).startswith("train.py, 2 ranks, on a virtual npu (Huawei Ascend NPU), torch ")


def test_without_a_step_there_is_no_figure_by_step() -> None:
    assert report(record(busy())).a_step(12) == ""


def test_collectives_are_not_taken_for_operators() -> None:
    seen = Recording("npu")
    seen.operator("c10d::allreduce_").count = 3
    assert report(record(seen)).operators == ()


def test_a_place_that_names_cuda_comes_with_the_rule_that_finds_it(script: Path) -> None:
    seen = Recording("npu")
    seen.add_cuda("Module.cuda", Site(str(script), 3))
    seen.add_cuda("device cuda", Site(str(script), 4))  # the line that Python names for a call over several lines
    seen.add_cuda("torch.cuda.synchronize", Site(str(script), 8))
    one = report(record(seen), base=script.parent)
    assert one.exit_code == 1
    assert [(str(name.site), name.rule) for name in one.named] == [
        ("train.py:3", "UC101"),
        ("train.py:4", "UC102"),
        ("train.py:8", None),
    ]
    assert "none finds it" in text_of(one)


def test_an_unknown_place_and_a_file_that_is_gone_are_named_all_the_same(tmp_path: Path) -> None:
    seen = Recording("npu")
    seen.add_cuda("device cuda", Site("", 0))
    seen.add_cuda("device cuda", Site(str(tmp_path / "gone.py"), 3))
    assert [str(name.site) for name in report(record(seen)).named] == ["unknown place", f"{tmp_path}/gone.py:3"]


def test_an_error_tells_where_and_which_rule_finds_it(script: Path) -> None:
    stopped = error(
        "AssertionError", "Torch not compiled with CUDA enabled", (str(script), 3, "main"), (torch_file(), 9, "cuda")
    )
    one = report(record(stopped=stopped), base=script.parent, codes=(1,))
    assert one.exit_code == 2
    assert "train.py:3: AssertionError: Torch not compiled with CUDA enabled" in text_of(one)
    assert "`uncuda convert` finds that place: UC101" in text_of(one)


def torch_file() -> str:
    import torch

    return torch.__file__


def test_an_error_of_another_process_is_placed_by_its_own_traceback(script: Path) -> None:
    message = f"""

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "{torch_file()}", line 87, in _wrap
    fn(i, *args)
  File "{script}", line 3, in work
    model.cuda()
AssertionError: no CUDA
"""
    stopped = error("ProcessRaisedException", message, (str(script), 8, "<module>"), (torch_file(), 1, "spawn"))
    one = report(record(stopped=stopped), base=script.parent, codes=(1,))
    assert "train.py:3: ProcessRaisedException: AssertionError: no CUDA" in text_of(one)


def test_the_rank_that_failed_first_is_the_one_that_is_told() -> None:
    first = record(rank="1", pid=2, ended=1.0, stopped=error("ValueError", "bad", ("/project/train.py", 5, "f")))
    second = record(rank="0", ended=2.0, stopped=error("RuntimeError", "closed by peer", ("/project/train.py", 6, "f")))
    one = report(first, second, codes=(1, 1), request=Request("train.py", nproc=2))
    assert "train.py:5: rank 1: ValueError: bad" in text_of(one)


@pytest.mark.parametrize(
    ("values", "said", "exit_code"),
    [
        ({"codes": (3,)}, "the script ended with exit code 3; its own output tells why", 2),
        ({"codes": (-9,)}, "the script was ended by SIGKILL", 2),
        ({"codes": (-15,), "interrupted": True}, "interrupted", 2),
        ({"codes": (0,)}, "reached the end", 0),
    ],
)
def test_other_ends(values: dict[str, Any], said: str, exit_code: int) -> None:
    one = report(record(), **values)
    assert said in text_of(one).splitlines()[1]
    assert one.exit_code == exit_code


def test_an_error_that_the_script_dealt_with_is_none() -> None:
    assert report(record(stopped=error("ValueError", "bad"))).end.reason == "end"


def test_a_script_that_leaves_no_record_did_not_use_torch() -> None:
    one = report()
    assert one.exit_code == 2
    assert "does not import it" in text_of(one)


def test_the_limits_of_steps_and_time() -> None:
    steps = report(record(stopped={"reason": "max-steps"}), request=Request("train.py", max_steps=7))
    assert "stopped after 7 optimizer steps (--max-steps)" in text_of(steps)
    assert steps.exit_code == 0
    hung = {"reason": "timeout", "frames": [["/project/train.py", 12, "main"], [torch_file(), 3, "wait"]]}
    time = report(
        record(stopped=hung), codes=(-9,), request=Request("train.py", timeout=2.5), timed_out=True, first_failed=None
    )
    assert "train.py:12: stopped after 2.5 s (--timeout)" in text_of(time)
    assert time.exit_code == 2


def test_remarks_are_listed() -> None:
    seen = Recording("npu")
    seen.add_remark("not rehearsed", "torch.compile gives the function itself", Site("/project/train.py", 3))
    assert "train.py:3  not rehearsed  torch.compile gives the function itself" in text_of(report(record(seen)))


def test_the_limits_of_a_rehearsal_and_the_provenance_are_stated() -> None:
    text = text_of(report(record()))
    assert "proves neither the vendor's kernels" in text
    assert "Absent is not unsupported" in text
    assert "Ascend/op-plugin" in text


def test_json_holds_everything(script: Path) -> None:
    seen = busy()
    seen.add_cuda("Module.cuda", Site(str(script), 3))
    data = json.loads(as_json(report(record(seen, steps=20), base=script.parent)))
    assert (data["exit_code"], data["script"], data["device"], data["steps"]) == (1, "train.py", "npu", 20)
    assert data["end"] == {"reason": "end", "text": "reached the end", "site": None, "rule": None}
    assert data["named"] == [
        {"text": "Module.cuda", "site": {"path": "train.py", "line": 3, "count": 1}, "rule": "UC101"}
    ]
    by_name = {use["overload"]: use for use in data["operators"]}
    assert by_name["aten::mm"]["state"] == "kernel"
    assert by_name["aten::mm"]["share"] == pytest.approx(0.6)
    assert {transfer["kind"] for transfer in data["transfers"]} == {
        "host to device",
        "device to host",
        "synchronisation",
    }
    assert data["limits"]


class Tags(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_escapes_what_it_shows_and_needs_nothing_else() -> None:
    evil = "<script src='//x'>&\"'</script><img onerror=alert(1)>"
    seen = busy()
    seen.add_cuda(evil, Site(f"/project/{evil}.py", 3))
    seen.add_remark(evil, evil, Site(evil, 1))
    seen.operator(evil).count = 1
    stopped = error(evil, evil, (f"/project/{evil}.py", 3, evil))
    html = page(report(record(seen, stopped=stopped), codes=(1,), request=Request(evil)))
    parsed = Tags(html)
    assert not {"script", "img", "link", "iframe"} & set(parsed.tags)
    assert not {"src", "href", "onerror"} & parsed.attributes
    assert parsed.text.count(evil) >= 6
    assert "url(" not in html
    assert "@import" not in html


def test_the_page_lists_every_operator() -> None:
    parsed = Tags(page(report(record(busy(), steps=20))))
    for name in ("aten::mm", "aten::relu", "aten::grid_sampler_2d", "mylib::nms"):
        assert name in parsed.text


def test_the_terminal_shows_what_the_text_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    print_report(report(record(busy(), steps=20)))
    shown = capsys.readouterr().err
    for heading in ("CUDA still named", "Operators without a kernel", "Operators by state", "Copies and waits"):
        assert heading in shown
    assert "aten::cholesky_inverse" in shown
