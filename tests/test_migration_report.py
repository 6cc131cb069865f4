"""``uncuda convert --report``: what a project lead reads, by the command line and in every format."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from conversion import Run, Tree
from notebooks import as_json, notebook_of

from codemods.catalogue import load_catalogue, load_kinds
from codemods.devices import load_devices

ROOT = Path(__file__).resolve().parent.parent
FORMATS = ("html", "md", "json")

TRAIN = """\
import torch
from flash_attn import flash_attn_func
import apex, xformers.ops

torch.backends.cudnn.benchmark = True
model = torch.nn.Linear(2, 2).cuda()
model.to(1)
graph = torch.cuda.CUDAGraph()
if model.weight.is_cuda:
    flash_attn_func(model.weight)
"""
KERNEL = "import triton\n\nSOURCE = '__global__ void add(float *x) {}'\n"
CUDA = "// kernels\n__global__ void a() {}\n__global__ void b() {}\n"
FILES: dict[str, str | bytes] = {
    "train.py": TRAIN,
    "pkg/__init__.py": "",
    "pkg/net.py": "import torch\n\nx = torch.ones(1).cuda()\n",
    "pkg/deep/kernel.py": KERNEL,
    "csrc/add.cu": CUDA,
    "csrc/add.cuh": "__global__ void a();\n",
    "config.yaml": "model:\n  device: cuda:0\n",
    "bad.py": "x.cuda(\n",
    "plain.py": "import os\n",
    "build/ignored.py": TRAIN,
}


def report(tree: Tree, *arguments: str, name: str = "report.json") -> Any:
    """The report as JSON."""
    tree.run("convert", ".", "--report", name, *arguments)
    return json.loads(tree.read(name))


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add((tag, name))
            if name == "href":
                self.links.append(value or "")
            if name == "id":
                self.anchors.append(value or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


# -- figures -----------------------------------------------------------------------------------------------------------


def summary_of(run: Run) -> dict[str, int]:
    """The figures that the command itself prints."""
    number = r"([\d,]+)"
    first = re.search(
        rf"{number} files? read, {number} to change: {number} sites? converted \({number} safe, {number} to review\)",
        run.stderr,
    )
    second = re.search(rf"{number} sites? left to a person, {number} notes?", run.stderr)
    third = re.search(rf"^{number} paths? could not be read or converted", run.stderr, re.MULTILINE)
    assert first
    assert second
    names = ("files", "changed", "converted", "safe", "review", "left", "notes", "failed")
    found = (*first.groups(), *second.groups(), third.group(1) if third else "0")
    return {name: int(figure.replace(",", "")) for name, figure in zip(names, found, strict=True)}


@pytest.mark.parametrize(
    "arguments", [(), ("--tier", "safe"), ("--select", "UC1,UC8"), ("--ignore", "UC5"), ("--write",), ("pkg",)]
)
def test_the_figures_are_those_of_the_command(tree: Tree, arguments: tuple[str, ...]) -> None:
    tree.write(FILES)
    paths = () if arguments == ("pkg",) else (".",)
    run = tree.run("convert", *paths, "--report", "report.json", *arguments)
    said, found = summary_of(run), json.loads(tree.read("report.json"))
    figures = found["figures"]
    assert (found["files_read"], found["files_changed"]) == (said["files"], said["changed"])
    assert (figures["safe"], figures["review"], figures["notes"]) == (said["safe"], said["review"], said["notes"])
    assert figures["by_hand"] + figures["cuda_only"] == said["left"]
    assert len(found["problems"]) == said["failed"]


@pytest.mark.parametrize("arguments", [(), ("--tier", "safe")])
def test_parts_add_up_to_the_whole(tree: Tree, arguments: tuple[str, ...]) -> None:
    tree.write(FILES)
    found = report(tree, *arguments)
    rules = [rule for kind in found["kinds"] for rule in kind["rules"]]
    for part in ("safe", "review", "by_hand", "cuda_only", "notes"):
        whole = found["figures"][part]
        for parts in (found["kinds"], rules, found["files"], found["folders"]):
            assert sum(one["figures"][part] for one in parts) == whole
    for rule in rules:
        assert len(rule["by_hand"]) == rule["figures"]["by_hand"]
        assert len(rule["review"]) == rule["figures"]["review"]
    assert sum(len(one["places"]) for one in found["cuda_only"]) == found["figures"]["cuda_only"]


def test_the_findings_are_those_of_the_command(tree: Tree) -> None:
    tree.write(FILES)
    run = tree.run("convert", ".", "--report", "report.json", "--format", "json")
    listed = json.loads(run.stdout)
    found = json.loads(tree.read("report.json"))
    left = {
        (file["path"], finding["line"], finding["column"], finding["message"])
        for file in listed["files"]
        for finding in file["findings"]
        if not finding["applied"] and finding["tier"] != "note"
    }
    places = [place for kind in found["kinds"] for rule in kind["rules"] for place in rule["by_hand"]]
    places += [place for one in found["cuda_only"] for place in one["places"]]
    assert {(p["path"], p["line"], p["column"], p["message"]) for p in places} == left
    assert {file["path"]: file["changed"] for file in found["files"]} == {
        file["path"]: file["changed"] for file in listed["files"]
    }


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_the_summary_is_the_same_in_every_format(tree: Tree, name: str) -> None:
    tree.write(FILES)
    figures = report(tree)["figures"]
    tree.run("convert", ".", "--report", name)
    text = Page(tree.read(name)).text if name.endswith("html") else tree.read(name)
    converted, left = figures["safe"] + figures["review"], figures["by_hand"] + figures["cuda_only"]
    share = round(100 * converted / (converted + left))
    assert "8 files read, 2 to change." in text  # config.yaml and the report in JSON beside six of Python
    assert (
        f"Of {converted + left} places that name CUDA, {converted} ({share}%) are converted: {figures['safe']} safe, "
        f"{figures['review']} to review."
    ) in text
    assert f"{left} are left to a person, {figures['cuda_only']} of them cannot move as they are." in text
    assert "2 CUDA sources have to be ported." in text


def test_a_place_has_its_line_and_what_is_said_of_it(tree: Tree) -> None:
    tree.write({"a.py": "import torch\r\n\r\nif x:\r\n\tg\t=   torch.cuda.CUDAGraph()  # why\r\n"})
    ((rule,),) = [kind["rules"] for kind in report(tree)["kinds"]]
    (place,) = rule["by_hand"]
    assert rule["code"] == "UC503"
    assert (place["path"], place["line"], place["code"]) == ("a.py", 4, "g =   torch.cuda.CUDAGraph()  # why")


def test_what_is_said_of_many_places_is_said_once(tree: Tree) -> None:
    graph, other = "g = torch.cuda.CUDAGraph()\n", "h = torch.cuda.graph_pool_handle()\n"
    tree.write({"a.py": f"import torch\n\n{graph}{other}{graph}", "b.py": f"import torch\n\n{graph}"})
    tree.run("convert", ".", "--report", "report.md")
    text = tree.read("report.md")
    assert text.count("Graph capture differs between vendors") == 2
    said = text.partition("Graph capture differs between vendors")[2]
    assert ": 3 places\n" in said.splitlines(keepends=True)[0]
    assert re.findall(r"^\| `(\w+\.py:\d+):\d+`", said, re.MULTILINE) == ["a.py:3", "a.py:5", "b.py:3", "a.py:4"]


def test_a_long_line_is_shown_from_the_place_on(tree: Tree) -> None:
    tree.write({"a.py": f"import torch\n\nx = '{'é' * 300}', torch.cuda.CUDAGraph(), '{'y' * 300}'\n"})
    ((rule,),) = [kind["rules"] for kind in report(tree)["kinds"]]
    code = rule["by_hand"][0]["code"]
    assert code.startswith("torch.cuda.CUDAGraph")
    assert code.endswith("...")
    assert len(code) == 160


def test_an_edit_that_the_tier_holds_back_is_said_to_be_ready(tree: Tree) -> None:
    tree.write({"a.py": "import torch\n\ncuda = torch.ones(1).to(0)\n"})
    found = report(tree, "--tier", "safe")
    (place,) = [place for kind in found["kinds"] for rule in kind["rules"] for place in rule["by_hand"]]
    assert place["held_back"]
    assert "wait for --tier review" in found["limits"][0]
    tree.run("convert", ".", "--tier", "safe", "--report", "report.html")
    assert "an edit is ready: --tier review" in Page(tree.read("report.html")).text


def test_an_edit_that_waits_for_a_person_is_not_said_to_be_ready(tree: Tree) -> None:
    tree.write(
        {"a.py": "import torch\n\ng = torch.cuda.CUDAGraph()\n", "setup.py": "import torch\n\ntorch.ones(1).cuda()\n"}
    )
    found = report(tree)
    places = [place for kind in found["kinds"] for rule in kind["rules"] for place in rule["by_hand"]]
    assert [(place["path"], place["held_back"]) for place in places] == [("setup.py", False), ("a.py", False)]


def test_how_the_run_was_narrowed_down_is_said(tree: Tree) -> None:
    tree.write({"a.py": TRAIN})
    limits = report(tree, "--select", "UC1", "--ignore", "UC104", "--exclude", "old/")["limits"]
    assert limits == [
        "Only these rules were used: UC1.",
        "These rules were left out: UC104.",
        "These paths were left out: old/.",
    ]


# -- what cannot move --------------------------------------------------------------------------------------------------


def obstacles(found: Any) -> dict[str, Any]:
    return {one["title"]: one for one in found["cuda_only"]}


def test_packages_are_listed_one_by_one_with_what_takes_their_place(tree: Tree) -> None:
    tree.write(FILES)
    found = obstacles(report(tree))
    assert {one["package"] for one in found.values()} == {"flash_attn", "apex", "xformers", "triton", None}
    attention = found["FlashAttention"]
    assert [(place["path"], place["line"]) for place in attention["places"]] == [("train.py", 2)]
    offers = {one["for"]: one["use"] for one in attention["instead"]}
    assert offers["every device"] == "torch.nn.functional.scaled_dot_product_attention"
    assert offers["Huawei Ascend NPU (npu)"] == "torch_npu.npu_fusion_attention"
    assert offers["MetaX GPU (cuda)"] == "the vendor's build (unverified)"


def test_two_packages_of_one_import_are_told_apart(tree: Tree) -> None:
    tree.write({"a.py": "import torch, apex, xformers.ops\n"})
    found = obstacles(report(tree))
    assert {title: len(one["places"]) for title, one in found.items()} == {"NVIDIA Apex": 1, "xFormers": 1}
    assert {"for": "Huawei Ascend NPU (npu)", "use": "known to offer nothing"} in found["xFormers"]["instead"]


def test_an_import_over_several_lines_and_one_in_a_block(tree: Tree) -> None:
    tree.write(
        {"a.py": "try:\n    from apex.optimizers import (\n        FusedAdam,\n    )\nexcept ImportError:\n    pass\n"}
    )
    (one,) = report(tree)["cuda_only"]
    assert one["package"] == "apex"


def test_a_package_with_a_build_for_the_cpu_is_a_note(tree: Tree) -> None:
    tree.write({"a.py": "import torch_scatter\n"})
    found = report(tree)
    assert (found["cuda_only"], found["figures"]["notes"]) == ([], 1)


def test_kernels_in_python_and_cuda_sources_are_counted(tree: Tree) -> None:
    tree.write(FILES)
    found = report(tree)
    assert found["cuda_sources"] == [
        {"path": "csrc/add.cu", "lines": 3, "kernels": 2},
        {"path": "csrc/add.cuh", "lines": 1, "kernels": 0},
    ]
    assert len(obstacles(found)["CUDA source in a string"]["places"]) == 1


def test_a_cuda_source_that_cannot_be_read_is_listed_without_a_size(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({"a.cu": CUDA})
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.suffix == ".cu":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert report(tree)["cuda_sources"] == [{"path": "a.cu", "lines": None, "kernels": None}]
    tree.run("convert", ".", "--report", "report.html")
    assert "unreadable" in Page(tree.read("report.html")).text


def test_what_builds_extensions_is_told_beside_cuda_sources(tree: Tree) -> None:
    tree.write({"a.cu": CUDA})
    tree.run("convert", ".", "--report", "report.md")
    known = [device for device in load_devices() if device.libraries.get("cpp_extension")]
    lines = [line for line in tree.read("report.md").splitlines() if line.startswith("| Huawei") or "PPU" in line]
    assert known
    assert any("NpuExtension" in line and "(unverified)" not in line for line in lines)
    assert any("PPU SDK" in line and "(unverified)" in line for line in lines)


# -- what to do next ---------------------------------------------------------------------------------------------------


def steps(found: Any) -> str:
    return "\n".join(step["text"] for step in found["next"])


def test_the_steps_are_those_that_this_repository_needs_in_order(tree: Tree) -> None:
    tree.write(FILES)
    listed = steps(report(tree))
    words = [
        "Mend or exclude 1 path", "the place of 5 dependencies and 2 CUDA sources", "Apply the conversion of 2 files",
        "Look at 1 converted place", "AI_DEVICE unset", "Work through 3 places",
        "Rehearse", "compare the loss", "Convert again",
    ]  # fmt: skip
    assert [word for word in words if word not in listed] == []
    assert [listed.index(word) for word in words] == sorted(listed.index(word) for word in words)


def test_what_is_not_needed_is_no_step(tree: Tree) -> None:
    tree.write({"a.py": "import torch\n\nx = torch.ones(1).cuda()\n"})
    listed = steps(report(tree))
    assert "Apply the conversion of 1 file " in listed
    for word in ("Mend", "Choose", "review", "left to a person", "notebook"):
        assert word not in listed


def test_efforts_are_told_with_their_meaning(tree: Tree) -> None:
    tree.write(FILES)
    found = report(tree)
    assert found["efforts"] == dict(load_kinds().efforts)
    for kind in found["kinds"]:
        for rule in kind["rules"]:
            assert rule["effort"] == load_catalogue()[rule["code"]].effort
    tree.run("convert", ".", "--report", "report.html")
    text = Page(tree.read("report.html")).text
    assert "rough hint for one place" in text
    assert "nothing was measured" in text
    assert load_kinds().efforts["hours"] in text


# -- what was written --------------------------------------------------------------------------------------------------


def test_nothing_was_written_without_write(tree: Tree) -> None:
    tree.write(FILES)
    assert report(tree)["written"] is None
    tree.run("convert", ".", "--report", "report.html")
    assert "Nothing was written" in Page(tree.read("report.html")).text


def test_with_write_the_report_tells_what_was_written(tree: Tree) -> None:
    tree.write(FILES)
    found = report(tree, "--write")
    assert found["written"] == [*found["helpers"], "pkg/net.py", "train.py"]
    assert {path.rpartition("/")[2] for path in found["helpers"]} == {"ai_device.py"}
    assert "git diff" in str(found["next"])


def test_with_write_a_file_that_could_not_be_written_is_a_problem(tree: Tree) -> None:
    tree.write(
        {"a.py": "import torch\n\nx = torch.ones(1).cuda()\n", "b.py": "import torch\n\nx = torch.ones(1).cuda()\n"}
    )
    (tree.root / "b.py").chmod(0o444)
    run = tree.run("convert", ".", "--write", "--report", "report.json")
    found = json.loads(tree.read("report.json"))
    assert run.exit_code == 2
    assert found["written"] == ["ai_device.py", "a.py"]
    assert [problem["path"] for problem in found["problems"]] == ["b.py"]
    tree.run("convert", ".", "--write", "--report", "again.md")
    assert "0 files written, 0 of them helpers; 1 file could not be written." in tree.read("again.md")


def test_with_write_and_nothing_to_write(tree: Tree) -> None:
    tree.write({"a.py": "import os\n"})
    assert report(tree, "--write")["written"] == []
    tree.run("convert", ".", "--write", "--report", "report.md")
    assert "Nothing had to be written." in tree.read("report.md")


# -- the file ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report.txt", "report", "report.htm", ".html", "report.html.gz"])
def test_another_extension_is_bad_usage_before_any_work(tree: Tree, name: str) -> None:
    tree.write({"a.py": TRAIN})
    run = tree.run("convert", ".", "--write", "--report", name)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == f"uncuda: {name}: a report is written as .html, .md, .json; give the file such an extension\n"
    assert tree.files() == {"a.py": TRAIN.encode()}


def test_a_folder_that_is_not_there_is_told_before_any_work(tree: Tree) -> None:
    tree.write({"a.py": TRAIN})
    run = tree.run("convert", ".", "--write", "--report", "lost/report.html")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == "uncuda: lost/report.html cannot be written: there is no folder lost\n"
    assert tree.files() == {"a.py": TRAIN.encode()}


def test_the_report_is_not_written_over_the_patch(tree: Tree) -> None:
    tree.write({"a.py": TRAIN})
    run = tree.run("convert", ".", "--output", "out.md", "--report", str(tree.root / "out.md"))
    assert run.exit_code == 2
    assert tree.files() == {"a.py": TRAIN.encode()}


@pytest.mark.parametrize("content", ["old\n", None])
def test_a_target_that_cannot_be_written_is_one_line(tree: Tree, content: str | None) -> None:
    tree.write({"a.py": TRAIN})
    target = tree.root / "report.html"
    if content is None:
        target.symlink_to("elsewhere.html")
    else:
        target.write_text(content)
        target.chmod(0o444)
    run = tree.run("convert", ".", "--report", "report.html")
    assert run.exit_code == 2
    assert len([line for line in run.stderr.splitlines() if "report.html" in line]) == 1
    assert run.stderr.splitlines()[-1].startswith(f"uncuda: {target}: is ")
    assert "Traceback" not in run.stderr
    assert content is None or target.read_text() == content
    assert not [path for path in tree.root.iterdir() if ".uncuda-" in path.name]


@pytest.mark.parametrize("name", ["report.HTML", "sub/report.md"])
def test_case_and_folders(tree: Tree, name: str) -> None:
    tree.write({"a.py": TRAIN, "sub/x.txt": ""})
    run = tree.run("convert", ".", "--report", name)
    assert run.exit_code == 1
    assert f"wrote {name}\n" in run.stderr
    assert tree.read(name).startswith(("<!doctype html>", "# Migration from CUDA"))


def test_the_patch_is_printed_as_ever(tree: Tree) -> None:
    tree.write(FILES)
    assert tree.run("convert", ".", "--report", "report.md").stdout == tree.run("convert", ".").stdout


def test_the_report_is_relative_to_the_working_directory_and_its_paths_to_the_repository(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write(FILES)
    monkeypatch.chdir(tree.root / "pkg")
    tree.run("convert", "..", "--report", "report.json")
    found = json.loads(tree.read("pkg/report.json"))
    assert [file["path"] for file in found["files"]] == [
        "config.yaml",
        "train.py",
        "pkg/net.py",
        "pkg/deep/kernel.py",
    ]
    assert [folder["path"] for folder in found["folders"]] == ["", "pkg/", "pkg/deep/"]
    assert found["name"] == tree.root.name


@pytest.mark.parametrize("format_", FORMATS)
def test_no_report_tells_where_it_was_made(tree: Tree, format_: str) -> None:
    tree.write(FILES)
    tree.run("convert", ".", "--report", f"report.{format_}")
    assert str(tree.root.parent) not in tree.read(f"report.{format_}")


@pytest.mark.parametrize("format_", FORMATS)
def test_the_same_run_gives_the_same_report(tree: Tree, format_: str) -> None:
    tree.write(FILES)
    tree.run("convert", ".", "--report", f"one.{format_}", "--jobs", "1")
    first = tree.read(f"one.{format_}")
    (tree.root / f"one.{format_}").unlink()
    tree.run("convert", ".", "--report", f"one.{format_}", "--jobs", "2")
    assert tree.read(f"one.{format_}") == first


# -- nothing to say ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_a_repository_without_cuda_gets_a_report_that_says_so(tree: Tree, format_: str) -> None:
    tree.write({"a.py": "import os\n"})
    run = tree.run("convert", ".", "--report", f"report.{format_}")
    assert run.exit_code == 0
    text = tree.read(f"report.{format_}")
    if format_ == "json":
        found = json.loads(text)
        assert set(found["figures"].values()) == {0}
        assert (found["files_read"], found["kinds"], found["next"]) == (1, [], [])
    else:
        assert "1 file read, 0 to change." in text
        assert "Nothing names CUDA." in text


def test_notes_alone_are_nothing_to_convert(tree: Tree) -> None:
    tree.write({"a.py": "import torch\n\ntorch.backends.cudnn.benchmark = True\n"})
    tree.run("convert", ".", "--report", "report.md")
    assert "No place in them has to be converted." in tree.read("report.md")
    assert "Harmless on other devices" in tree.read("report.md")


def test_an_empty_folder(tree: Tree) -> None:
    assert report(tree)["files_read"] == 0


def test_libcst_is_not_imported_where_nothing_is_found(tree: Tree) -> None:
    tree.write({"a.py": "import os\n"})
    code = (
        "import sys\nfrom codemods.cli.main import cli\ntry:\n    cli(['convert', '.', '--report', 'r.html'])\n"
        "except SystemExit as end:\n    print(end.code, sorted({'libcst', 'rich', 'torch'} & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree.root, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 []\n"


# -- the formats -------------------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else(tree: Tree) -> None:
    tree.write(FILES)
    tree.run("convert", ".", "--report", "report.html")
    html = tree.read("report.html")
    page = Page(html)
    assert not {"img", "link", "iframe", "object", "base"} & page.tags
    assert not {"src", "srcset", "onclick", "action"} & {name for _, name in page.attributes}
    assert not re.search(r"url\(|@import|https?:", html)
    assert "default-src 'none'" in html


def test_links_of_the_page_have_an_end(tree: Tree) -> None:
    tree.write(FILES)
    tree.run("convert", ".", "--report", "report.html")
    page = Page(tree.read("report.html"))
    assert len(page.anchors) == len(set(page.anchors))
    assert page.links
    assert {link.removeprefix("#") for link in page.links} <= set(page.anchors)


def test_links_of_the_markdown_have_an_end(tree: Tree) -> None:
    tree.write(FILES)
    tree.run("convert", ".", "--report", "report.md")
    text = tree.read("report.md")
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    links = re.findall(r"\]\(#([\w-]+)\)", text)
    assert links
    assert set(links) <= headings


def test_every_place_is_in_every_format(tree: Tree) -> None:
    tree.write(FILES)
    found = report(tree)
    places = [place for kind in found["kinds"] for rule in kind["rules"] for place in rule["by_hand"] + rule["review"]]
    places += [place for one in found["cuda_only"] for place in one["places"]]
    names = [f"{place['path']}:{place['line']}:{place['column']}" for place in places]
    names += ["csrc/add.cu", "config.yaml", "bad.py:1", "ai_device.py"]
    for name in ("report.html", "report.md"):
        tree.run("convert", ".", "--report", name)
        text = Page(tree.read(name)).text if name.endswith("html") else tree.read(name)
        assert [one for one in names if one not in text] == []


def documented(heading: str) -> set[str]:
    """The first column of the table below a heading of the documentation."""
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    table = page.partition(f"### {heading}\n")[2].partition("\n#")[0]
    return {key for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for key in re.findall(r"`(.+?)`", row)}


def keys_of(value: Any, at: str = "") -> set[str]:
    """``kinds[].rules[].code``: every key of a document, down to figures, efforts and places."""
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one, f"{at}[]")}
    if not isinstance(value, dict):
        return set()
    keys = set()
    for name, inside in value.items():
        full = f"{at}.{name}".lstrip(".")
        is_whole = name in ("figures", "efforts", "by_hand", "review", "places") and not isinstance(inside, int)
        keys |= {full} if is_whole else {full, *keys_of(inside, full)}
    return keys


def test_the_keys_of_the_json_are_documented_and_the_other_way_round(tree: Tree) -> None:
    tree.write(FILES)
    found = report(tree)
    assert keys_of(found) == documented("The document")
    rules = [rule for kind in found["kinds"] for rule in kind["rules"]]
    for one in (found, *found["kinds"], *rules, *found["folders"], *found["files"]):
        assert set(one["figures"]) == documented("Figures")
    places = [place for rule in rules for place in rule["by_hand"] + rule["review"]]
    places += [place for one in found["cuda_only"] for place in one["places"]]
    assert places
    assert all(set(place) == documented("A place") for place in places)


def test_the_options_and_extensions_of_the_page_are_those_of_the_command() -> None:
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    assert all(f"`.{format_}`" in page for format_ in FORMATS)
    for effort, meaning in load_kinds().efforts.items():
        assert f"| `{effort}` | {meaning} |" in page


def test_a_place_in_a_notebook_is_named_by_its_cell(tree: Tree) -> None:
    tree.write({"nb.ipynb": as_json(notebook_of("import torch\n", "g = torch.cuda.CUDAGraph()\n"))})
    ((rule,),) = [kind["rules"] for kind in report(tree)["kinds"]]
    place = rule["by_hand"][0]
    assert (place["path"], place["cell"], place["line"], place["column"]) == ("nb.ipynb", 2, 1, 5)
    tree.run("convert", ".", "--report", "report.md")
    assert "nb.ipynb:cell 2:1:5" in tree.read("report.md")
