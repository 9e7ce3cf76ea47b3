"""Replay one repository's main line into differences; continue from where the last replay stopped.

What is kept between runs: facts by blob id, names read by blob id, and the list of differences up to the last
head. A replay from the kept state and a replay from nothing give the same list.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from landed.history.cache import Cache, Kept, Releases
from landed.history.states import Delta, State
from landed.options import facts as f
from landed.options.facts import READER_VERSION
from landed.options.python import Memo, chunks, names_read
from landed.options.read import Facts, decode, encode, read, unreadable
from landed.options.rules import RuleSet, glob
from landed.sources.git import ABSENT, MAX_BLOB_BYTES, Change, Commit, Repo, Tag

_EMPTY: frozenset[int] = frozenset()


class History(msgspec.Struct):
    """Everything later stages need of one repository."""

    head: str
    commits: list[Commit]
    deltas: list[Delta]
    problems: list[tuple[str, str, int, str, int]]
    #: distinct blobs read for declarations or uses, and those of them read for declarations
    blobs: int
    declaring: int
    #: (option, value, path, line) of every option of the head's tree
    head_lines: list[tuple[str, str, str, int]]
    releases: Releases


class Plan(msgspec.Struct):
    """What to look at in one repository: the rules, and which files count as readers of options."""

    rules: RuleSet
    reader_paths: list[str]
    not_readers: list[str]

    def digest(self) -> str:
        parts = [READER_VERSION, *self.reader_paths, "-", *self.not_readers]
        parts += [msgspec.json.encode(r).decode() for r in self.rules.rules]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def is_reader(self, path: str) -> bool:
        if not path.endswith(".py"):
            return False
        return any(glob(p).match(path) for p in self.reader_paths) and not any(glob(p).match(path) for p in self.not_readers)


class _Names:
    """Identifiers as numbers, in the order first met."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.number: dict[str, int] = {}

    def intern(self, names: Iterable[str]) -> frozenset[int]:
        number, all_names = self.number, self.names
        out = []
        for n in names:
            k = number.get(n)
            if k is None:
                k = number[n] = len(all_names)
                all_names.append(n)
            out.append(k)
        return frozenset(out)


def replay(repo: Repo, plan: Plan, cache_file: Path | None) -> History:
    """History of ``repo``'s default branch under ``plan``. Raises SourceError only for the repository itself."""
    head = repo.head()
    with Cache(cache_file) as cache:
        kept = cache.kept(plan.digest())
        tags = repo.tags()
        if kept and kept.head == head and kept.releases.tags == tags:
            return _history(kept)
        if kept and not repo.is_ancestor(kept.head, head):
            kept = None
        gc_was = gc.isenabled()
        gc.disable()
        try:
            return _Replay(repo, plan, cache, kept).run(head, tags)
        finally:
            if gc_was:
                gc.enable()


def _history(kept: Kept) -> History:
    return History(
        kept.head, kept.commits, kept.deltas, kept.problems, len(kept.blobs), len(kept.declaring), kept.head_lines, kept.releases
    )


