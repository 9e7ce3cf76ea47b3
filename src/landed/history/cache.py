"""What is kept on disk between runs: one SQLite file a repository. Losing it costs time, never results."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from landed.history.states import Delta
from landed.options.facts import READER_VERSION
from landed.sources.git import Commit, Tag


class Releases(msgspec.Struct):
    """The line of tags that name versions: differences from each tag's tree to the next one's."""

    tags: list[Tag]
    deltas: list[Delta]


class Kept(msgspec.Struct):
    """Differences up to ``head``, valid for one digest of the rules."""

    head: str
    commits: list[Commit]
    deltas: list[Delta]
    problems: list[tuple[str, str, int, str, int]]
    blobs: list[str]
    declaring: list[str]
    head_lines: list[tuple[str, str, str, int]]
    releases: Releases


_SCHEMA = """
create table if not exists facts (blob text, need text, data blob, primary key (blob, need)) without rowid;
create table if not exists uses (blob text primary key, data blob) without rowid;
create table if not exists kept (digest text primary key, data blob);
create table if not exists derived (stamp text primary key, data blob);
create table if not exists meta (key text primary key, value text);
"""


class Cache:
    """Facts by (blob, need) and the kept history. ``path`` None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._facts: list[tuple[str, str, bytes]] = []
        self._uses: list[tuple[str, bytes]] = []
        self.db = self._open(path)

    def _open(self, path: Path | None) -> sqlite3.Connection:
        if path is None:
            db = sqlite3.connect(":memory:")
            db.executescript(_SCHEMA)
            return db
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._prepare(sqlite3.connect(path))
        except sqlite3.DatabaseError:
            # a damaged cache is thrown away: everything in it can be read again from the repository
            path.unlink(missing_ok=True)
            return self._prepare(sqlite3.connect(path))

    @staticmethod
    def _prepare(db: sqlite3.Connection) -> sqlite3.Connection:
        db.execute("pragma journal_mode=wal")
        db.execute("pragma synchronous=off")
        db.executescript(_SCHEMA)
        found = db.execute("select value from meta where key='reader'").fetchone()
        if not found or found[0] != READER_VERSION:
            for table in ("facts", "uses", "kept", "derived"):
                db.execute(f"delete from {table}")
            db.execute("insert or replace into meta values ('reader', ?)", (READER_VERSION,))
            db.commit()
        return db

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.flush()
        finally:
            self.db.close()

    def have(self, needs: dict[str, set[str]]) -> dict[str, set[str]]:
        """Which needs of which blobs are kept already."""
        out: dict[str, set[str]] = {}
        if len(needs) > 2000:
            rows: Iterable[tuple[str, str]] = self.db.execute("select blob, need from facts")
            used: Iterable[tuple[str]] = self.db.execute("select blob from uses")
        else:
            marks = ",".join("?" * len(needs))
            ids = list(needs)
            rows = self.db.execute(f"select blob, need from facts where blob in ({marks})", ids)
            used = self.db.execute(f"select blob from uses where blob in ({marks})", ids)
        for blob, need in rows:
            out.setdefault(blob, set()).add(need)
        for (blob,) in used:
            out.setdefault(blob, set()).add("uses")
        return out

    def get(self, blob: str, need: str) -> bytes | None:
        found = self.db.execute("select data from facts where blob=? and need=?", (blob, need)).fetchone()
        return zlib.decompress(found[0]) if found else None

    def put(self, blob: str, need: str, data: bytes) -> None:
        if self.path is None:
            return
        self._facts.append((blob, need, zlib.compress(data, 1)))
        if len(self._facts) > 500:
            self._write()

    def uses(self, blob: str) -> list[str]:
        found = self.db.execute("select data from uses where blob=?", (blob,)).fetchone()
        return zlib.decompress(found[0]).decode().split("\n") if found and found[0] else []

    def put_uses(self, blob: str, names: list[str]) -> None:
        if self.path is None:
            return
        self._uses.append((blob, zlib.compress("\n".join(sorted(names)).encode(), 1)))
        if len(self._uses) > 500:
            self._write()

    def _write(self) -> None:
        self.db.executemany("insert or replace into facts values (?,?,?)", self._facts)
        self.db.executemany("insert or replace into uses values (?,?)", self._uses)
        self._facts.clear()
        self._uses.clear()

    def flush(self) -> None:
        self._write()
        self.db.commit()

    def kept(self, digest: str) -> Kept | None:
        """History kept under these rules, or None."""
        found = self.db.execute("select data from kept where digest=?", (digest,)).fetchone()
        if not found:
            return None
        try:
            return msgspec.msgpack.decode(zlib.decompress(found[0]), type=Kept)
        except (msgspec.MsgspecError, zlib.error):
            return None

    def keep(self, digest: str, kept: Kept) -> None:
        data = zlib.compress(msgspec.msgpack.encode(kept), 1)
        self.db.execute("delete from kept")
        self.db.execute("insert into kept values (?, ?)", (digest, data))
        self.db.commit()

    def derived(self, stamp: str) -> bytes | None:
        """What was derived under a stamp (data, code and head), or None."""
        found = self.db.execute("select data from derived where stamp=?", (stamp,)).fetchone()
        return zlib.decompress(found[0]) if found else None

    def put_derived(self, stamp: str, data: bytes) -> None:
        self.db.execute("delete from derived")
        self.db.execute("insert into derived values (?, ?)", (stamp, zlib.compress(data, 1)))
        self.db.commit()
