"""Cutting a module into statements: every kind, in every layout, gives the same as the module as a whole."""

from __future__ import annotations

import codecs
import itertools
import sys
from collections import Counter
from pathlib import Path

import libcst
import pytest
from conversion import both_ways, converted, outside_edits

from codemods.analysis.module import Module
from codemods.analysis.statements import Slice
from codemods.source.document import Document

OLD, NEW = "torch.cuda.device_count()", "ai_device.device_count()"

# HIT stands for a call that is converted.
KINDS = {
    "expression": "HIT\n",
    "assignment": "x = HIT\n",
    "augmented assignment": "x += HIT\n",
    "annotated assignment": "x: int = HIT\n",
    "annotation": "x: T[HIT] = 1\n",
    "del": "del x[HIT]\n",
    "assert": "assert x, HIT\n",
    "raise": "raise E(HIT) from F(HIT)\n",
    "return": "def f():\n    return HIT\n",
    "yield": "def f():\n    x = yield HIT\n",
    "if": "if HIT:\n    pass\n",
    "if, body": "if x:\n    HIT\n",
    "elif": "if x:\n    pass\nelif HIT:\n    pass\n",
    "elif, body": "if x:\n    pass\nelif y:\n    HIT\n",
    "elif after elif": "if x:\n    pass\nelif y:\n    pass\nelif HIT:\n    HIT\nelif HIT:\n    pass\nelse:\n    HIT\n",
    "else": "if x:\n    pass\nelse:\n    HIT\n",
    "if inside else": "if x:\n    pass\nelse:\n    if HIT:\n        pass\n",
    "for": "for x in range(HIT):\n    pass\n",
    "for, body": "for x in y:\n    HIT\n",
    "for, else": "for x in y:\n    pass\nelse:\n    HIT\n",
    "for over a target": "for x[HIT] in y:\n    pass\n",
    "while": "while HIT:\n    pass\n",
    "while, else": "while x:\n    HIT\nelse:\n    HIT\n",
    "with": "with f(HIT):\n    pass\n",
    "with several": "with f(HIT) as a, g(HIT) as b:\n    HIT\n",
    "with in parentheses": "with (\n    f(HIT) as a,\n    g(HIT) as b,\n):\n    pass\n",
    "try": "try:\n    HIT\nexcept E:\n    pass\n",
    "except": "try:\n    pass\nexcept f(HIT) as e:\n    pass\n",
    "except, body": "try:\n    pass\nexcept E:\n    HIT\nexcept (F, g(HIT)):\n    HIT\n",
    "bare except": "try:\n    pass\nexcept:\n    HIT\n",
    "try, else": "try:\n    pass\nexcept E:\n    pass\nelse:\n    HIT\n",
    "finally": "try:\n    pass\nfinally:\n    HIT\n",
    "try, all": "try:\n    HIT\nexcept E:\n    HIT\nelse:\n    HIT\nfinally:\n    HIT\n",
    "match": "match HIT:\n    case 1:\n        pass\n",
    "match, body": "match x:\n    case 1:\n        HIT\n    case _:\n        HIT\n",
    "guard": "match x:\n    case 1 if HIT:\n        pass\n    case [a, *_] if a > HIT:\n        HIT\n",
    "case in parentheses": "match x:\n    case (1 | 2) if HIT:\n        pass\n",
    "case with the word in it": "match x:\n    case 'case' if HIT:\n        pass\n",
    "subject with the word in it": "match f('case', HIT):\n    case 1:\n        pass\n",
    "case of a tuple": "match x, HIT:\n    case 1, 2 if HIT:\n        pass\n",
    "case of a dictionary": "match x:\n    case {'a': 1, **rest} if HIT:\n        pass\n",
    "match in a function": "def f(x):\n    match x:\n        case 1 if HIT:\n            HIT\n",
    "function": "def f():\n    HIT\n",
    "default": "def f(x=HIT, *, y=HIT):\n    pass\n",
    "annotations": "def f(x: g(HIT), *y: g(HIT)) -> g(HIT):\n    pass\n",
    "parameters on several lines": "def f(\n    x,  # first\n    y=HIT,  # second\n):\n    pass\n",
    "decorator": "@g(HIT)\ndef f():\n    pass\n",
    "decorators": "@a\n@g(HIT)  # why\n# between\n\n@h(HIT)\ndef f(x=HIT):\n    HIT\n",
    "decorator with spaces": "@ g(HIT)\ndef f():\n    pass\n",
    "decorator that is a lambda": "@(lambda f: HIT)\ndef f():\n    pass\n",
    "decorator on a method": "class A:\n    @g(HIT)\n    def f(self):\n        HIT\n",
    "class": "class A(g(HIT), metaclass=h(HIT)):\n    x = HIT\n",
    "decorated class": "@g(HIT)\nclass A:\n    pass\n",
    "async function": "async def f(x=HIT):\n    await g(HIT)\n",
    "async for": "async def f():\n    async for x in g(HIT):\n        HIT\n",
    "async with": "async def f():\n    async with g(HIT) as x, h(HIT):\n        HIT\n",
    "async comprehension": "async def f():\n    x = [y async for y in g(HIT)]\n",
    "nested functions": (
        "def f():\n    def g():\n        def h(x=HIT):\n            return HIT\n        return h\n    return g\n"
    ),
    "one line": "if x: HIT\n",
    "one line, both": "if HIT: HIT\n",
    "one line, else": "if x: HIT\nelif HIT: HIT\nelse: HIT\n",
    "one line, for": "for x in y: HIT\n",
    "one line, with": "with f(HIT): HIT\n",
    "one line, def": "def f(x=HIT): return HIT\n",
    "one line, class": "class A(g(HIT)): x = HIT\n",
    "one line, try": "try: HIT\nexcept f(HIT): HIT\nfinally: HIT\n",
    "one line, case": "match x:\n    case 1 if HIT: HIT\n",
    "one line with semicolons": "if x: HIT; y = HIT; HIT\n",
    "semicolons": "a = HIT; b = 2; HIT;\n",
    "semicolons without spaces": "a=HIT;b=2;HIT\n",
    "semicolon after a string": "a = ';'; b = HIT\n",
    "backslash": "x = 1 + \\\n    HIT\n",
    "backslash before the colon": "if x and \\\n   HIT:\n    pass\n",
    "backslash in with": "with f(HIT) as a, \\\n     g(HIT) as b:\n    pass\n",
    "backslash before the body": "if x: \\\n    HIT\n",
    "backslash after if": "if \\\n HIT:\n    pass\n",
    "backslash in else": "if x:\n    pass\nelse: \\\n    HIT\n",
    "backslash in a decorator": "@g(1, \\\n   HIT)\ndef f(): pass\n",
    "several lines": "x = f(\n    1,  # one\n    HIT,  # two\n    # three\n)\n",
    "comment in parentheses": "x = (  # why\n    HIT\n    # because\n)\n",
    "comment behind the header": "if HIT:  # why\n    # because\n\n    # and\n    HIT\n",
    "comment at the margin": "if HIT:\n# out here\n    HIT\n",
    "comment deeper than the body": "if x:\n        # deep\n    HIT\n",
    "comment behind def": "def f(x=HIT):  # why\n    # because\n    HIT\n",
    "comment behind else": "if x:\n    pass\nelse:  # why\n    # because\n    HIT\n",
    "comment behind case": "match x:\n    case 1 if HIT:  # why\n        # because\n        pass\n",
    "comment between match and case": "match HIT:\n    # case 0 is rare\n    case 1:\n        pass\n",
    "comment with the word before the pattern": (
        "match x:\n    case (  # case\n        1\n    ) if HIT:\n        pass\n"
    ),
    "comment behind except": "try:\n    pass\nexcept f(HIT):  # why\n    # because\n    HIT\n",
    "comment between decorator and def": "@g(HIT)\n# why\ndef f():\n    pass\n",
    "comment with an at sign in a decorator": "@(  # see @g\n    g(HIT)\n)\ndef f():\n    pass\n",
    "blank lines in the body": "if x:\n\n\n    HIT\n\n\n    HIT\n",
    "docstring": 'def f(x=HIT):\n    """torch.cuda.device_count()"""\n    HIT\n',
    "lambda": "f = lambda x=HIT: HIT\n",
    "comprehension": "x = [HIT for y in range(HIT) if HIT]\n",
    "f-string": "x = f'{HIT} {HIT:>{HIT}}'\n",
    "f-string over lines": "x = f'''\n{HIT}\n'''\n",
    "walrus": "if (n := HIT) > 1:\n    pass\n",
    "conditional expression": "x = HIT if HIT else HIT\n",
    "star": "f(*g(HIT), **h(HIT))\n",
    "subscript": "x[HIT:HIT, HIT]\n",
    "chain": "a = b = HIT\n",
    "unpacking": "a, *b = HIT, HIT\n",
    "await in a call": "async def f():\n    return await g(await h(HIT))\n",
    "non-ASCII before": "s = 'é漢😀'; x = HIT\n",
    "non-ASCII in the header": "if f('é漢😀', HIT):\n    HIT  # 😀\n",
    "non-ASCII in a case": "match x:\n    case 'é漢😀' if HIT:\n        'é', HIT\n",
    "non-ASCII in a decorator": "@g('é漢😀', HIT)\ndef f():\n    pass\n",
    "non-ASCII name": "größe = HIT\n",
    "deep": "class A:\n    def f(self):\n        for x in y:\n            while z:\n                with w:\n"
    "                    try:\n                        if HIT:\n                            HIT\n"
    "                    except E: HIT\n",
}
if sys.version_info >= (3, 11):
    KINDS |= {
        "except star": "try:\n    HIT\nexcept* f(HIT) as e:\n    HIT\nexcept* G:\n    HIT\n",
        "except star without space": "try:\n    pass\nexcept *f(HIT):\n    pass\n",
    }

