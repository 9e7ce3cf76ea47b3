"""Compose a Hydra config from the facts of its YAML files, as ``hydra.compose`` would, without overrides.

Follows Hydra's defaults list: ``group: name``, ``group@package: name``, ``/absolute``, ``optional``,
``override``, ``_self_``, ``# @package`` headers and ``${...}`` in a group's choice. The result maps each
dotted key to its text, file and line; plain references are resolved afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, normpath

from landed.options.facts import KeyFact, TextFacts

Composed = dict[str, tuple[str, str, int]]  # key -> (text, path, line)
_REFERENCE = re.compile(r"^\$\{([^${}]+)\}$")
_INNER = re.compile(r"\$\{([\w.]+)\}")


def compose(files: Mapping[str, TextFacts], primary: str) -> Composed:
    """Compose ``primary`` (a path among ``files``). Unknown groups are left out, cycles are cut."""
    out: Composed = {}
    root = dirname(primary)
    _Composer(files, root, _choices(files.get(primary))).load(primary, "", out, 0)
    return {key: (resolve(out, key), path, line) for key, (_, path, line) in out.items()}


def _choices(facts: TextFacts | None) -> dict[str, str]:
    """Top-level choices of groups and plain values, for ``${group}`` in a defaults list."""
    if facts is None:
        return {}
    found = {k.key: k.value for k in facts.keys}
    for entry, choice in facts.defaults:
        if choice and "$" not in choice:
            found.setdefault(entry.split("@")[0].split(" ")[-1].strip("/"), choice)
    return found


class _Composer:
    def __init__(self, files: Mapping[str, TextFacts], root: str, choices: dict[str, str]) -> None:
        self.files, self.root, self.choices = files, root, choices
        #: names that stand above a key put so far
        self.mappings: set[str] = set()

    def load(self, path: str, package: str, out: Composed, depth: int) -> None:
        facts = self.files.get(path)
        if facts is None or depth > 20:
            return
        done_self = False
        for entry, choice in facts.defaults:
            if entry == "_self_":
                self.put(facts, path, package, out)
                done_self = True
                continue
            if entry.startswith(("override ", "hydra/")) or choice == "null":
                continue
            self.entry(entry.removeprefix("optional ").strip(), choice, path, package, out, depth)
        if not done_self:
            self.put(facts, path, package, out)

    def entry(self, entry: str, choice: str, path: str, package: str, out: Composed, depth: int) -> None:
        group, _, target = entry.partition("@")
        choice = _INNER.sub(lambda m: self.choices.get(m[1], m[0]), choice)
        folder = dirname(path)
        name = f"{group}/{choice}" if choice else group
        absolute = name.startswith("/")
        base = self.root if absolute else folder
        name = name.strip("/")
        if not name.endswith((".yaml", ".yml")):
            name += ".yaml"
        found = normpath(f"{base}/{name}")
        if found not in self.files and not absolute:
            found = normpath(f"{self.root}/{name}")
        if target:
            # a package in the defaults list is relative to the parent's, unless it is _global_
            below = "" if target == "_global_" else target.removeprefix("_global_.")
            if target == "_here_":
                below = package
            elif package and not target.startswith("_global_"):
                below = f"{package}.{below}"
        else:
            own = dirname(name).replace("/", ".") if choice or "/" in group else ""
            below = f"{package}.{own}".strip(".") if own else package
            header = self.files[found].package if found in self.files else ""
            if header == "_global_":
                below = ""
            elif header and header not in ("_group_", "_name_"):
                below = header.removeprefix("_global_.")
        self.load(found, below, out, depth + 1)

    def put(self, facts: TextFacts, path: str, package: str, out: Composed) -> None:
        prefix = f"{package}." if package else ""
        for k in facts.keys:
            self.put_key(out, prefix + k.key, k, path)

    def put_key(self, out: Composed, key: str, fact: KeyFact, path: str) -> None:
        if fact.value == "{}":
            if key in self.mappings and any(o.startswith(f"{key}.") for o in out):
                return
        elif key not in out and key in self.mappings:
            # a value replaces a mapping of the same name
            for below in [o for o in out if o.startswith(f"{key}.")]:
                del out[below]
        if key not in out:
            above = key.rpartition(".")[0]
            while above and above not in self.mappings:
                self.mappings.add(above)
                above = above.rpartition(".")[0]
        out[key] = (fact.value, path, fact.line)


def resolve(values: Mapping[str, tuple[str, str, int]], key: str) -> str:
    """Text of ``key`` after following ``${a.b}``, ``${..x}`` and ``${oc.select:a.b,default}`` references."""
    text = values[key][0]
    for _ in range(10):
        found = _REFERENCE.match(text)
        if not found:
            return text
        target, default = found[1], None
        if target.startswith("oc.select:"):
            target, _, default = target.removeprefix("oc.select:").partition(",")
        if ":" in target:
            return text
        target = target.strip()
        if target.startswith("."):
            up = len(target) - len(target.lstrip("."))
            target = ".".join([*key.split(".")[:-up], target.lstrip(".")]) if up <= key.count(".") + 1 else target
        if target in values:
            text, key = values[target][0], target
        elif default is not None and default != "":
            return default.strip()
        else:
            return text
    return text
