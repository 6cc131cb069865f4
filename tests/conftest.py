"""Fixtures that several test files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from conversion import Tree


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """An empty repository, which is the working directory."""
    root = tmp_path / "repository"
    root.mkdir()
    monkeypatch.chdir(root)
    return Tree(root)