each_kind = pytest.mark.parametrize("template", tuple(KINDS.values()), ids=tuple(KINDS))


def source_of(template: str) -> str:
    return "import torch\n\nkeep = torch.ones(1)\n" + template.replace("HIT", OLD)


def target_of(template: str) -> str:
    return "import torch\n\nimport ai_device\n\nkeep = torch.ones(1)\n" + template.replace("HIT", NEW)


def slices_of(source: str | bytes) -> tuple[Module, list[Slice]]:
    raw = source.encode() if isinstance(source, str) else source
    module = Module(Document.from_bytes(Path("module.py"), raw))
    text, word = module.utf8, b"torch.cuda.device_count"
    places = [at for at in range(len(text)) if text.startswith(word, at)]
    return module, module.statements.slices(places)


@each_kind
def test_the_edits_land_where_they_should(template: str) -> None:
    assert both_ways(source_of(template)).after.decode() == target_of(template)


@each_kind
def test_each_slice_is_a_module_of_its_own(template: str) -> None:
    module, slices = slices_of(source_of(template))
    assert slices
    assert [(piece.start, piece.end) for piece in slices] == sorted({(piece.start, piece.end) for piece in slices})
    for piece in slices:
        text = piece.module(module.utf8).decode()
        assert libcst.parse_module(text).code == text


