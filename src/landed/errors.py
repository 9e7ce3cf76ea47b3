"""Errors that name the thing, the place and the mend, each with a documented exit code."""


class LandedError(Exception):
    """A failure a person can act on. ``code`` is the process exit code."""

    code = 2

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(message)
        self.mend = mend

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n  mend: {self.mend}" if self.mend else text


class UsageError(LandedError):
    """The command was used wrongly (exit code 2)."""

    code = 2


class SourceError(LandedError):
    """A source of trees failed: missing or damaged repository, no network (exit code 3)."""

    code = 3


class DataError(LandedError):
    """The field's data or a shipped table is not what its schema says (exit code 1)."""

    code = 1
