"""Records of the published tables. Field order is column order; ``KEY`` is the sort key.

Times are ISO 8601 in UTC with seconds, commit ids 40 hexadecimal digits, and what is not known is
the empty string, never zero. Lists stand in a cell as JSON.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

Change = Literal[
    "added",
    "removed",
    "renamed",
    "moved",
    "default_changed",
    "choice_added",
    "choice_removed",
    "tier_changed",
    "wired",
    "unwired",
]
Bound = Literal["exact", "upper", ""]
Tier = Literal["default", "conditional_default", "core", "switch", "experimental", "recipe", ""]

#: Highest first (measurement.md, section 2).
TIERS: tuple[str, ...] = (
    "default",
    "conditional_default",
    "core",
    "switch",
    "experimental",
    "recipe",
)


class Event(msgspec.Struct, frozen=True):
    """A difference between two consecutive states of one repository's main line."""

    TABLE: ClassVar[str] = "events"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "committed_at", "commit", "option", "change", "after")

    field: str
    framework: str
    repo: str
    option: str
    change: Change
    before: str
    after: str
    commit: str
    committed_at: str
    authored_at: str
    author_role: str
    pr: str
    path: str
    line: str
    bound: Bound
    bound_reason: str
    method: str


class Landing(msgspec.Struct, frozen=True):
    """The first event after which a main branch offers a method by one route."""

    TABLE: ClassVar[str] = "landings"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "method", "committed_at", "repo", "option", "value")

    framework: str
    repo: str
    method: str
    option: str
    value: str
    tier: Tier
    condition: str
    commit: str
    inner_commit: str
    committed_at: str
    authored_at: str
    declared_at: str
    wired_at: str
    bound: Bound
    bound_reason: str
    path: str
    line: str
    pr: str
    release: str
    released_at: str
    removed_commit: str
    removed_at: str
    head_option: str
    head_tier: Tier
    lag_days: str
    author_role: str


class OptionRow(msgspec.Struct, frozen=True):
    """An option that the newest tree read declares."""

    TABLE: ClassVar[str] = "options"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "option", "path", "line")

    framework: str
    repo: str
    option: str
    type: str
    default: str
    choices: str
    path: str
    line: str
    since_commit: str
    since: str
    tier: Tier
    method: str
    wired: Literal["yes", "no", ""]


class MethodRow(msgspec.Struct, frozen=True):
    """A catalog entry, flattened for tables."""

    TABLE: ClassVar[str] = "methods"
    KEY: ClassVar[tuple[str, ...]] = ("slug",)

    slug: str
    name: str
    aliases: str
    source: str
    first_public: str
    first_public_basis: str
    form: str
    failures: str
    modality: str
    parts: str
    description: str
    formula: str
    note: str


class FailureRow(msgspec.Struct, frozen=True):
    """One of the thirteen failures of training."""

    TABLE: ClassVar[str] = "failures"
    KEY: ClassVar[tuple[str, ...]] = ("slug",)

    slug: str
    name: str
    name_zh: str
    description: str
    symptoms: str


class Route(msgspec.Struct, frozen=True):
    """How a person turns a method on in a framework today: the line to paste, and who decided the mapping."""

    TABLE: ClassVar[str] = "routes"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "method", "option", "value")

    framework: str
    repo: str
    method: str
    option: str
    value: str
    paste: str
    default: str
    note: str
    decided_by: Literal["reader", "rule", "model"]


class FrameworkRow(msgspec.Struct, frozen=True):
    """A repository of a framework, and how its people write options."""

    TABLE: ClassVar[str] = "frameworks"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo")

    framework: str
    title: str
    repo: str
    url: str
    pypi: str
    style: str


class Run(msgspec.Struct, frozen=True):
    """What one replay of one repository read, so that a snapshot can be traced to its inputs."""

    TABLE: ClassVar[str] = "runs"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo")

    framework: str
    repo: str
    url: str
    head: str
    head_at: str
    commits: str
    blobs: str
    declaring_blobs: str
    options: str
    events: str
    landings: str
    unreadable: str


class Release(msgspec.Struct, frozen=True):
    """A tag that names a version, read as a tree of its own. ``position`` orders a repository's releases by date."""

    TABLE: ClassVar[str] = "releases"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "position")

    framework: str
    repo: str
    position: str
    version: str
    tag: str
    commit: str
    released_at: str
    prerelease: Literal["yes", "no"]
    main_line: Literal["yes", "no"]
    options: str
    methods: str


class Offer(msgspec.Struct, frozen=True):
    """How a method was turned on in a run of consecutive releases; ``until`` is the first one in which this row is no longer so."""

    TABLE: ClassVar[str] = "offers"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "method", "repo", "since", "option", "value")

    framework: str
    repo: str
    method: str
    option: str
    value: str
    tier: Tier
    condition: str
    default: str
    path: str
    write: str
    note: str
    since: str
    until: str


class ReleaseOption(msgspec.Struct, frozen=True):
    """An option as a run of consecutive releases declared it."""

    TABLE: ClassVar[str] = "release_options"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "option", "since")

    framework: str
    repo: str
    option: str
    type: str
    default: str
    choices: str
    path: str
    tier: Tier
    method: str
    wired: Literal["yes", "no"]
    since: str
    until: str


class DefectRow(msgspec.Struct, frozen=True):
    """Options that did not do what they say on the main line from ``since`` to ``until`` (empty: still), and in ``releases``."""

    TABLE: ClassVar[str] = "defects"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "defect")

    framework: str
    repo: str
    defect: str
    kind: Literal["wrong", "no effect", "fails", "not read"]
    options: str
    methods: str
    summary: str
    mend: str
    evidence: str
    since: str
    since_commit: str
    until: str
    until_commit: str
    releases: str
    decided_by: Literal["reader", "rule", "model"]


class Problem(msgspec.Struct, frozen=True):
    """A blob that could not be read whole, with its place; kept, never fatal."""

    TABLE: ClassVar[str] = "problems"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "path", "line", "blob", "message")

    framework: str
    repo: str
    commit: str
    path: str
    line: str
    blob: str
    message: str


class Undecided(msgspec.Struct, frozen=True):
    """An algorithm option that is neither mapped nor set aside; a snapshot fit to ship has none."""

    TABLE: ClassVar[str] = "undecided"
    KEY: ClassVar[tuple[str, ...]] = ("framework", "repo", "option", "value")

    framework: str
    repo: str
    option: str
    value: str
    path: str
    line: str
    commit: str
    rule: str


Record = (
    Event | Landing | Route | OptionRow | MethodRow | FailureRow | FrameworkRow | Run | Release | Offer | ReleaseOption | DefectRow | Problem | Undecided
)  # fmt: skip
TABLES: dict[str, type[Record]] = {
    t.TABLE: t
    for t in (
        Event, Landing, Route, OptionRow, MethodRow, FailureRow, FrameworkRow, Run, Release, Offer, ReleaseOption, DefectRow, Problem, Undecided,
    )
}  # fmt: skip


def schema(table: type[Record]) -> dict[str, object]:
    """JSON Schema (2020-12) of one row of ``table``."""
    return msgspec.json.schema(table)
