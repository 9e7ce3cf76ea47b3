"""The line a person writes to turn an option on, in the style of the framework."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE]-?\d+)?$")
_PLAIN = {"true": "True", "false": "False", "null": "None"}


def paste(style: str, option: str, value: str, kind: str, on: str = "") -> str:
    """``style`` is the framework's (hydra, flags, python, yaml); ``VALUE`` stands where a number is the person's choice."""
    if kind == "behaviour" or option.startswith("("):
        return "(nothing to write: it is always on)"
    if kind in ("folder", "file"):
        return f"(run the recipe: {value or option})"
    if kind == "class":
        return f"{value or option}(...)"
    want = value or (on if on not in ("nonnull", "nonzero") else "")
    if option.startswith("-"):
        if kind == "bool":
            return option if want != "false" else f"(leave {option} out)"
        return f"{option} {want or 'VALUE'}"
    if not want and kind.lower().startswith("bool"):
        want = "true"
    if style == "python" and re.match(r"[A-Z]\w*\.\w+$", option):
        cls, _, field = option.partition(".")
        literal = want if not want or _NUMBER.match(want) else _PLAIN.get(want, f'"{want}"')
        return f"{cls}({field}={literal or 'VALUE'})"
    if style == "hydra":
        return f"{option}={want or 'VALUE'}"
    return f"{option}: {want or 'VALUE'}"
