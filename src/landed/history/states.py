"""The state of a tree, kept up to date while files change under it.

``State`` holds, for every rule, the declarations of its files, and the number of files that read each
name. ``apply`` takes the files that changed and returns what is different, so a replay is a walk over
changes; ``state_of`` is the same thing from nothing to one whole tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from landed.options.read import Facts
from landed.options.rules import PER_FILE, READER_OF, Decl, Key, RuleSet
from landed.sources.git import ABSENT

#: facts of (path, blob, need)
Load = Callable[[str, str, str], Facts]
#: identifiers read by a blob at a path, as interned numbers
Uses = Callable[[str, str], frozenset[int]]


class Shown(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An option as a tree declares it: the effective declaration among all places."""

    default: str
    type: str
    path: str
    line: int
    rule: int
    ident: str
    wiring: str
    rules: tuple[int, ...]


class Difference(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One key that is different after a commit. ``before`` or ``after`` is None where it does not exist."""

    option: str
    value: str
    before: Shown | None
    after: Shown | None
    #: the place that declared it before declares it no longer, another one does
    moved: bool = False


class Delta(msgspec.Struct, array_like=True, frozen=True):
    """What one commit changed: ``read`` and ``unread`` are names that got a first or lost a last reader."""

    seq: int
    differences: list[Difference]
    read: list[str]
    unread: list[str]


def same_value(a: str, b: str) -> bool:
    """Whether two default texts mean the same: ``6`` and ``6.0``, ``1e-6`` and ``0.000001`` do."""
    if a == b:
        return True
    if {a, b} <= {"null", "None", "~"}:
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False


class State:
    """Options and readers of one tree. ``load`` and ``uses`` give facts by blob id."""

    def __init__(self, rules: RuleSet, load: Load, uses: Uses | None = None, names: list[str] | None = None) -> None:
        self.rules, self.load, self.uses = rules, load, uses
        self.names = names if names is not None else []
        #: rule -> path -> blob
        self.files: list[dict[str, str]] = [{} for _ in rules.rules]
        #: rule -> path ("" for rules over several files) -> declarations
        self.made: list[dict[str, list[Decl]]] = [{} for _ in rules.rules]
        #: key -> its places, ordered when shown
        self.places: dict[Key, dict[tuple[int, str, int], Decl]] = {}
        #: identifier -> keys that are read by it
        self.by_ident: dict[str, set[Key]] = {}
        self.readers: dict[int, int] = {}

    def apply(self, changes: Iterable[tuple[str, str, str]], seq: int = 0) -> Delta:
        """Take changed files (path, old blob, new blob) and return the difference."""
        dirty: dict[int, set[str]] = {}
        read: set[int] = set()
        unread: set[int] = set()
        for path, old, new in changes:
            for i in self.rules.of(path):
                if new == ABSENT:
                    self.files[i].pop(path, None)
                else:
                    self.files[i][path] = new
                dirty.setdefault(i, set()).add(path)
            if self.uses:
                before, after = self.uses(path, old), self.uses(path, new)
                if before is not after:
                    for n in before - after:
                        self.readers[n] -= 1
                        if not self.readers[n]:
                            unread.add(n)
                    for n in after - before:
                        self.readers[n] = self.readers.get(n, 0) + 1
                        if self.readers[n] == 1:
                            read.add(n)
        keys: dict[Key, Shown | None] = {}
        for i, paths in sorted(dirty.items()):
            self._update(i, paths, keys)
        differences: list[Difference] = []
        for key, before_shown in sorted(keys.items()):
            after_shown = self.show(key)
            if before_shown != after_shown and not _only_line(before_shown, after_shown):
                moved = bool(
                    before_shown
                    and after_shown
                    and before_shown.path != after_shown.path
                    and all(path != before_shown.path for _, path, _ in self.places[key])
                )
                differences.append(Difference(*key, before_shown, after_shown, moved))
        both = read & unread  # moved from one file to another within this commit
        now_read = sorted(self.names[n] for n in read - both if self.readers.get(n))
        now_unread = sorted(self.names[n] for n in unread - both if not self.readers.get(n))
        told = {(d.option, d.value) for d in differences}
        for name in (*now_read, *now_unread):
            for key in sorted(self.by_ident.get(name, ())):
                # its line now, since something is said of it at this commit
                if key not in told and (shown := self.show(key)):
                    told.add(key)
                    differences.append(Difference(key[0], key[1], shown, shown))
        return Delta(seq, sorted(differences, key=lambda d: (d.option, d.value)), now_read, now_unread)

    def _update(self, i: int, paths: set[str], keys: dict[Key, Shown | None]) -> None:
        rule = self.rules.rules[i]
        per_file = rule.kind in PER_FILE
        for unit in sorted(paths) if per_file else ("",):
            old = self.made[i].pop(unit, [])
            files = self.files[i]
            scope = ({unit: files[unit]} if unit in files else {}) if per_file else files
            new = self._evaluate(i, scope) if scope else []
            if new:
                self.made[i][unit] = new
            # lines are part of a place, so unchanged declarations compare equal only if nothing moved
            if old == new:
                continue
            for decl in old:
                key = (decl.option, decl.value)
                if key not in keys:
                    keys[key] = self.show(key)
                held = self.places.get(key, {})
                held.pop((decl.rule, decl.path, decl.line), None)
                if not held:
                    self.places.pop(key, None)  # one line may declare a key twice
            for decl in new:
                key = (decl.option, decl.value)
                if key not in keys:
                    keys[key] = self.show(key)
                self.places.setdefault(key, {})[decl.rule, decl.path, decl.line] = decl
                if decl.wiring != "self":
                    for n in decl.ident.split("|"):
                        self.by_ident.setdefault(n, set()).add(key)

    def _evaluate(self, i: int, files: dict[str, str]) -> list[Decl]:
        reader: str = READER_OF[self.rules.rules[i].kind]
        if reader == "none":
            return self.rules.evaluate(i, files)
        if reader == "marker":
            reader = self.rules.marker(i)
        return self.rules.evaluate(i, {p: self.load(p, b, reader) for p, b in files.items()})

    def show(self, key: Key) -> Shown | None:
        """The effective declaration: first rule, then path; the first default that is known."""
        places = self.places.get(key)
        if not places:
            return None
        if len(places) == 1:
            (d,) = places.values()
            return Shown(d.default, d.type, d.path, d.line, d.rule, d.ident, d.wiring, (d.rule,))
        ordered = [places[k] for k in sorted(places)]
        first = ordered[0]
        default = next((d.default for d in ordered if d.default), "")
        kind = next((d.type for d in ordered if d.type), "")
        wiring = "self" if any(d.wiring == "self" for d in ordered) else first.wiring
        ident = "|".join(dict.fromkeys(d.ident for d in ordered))
        rules = tuple(sorted({d.rule for d in ordered}))
        return Shown(default, kind, first.path, first.line, first.rule, ident, wiring, rules)

    def shown(self) -> dict[Key, Shown]:
        """Every option and value of the tree."""
        return {key: s for key in sorted(self.places) if (s := self.show(key))}


def _only_line(a: Shown | None, b: Shown | None) -> bool:
    if a is None or b is None:
        return False
    return (a.default, a.type, a.path, a.rule, a.ident, a.wiring, a.rules) == (
        b.default, b.type, b.path, b.rule, b.ident, b.wiring, b.rules,
    )  # fmt: skip


def state_of(rules: RuleSet, files: dict[str, str], load: Load) -> dict[Key, Shown]:
    """Options of one whole tree given as path to blob id."""
    state = State(rules, load)
    state.apply((path, ABSENT, blob) for path, blob in sorted(files.items()))
    return state.shown()
