"""Git, asked by its command. The repository is not trusted: nothing that it configures is run.

Only plumbing commands are used: their output does not depend on what users set for their own eyes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codemods.errors import UserError

_OF_ONE_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX",
)  # fmt: skip
"""Variables that git sets for its hooks and that speak of the repository of the hook."""
_KEPT_IN_HOOKS = ("GIT_INDEX_FILE",)
"""Those that do not follow from where the repository lies: ``git commit FILE`` makes an index of its own, which holds
what is to be committed."""
_PATHS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", *_KEPT_IN_HOOKS)
"""Those that may be relative to the working directory."""
_RUN_PROGRAMS = ("GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_PAGER", "GIT_EDITOR")
_NOTHING_RUNS = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.quotePath=false")


class GitError(UserError):
    """Git is not there, there is no repository, or git cannot do what was asked; the message says what to do."""


@dataclass(frozen=True)
class Git:
    """Git in one work tree."""

    top: Path
    """The folder of the work tree, with links resolved."""
    environment: dict[str, str]
    options: tuple[str, ...]

    @classmethod
    def around(cls, folder: Path) -> Git:
        """Git in the work tree that a folder lies in.

        Raises:
            GitError: there is none, or git is not installed
        """
        environment = _environment(folder)
        options = tuple(word for setting in _NOTHING_RUNS for word in ("-c", setting))
        found = _run(["git", *options, "rev-parse", "--show-toplevel"], folder, environment)
        if found.returncode:
            raise GitError(f"{folder}: no lines can be compared here: {_message(found.stderr, found.returncode)}")
        git = cls(Path(os.path.realpath(_line(found.stdout))), environment, options)
        return cls(git.top, environment, (*options, *git._without_filters()))

    def output(self, *arguments: str) -> bytes:
        """What a command prints.

        Raises:
            GitError: the command fails
        """
        done = self._run(*arguments)
        if done.returncode:
            raise GitError(f"{self.top}: git {arguments[0]}: {_message(done.stderr, done.returncode)}")
        return done.stdout

    def answer(self, *arguments: str) -> str | None:
        """The line that a command prints, None if it fails."""
        done = self._run(*arguments)
        return None if done.returncode else _line(done.stdout)

    @contextmanager
    def lines(self, *arguments: str) -> Iterator[Iterator[bytes]]:
        """The lines that a command prints, as they come.

        Raises:
            GitError: the command fails
        """
        # Not a pipe for what it says beside: git would wait for a reader of many warnings.
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(
                self._command(*arguments),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
            ) as process,
        ):
            assert process.stdout is not None
            yield iter(process.stdout)
            if process.wait():
                said.seek(0)
                raise GitError(f"{self.top}: git {arguments[0]}: {_message(said.read(), process.returncode)}")

    @cached_property
    def empty_tree(self) -> str:
        """The name of the tree without files, which depends on the repository's hash."""
        return _line(self.output("hash-object", "-t", "tree", "--stdin"))

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names, None if there is none."""
        is_option = revision.startswith("-")
        return None if is_option else self.answer("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")

    @property
    def is_shallow(self) -> bool:
        """Whether the history was cut when the repository was cloned."""
        return self.answer("rev-parse", "--is-shallow-repository") == "true"

    def names(self, *arguments: str) -> set[str]:
        """The files, relative to ``top``, that a command lists with ``-z``."""
        return {os.fsdecode(name) for name in self.output(*arguments, "-z", "--").split(b"\0") if name}

    def untracked(self) -> Iterator[Path]:
        """The files that git neither tracks nor ignores; those of other repositories inside are not among them."""
        names = self.names("ls-files", "--others", "--exclude-standard")
        yield from (self.top / name for name in names if not name.endswith("/"))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return _run(self._command(*arguments), self.top, self.environment)

    def _command(self, *arguments: str) -> list[str]:
        return ["git", "-C", os.fspath(self.top), *self.options, *arguments]

    def _without_filters(self) -> Iterator[str]:
        """Options that switch off the filters that the repository itself configures: they are commands.

        Those of the user's own settings run, as they do for every git command.
        """
        pattern = r"^filter\..*\.(clean|smudge|process|required)$"
        found = self._run("config", "--includes", "--show-scope", "--name-only", "-z", "--get-regexp", pattern)
        if found.returncode > 1:  # 1: there are none
            raise GitError(f"git is too old ({_message(found.stderr, found.returncode)}); 2.26 is needed")
        words = found.stdout.decode(errors="surrogateescape").split("\0")
        for scope, key in zip(words[::2], words[1::2], strict=False):
            if scope not in ("system", "global", "command"):
                yield from ("-c", f"{key}={'false' if key.endswith('.required') else ''}")


def _environment(folder: Path) -> dict[str, str]:
    """The environment for git in a folder: what a hook was given stands only where it speaks of the same repository."""
    clean = {name: value for name, value in os.environ.items() if name not in (*_OF_ONE_REPOSITORY, *_RUN_PROGRAMS)}
    # No lock and no refreshed index: the index stays as it is. No question that nobody could answer.
    clean.update(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C")
    given = {name: os.environ[name] for name in _OF_ONE_REPOSITORY if name in os.environ}
    given |= {name: os.path.abspath(given[name]) for name in _PATHS if name in given}  # noqa: PTH100
    if not given:
        return clean
    here = _repository(folder, clean)
    if here is None:
        return {**clean, **given}  # a work tree that only GIT_DIR leads to
    if here == _repository(Path.cwd(), {**clean, **given}):
        clean.update({name: given[name] for name in _KEPT_IN_HOOKS if name in given})
    return clean


def _repository(folder: Path, environment: dict[str, str]) -> str | None:
    found = _run(["git", "rev-parse", "--absolute-git-dir"], folder, environment)
    return None if found.returncode else os.path.realpath(_line(found.stdout))


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except FileNotFoundError:
        if not folder.is_dir():
            raise GitError(f"{folder}: there is no such folder") from None
        raise GitError("git is not installed, or not on PATH; lines can only be compared with it") from None
    except OSError as error:
        raise GitError(f"git cannot be run: {(error.strerror or str(error)).lower()}") from None


def _line(output: bytes) -> str:
    return os.fsdecode(output).rstrip("\r\n")


def _message(error: bytes, code: int) -> str:
    """The line in which git says what went wrong."""
    lines = [line for line in error.decode(errors="replace").splitlines() if line.startswith(("fatal: ", "error: "))]
    said = lines[0].partition(": ")[2] if lines else f"exit code {code}"
    if "dubious ownership" in said:
        said += "; git config --global --add safe.directory FOLDER allows it"
    return said