@each_kind
def test_slices_do_not_overlap(template: str) -> None:
    _, slices = slices_of(source_of(template))
    assert all(one.end <= other.start for one, other in itertools.pairwise(slices))


@each_kind
def test_deeper(template: str) -> None:
    """The same inside a function, indented by a tab."""
    wrapped = "def outer():\n" + _indented(template, "\t")
    assert converted(source_of(wrapped)).after.decode() == target_of(wrapped)


@each_kind
@pytest.mark.parametrize("newline", ["\r\n", "\r"], ids=["CRLF", "CR"])
def test_line_ends(template: str, newline: str) -> None:
    before, after = (text.replace("\n", newline).encode() for text in (source_of(template), target_of(template)))
    assert converted(before).after == after


@each_kind
def test_mixed_line_ends(template: str) -> None:
    """Every second line ends as on Windows; inserted lines take the end that most lines have."""
    conversion = converted(_every_second_line_for_windows(source_of(template)))
    assert conversion.after.replace(b"\r\n", b"\n").decode() == target_of(template)
    untouched = [line for line in conversion.document.raw.splitlines(keepends=True) if OLD.encode() not in line]
    assert not Counter(untouched) - Counter(conversion.after.splitlines(keepends=True))


@each_kind
def test_byte_order_mark(template: str) -> None:
    conversion = converted(codecs.BOM_UTF8 + source_of(template).encode())
    assert conversion.after == codecs.BOM_UTF8 + target_of(template).encode()


