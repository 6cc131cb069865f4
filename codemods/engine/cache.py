"""What earlier runs found, kept in one JSON file a repository and version of this tool.

Facts about a content stand under its hash; conversions under the hash of all that decides them. An entry can so be
missing, but not out of date. Runs beside each other may each write the file: it is replaced as a whole, the last one
stays. It is only ever an offer: what cannot be read or written is found anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping, Set
from dataclasses import fields
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.engine.tool_digest import tool_digest
from codemods.source.document import Document, SourceError
from codemods.source.facts import Fact, Facts, Known

if TYPE_CHECKING:
    from codemods.analysis.project import Project
    from codemods.engine.convert import Conversion, HelperNames, Options

FOLDER = ".uncuda_cache"
VARIABLE = "UNCUDA_CACHE_DIR"
_KEPT_DAYS = 14
_MOST_ENTRIES = 100_000
_DAY = 24 * 60 * 60
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of uncuda. It can be removed at any time.
"""
_OWN_NAME = re.compile(r"[0-9a-f]{32}\.json|[0-9a-f]{16}\.tmp")
_UNUSABLE = (TypeError, ValueError, LookupError, RecursionError, OverflowError, SourceError)

Entries = dict[str, tuple[int, Any]]
"""By key: the day on which an entry was last of use, and its content."""


def cache_folder(root: Path, chosen: Path | None = None) -> Path | None:
    """The folder of a repository's cache: in the chosen folder, in that of ``UNCUDA_CACHE_DIR``, else in its root.

    None for a root that git would not hide the folder in.
    """
    shared = chosen or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if shared is None:
        return root / FOLDER if (root / ".git").exists() else None
    place = os.path.realpath(root)
    return shared.absolute() / f"{os.path.basename(place)}-{_digest(os.fsencode(place))[:16]}"  # noqa: PTH119


class Cache(Facts):
    """The cache of one repository, for one run; its file is read when something is asked for."""

    def __init__(self, root: Path, chosen: Path | None = None) -> None:
        self.remarks: list[str] = []
        """What the user should know."""
        self._root = root
        self._folder = cache_folder(root, chosen)
        self._today = int(time.time()) // _DAY
        self._changed = False
        # By identity: contents that were hashed, which are kept so that no other object takes their place.
        self._digests: dict[int, tuple[bytes, str]] = {}

    # -- facts ----------------------------------------------------------------------------------------------------

    def of(self, fact: Fact[Known], raw: bytes) -> Known:
        """The fact about a content, from the cache if it is there."""
        key = self._digest_of(raw)
        _, known = self._facts.get(key, (0, None))
        if isinstance(known, dict) and fact.name in known:
            with contextlib.suppress(*_UNUSABLE):
                value = fact.unpack(known[fact.name])
                self._use(self._facts, key)
                return value
        found = fact.find(raw)
        known = known if isinstance(known, dict) else {}
        known[fact.name] = fact.pack(found)
        self._put(self._facts, key, known)
        return found

    # -- conversions ----------------------------------------------------------------------------------------------

    def key(self, document: Document, context: str, helper: HelperNames, options: Options) -> str:
        """The key of a file's conversion; ``context`` is the ``digest_of_project`` for all files of a run."""
        return _digest_of_value((context, document.path, helper, options, self._digest_of(document.raw)))

    def conversion(self, key: str, document: Document, helper: HelperNames) -> Conversion | None:
        """The conversion of a file that is given this helper, if it is known."""
        from codemods.engine.conversion_record import unpack

        if key not in self._conversions:
            return None
        with contextlib.suppress(*_UNUSABLE):
            conversion = unpack(self._conversions[key][1], document, helper)
            self._use(self._conversions, key)
            return conversion
        return None

    def remember(self, key: str, conversion: Conversion) -> None:
        """Keeps a conversion for later runs."""
        from codemods.engine.conversion_record import pack

        self._put(self._conversions, key, pack(conversion))

    # -- the file -------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Writes what is new; nothing where the folder cannot be written to."""
        if not self._changed or self._file is None:
            return
        document = {"facts": self._kept(self._facts), "conversions": self._kept(self._conversions)}
        data = json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode("ascii")
        with contextlib.suppress(OSError):
            _prepare(self._file.parent)
            _replace(self._file, data)
            _remove_old(self._file)

    @cached_property
    def _file(self) -> Path | None:
        """The file for this version of the tool; None if there must be none."""
        folder = self._folder
        if folder is None or folder.is_symlink():  # a link could lead anywhere, and files are removed from the folder
            return None
        if folder.parent == self._root and _is_committed(self._root):
            self.remarks.append(f"{folder}: is under version control, so it is not used; remove it from there")
            return None
        return folder / f"{tool_digest()}.json"

    @cached_property
    def _stored(self) -> tuple[Entries, Entries]:
        if self._file is None or not self._file.is_file():
            return {}, {}
        try:
            document = json.loads(self._file.read_bytes())
            return _entries(document["facts"]), _entries(document["conversions"])
        except OSError:
            return {}, {}
        except _UNUSABLE:
            self.remarks.append(f"{self._file}: the cache was damaged and is made anew")
            self._changed = True
            return {}, {}

    @property
    def _facts(self) -> Entries:
        return self._stored[0]

    @property
    def _conversions(self) -> Entries:
        return self._stored[1]

    def _kept(self, entries: Entries) -> Entries:
        """The entries that were of use lately, the latest if they are too many."""
        recent = [(key, entry) for key, entry in entries.items() if 0 <= self._today - entry[0] < _KEPT_DAYS]
        if len(recent) > _MOST_ENTRIES:
            recent.sort(key=lambda item: -item[1][0])
        return dict(recent[:_MOST_ENTRIES])

    def _use(self, entries: Entries, key: str) -> None:
        day, value = entries[key]
        if day != self._today:
            self._put(entries, key, value)

    def _put(self, entries: Entries, key: str, value: Any) -> None:
        entries[key] = (self._today, value)
        self._changed = True

    def _digest_of(self, raw: bytes) -> str:
        known = self._digests.get(id(raw))
        if known is None:
            known = self._digests[id(raw)] = (raw, _digest(raw))
        return known[1]


