"""Promises about mailboxes in files: what is listed, what a mail is told apart by, what it says."""

from __future__ import annotations

import mailbox
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_concept_recall.indexing import mail_text
from datasette_concept_recall.indexing.failures import (
    DocumentFailure,
    SourceUnreachable,
    Unavailable,
    Unusable,
    missing,
)
from datasette_concept_recall.indexing.mail_text import header_text, mail_segments, parse_mail
from datasette_concept_recall.indexing.models import Entry, Extracted, Segment
from datasette_concept_recall.indexing.sources import mail_identity
from datasette_concept_recall.indexing.sources import mailbox as mailbox_module
from datasette_concept_recall.indexing.sources.mailbox import EVERY_MAIL, MailboxSource

LINE = "The old mill by the river grinds again.\n"


def a_mail(subject: str = "Mill", number: int = 1, body: str = LINE) -> EmailMessage:
    """A plain mail; a higher number is a later hour."""
    message = EmailMessage()
    message["Message-ID"] = f"<{number}@example.com>"
    message["Date"] = f"Mon, 02 Nov 2026 {number % 24:02}:30:00 +0100"
    message["From"] = "Miller <miller@example.com>"
    message["To"] = "Baker <baker@example.com>"
    message["Subject"] = subject
    message.set_content(body)
    return message


def an_mbox(path: Path, *messages: Message | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    box = mailbox.mbox(path)
    for message in messages:
        box.add(message)
    box.close()
    return path


def a_maildir(path: Path, *messages: Message | bytes) -> mailbox.Maildir:
    box = mailbox.Maildir(path)
    for message in messages:
        box.add(message)
    return box


def entries(path: Path) -> list[Entry]:
    return MailboxSource(path).listing().entries


def text_of(message: Message | bytes) -> str:
    raw = message if isinstance(message, bytes) else message.as_bytes()
    return "".join(segment.text for segment in mail_segments(parse_mail(raw)).segments)


def read_text(source: MailboxSource, entry: Entry) -> str:
    return "".join(segment.text for segment in source.read(entry).extract().segments)


def with_attachment(name: str, data: bytes, kind: str = "application/octet-stream") -> EmailMessage:
    message = a_mail()
    maintype, _, subtype = kind.partition("/")
    message.add_attachment(data, maintype=maintype, subtype=subtype, filename=name)
    return message


# Listing


def test_an_mbox_is_listed_with_the_newest_mail_first(tmp_path: Path) -> None:
    """Each mail of an mbox is an entry with subject, time in UTC and folder, newest first."""
    path = an_mbox(tmp_path / "work.mbox", a_mail("One", 1), a_mail("Three", 3), a_mail("Two", 2))
    found = entries(path)
    assert [entry.title for entry in found] == ["Three", "Two", "One"]
    assert found[0].created_at == "2026-11-02T02:30:00Z"
    assert {entry.path for entry in found} == {"work.mbox"}
    assert all(entry.key.startswith(b"mail:") and len(entry.key) == 69 for entry in found)


def test_the_form_of_keys_and_fingerprints_is_pinned(tmp_path: Path) -> None:
    """Key and fingerprint of a mail are these literal values, or every index is built anew."""
    (tmp_path / "box").write_bytes(
        b"From x Tue Nov  3 10:00:00 2026\nMessage-ID: <1@example.com>\n"
        b"Date: Mon, 02 Nov 2026 01:30:00 +0100\nFrom: Miller <miller@example.com>\n"
        b"Subject: Mill\n\nThe old mill by the river grinds again.\n"
    )
    (entry,) = entries(tmp_path / "box")
    assert entry.key == b"mail:d36bece0fb17162ca58c19099a2ce16b9f4fdcee4c3f241077de7a62946f84f2"
    assert entry.fingerprint == "f5e1d7881b609786209387861e47cb1be4235b2777f11b0d1e3a4e251568ef9c"


def test_what_an_mbox_quotes_is_read_as_it_was_sent(tmp_path: Path) -> None:
    """The sign that an mbox puts before a line is taken off, and only one."""
    mail = a_mail(body="From here on.\n>>From there.\n")
    source = MailboxSource(an_mbox(tmp_path / "box", mail))
    assert b"\n>From here" in source.path.read_bytes()
    (entry,) = source.listing().entries
    assert read_text(source, entry).endswith("\n\nFrom here on.\n>From there.\n\n")


def test_a_mailbox_that_is_being_written_gives_what_is_there(tmp_path: Path) -> None:
    """The mails before one that is still being appended keep their keys."""
    path = an_mbox(tmp_path / "box", a_mail("One", 1), a_mail("Two", 2))
    before = entries(path)
    with path.open("ab") as file:
        file.write(b"From x Tue Nov  3 10:00:00 2026\nSubj")
    after = entries(path)
    assert [entry for entry in after if entry in before] == before
    assert len(after) == 3


def test_the_same_mail_has_the_same_key_in_every_folder_and_format(tmp_path: Path) -> None:
    """A mail in two mbox files, a Maildir and a file is one entry with all its locations."""
    mail = a_mail(body="Quoted:\n\nFrom here on it is quoted in an mbox.\n>From there too.\n\n\n")
    an_mbox(tmp_path / "a" / "Inbox", a_mail("Other", 2), mail)
    an_mbox(tmp_path / "a" / "Sent", mail)
    a_maildir(tmp_path / "b", mail)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "kept.eml").write_bytes(mail.as_bytes().replace(b"\n", b"\r\n"))
    found = {entry.title: entry for entry in entries(tmp_path)}
    assert sorted(found) == ["Mill", "Other"]
    assert [place.folder for place in found["Mill"].locations] == ["a/Inbox", "a/Sent", "b", "c"]


