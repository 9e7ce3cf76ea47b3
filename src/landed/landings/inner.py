"""The commit inside a merged branch that brought an option: kept beside the merge commit, which counts."""

from __future__ import annotations

from landed.history.replay import History
from landed.history.states import State
from landed.options.read import Facts, read, unreadable
from landed.options.rules import Key, RuleSet
from landed.sources.git import ABSENT, Repo


class InnerCommits:
    """Looks a key up in the branch of a merge, reading only files that the key's rules look at."""

    def __init__(self, repo: Repo, rules: RuleSet, history: History) -> None:
        self.repo, self.rules, self.history = repo, rules, history
        self.patterns = {rules.marker(i): p for i, p in rules.markers.items()}
        self.facts: dict[tuple[str, str], Facts] = {}
        self.trees: dict[str, dict[str, str]] = {}

    def load(self, path: str, blob: str, need: str) -> Facts:
        found = self.facts.get((blob, need))
        if found is None:
            data = next(self.repo.blobs([blob]))[1]
            found = read(need, data, self.patterns) if data is not None else unreadable(need, "missing")
            self.facts[blob, need] = found
        return found

    def __call__(self, position: int, key: Key) -> str:
        """First commit of the merge's branch whose tree declares ``key``; empty if none does."""
        merge = self.history.commits[position].sha
        for sha in self.repo.inner_commits(merge):
            if sha == merge:
                continue
            tree = self.trees.get(sha)
            if tree is None:
                tree = self.trees[sha] = {p: b for p, b in self.repo.tree(sha).items() if self.rules.of(p)}
            state = State(self.rules, self.load)
            state.apply((p, ABSENT, b) for p, b in sorted(tree.items()))
            if key in state.places:
                return sha
        return ""
