"""From facts to options: the rules by which one framework's tree declares options.

A rule is data (``fields/*/frameworks/*.yaml``). Its ``kind`` says which facts it looks at; ``paths`` where.
Every kind is a function from the facts of matching files to declarations; a state is the union of all.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from landed.options import facts as f
from landed.options.hydra import compose

Kind = Literal[
    "fields", "argparse", "enum", "registry", "table", "compare", "read", "definition", "yaml", "hydra", "shell", "folder",
    "file", "marker",
]  # fmt: skip
Reader = Literal["python", "yaml", "shell", "marker", "none"]

READER_OF: dict[str, Reader] = {
    "fields": "python", "argparse": "python", "enum": "python", "registry": "python", "table": "python",
    "compare": "python", "read": "python", "definition": "python", "yaml": "yaml", "hydra": "yaml", "shell": "shell",
    "folder": "none", "file": "none", "marker": "marker",
}  # fmt: skip


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One registration point. What each key means for each kind is in ``docs/framework-files.md``."""

    id: str
    kind: Kind
    paths: list[str]
    repo: str = ""
    exclude: list[str] = []
    classes: list[str] = msgspec.field(default_factory=lambda: ["*"])
    names: list[str] = msgspec.field(default_factory=lambda: ["*"])
    subjects: list[str] = msgspec.field(default_factory=lambda: ["*"])
    scopes: list[str] = msgspec.field(default_factory=lambda: ["*"])
    keys: list[str] = msgspec.field(default_factory=lambda: ["*"])
    init: bool = False
    nested: bool = True
    prefix: str = ""
    prefixes: dict[str, str] = {}
    option: str = ""
    primary: str = ""
    pattern: str = ""
    lowercase: bool = False
    algorithm: list[str] = msgspec.field(default_factory=lambda: ["*"])
    tier: str = ""
    era: str = ""


