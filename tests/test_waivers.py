"""Waivers: what their comments take out, in ``check`` and in ``convert``, and what is said of those that do not."""

from __future__ import annotations

import codecs
import re

import pytest
from conversion import Tree, both_ways, converted
from hypothesis import given, settings
from hypothesis import strategies as st

HEAD = "import torch\n\n"


def found(source: str) -> list[tuple[int, str]]:
    """The lines and rules of what is found."""
    return [(finding.line, finding.rule) for finding in both_ways(source).findings]


def waived(source: str) -> bool:
    """Whether nothing is found in a source, and nothing would be without its comments being there for it."""
    assert [rule for _, rule in found(re.sub(r"#.*", "", source))]
    return found(source) == [] and converted(source).after == source.encode()


# -- on a line -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "comment",
    [
        "# uncuda: ignore[UC101] measured on CUDA",
        "# uncuda: ignore[UC101]",
        "# uncuda: ignore",
        "# uncuda: ignore the whole line",
        "# uncuda:ignore[UC101]",
        "#uncuda: ignore[UC101]",
        "#  uncuda:  ignore[ uc101 ,UC204]",
        "# uncuda: ignore [UC101]",
        "# uncuda: ignore[UC1]",
        "# uncuda: ignore[UC]",
        "# noqa: E501  # uncuda: ignore[UC101]",
        "# uncuda: ignore[UC101] see #12  # noqa: E501",
        "# type: ignore # uncuda: ignore[UC101]",
        "# why: it is measured  ## uncuda: ignore[UC101]",
    ],
)
def test_behind_the_code(comment: str) -> None:
    source = f"{HEAD}x = torch.ones(2).cuda()  {comment}\n"
    assert (3, "UC101") not in found(source)
    assert converted(source).after == source.encode()
    assert found(source) == ([(3, "UC001")] if "UC204" in comment else [])


def test_only_its_own_line() -> None:
    source = HEAD + "x = torch.ones(2).cuda()  # uncuda: ignore\ny = torch.ones(2).cuda()\n"
    assert found(source) == [(4, "UC101")]
    assert b"x = torch.ones(2).cuda()  # uncuda: ignore\ny = torch.ones(2).to(" in converted(source).after


def test_only_its_own_rules() -> None:
    source = HEAD + "x = torch.ones(2, device='cuda').to(0)  # uncuda: ignore[UC104]\n"
    assert found(source) == [(3, "UC102")]


def test_what_only_reads_like_a_waiver() -> None:
    for text in ("'# uncuda: ignore'", '"""\n# uncuda: ignore\n"""', "'a', # write `# uncuda: ignore` here\n 1"):
        source = f"{HEAD}x = (torch.ones(2).cuda(), {text})\n"
        assert [rule for _, rule in found(source)] == ["UC101"]


@pytest.mark.parametrize(
    "statement",
    [
        "x = move(\n    a.cuda(),  # uncuda: ignore[UC101]\n    b,\n)",
        "x = move(\n    # uncuda: ignore[UC101]\n    a.cuda(),\n    b,\n)",
        "x = move(\n    a.cuda(),\n    b,\n)  # uncuda: ignore[UC101]",
        "x = move(a.cuda(\n    non_blocking=True,\n))  # uncuda: ignore[UC101]",
        "x = (\n    a\n    .float()\n    .cuda()  # uncuda: ignore[UC101]\n    .sum()\n)",
        "x = a.cuda() \\\n    + 1  # uncuda: ignore[UC101]",
        "x = '''\n''', a.cuda()  # uncuda: ignore[UC101]",
        "if a.cuda():  # uncuda: ignore[UC101]\n    pass",
        "class A: x = torch.ones(2).cuda()  # uncuda: ignore[UC101]",
    ],
)
def test_over_several_lines(statement: str) -> None:
    assert waived(f"import torch\n\na = b = torch.ones(2)\n{statement}\n")


def test_inside_brackets_it_speaks_of_its_line_alone() -> None:
    source = HEAD + "x = f(\n    torch.ones(1).cuda(),  # uncuda: ignore\n    torch.ones(1).cuda(),\n)\n"
    assert found(source) == [(5, "UC101")]


def test_a_call_around_it_is_not_meant() -> None:
    source = HEAD + "m = torch.nn.DataParallel(\n    torch.nn.Linear(1, 1).cuda(),  # uncuda: ignore\n)\n"
    assert found(source) == [(3, "UC304")]


# -- above a statement -----------------------------------------------------------------------------------------------

