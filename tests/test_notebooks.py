"""Notebooks on the command line: only the source of code cells changes, and nothing is lost."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conversion import Tree
from notebooks import as_json, notebook_of, sources, validate

from codemods.runtime import is_helper

IMPORT = "import torch"
USE = "x = torch.ones(1).cuda()"
USED = "x = torch.ones(1).to(ai_device.device())"
IMPORTED = "import torch\n\nimport ai_device"


def convert(tree: Tree, notebook: object, expected: int = 1) -> list[str]:
    """Writes a notebook, converts it and gives the sources of its cells."""
    tree.write({"a.ipynb": as_json(notebook)})
    run = tree.run("convert", "a.ipynb", "--write")
    assert run.exit_code == expected, run.stderr
    return sources(tree.files()["a.ipynb"])


def said(tree: Tree, *arguments: str) -> list[str]:
    """What is said of a.ipynb."""
    stderr = tree.run("convert", "a.ipynb", *arguments).stderr
    return [line.removeprefix("a.ipynb:") for line in stderr.splitlines() if line.startswith("a.ipynb:")]


# -- bytes that stay -------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[Any], bytes]] = {
    "jupyter": as_json,
    "no last line end": lambda n: as_json(n)[:-1],
    "two blanks": lambda n: json.dumps(n, indent=2).encode(),
    "tabs": lambda n: json.dumps(n, indent="\t").encode(),
    "one line": lambda n: json.dumps(n).encode(),
    "compact": lambda n: json.dumps(n, separators=(",", ":")).encode(),
    "sorted keys": lambda n: json.dumps(n, indent=1, sort_keys=True).encode(),
    "line ends of windows": lambda n: as_json(n).replace(b"\n", b"\r\n"),
    "byte-order mark": lambda n: codecs.BOM_UTF8 + as_json(n),
}
OUTPUT = {"data": {"text/plain": ["cuda:0 é\n"]}, "metadata": {}, "output_type": "display_data"}
MARKDOWN = {"cell_type": "markdown", "id": "text", "metadata": {"cuda": "torch.cuda"}, "source": ["call `x.cuda()`"]}
RAW = {"cell_type": "raw", "id": "raw", "metadata": {}, "source": "torch.load('x')"}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("as_text", [False, True])
def test_the_layout_stays(tree: Tree, layout: str, as_text: bool) -> None:
    def made(first: str, second: str) -> bytes:
        notebook = notebook_of(MARKDOWN, first, RAW, second, "", "'a text'", metadata={"b": [1.50, 1e3, None], "a": {}})
        notebook["cells"][3]["outputs"] = [OUTPUT]
        for cell in notebook["cells"] if as_text else []:
            cell["source"] = "".join(cell["source"])
        return LAYOUTS[layout](notebook)

    tree.write({"a.ipynb": made(f"# é\n{IMPORT}", f"y = 1\n{USE}  # why\n")})
    tree.run("convert", "a.ipynb", "--write")
    raw = tree.files()["a.ipynb"]
    assert raw == made(f"# é\n{IMPORTED}", f"y = 1\n{USED}  # why\n")
    validate(raw)
    again = tree.run("convert", "a.ipynb")
    assert (again.exit_code, again.stdout) == (0, "")


def test_escapes_outside_the_edits_stay(tree: Tree) -> None:
    source = (
        r"import torch\n\u00e9 = torch.ones(1) \u003c 2; s = '\u0063\/\ud83d\ude00'; \u0078 = s, \u00e9.cuda() # \t\""
    )
    notebook = '{"cells": [{"cell_type": "code", "source": "' + source + '"}]}'
    tree.write({"a.ipynb": notebook})
    tree.run("convert", "a.ipynb", "--write")
    expected = notebook.replace("cuda()", "to(ai_device.device())").replace(r"torch\n", r"torch\nimport ai_device\n")
    assert tree.read("a.ipynb") == expected


def test_lines_that_are_not_cut_at_line_ends(tree: Tree) -> None:
    notebook = notebook_of("")
    notebook["cells"][0]["source"] = ["import ", "torch\nx = torch.", "ones(1)", "", ".cu", "da()\n", "", "y = x"]
    (source,) = convert(tree, notebook)
    assert source == "import torch\nimport ai_device\nx = torch.ones(1).to(ai_device.device())\ny = x"


def test_line_ends_within_the_source(tree: Tree) -> None:
    cells = convert(tree, notebook_of(f"{IMPORT}\r\nimport os\r\n", USE, f"{USE}\r\n"))
    assert cells == [f"{IMPORT}\r\nimport os\r\n\r\nimport ai_device\r\n", USED, f"{USED}\r\n"]


def test_new_lines_are_strings_of_their_own(tree: Tree) -> None:
    convert(tree, notebook_of(f"{IMPORT}\n", f"from torch.cuda import synchronize, Stream\n{USE}"))
    cells = json.loads(tree.read("a.ipynb"))["cells"]
    assert all(cell["source"] == "".join(cell["source"]).splitlines(keepends=True) for cell in cells)


def test_the_mode_stays_and_links_are_not_followed(tree: Tree) -> None:
    tree.write({"a.ipynb": as_json(notebook_of(IMPORT, USE))})
    (tree.root / "a.ipynb").chmod(0o640)
    (tree.root / "b.ipynb").symlink_to("a.ipynb")
    run = tree.run("convert", ".", "--write")
    assert "wrote a.ipynb" in run.stderr
    assert "wrote b.ipynb" not in run.stderr
    assert (tree.root / "a.ipynb").stat().st_mode & 0o777 == 0o640


# -- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        MARKDOWN,
        RAW,
        {"cell_type": "code", "metadata": {"cuda": 1}, "outputs": [OUTPUT], "source": ["print(1)"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": []},
        {"cell_type": "code", "metadata": {}, "outputs": [OUTPUT]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "# x.cuda()"},
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "%%html\n<p>torch.cuda</p>"},
    ],
)
def test_what_is_no_code_is_no_concern(tree: Tree, cell: dict[str, Any]) -> None:
    tree.write({"a.ipynb": as_json(notebook_of(cell, IMPORT))})
    run = tree.run("convert", ".")
    assert (run.exit_code, run.stdout) == (0, "")
    assert said(tree, "--notes") == []


def test_places_are_those_of_the_cell(tree: Tree) -> None:
    tree.write({"a.ipynb": as_json(notebook_of(MARKDOWN, IMPORT, "s = 'é😀'; g = torch.cuda.CUDAGraph()"))})
    assert said(tree)[0].startswith("cell 3:1:15 UC503 manual ")
    found = json.loads(tree.run("convert", ".", "--format", "json").stdout)
    ((finding,),) = [file["findings"] for file in found["files"]]
    assert (finding["cell"], finding["line"], finding["column"]) == (3, 1, 15)
    assert tree.files()["a.ipynb"][finding["start"] : finding["end"]] == b"torch.cuda.CUDAGraph"


def test_the_edits_in_json_are_those_of_the_file(tree: Tree) -> None:
    raw = as_json(notebook_of(IMPORT, f"s = 'é😀'\n{USE}"))
    tree.write({"a.ipynb": raw})
    found = json.loads(tree.run("convert", ".", "--format", "json").stdout)
    (edit,) = found["files"][0]["findings"][0]["edits"]
    raw = raw[: edit["start"]] + edit["replacement"].encode() + raw[edit["end"] :]
    assert sources(raw)[1] == f"s = 'é😀'\n{USED}"


def test_a_cuda_method_of_a_class_in_a_notebook_is_its_own(tree: Tree) -> None:
    own = "class Box:\n    def cuda(self):\n        return self\n\n    def to(self, device):\n        return self"
    assert convert(tree, notebook_of(IMPORT, f"%matplotlib inline\n{own}", "Box().cuda()"))[2] == "Box().cuda()"


@pytest.mark.parametrize(
    "metadata",
    [
        {"language_info": {"name": "julia"}},
        {"kernelspec": {"language": "Julia", "name": "julia-1.9"}},
        {"kernelspec": {"language": "python"}, "language_info": {"name": "julia"}},
    ],
)
def test_a_notebook_in_another_language_is_listed(tree: Tree, metadata: object) -> None:
    tree.write({"a.ipynb": as_json(notebook_of("using CUDA", USE, metadata=metadata))})
    run = tree.run("convert", ".")
    assert run.exit_code == 1
    assert run.stdout == ""
    assert "a.ipynb: notebook in julia that mentions CUDA; it is not touched" in run.stderr


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"kernelspec": {"language": "python"}},
        {"language_info": {"name": "ipython3"}},
        {"kernelspec": None},
        None,
        [],
    ],
)
def test_a_notebook_in_python_is_converted(tree: Tree, metadata: object) -> None:
    assert convert(tree, notebook_of(IMPORT, USE, metadata=metadata)) == [IMPORTED, USED]


@pytest.mark.parametrize(
    ("shell", "column"),
    [
        ("!nvidia-smi", 2),
        ("!!nvidia-smi -L", 3),
        ("gpus = !nvidia-smi -L", 9),
        ("%sx nvidia-smi", 5),
        ("%%bash\nnvidia-smi", 1),
        ("!nvcc --version", 2),
        ("%pip install nvidia-ml-py", None),
        ("pip install nvidia-ml-py", None),
        ("# !nvidia-smi", None),
        ("%%markdown\nCall nvidia-smi", None),
    ],
)
def test_a_tool_of_nvidia_in_a_shell_command(tree: Tree, shell: str, column: int | None) -> None:
    tree.write({"a.ipynb": as_json(notebook_of("import os  # no CUDA", shell))})
    tools = [line for line in said(tree) if "UC715" in line]
    line = shell.count("\n") + 1
    places = [place.partition(" UC")[0] for place in tools]
    assert places == ([] if column is None else [f"cell 2:{line}:{column}"])


# -- the helper's import ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((IMPORT, USE), (IMPORTED, USED)),
        ((f"{IMPORT}\n\nn = 1", USE), (f"{IMPORTED}\n\nn = 1", USED)),
        ((f"{IMPORT}\n{USE}",), (f"{IMPORT}\nimport ai_device\n{USED}",)),
        ((f"{IMPORT}; {USE}",), (f"{IMPORT}; import ai_device; {USED}",)),
        (("import os", IMPORT, "import re", USE), ("import os", IMPORTED, "import re", USED)),
        (("import os", "def f():\n    pass", IMPORT, USE), ("import os", "def f():\n    pass", IMPORTED, USED)),
        ((f"%time {IMPORT}", USE), (f"%time {IMPORT}\n\nimport ai_device", USED)),
        ((f"!ls\n{IMPORT}\n!ls", USE), (f"!ls\n{IMPORT}\nimport ai_device\n!ls", USED)),
        ((f"%%capture\n{IMPORT}", USE), (f"%%capture\n{IMPORTED}", USED)),
        ((IMPORT, f"%%timeit\nimport re\n{USE}"), (IMPORTED, f"%%timeit\nimport re\n{USED}")),
        (("for i in y:\n    i.cuda()",), ("import ai_device\n\nfor i in y:\n    i.to(ai_device.device())",)),
        (
            ("if 1:\n    import torch", "# now\n!ls\n" + USE),
            ("if 1:\n    import torch", "# now\n!ls\nimport ai_device\n\n" + USED),
        ),
        (("with y:\n    import re", f"%time {USE}"), ("with y:\n    import re", f"import ai_device\n\n%time {USED}")),
        (
            ("n = 1\nif n:\n    import torch", f"%%timeit\n{USE}"),
            ("import ai_device\n\nn = 1\nif n:\n    import torch", f"%%timeit\n{USED}"),
        ),
        ((f" {IMPORT}\n {USE}", IMPORT, USE), (f" {IMPORT}\n {USE}", IMPORT, USE)),
        (("from torch.cuda import synchronize\nsynchronize()",), ("from ai_device import synchronize\nsynchronize()",)),
        (
            (f"{IMPORT}\nfrom torch import cuda", "cuda.synchronize()"),
            (f"{IMPORT}\nimport ai_device", "ai_device.synchronize()"),
        ),
        (
            (IMPORT, "a = 1\nfrom torch import cuda", "cuda.synchronize()"),
            (IMPORTED, "a = 1", "ai_device.synchronize()"),
        ),
        (
            (IMPORT, "a = 1\nfrom torch import cuda\nfrom torch.cuda import amp", "cuda.synchronize(), amp.autocast()"),
            (IMPORTED, "a = 1", "ai_device.synchronize(), ai_device.autocast()"),
        ),
        ((IMPORT, "from torch import cuda", "cuda.synchronize()"), (IMPORTED, "", "ai_device.synchronize()")),
    ],
)  # fmt: skip
def test_where_the_import_goes(tree: Tree, cells: tuple[str, ...], expected: tuple[str, ...]) -> None:
    tree.write({"a.ipynb": as_json(notebook_of(*cells))})
    tree.run("convert", "a.ipynb", "--write")
    assert sources(tree.files()["a.ipynb"]) == list(expected)
    before = tree.files()
    assert "wrote" not in tree.run("convert", "a.ipynb", "--write").stderr
    assert tree.files() == before


def test_no_cell_that_could_import_it(tree: Tree) -> None:
    cells = ["%%timeit\nimport torch\ntorch.ones(1).cuda()"]
    assert convert(tree, notebook_of(*cells), expected=2) == cells
    assert said(tree) == [" left as it is: no cell before the first use can import the helper"]


def test_torch_itself_stays_imported(tree: Tree) -> None:
    assert convert(tree, notebook_of(IMPORT, "torch.cuda.synchronize()"))[0] == IMPORTED


def test_a_name_that_a_magic_uses_stays_imported(tree: Tree) -> None:
    cells = convert(tree, notebook_of(f"{IMPORT}\nfrom torch import cuda", "cuda.synchronize()", "!echo {cuda}"))
    assert "from torch import cuda" in cells[0]


def test_the_import_stands_behind_changes_of_the_path(tree: Tree) -> None:
    change = 'import sys\nsys.path.append("..")'
    tree.write({
        "lib/__init__.py": "", "lib/net.py": f"{IMPORT}\n{USE}\n", "main.py": f"import lib.net\n{IMPORT}\n{USE}\n",
        "nb/a.ipynb": as_json(notebook_of(IMPORT, "def f():\n    pass", change, "from lib import net", USE)),
    })  # fmt: skip
    tree.run("convert", ".", "--write")
    after = sources(tree.files()["nb/a.ipynb"])
    assert after[0] == IMPORT
    code = "\n".join(after)
    assert code.index("sys.path") < code.index("import ai_device") < code.index("ai_device.device")
    assert _ran(tree.root / "nb", after) == ""


def test_the_helper_lies_where_the_notebook_finds_it(tree: Tree) -> None:
    tree.write({"docs/nb/a.ipynb": as_json(notebook_of(f"%matplotlib inline\n{IMPORT}", USE, "print(x.device)"))})
    tree.run("convert", ".", "--write")
    assert is_helper(tree.read("docs/nb/ai_device.py"))
    assert _ran(tree.root / "docs/nb", sources(tree.files()["docs/nb/a.ipynb"])) == "cpu\n"


def _ran(folder: Path, cells: list[str]) -> str:
    """What the code of cells prints on the CPU; Jupyter runs them in the folder of the notebook."""
    code = "\n".join(line for cell in cells for line in cell.split("\n") if not line.startswith(("%", "!")))
    environment = {**os.environ, "AI_DEVICE": "cpu"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


# -- what cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("x = (\n  y.cuda()", "1: does not parse: '(' was never closed"),
        ("y = 1\nprint y.cuda()", "2: does not parse: "),
        ("x.cuda()\n  y = 1", "2: does not parse: unexpected indent"),
        ("%time x = 1\nif x.cuda():", "2: does not parse: "),
        ("s = '\ud83d', x.cuda()", "1: holds half a character"),
        ("x.cuda()\0", ""),
    ],
)
def test_a_cell_that_cannot_be_read_fails_alone(tree: Tree, bad: str, message: str) -> None:
    notebook = notebook_of(IMPORT, MARKDOWN, bad, "also = bad (", USE)
    raw = json.dumps(notebook).encode()
    tree.write({"a.ipynb": raw})
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 2
    assert sources(tree.files()["a.ipynb"])[0::4] == [IMPORTED, USED]
    assert sources(tree.files()["a.ipynb"])[1:4] == sources(raw)[1:4]
    (failure,) = [line for line in run.stderr.splitlines() if line.startswith("a.ipynb:")]
    assert failure.startswith(f"a.ipynb:cell 3:{message}")
    assert "Traceback" not in run.stderr


def test_a_bad_cell_without_cuda_is_nobodys_business(tree: Tree) -> None:
    assert convert(tree, notebook_of(IMPORT, "print 1", "x = ", USE)) == [IMPORTED, "print 1", "x = ", USED]


OLD = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x.cuda()"]}]}], "nbformat": 3, "metadata": {}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"metadata": [\n"cuda"', ":2: is no valid JSON: Expecting ',' delimiter"),
        (b"cuda", ":1: is no valid JSON: Expecting value"),
        (b'{"cells": []}\ncuda', ":2: is no valid JSON: Extra data"),
        (b'<<<<<<< HEAD\n{"cells": ["cuda"]}', ":1: is no valid JSON"),
        (b'["cuda"]', ": is no notebook"),
        (b'{"cuda": 1}', ": is no notebook"),
        (b'{"cells": {"cuda": 1}}', ": is no notebook"),
        (b'{"cells": ["cuda"]}', ": is no notebook"),
        (b'{"cells": [{"cell_type": "code", "source": 1, "cuda": 1}]}', ": is no notebook: the source of cell 1"),
        (b'{"cells": [{"source": [["cuda"]], "cell_type": "code"}]}', ": is no notebook: the source of cell 1"),
        (json.dumps(OLD).encode(), ": is a notebook of format 3; convert it first"),
        (b'{"cells": ["cuda \xe9"]}', ":1: not valid UTF-8"),
        ('{"cells": ["cuda"]}'.encode("utf-16"), ":1: is UTF-16"),
        (b'{"metadata": ' + b"[" * 100_000 + b'"cuda"', ": is nested too deeply to be read"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_notebook(tree: Tree, raw: bytes, message: str) -> None:
    if raw.startswith(codecs.BOM_UTF16_LE):
        raw += b"cuda"
    tree.write({"a.ipynb": raw, "b.ipynb": as_json(notebook_of(IMPORT, USE))})
    run = tree.run("convert", ".", "--write")
    assert run.exit_code == 2
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("a.ipynb")]
    assert line.startswith(f"a.ipynb{message}")
    assert tree.files()["a.ipynb"] == raw
    assert sources(tree.files()["b.ipynb"]) == [IMPORTED, USED]


@pytest.mark.parametrize("raw", [b"", b"version https://git-lfs.github.com/spec/v1\n", b'{"cells": [', b"\xff"])
def test_a_bad_file_without_cuda_is_no_concern(tree: Tree, raw: bytes) -> None:
    tree.write({"a.ipynb": raw})
    assert tree.run("convert", ".").exit_code == 0


# -- Python that only a notebook takes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("y = await f(torch.ones(1).cuda())", "y = await f(torch.ones(1).to(ai_device.device()))"),
        ("async with f() as y:\n    y.cuda()", "async with f() as y:\n    y.to(ai_device.device())"),
        ("async for y in f():\n    y.cuda()", "async for y in f():\n    y.to(ai_device.device())"),
        ("torch.ones(1).cuda();", "torch.ones(1).to(ai_device.device());"),
        ("torch.ones(1).cuda() ; ", "torch.ones(1).to(ai_device.device()) ; "),
        (" x = 1\n torch.ones(x).cuda()", " x = 1\n torch.ones(x).to(ai_device.device())"),
        ("get_ipython().run_line_magic('cd', '.')\n" + USE, "get_ipython().run_line_magic('cd', '.')\n" + USED),
        ("!echo \"it's\n" + USE, "!echo \"it's\n" + USED),
        (USE + "\n!ls \\\n  -l\n" + USE, USED + "\n!ls \\\n  -l\n" + USED),
        ("if x:\n    !ls\n" + USE, "if x:\n    !ls\n" + USED),
        ("if x:\n    %cd x\nelse:\n    y = !ls\n" + USE, "if x:\n    %cd x\nelse:\n    y = !ls\n" + USED),
        ("/f x\n" + USE, "/f x\n" + USED),
        ("f??\n" + USE, "f??\n" + USED),
        ("%%time\n\n" + USE, "%%time\n\n" + USED),
        ("\n%%time\n%matplotlib inline\n" + USE, "\n%%time\n%matplotlib inline\n" + USED),
        ("é = %pwd\n%time é = torch.ones(1).cuda()", "é = %pwd\n%time é = torch.ones(1).to(ai_device.device())"),
        ("!ls é\n" + USE, "!ls é\n" + USED),
        ("f(a=1)\nd = {'%': 1,\n'!': '''\n%x'''}\n!ls\n" + USE, "f(a=1)\nd = {'%': 1,\n'!': '''\n%x'''}\n!ls\n" + USED),
    ],
)
def test_a_cell(tree: Tree, cell: str, expected: str) -> None:
    assert convert(tree, notebook_of(IMPORT, cell)) == [IMPORTED, expected]


@pytest.mark.parametrize(
    ("cell", "magic"),
    [
        ("%%writefile train.py\nx.cuda()", "%%writefile"),
        ("%%script python\nx.cuda()", "%%python"),
        ("%%script /bin/bash\necho cuda", None),
        ("%%cython\nimport flash_attn", "%%cython"),
        ("%%cu\n__global__ void f() {}", "%%cu"),
        ("%lprun -f f x.cuda()", "%lprun"),
        ("%cd ../cuda", None),
        ("%%svg\ncuda", None),
        ("%load_ext autoreload", None),
    ],
)
def test_texts_of_magics_are_left_and_said(tree: Tree, cell: str, magic: str | None) -> None:
    cells = [IMPORT, cell, USE]
    assert convert(tree, notebook_of(*cells)) == [IMPORTED, cell, USED]
    texts = [line.rpartition("the text of ")[2] for line in said(tree) if " UC809 manual " in line]
    assert texts == ([] if magic is None else [f"`{magic}`"])


@pytest.mark.parametrize("cell", ["device = %store x\n", "device = !echo 0\n", "device, y = %store x\n"])
def test_what_a_magic_gives_is_not_known(tree: Tree, cell: str) -> None:
    with_it = convert(tree, notebook_of(IMPORT, cell + "torch.ones(1).to(device)", USE))
    assert with_it[1] == cell + "torch.ones(1).to(device)"


# -- patches ---------------------------------------------------------------------------------------------------------


def test_git_takes_the_patch(tree: Tree) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    before = {
        "a.ipynb": as_json(notebook_of(IMPORT, MARKDOWN, USE, "y = 1", f"y = 2\n{USE}\n")),
        "mark.ipynb": codecs.BOM_UTF8 + as_json(notebook_of(IMPORT, USE)),
        "windows.ipynb": as_json(notebook_of(IMPORT, USE)).replace(b"\n", b"\r\n"),
        "line.ipynb": json.dumps(notebook_of(IMPORT, USE)).encode(),
    }
    tree.write(before)
    tree.git_init()
    tree.run("convert", ".", "--output", "../change.patch")
    subprocess.run(["git", "apply", "--whitespace=nowarn", "../change.patch"], cwd=tree.root, check=True)
    applied = tree.files()
    tree.write(before)
    tree.run("convert", ".", "--write")
    assert applied == tree.files()


def test_hunks_are_headed_by_their_cells(tree: Tree) -> None:
    many = [f"y = {i}" for i in range(9)]
    cells: list[str | dict[str, Any]] = [IMPORT, *many, MARKDOWN, f"y = 2\n{USE}", *many, USE, USE]
    tree.write({"a.ipynb": as_json(notebook_of(*cells)), "b.ipynb": json.dumps(notebook_of(IMPORT, USE))})
    patch = tree.run("convert", ".").stdout
    assert re.findall(r"^@@ .* @@ (cell.*)$", patch, re.MULTILINE) == [
        "cell 1", "cell 12", "cell 22", "cell 23", "cell 1, cell 2",
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_the_cells(tree: Tree) -> None:
    from test_command_line import on_a_terminal

    tree.write({"a.ipynb": codecs.BOM_UTF8 + as_json(notebook_of(MARKDOWN, IMPORT, f"s = 'é\"'\n{USE}"))})
    shown = on_a_terminal(tree, "convert", ".", NO_COLOR="1").replace("\r\n", "\n")
    shown = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert f"+++ b/a.ipynb\n@@ -1 +1,3 @@ cell 2\n {IMPORT}\n+\n+import ai_device\n" in shown
    assert f"@@ -1,2 +1,2 @@ cell 3\n s = 'é\"'\n-{USE}\n+{USED}\n" in shown
    assert "No newline" not in shown


# -- size and many ---------------------------------------------------------------------------------------------------


def test_a_large_notebook_takes_little_time(tree: Tree) -> None:
    picture = {"data": {"image/png": "iVBORw0KGgo" * 400_000}, "metadata": {}, "output_type": "display_data"}
    lines = {"name": "stdout", "output_type": "stream", "text": ["step 1 cuda\n"] * 100_000}
    notebook = notebook_of(IMPORT, *[f"x{i} = torch.ones({i})" for i in range(500)], USE)
    notebook["cells"][3]["outputs"] = [picture] * 4 + [lines] * 2
    raw = as_json(notebook)
    assert len(raw) > 20_000_000
    tree.write({"a.ipynb": raw})
    start = time.process_time()
    run = tree.run("convert", "a.ipynb")
    assert time.process_time() - start < 4  # it takes 1.0 s, and the first import of libcst is part of that
    assert run.exit_code == 1


def test_one_process_or_two_give_the_same(tree: Tree) -> None:
    kinds = [(IMPORT, USE), (IMPORT, "x.cuda(", USE), (IMPORT, "torch.cuda.CUDAGraph()"), ("!nvidia-smi",)]
    tree.write({f"n{i}.ipynb": as_json(notebook_of(*kinds[i % 4])) for i in range(8)})
    one, two = (tree.run("convert", ".", "--jobs", str(jobs)) for jobs in (1, 2))
    assert one == two
    assert one.exit_code == 2
    assert "n1.ipynb:cell 2:1: does not parse" in one.stderr
