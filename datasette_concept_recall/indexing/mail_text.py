"""A mail as text: a header block, the text it was sent with, and what its attachments say.

Mails are read as they come: charsets that lie, broken structures and headers that no standard
allows are normal.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from .extract import extract, html_to_markdown
from .failures import DocumentFailure, Unusable
from .mail_headers import UNPRINTABLE, addresses, header_date, header_text, header_values
from .mail_parts import Contents, children, contents_of, payload, payload_text
from .models import Extracted, Segment

ADDRESSES = 10
"""How many addresses of a header are in the text of a mail."""

ATTACHMENT_NAMES = 20
"""How many names of attachments are in its header block."""

_MOST_TRIES = 20_000_000  # a few seconds

_PGP = re.compile(r"-----BEGIN PGP MESSAGE-----.*?(?:-----END PGP MESSAGE-----|\Z)", re.DOTALL)


def parse_mail(raw: bytes) -> Message:
    """A mail from its bytes, whatever they are.

    What is nested too deeply or described in a way that `email` cannot follow has no body.
    """
    parser = BytesParser(policy=compat32)
    try:
        # `email` tries every boundary above a line on it.
        if raw.count(b"\n") * raw.lower().count(b"boundary") <= _MOST_TRIES:
            return parser.parsebytes(raw)
    except (RecursionError, ValueError, TypeError, LookupError, AttributeError):
        pass  # the same as a mail that takes too long
    message = parser.parsebytes(raw, headersonly=True)
    message.set_payload("")
    return message


def mail_segments(message: Message, *, attachment_limit: int = 20_000_000) -> Extracted:
    """The text of a mail: its header block and what it says, then one attachment after the other.

    What it says is its HTML as Markdown, or else its plain text; nothing of what is encrypted. Of
    attachments up to ``attachment_limit`` bytes the text is read when it is their turn, with their
    pages and rows; one that cannot be read is a line that says why. Pictures, sounds and films
    are only named.

    Raises `Unusable` for a mail without headers and text, and where a library is missing for the
    only text there is.
    """
    contents = contents_of(message)
    own = _own_text(contents)
    if not own and not contents.attachments:
        raise Unusable("no_text", "The mail has neither headers nor a text")
    segments = _segments(own, contents, attachment_limit)
    return Extracted("mail", "markdown", segments, contents.subject or None)


def _own_text(contents: Contents) -> str:
    parts = [_header_block(contents), *(_text_of(each) for each in contents.texts.values())]
    return "\n\n".join(part for part in parts if part)


def _header_block(contents: Contents) -> str:
    """The lines that say who wrote to whom, when, about what, with which attachments."""
    message = contents.message
    lines = [
        (name, _some(addresses(header_values(message, name.lower())), ADDRESSES))
        for name in ("From", "To", "Cc")
    ]
    dates = header_values(message, "date")[:1]
    date = header_date(dates[0]) if dates else None
    shown = f"{date:%Y-%m-%d %H:%M} UTC" if date else header_text(b" ".join(dates), 100)
    names = [*(each.name for each in contents.attachments), *contents.media]
    lines += [("Date", shown), ("Subject", contents.subject)]
    lines += [("Attachments", _some(names, ATTACHMENT_NAMES))]
    return "\n".join(f"{name}: {value}" for name, value in lines if value)


def _some(values: Iterable[str | bytes], limit: int) -> str:
    """The first values, and how many more there are."""
    every = list(values)
    shown = [each if isinstance(each, str) else header_text(each, 200) for each in every[:limit]]
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(shown) + more


def _text_of(alternatives: list[Message]) -> str:
    """One text that was sent in one or several forms: HTML as Markdown, or else plain."""
    plain = [part for part in alternatives if part.get_content_type() != "text/html"]
    html = [part for part in alternatives if part.get_content_type() == "text/html"]
    try:
        text = "\n\n".join(html_to_markdown(payload_text(part)).strip() for part in html).strip()
    except Unusable as failure:
        if failure.code == "missing_extra" and not plain:
            raise
        text = "" if plain else f"(not read: {failure.code.replace('_', ' ')})"
    text = text or "\n\n".join(payload_text(part) for part in plain)
    return _PGP.sub("", UNPRINTABLE.sub("", text)).strip()


def _segments(own: str, contents: Contents, limit: int) -> Iterator[Segment]:
    """The text of a mail, then its attachments, then those of mails attached to it."""
    if own:
        yield Segment(own + "\n\n")
    pending = deque(contents.attachments)
    while pending:
        attachment = pending.popleft()
        name, part = attachment.name, attachment.part
        if not part.is_multipart():
            yield from _set_apart(_attachment_segments(name, payload(part), limit))
            continue
        for child in children(part)[:1]:
            attached = contents_of(child)
            yield Segment(_attached_mail(name, attached), part=name)
            pending.extend(attached.attachments)


def _attached_mail(name: str, contents: Contents) -> str:
    try:
        return f"Attachment: {name}\n\n{_own_text(contents)}\n\n"
    except DocumentFailure as failure:
        return _not_read(name, failure.code)


def _attachment_segments(name: str, data: bytes, limit: int) -> Iterator[Segment]:
    """The text of an attachment with its places, up to where it can be read."""
    heading = f"Attachment: {name}\n\n"
    if len(data) > limit:
        yield Segment(_not_read(name, "too_large"), part=name)
        return
    try:
        for segment in extract(name, data).segments:
            part = name if segment.part is None else f"{name}: {segment.part}"
            yield segment._replace(text=heading + segment.text, part=part)
            heading = ""
    except DocumentFailure as failure:
        yield Segment(_not_read(name, failure.code), part=name)
        return
    if heading:
        yield Segment(heading, part=name)


def _not_read(name: str, code: str) -> str:
    return f"Attachment: {name} (not read: {code.replace('_', ' ')})\n\n"


def _set_apart(segments: Iterator[Segment]) -> Iterator[Segment]:
    """The same segments, a blank line after the last."""
    last: Segment | None = None
    for segment in segments:
        if last is not None:
            yield last
        last = segment
    if last is not None:
        yield last._replace(text=last.text.rstrip("\n") + "\n\n")