def test_a_mail_twice_in_one_mbox_is_one_entry_with_two_positions(tmp_path: Path) -> None:
    """Duplicates within an mbox share a key, and their positions are different."""
    (entry,) = entries(an_mbox(tmp_path / "box", a_mail(), a_mail()))
    assert len({place.position for place in entry.locations}) == 2


def test_mails_that_differ_in_one_part_of_their_origin_are_different(tmp_path: Path) -> None:
    """Message-ID, date, sender, subject and size each tell mails apart."""
    mails = [a_mail() for _ in range(6)]
    for mail, (name, value) in zip(
        mails,
        [
            ("Message-ID", "<x@example.com>"),
            ("Date", "Mon, 02 Nov 2026 01:30:01 +0100"),
            ("From", "Bakers <bakers@example.com>"),
            ("Subject", "Till"),
        ],
        strict=False,
    ):
        del mail[name]
        mail[name] = value
    mails[4].set_content(LINE + "More.\n")
    assert len({entry.key for entry in entries(an_mbox(tmp_path / "box", *mails))}) == 6


@pytest.mark.parametrize("change", ["move", "copy", "flags"])
def test_moves_copies_and_flags_change_only_the_locations(tmp_path: Path, change: str) -> None:
    """Key and fingerprint stay when a mail of a Maildir is moved, copied or marked."""
    box = a_maildir(tmp_path / "box", a_mail())
    (before,) = entries(tmp_path / "box")
    (key,) = box.keys()
    if change == "flags":
        message = box[key]
        message.set_subdir("cur")
        message.set_flags("RS")
        box[key] = message
    else:
        box.add_folder("Mills").add(box[key])
        if change == "move":
            box.remove(key)
    (after,) = entries(tmp_path / "box")
    assert (after.key, after.fingerprint) == (before.key, before.fingerprint)
    assert after.locations != before.locations
    folders = {"move": ["Mills"], "copy": ["INBOX", "Mills"], "flags": ["INBOX"]}[change]
    assert [place.folder for place in after.locations] == folders
    assert after.locations[0].flags == ("RS" if change == "flags" else "")


def test_flags_in_the_headers_of_an_mbox_are_no_change(tmp_path: Path) -> None:
    """Status headers that a mail program adds give flags, and leave key, fingerprint and hash."""
    (before,) = entries(path := an_mbox(tmp_path / "box", a_mail()))
    content = MailboxSource(path).read(before).content_hash
    box = mailbox.mbox(path)
    ((key, message),) = box.items()
    message.set_flags("ROF")
    message.add_flag("A")
    box[key] = message
    box.close()
    assert b"\nX-Status: " in path.read_bytes()
    (after,) = entries(path)
    assert (after.key, after.fingerprint) == (before.key, before.fingerprint)
    assert [place.flags for place in after.locations] == ["FRS"]
    assert MailboxSource(path).read(after).content_hash == content


@pytest.mark.parametrize(
    "status", [b"X-Status: D", b"X-Mozilla-Status: 0009", b"X-IMAP: 1577836800 0000000001"]
)
def test_mails_marked_as_deleted_in_an_mbox_are_left_out(tmp_path: Path, status: bytes) -> None:
    """A deleted mail that its program has not yet taken out of the file is not listed."""
    path = an_mbox(tmp_path / "box", status + b"\n" + a_mail("Gone", 1).as_bytes(), a_mail("Kept"))
    assert [entry.title for entry in entries(path)] == ["Kept"]


