"""``datasette concept-recall index``: what brings documents in, and keeps them fresh."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .errors import DatabaseUnreadable, RecallError
from .index_printing import Meter, print_sources
from .index_running import (
    ended_by_signals,
    keep_alone,
    remember,
    run_sources,
    say_how_it_went,
    service_for,
    view_of,
)
from .indexing.holding import pause, remove_source, resume
from .indexing.kinds import Added, described
from .indexing.passes import SHARE_SECONDS
from .indexing.store import SourceRow, Store
from .indexing.turns import Turn, is_kept
from .printing import terminal_line
from .registered import source_indexers
from .rendering import RENDERINGS, Rendering

_index = click.argument("index", type=click.Path(path_type=Path))
_to = click.option(
    "--to", "index", required=True, type=click.Path(path_type=Path), help="The index database"
)
_name = click.option("--name", help="What the source is called; else as its file or folder")
_local = click.option("--local", is_flag=True, help="Nothing of it may reach a remote embedder")
_chunk_size = click.option(
    "--chunk-size", type=click.IntRange(0), default=0, help="The size of chunks, 0: as it is best"
)


@click.group()
def index() -> None:
    """Bring folders, mailboxes and rows into an index that recall searches"""


@index.group()
def add() -> None:
    """Add a source to an index, which is made if it is not there"""


@add.command()
@click.argument("path", type=click.Path(path_type=Path))
@_to
@_name
@click.option("--include", multiple=True, metavar="GLOB", help="Only files like this")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No files or folders like this")
@_local
@_chunk_size
def folder(
    path: Path,
    index: Path,
    name: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    local: bool,
    chunk_size: int,
) -> None:
    """Add the files of the folder PATH: notes, documents, tables

    A GLOB with a slash is for the path within the folder, one without for any name on it.
    """
    options = {"include": list(include), "exclude": list(exclude), "chunk_size": chunk_size}
    _add("folder", path, index, name, options, local)


@add.command()
@click.argument("path", type=click.Path(path_type=Path))
@_to
@_name
@_local
@_chunk_size
def mailbox(path: Path, index: Path, name: str | None, local: bool, chunk_size: int) -> None:
    """Add the mails of PATH: an mbox file, a Maildir, or a folder of them"""
    _add("mailbox", path, index, name, {"chunk_size": chunk_size}, local)


@add.command()
@click.argument("path", type=click.Path(path_type=Path))
@_to
@_name
@click.option("--table", "tables", multiple=True, help="Only rows of this table")
@_local
@_chunk_size
def rows(
    path: Path,
    index: Path,
    name: str | None,
    tables: tuple[str, ...],
    local: bool,
    chunk_size: int,
) -> None:
    """Add the rows of the SQLite database PATH that hold text"""
    _add("rows", path, index, name, {"tables": list(tables), "chunk_size": chunk_size}, local)


@add.command()
@click.argument("kind")
@click.argument("origin")
@_to
@_name
@_local
@_chunk_size
def other(
    kind: str, origin: str, index: Path, name: str | None, local: bool, chunk_size: int
) -> None:
    """Add a source of the KIND that another plugin reads, by its ORIGIN"""
    known = [each.kind for each in source_indexers(None)]
    if kind not in known:
        raise click.UsageError(f"Nothing here reads the kind {kind}; known are {', '.join(known)}.")
    options = {"chunk_size": chunk_size} if chunk_size else {}
    _note(Added(name or origin, origin, options), kind, index, local)


def _add(
    kind: str, path: Path, index: Path, name: str | None, options: dict[str, Any], local: bool
) -> None:
    given = {option: value for option, value in options.items() if value}
    _note(described(kind, path, name, given), kind, index, local)


def _note(added: Added, kind: str, index: Path, local: bool) -> None:
    with Store(index) as store:
        source = store.add_source(
            added.name, kind, added.origin, added.options, "local" if local else "any"
        )
    click.echo(f"Added {terminal_line(source.name)} ({kind}, {terminal_line(source.origin)}).")
    if is_kept(index):
        click.echo("What keeps this index fresh will see it.")
    else:
        click.echo(f"To index it: datasette concept-recall index run {terminal_line(str(index))}")


@index.command()
@_index
@click.option("sources", "--source", multiple=True, help="Only this source")
@click.option("--share", type=click.FloatRange(min=0), help="At most so many seconds a source")
@click.option("everything", "--all", is_flag=True, help="Until everything is done (the default)")
@click.option("--watch", is_flag=True, help="Go on for ever, keeping it fresh")
@click.option(
    "knowledge",
    "--concepts-of",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A database whose concepts are looked for in all texts; remembered",
)
@click.option("--embedder", help="What turns texts into vectors; remembered, '' for none")
@click.option(
    "--rendering",
    type=click.Choice(RENDERINGS),
    help="What of a text and of what is known of it is embedded; remembered",
)
@click.option("--parent", is_flag=True, hidden=True)
def run(
    index: Path,
    sources: tuple[str, ...],
    share: float | None,
    everything: bool,
    watch: bool,
    knowledge: tuple[Path, ...],
    embedder: str | None,
    rendering: Rendering | None,
    parent: bool,
) -> None:
    """Index what is new, changed or gone

    Sources take turns of five minutes. Ctrl-C ends the run within a document; what was done
    stays, and the next run goes on from there.
    """
    if everything and share is not None:
        raise click.UsageError("--share and --all say opposite things; give one of them.")
    with _existing(index) as store:
        if not watch and is_kept(store.path):
            remember(store, knowledge, embedder, rendering)
            _ask(store, "run", sources)
            return
        if watch or not Turn(store.path).is_taken():  # else the run fails, and changes nothing
            remember(store, knowledge, embedder, rendering, parent)
        meter = Meter(is_silent=parent)
        seconds = share if share is not None else SHARE_SECONDS
        with ended_by_signals(parent) as ending:
            if watch:
                keep_alone(store, lambda: service_for(store, meter, seconds), ending)
            else:
                service = ending.of(service_for(store, meter, seconds))
                run_sources(store, service, sources, once=share is not None)
        meter.end()
        if ending.is_called:
            click.echo("Stopped. What is done stays; the same command goes on from there.")
        elif not watch:
            say_how_it_went(store, sources)


@index.command()
@_index
@click.option("as_json", "--json", is_flag=True, help="Print one JSON object")
def status(index: Path, as_json: bool) -> None:
    """Print what is known of each source of INDEX"""
    with _existing(index) as store:
        seen = view_of(store)
    if as_json:
        click.echo(json.dumps({"ok": True, **asdict(seen)}, indent=2, ensure_ascii=False))
        return
    if seen.is_paused:
        click.echo("Paused: nothing is indexed until it is resumed.")
    print_sources(seen.sources, index)


def _asking(action: str) -> Callable[[Path, tuple[str, ...]], None]:
    """The callback of a command that asks for a run with a reason, and makes it if nothing else
    keeps the index fresh."""

    def command(index: Path, sources: tuple[str, ...]) -> None:
        with _existing(index) as store:
            if is_kept(store.path):
                _ask(store, action, sources)
                return
            for source in _chosen(store, sources):
                store.ask(action, source.id)
            meter = Meter()
            with ended_by_signals(parent=False) as ending:
                ending.of(service_for(store, meter, SHARE_SECONDS)).run_all()
            meter.end()
            say_how_it_went(store, sources)

    return command


def _ask(store: Store, action: str, names: tuple[str, ...]) -> None:
    """Asks what keeps the index fresh for runs of the named sources, or of all."""
    for source in _chosen(store, names):
        store.ask(action, source.id)
    click.echo("Asked for; what keeps this index fresh sees to it.")


def _chosen(store: Store, names: tuple[str, ...]) -> list[SourceRow]:
    if store.is_paused():
        raise RecallError("This index is paused; resume it first")
    return [store.source_named(name) for name in names] or store.sources()


_sources = click.option("sources", "--source", multiple=True, help="Only this source")

index.command(name="retry", help="Try again what failed")(_index(_sources(_asking("retry"))))
index.command(
    name="verify",
    help="Compare the content of everything: finds edits that keep size and time",
)(_index(_sources(_asking("verify"))))


@index.command()
@_index
@click.argument("source")
@click.argument("count", type=click.IntRange(1))
def approve(index: Path, source: str, count: int) -> None:
    """Let exactly COUNT documents of SOURCE that are gone be removed

    So many of them vanished at once that they are kept until somebody says that it is right.
    """
    with _existing(index) as store:
        store.approve_removals(store.source_named(source).id, count)
    click.echo("Approved; the next run removes them.")


@index.command()
@_index
@click.argument("source")
def remove(index: Path, source: str) -> None:
    """Remove SOURCE from INDEX with everything that was indexed of it; its files stay"""
    with _existing(index) as store:
        found = store.source_named(source)
        remove_source(store, found)
    click.echo(f"Removed {terminal_line(found.name)}. Nothing at its origin was touched.")


@index.command(name="pause")
@_index
def pause_command(index: Path) -> None:
    """Hold everything that would write INDEX, until it is resumed

    Returns when what is running has stopped writing.
    """
    with _existing(index) as store:
        pause(store)
    click.echo("Paused.")


@index.command(name="resume")
@_index
def resume_command(index: Path) -> None:
    """End a pause"""
    with _existing(index) as store:
        resume(store)
    click.echo("Resumed.")


@index.command()
@_index
@click.argument("out", type=click.Path(path_type=Path))
def backup(index: Path, out: Path) -> None:
    """Copy INDEX to the new file OUT, also while it is written"""
    with _existing(index) as store:
        store.backup(out)
    click.echo(f"Wrote {terminal_line(str(out))}.")


@contextmanager
def _existing(path: Path) -> Iterator[Store]:
    if not path.exists():
        raise DatabaseUnreadable(
            f"There is no index {path}; 'datasette concept-recall index add' makes one"
        )
    with Store(path) as store:
        yield store
