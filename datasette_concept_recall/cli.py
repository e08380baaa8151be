"""``datasette concept-recall``: recall on the command line, and the demo."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import click

from .errors import DatabaseUnreadable, RecallError
from .models import RecallRequest, RecallResult
from .presenting import KINDS, badges, concepts_json, iso, show_matches
from .reading import as_text
from .search import recall
from .vocabulary import match_concept_names


class _Group(click.Group):
    """Turns every error that a user can cause into one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (RecallError, sqlite3.Error) as error:
            raise click.ClickException(" ".join(str(error).split())) from error


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
    with _opened(db) as conn:
        names = match_concept_names(conn, _joined(text))
    for name in names:
        click.echo(name)
    if not names:
        click.echo("No concept of this database is named.", err=True)


@concept_recall.command(name="recall")
@click.argument("db", type=click.Path(path_type=Path))
@click.argument("text", nargs=-1)
@click.option("names", "--concept", multiple=True, help="A concept to look for, besides TEXT")
@click.option("--project", help="Only items of this project")
@click.option("--limit", type=int, default=10, show_default=True, help="At most so many, 0: all")
@click.option("as_json", "--json", is_flag=True, help="Print one JSON object")
def recall_command(
    db: Path,
    text: tuple[str, ...],
    names: tuple[str, ...],
    project: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Print what is tagged with the concepts of DB that TEXT names, ranked

    TEXT is - to read standard input; several arguments are joined by spaces.
    """
    if not text and not names:
        raise click.UsageError("Give a TEXT, - for standard input, or --concept.")
    if limit < 0:
        raise click.UsageError("--limit is 0 or more.")
    request = RecallRequest(text=_joined(text), names=names, project=project, limit=limit)
    with _opened(db) as conn:
        result = recall(conn, request)
    if as_json:
        click.echo(json.dumps(_as_json(result), indent=2, ensure_ascii=False))
    else:
        _print(result)


def _as_json(result: RecallResult) -> dict[str, object]:
    rows = []
    for shown in show_matches(result):
        row = shown.as_json("")
        del row["url"]  # there is no server
        rows.append(row)
    return {
        "ok": True,
        "concepts": concepts_json(result),
        "rows": rows,
        "projects": result.projects,
        "total": result.total,
        "truncated": result.next_key is not None,
        "warnings": result.warnings,
    }


def _print(result: RecallResult) -> None:
    for warning in result.warnings:
        click.echo(warning, err=True)
    if not result.concepts:
        click.echo("No concept of this database is named.")
        return
    click.echo("Concepts: " + ", ".join(f"{c.name} ({c.total})" for c in result.counts))
    if not result.matches:
        click.echo("Nothing is tagged with them.")
    for shown in show_matches(result):
        match = shown.match
        day = match.created_at.strftime("%Y-%m-%d") if match.created_at else "no date"
        about = [KINDS[match.source_type], match.ref, match.project, day]
        about += [words for _, words in badges(match)]
        click.echo(f"\n{shown.rank}. {match.title or match.ref}")
        click.echo("   " + " · ".join(part for part in about if part))
        click.echo("   Concepts: " + ", ".join(match.concepts))
        excerpt = " ".join("".join(part.text for part in shown.excerpt).split())
        if excerpt:
            click.echo(click.wrap_text(excerpt, 78, "   ", "   "))
    if result.next_key:
        click.echo(f"\n{len(result.matches)} of {result.total} items; --limit 0 shows all.")


@concept_recall.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("concept-recall-demo.db"))
@click.option("--no-serve", is_flag=True, help="Only write the database")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on")
@click.option("--port", type=click.IntRange(1, 65535), default=8001, show_default=True)
def demo(path: Path, no_serve: bool, host: str, port: int) -> None:
    """Write a knowledge database about this plugin to PATH, and serve it

    A file that the demo did not make is never overwritten.
    """
    from .demo import build_demo

    summary = build_demo(path)
    click.echo(
        f"Wrote {path}: {summary.records} records, {summary.observations} observations, "
        f"{summary.sections} document sections and {summary.concepts} concepts."
    )
    query = urlencode({"q": summary.question})
    if no_serve:
        click.echo(f"To browse it: datasette {path}")
        return
    shown_host = f"[{host}]" if ":" in host else host
    click.echo(f"Try: http://{shown_host}:{port}/{path.stem}/-/recall?{query}")
    command = [sys.executable, "-m", "datasette", "serve", str(path)]
    raise SystemExit(subprocess.call([*command, "--host", host, "--port", str(port)]))


def _joined(text: tuple[str, ...]) -> str:
    parts = [
        as_text(click.get_binary_stream("stdin").read()) if part == "-" else part for part in text
    ]
    return " ".join(parts)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database for reading only. Raises `DatabaseUnreadable`."""
    if not path.exists():
        raise DatabaseUnreadable(f"There is no file {path}")
    if path.is_dir():
        raise DatabaseUnreadable(f"{path} is a folder, not a database")
    try:
        with closing(_connect(path)) as conn:
            yield conn
    except sqlite3.Error as error:
        raise DatabaseUnreadable(f"{path} cannot be read: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    conn = sqlite3.connect(f"{uri}?mode=ro", uri=True)
    try:
        conn.execute("select 1 from sqlite_master limit 1").fetchall()
    except sqlite3.OperationalError:
        # In a folder that cannot be written, a file in WAL mode has nowhere for its index. When
        # nobody left a log beside it, it can be read as it is.
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        conn.close()
        conn = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
    return conn
