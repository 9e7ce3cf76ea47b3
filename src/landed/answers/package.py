"""A released package against the snapshot: same readers, another tree."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import msgspec

from landed.answers.names import near
from landed.errors import UsageError
from landed.fields.load import Field, Framework
from landed.history.states import same_value, state_of
from landed.landings.versions import holds, same_version
from landed.options.read import Facts, read
from landed.records.tables import OptionRow, Release, ReleaseOption
from landed.sources.packages import fetch
from landed.store import text


class Held(msgspec.Struct, frozen=True):
    """One option of a package held against the snapshot's head."""

    option: str
    verdict: str
    package: str
    snapshot: str
    path: str
    line: str
    method: str


class ReadPackage(msgspec.Struct):
    framework: str
    name: str
    version: str
    archive: str
    files: int
    options: dict[str, tuple[str, str, int]]

    def summary(self, against: str, rows: list[Held]) -> str:
        """One line a person reads first."""
        n = Counter(r.verdict for r in rows)
        counts = ", ".join(f"{n[v]} {v}" for v in sorted(n))
        return f"{self.name} {self.version} ({self.archive}, {self.files} files read): {len(self.options)} options; against {against}: {counts}"


def read_package(field: Field, requirement: str, framework: str = "") -> ReadPackage:
    """Options that a released package declares. Nothing is installed or imported."""
    package = fetch(requirement)
    wanted = framework or next(
        (f.framework for f in field.frameworks.values() if f.pypi == package.name.lower().replace("_", "-")), ""
    )
    if wanted not in field.frameworks:
        known = [f.pypi for f in field.frameworks.values() if f.pypi]
        raise UsageError(
            f"package {package.name!r} belongs to no framework known", mend=near(package.name, known) + " or --framework F"
        )
    made: Framework = field.frameworks[wanted]
    rules = made.rules(made.repos[0].name)
    files, blobs = {}, {}
    for path, data in package.files.items():
        # sdists with a src/ layout keep the repository's paths; wheels start at the package
        if rules.of(path):
            digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()
            files[path], blobs[digest] = digest, data
    patterns = {rules.marker(i): p for i, p in rules.markers.items()}
    kept: dict[tuple[str, str], Facts] = {}

    def facts(path: str, blob: str, need: str) -> Facts:
        if (blob, need) not in kept:
            kept[blob, need] = read(need, blobs[blob], patterns)
        return kept[blob, need]

    state = state_of(rules, files, facts)
    options: dict[str, tuple[str, str, int]] = {}
    for (option, value), shown in state.items():
        name = f"{option}={value}" if value else option
        options[name] = (shown.default, shown.path, shown.line)
    return ReadPackage(wanted, package.name, package.version, package.archive, len(files), options)


def compare(package: ReadPackage, snapshot: Path) -> tuple[str, list[Held]]:
    """What the package is held against (the tag of its version, else the head), and every option of both.

    Options that the package lacks are told only of files that it has.
    """
    releases = [r for r in text.read(snapshot, "releases") if isinstance(r, Release) and r.framework == package.framework]
    tag = next((r for r in releases if same_version(r.version, package.version)), None)
    rows: list[OptionRow | ReleaseOption]
    if tag is not None:
        against, rows = f"tag {tag.tag}", _of_release(snapshot, tag)
    else:
        against = "the head of the main branch"
        rows = [r for r in text.read(snapshot, "options") if isinstance(r, OptionRow) and r.framework == package.framework]
    head: dict[str, OptionRow | ReleaseOption] = {}
    for r in rows:
        if r.type or r.default or not r.choices:  # else known by its values only
            head[r.option] = r
        for value in msgspec.json.decode(r.choices) if r.choices else ():
            head[f"{r.option}={value}"] = r
    out = []
    for name, (default, path, line) in sorted(package.options.items()):
        found = head.get(name)
        if found is None:
            verdict, known = "only in package", ""
        elif "=" not in name and default and found.default and not same_value(default, found.default):
            verdict, known = "other default", found.default
        else:
            verdict, known = "same", found.default
        out.append(Held(name, verdict, default, known, path, str(line), found.method if found else ""))
    paths = {path for _, path, _ in package.options.values()}
    for name, row in sorted(head.items()):
        if name not in package.options and row.path in paths:
            out.append(
                Held(
                    name,
                    "only in snapshot",
                    "",
                    row.default if "=" not in name else "",
                    row.path,
                    getattr(row, "line", ""),
                    row.method,
                )
            )
    order = {"only in package": 0, "only in snapshot": 1, "other default": 2, "same": 3}
    return against, sorted(out, key=lambda h: (order[h.verdict], h.option))


def _of_release(snapshot: Path, tag: Release) -> list[OptionRow | ReleaseOption]:
    position = {
        r.version: int(r.position)
        for r in text.read(snapshot, "releases")
        if isinstance(r, Release) and (r.framework, r.repo) == (tag.framework, tag.repo)
    }
    return [
        r
        for r in text.read(snapshot, "release_options")
        if isinstance(r, ReleaseOption)
        and (r.framework, r.repo) == (tag.framework, tag.repo)
        and holds(r.since, r.until, int(tag.position), position)
    ]
