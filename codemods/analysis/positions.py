"""Byte offsets for ``ast`` nodes."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right

Located = ast.expr | ast.stmt | ast.excepthandler | ast.pattern | ast.alias | ast.keyword | ast.arg

_LINE_END = re.compile(rb"\r\n|\n|\r")


class Lines:
    """Maps the lines and columns of ``ast`` to byte offsets of the UTF-8 text, and back.

    Python's tokenizer ends a line at ``\\n``, ``\\r\\n`` and a lone ``\\r``, and nowhere else.
    """

    def __init__(self, utf8: bytes) -> None:
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(utf8))]

    def start(self, node: Located) -> int:
        """Offset of the node's first byte."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: Located) -> int:
        """Offset just behind the node's last byte."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def position(self, offset: int) -> tuple[int, int]:
        """Line (from 1) and column (in bytes, from 0) of an offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1]
