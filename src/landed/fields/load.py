"""Load and check a field: frameworks, catalog of methods, failures. Errors name the file, the key and the mend."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from landed.errors import DataError
from landed.options.rules import Rule, RuleSet, named
from landed.records.tables import Tier

FIELDS = Path(__file__).parent
Form = Literal[
    "objective-coefficient", "loss-term", "new-loss", "advantage", "sampling", "reward", "stage-or-model", "system", "composition",
]  # fmt: skip
Basis = Literal["arxiv-metadata", "arxiv-number", "reference", "link", "unknown"]
Decider = Literal["reader", "rule", "model"]


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Source(_Strict):
    arxiv: str = ""
    url: str = ""
    title: str = ""


class Method(_Strict):
    """A catalog entry: one file in ``methods/``; its schema: ``landed export --schema method``."""

    slug: str
    name: str
    form: Form
    description: str
    aliases: list[str] = []
    sources: list[Source] = []
    first_public: str = ""
    first_public_basis: Basis = "unknown"
    failures: list[str] = []
    modality: Literal["language", "vision-language", "diffusion", "embodied"] = "language"
    parts: list[str] = []
    formula: str = ""
    note: str = ""


class Failure(_Strict):
    slug: str
    name: str
    name_zh: str
    description: str
    symptoms: list[str] = []


class RepoSpec(_Strict):
    """One repository of a framework. ``readers`` are the Python files whose reads count as uses."""

    name: str
    url: str
    readers: list[str] = msgspec.field(default_factory=lambda: ["**/*.py"])
    not_readers: list[str] = []


class Mapping(_Strict):
    """Which option, at which value, is which method. One mapping is one route, under all its names."""

    method: str
    options: list[str]
    repo: str = ""
    condition: str = ""
    tier: Tier = ""
    on: str = ""
    default_if: str = ""
    needs: list[str] = []
    reads: list[str] = []
    unread: bool = False
    paste: str = ""
    note: str = ""
    decided_by: Decider = "reader"


class SetAside(_Strict):
    options: list[str]
    reason: str
    repo: str = ""
    decided_by: Decider = "reader"


class Rename(_Strict):
    """A rename that no rule can find: names of options before and after, in one commit."""

    before: str
    after: str
    note: str = ""


class Bulk(_Strict):
    """A commit whose landings are upper bounds: what it brought is older than the public history shows."""

    commit: str
    reason: Literal["first commit", "bulk release", "import without history", "rename or move"]
    evidence: str
    repo: str = ""
    options: list[str] = msgspec.field(default_factory=lambda: ["*"])
    decided_by: Decider = "reader"


class TierRule(_Strict):
    paths: list[str]
    tier: Tier
    repo: str = ""


class Defect(_Strict):
    """An option that did not do what it says, while names of ``during`` hold (default: always) and none of ``unless`` does.

    Both name options or markers, so that the window is read from every tree, release branches too, and not from commits.
    """

    id: str
    options: list[str]
    kind: Literal["wrong", "no effect", "fails"]
    summary: str
    mend: str
    evidence: str
    during: list[str] = []
    unless: list[str] = []
    repo: str = ""
    decided_by: Decider = "reader"


class Framework(_Strict):
    framework: str
    title: str
    repos: list[RepoSpec]
    declarations: list[Rule]
    methods: list[Mapping] = []
    set_aside: list[SetAside] = []
    renames: list[Rename] = []
    bulk: list[Bulk] = []
    tiers: list[TierRule] = []
    defects: list[Defect] = []
    pypi: str = ""
    style: Literal["hydra", "flags", "python", "yaml"] = "yaml"

    def rules(self, repo: str) -> RuleSet:
        """Rules that hold in one repository; a rule without ``repo`` belongs to the first one."""
        first = self.repos[0].name
        return RuleSet([r for r in self.declarations if (r.repo or first) == repo])

    def mappings(self, repo: str) -> list[Mapping]:
        first = self.repos[0].name
        return [m for m in self.methods if (m.repo or first) == repo]

    def repo(self, name: str) -> RepoSpec:
        return next(r for r in self.repos if r.name == name)


class Field(msgspec.Struct):
    name: str
    frameworks: dict[str, Framework]
    methods: dict[str, Method]
    failures: dict[str, Failure]


SCHEMAS: dict[str, Any] = {"framework": Framework, "method": Method, "failure": Failure}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Booleans are ``true`` and ``false`` only, as in YAML 1.2: ``on`` is a key here."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != _BOOL] for first, found in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))


def read_file(path: Path, kind: type[msgspec.Struct]) -> Any:
    """One YAML file as a checked record."""
    try:
        loaded = yaml.load(path.read_text("utf-8"), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise DataError(f"{path}: not readable as YAML: {e}", mend="mend the syntax at that place") from None
    try:
        return msgspec.convert(loaded, kind)
    except msgspec.ValidationError as e:
        raise DataError(f"{path}: {e}", mend=f"see the schema: landed export --schema {kind.__name__.lower()}") from None


@functools.cache
def load(name: str = "llm_rl", root: Path = FIELDS) -> Field:
    """The whole field, checked for what schemas cannot say. Raises DataError at the first defect of a file."""
    base = root / name
    if not base.is_dir():
        known = sorted(p.name for p in root.iterdir() if (p / "frameworks").is_dir())
        raise DataError(f"no field {name!r} in {root}", mend=f"fields here: {', '.join(known)}")
    frameworks = {}
    for path in sorted((base / "frameworks").glob("*.yaml")):
        made: Framework = read_file(path, Framework)
        frameworks[made.framework] = made
    methods = {}
    for path in sorted((base / "methods").glob("*.yaml")):
        method: Method = read_file(path, Method)
        if method.slug != path.stem:
            raise DataError(f"{path}: slug {method.slug!r} is not the file's name", mend="rename one of the two")
        methods[method.slug] = method

    class _Failures(_Strict):
        failures: list[Failure]

    failures_file = base / "failures.yaml"
    failures = {f.slug: f for f in read_file(failures_file, _Failures).failures} if failures_file.exists() else {}
    return Field(name, frameworks, methods, failures)


def defects(field: Field) -> list[str]:
    """What is wrong between the files of a field: unknown slugs, unknown repos, duplicate names."""
    out = []
    for m in field.methods.values():
        out += [f"methods/{m.slug}.yaml: unknown failure {x!r}" for x in m.failures if x not in field.failures]
        out += [f"methods/{m.slug}.yaml: unknown part {x!r}" for x in m.parts if x not in field.methods]
    for fw in field.frameworks.values():
        where = f"frameworks/{fw.framework}.yaml"
        repos = {r.name for r in fw.repos}
        ids = Counter(r.id for r in fw.declarations)
        out += [f"{where}: rule id {i!r} is used {n} times" for i, n in ids.items() if n > 1]
        for part, rows in (("declarations", fw.declarations), ("methods", fw.methods), ("bulk", fw.bulk)):
            for row in rows:
                if row.repo and row.repo not in repos:
                    out.append(f"{where}: {part}: unknown repo {row.repo!r}")
        out += [f"{where}: methods: unknown method {m.method!r}" for m in fw.methods if m.method not in field.methods]
    return out


def split(expression: str) -> tuple[str, str]:
    """``option=value`` as (option, value); value is empty when the expression names the option alone."""
    option, _, value = expression.partition("=")
    return option, value


def matches(expression: str, option: str, value: str) -> bool:
    """Whether a mapping or set-aside expression speaks of this option and value.

    ``option`` covers the option and all its values; ``option=value`` covers that value, and the option itself.
    """
    want_option, want_value = split(expression)
    if not named(option, (want_option,)):
        return False
    return not want_value or not value or named(value, (want_value,))