BLOCKS = {
    "with": "with torch.cuda.device(0):\n    x = torch.ones(2).cuda()\n    torch.cuda.synchronize()",
    "def": "def f(x):\n    return x.cuda()",
    "async def": "async def f(x):\n    return x.cuda()",
    "decorated": "@torch.no_grad()\n@other(torch.cuda.current_device())\ndef f(x):\n    return x.cuda()",
    "class": "class A:\n    def f(self, x):\n        if x:\n            return torch.ones(2).cuda()",
    "if, elif, else": "if a:\n    x.cuda()\nelif b:\n    x.cuda()\nelse:\n    x.cuda()",
    "try": "try:\n    torch.cuda.synchronize()\nexcept RuntimeError:\n    torch.cuda.empty_cache()",
    "for": "for x in y:\n    torch.ones(2).cuda()\nelse:\n    torch.ones(2).cuda()",
    "simple": "x = f(\n    torch.ones(2).cuda(),\n    torch.ones(2).cuda())",
    "two on a line": "x = torch.ones(2).cuda(); y = torch.ones(2).cuda()",
    "import": "from torch.cuda import synchronize",
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_above_a_statement(block: str) -> None:
    behind = "\nz = torch.ones(2).cuda()\n"
    source = f"import torch\nx = torch.ones(2)\n\n# uncuda: ignore\n{block}{behind}"
    assert [rule for _, rule in found(source)] == ["UC101"]
    assert converted(source).after.decode().startswith("import torch\n")
    assert f"# uncuda: ignore\n{block}\n" in converted(source).after.decode()


def test_above_a_statement_further_in() -> None:
    source = (
        "import torch\n\n\ndef f(x):\n    # uncuda: ignore[UC1] why\n    # another word\n\n    if x:\n"
        "        x = x.cuda()\n    return x.cuda()\n"
    )
    assert found(source.replace("x)", "x: torch.Tensor)")) == [(10, "UC101")]


@pytest.mark.parametrize("indent", ["\t", "  "])
def test_above_a_statement_with_any_indentation(indent: str) -> None:
    assert waived(f"import torch\n\nif True:\n{indent}# uncuda: ignore\n{indent}x = torch.ones(2).cuda()\n")


def test_between_decorators() -> None:
    assert waived("import torch\n\n\n@torch.no_grad()\n# uncuda: ignore\ndef f():\n    return torch.ones(2).cuda()\n")


@pytest.mark.parametrize(
    "source",
    [
        "if a:\n    b()\n    # uncuda: ignore\nx = torch.ones(2).cuda()\n",  # of the block above, which it ends
        "if a:\n    b()\n# uncuda: ignore\nelse:\n    x = torch.ones(2).cuda()\n",  # above no statement
        "x = torch.ones(2).cuda()\n# uncuda: ignore\n",
    ],
)
def test_above_nothing(source: str) -> None:
    assert sorted(rule for _, rule in found(HEAD + source)) == ["UC001", "UC101"]


# -- what belongs together -------------------------------------------------------------------------------------------


def test_half_an_idiom_is_not_converted() -> None:
    source = "import torch\n\nx = torch.ones(2)\nif torch.cuda.is_available():  # uncuda: ignore\n    x = x.cuda()\n"
    conversion = both_ways(source)
    assert [(finding.line, finding.tier.label) for finding in conversion.findings] == [(5, "manual")]
    assert not conversion.changed


def test_imports_of_what_is_waived_stay() -> None:
    source = (
        "import torch\nfrom torch.cuda import amp\n\n# uncuda: ignore\nwith amp.autocast():\n    pass\n"
        "torch.cuda.synchronize()\n"
    )
    after = converted(source).after.decode()
    assert "# uncuda: ignore\nwith amp.autocast():" in after
    assert "from torch.cuda import amp" in after
    assert "ai_device.synchronize()" in after


def test_a_second_source_of_devices_is_none_where_all_else_is_waived() -> None:
    source = (
        "import torch\nfrom accelerate import Accelerator\n\naccelerator = Accelerator()\ntorch.cuda.empty_cache()\n"
    )
    assert "UC352" in [rule for _, rule in found(source)]
    assert found(source.replace("cache()", "cache()  # uncuda: ignore[UC501]")) == []


# -- the whole file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        "# uncuda: skip-file\n",
        "# uncuda: skip-file kernels of ours\n",
        "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n\n# Licence\n#uncuda:skip-file\n",
        '"""A docstring."""\n\n# uncuda: skip-file\n',
        "\ufeff# uncuda: skip-file\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_skip_file(tree: Tree, head: str, newline: str) -> None:
    text = (head + "import torch\n\nx = torch.ones(2).cuda()\n").replace("\n", newline)
    tree.write({"a.py": text})
    for arguments in (("check", "."), ("check", ".", "--fix"), ("convert", ".", "--write")):
        run = tree.run(*arguments)
        assert (run.exit_code, run.stdout) == (0, "")
    assert tree.files() == {"a.py": text.encode()}


def test_a_skipped_file_need_not_parse(tree: Tree) -> None:
    tree.write({"a.py": "# uncuda: skip-file\nx = {{ device }}.cuda(\n"})
    assert tree.run("check", ".").exit_code == 0


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n# uncuda: skip-file\n",
        "import torch  # uncuda: skip-file\n",
        "import torch\n\n\ndef f():\n    # uncuda: skip-file\n    pass\n",
    ],
)
def test_skip_file_further_down_has_no_effect(tree: Tree, source: str) -> None:
    tree.write({"a.py": source + "x = torch.ones(2).cuda()\n"})
    run = tree.run("check", "a.py")
    assert run.exit_code == 1
    assert "UC101" in run.stdout
    assert "UC002 this waiver has no effect: skip-file has to stand on a line of its own above" in run.stdout


