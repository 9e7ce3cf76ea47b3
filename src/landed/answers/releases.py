"""Answers for a version: what a release offered and declared, and what changes between two of them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from landed.answers.lookup import Row, check_framework, rows
from landed.answers.names import fold, near
from landed.errors import UsageError
from landed.history.states import same_value
from landed.landings.versions import holds, same_version

MAIN = "main"


class Version(msgspec.Struct, frozen=True):
    """One version of a framework's repository; ``position`` is -1 for the head of the main branch."""

    framework: str
    repo: str
    version: str
    position: int
    released_at: str

    def __str__(self) -> str:
        return f"{self.framework}=={self.version}"


def find(db: sqlite3.Connection, name: str) -> Version:
    """The release that ``framework==version`` names; ``main`` is the head. UsageError with near misses."""
    base, eq, wanted = name.partition("==")
    framework = check_framework(db, base)
    if not eq or not wanted.strip():
        raise UsageError(f"{name!r} names no version", mend=f"write {framework}==VERSION; landed releases {framework} lists them")
    wanted = wanted.strip()
    # the first repository is the framework's own; releases of others do not count as its versions
    repo = rows(db, "select repo from frameworks where framework=? order by repo=framework desc, repo", framework)[0]["repo"]
    if fold(wanted) == MAIN:
        return Version(framework, repo, MAIN, -1, "")
    known = rows(db, "select * from releases where framework=? and repo=? order by position", framework, repo)
    for r in known:
        if wanted == r["tag"] or same_version(wanted, r["version"]):
            return Version(framework, repo, r["version"], int(r["position"]), r["released_at"])
    if not known:
        raise UsageError(f"{framework} has no releases in this snapshot", mend=f"ask for {framework}==main")
    raise UsageError(f"{framework} has no release {wanted!r}", mend=near(wanted, [r["version"] for r in reversed(known)]))


def _active(db: sqlite3.Connection, table: str, v: Version) -> list[Row]:
    """Rows of a table of runs of releases that hold at one version."""
    position = {
        r["version"]: int(r["position"])
        for r in rows(db, "select * from releases where framework=? and repo=?", v.framework, v.repo)
    }
    return [
        r
        for r in rows(db, f"select * from {table} where framework=? and repo=?", v.framework, v.repo)
        if holds(r["since"], r["until"], v.position, position)
    ]


def offers(db: sqlite3.Connection, method: str, v: Version) -> list[Row]:
    """One row a route of ``method`` in a version, or one that says no and why."""
    mine = [r for r in _active(db, "offers", v) if r["method"] == method]
    if mine:
        return [
            {
                "method": method, "framework": str(v), "answer": "yes",
                "option": r["option"] + (f"={r['value']}" if r["value"] else ""), "since": r["since"], "default": r["default"],
                "tier": r["tier"].replace("_", " "), "condition": r["condition"], "write": r["write"], "path": r["path"],
                "repo": v.repo, "note": r["note"],
            }
            for r in sorted(mine, key=lambda r: (r["option"], r["value"]))
        ]  # fmt: skip
    return [{"method": method, "framework": str(v), "answer": "no", "note": _why_not(db, method, v)}]


def _why_not(db: sqlite3.Connection, method: str, v: Version) -> str:
    order = {
        r["version"]: int(r["position"])
        for r in rows(db, "select * from releases where framework=? and repo=?", v.framework, v.repo)
    }
    spans = rows(db, "select since, until from offers where framework=? and repo=? and method=?", v.framework, v.repo, method)
    later = [r["since"] for r in spans if order[r["since"]] > v.position]
    earlier = [r["until"] for r in spans if r["until"] and order[r["until"]] <= v.position]
    if later:
        return f"first in {min(later, key=order.__getitem__)}" if not earlier else f"again in {min(later, key=order.__getitem__)}"
    if earlier:
        return f"gone since {max(earlier, key=order.__getitem__)}"
    landed = rows(
        db, "select committed_at from landings where framework=? and repo=? and method=? order by 1", v.framework, v.repo, method
    )
    return f"on main since {landed[0]['committed_at'][:10]}, in no release yet" if landed else ""


def options(db: sqlite3.Connection, v: Version) -> dict[str, Row]:
    """Every option that a version declares."""
    if v.position < 0:
        found = rows(db, "select * from options where framework=? and repo=?", v.framework, v.repo)
    else:
        found = _active(db, "release_options", v)
    return {r["option"]: r for r in found}


