"""Versions as tags and packages write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.version import InvalidVersion, Version

_TAG = re.compile(r"v?(\d.*)")


def version_of(tag: str) -> str:
    """A tag's version as the package index would write it: ``v0.3.0.rc0`` is ``0.3.0rc0``; else the tag without its ``v``."""
    found = _TAG.match(tag)
    text = found[1] if found else tag
    try:
        return str(Version(text))
    except InvalidVersion:
        return text


def is_prerelease(version: str) -> bool:
    """Whether a version announces another one (alpha, beta, rc, dev)."""
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return False


def same_version(a: str, b: str) -> bool:
    """Whether two texts name one version: ``0.5`` is ``0.5.0``, ``v0.3.0.rc0`` is ``0.3.0rc0``."""
    try:
        return Version(version_of(a)) == Version(version_of(b))
    except InvalidVersion:
        return version_of(a) == version_of(b)


def holds(since: str, until: str, at: int, position: Mapping[str, int]) -> bool:
    """Whether a row that begins with release ``since`` and is over in ``until`` (empty: never) holds at a position."""
    return position[since] <= at and (not until or at < position[until])