def test_skip_file_in_a_string_is_none(tree: Tree) -> None:
    tree.write({"a.py": '"""\n# uncuda: skip-file\n"""\nimport torch\n\nx = torch.ones(2).cuda()\n'})
    assert "UC101" in tree.run("check", ".").stdout


# -- waivers that do nothing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# uncuda: ignore", "UC001 nothing is found here that this waiver takes out; remove it"),
        ("# uncuda: ignore[UC101]", "UC001 nothing is found here that this waiver takes out; remove it"),
        ("# uncuda: ignore[UC999]", "UC002 this waiver has no effect: there is no rule UC999"),
        ("# uncuda: ignore[CUDA]", "UC002 this waiver has no effect: there is no rule CUDA"),
        ("# uncuda: ignore[]", "UC002 this waiver has no effect: it names no code between the brackets"),
        ("# uncuda: ignore[UC101", "UC002 this waiver has no effect: it is neither"),
        ("# uncuda: ignored", "UC002 this waiver has no effect: it is neither"),
        ("# uncuda: noqa", "UC002 this waiver has no effect: it is neither"),
        ("# uncuda:", "UC002 this waiver has no effect: it is neither"),
    ],
)
def test_in_a_file_without_cuda(tree: Tree, comment: str, message: str) -> None:
    tree.write({"a.py": f"x = 1  {comment}\n"})
    run = tree.run("check", "a.py")
    assert run.exit_code == 1
    assert run.stdout.startswith(f"a.py:1:8 {message}")
    assert len(run.stdout.splitlines()) == 1


def test_some_of_its_codes_are_unused(tree: Tree) -> None:
    tree.write({"a.py": HEAD + "x = torch.ones(2).cuda()  # uncuda: ignore[UC101, UC2, UC503, UC999]\n"})
    messages = [line.split(" ", 1)[1] for line in tree.run("check", "a.py").stdout.splitlines()]
    assert messages == [
        "UC001 nothing is found here that this waiver takes out; remove it: UC2, UC503",
        "UC002 this waiver has no effect: there is no rule UC999",
    ]


def test_a_waiver_is_used_whatever_is_selected(tree: Tree) -> None:
    tree.write({"a.py": HEAD + "x = torch.ones(2).cuda()  # uncuda: ignore[UC101]\n"})
    for options in ((), ("--select", "UC5,UC0"), ("--ignore", "UC101")):
        assert tree.run("check", "a.py", *options).exit_code == 0


def test_a_waiver_of_a_note_is_used(tree: Tree) -> None:
    tree.write({"a.py": HEAD + "torch.backends.cudnn.benchmark = True  # uncuda: ignore[UC901]\n"})
    assert tree.run("check", "a.py").stdout == ""
    assert tree.run("check", "a.py", "--notes").stdout == ""


def test_unused_waivers_can_be_ignored(tree: Tree) -> None:
    tree.write({"a.py": "x = 1  # uncuda: ignore\n"})
    assert tree.run("check", "a.py", "--ignore", "UC0").exit_code == 0


def test_a_waiver_cannot_waive_what_is_said_of_it(tree: Tree) -> None:
    tree.write({"a.py": "x = 1  # uncuda: ignore[UC001]\n"})
    assert "UC001" in tree.run("check", "a.py").stdout


def test_a_waiver_behind_an_import_that_goes(tree: Tree) -> None:
    tree.write({"a.py": "import torch  # uncuda: ignore[UC101]\n\ntorch.cuda.synchronize()\n"})
    run = tree.run("check", "a.py", "--fix")
    assert run.exit_code == 1
    assert "a fault of uncuda" not in run.stderr
    assert "ai_device.synchronize()" in tree.read("a.py")
    again = tree.run("check", "a.py")
    assert run.stdout == again.stdout


# -- any file --------------------------------------------------------------------------------------------------------


def test_encodings_and_line_ends() -> None:
    source = "# größe\nimport torch\n\nx = 'é', torch.ones(2).cuda()  # uncuda: ignore[UC101] größer\n"
    for raw in (
        codecs.BOM_UTF8 + source.encode(),
        source.replace("\n", "\r\n").encode(),
        source.replace("\n", "\r").encode(),
        b"# coding: latin-1\n" + source.encode("latin-1"),
        source.rstrip("\n").encode(),
    ):
        conversion = converted(raw)
        assert not conversion.findings
        assert conversion.after == raw


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "x = x.cuda()",
                "x = f(\n    x.cuda(),\n    'cuda',\n)",
                "if torch.cuda.is_available():\n    x = x.cuda()",
                "with torch.cuda.device(0):\n    y = x.cuda()\n    torch.cuda.synchronize()",
                "def f(x):\n    return x.to('cuda')",
                "text = '# uncuda: ignore'",
            ]
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_waiver_above_each_statement_leaves_a_file_as_it_is(statements: list[str]) -> None:
    source = "import torch\n\nx = torch.ones(1)\n" + "".join(f"# uncuda: ignore\n{s}\n" for s in statements)
    conversion = converted(source)
    assert not conversion.changed
    assert {finding.rule for finding in conversion.findings} <= {"UC001"}
