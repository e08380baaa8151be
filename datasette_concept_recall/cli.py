"""``datasette concept-recall``: recall on the command line, and the demo."""

from __future__ import annotations

import errno
import json
import os
import socket
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import click

from . import printing
from .budgeting import LARGEST_BUDGET
from .embedders import WordLlamaEmbedder
from .errors import RecallError
from .evaluate_cli import evaluate
from .file_layers import recall_with_layers
from .index_cli import index
from .index_running import index_rows
from .models import MODES, Mode, RecallRequest, RecallResult
from .opening import opened, opened_for_writing
from .presenting import (
    concepts_json,
    context_json,
    near_misses_json,
    show_matches,
    warnings_of,
)
from .printing import terminal_line
from .reading import as_text
from .registered import embedder_named
from .vocabulary import match_concept_names


class _BadUsage(click.ClickException):
    """A command line that makes no sense; click's own error has several lines."""

    exit_code = 2


class _Group(click.Group):
    """Turns every error that a user can cause into one line, with exit code 1 or 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
        except BrokenPipeError:
            raise  # who reads the output has seen enough; click ends in silence
        except (RecallError, sqlite3.Error, OSError) as error:
            raise click.ClickException(terminal_line(str(error))) from error
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else ctx.command_path
            message = terminal_line(error.format_message())
            raise _BadUsage(f"{message} ({command} --help says more)") from error
        return result


def register(cli: click.Group) -> None:
    """Adds the group of commands to Datasette's own."""
    cli.add_command(concept_recall)


@click.group(name="concept-recall", cls=_Group)
def concept_recall() -> None:
    """Find what a knowledge database holds about the concepts that a text names"""


@concept_recall.command()
@click.argument("db", type=click.Path(path_type=Path))
@click.argument("text", nargs=-1, required=True)
def match(db: Path, text: tuple[str, ...]) -> None:
    """Print the concepts of DB that TEXT names, one a line

    TEXT is - to read standard input; several arguments are joined by spaces.
    """
    with opened(db) as conn:
        names = match_concept_names(conn, _joined(text))
    for name in names:
        click.echo(terminal_line(name))
    if not names:
        click.echo("No concept of this database is named.", err=True)


@concept_recall.command(name="recall")
@click.argument("db", type=click.Path(path_type=Path))
@click.argument("text", nargs=-1)
@click.option("names", "--concept", multiple=True, help="A concept to look for, besides TEXT")
@click.option("--project", help="Only items of this project")
@click.option("--limit", type=int, help="At most so many, 0: all; 10 unless there is a budget")
@click.option(
    "--budget",
    type=click.IntRange(1, LARGEST_BUDGET),
    help="Print Markdown for a prompt of at most so many tokens",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="auto",
    help="Ask concepts, then words and meaning if they find little (auto), or only one of these",
)
@click.option(
    "--index",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The index that holds the rows of DB",
)
@click.option(
    "--embedder",
    help="What turns TEXT into a vector: else that of the index, unless it is remote",
)
@click.option("as_json", "--json", is_flag=True, help="Print one JSON object")
def recall_command(
    db: Path,
    text: tuple[str, ...],
    names: tuple[str, ...],
    project: str | None,
    limit: int | None,
    budget: int | None,
    mode: Mode,
    index: Path | None,
    embedder: str | None,
    as_json: bool,
) -> None:
    """Print what is tagged with the concepts of DB that TEXT names, ranked

    TEXT is - to read standard input; several arguments are joined by spaces.
    """
    if not text and not names:
        raise click.UsageError("Give a TEXT, - for standard input, or --concept.")
    if limit is None:
        limit = 10 if budget is None else 0
    if limit < 0:
        raise click.UsageError("--limit is 0 or more.")
    request = RecallRequest(
        text=_joined(text),
        names=names,
        project=project or None,
        limit=limit,
        budget=budget,
        mode=mode,
    )
    with opened(db) as conn:
        named = partial(embedder_named, None)
        result = recall_with_layers(conn, db, request, named, index, embedder=embedder)
    if as_json:
        click.echo(json.dumps(_as_json(result, mode), indent=2, ensure_ascii=False))
    elif result.context is not None:
        printing.print_context(result, result.context)
    else:
        printing.print_result(result)


def _as_json(result: RecallResult, mode: Mode) -> dict[str, object]:
    rows = []
    for shown in show_matches(result):
        row = shown.as_json("")
        del row["url"]  # there is no server
        rows.append(row)
    return {
        "ok": True,
        "concepts": concepts_json(result),
        "near_misses": near_misses_json(result),
        "rows": rows,
        "projects": result.projects,
        "mode": mode,
        "total": result.total,
        "truncated": result.next_key is not None,
        **context_json(result),
        "warnings": warnings_of(result),
    }


