"""A mailbox in files as a source: mbox, Maildir, or a folder of mbox and ``.eml`` files.

A mail is one document however many folders hold it, since its key comes from what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ..clock import stamp
from ..failures import SourceUnreachable, Unavailable, Unusable
from ..mail_text import mail_segments, parse_mail
from ..models import Entry, Listing, Location, Opened
from .mail_folders import Copy, Folder, Mbox, is_mbox, reason, storable
from .mail_identity import EVERY_MAIL as EVERY_MAIL
from .mail_identity import Mail, hash_of_content, measured
from .mail_walk import Walk

MESSAGE_LIMIT = 100_000_000
"""The largest mail that is read, in bytes."""


class MailboxSource:
    """The mails below ``path``: an mbox file, a Maildir with its subfolders, or a folder of mbox
    and ``.eml`` files, with folders in it. What was thrown away is left out, unless ``path`` itself
    is such a folder. Symbolic links are not followed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folders: dict[str, Folder] = {}

    def listing(self) -> Listing:
        """All mails, the newest first.

        Problems name folders by their number, in the order of the walk. Raises `SourceUnreachable`
        where no mailbox is.
        """
        problems = self._look()
        found: dict[bytes, tuple[Mail, Copy, list[Location]]] = {}
        for number, (name, folder) in enumerate(self._folders.items(), 1):
            unread = 0
            try:
                for each in folder.copies():
                    if each.mail is None:
                        unread += 1
                    elif "T" not in each.flags:
                        *_, locations = found.setdefault(each.mail.key, (each.mail, each, []))
                        locations.append(Location(name, each.position, each.flags))
            except OSError as error:
                problems.append(f"Folder {number} could not be read: {reason(error)}")
            if unread:
                problems.append(f"{unread} mails of folder {number} could not be read")
        entries = [_entry(*each) for each in found.values()]
        entries.sort(key=lambda entry: entry.key)
        entries.sort(key=lambda entry: entry.created_at or "", reverse=True)
        return Listing(entries, (EVERY_MAIL,) if problems else (), tuple(problems))

    def read(self, entry: Entry) -> Opened:
        """A mail from the first of its locations that still holds it.

        Raises `Unavailable` if none does or can be read, `Unusable` for a mail larger than
        `MESSAGE_LIMIT`, and `SourceUnreachable` where no mailbox is any more.
        """
        place = self._place(entry)
        if place is None:
            raise Unavailable("not_found", "The mail is in none of the folders where it was")
        folder, position, _ = place
        try:
            with closing(folder.blocks(position)) as blocks:
                raw = _joined(blocks)
        except OSError as error:
            raise Unavailable("not_readable", reason(error)) from error
        return Opened(hash_of_content(raw), "mail", lambda: mail_segments(parse_mail(raw)))

    def fingerprint(self, entry: Entry) -> str | None:
        """The fingerprint that a mail has now, or None if no location holds it any more.

        Raises `Unavailable` if a location cannot be read and no other holds it.
        """
        place = self._place(entry)
        return place[2].fingerprint if place else None

    def _place(self, entry: Entry) -> tuple[Folder, str, Mail] | None:
        """The first folder and position where a mail still is, and what it is there."""
        if not self._folders:
            self._look()
        unreadable: OSError | None = None
        for location in entry.locations:
            folder = self._folders.get(location.folder)
            if folder is None:
                continue
            try:
                with closing(folder.blocks(location.position)) as blocks:
                    mail = measured(blocks)
            except FileNotFoundError:
                continue
            except OSError as error:
                unreadable = error
                continue
            if mail.key == entry.key:
                return folder, location.position, mail
        if unreadable is not None:
            raise Unavailable("not_readable", reason(unreadable)) from unreadable
        self._look()  # else a mailbox that went away would look like mails that did
        return None

    def _look(self) -> list[str]:
        """Finds the folders, and gives the problems there were."""
        try:
            if not self.path.is_dir():
                if not (self.path.stat().st_size == 0 or is_mbox(self.path)):
                    raise SourceUnreachable("The file is not an mbox")
                self._folders = {storable(self.path.name): Mbox(self.path)}
                return []
        except OSError as error:
            raise SourceUnreachable(f"The mailbox cannot be read: {reason(error)}") from error
        walk = Walk(self.path)
        if not walk.has_mail:
            raise SourceUnreachable("; ".join(["The folder holds no mailbox", *walk.problems]))
        self._folders = walk.folders
        return walk.problems


def _entry(mail: Mail, first: Copy, locations: list[Location]) -> Entry:
    """A mail as a document, dated like its first copy."""
    return Entry(
        mail.key,
        mail.title,
        mail.fingerprint,
        path=locations[0].folder,
        created_at=stamp(first.date) if first.date else None,
        size=mail.size,
        locations=tuple(locations),
    )


def _joined(blocks: Iterator[bytes]) -> bytes:
    """A whole mail, unless it is larger than what is read."""
    found, size = [], 0
    for block in blocks:
        size += len(block)
        if size > MESSAGE_LIMIT:
            raise Unusable("too_large", f"The mail has more than {MESSAGE_LIMIT:,} bytes")
        found.append(block)
    return b"".join(found)
