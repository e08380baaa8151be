"""Runs of an index as its commands make them: prepared, ended when asked to, and told of."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import RecallError
from .index_printing import Meter, print_sources
from .indexing.freshness import keep
from .indexing.kinds import described
from .indexing.looking import MORE_OF_SOURCES, TABLES_OF_SOURCES, IndexView, read_sources
from .indexing.passes import SHARE_SECONDS, Outcome
from .indexing.service import Service
from .indexing.store import Store
from .indexing.turns import Busy, Turn
from .registered import embedder_named, source_indexers
from .rendering import DEFAULT_RENDERING, Rendering


def index_rows(db: Path, index: Path, embedder: str) -> None:
    """Brings the rows of a database into an index of its own, with vectors; one that is there is
    brought up to date. Raises `RecallError`, also when the embedder is not installed."""
    embedder_named(None, embedder)
    with Store(index) as store:
        origin = str(db.resolve())
        if all(source.origin != origin for source in store.sources()):
            added = described("rows", db, None, {})
            store.add_source(added.name, "rows", added.origin, added.options, "any")
        remember(store, (), embedder, None)
        meter = Meter()
        run_sources(store, service_for(store, meter, SHARE_SECONDS), (), once=False)
        meter.end()
        say_how_it_went(store, ())


def remember(
    store: Store,
    knowledge: tuple[Path, ...],
    embedder: str | None,
    rendering: Rendering | None,
    parent: bool = False,
) -> None:
    """Keeps in the index what this run and all later ones go by.

    No ``knowledge`` (the databases whose concepts are looked for) and None leave what was kept
    before; an ``embedder`` of ``""`` means that there is none from now on. Raises `RecallError` for
    an embedder that cannot be had, and does not keep it; with ``parent`` it is kept unseen, since
    the parent has it from its configuration.
    """
    if knowledge:
        store.set_setting("concepts_of", [str(path.resolve()) for path in knowledge])
    if embedder is not None:
        if embedder and not parent:  # so that a slip of the pen changes nothing
            embedder_named(None, embedder)
        store.set_setting("embedder", embedder or None)
    if rendering is not None:
        store.set_setting("rendering", rendering)


def service_for(store: Store, meter: Meter, share: float) -> Service:
    """What indexes: with the settings that the index remembers, and a turn of ``share`` seconds for
    each source. The meter is told how far it is. An embedder that cannot be had is a problem of
    which the service tells, and no error."""
    chosen, problem = store.setting("embedder"), None
    try:
        embedder = embedder_named(None, chosen) if chosen else None
        if embedder is not None:
            names = store.setting("embedder_names", {})
            store.set_setting("embedder_names", names | {embedder.identity.name: chosen})
    except RecallError as error:
        embedder, problem = None, str(error)
    return Service(
        store,
        source_indexers(None),
        embedder=embedder,
        embedder_problem=problem,
        rendering=store.setting("rendering", DEFAULT_RENDERING),
        knowledge=[Path(path) for path in store.setting("concepts_of", [])],
        share_seconds=share,
        progressed=meter.show,
        told=meter.tell,
    )


class Ending:
    """Ends a service, and all that would take its place, when it is called."""

    def __init__(self) -> None:
        self._called = threading.Event()
        self._service: Service | None = None

    def __call__(self) -> None:
        self._called.set()
        if self._service is not None:
            self._service.stop()

    @property
    def is_called(self) -> bool:
        """Whether it was called."""
        return self._called.is_set()

    def of(self, service: Service) -> Service:
        """The service, which is ended from now on, or at once."""
        self._service = service
        if self.is_called:
            service.stop()
        return service


@contextmanager
def ended_by_signals(parent: bool) -> Iterator[Ending]:
    """What is called when somebody asks this process to end, or its ``parent`` is gone.

    The parent is gone when the standard input ends. Afterwards signals are handled as before.
    """
    ending = Ending()

    def end(number: int, frame: object) -> None:
        ending()

    def await_end() -> None:
        while os.read(0, 1_024):  # not sys.stdin: its lock would be held when the process ends
            pass
        ending()

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    if parent:
        threading.Thread(target=await_end, name="parent", daemon=True).start()
    try:
        yield ending
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def keep_alone(store: Store, service: Callable[[], Service], ending: Ending) -> None:
    """Keeps the index fresh until that is ended: with one ``service`` after the other, as somebody
    has the index remember something else. Raises `RecallError` when another program does so."""

    def remembered() -> list[object]:
        return [store.setting(name) for name in ("embedder", "rendering", "concepts_of")]

    def keep_as_remembered() -> None:
        now, made_for = ending.of(service()), remembered()
        keep(now, until=lambda: remembered() != made_for)

    try:
        with Turn(store.path, "keeper").taken(1.0):  # whoever asks whether it is taken has it then
            while not ending.is_called:
                keep_as_remembered()
    except Busy as error:
        raise RecallError("Another program keeps this index fresh already") from error


def run_sources(store: Store, service: Service, names: tuple[str, ...], once: bool) -> None:
    """Indexes the named sources, or all when none is named, until nothing is left to do; with
    ``once`` until each had a turn. Raises `RecallError` for an unknown name and during a pause."""
    if store.is_paused():
        raise RecallError(
            f"This index is paused; go on with: datasette concept-recall index resume {store.path}"
        )
    chosen = [store.source_named(name) for name in names] or store.sources()
    for source in chosen:
        service.ask(source.id, "run")
    begun: set[int] = set()
    while (step := service.run_next()) is not None:
        source, outcome = step
        begun.add(source.id)
        if once and outcome is Outcome.MORE_TO_DO and len(begun) == len(chosen):
            return


def say_how_it_went(store: Store, names: tuple[str, ...]) -> None:
    """Prints what is known of the named sources, or of all when none is named. Raises `SystemExit`
    with code 1 when one of them needs somebody to see to it."""
    found = [each for each in view_of(store).sources if not names or each.name in names]
    print_sources(found, store.path)
    if any(each.state in ("failed", "unreachable", "refused", "broken", "held") for each in found):
        raise SystemExit(1)


def view_of(store: Store) -> IndexView:
    """What there is to know of an index and each of its sources."""
    return read_sources(store.conn, store.path, TABLES_OF_SOURCES | MORE_OF_SOURCES)