class _Replay:
    def __init__(self, repo: Repo, plan: Plan, cache: Cache, kept: Kept | None) -> None:
        self.repo, self.plan, self.cache, self.kept = repo, plan, cache, kept
        self.rules = plan.rules
        self.names = _Names()
        self.facts: dict[tuple[str, str], Facts | bytes] = {}
        self.used: dict[str, frozenset[int]] = {}
        self.chunks: dict[bytes, frozenset[int]] = {}
        self._reader: dict[str, bool] = {}
        self.patterns = {self.rules.marker(i): p for i, p in self.rules.markers.items()}
        self.missing: dict[str, str] = {}

    # which facts a path needs -------------------------------------------------------------------
    def is_reader(self, path: str) -> bool:
        found = self._reader.get(path)
        if found is None:
            found = self._reader[path] = self.plan.is_reader(path)
        return found

    def run(self, head: str, tags: list[Tag]) -> History:
        since = self.kept.head if self.kept else ""
        commits = self.repo.main_line(head, since)
        start: list[Change] = []
        if since:
            start = [Change(p, ABSENT, b) for p, b in sorted(self.repo.tree(since).items())]
        releases = self.kept.releases if self.kept and self.kept.releases.tags == tags else None
        steps = [] if releases else self.repo.differences([t.tree for t in tags])
        seen = [*start, *(c for commit in commits for c in commit.changes)]
        own = {c.new for c in seen}
        wanted: dict[str, str] = {}
        for change in [*seen, *(c for step in steps for c in step)]:
            if self.rules.readers(change.path) or self.is_reader(change.path):
                for blob in (change.old, change.new):
                    if blob != ABSENT:
                        wanted.setdefault(blob, change.path)
        needs: dict[str, set[str]] = {}
        for change in [*seen, *(c for step in steps for c in step)]:
            path = change.path
            need = self.rules.readers(path)
            if "python" not in need and self.is_reader(path):
                need = need | {"uses"}  # facts of Python hold the names read already
            if need:
                for blob in (change.old, change.new):
                    if blob != ABSENT:
                        needs.setdefault(blob, set()).update(need)
        self.read(wanted, needs)
        state = State(self.rules, self.load, self.uses, self.names.names)
        if since:
            state.apply((c.path, c.old, c.new) for c in start)
        deltas = list(self.kept.deltas) if self.kept else []
        first = len(self.kept.commits) if self.kept else 0
        for n, commit in enumerate(commits, first):
            changes = [(c.path, c.old, c.new) for c in commit.changes if self.rules.of(c.path) or self.is_reader(c.path)]
            if changes:
                delta = state.apply(changes, n)
                if delta.differences or delta.read or delta.unread:
                    deltas.append(delta)
        if releases is None:
            releases = self.release_line(tags, steps)
        self.cache.flush()
        needs = {b: n for b, n in needs.items() if b in own}
        problems = self.problems(commits, needs, first)
        slim = [Commit(c.sha, c.parents, c.committed, c.authored, c.pr, []) for c in commits]
        old = self.kept
        kept = Kept(
            head,
            (old.commits if old else []) + slim,
            deltas,
            sorted((old.problems if old else []) + problems),
            sorted({*(old.blobs if old else ()), *needs}),
            sorted({*(old.declaring if old else ()), *(b for b, n in needs.items() if n != {"uses"})}),
            [(o, v, s.path, s.line) for (o, v), s in state.shown().items()],
            releases,
        )
        self.cache.keep(self.plan.digest(), kept)
        return _history(kept)

    def release_line(self, tags: list[Tag], steps: list[list[Change]]) -> Releases:
        """Differences from tag to tag, each tag's own tree read like any other."""
        state = State(self.rules, self.load, self.uses, self.names.names)
        deltas = []
        for n, step in enumerate(steps):
            changes = [(c.path, c.old, c.new) for c in step if self.rules.of(c.path) or self.is_reader(c.path)]
            delta = state.apply(changes, n)
            if delta.differences or delta.read or delta.unread:
                deltas.append(delta)
        return Releases(tags, deltas)

    # reading blobs ------------------------------------------------------------------------------
    def read(self, wanted: dict[str, str], needs: dict[str, set[str]]) -> None:
        have = self.cache.have(needs)
        todo = []
        for blob, path in wanted.items():
            lacking = needs[blob] - have.get(blob, set())
            if lacking:
                todo.append((path, blob))
        todo.sort()
        memo: Memo = {}
        path = ""
        for (here, _), (blob, data) in zip(todo, self.repo.blobs(b for _, b in todo), strict=True):
            if here != path:
                # versions of one file share most of their pieces; other files hardly any
                path, memo = here, {}
                self.chunks.clear()
            for need in sorted(needs[blob] - have.get(blob, set())):
                if need == "uses":
                    self.used[blob] = names = self.names_in(data) if data is not None else _EMPTY
                    self.cache.put_uses(blob, [self.names.names[n] for n in names])
                    continue
                made = (
                    read(need, data, self.patterns, memo)
                    if data is not None
                    else unreadable(need, "not in this clone, or damaged")
                )
                packed = encode(made)
                self.facts[blob, need] = packed if len(packed) > 20_000 else made
                if data is not None:
                    self.cache.put(blob, need, packed)

    def names_in(self, data: bytes) -> frozenset[int]:
        if len(data) > MAX_BLOB_BYTES:
            return _EMPTY
        sets = []
        for chunk in chunks(data):
            digest = hashlib.blake2b(chunk, digest_size=12).digest()
            found = self.chunks.get(digest)
            if found is None:
                found = self.chunks[digest] = self.names.intern(n.decode("ascii", "replace") for n in sorted(names_read(chunk)))
            sets.append(found)
        return frozenset().union(*sets)

    def load(self, path: str, blob: str, need: str) -> Facts:
        made = self.facts.get((blob, need))
        if made is None:
            packed = self.cache.get(blob, need)
            made = decode(need, packed) if packed is not None else unreadable(need, "not in this clone, or damaged")
            self.facts[blob, need] = made
        if isinstance(made, bytes):
            return decode(need, made)
        return made

    def uses(self, path: str, blob: str) -> frozenset[int]:
        if blob == ABSENT or not self.is_reader(path):
            return _EMPTY
        if "python" in self.rules.readers(path):
            made = self.load(path, blob, "python")
            key = f"{blob}*"
            found = self.used.get(key)
            if found is None:
                assert isinstance(made, f.PythonFacts)
                found = self.used[key] = self.names.intern(made.uses)
            return found
        found = self.used.get(blob)
        if found is None:
            found = self.used[blob] = self.names.intern(self.cache.uses(blob))
        return found

    def problems(self, commits: list[Commit], needs: dict[str, set[str]], first: int) -> list[tuple[str, str, int, str, int]]:
        out = []
        done = {(path, blob) for path, blob, *_ in self.kept.problems} if self.kept else set()
        for n, commit in enumerate(commits, first):
            for c in commit.changes:
                if c.new == ABSENT or (c.path, c.new) in done or c.new not in needs:
                    continue
                done.add((c.path, c.new))
                for need in sorted(self.rules.readers(c.path)):
                    made = self.load(c.path, c.new, need)
                    if not isinstance(made, int):
                        out += [(c.path, c.new, p.line, p.message, n) for p in made.problems]
        return out
