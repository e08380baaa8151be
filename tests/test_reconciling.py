"""What other plugins hold is kept in line with a database for as long as Datasette runs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import knowledge
from datasette_concept_recall import reconciling
from datasette_concept_recall.reconciling import Reconciler
from datasette_concept_recall.vocabulary import Vocabulary
from layer_worlds import Fallback, settled


class Panic(BaseException):
    """As what a library written in Rust raises: no `Exception`."""


KINDS = [ConnectionError, OSError, sqlite3.OperationalError, StopIteration, SystemExit, Panic]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked many times a second, so that no test takes long."""
    monkeypatch.setattr(reconciling, "LOOK_SECONDS", 0.01)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one record."""
    return written(tmp_path / "kb.db", "Kettle")


def written(path: Path, *titles: str) -> Path:
    """A database with records of these titles."""
    with closing(knowledge.create(path)) as conn, conn:
        for title in titles:
            knowledge.add_record(conn, title)
    return path


def begin(
    fallback: Fallback, path: Path, vocabulary: Any = None, *, immutable: bool = False
) -> Reconciler:
    """Begins to keep a fallback in line with a file; it ends with the test."""
    reconciler = Reconciler(fallback, path, vocabulary or Vocabulary(), immutable)
    reconciler.start()
    return reconciler


def has(*titles: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a fallback holds the records of exactly these titles."""
    return lambda held: sorted(r.text.split("\n")[0] for r in held.values()) == sorted(titles)


def raising(kind: type[BaseException], times: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails so many times before it does what it is for."""
    left: Iterator[int] = iter(range(times))

    def called(*given: Any) -> Any:
        if next(left, None) is not None:
            raise kind("out of order")
        return then(*given)

    return called


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_fallback_raises_is_logged_and_it_is_tried_again(
    path: Path, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """Several failures in a row end nothing, and later commits are noticed as before."""
    fallback = Fallback()
    fallback.reconcile = raising(kind, 3, fallback.reconcile)  # type: ignore[method-assign]
    begin(fallback, path)
    settled(fallback, has("Kettle"))
    assert caplog.text.count("A semantic fallback could not be brought up to date") == 3
    assert "out of order" in caplog.text
    with closing(sqlite3.connect(path)) as conn, conn:
        knowledge.add_record(conn, "Samovar")
    settled(fallback, has("Kettle", "Samovar"))


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_else_goes_wrong_is_logged_and_it_is_tried_again(
    path: Path, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """Also what is raised before a fallback is asked does not end it."""
    fallback, vocabulary = Fallback(), Vocabulary()
    vocabulary.mapping = raising(kind, 3, vocabulary.mapping)  # type: ignore[method-assign]
    begin(fallback, path, vocabulary)
    settled(fallback, has("Kettle"))
    assert caplog.text.count("out of order") >= 3


@pytest.mark.parametrize("immutable", [False, True])
def test_a_file_in_place_of_the_database_is_compared(path: Path, immutable: bool) -> None:
    """Again and again, and what is committed to the new one is noticed too."""
    fallback = Fallback()
    begin(fallback, path, immutable=immutable)
    settled(fallback, has("Kettle"))
    for title in ("Samovar", "Teapot"):
        written(path.with_name("new.db"), title).replace(path)
        settled(fallback, has(title))
    if not immutable:
        with closing(sqlite3.connect(path)) as conn, conn:
            knowledge.add_record(conn, "Cup")
        settled(fallback, has("Teapot", "Cup"))


@pytest.mark.parametrize("content", [None, b"no database at all" * 100])
def test_a_database_that_is_gone_for_a_while_is_compared_when_it_is_back(
    path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    """Whether there was nothing in its place or no database; what is held is kept meanwhile."""
    fallback = Fallback()
    begin(fallback, path)
    settled(fallback, has("Kettle"))
    new = written(path.with_name("new.db"), "Samovar")
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    for _ in range(500):
        if "A database cannot be read for its fallback" in caplog.text:
            break
        time.sleep(0.02)
    else:
        pytest.fail("It was never noticed")
    assert has("Kettle")({record.ref: record for record in fallback.held})
    new.replace(path)
    settled(fallback, has("Samovar"))


def test_it_ends_when_it_is_stopped(path: Path) -> None:
    """Also while it waits for its next try."""
    fallback = Fallback()
    fallback.reconcile = raising(Panic, 10**9, fallback.reconcile)  # type: ignore[method-assign]
    reconciler = begin(fallback, path)
    reconciler.stop()
    reconciler._thread.join(30)
    assert not reconciler._thread.is_alive()
