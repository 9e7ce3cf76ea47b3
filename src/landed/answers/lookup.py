"""Find what a person means, and what is known of it. Everything is read from the compiled tables."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

import msgspec

from landed.answers.names import fold, near
from landed.errors import UsageError
from landed.records.tables import TIERS

_ARXIV = re.compile(r"(\d{4}\.\d{4,5})(v\d+)?")
Row = dict[str, str]


class Meant(msgspec.Struct):
    """Methods that a name speaks of, and how it was understood."""

    methods: list[str]
    how: str


def rows(db: sqlite3.Connection, sql: str, *values: str) -> list[Row]:
    return [dict(r) for r in db.execute(sql, values)]


def resolve(db: sqlite3.Connection, name: str) -> Meant:
    """Methods that ``name`` means: slug, name, alias, composition, arXiv number, option. UsageError with near misses."""
    wanted = fold(name)
    methods = rows(db, "select slug, name, aliases, source, parts from methods")
    known: dict[str, set[str]] = {}
    for m in methods:
        for n in (m["slug"], m["name"], *filter(None, m["aliases"].split("; "))):
            known.setdefault(fold(n), set()).add(m["slug"])
    exact = next((m for m in methods if fold(m["slug"]) == wanted), None)
    if exact is None and wanted in known:
        found = sorted(known[wanted])
        exact = next((m for m in methods if m["slug"] in found), None) if len(found) == 1 else None
        if exact is None:
            return Meant(found, f"{name!r} is a name of {len(found)} methods")
    if exact is not None:
        parts = [p for p in exact["parts"].split() if p]
        if parts:
            return Meant([exact["slug"], *parts], f"{exact['name']} is a composition of {len(parts)} methods")
        return Meant([exact["slug"]], exact["name"])
    number = _ARXIV.search(name)
    if number:
        found = [m["slug"] for m in methods if number[1] in m["source"].split("; ")]
        if found:
            return Meant(found, f"arXiv {number[1]}")
        raise UsageError(f"no method of the catalog has arXiv {number[1]} as its source", mend="landed show METHOD names sources")
    by_option = _of_option(db, name)
    if by_option:
        return Meant(by_option, f"option {name}")
    words = " ".join(f'"{w}"' for w in re.findall(r"\w+", name))
    hits = (
        rows(db, "select name from search where search match ? and kind='method' order by rank limit 5", words) if words else []
    )
    names = (
        [m["slug"] for m in methods] + [m["name"] for m in methods] + [a for m in methods for a in m["aliases"].split("; ") if a]
    )
    mend = near(name, names)
    if hits and mend.startswith("known"):
        mend = f"did you mean {', '.join(h['name'] for h in hits)}?"
    raise UsageError(f"no method or option {name!r}", mend=mend)


def _of_option(db: sqlite3.Connection, name: str) -> list[str]:
    """Methods mapped to an option written in any of its forms, with or without a value."""
    option, _, value = name.strip().partition("=")
    if not value and " " in option:
        option, _, value = option.partition(" ")
    wanted, leaf = fold(option), fold(re.split(r"[.\s]", option)[-1])
    found: dict[int, set[str]] = {}
    for r in db.execute("select distinct method, option, value, head_option from landings"):
        for o in (r["option"], r["head_option"].partition("=")[0]):
            if not o or (value and value not in (r["value"], r["head_option"].partition("=")[2])):
                continue
            rank = 0 if fold(o) == wanted else 1 if fold(re.split(r"\.", o)[-1]) == leaf else None
            if rank is not None:
                found.setdefault(rank, set()).add(r["method"])
    if not found and not value:
        for r in db.execute("select distinct method from landings where lower(value)=?", (option.lower(),)):
            found.setdefault(2, set()).add(r["method"])
    return sorted(found[min(found)]) if found else []


def framework_names(db: sqlite3.Connection) -> list[str]:
    return [r["framework"] for r in db.execute("select distinct framework from frameworks order by framework")]


def check_framework(db: sqlite3.Connection, name: str) -> str:
    """The framework's slug; UsageError with near misses."""
    if not name:
        return ""
    base, eq, _ = name.partition("==")
    names = framework_names(db)
    found = next((n for n in names if fold(n) == fold(base)), None)
    if found is None:
        raise UsageError(f"no framework {base!r}", mend=near(base, names))
    if eq:
        raise UsageError(
            f"{name}: this command answers for main branches", mend=f"ask --framework {found}; can and diff know versions"
        )
    return found


def rank(row: Row) -> tuple[int, int, str]:
    """Best route first: offered at the head, higher tier, older."""
    tier = row["head_tier"] or row["tier"]
    return (bool(row["removed_commit"]), TIERS.index(tier) if tier in TIERS else 9, row["committed_at"])


def routes(db: sqlite3.Connection, method: str, framework: str = "") -> dict[str, list[Row]]:
    """Framework to the routes of a method, best first."""
    sql = (
        'select l.*, r.paste, r."default" as option_default, r.note, r.decided_by, w.url from landings l'
        " left join routes r on r.framework=l.framework and r.repo=l.repo and r.method=l.method and r.option=l.option and r.value=l.value"
        " left join frameworks w on w.framework=l.framework and w.repo=l.repo where l.method=?"
    )
    out: dict[str, list[Row]] = {}
    for row in rows(db, sql, method):
        if not framework or row["framework"] == framework:
            out.setdefault(row["framework"], []).append(row)
    for found in out.values():
        found.sort(key=rank)
    return out


def since(row: Row) -> str:
    """Day of a landing, with ``≤`` where it is an upper bound."""
    return ("≤" if row["bound"] == "upper" else "") + row["committed_at"][:10]


def written(row: Row) -> str:
    """Option and value as they are now, or as they were last."""
    return row["head_option"] or row["option"] + (f"={row['value']}" if row["value"] else "")


def answer(db: sqlite3.Connection, method: str, frameworks: Iterable[str], *, all_routes: bool = False) -> list[Row]:
    """One row a framework (or a route): yes, removed or no, and everything a person needs to use it."""
    found = routes(db, method)
    out: list[Row] = []
    for name in frameworks:
        mine = found.get(name, [])
        if not mine:
            out.append({"method": method, "framework": name, "answer": "no"})
            continue
        first = min(mine, key=lambda r: r["committed_at"])
        for row in mine if all_routes else mine[:1]:
            note = row["note"] or ""
            if not all_routes and first is not row and first["committed_at"] < row["committed_at"]:
                note = f"first {since(first)} as {first['tier'].replace('_', ' ')} {written(first)}" + (
                    f"; {note}" if note else ""
                )
            out.append(
                {
                    "method": method, "framework": name, "answer": "removed" if row["removed_commit"] else "yes",
                    "option": written(row), "since": since(row), "release": row["release"], "commit": row["commit"],
                    "tier": (row["head_tier"] or row["tier"]).replace("_", " "), "condition": row["condition"],
                    "write": row["paste"] or "", "default": row["option_default"] or "", "until": row["removed_at"][:10],
                    "bound_reason": row["bound_reason"], "path": row["path"], "line": row["line"], "repo": row["repo"],
                    "pr": row["pr"], "note": note,
                }
            )  # fmt: skip
    return out


def defects(db: sqlite3.Connection, method: str, framework: str, version: str = "") -> list[Row]:
    """Known defects of a method's options: those of one release, or those still open on the main line."""
    return [
        r
        for r in rows(db, "select * from defects where framework=? order by repo, defect", framework)
        if method in r["methods"].split() and (version in r["releases"].split() if version else not r["until"] and r["since"])
    ]
