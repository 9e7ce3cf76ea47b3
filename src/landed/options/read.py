"""Bytes to facts: which reader for which need, and how facts are kept."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from landed.options import facts as f
from landed.options.python import Memo, read_python
from landed.options.shell import read_shell
from landed.options.yamls import read_yaml
from landed.sources.git import MAX_BLOB_BYTES

_READ: dict[str, Callable[[bytes], f.TextFacts]] = {
    "yaml": read_yaml,
    "shell": read_shell,
}
_TYPE: dict[str, type] = {"python": f.PythonFacts, "yaml": f.TextFacts, "shell": f.TextFacts}
_DECODERS: dict[str, msgspec.msgpack.Decoder[f.PythonFacts | f.TextFacts]] = {
    name: msgspec.msgpack.Decoder(t) for name, t in _TYPE.items()
}
_ENCODER = msgspec.msgpack.Encoder()
_EMPTY: dict[str, Callable[[], f.PythonFacts | f.TextFacts]] = {
    "python": f.PythonFacts,
    "yaml": f.TextFacts,
    "shell": f.TextFacts,
}

Facts = f.PythonFacts | f.TextFacts | int


def read(need: str, data: bytes, patterns: dict[str, re.Pattern[bytes]], memo: Memo | None = None) -> Facts:
    """Facts of one kind. A marker's fact is the line of its first match, 0 if none. ``memo`` is for Python."""
    if need.startswith("marker:"):
        found = patterns[need].search(data)
        return data.count(b"\n", 0, found.start()) + 1 if found else 0
    if len(data) > MAX_BLOB_BYTES:
        return unreadable(need, f"not read: {len(data)} bytes is more than {MAX_BLOB_BYTES}")
    if need == "python":
        return read_python(data, memo)
    return _READ[need](data)


def unreadable(need: str, why: str) -> Facts:
    """Facts of a blob that could not be read: nothing but the problem."""
    if need.startswith("marker:"):
        return 0
    made = _EMPTY[need]()
    made.problems = [f.ProblemFact(1, why)]
    return made


def encode(facts: Facts) -> bytes:
    return _ENCODER.encode(facts)


def decode(need: str, data: bytes) -> Facts:
    if need.startswith("marker:"):
        return int(msgspec.msgpack.decode(data, type=int))
    made: Facts = _DECODERS[need].decode(data)
    return made
