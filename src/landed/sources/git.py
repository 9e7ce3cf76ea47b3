"""Read a git history in bulk from the object database; nothing is ever checked out.

The two commands are one ``git log --raw`` for what changed and one ``git cat-file --batch`` for the
bytes, fed in path order so that deltas of one file share their bases.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from landed.errors import SourceError

ABSENT = "0" * 40
#: Source files above this many bytes are reported and not parsed.
MAX_BLOB_BYTES = 4_000_000

_PR = re.compile(r"\(#(\d+)\)\s*$|^Merge pull request #(\d+)")


class Change(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One path that differs between a commit and its first parent; ``ABSENT`` where there is no file."""

    path: str
    old: str
    new: str


class Commit(msgspec.Struct, array_like=True, frozen=True):
    """A commit of the main line. Times are seconds since the epoch; ``pr`` is empty if unknown."""

    sha: str
    parents: int
    committed: int
    authored: int
    pr: str
    changes: list[Change]


class Tag(msgspec.Struct, array_like=True, frozen=True):
    """A tag that names a version: its commit, the commit's tree and date (seconds since the epoch)."""

    name: str
    commit: str
    tree: str
    committed: int


_VERSION = re.compile(r"v?\d+(\.\d+)+\S*\Z")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def iso(seconds: int) -> str:
    """ISO 8601 in UTC with seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _change(raw: str, path: str) -> Change | None:
    """A row of ``--raw``. Symbolic links and submodules are no sources; their place counts as absent."""
    old_mode, new_mode, old, new, _ = raw[1:].split(" ", 4)
    old = old if old_mode.startswith("100") else ABSENT
    new = new if new_mode.startswith("100") else ABSENT
    return Change(path, old, new) if old != new else None


def _env() -> dict[str, str]:
    # A reader never downloads: a blob that a partial clone lacks is an answer, not a request.
    return {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


class Repo:
    """A local repository (bare or not). Raises SourceError when it cannot serve a full history."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.path = path / ".git" if (path / ".git").is_dir() else path
        if not self.path.exists():
            raise SourceError(f"no repository at {path}", mend="give --repo NAME=PATH, or run `landed sync` first")
        if not (self.path / "HEAD").is_file() or not (self.path / "objects").is_dir():
            raise SourceError(
                f"{path} is not a git repository (no HEAD or objects in it)",
                mend="name the folder that holds HEAD and objects/, or run `landed sync`",
            )
        if (self.path / "shallow").is_file() and (self.path / "shallow").read_text().strip():
            raise SourceError(
                f"{path} is a shallow clone: its history is cut, so first dates would be wrong",
                mend="git fetch --unshallow, or run `landed sync` for a full partial clone",
            )

    def git(self, *args: str, stdin: str = "") -> str:
        """Output of one git command; SourceError with git's own last line when it fails."""
        try:
            done = subprocess.run(
                ["git", f"--git-dir={self.path}", *args], input=stdin.encode(), capture_output=True, env=_env(), check=False
            )
        except FileNotFoundError:
            raise SourceError("git is not installed", mend="install git 2.30 or newer") from None
        if done.returncode:
            why = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise SourceError(f"git {args[0]} failed in {self.path}: {why[-1] if why else 'no message'}")
        return done.stdout.decode("utf-8", "surrogateescape")

    def head(self) -> str:
        """Commit id of the default branch."""
        try:
            return self.git("rev-parse", "--verify", "HEAD^{commit}").strip()
        except SourceError as e:
            raise SourceError(
                f"{self.path} has no commit on its default branch ({e.args[0]})",
                mend="point HEAD to the default branch, or run `landed sync`",
            ) from None

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether ``old`` is on the first-parent chain of ``new``."""
        try:
            return old in self.git("rev-list", "--first-parent", new, f"^{old}^@").split()
        except SourceError:
            return False

    def main_line(self, head: str, since: str = "") -> list[Commit]:
        """First-parent commits from oldest to newest, each with its changes against its first parent."""
        span = f"{since}..{head}" if since else head
        out = self.git(
            "log", "--first-parent", "--diff-merges=first-parent", "--raw", "--no-abbrev", "--no-renames",
            "-z", "--reverse", "--format=tformat:%x01%H%x02%P%x02%ct%x02%at%x02%s", span, "--",
        )  # fmt: skip
        commits: list[Commit] = []
        changes: list[Change] = []
        tokens = iter(out.split("\0"))
        for token in tokens:
            token = token.lstrip("\n")
            if token.startswith("\x01"):
                sha, parents, committed, authored, subject = token[1:].split("\x02", 4)
                found = _PR.search(subject)
                changes = []
                commits.append(
                    Commit(
                        sha, len(parents.split()), int(committed), int(authored),
                        (found.group(1) or found.group(2)) if found else "", changes,
                    )
                )  # fmt: skip
            elif token.startswith(":"):
                change = _change(token, next(tokens))
                if change:
                    changes.append(change)
        return commits

    def tree(self, commit: str) -> dict[str, str]:
        """Path to blob id of every regular file in a commit's tree."""
        files = {}
        for row in self.git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            meta, _, path = row.partition("\t")
            if meta.startswith("100"):
                files[path] = meta.split(" ")[2]
        return files

    def tags(self) -> list[Tag]:
        """Tags that look like versions (``v1.2``, ``1.2.3.post1``), by date of their commit, then name."""
        fields = ("objectname", "tree", "committerdate:unix")
        asked = "%00".join(["%(refname:strip=2)", *(f"%({star}{f})" for star in ("*", "") for f in fields)])
        out = []
        for row in self.git("for-each-ref", "refs/tags", f"--format={asked}").splitlines():
            name, *values = row.split("\0")
            # an annotated tag has its commit behind the star, a light one is the commit
            commit, tree, date = values[:3] if values[0] else values[3:]
            if _VERSION.match(name) and tree and date:
                out.append(Tag(name, commit, tree, int(date)))
        return sorted(out, key=lambda t: (t.committed, t.name))

    def differences(self, trees: list[str]) -> list[list[Change]]:
        """Changes from each tree to the next one, the first against nothing."""
        pairs = "".join(f"{a} {b}\n" for a, b in zip([_EMPTY_TREE, *trees], trees, strict=False))
        command = ["diff-tree", "--stdin", "-r", "--raw", "-z", "--no-abbrev", "--no-renames"]
        out: list[list[Change]] = []
        tokens = iter(self.git(*command, stdin=pairs).split("\0"))
        for token in tokens:
            # headers ("tree tree") end with a line break even under -z
            *headers, raw = token.split("\n")
            out += [[] for _ in headers]
            if raw:
                change = _change(raw, next(tokens))
                if change:
                    out[-1].append(change)
        return out

    def inner_commits(self, merge: str) -> list[str]:
        """Commits that a merge brought to the main line, oldest first."""
        return self.git("rev-list", "--reverse", "--topo-order", f"{merge}^1..{merge}").split()

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """Bytes of each blob in the order asked; None where this clone lacks the object or it is damaged."""
        todo = list(ids)
        start = 0
        while start < len(todo):
            done = 0
            for item in self._batch(todo[start:]):
                done += 1
                yield item
            start += done
            if start < len(todo):
                # git gave up at this object (damaged): it is reported as unreadable and the rest is read on.
                yield todo[start], None
                start += 1

    def _batch(self, ids: list[str]) -> Iterator[tuple[str, bytes | None]]:
        proc = subprocess.Popen(
            ["git", f"--git-dir={self.path}", "cat-file", "--batch", "--buffer"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_env(),
        )  # fmt: skip
        assert proc.stdin
        assert proc.stdout
        stdin, stdout = proc.stdin, proc.stdout

        def feed() -> None:
            try:
                stdin.write("".join(f"{i}\n" for i in ids).encode())
                stdin.close()
            except (BrokenPipeError, ValueError):
                pass

        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        try:
            for blob in ids:
                header = stdout.readline().split()
                if not header:
                    return
                if len(header) < 3 or header[1] != b"blob":
                    if len(header) == 3 and header[2].isdigit():
                        stdout.read(int(header[2]) + 1)
                    yield blob, None
                    continue
                size = int(header[2])
                data = stdout.read(size)
                if len(data) < size:
                    return
                stdout.read(1)
                yield blob, data
        finally:
            proc.kill()
            stdout.close()
            proc.wait()
            feeder.join(timeout=5)
