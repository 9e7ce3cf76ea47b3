"""Commands that print facts from the compiled tables."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

from landed.answers import lookup
from landed.answers.lookup import Row, rows
from landed.answers.names import fold, near
from landed.cli.output import emit
from landed.errors import UsageError
from landed.store import sqlite

_SHIPPED = Path(__file__).parent.parent / "snapshot"
_SHORT = {"conditional_default": "cond. default"}


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "landed"


def opened(a: argparse.Namespace) -> sqlite3.Connection:
    return sqlite.connect(sqlite.compiled(Path(a.snapshot) if a.snapshot else _SHIPPED, _cache()))


def can(a: argparse.Namespace) -> int:
    """Answer for every framework whether it offers a method."""
    db = opened(a)
    meant = lookup.resolve(db, " ".join(a.method))
    if "==" in a.framework:
        from landed.answers import releases

        version = releases.find(db, a.framework)
        wanted, a.framework = version.framework, version.framework
    else:
        version, wanted = None, lookup.check_framework(db, a.framework)
    frameworks = [wanted] if wanted else lookup.framework_names(db)
    full = bool(wanted) or a.format != "table"
    if version is not None and version.position >= 0:
        found = [r for m in meant.methods for r in releases.offers(db, m, version)]
    else:
        found = [r for m in meant.methods for r in lookup.answer(db, m, frameworks, all_routes=full)]
    parts = len(meant.methods) > 1
    if parts and a.format == "table":
        own = meant.methods[0]
        if not any(r["answer"] != "no" for r in found if r["method"] == own):
            found = [r for r in found if r["method"] != own]
    for r in found:
        at = version.version if version is not None and version.position >= 0 else ""
        known = lookup.defects(db, r["method"], r["framework"].partition("==")[0], at) if r["answer"] != "no" or at else []
        r["defects"] = "; ".join(
            f"{d['options']}: {d['summary']}" for d in known if d["kind"] != "not read" or r["answer"] != "yes"
        )
    columns = [
        "framework",
        "answer",
        "option",
        "since",
        "release",
        "commit",
        "tier",
        "condition",
        "write",
        "until",
        "defects",
        "note",
    ]
    if version is not None:
        columns.insert(3, "default")
    if a.format == "table":
        methods = {r["slug"]: r for r in rows(db, "select * from methods")}
        for slug in dict.fromkeys(r["method"] for r in found):
            m = methods[slug]
            print(
                f"{m['name']} ({slug})"
                + (f"  {m['source']}" if m["source"] else "")
                + (f"  public {m['first_public']}" if m["first_public"] else "")
            )
            mine = [dict(r) for r in found if r["method"] == slug]
            for r in mine:
                r["commit"] = r.get("commit", "")[:10]
            shown = [c for c in columns if c in ("framework", "answer") or any(r.get(c) for r in mine)]
            cut(mine, ("condition", "note"), 60)
            cut(mine, ("defects",), 100)
            emit(mine, shown, "table")
            print()
        if parts:
            print(meant.how)
        return 0
    emit(found, ["method", *dict.fromkeys([*columns, "default"]), "bound_reason", "repo", "path", "line", "pr"], a.format)
    return 0


def cut(found: list[Row], columns: tuple[str, ...], width: int) -> None:
    for r in found:
        for c in columns:
            if len(r.get(c, "")) > width:
                r[c] = r[c][: width - 1] + "…"


def matrix(a: argparse.Namespace) -> int:
    """Methods by frameworks: tier and date of the best route."""
    db = opened(a)
    frameworks = lookup.framework_names(db)
    where = ""
    if a.failure:
        known = {r["slug"]: r for r in rows(db, "select slug, name, name_zh, symptoms from failures")}
        slug = next((s for s, f in known.items() if fold(a.failure) in (fold(s), fold(f["name"]), fold(f["name_zh"]))), "")
        if not slug:
            raise UsageError(f"no failure {a.failure!r}", mend=near(a.failure, known))
        where = slug
    best: dict[tuple[str, str], Row] = {}
    for row in rows(db, "select * from landings"):
        key = (row["method"], row["framework"])
        if key not in best or lookup.rank(row) < lookup.rank(best[key]):
            best[key] = row
    out: list[dict[str, object]] = []
    machine = a.format not in ("table", "md")
    for m in rows(db, "select slug, failures from methods order by slug"):
        if where and where not in m["failures"].split():
            continue
        cells: dict[str, object] = {}
        count = 0
        for f in frameworks:
            cell = best.get((m["slug"], f))
            if cell is None:
                cells[f] = ""
                continue
            count += not cell["removed_commit"]
            tier = cell["head_tier"] or cell["tier"]
            day = lookup.since(cell)
            cells[f] = f"removed {cell['removed_at'][:10]}" if cell["removed_commit"] else f"{_SHORT.get(tier, tier)} {day}"
            if machine:
                cells[f] = {
                    "tier": "" if cell["removed_commit"] else tier,
                    "since": cell["committed_at"],
                    "bound": cell["bound"],
                    "removed_at": cell["removed_at"],
                }
        if count or a.all or any(cells.values()):
            out.append({"method": m["slug"], "frameworks": count, **cells})
    out.sort(key=lambda r: (-int(str(r["frameworks"])), str(r["method"])))
    emit(
        [{**r, "frameworks": str(r["frameworks"])} if not machine else r for r in out],
        ["method", "frameworks", *frameworks],
        a.format,
    )
    return 0


def _method_slugs(db: sqlite3.Connection, name: str) -> list[str]:
    return lookup.resolve(db, name).methods if name else []


def landings(a: argparse.Namespace) -> int:
    """Landings, oldest first."""
    db = opened(a)
    framework = lookup.check_framework(db, a.framework)
    slugs = _method_slugs(db, a.method)
    found = [
        r
        for r in rows(db, "select * from landings order by committed_at, framework, method, option, value")
        if (not framework or r["framework"] == framework)
        and (not slugs or r["method"] in slugs)
        and (not a.since or r["committed_at"] >= a.since)
        and (not a.until or r["committed_at"] < a.until)
        and (not a.bound or r["bound"] == a.bound)
    ]
    if a.format == "table":
        shown = [
            {
                "date": lookup.since(r), "framework": r["framework"], "method": r["method"],
                "option": r["option"] + (f"={r['value']}" if r["value"] else ""), "tier": r["tier"].replace("_", " "),
                "commit": r["commit"][:10], "lag": r["lag_days"], "removed": r["removed_at"][:10],
            }
            for r in found
        ]  # fmt: skip
        emit(shown, ["date", "framework", "method", "option", "tier", "commit", "lag", "removed"], "table")
        return 0
    from landed.records.tables import Landing

    emit(found, Landing.__struct_fields__, a.format)
    return 0


def log(a: argparse.Namespace) -> int:
    """Events, newest first."""
    db = opened(a)
    framework = lookup.check_framework(db, a.framework)
    slugs = _method_slugs(db, a.method)
    found = []
    limit = a.limit or (40 if a.format == "table" and sys.stdout.isatty() else 0)
    for r in rows(db, "select * from events order by committed_at desc, framework, repo, option, change, after"):
        if framework and r["framework"] != framework:
            continue
        if slugs and not set(slugs) & set(r["method"].split()):
            continue
        if a.option and not (fnmatch.fnmatchcase(r["option"], a.option) or fold(a.option) == fold(r["option"])):
            continue
        if (a.since and r["committed_at"] < a.since) or (a.until and r["committed_at"] >= a.until):
            continue
        if a.change and r["change"] != a.change:
            continue
        found.append(r)
        if limit and len(found) == limit:
            break
    if a.format == "table":
        shown = [
            {
                "date": lookup.since(r), "framework": r["framework"], "change": r["change"], "option": r["option"],
                "before": r["before"], "after": r["after"], "commit": r["commit"][:10], "method": r["method"],
            }
            for r in found
        ]  # fmt: skip
        cut(shown, ("option", "before", "after"), 50)
        emit(shown, ["date", "framework", "change", "option", "before", "after", "commit", "method"], "table")
        return 0
    from landed.records.tables import Event

    emit(found, Event.__struct_fields__, a.format)
    return 0


def show(a: argparse.Namespace) -> int:
    """Everything known of a method, an option or a framework."""
    db = opened(a)
    name = " ".join(a.name)
    frameworks = {fold(f): f for f in lookup.framework_names(db)}
    if fold(name) in frameworks:
        return _show_framework(db, frameworks[fold(name)], a.format)
    # a folder named like a method (verl-recipe's dapo) does not hide the method
    options = rows(db, "select * from options where option=? order by framework, path", name)
    if options and not rows(db, "select 1 from methods where slug=?", name.strip().lower()):
        return _show_option(db, name, options, a.format)
    meant = lookup.resolve(db, name)
    events = []
    for slug in meant.methods[:1] if len(meant.methods) == 1 else meant.methods:
        events += _show_method(db, slug, a.format)
    if a.format != "table":
        from landed.records.tables import Event

        emit(events, Event.__struct_fields__, a.format)
    return 0


def _show_method(db: sqlite3.Connection, slug: str, form: str) -> list[Row]:
    events = [r for r in rows(db, "select * from events where method<>'' order by committed_at") if slug in r["method"].split()]
    if form != "table":
        return events
    m = rows(db, "select * from methods where slug=?", slug)[0]
    width = min(shutil.get_terminal_size().columns, 100)
    import textwrap

    print(f"{m['name']} ({slug})")
    for label, value in (
        ("source", m["source"]), ("first public", f"{m['first_public']} ({m['first_public_basis']})" if m["first_public"] else "unknown"),
        ("form", m["form"]), ("failures", m["failures"]), ("parts", m["parts"]), ("also called", m["aliases"]), ("formula", m["formula"]),
        ("note", m["note"]),
    ):  # fmt: skip
        if value:
            print(textwrap.fill(f"{label:13} {value}", width, subsequent_indent=" " * 14))
    print(textwrap.fill(m["description"], width, initial_indent="  ", subsequent_indent="  "))
    found = lookup.routes(db, slug)
    for framework, mine in sorted(found.items()):
        print(f"\n{framework}")
        for d in rows(db, "select * from defects where framework=? order by since", framework):
            if slug in d["methods"].split():
                window = f"{d['since'][:10]} to {d['until'][:10] or 'now'}" if d["since"] else "in releases only"
                print(
                    textwrap.fill(f"  defect      {d['options']}: {d['summary']} ({window})", width, subsequent_indent=" " * 14)
                )
                for label, value in (("releases", d["releases"]), ("mend", d["mend"]), ("evidence", d["evidence"])):
                    if value:
                        print(textwrap.fill(f"              {label}: {value}", width, subsequent_indent=" " * 16))
        for r in mine:
            head = f"  {lookup.since(r):11} {lookup.written(r)}  [{(r['head_tier'] or r['tier']).replace('_', ' ')}]"
            print(head + (f"  until {r['removed_at'][:10]}" if r["removed_commit"] else ""))
            where = f"{r['url']}/blob/{r['commit']}/{r['path']}#L{r['line']}"
            print(f"              {where}")
            if r["release"]:
                print(f"              in releases since {r['release']} ({r['released_at'][:10]})")
            if r["declared_at"] != r["committed_at"]:
                print(f"              declared {r['declared_at'][:10]}, read since {r['wired_at'][:10]}")
            for label, value in (
                ("bound", r["bound_reason"]),
                ("condition", r["condition"]),
                ("write", r["paste"]),
                ("note", r["note"]),
            ):
                if value:
                    print(textwrap.fill(f"              {label}: {value}", width + 14, subsequent_indent=" " * 16))
    print("\ntimeline")
    for e in events:
        what = f"{e['before']} → {e['after']}" if e["before"] and e["after"] else (e["after"] or e["before"])
        print(f"  {lookup.since(e):11} {e['framework']:10} {e['change']:16} {e['option']}  {what}  {e['commit'][:10]}")
    return events


def _show_option(db: sqlite3.Connection, name: str, options: list[Row], form: str) -> int:
    events = rows(db, "select * from events where option=? order by committed_at", name)
    if form != "table":
        from landed.records.tables import Event

        emit(events, Event.__struct_fields__, form)
        return 0
    for o in options:
        print(f"{o['framework']}: {o['option']}  ({o['repo']} {o['path']}:{o['line']})")
        for label in ("type", "default", "choices", "tier", "method", "wired"):
            if o[label]:
                print(f"  {label:8} {o[label]}")
        print(f"  since    {o['since'][:10]} {o['since_commit'][:10]}")
    print("history")
    for e in events:
        what = f"{e['before']} → {e['after']}" if e["before"] and e["after"] else (e["after"] or e["before"])
        print(f"  {lookup.since(e):11} {e['framework']:10} {e['change']:16} {what}  {e['commit'][:10]}")
    return 0


def _show_framework(db: sqlite3.Connection, name: str, form: str) -> int:
    mine: dict[str, Row] = {}
    for r in rows(db, "select * from landings where framework=?", name):
        if r["method"] not in mine or lookup.rank(r) < lookup.rank(mine[r["method"]]):
            mine[r["method"]] = r
    out = [
        {
            "method": m, "answer": "removed" if r["removed_commit"] else "yes", "option": lookup.written(r), "since": lookup.since(r),
            "tier": (r["head_tier"] or r["tier"]).replace("_", " "), "commit": r["commit"] if form != "table" else r["commit"][:10],
        }
        for m, r in sorted(mine.items())
    ]  # fmt: skip
    if form == "table":
        for run in rows(db, "select * from runs where framework=?", name):
            print(
                f"{run['repo']}  {run['url']}  read to {run['head'][:12]} ({run['head_at'][:10]}), {run['commits']} commits, {run['options']} options"
            )
        print()
    emit(out, ["method", "answer", "option", "since", "tier", "commit"], form)
    return 0


def export(a: argparse.Namespace) -> int:
    """A whole table; its schema; or the compiled file."""
    from landed.records.tables import TABLES, schema

    if a.schema:
        from landed.fields.load import SCHEMAS

        kinds = {**TABLES, **SCHEMAS}
        if a.schema not in kinds:
            raise UsageError(f"no schema {a.schema!r}", mend=near(a.schema, kinds))
        json.dump(schema(kinds[a.schema]), sys.stdout, indent=1, sort_keys=True)
        print()
        return 0
    if a.sqlite:
        sqlite.build(Path(a.snapshot) if a.snapshot else _SHIPPED, Path(a.sqlite))
        return 0
    if a.table not in TABLES:
        raise UsageError(f"no table {a.table!r}" if a.table else "which table?", mend=f"tables: {', '.join(TABLES)}")
    db = opened(a)
    columns = TABLES[a.table].__struct_fields__
    emit(rows(db, f"select * from {a.table}"), columns, a.format)
    return 0
