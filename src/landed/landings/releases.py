"""Releases of one repository: each tag's own tree, read by the same rules.

The tags, ordered by the date of their commits, form a line of their own. The first release that offers a method is the first
one *whose tree* offers it: most tags sit on release branches with picked commits, so containing the landing is not enough.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TypeVar

import msgspec

from landed.fields.load import Field, Framework, Mapping
from landed.history.replay import History
from landed.landings.derive import Deriver
from landed.landings.paste import paste
from landed.landings.versions import is_prerelease, version_of
from landed.options.rules import Key
from landed.records.tables import Offer, Release, ReleaseOption
from landed.sources.git import Commit, iso

T = TypeVar("T", Offer, ReleaseOption)


class Releases:
    """The release line of a repository, derived as a history whose commits are the tags."""

    def __init__(self, field: Field, framework: Framework, repo: str, history: History) -> None:
        self.framework, self.repo = framework, repo
        self.tags = history.releases.tags
        self.main_line = {c.sha for c in history.commits}
        commits = [Commit(t.commit, 1, t.committed, t.committed, "", []) for t in self.tags]
        line = History(
            self.tags[-1].commit if self.tags else "", commits, history.releases.deltas, [], 0, 0, [], history.releases
        )
        self.deriver = Deriver(field, framework, repo, line)
        self.versions = [version_of(t.name) for t in self.tags]

    def first(self, m: Mapping) -> tuple[str, str]:
        """Version and date of the first full release whose tree offers a mapping's method."""
        _, offered, _ = self.deriver.spans(m)
        for a, b in offered:
            for n in range(a, min(b, len(self.tags))):
                if not is_prerelease(self.versions[n]):
                    return self.versions[n], iso(self.tags[n].committed)
        return "", ""

    def rows(self) -> tuple[list[Release], list[Offer], list[ReleaseOption]]:
        """Rows of the tables ``releases``, ``offers`` and ``release_options``."""
        offers = [(start, end, row) for m in self.deriver.mappings for start, end, row in self._offers(m)]
        options = [(start, end, row) for o in self.deriver.timeline.options() for start, end, row in self._options(o)]
        methods: list[set[str]] = [set() for _ in self.tags]
        for start, end, offer in offers:
            for n in range(start, end):
                methods[n].add(offer.method)
        declared = [0] * (len(self.tags) + 1)
        for start, end, _ in options:
            declared[start] += 1
            declared[end] -= 1
        counts = list(accumulate(declared))
        releases = [
            Release(
                self.framework.framework, self.repo, f"{n:04}", self.versions[n], t.name, t.commit, iso(t.committed),
                "yes" if is_prerelease(self.versions[n]) else "no", "yes" if t.commit in self.main_line else "no",
                str(counts[n]), str(len(methods[n])),
            )
            for n, t in enumerate(self.tags)
        ]  # fmt: skip
        return releases, [self._named(*x) for x in offers], [self._named(*x) for x in options]

    def _named(self, start: int, end: int, row: T) -> T:
        """A row with the version that it begins with, and the first one in which it is over."""
        return msgspec.structs.replace(row, since=self.versions[start], until=self.versions[end] if end < len(self.tags) else "")

    def _runs(self, edges: Iterable[int], row_at: Callable[[int], T | None]) -> list[tuple[int, int, T]]:
        """Releases with equal rows as one run. Rows can only change at ``edges``."""
        out: list[tuple[int, int, T]] = []
        ordered: list[int] = sorted({e for e in edges if e < len(self.tags)})
        for start, end in zip(ordered, [*ordered[1:], len(self.tags)], strict=True):
            row = row_at(start)
            if row is None:
                continue
            if out and out[-1][1] == start and out[-1][2] == row:
                out[-1] = (out[-1][0], end, row)
            else:
                out.append((start, end, row))
        return out

    def _edges(self, keys: Iterable[Key]) -> set[int]:
        return {e for k in keys for s in self.deriver.timeline.segments.get(k, ()) for e in (s.start, s.end)}

    def _offers(self, m: Mapping) -> list[tuple[int, int, Offer]]:
        d = self.deriver
        _, offered, parts = d.spans(m)
        newest = max(((spans[-1][0], k) for k, _, spans in parts), default=(0, ("", "")))[1]

        def row_at(n: int) -> Offer | None:
            at = next(((k, v) for k, v, spans in parts if any(a <= n < b for a, b in spans)), None)
            if at is None:
                return None
            key, value = at
            option, shown = d.timeline.at((key[0], ""), n), d.timeline.at(key, n)
            assert shown
            # a line written by hand is for the newest of the names
            line = m.paste if m.paste and key == newest else paste(self.framework.style, key[0], value, shown.type, m.on)
            return Offer(
                self.framework.framework, self.repo, m.method, key[0], value, d.tier_at(m, n), m.condition or m.default_if,
                option.default if option else "", shown.path, line, m.note, "", "",
            )  # fmt: skip

        edges = self._edges({k for key, _, _ in parts for k in (key, (key[0], ""))})
        return self._runs(edges | {e for _, _, spans in parts for span in spans for e in span}, row_at) if offered else []

    def _options(self, option: str) -> list[tuple[int, int, ReleaseOption]]:
        d = self.deriver
        keys = d.timeline.keys_of_option(option)
        wired = {k: d.wired(k) for k in keys}

        def row_at(n: int) -> ReleaseOption | None:
            alive = [(k, s) for k in keys if (s := d.timeline.at(k, n))]
            if not alive:
                return None
            key, shown = alive[0]
            values = [v for (_, v), _ in alive if v]
            methods = sorted({m for k, _ in alive for m in d.methods_of(k)})
            read = any(a <= n < b for a, b in wired[key])
            return ReleaseOption(
                self.framework.framework, self.repo, option, shown.type, shown.default,
                json.dumps(values, ensure_ascii=False) if values else "", shown.path, d.plain_tier(key, shown),
                " ".join(methods), "yes" if read else "no", "", "",
            )  # fmt: skip

        return self._runs(self._edges(keys) | {e for spans in wired.values() for span in spans for e in span}, row_at)
