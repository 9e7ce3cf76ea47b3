"""The snapshot: sorted CSV files, UTF-8, ``\\n``, one file a table (``events`` and ``options`` one a framework)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from landed.errors import DataError
from landed.records.tables import TABLES, Record

#: Tables large enough that a person reviews them framework by framework.
SPLIT = ("events", "options", "problems", "offers", "release_options")
MANIFEST = "MANIFEST.json"
SNAPSHOT = Path(__file__).parent.parent / "snapshot"


def ordered(rows: Iterable[Record]) -> list[Record]:
    """Rows of one table in the order of its key, then of all columns; duplicates dropped."""
    unique = list(set(rows))
    if not unique:
        return []
    key = attrgetter(*unique[0].KEY) if len(unique[0].KEY) > 1 else attrgetter(unique[0].KEY[0])
    unique.sort(key=msgspec.structs.astuple)
    unique.sort(key=key)  # stable: the columns decide among equal keys
    return unique


def to_csv(table: str, rows: Sequence[Record]) -> str:
    """CSV text with a header, rows as given."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(TABLES[table].__struct_fields__)
    writer.writerows(msgspec.structs.astuple(r) for r in rows)
    return out.getvalue()


def write(folder: Path, tables: dict[str, list[Record]]) -> dict[str, str]:
    """Write the snapshot; returns path to sha256 of every file. Old files of the same tables go."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for table, rows in sorted(tables.items()):
        rows = ordered(rows)
        if table in SPLIT:
            groups: dict[str, list[Record]] = {}
            for row in rows:
                groups.setdefault(row.framework, []).append(row)  # type: ignore[union-attr]
            for name, group in groups.items():
                files[f"{table}/{name}.csv"] = to_csv(table, group)
        else:
            files[f"{table}.csv"] = to_csv(table, rows)
    for old in [*folder.glob("*.csv"), *folder.glob("*/*.csv")]:
        if str(old.relative_to(folder)) not in files:
            old.unlink()
    digests = {}
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        data = text.encode()
        digests[name] = hashlib.sha256(data).hexdigest()
        if not target.exists() or target.read_bytes() != data:
            target.write_bytes(data)
    manifest = json.dumps({"files": digests}, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(manifest, "utf-8")
    return digests


def read(folder: Path, table: str) -> list[Record]:
    """Rows of one table. Raises DataError naming file and line where a row is not what its schema says."""
    kind = TABLES[table]
    paths = sorted((folder / table).glob("*.csv")) if table in SPLIT else [folder / f"{table}.csv"]
    out: list[Record] = []
    for path in paths:
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as f:
            reader = csv.reader(f)
            header = next(reader, [])
            if tuple(header) != kind.__struct_fields__:
                raise DataError(f"{path}: columns are {header}", mend="write the snapshot again: landed replay")
            for row in reader:
                try:
                    out.append(msgspec.convert(dict(zip(header, row, strict=True)), kind))
                except (msgspec.ValidationError, ValueError) as e:
                    raise DataError(f"{path}:{reader.line_num}: {e}", mend="write the snapshot again: landed replay") from None
    return out


def check(folder: Path) -> list[str]:
    """Files that differ from the manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return [f"{path}: missing"]
    digests = json.loads(path.read_text("utf-8"))["files"]
    out = []
    for name, want in sorted(digests.items()):
        file = folder / name
        if not file.exists():
            out.append(f"{file}: missing")
        elif hashlib.sha256(file.read_bytes()).hexdigest() != want:
            out.append(f"{file}: changed by hand (its sha256 is not the manifest's)")
    return out
