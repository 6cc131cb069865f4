"""What IPython's magics do with the code that they are given; the content of ``rules/magics.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from codemods.toml import read_rules


@dataclass(frozen=True)
class Magics:
    """Names of magics by what they do."""

    statements: Mapping[bytes, re.Pattern[bytes]]
    """Line magics before a statement of the notebook, with a pattern of their options."""
    python_cells: frozenset[bytes]
    """Cell magics whose cell is code of the notebook."""
    local_cells: frozenset[bytes]
    """Those of them whose names are gone behind the cell."""
    shell_cells: frozenset[bytes]
    shell_lines: frozenset[bytes]
    commands: frozenset[bytes]
    """Line magics that are a command themselves."""
    prose_cells: frozenset[bytes]
    prose_lines: frozenset[bytes]


@cache
def load_magics() -> Magics:
    """The magics of ``rules/magics.toml``."""
    data = read_rules("magics.toml")
    return Magics(
        statements={name.encode(): re.compile(options.encode()) for name, options in data["statements"].items()},
        python_cells=_names(data["cells"]["python"]),
        local_cells=_names(data["cells"]["local"]),
        shell_cells=_names(data["shell"]["cells"]),
        shell_lines=_names(data["shell"]["lines"]),
        commands=_names(data["shell"]["commands"]),
        prose_cells=_names(data["prose"]["cells"]),
        prose_lines=_names(data["prose"]["lines"]),
    )


def _names(names: list[str]) -> frozenset[bytes]:
    return frozenset(name.encode() for name in names)
