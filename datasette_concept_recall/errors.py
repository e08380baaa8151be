"""The errors a caller may see. The sentence of each is what the user reads."""

from __future__ import annotations


class RecallError(Exception):
    """The request cannot be answered as it was asked."""


class UnknownProject(RecallError):
    """There is no project of this name in the database."""

    def __init__(self, project: str) -> None:
        super().__init__(f"There is no project named {project!r} in this database")
        self.project = project


class BadParameter(RecallError):
    """A parameter has a value that cannot be used; the message names both."""


class DatabaseUnreadable(RecallError):
    """A file cannot be opened or read as a SQLite database; the message says why."""


class TextTooLong(RecallError):
    """The text is longer than what is matched in one request."""
