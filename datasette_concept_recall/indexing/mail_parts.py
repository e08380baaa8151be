"""The parts of a mail: what is its text, what is attached, what is left out.

Mails are read as they come, so what `email` raises about broken structures is left behind here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from email.policy import compat32
from itertools import count
from pathlib import PurePath

from .mail_headers import decoded, header_text, header_values, raw_bytes

_ENCRYPTED = {
    "multipart/encrypted",
    "application/pkcs7-mime",
    "application/x-pkcs7-mime",
    "application/pgp-encrypted",
}
_SIGNATURES = {
    "application/pgp-signature",
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
}
_MEDIA = {"image", "audio", "video"}

_OFFICE = "application/vnd.openxmlformats-officedocument"
_SUFFIXES = {
    "text/plain": ".txt",
    "text/html": ".html",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/markdown": ".md",
    "application/json": ".json",
    "application/pdf": ".pdf",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
}
"""What the names of attachments end with that say only their type."""


@dataclass(frozen=True)
class Attachment:
    """A part that is a file, or, where it has parts, a mail."""

    name: str
    part: Message


@dataclass
class Contents:
    """The parts of one mail. ``texts`` are alternatives of each other where groups are equal."""

    message: Message
    texts: dict[int, list[Message]] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    media: list[str] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """The subject for people, empty if there is none."""
        return header_text(b" ".join(header_values(self.message, "subject")[:1]))


def contents_of(message: Message) -> Contents:
    """The parts of a mail in their order. Attached mails are attachments, not looked into."""
    contents, groups = Contents(_lenient(message)), count()
    stack: list[tuple[Message, int | None]] = [(message, None)]
    while stack:
        part, group = stack.pop()
        part = _lenient(part)
        kind = part.get_content_type()
        if kind in _ENCRYPTED:
            continue
        if not part.is_multipart():
            _sort_in(contents, part, group, next(groups))
        elif kind.startswith("message/"):
            if kind != "message/delivery-status":
                name = _file_name(part) or _contents_name(part)
                contents.attachments.append(Attachment(name, part))
        else:
            if kind == "multipart/alternative" and group is None:
                group = next(groups)
            stack.extend((child, group) for child in reversed(children(part)))
    return contents


def _sort_in(contents: Contents, part: Message, group: int | None, own_group: int) -> None:
    """Puts a part that has no parts where it belongs: text, attachment, medium, or nothing."""
    kind, name = part.get_content_type(), _file_name(part)
    attached = part.get_content_disposition() == "attachment"
    if kind in _SIGNATURES:
        return
    # What calls itself multipart and has no parts was taken apart on its way; its text is left.
    is_text = kind in ("text/plain", "text/html") or kind.startswith("multipart/")
    if is_text and not name and not attached:
        contents.texts.setdefault(own_group if group is None else group, []).append(part)
    elif part.get_content_maintype() in _MEDIA:
        if attached:
            contents.media.append(name or kind)
    elif name or group is None:
        suffix = _SUFFIXES.get(kind, "")
        if not name and not suffix:
            return
        name = name or f"attachment-{len(contents.attachments) + 1}"
        name = name if PurePath(name).suffix else name + suffix
        contents.attachments.append(Attachment(name, part))


def _lenient(part: Message) -> Message:
    """The same part, its headers read by the old policy, which does not raise on broken ones."""
    part = copy.copy(part)
    part.policy = compat32
    return part


def children(part: Message) -> list[Message]:
    """The parts of a part; an attached mail is the only one of the part that attaches it."""
    parts = part.get_payload()
    return [each for each in parts if isinstance(each, Message)] if parts else []


def _contents_name(part: Message) -> str:
    """What an attached mail without a file name is called: its subject."""
    for child in children(part)[:1]:
        subject = header_text(b" ".join(header_values(child, "subject")[:1]), 100)
        if subject:
            return subject + ".eml"
    return "message.eml"


def _file_name(part: Message) -> str:
    """The name of an attachment without folders, or an empty string."""
    raw = _asked(lambda: part.get_filename()) or ""
    name = header_text(raw_bytes(raw)).replace("\\", "/").rpartition("/")[2].strip()
    return name if len(name) <= 150 else f"{name[:100]}…{name[-40:]}"


def payload_text(part: Message) -> str:
    """What a part says, in its charset, with newlines at the ends of lines."""
    charset = _asked(lambda: part.get_content_charset()) or ""
    return decoded(payload(part), charset).replace("\r\n", "\n").replace("\r", "\n")


def payload(part: Message) -> bytes:
    """The bytes of a part that has no parts, as they were before they were encoded."""
    try:
        data = part.get_payload(decode=True)
    except ValueError:  # encoded as nothing known
        data = raw_bytes(str(part.get_payload()))
    return data if isinstance(data, bytes) else b""


def _asked(question: Callable[[], str | None]) -> str | None:
    """The answer of `email` about a parameter, None for parameters that it cannot put together."""
    try:
        return question()
    except (ValueError, TypeError, LookupError):
        return None