def test_what_was_thrown_away_is_never_listed(tmp_path: Path) -> None:
    """Trash and junk are left out as subfolders, as files, and by the flag of a Maildir."""
    box = a_maildir(tmp_path / "box", a_mail("Kept"))
    for number, name in enumerate(["Trash", "JUNK", "Archive.Spam", "Deleted Items"], 2):
        box.add_folder(name).add(a_mail(name, number))
    trashed = mailbox.MaildirMessage(a_mail("Flagged", 9))
    trashed.set_subdir("cur")
    trashed.set_flags("ST")
    box.add(trashed)
    an_mbox(tmp_path / "files" / "Trash.mbox", a_mail("File", 10))
    an_mbox(tmp_path / "files" / "Trash.sbd" / "Old", a_mail("Below", 11))
    an_mbox(tmp_path / "files" / "Trashy", a_mail("No trash", 12))
    assert [entry.title for entry in entries(tmp_path)] == ["No trash", "Kept"]
    assert [entry.title for entry in entries(tmp_path / "files" / "Trash.mbox")] == ["File"]


def test_a_mail_without_a_date_gets_that_of_its_arrival(tmp_path: Path) -> None:
    """Without a Date header the Received header counts, then the From line, then the file."""
    path = tmp_path / "box"
    path.write_bytes(
        b"From a@example.com Tue Nov  3 10:00:00 2026\nSubject: Line\nDate: sometime\n\nx\n\n"
        b"From a@example.com Tue Nov  3 10:00:00 2026\nSubject: Received\n"
        b"Received: from a by b;\n Mon, 2 Nov 2026 09:00:00 +0000\n\nx\n\n"
        b"From \nSubject: Nothing\n\nx\n"
    )
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert {entry.title: entry.created_at for entry in entries(path)} == {
        "Line": "2026-11-03T10:00:00Z",
        "Received": "2026-11-02T09:00:00Z",
        "Nothing": "2001-09-09T01:46:40Z",
    }


def test_a_line_of_a_mail_that_begins_with_from_does_not_end_it(tmp_path: Path) -> None:
    """Only a line with a time of arrival, or with nothing behind ``From``, begins a mail."""
    body = b"\n\nFrom my window I see the mill.\nFrom Monday on it grinds at 10:30.\n"
    path = tmp_path / "box"
    path.write_bytes(b"From a@example.com Tue Nov  3 10:00:00 2026\nSubject: One" + body)
    source = MailboxSource(path)
    (entry,) = source.listing().entries
    assert "From Monday on" in read_text(source, entry)


def test_a_subject_and_folder_names_are_shown_decoded(tmp_path: Path) -> None:
    """The title is the decoded subject, or a substitute, and no folder name is in the text."""
    box = a_maildir(tmp_path / "box")
    folder = box.add_folder("Secret.Plans")
    folder.add(b"Subject: =?utf-8?b?TcO8aGxl?=\n =?utf-8?q?_am_?= Bach\n\nGrain.\n")
    folder.add(b"Date: Mon, 02 Nov 2026 01:30:00 +0100\n\nFlour.\n")
    source = MailboxSource(tmp_path / "box")
    found = source.listing().entries
    assert {entry.title for entry in found} == {"Mühle am Bach", "(no subject)"}
    assert {entry.path for entry in found} == {"Secret/Plans"}
    assert not any("Secret" in read_text(source, entry) for entry in found)


def test_two_folders_that_are_shown_alike_are_both_read(tmp_path: Path) -> None:
    """A subfolder of a Maildir with a dot before its name does not hide one without."""
    a_maildir(tmp_path / "box").add_folder("Old").add(a_mail("Dot", 1))
    a_maildir(tmp_path / "box" / "Old", a_mail("None", 2))
    source = MailboxSource(tmp_path / "box")
    found = source.listing().entries
    assert [entry.title for entry in found] == ["None", "Dot"]
    assert [source.fingerprint(entry) for entry in found] == [each.fingerprint for each in found]


def test_an_empty_mailbox_is_empty_and_a_missing_one_is_unreachable(tmp_path: Path) -> None:
    """An empty mbox or Maildir has no mails; a missing, foreign or empty root is unreachable."""
    (tmp_path / "box").touch()
    a_maildir(tmp_path / "maildir")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "Inbox").touch()
    for name in ("box", "maildir", "tree"):
        assert MailboxSource(tmp_path / name).listing().entries == []
    (tmp_path / "mount").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("No mail.")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    for name in ("missing", "mount", "notes", "binary"):
        with pytest.raises(SourceUnreachable):
            MailboxSource(tmp_path / name).listing()


def test_a_folder_that_cannot_be_read_keeps_what_it_held(tmp_path: Path) -> None:
    """A damaged subfolder makes all mails unverified and is told by its number, not its name."""
    box = a_maildir(tmp_path / "box", a_mail())
    box.add_folder("Private").add(a_mail("Secret", 2))
    shutil.rmtree(tmp_path / "box" / ".Private" / "cur")
    listing = MailboxSource(tmp_path / "box").listing()
    assert [entry.title for entry in listing.entries] == ["Mill"]
    assert listing.unverified == (EVERY_MAIL,)
    assert listing.problems == ("Folder 2 could not be read: No such file or directory",)


