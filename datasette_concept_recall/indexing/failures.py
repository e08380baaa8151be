"""What can go wrong with one document, with a source, or with a whole run."""

from __future__ import annotations

from typing import Literal

from ..errors import RecallError

Permanent = Literal[
    "no_text",
    "not_text",
    "invalid",
    "encrypted",
    "unknown_format",
    "executable",
    "unsupported",
    "too_large",
    "missing_extra",
]
"""Why a document is left alone until it changes."""

Temporary = Literal[
    "not_found", "not_readable", "locked", "timeout", "changed", "internal", "filter", "embedder"
]
"""Why a document is tried again in the next run."""


class DocumentFailure(RecallError):
    """A document cannot be indexed now; its stored version stays."""

    code: str


class Unusable(DocumentFailure):
    """A document cannot be indexed as it is, so it is left alone until it changes.

    ``extra`` names what to install, with ``missing_extra`` as the code.
    """

    def __init__(self, code: Permanent, problem: str, extra: str | None = None) -> None:
        super().__init__(problem)
        self.code, self.extra = code, extra


class Unavailable(DocumentFailure):
    """A document cannot be read at the moment."""

    def __init__(self, code: Temporary, problem: str) -> None:
        super().__init__(problem)
        self.code = code


class SourceUnreachable(RecallError):
    """A source as a whole cannot be read at the moment; nothing of it is removed."""


def missing(extra: str, what: str) -> Unusable:
    """What to raise where a library is not installed that reads ``what``."""
    return Unusable(
        "missing_extra",
        f"{what} need more to be read: pip install 'datasette-concept-recall[{extra}]'",
        extra,
    )
