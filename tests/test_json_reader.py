"""The JSON reader agrees with ``json`` on every text, and knows where each value stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.source.json_reader import JsonReader

TEXTS = st.text() | st.sampled_from(["\ud83d", "😀", 'a "b" \\ /', "\r\n", "[{,:}]", "ü"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
LAYOUTS: list[dict[str, Any]] = [{}, {"indent": 1}, {"indent": "\t"}, {"separators": (",", ":")}]


def walked(reader: JsonReader, utf8: bytes) -> object:
    """The value that comes next, walked into as far as it goes."""
    if reader.next == "{":
        return {key: walked(reader, utf8) for key in reader.members()}
    if reader.next == "[":
        return [walked(reader, utf8) for _ in reader.items()]
    start, end = reader.span()
    return json.loads(utf8[start:end].decode())


@given(VALUES, st.sampled_from(LAYOUTS), st.booleans(), st.sampled_from(["", " ", "\n", "\r\n\t "]))
def test_every_value_is_found_where_it_stands(value: object, layout: dict[str, Any], ascii_: bool, around: str) -> None:
    text = around + json.dumps(value, ensure_ascii=ascii_, **layout).replace("\n", "\r\n") + around
    utf8 = text.encode("utf-8", "replace")
    expected = json.loads(utf8)
    walk, whole = JsonReader(utf8), JsonReader(utf8)
    assert walked(walk, utf8) == expected == whole.value()
    walk.finish()
    whole.finish()


@given(VALUES, st.data())
def test_what_json_refuses_is_refused(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.sampled_from(["", ",", "}", "]", '"', "\\", "x", ":", "\n"])) + text[at + 1 :]
    utf8 = broken.encode()
    try:
        expected = json.loads(broken)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            _read_all(utf8)
    else:
        assert _read_all(utf8) == expected


def _read_all(utf8: bytes) -> object:
    reader = JsonReader(utf8)
    value = walked(reader, utf8)
    reader.finish()
    return value


@pytest.mark.parametrize(
    "text", ["", "{", "[", '{"a"', '{"a":', '{"a":1', "{a:1}", "[1 2]", "[1,]", '{"a":1,}', "1 1", "nul"]
)
def test_an_error_tells_its_line(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        _read_all(f"\n{text}".encode())
    assert caught.value.lineno == 2
