"""Where the helper's import goes, which imports of torch go away, and which stay."""

from __future__ import annotations

import ast

import pytest
from conversion import after, both_ways, converted

USE = "x = torch.ones(1).cuda()\n"
USE_AFTER = "x = torch.ones(1).to(ai_device.device())\n"

# Sources with USE and what becomes of them.
PLACES = {
    "behind the import of torch": (f"import torch\n\n{USE}", f"import torch\n\nimport ai_device\n\n{USE_AFTER}"),
    "behind the last import": (
        f"import os\nimport torch\nimport sys\n\n{USE}",
        f"import os\nimport torch\nimport sys\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "docstring": (
        f'"""Trains."""\n\nimport torch\n\n{USE}',
        f'"""Trains."""\n\nimport torch\n\nimport ai_device\n\n{USE_AFTER}',
    ),
    "docstring and no import of torch": (
        '"""Moves."""\n\n\ndef f(x):\n    return x.cuda()\n',
        '"""Moves."""\n\n\nimport ai_device\n\n\ndef f(x):\n    return x.to(ai_device.device())\n',
    ),
    "future": (
        f"from __future__ import annotations\n\nimport torch\n\n{USE}",
        f"from __future__ import annotations\n\nimport torch\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "docstring and two futures and no other import": (
        '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\n\ny = x.cuda()\n',
        '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\n\nimport ai_device\n\n'
        "y = x.to(ai_device.device())\n",
    ),
    "shebang, cookie and licence": (
        f"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Copyright (c) the authors.\n\nimport torch\n\n{USE}",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Copyright (c) the authors.\n\nimport torch\n\n"
        f"import ai_device\n\n{USE_AFTER}",
    ),
    "shebang and licence, no imports": (
        "#!/usr/bin/env python\n# Copyright (c) the authors.\n\nprint(x.cuda())\n",
        "#!/usr/bin/env python\n# Copyright (c) the authors.\n\nimport ai_device\n\nprint(x.to(ai_device.device()))\n",
    ),
    "path changed before local imports": (
        f"import sys\n\nsys.path.insert(0, 'src')\n\nimport torch\nfrom lib import net\n\n{USE}",
        (
            f"import sys\n\nsys.path.insert(0, 'src')\n\nimport torch\n"
            f"from lib import net\n\nimport ai_device\n\n{USE_AFTER}"
        ),
    ),
    "environment set before torch": (
        f"import os\n\nos.environ['A'] = '1'\n\nimport torch\n\n{USE}",
        f"import os\n\nos.environ['A'] = '1'\n\nimport torch\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "warnings filtered before torch": (
        f"import warnings\n\nwarnings.filterwarnings('ignore')\n\nimport torch\n\n{USE}",
        f"import warnings\n\nwarnings.filterwarnings('ignore')\n\nimport torch\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "import below the first use": (
        f"import torch\n\n{USE}import math\n\nprint(math.pi)\n",
        f"import torch\n\nimport ai_device\n\n{USE_AFTER}import math\n\nprint(math.pi)\n",
    ),
    "import behind code but above the use": (
        f"import torch\n\n\ndef f():\n    pass\n\n\nimport math\n\n{USE}",
        f"import torch\n\nimport ai_device\n\n\ndef f():\n    pass\n\n\nimport math\n\n{USE_AFTER}",
    ),
    "try around the import": (
        f"import os\n\ntry:\n    import torch\nexcept ImportError:\n    torch = None\n\n{USE}",
        (
            f"import os\n\nimport ai_device\n\ntry:\n    import torch\n"
            f"except ImportError:\n    torch = None\n\n{USE_AFTER}"
        ),
    ),
    "type checking": (
        f"from typing import TYPE_CHECKING\n\nimport torch\n\nif TYPE_CHECKING:\n    import numpy\n\n{USE}",
        (
            "from typing import TYPE_CHECKING\n\nimport torch\n\nimport ai_device\n\n"
            f"if TYPE_CHECKING:\n    import numpy\n\n{USE_AFTER}"
        ),
    ),
    "nothing imported": ("y = x.cuda()\n", "import ai_device\n\ny = x.to(ai_device.device())\n"),
    "on the line of the use": (
        "import torch; y = x.cuda()\n",
        "import torch; import ai_device; y = x.to(ai_device.device())\n",
    ),
    "on the line of the use, torch gone": (
        "import torch; torch.cuda.synchronize()\n",
        "import ai_device; ai_device.synchronize()\n",
    ),
    "comment behind the import": (
        f"import torch  # noqa\n\n{USE}",
        f"import torch  # noqa\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "import over several lines": (
        f"import torch\nfrom torch import (\n    nn,\n    optim,\n)\n\n{USE}",
        f"import torch\nfrom torch import (\n    nn,\n    optim,\n)\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "import over a backslash": (
        f"import torch\nfrom torch import nn, \\\n    optim\n\n{USE}",
        f"import torch\nfrom torch import nn, \\\n    optim\n\nimport ai_device\n\n{USE_AFTER}",
    ),
    "no blank line behind": (f"import torch\n{USE}", f"import torch\nimport ai_device\n{USE_AFTER}"),
    "no end of line": (
        f"import torch\n\n{USE}".rstrip("\n"),
        f"import torch\n\nimport ai_device\n\n{USE_AFTER}".rstrip("\n"),
    ),
    "blanks on the empty line": (f"import torch\n  \n{USE}", f"import torch\n\nimport ai_device\n  \n{USE_AFTER}"),
    "class first": (
        "class A:\n    x = y.cuda()\n",
        "import ai_device\n\n\nclass A:\n    x = y.to(ai_device.device())\n",
    ),
    "decorated function first": (
        "@wrap\ndef f(x):\n    return x.cuda()\n",
        "import ai_device\n\n\n@wrap\ndef f(x):\n    return x.to(ai_device.device())\n",
    ),
    "function with local imports": (
        "import torch\n\n\ndef f():\n    import math\n\n    return torch.ones(1).cuda()\n",
        (
            "import torch\n\nimport ai_device\n\n\ndef f():\n    import math\n"
            "\n    return torch.ones(1).to(ai_device.device())\n"
        ),
    ),
    "comment above the first statement": (
        "# Why this is here.\nx = y.cuda()\n",
        "# Why this is here.\nimport ai_device\n\nx = y.to(ai_device.device())\n",
    ),
    "main guard": (
        "import torch\n\nif __name__ == '__main__':\n    x = torch.ones(1).cuda()\n",
        (
            "import torch\n\nimport ai_device\n\nif __name__ == '__main__':\n"
            "    x = torch.ones(1).to(ai_device.device())\n"
        ),
    ),
}


