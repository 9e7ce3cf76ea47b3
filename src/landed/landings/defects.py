"""Options that did not do what they say: entries of the framework's file, and what wiring finds by itself.

A window is where the option is declared, names of ``during`` hold and names of ``unless`` do not: read from the trees of the
main line and of every release, since a fix picked to a release branch has another commit there.
"""

from __future__ import annotations

from landed.fields.load import Defect, matches, split
from landed.history.timeline import END, Span, intersect, union
from landed.landings.derive import Deriver
from landed.landings.releases import Releases
from landed.options.rules import Key
from landed.records.tables import DefectRow
from landed.sources.git import iso


def without(spans: list[Span], gone: list[Span]) -> list[Span]:
    """``spans`` less ``gone``."""
    edges = [0, *(e for span in gone for e in span), END]
    return intersect(spans, [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b])


def window(d: Deriver, defect: Defect) -> list[Span]:
    """When an entry holds on one line of trees."""

    def offered(expressions: list[str]) -> list[Span]:
        return union(*(d.timeline.declared(k) for e in expressions for k, _ in d.keys(e)))

    spans = offered(defect.options)
    if defect.during:
        spans = intersect(spans, offered(defect.during))
    return without(spans, offered(defect.unless))


def not_read(d: Deriver, key: Key) -> list[Span]:
    """When a mapped option was declared and nothing read it."""
    return without(d.timeline.declared(key), d.wired(key))


def defects(main: Deriver, releases: Releases) -> list[DefectRow]:
    """Rows of the table ``defects``."""
    out = []
    first = main.framework.repos[0].name
    for defect in main.framework.defects:
        if (defect.repo or first) == main.repo:
            named = [k for e in defect.options for k in main.timeline.keys_of(split(e)[0]) if matches(e, *k)]
            methods = sorted({m for k in named for m in main.methods_of(k)})
            row = _row(main, releases, window(main, defect), window(releases.deriver, defect))
            if row:
                out.append(
                    DefectRow(
                        main.framework.framework, main.repo, defect.id, defect.kind, "; ".join(defect.options), " ".join(methods),
                        defect.summary, defect.mend, defect.evidence, *row, defect.decided_by,
                    )
                )  # fmt: skip
    for key in main.timeline.all_keys():
        methods = list(main.methods_of(key))
        # of values it cannot be told: the last branch of a comparison names none
        if not methods or key[1]:
            continue
        row = _row(main, releases, not_read(main, key), not_read(releases.deriver, key))
        if row:
            out.append(
                DefectRow(
                    main.framework.framework, main.repo, f"not-read:{key[0]}", "not read", key[0], " ".join(methods),
                    "declared, and no code outside declarations reads it", "", "", *row, "rule",
                )
            )  # fmt: skip
    return out


def _row(main: Deriver, releases: Releases, spans: list[Span], in_releases: list[Span]) -> tuple[str, str, str, str, str] | None:
    """Begin and end on the main line, and the releases concerned; None if there are none of either."""
    versions = [v for n, v in enumerate(releases.versions) if any(a <= n < b for a, b in in_releases)]
    if not spans and not versions:
        return None
    since = until = since_commit = until_commit = ""
    if spans:
        begin = main.history.commits[spans[0][0]]
        since, since_commit = iso(begin.committed), begin.sha
        if spans[-1][1] != END:
            end = main.history.commits[spans[-1][1]]
            until, until_commit = iso(end.committed), end.sha
    return since, since_commit, until, until_commit, " ".join(versions)
