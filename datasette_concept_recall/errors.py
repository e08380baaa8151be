"""The errors a caller may see. The sentence of each is what the user reads."""

from __future__ import annotations


class RecallError(Exception):
    """The request cannot be answered as it was asked."""


class UnknownProject(RecallError):
    """There is no project of this name in the database, or in any of several."""

    def __init__(self, project: str, place: str = "this database") -> None:
        super().__init__(f"There is no project named {project!r} in {place}")
        self.project = project


class UnknownConcept(RecallError):
    """There is no concept of this name in the database."""

    def __init__(self, name: str) -> None:
        shown = name if len(name) <= 200 else name[:200] + "…"
        super().__init__(f"There is no concept named {shown} in this database")


class BadParameter(RecallError):
    """A parameter has a value that cannot be used; the message names both."""


NO_TOKEN = "_next is not a token that an earlier page gave"


class DatabaseUnreadable(RecallError):
    """A file cannot be opened or read as a SQLite database; the message says why."""


class TextTooLong(RecallError):
    """The text is longer than what is matched in one request."""


class BadConfiguration(RecallError):
    """The configuration has a value that cannot be used; the message names its key."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key, self.problem = key, problem

    def within(self, key: str) -> BadConfiguration:
        """The same error of a part of the configuration that stands under a key."""
        return BadConfiguration(f"{key}.{self.key}", self.problem)