@pytest.mark.parametrize(("before", "expected"), tuple(PLACES.values()), ids=tuple(PLACES))
def test_places(before: str, expected: str) -> None:
    assert both_ways(before).after.decode() == expected
    assert converted(expected).after.decode() == expected


@pytest.mark.parametrize(("before", "expected"), tuple(PLACES.values()), ids=tuple(PLACES))
def test_the_import_comes_before_every_use_and_behind_what_must_be_first(before: str, expected: str) -> None:
    tree = ast.parse(after(before))
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Import) and n.names[0].name == "ai_device"]
    uses = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "ai_device"]
    assert len(lines) == 1
    assert lines[0] <= min(uses)
    assert ast.get_docstring(tree) == ast.get_docstring(ast.parse(before))
    futures = [n.lineno for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    assert all(line < lines[0] for line in futures)
    compile(tree, "x", "exec")


# -- names that are taken --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "taken",
    [
        "ai_device = 1\n",
        "def ai_device():\n    pass\n",
        "class ai_device:\n    pass\n",
        "for ai_device in x:\n    pass\n",
        "def f(ai_device):\n    return ai_device\n",
        "with x as ai_device:\n    pass\n",
        "import numpy as ai_device\n",
        "y = [ai_device for ai_device in x]\n",
        "def f():\n    import ai_device\n",
        "try:\n    import ai_device\nexcept ImportError:\n    ai_device = None\n",
        "def f():\n    global ai_device\n    ai_device = 1\n",
    ],
)
def test_a_name_that_is_taken_is_not_touched(taken: str) -> None:
    source = f"import torch\n\n{taken}\n{USE}"
    result = both_ways(source).after.decode()
    assert "import ai_device as _ai_device\n" in result
    assert taken in result
    assert result.endswith("\n" + USE_AFTER.replace("ai_device", "_ai_device"))
    assert converted(result).after.decode() == result


