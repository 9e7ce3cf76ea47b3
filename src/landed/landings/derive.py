"""Events, landings and options of one repository, from its history and the framework's data file.

The rules are those of measurement.md, section 2: a landing needs an option declared and read; moves,
copies, reverts and re-landings are no landings; a first commit or bulk release gives an upper bound.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from datetime import date
from typing import Protocol

import msgspec

from landed.fields.load import Field, Framework, Mapping, matches, split
from landed.history.replay import History
from landed.history.states import Delta, Difference, Shown, same_value
from landed.history.timeline import END, Span, Timeline, intersect, union
from landed.landings.paste import paste
from landed.options.rules import Key, RuleSet, glob, leaf, named
from landed.records.tables import (
    TIERS,
    Bound,
    Change,
    DefectRow,
    Event,
    Landing,
    Offer,
    OptionRow,
    Problem,
    Release,
    ReleaseOption,
    Route,
    Tier,
    Undecided,
)
from landed.sources.git import iso

#: a name of a mapping, the value that turns the method on, and when it did
Part = tuple[Key, str, list[Span]]
#: position of a landing at a merge commit, option -> commit inside the merged branch
Inner = Callable[[int, Key], str]


class Derived(msgspec.Struct):
    events: list[Event]
    landings: list[Landing]
    routes: list[Route]
    options: list[OptionRow]
    problems: list[Problem]
    undecided: list[Undecided]
    releases: list[Release]
    offers: list[Offer]
    release_options: list[ReleaseOption]
    defects: list[DefectRow] = []


class ReleaseLine(Protocol):
    """What a repository's releases say: the first one that offers a mapping's method, and the rows of their tables."""

    def first(self, m: Mapping) -> tuple[str, str]: ...

    def rows(self) -> tuple[list[Release], list[Offer], list[ReleaseOption]]: ...


class Deriver:
    """Everything about one repository of one framework."""

    def __init__(
        self, field: Field, framework: Framework, repo: str, history: History, releases: ReleaseLine | None = None
    ) -> None:
        self.field, self.framework, self.repo, self.history = field, framework, repo, history
        self.releases = releases
        self.rules: RuleSet = framework.rules(repo)
        self.mappings = framework.mappings(repo)
        first = framework.repos[0].name
        self.bulk = [b for b in framework.bulk if (b.repo or first) == repo]
        self.tier_rules = [t for t in framework.tiers if not t.repo or t.repo == repo]
        self.set_aside = [s for s in framework.set_aside if not s.repo or s.repo == repo]
        self.timeline = Timeline(history.deltas)
        self._methods: dict[Key, tuple[str, ...]] = {}
        self._start = next((i for i, d in enumerate(history.deltas)), 0)

    # lookups ------------------------------------------------------------------------------------
    def methods_of(self, key: Key) -> tuple[str, ...]:
        """Methods a key is mapped to. The option itself is one's only if no mapping tells its values apart."""
        if not self._methods:
            found: dict[Key, set[str]] = {}
            for m in self.mappings:
                for option, value in map(split, m.options):
                    for k in self.timeline.keys_of(option):
                        if not value or (named(k[1], (value,)) if k[1] else not self.timeline.values(k[0])):
                            found.setdefault(k, set()).add(m.method)
            self._methods = {k: tuple(sorted(v)) for k, v in found.items()}
        return self._methods.get(key, ())

    def bound(self, position: int, option: str) -> tuple[Bound, str]:
        commit = self.history.commits[position]
        for b in self.bulk:
            if commit.sha.startswith(b.commit) and named(option, b.options):
                return "upper", b.reason
        if position == 0:
            return "upper", "first commit"
        return "exact", ""

    def path_tier(self, path: str) -> Tier:
        for t in self.tier_rules:
            if any(glob(p).match(path) for p in t.paths):
                return t.tier
        return ""

    def plain_tier(self, key: Key, shown: Shown) -> Tier:
        """Tier by place alone: by path, by rule, else a value or class is core and a field a switch."""
        tier = self.path_tier(shown.path)
        if tier:
            return tier
        rule = self.rules.rules[shown.rule]
        if rule.tier:
            return rule.tier  # type: ignore[return-value]
        if key[1] or shown.type in ("class", "folder", "file"):
            return "core"
        if shown.type == "behaviour":
            return "default"
        return "switch"

    # events -------------------------------------------------------------------------------------
    def events(self) -> list[Event]:
        out: list[Event] = []
        for delta in self.history.deltas:
            out += self._delta_events(delta)
        out += self._wiring_events()
        return out

    def _event(self, position: int, option: str, value: str, change: Change, before: str, after: str, shown: Shown) -> Event:
        commit = self.history.commits[position]
        bound, reason = self.bound(position, option)
        return Event(
            self.field.name, self.framework.framework, self.repo, option, change, before, after, commit.sha,
            iso(commit.committed), iso(commit.authored), "", commit.pr, shown.path, str(shown.line),
            bound, reason, " ".join(self.methods_of((option, value))),
        )  # fmt: skip

    def _delta_events(self, delta: Delta) -> list[Event]:
        out: list[Event] = []
        renamed = self.renames(delta)
        gone = set(renamed.values())
        for d in delta.differences:
            key = (d.option, d.value)
            if d.before is None and d.after is not None:
                old = renamed.get(key)
                if old is not None:
                    if not d.value or old[1] != d.value:
                        before = old[0] if not d.value else old[1]
                        after = d.option if not d.value else d.value
                        out.append(self._event(delta.seq, *key, "renamed", before, after, d.after))
                    continue
                if d.value:
                    out.append(self._event(delta.seq, *key, "choice_added", "", d.value, d.after))
                else:
                    out.append(self._event(delta.seq, *key, "added", "", d.after.default, d.after))
            elif d.after is None and d.before is not None:
                if key in gone:
                    continue
                if d.value:
                    out.append(self._event(delta.seq, *key, "choice_removed", d.value, "", d.before))
                else:
                    out.append(self._event(delta.seq, *key, "removed", d.before.default, "", d.before))
            elif d.before is not None and d.after is not None:
                out += self._changed(delta.seq, key, d)
        return out

    def _changed(self, position: int, key: Key, d: Difference) -> list[Event]:
        assert d.before
        assert d.after
        out = []
        if d.before.default and d.after.default and not same_value(d.before.default, d.after.default):
            out.append(self._event(position, *key, "default_changed", d.before.default, d.after.default, d.after))
        if d.moved:
            out.append(self._event(position, *key, "moved", d.before.path, d.after.path, d.after))
        before, after = self.plain_tier(key, d.before), self.plain_tier(key, d.after)
        if before != after:
            out.append(self._event(position, *key, "tier_changed", before, after, d.after))
        return out

    def renames(self, delta: Delta) -> dict[Key, Key]:
        """New key to old key, for names that changed in this commit and kept their meaning."""
        removed = {(d.option, d.value): d.before for d in delta.differences if d.after is None and d.before}
        added = {(d.option, d.value): d.after for d in delta.differences if d.before is None and d.after}
        out: dict[Key, Key] = {}
        for r in self.framework.renames:
            old, new = split(r.before), split(r.after)
            if old in removed and new in added and new not in out:
                out[new] = old
        old_options = [k for k in removed if not k[1] and k not in out.values()]
        new_options = [k for k in added if not k[1] and k not in out]
        scores = []
        if len(old_options) * len(new_options) <= 250_000:
            for o in old_options:
                for n in new_options:
                    score = _alike(o[0], removed[o], n[0], added[n])
                    if score:
                        scores.append((-score, o, n))
        used: set[Key] = set(out.values())
        for _, o, n in sorted(scores):
            if o not in used and n not in out:
                out[n] = o
                used.add(o)
        # values of a renamed option follow it
        for n, o in list(out.items()):
            if not n[1]:
                for key in added:
                    if key[0] == n[0] and key[1] and (o[0], key[1]) in removed and key not in out:
                        out[key] = (o[0], key[1])
        return out

    def _wiring_events(self) -> list[Event]:
        out = []
        for key in self.timeline.all_keys():
            segments = self.timeline.segments[key]
            if all(s.shown.wiring == "self" for s in segments):
                continue
            declared, wired = self.timeline.declared(key), self.timeline.wired(key)
            starts, ends = {a for a, _ in declared}, {b for _, b in declared}
            for a, b in wired:
                shown = self.timeline.at(key, a)
                if a not in starts and shown:
                    out.append(self._event(a, *key, "wired", "", key[1], shown))
                if b not in ends and b != END:
                    shown = self.timeline.at(key, b)
                    if shown:
                        out.append(self._event(b, *key, "unwired", key[1], "", shown))
        return out

    # landings -----------------------------------------------------------------------------------
    def landings(self, inner: Inner | None = None) -> tuple[list[Landing], list[Route]]:
        """Landings, each with the way to turn the method on today (or as long as it was offered)."""
        best: dict[tuple[str, str, str], tuple[Landing, Mapping]] = {}
        for m in self.mappings:
            row = self._landing(m, inner)
            if row:  # two mappings of one method through one option and value are one route
                key = (row.method, row.option, row.value)
                if key not in best or row.committed_at < best[key][0].committed_at:
                    best[key] = (row, m)
        return [row for row, _ in best.values()], [self._route(row, m) for row, m in best.values()]

    def _route(self, row: Landing, m: Mapping) -> Route:
        option, value = split(row.head_option) if row.head_option else (row.option, row.value)
        if row.head_option == "" and row.value:
            option, value = row.option, row.value
        key = (option, "") if (option, "") in self.timeline.segments else (option, value)
        segments = self.timeline.segments.get(key) or self.timeline.segments.get((option, value)) or []
        shown = segments[-1].shown if segments else None
        line = m.paste or paste(self.framework.style, option, value, shown.type if shown else "", m.on)
        return Route(
            self.framework.framework, self.repo, m.method, row.option, row.value, line, shown.default if shown else "",
            m.note, m.decided_by,
        )  # fmt: skip

    def keys(self, expression: str) -> list[tuple[Key, str]]:
        """Keys that an expression names, with the value that turns the method on."""
        option, value = split(expression)
        out = []
        keys = self.timeline.keys_of(option)
        for key in keys:
            if value and key[1] and named(key[1], (value,)):
                out.append((key, key[1]))
            elif value and not key[1] and not any(named(v, (value,)) for v in self.timeline.values(key[0])):
                out.append((key, value))
            elif not value and not key[1]:
                out.append((key, ""))
        if not value and not out:
            out = [(key, key[1]) for key in keys]
        return out

    def spans(self, m: Mapping) -> tuple[list[Span], list[Span], list[Part]]:
        """When a mapping's names were declared, when they offered the method, and each name's own spans."""
        declared: list[Span] = []
        offered: list[Span] = []
        parts: list[Part] = []
        required: list[Span] = [(0, END)]
        for need in m.needs:
            required = intersect(required, union(*(self.timeline.wired(k) for k, _ in self.keys(need))))
        for expression in m.options:
            for key, value in self.keys(expression):
                alive = self.timeline.declared(key)
                spans = alive if m.unread else self.timeline.wired(key, m.reads)
                spans = intersect(spans, required)
                declared = union(declared, alive)
                offered = union(offered, spans)
                if spans:
                    parts.append((key, value, spans))
        return declared, offered, parts

    def _landing(self, m: Mapping, inner: Inner | None) -> Landing | None:
        declared, offered, parts = self.spans(m)
        if not offered:
            return None
        start, end = offered[0][0], offered[-1][1]
        commit = self.history.commits[start]
        key, value = next((k, v) for k, v, spans in parts if any(a <= start < b for a, b in spans))
        shown = self.timeline.at(key, start)
        assert shown is not None
        bound, reason = self.bound(start, key[0])
        last = (end if end != END else len(self.history.commits)) - 1
        head_key, head_value = key, value
        for k, v, spans in parts:
            if any(a <= last < b for a, b in spans):
                head_key, head_value = k, v
                break
        removed = self.history.commits[end] if end != END else None
        first = self.history.commits
        method = self.field.methods.get(m.method)
        head_option = head_key[0] + (f"={head_value}" if head_value else "")
        return Landing(
            self.framework.framework, self.repo, m.method, key[0], value, self.tier_at(m, start), m.condition or m.default_if,
            commit.sha, inner(start, key) if inner and commit.parents > 1 else "", iso(commit.committed), iso(commit.authored),
            iso(first[declared[0][0]].committed), iso(first[offered[0][0]].committed), bound, reason, shown.path, str(shown.line),
            commit.pr, *(self.releases.first(m) if self.releases else ("", "")), removed.sha if removed else "", iso(removed.committed) if removed else "",
            "" if removed else head_option, "" if removed else self.tier_at(m, last),
            _lag(method.first_public if method else "", commit.committed), "",
        )  # fmt: skip

    def tier_at(self, m: Mapping, position: int) -> Tier:
        """Highest tier among the names that offer the method at a position."""
        if m.tier:
            return m.tier
        best: Tier = ""
        for expression in m.options:
            for key, value in self.keys(expression):
                shown = self.timeline.at(key, position)
                if shown is None:
                    continue
                tier = self.plain_tier(key, shown)
                if tier == "default" and m.default_if:
                    tier = "conditional_default"
                elif tier in ("core", "switch") and self._is_default(m, key, value, position):
                    tier = "conditional_default" if m.default_if else "default"
                if not best or (tier and TIERS.index(tier) < TIERS.index(best)):
                    best = tier
        return best

    def _is_default(self, m: Mapping, key: Key, value: str, position: int) -> bool:
        option = self.timeline.at((key[0], ""), position)
        if option is None or not option.default:
            return False
        default = option.default
        if m.on == "nonnull":
            return default not in ("null", "None", "")
        if m.on == "nonzero":
            return default not in ("null", "None", "", "false", "False") and not same_value(default, "0")
        want = m.on or value
        if not want:
            return False
        return same_value(default, want) or default.rpartition(".")[2].lower() == want.lower()

    # options at the head ------------------------------------------------------------------------
    def options(self) -> list[OptionRow]:
        last = len(self.history.commits) - 1
        origin = self._origins()
        lines = {(o, v): line for o, v, _, line in self.history.head_lines}
        out = []
        alive = {k: s for k in self.timeline.all_keys() if (s := self.timeline.at(k, last))}
        values_of: dict[str, list[str]] = {}
        for option, value in alive:
            values_of.setdefault(option, []).extend([value] if value else [])
        for option, values in sorted(values_of.items()):
            key = (option, "") if (option, "") in alive else (option, values[0])
            shown = alive[key]
            since = min(origin[(option, v)] for v in ["", *values] if (option, v) in alive)
            commit = self.history.commits[since]
            wired = any(b == END for _, b in self.wired(key))
            methods = sorted({s for v in ["", *values] if (option, v) in alive for s in self.methods_of((option, v))})
            out.append(
                OptionRow(
                    self.framework.framework, self.repo, option, shown.type, shown.default,
                    json.dumps(values, ensure_ascii=False) if values else "", shown.path, str(lines.get(key, shown.line)), commit.sha,
                    iso(commit.committed), self.plain_tier(key, shown), " ".join(methods), "yes" if wired else "no",
                )
            )  # fmt: skip
        return out

    def wired(self, key: Key) -> list[Span]:
        """Spans in which a key is read, by its own name or by what its mappings say."""
        spans = self.timeline.wired(key)
        for m in self.mappings:
            if (m.reads or m.unread) and any(key in self.timeline.keys_of(split(e)[0]) for e in m.options):
                spans = union(spans, self.timeline.declared(key) if m.unread else self.timeline.wired(key, m.reads))
        return spans

    def _origins(self) -> dict[Key, int]:
        """Position at which each key, under this or an earlier name, was first declared."""
        origin: dict[Key, int] = {}
        for delta in self.history.deltas:
            renamed = self.renames(delta) if any(d.before is None for d in delta.differences) else {}
            for d in delta.differences:
                key = (d.option, d.value)
                if d.before is None:
                    old = renamed.get(key)
                    if old is not None and old in origin:
                        origin[key] = min(origin[old], origin.get(key, delta.seq))
                    else:
                        origin.setdefault(key, delta.seq)
        return origin

    # what is not decided ------------------------------------------------------------------------
    def decided(self) -> set[Key]:
        """Keys that a mapping, a need of one, or a set-aside entry speaks of."""
        out: set[Key] = set()
        expressions = [e for m in self.mappings for e in (*m.options, *m.needs)]
        expressions += [e for s in self.set_aside for e in s.options]
        for expression in expressions:
            option, _ = split(expression)
            out.update(k for k in self.timeline.keys_of(option) if matches(expression, *k))
        return out

    def undecided(self) -> list[Undecided]:
        """Algorithm options of any time that nobody decided about."""
        out = []
        decided = self.decided()
        for key in self.timeline.all_keys():
            option, value = key
            if key in decided or (not value and self.timeline.values(option)):
                continue  # an option with values is decided value by value
            segments = self.timeline.segments[key]
            rules = sorted({r for s in segments for r in s.shown.rules if named(option, self.rules.rules[r].algorithm)})
            if not rules:
                continue
            s = segments[0]
            out.append(
                Undecided(
                    self.framework.framework, self.repo, option, value, s.shown.path, str(s.shown.line),
                    self.history.commits[s.start].sha, self.rules.rules[rules[0]].id,
                )
            )  # fmt: skip
        return out

    def problems(self) -> list[Problem]:
        return [
            Problem(self.framework.framework, self.repo, self.history.commits[n].sha, path, str(line), blob, message)
            for path, blob, line, message, n in self.history.problems
        ]

    def derive(self, inner: Inner | None = None) -> Derived:
        landings, routes = self.landings(inner)
        made = self.releases.rows() if self.releases else ([], [], [])
        return Derived(self.events(), landings, routes, self.options(), self.problems(), self.undecided(), *made)


_WORDS = re.compile(r"[^a-z0-9]+")


def _normal(name: str) -> str:
    return _WORDS.sub("_", leaf(name).lower()).strip("_")


def _alike(old: str, before: Shown, new: str, after: Shown) -> float:
    """How sure it is that two names removed and added in one commit are one option; 0 if not sure."""
    same_default = bool(before.default) and bool(after.default) and same_value(before.default, after.default)
    same_place = before.path == after.path
    telling = same_default and before.default not in ("null", "None", "false", "true", "0", "1", "0.0", "1.0")
    if not same_place and not telling:
        return 0.0
    if _normal(old) == _normal(new) and _normal(old):
        # the last part of the name stayed: moved to another section or spelled another way
        return 2.0 + same_default
    if not same_place or not same_default:
        return 0.0
    ratio = difflib.SequenceMatcher(None, _normal(old), _normal(new)).ratio()
    return ratio if ratio >= 0.7 else 0.0


def _lag(first_public: str, committed: int) -> str:
    """Days from the first public version to the landing; empty unless the day is known."""
    try:
        public = date.fromisoformat(first_public)
    except ValueError:
        return ""
    return str((date.fromisoformat(iso(committed)[:10]) - public).days)
