"""Settings of a project: ``[tool.uncuda]`` in its ``pyproject.toml``. Data only: nothing in it is run."""

from __future__ import annotations

import keyword
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

from codemods.errors import UserError

FILE = "pyproject.toml"
_TABLE = "[tool.uncuda]"

TierName = Literal["safe", "review"]
SeverityName = Literal["error", "warning", "info"]


class ConfigError(UserError):
    """Settings that cannot be used; the message names file, key and remedy."""


@dataclass(frozen=True)
class Config:
    """What a project sets; every field has the value that holds where nothing is set."""

    select: tuple[str, ...] = ()
    """Codes of the only rules to use, or their beginnings; empty for all."""
    ignore: tuple[str, ...] = ()
    """Codes of rules to leave out, or their beginnings."""
    exclude: tuple[str, ...] = ()
    """Patterns as in ``.gitignore`` of what is not looked at, even when it is named."""
    tier: TierName = "review"
    """The least certain edits that are applied."""
    helper: str | None = None
    """A module of the repository that is its helper already, e.g. ``pkg.device``."""
    helper_name: str = "ai_device"
    """The name under which a helper is written otherwise."""
    root: Path | None = None
    """The folder of the file that was read: patterns refer to it. None if there was none."""
    tests: bool = False
    """Whether conditions and devices of tests are converted."""
    graph: bool = False
    """Whether graph mode is: ``torch.compile`` and what goes with it."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns as those of ``exclude``, each with the rules that are left out in the files it matches."""
    severity: tuple[tuple[str, SeverityName], ...] = ()
    """Codes of rules or their beginnings, each with how much ``check`` makes of what they find."""

    @classmethod
    def load(cls, path: Path) -> Config:
        """The settings for a file or folder: those of the nearest ``pyproject.toml`` with a table for this tool.

        The search ends at the root of the repository.

        Raises:
            ConfigError: the file cannot be read, or has keys or values that do not exist
        """
        start = Path(os.path.abspath(path))  # noqa: PTH100 (Path.resolve would follow links)
        for folder in [start, *start.parents]:
            table = _table(folder / FILE)
            if table is not None:
                return _config(table, folder)
            if (folder / ".git").exists():
                break
        return cls()


def _table(file: Path) -> dict[str, Any] | None:
    """The table of this tool in a file, None if it has none."""
    if not file.is_file():
        return None
    try:
        raw = file.read_bytes()
        if b"uncuda" not in raw:
            return None
        tool = _parse(raw.decode()).get("tool", {})
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are such
        raise ConfigError(f"{file}: not valid TOML: {error}") from None
    if not isinstance(tool, dict) or "uncuda" not in tool:
        return None
    table = tool["uncuda"]
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: `tool.uncuda` must be a table")
    return table


def _parse(text: str) -> dict[str, Any]:
    # Imported late: most projects have no table for this tool.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _config(table: dict[str, Any], folder: Path) -> Config:
    values: dict[str, Any] = {}
    for key, value in table.items():
        place = f"{folder / FILE}: {_TABLE}"
        if key not in _READERS:
            raise ConfigError(f"{place} has no key `{key}`{_suggestion(key, list(_READERS))}")
        try:
            values[key.replace("-", "_")] = _READERS[key](value)
        except ValueError as error:
            raise ConfigError(f"{place} `{key}` {error}") from None
    return Config(**values, root=folder)


def _suggestion(word: str, known: list[str]) -> str:
    close = _closest(word.replace("_", "-"), known)
    return f"; did you mean `{close}`?" if close else f"; it takes {', '.join(known)}"


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"must be a list of strings, not {value!r}")
    return tuple(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value


def _codes(value: object) -> tuple[str, ...]:
    return tuple(code.upper() for code in _strings(value))


def _per_file(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError(f'must be a table such as {{"tests/*" = ["UC801"]}}, not {value!r}')
    return tuple((pattern, _codes(codes)) for pattern, codes in value.items())


def _severity(value: object) -> tuple[tuple[str, SeverityName], ...]:
    if not isinstance(value, dict):
        raise ValueError(f'must be a table such as {{UC204 = "warning"}}, not {value!r}')
    return tuple((code.upper(), _severity_name(name)) for code, name in value.items())


def _severity_name(value: object) -> SeverityName:
    if not _is_severity(value):
        names = list(get_args(SeverityName))
        raise ValueError(f"takes {', '.join(map(repr, names))}, not {value!r}{_close(value, names)}")
    return value


def _is_severity(value: object) -> TypeGuard[SeverityName]:
    return value in get_args(SeverityName)


def _tier(value: object) -> TierName:
    if not _is_tier(value):
        names = list(get_args(TierName))
        raise ValueError(f"must be {' or '.join(map(repr, names))}, not {value!r}{_close(value, names)}")
    return value


def _is_tier(value: object) -> TypeGuard[TierName]:
    return value in get_args(TierName)


def _close(value: object, names: list[str]) -> str:
    close = _closest(str(value), names)
    return f"; did you mean {close!r}?" if close else ""


def _closest(word: str, known: list[str]) -> str | None:
    from difflib import get_close_matches  # only where there is a mistake

    return next(iter(get_close_matches(word, known, n=1)), None)


def _module(value: object) -> str:
    if not isinstance(value, str) or not all(map(_is_name, value.split("."))):
        raise ValueError(f'must be the dotted name of a module such as "pkg.device", not {value!r}')
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not _is_name(value):
        raise ValueError(f'must be a name that can be imported such as "ai_device", not {value!r}')
    return value


def _is_name(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word)


_READERS = {
    "select": _codes,
    "ignore": _codes,
    "exclude": _strings,
    "tier": _tier,
    "tests": _flag,
    "graph": _flag,
    "helper": _module,
    "helper-name": _name,
    "per-file-ignores": _per_file,
    "severity": _severity,
}


def check_helper(module: str | None, name: str | None) -> None:
    """Checks the helper's module and name as given on the command line.

    Raises:
        ConfigError: one of them cannot be imported under that name
    """
    for option, value, read in (("--helper", module, _module), ("--helper-name", name, _name)):
        try:
            if value is not None:
                read(value)
        except ValueError as error:
            raise ConfigError(f"{option} {error}") from None


def check_codes(*codes: str) -> None:
    """Checks that every code, or beginning of one, names a rule.

    Raises:
        ConfigError: one of them does not
    """
    from codemods.catalogue import rule_codes  # only where codes are given

    known = rule_codes()
    for code in codes:
        if not any(rule.startswith(code.upper()) for rule in known):
            raise ConfigError(f"there is no rule {code}{_close(code.upper(), known)}; `uncuda rules` lists them")
