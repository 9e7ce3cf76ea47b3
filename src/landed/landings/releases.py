"""Releases of one repository: each tag's own tree, read by the same rules.

The tags, ordered by the date of their commits, form a line of their own. The first release that offers a method is the first
one *whose tree* offers it: most tags sit on release branches with picked commits, so containing the landing is not enough.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from landed.fields.load import Field, Framework, Mapping
from landed.history.replay import History
from landed.landings.derive import Deriver
from landed.landings.paste import paste
from landed.landings.versions import is_prerelease, version_of
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
        offers, methods = self._offers()
        options = self._options()
        releases = [
            Release(
                self.framework.framework, self.repo, f"{n:04}", self.versions[n], t.name, t.commit, iso(t.committed),
                "yes" if is_prerelease(self.versions[n]) else "no", "yes" if t.commit in self.main_line else "no",
                str(len(options[n])), str(len(methods[n])),
            )
            for n, t in enumerate(self.tags)
        ]  # fmt: skip
        made = [
            msgspec.structs.replace(row, since=since, until=until)
            for row, since, until in self._runs(sorted({o for at in options for o in at}), options)
        ]
        return releases, offers, made

    def _offers(self) -> tuple[list[Offer], list[set[str]]]:
        d = self.deriver
        methods: list[set[str]] = [set() for _ in self.tags]
        out: list[Offer] = []
        for m in d.mappings:
            _, offered, parts = d.spans(m)
            newest = max(((spans[-1][0], k) for k, _, spans in parts), default=(0, ("", "")))[1]
            at: list[dict[str, Offer]] = [{} for _ in self.tags]
            for a, b in offered:
                for n in range(a, min(b, len(self.tags))):
                    key, value = next((k, v) for k, v, spans in parts if any(x <= n < y for x, y in spans))
                    option, shown = d.timeline.at((key[0], ""), n), d.timeline.at(key, n)
                    assert shown
                    # a line written by hand is for the newest of the names
                    line = m.paste if m.paste and key == newest else paste(self.framework.style, key[0], value, shown.type, m.on)
                    methods[n].add(m.method)
                    at[n][m.method] = Offer(
                        self.framework.framework, self.repo, m.method, key[0], value, d.tier_at(m, n), m.condition or m.default_if,
                        option.default if option else "", shown.path, line, m.note, "", "",
                    )  # fmt: skip
            out += [msgspec.structs.replace(row, since=since, until=until) for row, since, until in self._runs([m.method], at)]
        return out, methods

    def _options(self) -> list[dict[str, ReleaseOption]]:
        """For each release: option to its row, the releases left open."""
        d = self.deriver
        out: list[dict[str, ReleaseOption]] = [{} for _ in self.tags]
        wired = {key: d.wired(key) for key in d.timeline.all_keys()}
        for option in dict.fromkeys(o for o, _ in d.timeline.all_keys()):
            keys = d.timeline.keys_of(option) if not any(c in option for c in "*?[") else [(option, "")]
            for n in range(len(self.tags)):
                alive = [(k, s) for k in keys if (s := d.timeline.at(k, n))]
                if not alive:
                    continue
                key, shown = alive[0]
                values = [v for (_, v), _ in alive if v]
                methods = sorted({m for k, _ in alive for m in d.methods_of(k)})
                read = any(a <= n < b for a, b in wired[key])
                out[n][option] = ReleaseOption(
                    self.framework.framework, self.repo, option, shown.type, shown.default,
                    json.dumps(values, ensure_ascii=False) if values else "", shown.path, d.plain_tier(key, shown),
                    " ".join(methods), "yes" if read else "no", "", "",
                )  # fmt: skip
        return out

    def _runs(self, names: Iterable[str], at: list[dict[str, T]]) -> list[tuple[T, str, str]]:
        """Equal rows of consecutive releases as one: row, first release, first release in which it is over."""
        out: list[tuple[T, str, str]] = []
        for name in names:
            start, row = 0, None
            for n in range(len(at) + 1):
                now = at[n].get(name) if n < len(at) else None
                if now != row or n == len(at):
                    if row is not None:
                        out.append((row, self.versions[start], self.versions[n] if n < len(at) else ""))
                    start, row = n, now
        return out
