"""Names as people write them: forgiving matches and near misses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[\s_\-./]+")


def fold(name: str) -> str:
    """A name without case, separators and leading dashes: ``Clip Higher`` and ``clip_higher`` are one."""
    return _SEPARATORS.sub("", name.strip().lower().lstrip("-+"))


def near(name: str, known: Iterable[str], n: int = 5) -> str:
    """A sentence with the closest known names."""
    names = list(known)
    folded = {fold(k): k for k in reversed(names)}
    found = [folded[x] for x in difflib.get_close_matches(fold(name), list(folded), n, 0.5)]
    if not found:
        found = [k for f, k in folded.items() if fold(name) and fold(name) in f][:n]
    return f"did you mean {', '.join(found)}?" if found else f"known: {', '.join(sorted(names)[:12])}"