def test_a_mail_that_cannot_be_read_keeps_what_was_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without permission is counted in a problem; reading it is a temporary failure."""
    a_maildir(tmp_path / "box", a_mail("Open", 1), a_mail("Closed", 2))
    source = MailboxSource(tmp_path / "box")
    closed = next(entry for entry in source.listing().entries if entry.title == "Closed")
    real = Path.open

    def refuse(path: Path, mode: str) -> object:
        if path.name == closed.locations[0].position:
            raise PermissionError(13, "Permission denied")
        return real(path, mode)

    monkeypatch.setattr(Path, "open", refuse)
    listing = source.listing()
    assert [entry.title for entry in listing.entries] == ["Open"]
    assert listing.unverified == (EVERY_MAIL,)
    assert listing.problems == ("1 mails of folder 1 could not be read",)
    with pytest.raises(Unavailable, match="Permission denied") as caught:
        source.read(closed)
    assert caught.value.code == "not_readable"


def test_problems_name_neither_subjects_nor_addresses_nor_folders(tmp_path: Path) -> None:
    """What is logged of a mailbox with a broken file has no word of its names."""
    an_mbox(tmp_path / "box" / "Inbox", a_mail("Secret"))
    (tmp_path / "box" / "Private.mbox").write_bytes(b"\0" * 100)
    listing = MailboxSource(tmp_path / "box").listing()
    assert listing.problems == ("A file is called mbox and is none",)
    assert listing.unverified == (EVERY_MAIL,)


# Reading


@pytest.mark.parametrize("make", [an_mbox, a_maildir])
def test_a_mail_is_read_from_where_the_listing_found_it(
    tmp_path: Path, make: Callable[..., object]
) -> None:
    """Every mail of an mbox and a Maildir gives its own text, and its fingerprint again."""
    make(tmp_path / "box", *(a_mail(f"Mail {n}", n, f"Text {n}.\n" * 9_000) for n in range(5)))
    source = MailboxSource(tmp_path / "box")
    for entry in source.listing().entries:
        opened = source.read(entry)
        assert opened.kind == "mail"
        number = entry.title.removeprefix("Mail ")
        text = "".join(segment.text for segment in opened.extract().segments)
        assert text.count(f"Text {number}.") == 9_000
        assert text.count("Text") == 9_000
        assert MailboxSource(tmp_path / "box").fingerprint(entry) == entry.fingerprint


def test_a_mail_is_read_from_the_first_place_that_still_holds_it(tmp_path: Path) -> None:
    """A copy elsewhere serves when the first is gone; without any the mail is not found."""
    box = a_maildir(tmp_path / "box", a_mail())
    folder = box.add_folder("Mills")
    folder.add(a_mail())
    source = MailboxSource(tmp_path / "box")
    (entry,) = source.listing().entries
    box.clear()
    assert "old mill" in read_text(source, entry)
    assert source.fingerprint(entry) == entry.fingerprint
    folder.clear()
    assert source.fingerprint(entry) is None
    with pytest.raises(Unavailable) as caught:
        source.read(entry)
    assert caught.value.code == "not_found"
    shutil.rmtree(tmp_path / "box")
    with pytest.raises(SourceUnreachable):
        source.read(entry)


def test_a_mail_marked_between_listing_and_reading_is_found(tmp_path: Path) -> None:
    """The file of a Maildir that got another name with its flags is still the same mail."""
    a_maildir(tmp_path / "box", a_mail())
    source = MailboxSource(tmp_path / "box")
    (entry,) = source.listing().entries
    (file,) = (tmp_path / "box" / "new").iterdir()
    file.rename(tmp_path / "box" / "cur" / (file.name + ":2,S"))
    assert "old mill" in read_text(source, entry)


def test_an_mbox_may_grow_and_be_packed_between_listing_and_reading(tmp_path: Path) -> None:
    """An appended mail disturbs no other, and no mail is taken for the one that was there."""
    path = an_mbox(tmp_path / "box", a_mail("One", 1), a_mail("Two", 2))
    source = MailboxSource(path)
    two, one = source.listing().entries
    an_mbox(path, a_mail("Three", 3))
    assert source.fingerprint(two) == two.fingerprint
    assert source.listing().entries[1:] == [two, one]
    path.unlink()
    an_mbox(path, a_mail("Six", 6), a_mail("Two", 2))
    assert source.fingerprint(one) is None
    assert source.fingerprint(two) == two.fingerprint


def test_a_huge_mail_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail beyond the limit is listed, and reading it says that it is too large."""
    monkeypatch.setattr(mailbox_module, "MESSAGE_LIMIT", 200_000)
    source = MailboxSource(an_mbox(tmp_path / "box", a_mail(body=LINE * 10_000)))
    (entry,) = source.listing().entries
    with pytest.raises(Unusable) as caught:
        source.read(entry)
    assert caught.value.code == "too_large"