def test_the_next_name_is_taken_too() -> None:
    result = after(f"import torch\n\nai_device = _ai_device = 1\n{USE}")
    assert "import ai_device as __ai_device\n" in result
    assert "x = torch.ones(1).to(__ai_device.device())\n" in result


def test_an_import_of_the_helper_that_is_there_is_used() -> None:
    source = f"import torch\n\nimport ai_device\n\n{USE}y = ai_device.device_count()\n"
    result = after(source)
    assert result == source.replace(USE, USE_AFTER)


@pytest.mark.parametrize(
    "statement", ["from pkg import ai_device", "from . import ai_device", "import pkg.ai_device as ai_device"]
)
def test_an_import_of_the_helper_by_another_way_is_used(statement: str) -> None:
    source = f"import torch\n\n{statement}\n\n{USE}"
    assert after(source) == source.replace(USE, USE_AFTER)


def test_an_import_of_the_helper_below_the_use_is_not_enough() -> None:
    result = after(f"import torch\n\n{USE}import ai_device\n")
    assert result.index("import ai_device") < result.index("ai_device.device()")


def test_imports_of_single_names_of_the_helper_are_no_import_of_it() -> None:
    result = after(f"import torch\nfrom ai_device import synchronize\n\n{USE}synchronize()\n")
    assert "import ai_device\n" in result
    assert "from ai_device import synchronize\n" in result


# -- imports that go -------------------------------------------------------------------------------------------------

