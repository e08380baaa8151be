"""What all tests share: a knowledge database to ask, and Datasette around it on either version."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from datasette.app import Datasette

import browser
import hostile
import visits
from datasette_concept_recall.reconciling import Reconciler

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

    from datasette_concept_recall.indexing.store import Store
    from indexing import FakeClock
    from layer_worlds import Meanings, World

IS_1_0 = hasattr(Datasette, "add_query")
"""Whether the installed Datasette is a 1.0; tests ask this, never a version string."""

SHARED_DATA = Path(__file__).parent.parent.parent / "shared" / "data"
"""Real data beside the checkout, in some working copies."""

MakeDatasette = Callable[..., Datasette]


@pytest.fixture
def make_datasette() -> Iterator[MakeDatasette]:
    """``make_datasette(*paths, config=…, settings=…, **more)``: an instance on either version.

    ``config`` is written as for 1.0: 0.65 reads the same blocks as metadata.
    """
    made: list[Datasette] = []

    def make(*paths: Path, config: dict[str, Any] | None = None, **more: Any) -> Datasette:
        block = {"config" if IS_1_0 else "metadata": config} if config else {}
        datasette = Datasette([str(path) for path in paths], **block, **more)
        made.append(datasette)
        return datasette

    yield make
    for datasette in made:
        _close(datasette)


def _close(datasette: Datasette) -> None:
    if hasattr(datasette, "close"):
        datasette.close()
        return
    if datasette.executor is not None:
        datasette.executor.shutdown()
    for database in datasette.databases.values():
        database.close()


def actor_cookie(datasette: Datasette, actor_id: str) -> dict[str, str]:
    """Cookies that make a request come from this actor."""
    return {"ds_actor": datasette.sign({"a": {"id": actor_id}}, "actor")}


def file_bytes(path: Path) -> dict[str, bytes]:
    """The bytes of a database file and of the log beside it."""
    files = [path, path.with_name(path.name + "-wal")]
    return {file.name: file.read_bytes() for file in files if file.exists()}


@pytest.fixture(autouse=True)
def stopped_reconcilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends what keeps fallbacks in line: no such thread outlives the test that began it."""
    begun: list[Reconciler] = []
    start = Reconciler.start

    def remembered(reconciler: Reconciler) -> None:
        begun.append(reconciler)
        start(reconciler)

    monkeypatch.setattr(Reconciler, "start", remembered)
    yield
    for reconciler in begun:
        reconciler.stop()
        reconciler._thread.join(10)


@pytest.fixture(scope="session")
def peps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real knowledge database, unpacked; tests that use it are skipped where it is absent."""
    import lzma

    packed = SHARED_DATA / "peps.db.xz"
    if not packed.exists():
        pytest.skip(f"the real data is not beside this checkout (no {packed.name})")
    path = tmp_path_factory.mktemp("real") / "peps.db"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


def rows(path: Path, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """What a query returns on a connection of its own."""
    with closing(sqlite3.connect(path)) as conn:
        return conn.execute(sql, parameters).fetchall()


# --- for tests of the index, and of the layers that search it -------------------------------------


@pytest.fixture
def clock() -> FakeClock:
    """The clock of `store`."""
    from indexing import FakeClock

    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    """An index of nothing yet, in the file ``index.db``."""
    from datasette_concept_recall.indexing.store import Store

    with Store(tmp_path / "index.db", clock) as opened:
        yield opened


@pytest.fixture
def own_world(tmp_path: Path) -> World:
    """A knowledge database and its index, which the test may change."""
    from layer_worlds import build

    return build(tmp_path)


@pytest.fixture
def meanings() -> Iterator[Meanings]:
    """The embedder of the indexes of `layer_worlds`, as long as the test runs."""
    from layer_worlds import Meanings, registered

    embedder = Meanings()
    with registered(embedder):
        yield embedder


# --- for modules that hold browser tests, and no asynchronous ones --------------------------------


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A running Chromium."""
    with browser.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def windows(chromium: Browser) -> Iterator[dict[str, BrowserContext]]:
    """Chromium's windows, by their names in `browser.WINDOWS`."""
    with browser.windows(chromium) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the databases of `visits` are served, to whoever has a Chromium."""
    folder = tmp_path_factory.mktemp("served")
    databases = [
        visits.build_kitchen(folder / "kitchen.db"),
        hostile.build(folder / "hostile.db"),
        visits.build_index(folder / "library.db"),
    ]
    # Of other plugins some write scripts into every page that do not run.
    with browser.served(folder, *databases, only_plugin="datasette-concept-recall") as url:
        yield url