class Decl(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One place that declares an option (``value`` empty) or one of its values."""

    option: str
    value: str
    default: str
    type: str
    path: str
    line: int
    rule: int
    ident: str
    #: "self": the declaration is the implementation; "read": something must read ``ident``
    wiring: str


Key = tuple[str, str]
Files = Mapping[str, object]


@functools.lru_cache(maxsize=4096)
def glob(pattern: str) -> re.Pattern[str]:
    """Path pattern: ``**`` crosses folders, ``*`` does not, ``{a,b}`` alternates."""
    out, i = "", 0
    while i < len(pattern):
        c = pattern[i]
        if pattern.startswith("**/", i):
            out += "(?:.*/)?"
            i += 3
            continue
        if pattern.startswith("**", i):
            out += ".*"
            i += 2
            continue
        if c == "*":
            out += "[^/]*"
        elif c == "?":
            out += "[^/]"
        elif c == "{":
            out += "(?:"
        elif c == "}":
            out += ")"
        elif c == "," and out.rfind("(?:") > out.rfind(")"):
            out += "|"
        else:
            out += re.escape(c)
        i += 1
    return re.compile(out + r"\Z")


@functools.lru_cache(maxsize=8192)
def _names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(p) for p in patterns) or r"\Z.")


def all_named(names: Iterable[str], pattern: str) -> list[str]:
    """Those of many names that match one shell-style pattern."""
    match = _names((pattern,)).match
    return [n for n in names if match(n)]


def named(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name matches one of the shell-style patterns (case sensitive)."""
    patterns = tuple(patterns)
    return patterns == ("*",) or bool(_names(patterns).match(name))


def leaf(option: str) -> str:
    """The identifier by which code reads an option."""
    return re.split(r"[.\s/]", option.strip())[-1].lstrip("-").replace("-", "_")


class RuleSet:
    """The rules of one repository, compiled. ``scale`` of a walk: one object a process and repository."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.paths = [[glob(p) for p in r.paths] for r in rules]
        self.excluded = [[glob(p) for p in r.exclude] for r in rules]
        self._of: dict[str, tuple[int, ...]] = {}
        self.markers = {i: re.compile(r.pattern.encode(), re.M | re.S) for i, r in enumerate(rules) if r.kind == "marker"}

    def of(self, path: str) -> tuple[int, ...]:
        """Indexes of the rules that look at ``path``."""
        found = self._of.get(path)
        if found is None:
            found = tuple(
                i
                for i in range(len(self.rules))
                if any(p.match(path) for p in self.paths[i]) and not any(p.match(path) for p in self.excluded[i])
            )
            self._of[path] = found
        return found

    def readers(self, path: str) -> set[str]:
        """Names of the facts needed of ``path``: python, yaml, shell, or ``marker:<digest>``."""
        need: set[str] = set()
        for i in self.of(path):
            reader = READER_OF[self.rules[i].kind]
            if reader == "marker":
                need.add(self.marker(i))
            elif reader != "none":
                need.add(reader)
        return need

    def marker(self, i: int) -> str:
        return "marker:" + hashlib.sha256(self.rules[i].pattern.encode()).hexdigest()[:16]

    def evaluate(self, i: int, files: Files) -> list[Decl]:
        """Declarations of rule ``i`` over its files (path to facts), in path and line order."""
        return _KINDS[self.rules[i].kind](self.rules[i], i, files)


def _prefix(rule: Rule, name: str, path: str) -> str:
    prefix = rule.prefixes.get(name, rule.prefix)
    if "{" in prefix:
        folder = path.split("/")[-2] if "/" in path else ""
        prefix = (
            prefix.replace("{class}", name)
            .replace("{folder}", folder)
            .replace("{stem}", path.rpartition("/")[2].rpartition(".")[0])
        )
    return prefix


def _join(prefix: str, name: str) -> str:
    if prefix.endswith(("-", "(", "/")) or not prefix:
        return prefix + name
    return f"{prefix}.{name}"


def _values(rule: Rule, i: int, option: str, values: Iterable[tuple[str, int]], path: str, wiring: str = "self") -> list[Decl]:
    out = []
    for value, line in values:
        ident = value.rpartition(".")[2] if rule.kind == "registry" and value.rpartition(".")[2].isupper() else value
        if rule.kind != "enum" and value.rpartition(".")[2].isupper() and "." in value:
            value = value.rpartition(".")[2].lower()
        out.append(Decl(option, value.lower() if rule.lowercase else value, "", "", path, line, i, ident, wiring))
    return out


def _fields(rule: Rule, i: int, files: Files) -> list[Decl]:
    classes: dict[str, list[tuple[str, f.ClassFact]]] = {}
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        for c in facts.classes:
            classes.setdefault(c.name, []).append((path, c))

    def find(name: str, near: str) -> tuple[str, f.ClassFact] | None:
        found = classes.get(name.rpartition(".")[2])
        if not found:
            return None
        return next((x for x in found if x[0] == near), found[0])

    def members(path: str, c: f.ClassFact, depth: int = 0) -> dict[str, tuple[str, f.FieldFact]]:
        out: dict[str, tuple[str, f.FieldFact]] = {}
        if depth < 8:
            for b in reversed(c.bases):
                base = find(b, path)
                if base and base[1] is not c:
                    out.update(members(*base, depth + 1))
        for field in c.init if rule.init else c.fields:
            out[field.name] = (path, field)
        return out

    out: list[Decl] = []

    def emit(path: str, c: f.ClassFact, prefix: str, above: tuple[str, ...]) -> None:
        for name, (where, field) in members(path, c).items():
            # names with an underscore are machinery of the class, pydantic's model_config too
            if not named(name, rule.keys) or name.startswith("_") or name == "model_config":
                continue
            option = _join(prefix, name)
            inner = find(field.nested, where) if field.nested and rule.nested else None
            if inner and inner[1].name not in above and len(above) < 6:
                emit(inner[0], inner[1], option, (*above, inner[1].name))
                if field.default in ("", "null") or field.default.endswith(")"):
                    if field.default == "null":
                        out.append(Decl(option, "", "null", field.type, where, field.line, i, name, "read"))
                    continue
            out.append(Decl(option, "", field.default, field.type, where, field.line, i, name, "read"))
            for choice in field.choices:
                out.append(Decl(option, choice, "", "", where, field.line, i, choice, "value"))

    for found in classes.values():
        for path, c in found:
            if named(c.name, rule.classes):
                emit(path, c, _prefix(rule, c.name, path), (c.name,))
    return out


def _argparse(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        overridden = {a.dest: a.default for a in facts.arguments if not a.flags}
        for a in facts.arguments:
            if not a.flags or not named(a.call.rpartition(".")[2], rule.names) or not named(a.scope, rule.scopes):
                continue
            flag = next((x for x in a.flags if x.startswith("--")), a.flags[0])
            if not named(flag, rule.keys):
                continue
            default = overridden.get(a.dest, a.default)
            ident = leaf(a.dest)
            out.append(Decl(rule.prefix + flag, "", default, a.type, path, a.line, i, ident, "read"))
            for choice in a.choices:
                if choice.startswith("@"):
                    name = choice[1:].rpartition(".")[2]
                    for t in facts.tables:
                        if t.name == name:
                            out += [Decl(rule.prefix + flag, k, "", "", path, a.line, i, k, "value") for k in t.keys]
                else:
                    out.append(Decl(rule.prefix + flag, choice, "", "", path, a.line, i, choice, "value"))
    return out


def _enum(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        for c in facts.classes:
            if named(c.name, rule.classes):
                for m in c.members:
                    value = m.name.lower() if m.default in ("", "auto()") or m.default.isdigit() else m.default
                    out.append(Decl(rule.option, value, "", "", path, m.line, i, f"{m.name}|{value}", "value"))
    return out


def _registry(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        for r in facts.registrations:
            if named(r.call, rule.names) or named(r.call.rpartition(".")[2], rule.names):
                names = [n for n in r.names if named(n, rule.keys)]
                out += _values(rule, i, rule.option, ((n, r.line) for n in names), path)
    return out


def _table(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        for t in facts.tables:
            if (named(t.name, rule.names) or named(t.name.rpartition(".")[2], rule.names)) and named(t.scope, rule.scopes):
                values = t.values or [""] * len(t.keys)
                rows = [(k, n, v) for k, n, v in zip(t.keys, t.lines, values, strict=True) if named(k, rule.keys)]
                if rule.option:
                    out += _values(rule, i, rule.option, ((k, n) for k, n, _ in rows), path)
                else:
                    out += [Decl(_join(rule.prefix, k), "", v, "", path, n, i, leaf(k), "read") for k, n, v in rows]
    return out


def _compare(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        for c in facts.compares:
            if (named(c.subject, rule.subjects) or named(c.subject.rpartition(".")[2], rule.subjects)) and named(
                c.scope, rule.scopes
            ):
                out += _values(rule, i, rule.option, ((v, c.line) for v in c.values if named(v, rule.keys)), path)
    return out


def _read(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        for r in facts.reads:
            if (
                r.how != "hasattr" and named(r.key, rule.keys) and named(r.scope, rule.scopes)
                and (named(r.receiver, rule.subjects) or named(r.receiver.rpartition(".")[2], rule.subjects))
            ):  # fmt: skip
                out.append(Decl(_join(rule.prefix, r.key), "", r.default, "", path, r.line, i, r.key, "self"))
    return out


def _definition(rule: Rule, i: int, files: Files) -> list[Decl]:
    """Classes and functions that are themselves what a person names. Shims are no definitions."""
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.PythonFacts)
        found = [(c.name, c.line) for c in facts.classes if named(c.name, rule.names) and not (c.trivial and c.bases)]
        found += [(fn.name, fn.line) for fn in facts.functions if named(fn.name, rule.names) and named(fn.scope, rule.scopes)]
        for name, line in found:
            if rule.option:
                out.append(Decl(rule.option, name, "", "", path, line, i, name, "self"))
            else:
                out.append(Decl(_join(_prefix(rule, name, path), name), "", "", "class", path, line, i, name, "self"))
    return out


def _yaml(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.TextFacts)
        for k in facts.keys:
            if named(k.key, rule.keys):
                if rule.option:
                    out.append(Decl(rule.option, k.value, "", "", path, k.line, i, k.value, "self"))
                else:
                    option = _join(_prefix(rule, "", path), k.key)
                    out.append(Decl(option, "", k.value, "", path, k.line, i, leaf(k.key), "read"))
    return out


def _hydra(rule: Rule, i: int, files: Files) -> list[Decl]:
    texts = {p: t for p, t in files.items() if isinstance(t, f.TextFacts)}
    out = []
    if rule.primary in texts:
        for key, (value, path, line) in sorted(compose(texts, rule.primary).items()):
            if named(key, rule.keys) and not key.endswith("._target_"):
                out.append(Decl(_join(rule.prefix, key), "", value, "", path, line, i, leaf(key), "read"))
    return out


def _shell(rule: Rule, i: int, files: Files) -> list[Decl]:
    out: list[Decl] = []
    for path in sorted(files):
        facts = files[path]
        assert isinstance(facts, f.TextFacts)
        for k in facts.keys:
            if named(k.key, rule.keys):
                if rule.option:
                    out.append(Decl(rule.option, k.value, "", "", path, k.line, i, k.value, "self"))
                else:
                    out.append(Decl(_join(_prefix(rule, "", path), k.key), "", k.value, "", path, k.line, i, k.key, "self"))
    return out


def _folder(rule: Rule, i: int, files: Files) -> list[Decl]:
    """Folders below ``prefix`` that hold a matching file: ``recipe/dapo``."""
    out: dict[str, Decl] = {}
    for path in sorted(files):
        if not path.startswith(rule.prefix):
            continue
        name = path[len(rule.prefix) :].partition("/")[0]
        if name and "/" in path[len(rule.prefix) :] and named(name, rule.keys):
            option = f"{rule.prefix}{name}"
            out.setdefault(option, Decl(option, "", "", "folder", option, 1, i, name, "self"))
    return list(out.values())


def _file(rule: Rule, i: int, files: Files) -> list[Decl]:
    return [
        Decl(rule.option or p, p if rule.option else "", "", "file", p, 1, i, p, "self")
        for p in sorted(files)
        if named(p.rpartition("/")[2], rule.keys)
    ]


def _marker(rule: Rule, i: int, files: Files) -> list[Decl]:
    """A behaviour with no option, known by a pattern in the code; the option is its name in parentheses."""
    for path in sorted(files):
        line = files[path]
        if isinstance(line, int) and line:
            return [Decl(rule.option or f"({rule.id})", "", "", "behaviour", path, line, i, "", "self")]
    return []


_KINDS: dict[str, Callable[[Rule, int, Files], list[Decl]]] = {
    "fields": _fields, "argparse": _argparse, "enum": _enum, "registry": _registry, "table": _table, "compare": _compare,
    "read": _read, "definition": _definition, "yaml": _yaml, "hydra": _hydra, "shell": _shell, "folder": _folder,
    "file": _file, "marker": _marker,
}  # fmt: skip

#: Kinds whose declarations of one file do not depend on other files.
PER_FILE = frozenset(_KINDS) - {"fields", "hydra", "folder", "marker"}
