"""Real git repositories for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class GitRepository:
    """A repository with a work tree, and git run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Nothing of the machine's own settings, and nothing of a hook that runs the tests.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment |= {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **{
                f"GIT_{who}_{what}": "tests@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }

    @classmethod
    def new(cls, root: Path) -> GitRepository:
        """An empty repository without a commit."""
        root.mkdir(parents=True, exist_ok=True)
        repository = cls(root)
        repository.git("init", "-q", "-b", "main")
        return repository

    def git(self, *arguments: str, code: int = 0) -> str:
        """What git prints; it has to end with an exit code."""
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Writes files, given by their paths below the root."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.root / name).read_bytes().decode()

    def commit(self, files: Mapping[str, str | bytes] | None = None) -> None:
        """Commits the whole work tree after writing files."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--no-verify", "-m", "message")
