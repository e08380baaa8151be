"""Mails in an index: found at once, moved without cost, and never lost on the way."""

from __future__ import annotations

import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from datasette_concept_recall.indexing.store import SourceRow, Store
from indexing import FakeEmbedder, add_folder, indexing, live_texts, run, write_note


def mail(number: int, attachment: bool = False) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "ada@example.org", "bob@example.org"
    message["Subject"], message["Message-ID"] = f"Letter {number}", f"<{number}@example.org>"
    message["Date"] = (
        f"Mon, 30 Nov 2026 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
    )
    message.set_content(f"The letter number {number} is about [[Bread]].")
    if attachment:
        message.add_attachment(f"name,amount\nflour,{number}\n", subtype="csv", filename="list.csv")
    return message


@pytest.fixture
def maildir(tmp_path: Path) -> mailbox.Maildir:
    box = mailbox.Maildir(str(tmp_path / "mail"))
    for number in range(3):
        box.add(mail(number))
    return box


@pytest.fixture
def source(store: Store, maildir: mailbox.Maildir, tmp_path: Path) -> SourceRow:
    return store.add_source("mail", "mailbox", str(tmp_path / "mail"))


def test_a_mail_without_a_place_is_removed_one_run_later(
    store: Store, source: SourceRow, maildir: mailbox.Maildir
) -> None:
    """It may only be on its way to another folder: until the next run it is found as before."""
    run(store, source)
    (first, *_) = maildir.keys()
    maildir.discard(first)
    run(store, source)
    assert len(live_texts(store)) == 3
    assert store.rows("select count(*) from document where orphaned_in is not null") == [(1,)]
    run(store, source)
    assert len(live_texts(store)) == 2


def test_a_mail_that_comes_back_is_no_orphan(
    store: Store, source: SourceRow, maildir: mailbox.Maildir
) -> None:
    """What was on its way has arrived in another folder, and nothing of it is embedded again."""
    embedder = FakeEmbedder()
    run(store, source, embedder=embedder)
    (first, *_) = maildir.keys()
    message = maildir.get_bytes(first)
    maildir.discard(first)
    run(store, source, embedder=embedder)
    embedder.log.clear()
    maildir.add_folder("Archive").add(message)
    run(store, source, embedder=embedder)
    run(store, source, embedder=embedder)
    assert len(live_texts(store)) == 3
    assert embedder.log == []
    assert store.rows("select count(*) from document where orphaned_in is not null") == [(0,)]
    folders = {folder for (folder,) in store.rows("select folder from location")}
    assert any("Archive" in folder for folder in folders)


def test_a_large_mailbox_takes_turns_with_a_folder(tmp_path: Path, store: Store) -> None:
    """Two thousand mails with attachments go in shares of five hundred, found as they come, and
    a folder that is added meanwhile has its turn after one of them."""
    box = mailbox.mbox(str(tmp_path / "letters.mbox"))
    for number in range(2_000):
        box.add(mail(number, attachment=number % 10 == 0))
    box.close()
    letters = store.add_source("letters", "mailbox", str(tmp_path / "letters.mbox"))
    service = indexing(store)
    service.ask(letters.id, "run")
    first = service.run_next()
    assert first is not None
    assert first[1].value == "more to do"
    assert store.rows("select count(distinct document_id) from live_chunk") == [(500,)]
    ((newest,),) = store.rows("select max(title) from live_chunk where title like 'Letter 19%'")
    assert newest == "Letter 1999"
    write_note(tmp_path / "notes", "a.md", "A note.")
    notes = add_folder(store, tmp_path / "notes")
    service.ask(notes.id, "added")
    order = [source.name for source, _ in service.run_all()]
    assert order == ["notes", "letters", "letters", "letters"]
    assert store.rows("select count(distinct document_id) from live_chunk") == [(2_001,)]
    assert store.rows("select sum(indexed) from run") == [(2_001,)]
    places = store.rows("select distinct place from live_chunk where place like 'list.csv%'")
    assert places
