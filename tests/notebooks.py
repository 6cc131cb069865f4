"""Makes notebooks for the tests."""

from __future__ import annotations

import json
from typing import Any

import nbformat


def notebook_of(*cells: str | dict[str, Any], **top: Any) -> dict[str, Any]:
    """A notebook of these cells: code, or whole cells."""
    made = [_code(number, cell) if isinstance(cell, str) else cell for number, cell in enumerate(cells)]
    return {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **top}


def _code(number: int, source: str) -> dict[str, Any]:
    lines = source.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "id": f"c{number}", "metadata": {}, "outputs": []} | {
        "source": lines
    }


def as_json(notebook: object) -> bytes:
    """The bytes that Jupyter writes."""
    return json.dumps(notebook, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def sources(raw: bytes) -> list[str]:
    """The source of each cell."""
    return ["".join(cell["source"]) for cell in json.loads(raw)["cells"]]


def validate(raw: bytes) -> None:
    """Fails unless Jupyter takes a notebook."""
    nbformat.validate(nbformat.reads(raw.decode("utf-8-sig"), as_version=4))  # type: ignore[no-untyped-call]
