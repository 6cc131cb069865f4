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
    statements: tuple[re.Pattern[bytes], ...]

    def mentioned_in(self, raw: bytes) -> bool:
        """Whether a file with these bytes has to be opened any further."""
        return (
            any(word in raw for word in self.words)
            or self.calls.search(raw) is not None
            or self.packages.search(raw) is not None
        )

    def offsets(self, utf8: bytes) -> set[int]:
        """Byte offsets of the places that the codemods should see."""
        places = {match.start() for pattern in self.statements for match in pattern.finditer(utf8)}
        places.update(match.end() - 1 for match in self.packages.finditer(utf8))
        return places


@cache
def load_triggers() -> Triggers:
    """The triggers of ``rules/triggers.toml``, compiled."""
    data = read_rules("triggers.toml")
    words: list[str] = data["words"]
    names = "|".join(re.escape(name) for name in data["packages"])
    earlier = r"(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*"
    packages = re.compile(rf"(?:^|;)[ \t]*(?:import|from)[ \t]+{earlier}(?:{names})\b".encode(), re.MULTILINE)
    # One pattern for each: `re` skips fast to plain letters, but only to those at the start of a pattern. A single
    # alternation took 20 times as long.
    statements = [re.compile(text.encode()) for text in (*map(re.escape, words), *data["statements"])]
    return Triggers(
        words=tuple(word.encode() for word in words),
        calls=re.compile("|".join(data["calls"]).encode()),
        packages=packages,
        statements=tuple(statements),
    )
