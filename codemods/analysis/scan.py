"""A search over bytes that decides which files, and which places in them, are looked at further."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from codemods.toml import read_rules


@dataclass(frozen=True)
class Triggers:
    """What the scan looks for; the content of ``rules/triggers.toml``."""

    words: tuple[bytes, ...]
    calls: re.Pattern[bytes]
    packages: re.Pattern[bytes]
    places: re.Pattern[bytes]

    def mentioned_in(self, raw: bytes) -> bool:
        """Whether a file with these bytes has to be opened any further."""
        return (
            any(word in raw for word in self.words)
            or self.calls.search(raw) is not None
            or self.packages.search(raw) is not None
        )

    def offsets(self, utf8: bytes) -> list[int]:
        """Byte offsets of the places that the codemods should see, in ascending order."""
        return [match.start() for match in self.places.finditer(utf8)]


@cache
def load_triggers() -> Triggers:
    """The triggers of ``rules/triggers.toml``, compiled."""
    data = read_rules("triggers.toml")
    words: list[str] = data["words"]
    packages = "|".join(re.escape(name) for name in data["packages"])
    imports = rf"^[ \t]*(?:import|from)[ \t]+(?:{packages})\b"
    places = "|".join([*map(re.escape, words), imports, *data["statements"]])
    return Triggers(
        words=tuple(word.encode() for word in words),
        calls=re.compile("|".join(data["calls"]).encode()),
        packages=re.compile(imports.encode(), re.MULTILINE),
        places=re.compile(places.encode(), re.MULTILINE),
    )
