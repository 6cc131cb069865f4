from __future__ import annotations

import ast
import codecs
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.source.document import Document, SourceError
from codemods.source.edits import Edit, apply_edits

PATH = Path("net.py")
GBK = "# -*- coding: gbk -*-\nnet = net.cuda()  # 把模型放到显卡\nx = 1  # 好\n".encode("gbk")


def edit(document: Document, old: str, new: str) -> Edit:
    start = document.utf8.index(old.encode())
    return Edit(start, start + len(old.encode()), new)


def reason(raw: bytes) -> str:
    with pytest.raises(SourceError) as caught:
        Document.from_bytes(PATH, raw)
    return caught.value.reason


@pytest.mark.parametrize(
    ("raw", "newline"),
    [
        (b"", "\n"),
        (b"x = 1", "\n"),
        (b"a\nb\r\nc\n", "\n"),
        (b"a\r\nb\nc\r\n", "\r\n"),
        (b"a\rb\rc\n", "\r"),
        (b"a\x0c\xe2\x80\xa8b\r\n", "\r\n"),
    ],
)
def test_newline_is_the_dominant_one(raw: bytes, newline: str) -> None:
    assert Document.from_bytes(PATH, raw).newline == newline


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("last", ["", "y = 2  # é"])
def test_an_edit_moves_no_other_byte(ends: str, mark: bytes, last: str) -> None:
    text = ends.join(("# é\u2028\x0c", "x = x.cuda()", "z = 3", last))
    document = Document.from_bytes(PATH, mark + text.encode())
    edited = document.with_edits([edit(document, "x.cuda()", "x.to(dev)")])
    assert edited == mark + text.replace("x.cuda()", "x.to(dev)").encode()
    assert ast.parse(edited)


def test_mark_stays_once_and_is_no_part_of_the_text() -> None:
    document = Document.from_bytes(PATH, codecs.BOM_UTF8 + b"import torch\n")
    assert (document.bom, document.encoding, document.text) == (True, "utf-8", "import torch\n")
    edited = document.with_edits([Edit(0, 0, "import os\n")])
    assert edited == codecs.BOM_UTF8 + b"import os\nimport torch\n"


def test_no_edit_gives_the_very_bytes() -> None:
    assert Document.from_bytes(PATH, GBK).with_edits([]) == GBK


def test_declared_encoding_is_honoured_both_ways() -> None:
    document = Document.from_bytes(PATH, GBK)
    assert document.encoding == "gbk"
    assert "把模型放到显卡" in document.text
    assert document.utf8 == document.text.encode("utf-8")
    edited = document.with_edits([edit(document, "net.cuda()", "net.to(dev)"), edit(document, "好", "很好")])
    assert edited == GBK.decode("gbk").replace("net.cuda()", "net.to(dev)").replace("好", "很好").encode("gbk")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "big5", "euc-jp", "shift_jis", "gb18030", "iso-2022-jp"])
def test_other_encodings(encoding: str) -> None:
    letters = {"latin-1": "é", "cp1251": "привет"}.get(encoding, "日本")
    text = f"# {letters}\n# vim: set fileencoding={encoding} :\nx = y.cuda()  # {letters}\n"
    document = Document.from_bytes(PATH, text.encode(encoding))
    edited = document.with_edits([edit(document, "y.cuda()", "y")])
    assert edited == text.replace("y.cuda()", "y").encode(encoding)


@pytest.mark.parametrize(
    "raw",
    [
        b"import os\n\n# coding: gbk\n" + "x = 'é'\n".encode(),
        "# one\rx = 'é'  # coding: gbk\ry = 1\r".encode(),
        b"x = 1\n# coding: gbk\n" + "y = '\u2603'\n".encode(),
    ],
    ids=["third line", "lone carriage returns", "behind code"],
)
def test_a_cookie_counts_only_where_python_looks_for_it(raw: bytes) -> None:
    assert Document.from_bytes(PATH, raw).text == raw.decode()