def test_a_file_that_is_one_line_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    """Blocks of a file without line ends stay small, and the mail after them is found."""
    path = tmp_path / "box"
    path.write_bytes(
        b"From x Tue Nov  3 10:00:00 2026\nSubject: Line\n\n" + b"x" * 500_000 + b"\n"
        b"From x Tue Nov  3 10:00:00 2026\nSubject: Next\n\nx\n"
    )
    with path.open("rb") as file:
        sizes = [len(block) for block in mail_identity.blocks_of(file)]
    assert max(sizes) <= 2 * 65_536 + 1
    assert {entry.title: entry.size > 500_000 for entry in entries(path)} == {
        "Line": True,
        "Next": False,
    }


PIECES = [
    *(b"From x Tue Nov  3 10:00:00 2026\n", b"From \n", b"Subject: a\n", b"Date: b\n", b"\n"),
    *(b"\r\n", b">From x\n", b"Status: RO\n", b" folded\n", b"text\n", b"=?b?", b"\0", b"\xff"),
    *(b"Content-Type: multipart/mixed; boundary=b\n", b"--b\n", b"--b--\n"),
    *(b"Content-Type: text/html; charset=utf-16\n", b"Content-Transfer-Encoding: base64\n"),
]


@given(
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=30), max_size=25),
    st.booleans(),
)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_a_mailbox_or_unreachable(
    tmp_path: Path, pieces: list[bytes], is_mbox: bool
) -> None:
    """Listing random bytes works or says that they are no mbox; each mail gives text or why not."""
    path = tmp_path / "box"
    path.write_bytes((b"From x\n" if is_mbox else b"") + b"".join(pieces))
    source = MailboxSource(path)
    try:
        found = source.listing().entries
    except SourceUnreachable:
        assert not path.read_bytes().startswith(b"From ")
        return
    for entry in found:
        assert source.fingerprint(entry) == entry.fingerprint
        entry.title.encode()
        try:
            text = read_text(source, entry)
        except DocumentFailure:
            continue
        assert text.strip()
        text.encode()


@given(st.text("aF>\r\n", max_size=40), st.integers(min_value=1, max_value=9))
@settings(max_examples=100, deadline=None)
def test_how_a_mail_is_cut_into_blocks_does_not_matter(text: str, lines: int) -> None:
    """What a mail is told apart by is the same if its bytes come whole or some lines at a time."""
    raw = b"Subject: x\n\n" + text.replace("F", "From ").encode()
    split = raw.split(b"\n")
    cut = [b"\n".join(split[n : n + lines]) for n in range(0, len(split), lines)]
    blocks = [*(block + b"\n" for block in cut[:-1]), cut[-1]]
    assert b"".join(blocks) == raw
    assert mail_identity.measured(iter(blocks)) == mail_identity.measured(iter([raw]))


def test_the_middle_of_a_huge_line_does_not_begin_a_mail(tmp_path: Path) -> None:
    """What looks like a separator where a block ends in the middle of a line is none."""
    path, separator, head = (
        tmp_path / "box",
        b"From x Tue Nov  3 10:00:00 2026\n",
        b"Subject: x\n\n",
    )
    path.write_bytes(separator + head + b"x" * (2 * 65_536 - len(head)) + separator)
    with path.open("rb") as file:
        file.readline()
        assert list(mail_identity.blocks_of(file))[1] == separator
    assert len(entries(path)) == 1


def test_a_header_without_end_is_cut_at_the_same_byte() -> None:
    """Headers beyond the limit count as body, however the bytes come."""
    raw = b"Subject: x\nX: " + b"x" * 300_000 + b"\n\ntext\n"
    pieces = iter([raw[:200_000], raw[200_000:]])
    assert mail_identity.measured(pieces) == mail_identity.measured(iter([raw]))
    assert mail_identity.measured(iter([raw])).size == len(raw) - 1


# Text


def test_the_text_begins_with_who_wrote_to_whom_when_about_what() -> None:
    """The header block of a mail has its lines in English, with the time in UTC."""
    document = mail_segments(a_mail())
    assert (document.format, document.strategy, document.title) == ("mail", "markdown", "Mill")
    assert "".join(segment.text for segment in document.segments) == (
        "From: Miller <miller@example.com>\n"
        "To: Baker <baker@example.com>\n"
        "Date: 2026-11-02 00:30 UTC\n"
        "Subject: Mill\n\n"
        "The old mill by the river grinds again.\n\n"
    )


def test_headers_are_limited_to_ten_addresses_and_twenty_names() -> None:
    """Of many addresses and attachments the first are named and the others counted."""
    message = a_mail()
    del message["To"]
    message["To"] = ", ".join(f'"Doe, No. {n}" <n{n}@example.com>' for n in range(13))
    for number in range(22):
        message.add_attachment(b"x", maintype="image", subtype="png", filename=f"{number}.png")
    head = text_of(message)
    assert '"Doe, No. 9" <n9@example.com> and 3 more\n' in head
    assert "n10@" not in head
    assert "18.png, 19.png and 2 more\n" in head


