"""When each option was declared and read, as intervals over the positions of main-line commits."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from landed.history.states import Delta, Shown
from landed.options.rules import Key, all_named

#: Half-open [start, end) over commit positions; ``END`` means: still so at the head.
END = 1 << 60
Span = tuple[int, int]


def union(*parts: Iterable[Span]) -> list[Span]:
    out: list[Span] = []
    for a, b in sorted(s for part in parts for s in part):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out


def intersect(a: list[Span], b: list[Span]) -> list[Span]:
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        lo, hi = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if lo < hi:
            out.append((lo, hi))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return out


class Segment(msgspec.Struct, frozen=True):
    """One effective declaration of a key, from ``start`` until ``end``."""

    start: int
    end: int
    shown: Shown


class Timeline:
    """All keys and all read names of one repository over its main line."""

    def __init__(self, deltas: list[Delta]) -> None:
        self.segments: dict[Key, list[Segment]] = {}
        self.reads: dict[str, list[Span]] = {}
        open_keys: dict[Key, tuple[int, Shown]] = {}
        open_reads: dict[str, int] = {}
        for delta in deltas:
            for d in delta.differences:
                key = (d.option, d.value)
                if key in open_keys:
                    start, shown = open_keys.pop(key)
                    self.segments.setdefault(key, []).append(Segment(start, delta.seq, shown))
                if d.after is not None:
                    open_keys[key] = (delta.seq, d.after)
            for n in delta.read:
                open_reads.setdefault(n, delta.seq)
            for n in delta.unread:
                if n in open_reads:
                    self.reads.setdefault(n, []).append((open_reads.pop(n), delta.seq))
        for key, (start, shown) in open_keys.items():
            self.segments.setdefault(key, []).append(Segment(start, END, shown))
        for n, start in open_reads.items():
            self.reads.setdefault(n, []).append((start, END))
        self._keys = sorted(self.segments)
        self._of: dict[str, list[Key]] = {}
        for key in self._keys:
            self._of.setdefault(key[0], []).append(key)

    def declared(self, key: Key) -> list[Span]:
        return union((s.start, s.end) for s in self.segments.get(key, ()))

    def read(self, names: Iterable[str]) -> list[Span]:
        return union(*(self.reads.get(n, []) for n in names))

    def wired(self, key: Key, names: Iterable[str] = ()) -> list[Span]:
        """Spans in which the key is declared and something reads it."""
        names = list(names)
        out: list[list[Span]] = []
        for s in self.segments.get(key, ()):
            alive = [(s.start, s.end)]
            if names:
                out.append(intersect(alive, self.read(names)))
            elif s.shown.wiring == "self":
                out.append(alive)
            else:
                spans = intersect(alive, self.read(s.shown.ident.split("|")))
                if key[1] and (key[0], "") in self.segments:
                    option = union(
                        *(
                            intersect([(o.start, o.end)], self.read(o.shown.ident.split("|")))
                            for o in self.segments[key[0], ""]
                            if o.shown.wiring != "self"
                        ),
                        ((o.start, o.end) for o in self.segments[key[0], ""] if o.shown.wiring == "self"),
                    )
                    spans = intersect(spans, option)
                out.append(spans)
        return union(*out)

    def at(self, key: Key, position: int) -> Shown | None:
        for s in self.segments.get(key, ()):
            if s.start <= position < s.end:
                return s.shown
        return None

    def all_keys(self) -> list[Key]:
        return self._keys

    def keys_of(self, option: str) -> list[Key]:
        """Keys of the options that a name or shell pattern covers, in order."""
        if any(c in option for c in "*?["):
            return [k for o in all_named(self._of, option) for k in self._of[o]]
        return self._of.get(option, [])

    def options(self) -> list[str]:
        return list(self._of)

    def keys_of_option(self, option: str) -> list[Key]:
        """The keys of one option by its exact name."""
        return self._of.get(option, [])

    def values(self, option: str) -> list[str]:
        return [v for _, v in self._of.get(option, ()) if v]