def test_undecodable_bytes_are_named_with_their_place() -> None:
    raw = "import torch\r\n\r# moyenne calculée\n".encode("latin-1")
    assert reason(raw) == "not valid UTF-8 (byte 0xe9 at line 3)"
    assert reason(codecs.BOM_UTF8 + raw) == "not valid UTF-8 (byte 0xe9 at line 3)"
    assert reason(b"# coding: gbk\nx = '\xff'\n") == "not valid gbk (byte 0xff at line 2)"


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ("x = 1\n".encode("utf-16"), "UTF-16"),
        (codecs.BOM_UTF16_BE + "x = 1\n".encode("utf-16-be"), "UTF-16"),
        ("x = 1\n".encode("utf-16-le"), "NUL bytes"),
        ("x = 1\n".encode("utf-32"), "UTF-32"),
        (b"x = 1\n\0", "NUL bytes"),
        (b"# coding: klingon\n", "klingon"),
        (b"# coding: hex\n", "'hex'"),
        (b"# coding: rot13\nk = 1\n", "'rot13'"),
        (b"# coding: utf-16-le\n ", "'utf-16-le'"),
        (b"# coding: idna\n", "'idna'"),
        (codecs.BOM_UTF8 + b"# coding: gbk\n", "'gbk'"),
        (b"# coding: iso-2022-jp\n# \x1b$B\x1b(B\n", "same bytes"),
    ],
)
def test_what_cannot_be_python_text_is_refused(raw: bytes, part: str) -> None:
    assert part in reason(raw)


@pytest.mark.parametrize(
    ("edits", "part"),
    [
        ([Edit(0, 4, "x"), Edit(3, 5, "y")], "overlap at byte 3"),
        ([Edit(0, 4, "x"), Edit(2, 2, "y")], "overlap at byte 2"),
        ([Edit(0, 400, "x")], "does not fit"),
        ([Edit(4, 2, "x")], "does not fit"),
        ([Edit(0, 3, "x")], "cuts a character"),
        ([Edit(0, 0, "\ud800")], "surrogates"),
    ],
)
def test_edits_that_cannot_be_made(edits: list[Edit], part: str) -> None:
    document = Document.from_bytes(PATH, "# é = 1\n".encode())
    with pytest.raises(SourceError, match=part):
        document.with_edits(edits)


def test_a_replacement_must_exist_in_the_encoding() -> None:
    document = Document.from_bytes(PATH, b"# coding: latin-1\nx = 1\n")
    with pytest.raises(SourceError, match="iso-8859-1 has no character '好'"):
        document.with_edits([Edit(0, 0, "# 好\n")])


def test_edits_at_one_place_keep_their_order_and_may_touch() -> None:
    edits = [Edit(1, 2, "B"), Edit(1, 1, "2"), Edit(1, 1, "1"), Edit(0, 1, "A"), Edit(2, 2, "end")]
    assert apply_edits(b"ab", edits) == b"A21Bend"


def test_reading(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    assert Document.read(tmp_path / "a.py").text == "x = 1\r\n"
    with pytest.raises(SourceError, match="cannot be read: no such file"):
        Document.read(tmp_path / "b.py")
    with pytest.raises(SourceError, match="cannot be read: is a directory"):
        Document.read(tmp_path)


def test_an_error_says_where_and_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(SourceError(PATH, "does not parse", 3)))
    assert (error.path, error.reason, error.line) == (PATH, "does not parse", 3)
    assert str(error) == "net.py:3: does not parse"
    assert str(SourceError(PATH, "is empty")) == "net.py: is empty"


@given(st.binary(max_size=60), st.sampled_from([b"", b"# coding: gbk\n", b"# coding: latin-1\n", codecs.BOM_UTF8]))
def test_whatever_is_accepted_keeps_its_bytes(content: bytes, start: bytes) -> None:
    raw = start + content
    try:
        document = Document.from_bytes(PATH, raw)
    except SourceError:
        return
    # An insertion in front of the last line's end takes the long way through text and back.
    place = len(document.utf8)
    assert document.with_edits([Edit(place, place, "#")]) == raw + b"#"
    assert document.text.encode(document.encoding) == raw.removeprefix(codecs.BOM_UTF8 if document.bom else b"")