def test_a_huge_header_is_cut() -> None:
    """A subject of a megabyte takes a thousand characters, and a million addresses one line."""
    raw = b"Subject: " + b"word " * 200_000 + b"\nTo: " + b"a@b.c,<" * 150_000
    raw += b'\nCc: "' + b'\\"' * 20_000 + b"\n\nText.\n"
    text = text_of(raw)
    assert len(text) < 5_000
    assert text.endswith("Text.\n\n")


def test_line_ends_in_a_header_cannot_forge_another() -> None:
    """A header that holds an encoded line end stays on one line."""
    text = text_of(b"Subject: =?utf-8?q?Mill=0AFrom:_forged=00?=\n\nText.\n")
    assert text.splitlines()[0] == "Subject: Mill From: forged"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"=?iso-8859-1?q?M=FChle?=", "Mühle"),
        (b"=?utf-8?b?TcM=?= =?utf-8?b?vGhsZQ==?=", "Mühle"),
        (b"=?nothing?q?M=C3=BChle?=", "Mühle"),
        (b"=?unicode_escape?q?M\\q=FChle?=", "M\\qühle"),
        (b"=?utf-8?b?x?= y", "x y"),
        ("Mühle".encode(), "Mühle"),
        ("Mühle".encode("latin-1"), "Mühle"),
        (b"=?utf-16?b?ANg=?=", "\ufffd"),
        (b"a\0\x1bb\r\n c", "ab c"),
    ],
)
def test_encoded_headers_are_decoded_as_far_as_they_can_be(value: bytes, shown: str) -> None:
    """Encoded words in any charset, raw bytes and damage become a line of text."""
    assert header_text(value) == shown


@pytest.mark.parametrize(
    ("charset", "data", "shown"),
    [
        ("us-ascii", "Mühle".encode(), "Mühle"),
        ("iso-8859-1", "Mühle – alt".encode("cp1252"), "Mühle – alt"),
        ("utf-8", "Mühle".encode("latin-1"), "Mühle"),
        ("utf-8", "Mühle Bäche".encode()[:-5], "Mühle B"),
        ("iso-2022-jp", "水車".encode("iso-2022-jp"), "水車"),
        ("koi8-r", "мельница".encode("koi8-r"), "мельница"),
        ("no-such\0charset", "Mühle".encode(), "Mühle"),
        ("rot13", b"Mill", "Mill"),
        ("unicode_escape", b"Mill \\q", "Mill \\q"),
    ],
)
def test_a_charset_that_lies_does_not_spoil_the_text(charset: str, data: bytes, shown: str) -> None:
    """Texts in a wrong, unknown or dangerous charset are read as what they are."""
    raw = f'Content-Type: text/plain; charset="{charset}"\n\n'.encode() + data
    assert text_of(raw).strip().startswith(shown)


def test_html_is_taken_before_plain_text_without_what_is_hidden() -> None:
    """Of two alternatives the HTML is in the text as Markdown, without hidden and active parts."""
    message = a_mail(body="Plain words.\n")
    message.add_alternative(
        "<style>p {}</style><h1>Mill</h1><p>It <b>grinds</b>.</p>"
        "<p style='display:none'>hidden words</p><script>run()</script>"
        "<img src='https://example.com/x.png' alt='picture'><a href='javascript:x()'>link</a>",
        subtype="html",
    )
    text = text_of(message)
    assert "# Mill" in text
    assert "**grinds**" in text
    for gone in ("Plain words", "hidden words", "run()", "x.png", "javascript:"):
        assert gone not in text


