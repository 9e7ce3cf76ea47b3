"""The snapshot compiled to one SQLite file with full-text search: what every answer is read from."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from pathlib import Path

from landed.errors import DataError

MANIFEST = "MANIFEST.json"
#: Part of the file's name: raise it when the shape of the SQLite file changes.
SHAPE = "2"


def compiled(snapshot: Path, cache: Path) -> Path:
    """Path of the SQLite file of a snapshot; compiled now if the snapshot is new. The manifest is the key."""
    manifest = snapshot / MANIFEST
    if not manifest.exists():
        raise DataError(f"no snapshot in {snapshot} (no {MANIFEST})", mend="run landed replay, or name another with --snapshot")
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()[:16]
    target = cache / f"snapshot-{SHAPE}-{digest}.sqlite"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=cache, suffix=".sqlite")
        os.close(handle)
        try:
            build(snapshot, Path(name))
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)
    return target


def build(snapshot: Path, target: Path) -> None:
    """Compile the text tables to ``target`` (overwritten)."""
    import msgspec

    from landed.records.tables import TABLES
    from landed.store import text

    target.unlink(missing_ok=True)
    db = sqlite3.connect(target)
    try:
        for name, kind in TABLES.items():
            columns = kind.__struct_fields__
            declared = ", ".join(f'"{c}" text not null' for c in columns)
            db.execute(f"create table {name} ({declared})")
            rows = [msgspec.structs.astuple(r) for r in text.read(snapshot, name)]
            db.executemany(f"insert into {name} values ({','.join('?' * len(columns))})", rows)
        for table, column in (
            ("landings", "method"), ("landings", "framework"), ("events", "option"), ("events", "method"), ("options", "option"),
            ("methods", "slug"), ("release_options", "framework"), ("offers", "framework"),
        ):  # fmt: skip
            db.execute(f"create index {table}_{column} on {table} ({column})")
        db.execute("create virtual table search using fts5 (kind, name, title, body, tokenize='unicode61')")
        db.execute(
            "insert into search select 'method', slug, name, aliases||' '||source||' '||description||' '||note from methods"
        )
        db.execute("insert into search select 'failure', slug, name||' '||name_zh, description||' '||symptoms from failures")
        db.execute(
            "insert into search select 'option', option, framework, replace(replace(option,'_',' '),'.',' ')||' '||choices from options"
        )
        db.commit()
        db.execute("vacuum")
    finally:
        db.close()


def connect(path: Path) -> sqlite3.Connection:
    """Read-only connection whose rows are addressed by column name."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db