def digest_of_project(project: Project) -> str:
    """The digest of everything that is known of a project."""
    return _digest_of_value([_in_order(getattr(project, item.name)) for item in fields(project)])


def _in_order(value: Any) -> Any:
    """A set or a mapping as a list whose order is always the same."""
    if isinstance(value, Mapping):
        return sorted(map(repr, value.items()))
    return sorted(map(repr, value)) if isinstance(value, Set) else value


def _digest_of_value(value: Any) -> str:
    # All fields of a dataclass are part of its `repr`, those that are still to come as well.
    return _digest(repr(value).encode("utf-8", "surrogatepass"))


def _digest(raw: bytes) -> str:
    return blake2b(raw, digest_size=16).hexdigest()


def _entries(value: Any) -> Entries:
    entries: Entries = {}
    if not isinstance(value, dict):
        raise TypeError(value)
    for key, (day, content) in value.items():
        if not isinstance(day, int):
            raise TypeError(day)
        entries[key] = (day, content)
    return entries


def _is_committed(root: Path) -> bool:
    """Whether git tracks a cache in the root: others could then say what a check finds.

    Read off git's index: names stand in it as they are, or without a beginning that they share with the one before.
    """
    if not (root / FOLDER).is_dir():
        return False
    try:
        git = _git_folder(root)
        indexes = [git / "index", *git.glob("sharedindex.*")]
        return any(f"{FOLDER[1:]}/".encode() in index.read_bytes() for index in indexes if index.is_file())
    except OSError:
        return False


def _git_folder(root: Path) -> Path:
    place = root / ".git"
    if place.is_file():  # a linked work tree or a submodule
        return root / place.read_bytes().decode("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
    return place


def _prepare(folder: Path) -> None:
    """Makes the folder, which git and backups pass over."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
        if not (folder / name).exists():
            _replace(folder / name, text.encode())


def _replace(file: Path, data: bytes) -> None:
    """Gives a file this content in one step. Should the system fail before it is on the disk, it is found damaged."""
    temporary = file.with_name(f"{os.urandom(8).hex()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _remove_old(file: Path) -> None:
    """Removes what other versions of the tool, and runs that were stopped, left behind long ago."""
    for other in file.parent.iterdir():
        age = time.time() - other.lstat().st_mtime
        if _OWN_NAME.fullmatch(other.name) and other != file and age > _KEPT_DAYS * _DAY:
            other.unlink()
