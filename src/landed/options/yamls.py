"""Facts of a YAML document: dotted keys with their scalar text and line, and Hydra's defaults list.

Nodes are composed, never constructed, so no object is built and aliases are not expanded; a document whose
aliases would expand beyond ``MAX_KEYS`` is cut there and reported. Of a duplicate key the last wins, as in
PyYAML's loader, and the place is reported (OmegaConf would refuse the file).
"""

from __future__ import annotations

import re

import yaml

from landed.options import facts as f

MAX_KEYS = 20_000
_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.M)


def read_yaml(source: bytes) -> f.TextFacts:
    """Facts of one YAML file (all documents). Never raises."""
    out = f.TextFacts([], [], "", [])
    text = source.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in source:
        out.problems.append(f.ProblemFact(1, "not UTF-8: unreadable bytes replaced"))
    found = _PACKAGE.search(text)
    out.package = found.group(1) if found else ""
    rows: dict[str, f.KeyFact] = {}
    try:
        for root in yaml.compose_all(text, Loader=_Loader):
            _Flatten(rows, out).walk(root, "", 0)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        out.problems.append(f.ProblemFact(mark.line + 1 if mark else 1, f"not YAML: {e.problem or e.context}"))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        out.problems.append(f.ProblemFact(1, f"not YAML: {str(e).splitlines()[0] if str(e) else type(e).__name__}"))
    except _TooMany:
        out.problems.append(f.ProblemFact(1, f"more than {MAX_KEYS} keys after aliases: the rest is not read"))
    out.keys = list(rows.values())
    return out


class _TooMany(Exception):
    pass


class _Flatten:
    def __init__(self, rows: dict[str, f.KeyFact], out: f.TextFacts) -> None:
        self.rows, self.out, self.steps = rows, out, 0

    def walk(self, node: yaml.Node | None, prefix: str, depth: int) -> None:
        self.steps += 1
        if self.steps > MAX_KEYS or depth > 100:
            raise _TooMany
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            if not node.value and prefix:
                self.put(prefix, "{}", node)
            for key, value in node.value:
                name = key.value if isinstance(key, yaml.ScalarNode) else "?"
                if name == "<<" and isinstance(value, yaml.MappingNode | yaml.SequenceNode):
                    merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                    for m in reversed(merged):
                        self.walk(m, prefix, depth + 1)
                    continue
                if name in seen:
                    self.out.problems.append(
                        f.ProblemFact(key.start_mark.line + 1, f"duplicate key {prefix + name}: the last one counts")
                    )
                seen.add(name)
                if name == "defaults" and not prefix and isinstance(value, yaml.SequenceNode):
                    self.defaults(value)
                    continue
                self.walk_value(value, f"{prefix}.{name}" if prefix else name, key, depth)
        elif isinstance(node, yaml.ScalarNode | yaml.SequenceNode) and prefix:
            self.put(prefix, _text(node), node)

    def walk_value(self, value: yaml.Node, name: str, key: yaml.Node, depth: int) -> None:
        if isinstance(value, yaml.MappingNode):
            self.walk(value, name, depth + 1)
        else:
            self.steps += 1
            if self.steps > MAX_KEYS:
                raise _TooMany
            self.put(name, _text(value), key)

    def put(self, name: str, text: str, node: yaml.Node) -> None:
        self.rows.pop(name, None)
        self.rows[name] = f.KeyFact(name, text, node.start_mark.line + 1)

    def defaults(self, value: yaml.SequenceNode) -> None:
        for item in value.value:
            if isinstance(item, yaml.ScalarNode):
                self.out.defaults.append([item.value, ""])
            elif isinstance(item, yaml.MappingNode) and item.value:
                k, v = item.value[0]
                text = v.value if isinstance(v, yaml.ScalarNode) else _text(v)
                self.out.defaults.append([str(k.value), "null" if _is_null(v) else text])


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _text(node: yaml.Node, depth: int = 0) -> str:
    """Canonical text of a value, as a default is written in the tables."""
    if isinstance(node, yaml.ScalarNode):
        if _is_null(node):
            return "null"
        if node.tag == "tag:yaml.org,2002:bool":
            return "true" if str(node.value).lower() in ("true", "yes", "on") else "false"
        return str(node.value)
    if depth > 4 or len(node.value) > 200:
        return "…"
    if isinstance(node, yaml.SequenceNode):
        return "[" + ", ".join(_text(v, depth + 1) for v in node.value) + "]"
    return "{" + ", ".join(f"{_text(k, depth + 1)}: {_text(v, depth + 1)}" for k, v in node.value) + "}"
