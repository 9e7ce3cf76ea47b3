"""Commands that make the snapshot: replay, sync, validate, package."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from pathlib import Path

import msgspec

from landed.answers.names import near
from landed.errors import DataError, LandedError, SourceError, UsageError
from landed.fields.load import FIELDS, Field, Framework, defects, load
from landed.landings.run import Done, Job, catalog_tables, run_all
from landed.records.tables import TABLES, Record, Run, Undecided
from landed.store import text


def cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "landed"


def store_home() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "landed" / "repos"


def _field(a: argparse.Namespace) -> Field:
    return load(a.field, Path(a.fields) if a.fields else FIELDS)


def _chosen(field: Field, names: list[str]) -> list[Framework]:
    for n in names:
        if n not in field.frameworks:
            raise UsageError(f"no framework {n!r}", mend=near(n, field.frameworks))
    return [field.frameworks[n] for n in (names or sorted(field.frameworks))]


def _given(a: argparse.Namespace, field: Field) -> dict[str, str]:
    known = [r.name for f in field.frameworks.values() for r in f.repos]
    out = {}
    for item in a.repo:
        name, eq, place = item.partition("=")
        if not eq or not place:
            raise UsageError(f"--repo {item!r} has no place", mend="write --repo NAME=PATH")
        if name not in known:
            raise UsageError(f"--repo: no repository {name!r}", mend=near(name, known))
        out[name] = place
    return out


def jobs(a: argparse.Namespace, field: Field) -> list[Job]:
    """One job a repository of the chosen frameworks, at the given place or in the store."""
    given = _given(a, field)
    store = Path(a.store) if a.store else store_home()
    root = a.fields or str(FIELDS)
    cache = "" if getattr(a, "no_cache", False) else str(Path(a.cache) if a.cache else cache_home() / "facts")
    out = []
    for framework in _chosen(field, a.frameworks):
        for repo in framework.repos:
            path = given.get(repo.name) or str(store / f"{repo.name}.git")
            if not Path(path).exists():
                raise SourceError(
                    f"repository {repo.name} of {framework.framework} is not at {path}",
                    mend=f"landed sync {framework.framework}, or give --repo {repo.name}=PATH",
                )
            file = str(Path(cache) / f"{field.name}-{repo.name}.sqlite") if cache else ""
            out.append(Job(field.name, root, framework.framework, repo.name, path, file))
    return out


def _progress(done: Done) -> None:
    if sys.stderr.isatty():
        run = done.run
        print(
            f"{run.repo}: {run.commits} commits, {run.events} events, {run.landings} landings, {done.seconds:.1f} s",
            file=sys.stderr,
        )


def replay(a: argparse.Namespace) -> int:
    """Replay repositories and write the snapshot."""
    enabled = gc.isenabled()
    gc.disable()  # many small rows that live until the end: collecting them is wasted
    try:
        return _replay(a)
    finally:
        if enabled:
            gc.enable()


def _replay(a: argparse.Namespace) -> int:
    begin = time.perf_counter()
    field = _field(a)
    wrong = defects(field)
    if wrong and not a.allow_unmapped:
        raise DataError("the field's data is not whole:\n  " + "\n  ".join(wrong), mend="landed validate lists all of it")
    out = Path(a.out) if a.out else text.SNAPSHOT
    todo = jobs(a, field)
    result = run_all(todo, workers=a.workers or None, progress=_progress)
    report_undecided(result.undecided, field)
    if result.undecided and not a.allow_unmapped:
        print("landed: nothing written; --allow-unmapped writes all the same", file=sys.stderr)
        return 1
    tables: dict[str, list[Record]] = {**result.tables, **catalog_tables(field)}
    replayed = {j.framework for j in todo}
    if replayed != set(field.frameworks) and (out / text.MANIFEST).exists():
        for table in result.tables:  # frameworks not replayed now keep their rows
            tables[table] += [r for r in text.read(out, table) if r.framework not in replayed]  # type: ignore[union-attr]
    text.write(out, tables)
    runs = [d.run for d in result.done]
    _print_runs(runs)
    if sys.stderr.isatty():
        print(f"written to {out} in {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    return 0


def _print_runs(runs: list[Run]) -> None:
    from landed.cli.output import emit

    columns = ["framework", "repo", "head", "commits", "blobs", "declaring_blobs", "options", "events", "landings", "unreadable"]
    rows = [{c: getattr(r, c)[:12] if c == "head" else getattr(r, c) for c in columns} for r in runs]
    emit(rows, columns, "table")


def report_undecided(undecided: list[Undecided], field: Field) -> None:
    """Where each undecided option is and how to decide it."""
    for u in undecided:
        name = u.option + (f"={u.value}" if u.value else "")
        print(f"{u.framework}: undecided option {name}", file=sys.stderr)
        print(f"  at {u.repo}@{u.commit[:12]} {u.path}:{u.line} (rule {u.rule})", file=sys.stderr)
    if undecided:
        u = undecided[0]
        name = u.option + (f"={u.value}" if u.value else "")
        print(
            f"landed: {len(undecided)} undecided. In fields/{field.name}/frameworks/{u.framework}.yaml add under methods:\n"
            f'    - {{method: SLUG, options: ["{name}"]}}\n  or under set_aside:\n'
            f'    - {{options: ["{name}"], reason: why it is no method}}',
            file=sys.stderr,
        )


def validate(a: argparse.Namespace) -> int:
    """Check data and snapshot. Where the repositories are at hand they are replayed for undecided options."""
    found: list[str] = []
    try:
        field = _field(a)
    except DataError as e:
        print(f"landed: {e}", file=sys.stderr)
        return 1
    found += defects(field)
    snapshot = Path(a.snapshot) if a.snapshot else text.SNAPSHOT
    found += text.check(snapshot)
    tables: dict[str, list[Record]] = {}
    try:
        for table in TABLES:
            tables[table] = text.read(snapshot, table)
    except DataError as e:
        found.append(str(e))
    undecided: list[Undecided] = list(tables.get("undecided", ()))  # type: ignore[arg-type]
    where = "as the snapshot was made"
    try:
        todo = jobs(a, field)
    except SourceError:
        if a.replay or a.repo:
            raise
    else:
        undecided = run_all(todo, workers=a.workers or None, progress=_progress).undecided
        where = "in the repositories"
    report_undecided(undecided, field)
    for line in found:
        print(line, file=sys.stderr)
    if found or undecided:
        print(f"landed: {len(found)} defects, {len(undecided)} undecided options", file=sys.stderr)
        return 1
    rows = ", ".join(f"{len(r)} {t}" for t, r in tables.items())
    print(f"{len(field.frameworks)} frameworks, {len(field.methods)} methods, {len(field.failures)} failures; snapshot: {rows}")
    print(f"no defect, no undecided option ({where})")
    return 0


def sync(a: argparse.Namespace) -> int:
    """Make or update a bare partial clone of every repository."""
    from landed.sources.sync import sync_one

    field = _field(a)
    given = _given(a, field)
    store = Path(a.store) if a.store else store_home()
    failed = 0
    for framework in _chosen(field, a.frameworks):
        for repo in framework.repos:
            try:
                head, fresh = sync_one(given.get(repo.name) or repo.url, store / f"{repo.name}.git")
                print(f"{repo.name}: {'cloned' if fresh else 'updated'}, head {head[:12]}")
            except LandedError as e:
                failed += 1
                print(f"landed: {repo.name}: {e}", file=sys.stderr)
    return SourceError.code if failed else 0


def package(a: argparse.Namespace) -> int:
    """Read a released package's options and hold the snapshot against them."""
    from landed.answers.package import compare, read_package
    from landed.cli.output import emit

    field = load(a.field, Path(a.fields) if a.fields else FIELDS)
    made = read_package(field, a.name, a.framework)
    against, rows = compare(made, Path(a.snapshot) if a.snapshot else text.SNAPSHOT)
    if a.format == "table":
        print(made.summary(against, rows))
    emit([msgspec.structs.asdict(r) for r in rows], list(rows[0].__struct_fields__) if rows else ["option"], a.format)
    return 0
