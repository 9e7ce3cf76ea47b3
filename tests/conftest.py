"""Real small git repositories, built for each test by the tests themselves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


class Tree:
    """A repository under construction: files are written and committed at a given hour."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hour = 0
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str, hour: int | None = None) -> str:
        stamp = f"{1_700_000_000 + 3600 * (self.hour if hour is None else hour)} +0000"
        env = {
            **os.environ, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@x",
        }  # fmt: skip
        return subprocess.run(
            ["git", "-C", str(self.path), *args], env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, files: dict[str, str | bytes | None]) -> None:
        for name, content in files.items():
            target = self.path / name
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, files: dict[str, str | bytes | None] | None = None, subject: str = "change") -> str:
        """Write files (None deletes) and commit; returns the commit id."""
        self.write(files or {})
        self.hour += 1
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "repo")


@pytest.fixture
def new_tree(tmp_path: Path) -> Callable[[str], Tree]:
    return lambda name: Tree(tmp_path / name)
