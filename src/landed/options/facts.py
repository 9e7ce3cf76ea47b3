"""What one blob says, independent of any framework's rules. Kept on disk by blob id and reader version."""

from __future__ import annotations

import msgspec

#: Part of every cache key: raise it when a reader's output changes.
READER_VERSION = "7"


class _Fact(msgspec.Struct, array_like=True, gc=False):
    pass


class FieldFact(_Fact):
    """A field of a class or a parameter of a function. ``default`` is canonical text, empty if none.

    ``nested`` names the class whose fields lie below this one, if its type or default factory is a class.
    """

    name: str
    type: str
    default: str
    line: int
    choices: list[str] = []
    nested: str = ""


class ClassFact(_Fact):
    name: str
    bases: list[str]
    decorators: list[str]
    line: int
    fields: list[FieldFact]
    init: list[FieldFact]
    members: list[FieldFact]
    trivial: bool


class FunctionFact(_Fact):
    name: str
    line: int
    scope: str


class ArgumentFact(_Fact):
    """An ``add_argument``-like call."""

    call: str
    flags: list[str]
    dest: str
    default: str
    type: str
    choices: list[str]
    line: int
    scope: str


class RegistrationFact(_Fact):
    """Names given to a registering decorator or call, e.g. ``@register_policy_loss("gspo")``."""

    call: str
    names: list[str]
    line: int
    target: str


class TableFact(_Fact):
    """A dictionary, list, tuple or set of names assigned to a variable. ``lines`` is parallel to ``keys``.

    ``values`` is parallel too, for a dictionary: constant values as text, other values empty.
    """

    name: str
    keys: list[str]
    lines: list[int]
    scope: str
    values: list[str] = []


class CompareFact(_Fact):
    """``subject == "x"``, ``subject in ("x", "y")`` or a ``match`` case."""

    subject: str
    values: list[str]
    line: int
    scope: str


class ReadFact(_Fact):
    """``receiver.get("key", default)``, ``getattr(receiver, "key", default)`` or ``receiver["key"]``."""

    how: str
    receiver: str
    key: str
    default: str
    line: int
    scope: str


class ProblemFact(_Fact):
    line: int
    message: str


class PythonFacts(_Fact):
    classes: list[ClassFact] = []
    functions: list[FunctionFact] = []
    arguments: list[ArgumentFact] = []
    registrations: list[RegistrationFact] = []
    tables: list[TableFact] = []
    compares: list[CompareFact] = []
    reads: list[ReadFact] = []
    uses: list[str] = []
    problems: list[ProblemFact] = []


class KeyFact(_Fact):
    """A dotted key of a YAML document, or a ``key=value`` / ``--flag value`` word of a shell script."""

    key: str
    value: str
    line: int
    type: str = ""


class TextFacts(_Fact):
    """Facts of a YAML document or a shell script. ``defaults`` is Hydra's defaults list, one row an entry."""

    keys: list[KeyFact] = []
    defaults: list[list[str]] = []
    package: str = ""
    problems: list[ProblemFact] = []
