"""Fixtures that several test files share."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from conversion import Tree


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a cache that is empty and lies outside the folders that it looks at."""
    monkeypatch.setenv("UNCUDA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / f"cache-{uuid4().hex}"))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """An empty repository, which is the working directory."""
    root = tmp_path / "repository"
    root.mkdir()
    monkeypatch.chdir(root)
    return Tree(root)
