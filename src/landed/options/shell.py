"""Facts of a shell script: ``key=value`` words and ``--flag value`` pairs, with line, nothing executed.

Words are taken from commands and arrays, over continuations; variables assigned once in the same script
are put in their place, everything else stays as written.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from landed.options import facts as f

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_OVERRIDE = re.compile(r"^(\+{0,2}|~)([A-Za-z_][\w./@-]*)=(.*)$", re.S)
_FLAG = re.compile(r"^--?[A-Za-z][\w.-]*(=|$)")
_VAR = re.compile(r"\$\{?(\w+)(?::-([^}]*))?\}?")
_ASCII = bytes(b if 0 < b < 128 else ord("_") for b in range(256))


@functools.cache
def _tools() -> tuple[Parser, Query]:
    import tree_sitter_bash
    from tree_sitter import Language, Parser, Query

    language = Language(tree_sitter_bash.language())
    query = Query(language, "(command argument: (_) @word) (array (_) @word) (variable_assignment) @set")
    return Parser(language), query


def read_shell(source: bytes) -> f.TextFacts:
    """Facts of one script. Never raises."""
    from tree_sitter import QueryCursor

    out = f.TextFacts([], [], "", [])
    parser, query = _tools()
    # The grammar's scanner looks characters up in a table of one byte and crashes on some others, so it is given
    # a letter for every byte outside ASCII; text is taken from the source, whose bytes stand at the same places.
    tree = parser.parse(source.translate(_ASCII))
    captures = QueryCursor(query).captures(tree.root_node)
    variables: dict[str, str] = {}
    for node in sorted(captures.get("set", []), key=lambda n: n.start_byte):
        name, assigned = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and assigned is not None and assigned.type != "array":
            variables[_source(source, name)] = "" if _source(source, name) in variables else _word(source, assigned)
    pending: f.KeyFact | None = None
    parent = -1
    for node in sorted(captures.get("word", []), key=lambda n: (n.start_byte, -n.end_byte)):
        text = _expand(_word(source, node), variables)
        line = node.start_point[0] + 1
        if node.parent is not None and node.parent.id != parent:
            parent, pending = node.parent.id, None  # another command or array: its words are no values of this flag
        override = _OVERRIDE.match(text)
        if _FLAG.match(text):
            key, eq, value = text.partition("=")
            pending = f.KeyFact(key, value, line, "flag")
            out.keys.append(pending)
            if eq:
                pending = None
        elif override:
            out.keys.append(f.KeyFact(override[2], _unquote(override[3]), line, override[1] or "="))
            pending = None
        elif pending is not None:
            pending.value = f"{pending.value} {text}".strip()
    # ``KEY=value python x.py`` and lone assignments are environment, but scripts also keep settings there
    for node in captures.get("set", []):
        named = node.child_by_field_name("name")
        if named is not None:
            key = _source(source, named)
            out.keys.append(f.KeyFact(f"${key}", variables.get(key, ""), node.start_point[0] + 1, "variable"))
    if tree.root_node.has_error:
        bad = _first_error(tree.root_node)
        out.problems.append(f.ProblemFact(bad, "not read whole: shell syntax"))
    out.keys.sort(key=lambda k: (k.line, k.key))
    return out


def _source(source: bytes, node: Node) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _word(source: bytes, node: Node) -> str:
    text = _source(source, node).replace("\\\n", "")
    return _unquote(text)


def _expand(text: str, variables: dict[str, str]) -> str:
    for _ in range(3):
        new = _VAR.sub(lambda m: variables.get(m[1]) or (m[2] or m[0]), text)
        if new == text:
            return new
        text = new
    return text


def _first_error(node: Node) -> int:
    while True:
        bad = next((c for c in node.children if c.has_error or c.is_missing), None)
        if bad is None:
            return int(node.start_point[0]) + 1
        node = bad