def test_without_the_library_for_html_the_plain_text_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plain text stands in for HTML that cannot be read; without it the mail asks for the extra."""

    def refuse(html: str) -> str:
        raise missing("html", "HTML pages")

    monkeypatch.setattr(mail_text, "html_to_markdown", refuse)
    message = a_mail(body="Plain words.\n")
    message.add_alternative("<p>Rich words.</p>", subtype="html")
    assert "Plain words." in text_of(message)
    only_html = a_mail()
    only_html.set_content("<p>Rich words.</p>", subtype="html")
    with pytest.raises(Unusable) as caught:
        text_of(only_html)
    assert (caught.value.code, caught.value.extra) == ("missing_extra", "html")


def test_html_in_pieces_and_a_footer_are_all_in_the_text() -> None:
    """HTML parts around an attachment belong together, and what a list appends is kept."""
    raw = (
        b"Content-Type: multipart/mixed; boundary=o\n\n--o\n"
        b"Content-Type: multipart/alternative; boundary=a\n\n"
        b"--a\nContent-Type: text/plain\n\nplain\n"
        b"--a\nContent-Type: multipart/mixed; boundary=m\n\n"
        b"--m\nContent-Type: text/html\n\n<p>before</p>\n"
        b"--m\nContent-Type: text/csv; name=x.csv\n\na,b\n1,2\n"
        b"--m\nContent-Type: text/html\n\n<p>after</p>\n--m--\n--a--\n"
        b"--o\nContent-Type: text/plain\n\nthe footer\n--o--\n"
    )
    text = text_of(raw)
    own, _, attached = text.partition("Attachment: x.csv\n")
    assert [word for word in ("before", "after", "the footer") if word in own] == [
        "before",
        "after",
        "the footer",
    ]
    assert "plain" not in own
    assert "1" in attached


def test_what_is_made_for_programs_is_not_in_the_text() -> None:
    """Signatures, reports on delivery and other forms of the same text are left out."""
    raw = (
        b"Subject: Mill\nContent-Type: multipart/mixed; boundary=o\n\n--o\n"
        b"Content-Type: multipart/alternative; boundary=a\n\n"
        b"--a\nContent-Type: text/plain\n\nplain\n"
        b"--a\nContent-Type: multipart/related; boundary=r\n\n"
        b"--r\nContent-Type: multipart/alternative; boundary=i\n\n"
        b"--i\nContent-Type: text/html\n\n<p>rich</p>\n--i--\n"
        b"--r\nContent-Type: image/png; name=logo.png\n\nx\n--r--\n"
        b"--a\nContent-Type: text/csv\n\nBEGIN,CALENDAR\n--a--\n"
        b"--o\nContent-Type: application/pgp-signature; name=signature.asc\n\nx\n"
        b"--o\nContent-Type: message/delivery-status\n\nAction: failed\n\n--o--\n"
    )
    assert text_of(raw) == "Subject: Mill\n\nrich\n\n"


ENVELOPED = "application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m"


@pytest.mark.parametrize(
    "encrypted",
    [
        "Content-Type: multipart/encrypted; boundary=e\n\n"
        "--e\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n"
        "--e\nContent-Type: application/octet-stream; name=encrypted.asc\n\nSECRET\n--e--\n",
        f"Content-Type: {ENVELOPED}\nContent-Transfer-Encoding: base64\n\nU0VDUkVU\n",
        "\n-----BEGIN PGP MESSAGE-----\n\nSECRET\n-----END PGP MESSAGE-----\n",
    ],
)
def test_of_an_encrypted_mail_only_the_header_block_is_text(encrypted: str) -> None:
    """Nothing of what is encrypted, by PGP or S/MIME, is in the text."""
    assert text_of(f"Subject: Mill\n{encrypted}".encode()) == "Subject: Mill\n\n"


def test_attachments_are_read_with_their_places() -> None:
    """Each segment of an attachment names it and keeps its numbers; the first begins with it."""
    message = with_attachment("grain.csv", b"sort,tons\nrye,4\nwheat,9\n", "text/csv")
    message.add_attachment("# Plan\n\nBuild a mill.\n", subtype="markdown", filename="plan.md")
    own, *attached = mail_segments(message).segments
    assert own.part is None
    assert "Attachments: grain.csv, plan.md\n" in own.text
    assert {segment.part for segment in attached} == {"grain.csv", "plan.md"}
    rows = [segment for segment in attached if segment.part == "grain.csv"]
    assert rows[0].text.startswith("Attachment: grain.csv\n")
    assert any("wheat" in row.text and row.unit == "row" for row in rows)
    assert "\n\nAttachment: plan.md\n\n# Plan\n" in "".join(each.text for each in attached)


def test_the_pages_of_an_attachment_keep_their_numbers() -> None:
    """Page 2 of an attached PDF is known as page 2 of that attachment."""
    fpdf = pytest.importorskip("fpdf")
    pdf = fpdf.FPDF()
    for words in ("grinding", "baking"):
        pdf.add_page()
        pdf.set_font("helvetica")
        pdf.cell(text=words)
    message = with_attachment("plan.pdf", bytes(pdf.output()), "application/pdf")
    _, *pages = mail_segments(message).segments
    assert [(page.unit, page.number, page.part) for page in pages] == [
        ("page", 1, "plan.pdf"),
        ("page", 2, "plan.pdf"),
    ]
    assert "baking" in pages[1].text


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("plan.pdf", b"no pdf", "invalid"),
        ("tool.exe", b"MZ\0\0", "executable"),
        ("old.zip", b"PK", "unsupported"),
        ("notes.txt", b"x" * 1_001, "too large"),
    ],
)
def test_an_attachment_that_cannot_be_read_is_a_line_with_the_reason(
    name: str, data: bytes, reason: str
) -> None:
    """A mail is indexed with the reason why an attachment is not."""
    own, line = mail_segments(with_attachment(name, data), attachment_limit=1_000).segments
    assert "old mill" in own.text
    assert line == Segment(f"Attachment: {name} (not read: {reason})\n\n", part=name)


def test_an_attachment_that_breaks_off_keeps_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages before a broken one are in the text, then the reason."""

    def two_pages(name: str, data: bytes) -> Extracted:
        def pages() -> Iterator[Segment]:
            yield Segment("first\n", "page", 1)
            raise Unusable("invalid", "The page is broken")

        return Extracted("pdf", "plain", pages())

    monkeypatch.setattr(mail_text, "extract", two_pages)
    _, page, line = mail_segments(with_attachment("a.pdf", b"x")).segments
    assert page == Segment("Attachment: a.pdf\n\nfirst\n", "page", 1, "a.pdf")
    assert line.text == "Attachment: a.pdf (not read: invalid)\n\n"