@each_kind
def test_no_last_line_end(template: str) -> None:
    assert converted(source_of(template).rstrip("\n")).after.decode() == target_of(template).rstrip("\n")


@each_kind
def test_form_feed_before(template: str) -> None:
    """Emacs puts form feeds between the parts of a file."""
    template = f"x = 1\n\f\n{template}"
    assert converted(source_of(template)).after.decode() == target_of(template)


@each_kind
def test_form_feed_at_the_start_of_the_line(template: str) -> None:
    template = f"x = 1\n\f{template}"
    assert converted(source_of(template)).after.decode() == target_of(template)


@each_kind
def test_other_bytes_stay(template: str) -> None:
    conversion = both_ways(source_of(template))
    before, behind = outside_edits(conversion)
    assert before == behind


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\nif 1:\n  x = torch.cuda.device_count()\n  if 2:\n     y = torch.cuda.device_count()\n", 2),
        ("import torch\nif 1:\n\tif 2:\n\t        x = torch.cuda.device_count()\n", 1),
        ("import torch\nclass A:\n def f(self):\n  return torch.cuda.device_count()\n", 1),
    ],
)
def test_odd_indentation(source: str, expected: int) -> None:
    after = both_ways(source).after.decode()
    assert after.count(NEW) == expected
    assert after.split("\n", 1)[1].replace(NEW, OLD) == source.split("\n", 1)[1]


def test_a_place_outside_of_any_statement_gives_no_slice() -> None:
    _, slices = slices_of("# torch.cuda.device_count()\n'torch.cuda.device_count()'\nx = 1\n")
    assert slices == []


def test_a_body_without_places_is_not_cut() -> None:
    module, slices = slices_of(source_of("if HIT:\n    a = 1\n    b = 2\n"))
    assert [module.utf8[piece.start : piece.end].split(b":")[0] for piece in slices] == [f"if {OLD}".encode()]


def test_the_path_to_a_place() -> None:
    source = "class A:\n    @g\n    def f(self):\n        if x:\n            y = 1\n"
    module = Module(Document.from_bytes(Path("module.py"), source.encode()))
    path = module.statements.path_to(source.index("y = 1"))
    assert [type(statement).__name__ for statement in path] == ["ClassDef", "FunctionDef", "If", "Assign"]
    assert [type(s).__name__ for s in module.statements.path_to(source.index("@g"))] == ["ClassDef", "FunctionDef"]


def _indented(text: str, by: str) -> str:
    """Every line deeper, but those inside a text in three quotes."""
    inside = False
    lines = []
    for line in text.splitlines(keepends=True):
        lines.append(line if inside or not line.strip() else by + line)
        inside ^= line.count("'''") % 2 == 1
    return "".join(lines)


def _every_second_line_for_windows(text: str) -> bytes:
    lines = text.split("\n")
    ends = ["\r\n" if number % 2 else "\n" for number in range(len(lines) - 1)]
    return ("".join(line + end for line, end in zip(lines, ends, strict=False)) + lines[-1]).encode()
