"""Commands about versions: ``releases`` and ``diff``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from landed.answers import lookup
from landed.answers import releases as versions
from landed.answers.lookup import rows
from landed.cli.facts import cut, opened
from landed.cli.output import emit


def releases(a: argparse.Namespace) -> int:
    """Releases by framework and date, or the first one that offers a method."""
    db = opened(a)
    framework = lookup.check_framework(db, a.framework)
    if a.method:
        slugs = lookup.resolve(db, a.method).methods
        found = []
        for slug in slugs:
            for name in [framework] if framework else lookup.framework_names(db):
                mine = rows(
                    db, "select * from landings where method=? and framework=? and release<>'' order by released_at", slug, name
                )
                landed = rows(db, "select * from landings where method=? and framework=? order by committed_at", slug, name)
                if landed:
                    first = mine[0] if mine else {}
                    found.append(
                        {
                            "method": slug, "framework": name, "landed": lookup.since(landed[0]), "release": first.get("release", ""),
                            "released": first.get("released_at", "")[:10],
                        }
                    )  # fmt: skip
        emit(found, ["method", "framework", "landed", "release", "released"], a.format)
        return 0
    found = [
        r
        for r in rows(db, "select * from releases order by framework, repo, position")
        if not framework or r["framework"] == framework
    ]
    if a.format == "table":
        for r in found:
            r["released"], r["commit"] = r["released_at"][:10], r["commit"][:10]
        columns = ["framework", "version", "released", "commit", "prerelease", "main_line", "options", "methods"]
        emit(found, columns, "table")
        return 0
    from landed.records.tables import Release

    emit(found, Release.__struct_fields__, a.format)
    return 0


def diff(a: argparse.Namespace) -> int:
    """What is different in the second version."""
    db = opened(a)
    before, after = versions.find(db, a.before), versions.find(db, a.after)
    found = versions.diff(db, before, after)
    if a.methods:
        found = [r for r in found if r["method"]]
    if a.config:
        told = versions.touches(Path(a.config))
        found = [r for r in found if told(r)]
    if a.format == "table":
        counts = Counter(r["change"] for r in found)
        print(f"{before} to {after}: " + (", ".join(f"{n} {c}" for c, n in counts.items()) or "nothing changes"), file=sys.stderr)
        cut(found, ("option", "before", "after"), 60)
    emit(found, ["change", "option", "before", "after", "method", *(["path"] if a.format != "table" else [])], a.format)
    return 0