def _renames(db: sqlite3.Connection, v: Version) -> list[tuple[str, str]]:
    """Options renamed on the main line, oldest first."""
    found = rows(
        db, "select * from events where framework=? and repo=? and change='renamed' order by committed_at", v.framework, v.repo
    )
    return [(r["before"], r["after"]) for r in found if r["after"] == r["option"]]


def renamed(before: dict[str, Row], after: dict[str, Row], pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Options gone from ``before`` that go by another name in ``after``: old to new, through every rename on the way."""
    out: dict[str, str] = {}
    for option in before:
        if option in after:
            continue
        name = option
        for old, new in pairs:
            if old == name:
                name = new
                if name in after and name not in before:
                    break
        if name in after and name not in before and name not in out.values():
            out[option] = name
    return out


def diff(db: sqlite3.Connection, a: Version, b: Version) -> list[Row]:
    """What is different in ``b``, one row a change, in the words of the events table."""
    if (a.framework, a.repo) != (b.framework, b.repo):
        raise UsageError(f"{a} and {b} are not versions of one framework", mend="landed translate is for other frameworks")
    before, after = options(db, a), options(db, b)
    pairs = _renames(db, a)
    backwards = (b.position if b.position >= 0 else 1 << 30) < (a.position if a.position >= 0 else 1 << 30)
    names = {old: new for new, old in renamed(after, before, pairs).items()} if backwards else renamed(before, after, pairs)
    of_value: dict[tuple[str, str], set[str]] = {}
    for r in rows(
        db,
        "select option, value, method from offers where framework=? union select option, value, method from landings where framework=?",
        a.framework,
        a.framework,
    ):
        of_value.setdefault((r["option"], r["value"]), set()).add(r["method"])
    out: list[Row] = []

    def row(change: str, option: str, old: str, new: str, at: Row) -> None:
        method = at["method"]
        if change.startswith("choice_"):
            method = " ".join(sorted(of_value.get((option, new or old), ())))
        out.append({"change": change, "option": option, "before": old, "after": new, "method": method, "path": at["path"]})

    for option in sorted(before.keys() | after.keys()):
        if option in before and option not in after and option not in names:
            row("removed", option, before[option]["default"], "", before[option])
        if option not in after:
            continue
        old_name = option if option in before else next((o for o, n in names.items() if n == option), "")
        new = after[option]
        if not old_name:
            row("added", option, "", new["default"], new)
            continue
        old = before[old_name]
        if old_name != option:
            row("renamed", option, old_name, option, new)
        if old["default"] and new["default"] and not same_value(old["default"], new["default"]):
            row("default_changed", option, old["default"], new["default"], new)
        had, has = (json.loads(r["choices"]) if r["choices"] else [] for r in (old, new))
        for value in (v for v in has if v not in had):
            row("choice_added", option, "", value, new)
        for value in (v for v in had if v not in has):
            row("choice_removed", option, value, "", new)
        if old["tier"] != new["tier"]:
            row("tier_changed", option, old["tier"], new["tier"], new)
        if old["wired"] != new["wired"]:
            row("wired" if new["wired"] == "yes" else "unwired", option, "", "", new)
        if old["path"] != new["path"] and old_name == option:
            row("moved", option, old["path"], new["path"], new)
    order = {c: n for n, c in enumerate(("removed", "renamed", "default_changed", "choice_removed", "unwired", "tier_changed"))}
    return sorted(out, key=lambda r: (order.get(r["change"], 9), r["change"], r["option"], r["after"]))


_FLAG = re.compile(r"(?<![\w-])--([\w.\-]+)")
_KEY = re.compile(r"(?<![\w.])[+~]*([A-Za-z_][\w.]*)\s*=(?!=)")


def touches(path: Path) -> Callable[[Row], bool]:
    """Whether a row of a difference speaks of a setting that a file of a run writes (YAML keys, flags, ``key=value``)."""
    from landed.options.yamls import read_yaml

    try:
        data = path.read_bytes()
    except OSError as e:
        raise UsageError(f"{path} cannot be read: {e.strerror}", mend="name a config file or a run script") from None
    if path.suffix in (".yaml", ".yml"):
        written = {k.key for k in read_yaml(data).keys}
    else:
        text = data.decode("utf-8", "replace")
        written = {*_FLAG.findall(text), *_KEY.findall(text)}
    names = {fold(w) for w in written}
    # a call such as GRPOConfig(beta=0.1) writes the last part only
    lasts = {fold(w) for w in written if "." not in w}

    def told(r: Row) -> bool:
        for option in (r["option"], r["before"] if r["change"] == "renamed" else ""):
            if option and (fold(option) in names or (option[:1].isupper() and fold(option.rpartition(".")[2]) in lasts)):
                return True
        return False

    return told
