"""A search over bytes that decides which files, and which places in them, are looked at further."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from codemods.source.facts import Fact, is_flag
from codemods.toml import read_rules


@dataclass(frozen=True)
class Triggers:
    """What the scan looks for; the content of ``rules/triggers.toml``.

    Each regular expression stands alone and begins with plain letters: ``re`` skips fast to those, and to nothing else.
    A single alternation of all of them took 20 times as long.
    """

    words: tuple[bytes, ...]
    calls: tuple[re.Pattern[bytes], ...]
    packages: tuple[re.Pattern[bytes], ...]
    statement_patterns: tuple[str, ...]

    @cached_property
    def statements(self) -> tuple[re.Pattern[bytes], ...]:
        """What to look for in a file that is opened."""
        return _compiled(self.statement_patterns)

    def mentioned_in(self, raw: bytes) -> bool:
        """Whether a file with these bytes has to be opened any further."""
        return (
            any(word in raw for word in self.words)
            or any(pattern.search(raw) is not None for pattern in self.calls)
            or any(True for _ in self._imports(raw))
        )

    def offsets(self, utf8: bytes) -> set[int]:
        """Byte offsets of the places that the codemods should see."""
        places = {match.start() for pattern in self.statements for match in pattern.finditer(utf8)}
        places.update(match.end() - 1 for match in self._imports(utf8))
        return places

    def _imports(self, text: bytes) -> Iterator[re.Match[bytes]]:
        """Imports of packages: where a statement can start, so not in a comment."""
        for match in (match for pattern in self.packages for match in pattern.finditer(text)):
            before = text[text.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip()
            if not before or before.endswith(b";"):
                yield match


@cache
def load_triggers(families: frozenset[str] = frozenset()) -> Triggers:
    """The triggers of ``rules/triggers.toml``, compiled.

    Args:
        families: the families of rules that are off unless asked for, and were; each has triggers of its own
    """
    data = read_rules("triggers.toml")
    added = [data["families"][family] for family in sorted(families)]
    words: list[str] = [*data["words"], *(word for triggers in added for word in triggers["words"])]
    names = "|".join(re.escape(name) for name in data["packages"])
    earlier = r"(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*"
    return Triggers(
        words=tuple(word.encode() for word in words),
        calls=_compiled(data["calls"]),
        packages=_compiled([rf"import[ \t]+{earlier}(?:{names})\b", rf"from[ \t]+(?:{names})\b"]),
        statement_patterns=(*map(re.escape, words), *data["statements"]),
    )


MENTIONED = Fact("mentioned", lambda raw: load_triggers().mentioned_in(raw), bool, is_flag)
"""Whether a content has to be opened any further."""


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[bytes], ...]:
    return tuple(re.compile(pattern.encode()) for pattern in patterns)
