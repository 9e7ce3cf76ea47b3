"""Rows to text in the five formats."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Mapping, Sequence


def emit(rows: Sequence[Mapping[str, object]], columns: Sequence[str], form: str) -> None:
    """Print rows; ``table`` and ``md`` are for people, the rest is a contract."""
    out = sys.stdout
    if form == "json":
        json.dump([{c: r.get(c, "") for c in columns} for r in rows], out, ensure_ascii=False, indent=1)
        out.write("\n")
    elif form == "jsonl":
        for r in rows:
            out.write(json.dumps({c: r.get(c, "") for c in columns}, ensure_ascii=False) + "\n")
    elif form == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_cell(r.get(c, "")) for c in columns] for r in rows])
    elif form == "md":
        out.write("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns) + "\n")
        for r in rows:
            out.write("| " + " | ".join(_cell(r.get(c, "")).replace("|", "\\|").replace("\n", " ") for c in columns) + " |\n")
    else:
        _table(rows, columns)


def _cell(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    from tabulate import tabulate

    if not rows:
        print("no rows")
        return
    body = [[_cell(r.get(c, "")) for c in columns] for r in rows]
    limit = None
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        used = [max(len(str(c)), *(len(b[i]) for b in body)) + 2 for i, c in enumerate(columns)]
        if sum(used) > width:
            widest = max(range(len(columns)), key=lambda i: used[i])
            limit = [None if i != widest else max(20, width - sum(used) + used[widest]) for i in range(len(columns))]
    print(tabulate(body, headers=list(columns), tablefmt="simple", disable_numparse=True, maxcolwidths=limit))