@concept_recall.command()
@click.argument("db", type=click.Path(path_type=Path))
@click.option("remove", "--remove", is_flag=True, help="Take away what was added")
@click.option("dry_run", "--dry-run", is_flag=True, help="Only say what would be done")
def optimize(db: Path, remove: bool, dry_run: bool) -> None:
    """Add to DB what makes recall fast, however much is tagged

    These are tables and triggers whose names begin with _concept_recall_, and indexes of the link
    tables. What is in the database stays as it is. Run it again when much has changed.
    """
    from . import optimizing

    if dry_run and not remove:
        with opened(db) as conn:
            printing.print_plan(optimizing.plan(conn))
        return
    with opened_for_writing(db) as conn:
        if remove:
            _remove(conn, dry_run)
            return
        timed = optimizing.Stopwatch(conn)
        before, size = timed.milliseconds(), optimizing.size_of(conn)
        todo = optimizing.optimize(conn, progress=lambda step: click.echo(f"{step} …"))
        if todo.is_done:
            click.echo("Nothing to do: everything is there and up to date.")
            return
        grown = (optimizing.size_of(conn) - size) / 1_000_000
        if todo.missing:
            click.echo(f"Added {len(todo.missing)} tables, triggers and indexes.")
        if todo.changed:
            items = "item" if todo.changed == 1 else "items"
            click.echo(f"Brought {todo.changed:,} changed {items} up to date.")
        click.echo(f"The data grew by {max(grown, 0):.1f} MB, from {size / 1_000_000:.1f} MB.")
        if timed.concept is not None:
            click.echo(
                f"Recall of {terminal_line(timed.concept)}, the concept tagged most: "
                f"{before:.1f} ms before, {timed.milliseconds():.1f} ms now."
            )


def _remove(conn: sqlite3.Connection, dry_run: bool) -> None:
    from . import optimizing

    names = optimizing.added(conn) if dry_run else optimizing.remove(conn)
    if not names:
        click.echo("Nothing to remove.")
        return
    does = "Would remove" if dry_run else "Removed"
    click.echo(f"{does} {len(names)} tables, triggers and indexes:")
    for name in names:
        click.echo(f"  {name}")


@concept_recall.command()
@click.argument("db", type=click.Path(path_type=Path))
def inspect(db: Path) -> None:
    """Print what is found in DB, why, and configuration to paste

    Tables of concepts and of what is tagged with them are found by their foreign keys and names.
    Configuration in datasette.yaml overrides what is found.
    """
    from . import inspecting

    with opened(db) as conn:
        printing.print_inspection(inspecting.inspect(conn), db.stem)


@concept_recall.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("concept-recall-demo.db"))
@click.option("--no-serve", is_flag=True, help="Only write the database")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on")
@click.option("--port", type=click.IntRange(1, 65535), default=8001, show_default=True)
@click.option(
    "--semantic", is_flag=True, help="Index it too, so that it is also found by words and meaning"
)
def demo(path: Path, no_serve: bool, host: str, port: int, semantic: bool) -> None:
    """Write a knowledge database about this plugin to PATH, and serve it

    A file that the demo did not make is never overwritten.
    """
    from datasette.utils import tilde_encode

    from .demo import QUESTION_WITHOUT_CONCEPT, build_demo

    if not no_serve:
        _check_address(host, port)
    summary = build_demo(path)
    click.echo(
        f"Wrote {path}: {summary.records} records, {summary.observations} observations, "
        f"{summary.sections} document sections and {summary.concepts} concepts."
    )
    question, served = summary.question, [str(path)]
    if semantic:
        question, index = QUESTION_WITHOUT_CONCEPT, path.with_name(f"{path.stem}-index.db")
        index_rows(path, index, WordLlamaEmbedder.name)
        served.append(str(index))
    query = urlencode({"q": question})
    if no_serve:
        click.echo(f"To browse it: datasette {' '.join(served)}")
        return
    shown_host = f"[{host}]" if ":" in host else host
    click.echo(f"Try: http://{shown_host}:{port}/{tilde_encode(path.stem)}/-/recall?{query}")
    command = [sys.executable, "-m", "datasette", "serve", *served]
    raise SystemExit(subprocess.call([*command, "--host", host, "--port", str(port)]))


concept_recall.add_command(index)
concept_recall.add_command(evaluate)


def _check_address(host: str, port: int) -> None:
    """Raises `click.ClickException` when nothing could be served there, before anything is done."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            if os.name == "posix":  # as a server does: elsewhere it would take the port of another
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = "the port is taken" if error.errno == errno.EADDRINUSE else error.strerror
        message = f"Cannot serve on {host}, port {port}: {reason} (--port chooses another)"
        raise click.ClickException(terminal_line(message)) from error


def _joined(text: tuple[str, ...]) -> str:
    return " ".join(as_text(sys.stdin.buffer.read()) if part == "-" else part for part in text)