GONE = {
    "torch": ("import torch\n\ntorch.cuda.synchronize()\n", "import ai_device\n\nai_device.synchronize()\n"),
    "torch with a comment": (
        "import torch  # for the device\n\ntorch.cuda.synchronize()\n",
        "import ai_device  # for the device\n\nai_device.synchronize()\n",
    ),
    "torch under a name": (
        "import torch as th\n\nth.cuda.synchronize()\n",
        "import ai_device\n\nai_device.synchronize()\n",
    ),
    "torch between others": (
        "import os\nimport torch\nimport sys\n\ntorch.cuda.synchronize()\n",
        "import os\nimport sys\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "first of a line": (
        "import torch, os\n\ntorch.cuda.synchronize()\n",
        "import os\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "middle of a line": (
        "import os, torch, sys\n\ntorch.cuda.synchronize()\n",
        "import os, sys\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "last of a line": (
        "import os, torch\n\ntorch.cuda.synchronize()\n",
        "import os\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "first of a from": (
        "from torch import cuda, nn\n\ncuda.synchronize()\nnn.Linear(1, 1)\n",
        "from torch import nn\n\nimport ai_device\n\nai_device.synchronize()\nnn.Linear(1, 1)\n",
    ),
    "middle of a from": (
        "from torch import nn, cuda as c, optim\n\nc.synchronize()\n",
        "from torch import nn, optim\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "last of a from": (
        "from torch import nn, cuda\n\ncuda.synchronize()\n",
        "from torch import nn\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "in parentheses": (
        "from torch import (\n    cuda,\n    nn,\n)\n\ncuda.synchronize()\n",
        "from torch import (\n    nn,\n)\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "in parentheses with comments": (
        (
            "from torch import (  # torch\n    nn,  # layers\n"
            "    cuda,  # device\n    optim,  # steps\n)\n\ncuda.synchronize()\n"
        ),
        "from torch import (  # torch\n    nn,  # layers\n    optim,  # steps\n)\n\nimport ai_device\n\n"
        "ai_device.synchronize()\n",
    ),
    "last in parentheses": (
        "from torch import (\n    nn,\n    cuda,\n)\n\ncuda.synchronize()\n",
        "from torch import (\n    nn,\n)\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "last in parentheses with a comment": (
        "from torch import (\n    nn,  # layers\n    cuda,  # device\n)\n\ncuda.synchronize()\n",
        "from torch import (\n    nn,  # layers\n)\n\nimport ai_device\n\nai_device.synchronize()\n",
    ),
    "all in parentheses": (
        "from torch import (\n    cuda,\n)\n\ncuda.synchronize()\n",
        "import ai_device\n\nai_device.synchronize()\n",
    ),
    "amp": (
        "import torch\nfrom torch.cuda import amp\n\ns = amp.GradScaler()\nx = torch.ones(1)\n",
        "import torch\nimport ai_device\n\ns = ai_device.GradScaler()\nx = torch.ones(1)\n",
    ),
    "GradScaler of torch.amp": (
        "import torch\nfrom torch.amp import GradScaler\n\ns = GradScaler('cuda')\nx = torch.ones(1)\n",
        "import torch\nimport ai_device\n\ns = ai_device.GradScaler()\nx = torch.ones(1)\n",
    ),
    "two imports": (
        "import torch\nimport torch.cuda as tc\n\ntorch.cuda.synchronize()\ntc.synchronize()\n",
        "import ai_device\n\nai_device.synchronize()\nai_device.synchronize()\n",
    ),
    "torch.cuda imported beside torch": (
        "import torch\nimport torch.cuda\n\ntorch.cuda.synchronize()\nx = torch.ones(1)\n",
        None,
    ),
    "in a function": (
        "def f():\n    import torch\n\n    torch.cuda.synchronize()\n",
        "import ai_device\n\n\ndef f():\n    ai_device.synchronize()\n",
    ),
    "in try": (
        "try:\n    import torch\n\n    torch.cuda.synchronize()\nexcept ImportError:\n    pass\n",
        None,
    ),
    "semicolons": (
        "import os; import torch; import sys\n\ntorch.cuda.synchronize()\n",
        None,
    ),
}


@pytest.mark.parametrize(("before", "expected"), tuple(GONE.values()), ids=tuple(GONE))
def test_imports_without_use_go(before: str, expected: str | None) -> None:
    result = both_ways(before).after.decode()
    compile(result, "x", "exec")
    assert "ai_device.synchronize()" in result or "ai_device.GradScaler()" in result
    if expected is not None:
        assert result == expected


def test_edits_replace_whole_words() -> None:
    """``amp`` and ``ai_device`` share a letter: an edit that cuts it off is hard to read and to reckon with."""
    for source in (
        "from torch.cuda import amp\n\ns = amp.GradScaler()\n",
        "import torch.cuda as ai\n\nai.synchronize()\n",
        "import torch as a\n\na.cuda.synchronize()\n",
        "from torch.amp import GradScaler\n\ns = GradScaler('cuda')\n",
    ):
        result = after(source)
        assert result.startswith("import ai_device\n")
        for edit in converted(source).edits:
            text = source.encode()
            before, behind = text[: edit.start].decode()[-1:], text[edit.end :].decode()[:1]
            inside = text[edit.start : edit.end].decode()
            for new in (inside, edit.replacement):
                assert not (before.isidentifier() and new[:1].isidentifier())
                assert not (behind.isidentifier() and new[-1:].isidentifier())


def test_no_pass_is_left_where_a_block_holds_more() -> None:
    """A statement in place of an import that is gone only where the block, or the line, would be empty."""
    result = after("def f():\n    import torch\n\n    torch.cuda.synchronize()\n    return 1\n")
    assert "pass" not in result


def test_the_only_statement_of_a_block_becomes_pass() -> None:
    source = "import os\n\nif os.name:\n    import torch\n\ntorch.cuda.synchronize()\n"
    result = after(source)
    compile(result, "x", "exec")
    assert "ai_device.synchronize()" in result