def test_an_attached_mail_is_read_with_its_attachments() -> None:
    """A forwarded mail has a header block and text of its own, and its attachments follow."""
    outer = a_mail("Forward", 1, "See below.\n")
    outer.add_attachment(with_attachment("grain.csv", b"sort,tons\nrye,4\n", "text/csv"))
    own, inner, *rows = mail_segments(outer).segments
    assert "Attachments: Mill.eml" in own.text
    assert inner.part == "Mill.eml"
    assert inner.text.startswith("Attachment: Mill.eml\n\nFrom: Miller")
    assert "old mill" in inner.text
    assert "rye" in "".join(row.text for row in rows)


def test_names_of_attachments_are_names_only() -> None:
    """Folders and line ends are taken out of a name, which may be encoded or missing."""
    message = with_attachment("../../etc/=?utf-8?q?M=C3=BChle=0A?=.txt", b"x")
    message.add_attachment("a,b\n1,2\n", subtype="csv")
    assert "Attachments: Mühle .txt, attachment-2.csv\n" in text_of(message)


def test_a_mail_of_nothing_has_no_text() -> None:
    """Without headers and text there is nothing to index."""
    with pytest.raises(Unusable) as caught:
        mail_segments(parse_mail(b"\n\n  \n"))
    assert caught.value.code == "no_text"


NESTED = b"".join(
    b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(1_000)
)


@pytest.mark.parametrize(
    "raw",
    [
        NESTED + b"Content-Type: text/plain\n\ndeep\n",
        b"Content-Type: message/rfc822\n\n" * 1_000 + b"deep\n",
        b"Content-Type: multipart/mixed; boundary*=x; boundary*0*=y\n\n--x\n",
        b"Content-Type: multipart/mixed\n\nno boundary\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\npart\n" * 1_000,
        b"Content-Type: text/plain; charset*=x''%00; charset*0*=y\n\ntext\n",
        b"Content-Type: ;;=\nContent-Transfer-Encoding: \xff\n\ntext\n",
        b"Content-Transfer-Encoding: base64\n\n!!!!A\n",
        b"Content-Transfer-Encoding: x-uuencode\n\nbegin 666 x\n\x01\x02zz\n",
        b"Content-Disposition: attachment; filename*0*=a''%; filename*1=\xff; filename*=z\n\nx",
        b'From: ((((((((\nTo: """<<<>,;:@\nDate: 99 Foo 99999 99:99 +9999\n\ntext\n',
        b"no header at all\0\n",
    ],
)
@pytest.mark.parametrize("is_strict", [False, True], ids=["lenient", "strict"])
def test_broken_mails_are_normal(raw: bytes, is_strict: bool) -> None:
    """Whatever is wrong with a mail, its subject is in the text, also from the strict parser."""
    raw = b"Subject: Mill\n" + raw
    try:
        message = message_from_bytes(raw, policy=policy.default) if is_strict else parse_mail(raw)
    except Exception:
        assert is_strict
        return
    text = "".join(segment.text for segment in mail_segments(message).segments)
    assert "Subject: Mill\n" in text
    assert "\0" not in text


def test_a_mail_that_would_take_too_long_is_its_header_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines times boundaries beyond the limit are not taken apart."""
    raw = a_mail().as_bytes() + b"\n--boundary\n"
    assert "old mill" in text_of(raw)
    monkeypatch.setattr(mail_text, "_MOST_TRIES", raw.count(b"\n") - 1)
    assert text_of(raw).endswith("Subject: Mill\n\n")


@given(st.binary(max_size=200), st.binary(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_headers_and_body_give_a_text_or_a_failure(head: bytes, value: bytes) -> None:
    """Random bytes in the headers that describe a mail raise nothing but a failure."""
    raw = b"Content-Type: " + value + b"\nContent-Disposition: " + value + b"\nTo: " + head
    raw += b"\nDate: " + value + b"\nContent-Transfer-Encoding: " + value + b"\n\n" + head
    with suppress(DocumentFailure):
        assert text_of(raw).encode()