KEPT = {
    "other uses": "import torch\n\ntorch.cuda.synchronize()\nx = torch.ones(1)\n",
    "use in a function": "import torch\n\ntorch.cuda.synchronize()\n\n\ndef f():\n    return torch.ones(1)\n",
    "use in an annotation": "import torch\n\ntorch.cuda.synchronize()\nx: torch.Tensor\n",
    "use in a quoted annotation": "import torch\n\ntorch.cuda.synchronize()\n\n\ndef f(x: 'torch.Tensor'): pass\n",
    "use in a decorator": "import torch\n\ntorch.cuda.synchronize()\n\n\n@torch.no_grad()\ndef f(): pass\n",
    "what is left to a person": "import torch\n\ntorch.cuda.synchronize()\ng = torch.cuda.CUDAGraph()\n",
    "offered": "import torch\n\n__all__ = ['torch', 'f']\n\ntorch.cuda.synchronize()\n",
    "offered by name": "import torch\nfrom torch import nn as layers\n\ntorch.cuda.synchronize(torch.x)\n",
    "imported for its effect": (
        "import torch\nimport torch.backends.cudnn\n\ntorch.cuda.synchronize()\nx = torch.ones(1)\n"
    ),
    "not used at all": "import torch\n\ny = x.cuda()\n",
    "another module": "import torchvision\nimport torch\n\ntorch.cuda.synchronize(torch.x)\n",
    "deleted": "import torch\n\ntorch.cuda.synchronize()\ndel torch\n",
    "exec": "import torch\n\ntorch.cuda.synchronize()\nexec('torch.ones(1)')\n",
    "reached as an attribute of the module": "import torch\n\ntorch.cuda.synchronize()\nglobals()['torch']\n",
}


@pytest.mark.parametrize("source", tuple(KEPT.values()), ids=tuple(KEPT))
def test_imports_in_use_stay(source: str) -> None:
    result = both_ways(source).after.decode()
    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert all(line in result.splitlines() for line in imports)


def test_imports_of_a_package_stay() -> None:
    source = "import torch\nfrom torch import cuda\n\ncuda.synchronize()\n"
    result = after(source, path="pkg/__init__.py")
    assert "import torch\nfrom torch import cuda\n" in result
    assert "ai_device.synchronize()" in result


def test_what_others_may_import_from_a_file_stays() -> None:
    """``__all__`` names it, so that the name has to stay; the import may point at the helper."""
    source = "from torch.cuda.amp import GradScaler, autocast  # noqa: E402\n\n__all__ = ['GradScaler']\n\nautocast()\n"
    assert after(source) == source.replace("torch.cuda.amp", "ai_device")


def test_the_helper_may_be_found_by_a_change_of_the_path_alone() -> None:
    """Once the preamble has ended, the import goes behind the change and the imports that follow it."""
    head = "import torch\n\n\ndef f(): ...\n\n\nimport sys\nsys.path.insert(0, '..')\n"
    imports = "from lib import net\n"
    assert after(f"{head}{imports}\n{USE}").startswith(f"{head}{imports}\nimport ai_device\n")
    assert after(f"{head}\n{USE}").startswith(f"{head}\nimport ai_device\n")
    top = "import torch\nimport sys\nsys.path.insert(0, '..')\nfrom lib import net\n"
    assert after(f"{top}\n{USE}").startswith(f"{top}\nimport ai_device\n")


def test_two_runs_make_one_import() -> None:
    first = after(f"import torch\n\n{USE}")
    second = after(first + "y = torch.ones(1).cuda()\n")
    assert second.count("import ai_device\n") == 1


def test_setup_py_gets_no_import() -> None:
    """It is run where the helper is not."""
    source = "import torch\n\nif torch.cuda.is_available():\n    ext = 1\n"
    assert after(source, path="setup.py") == source
    assert converted(source, path="setup.py").findings
