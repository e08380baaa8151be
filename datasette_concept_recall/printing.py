"""What the commands print: answers, plans and findings as lines for a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from .config import ConceptsConfig, DatabaseConfig, SourceConfig
from .excerpts import plain
from .models import Context, RecallResult
from .presenting import badges, found_by, show_matches, warnings_of

if TYPE_CHECKING:
    from .inspecting import Inspection
    from .optimizing import Plan

_control_characters = re.compile(r"[\x00-\x1f\x7f-\x9f]+").sub


def terminal_line(text: str) -> str:
    """A text on one line, without the control characters that a terminal would obey."""
    return " ".join(_control_characters(" ", text).split())


def print_context(result: RecallResult, context: Context) -> None:
    """The context alone; what there is to say about it goes where it gets into no prompt."""
    for warning in warnings_of(result):
        click.echo(warning, err=True)
    if not result.concepts and not context.text:
        click.echo("No concept of this database is named.", err=True)
    elif not context.text:
        click.echo("Nothing that is tagged with them fits.", err=True)
    click.echo(context.text, nl=False)


def print_result(result: RecallResult) -> None:
    """An answer, item by item."""
    for warning in warnings_of(result):
        click.echo(warning, err=True)
    for miss in result.near_misses:
        words = f"Did you mean {terminal_line(miss.concept)} for “{terminal_line(miss.text)}”?"
        click.echo(words, err=True)
    if result.concepts:
        counts = (f"{terminal_line(c.name)} ({c.total})" for c in result.counts)
        click.echo("Concepts: " + ", ".join(counts))
    else:
        click.echo("No concept of this database is named.")
    if result.concepts and not result.matches:
        click.echo("Nothing is tagged with them.")
    for shown in show_matches(result):
        match = shown.match
        day = match.created_at.date().isoformat() if match.created_at else "no date"
        about = [match.kind, match.ref, match.project, match.place, day]
        about += [words for _, words in badges(match)]
        click.echo(f"\n{shown.rank}. {terminal_line(match.title) or match.ref}")
        click.echo("   " + " · ".join(terminal_line(part) for part in about if part))
        if match.concepts:
            click.echo("   Concepts: " + ", ".join(map(terminal_line, match.concepts)))
        if match.layers:
            click.echo("   Found by " + terminal_line("; ".join(found_by(match))))
        excerpt = terminal_line(plain(shown.excerpt))
        if excerpt:
            click.echo(click.wrap_text(excerpt, 78, "   ", "   "))
    if result.next_key:
        click.echo(f"\n{len(result.matches)} of {result.total} items; --limit 0 shows all.")


def print_plan(todo: Plan) -> None:
    """What `optimize` would do."""
    if todo.is_done:
        click.echo("Nothing to do: everything is there and up to date.")
    if todo.missing:
        click.echo(f"Would add {len(todo.missing)} tables, triggers and indexes:")
    for name in todo.missing:
        click.echo(f"  {name}")
    if todo.changed:
        items = "item" if todo.changed == 1 else "items"
        click.echo(f"Would bring {todo.changed:,} changed {items} up to date.")


_FILE = "datasette.yaml (0.65: metadata.yaml)"

_EXAMPLE = DatabaseConfig(
    ConceptsConfig("TABLE_OF_TAGS", name="NAME"),
    {
        "LABEL": SourceConfig(
            "TABLE", link="TABLE_OF_LINKS", item_key=("TO_THE_ROW",), concept_key="TO_THE_TAG"
        )
    },
)
"""What somebody has to fill in where nothing was found."""


def print_inspection(inspection: Inspection, database: str) -> None:
    """What was found in a database, why, and the same as configuration."""
    import yaml

    mapping, reasons, config = inspection.found
    if mapping.concepts is None:
        click.echo("Nothing that recall could read was found.")
    else:
        where = mapping.spelled(mapping.concepts.table) if mapping.concepts.table else "arrays"
        same = inspection.concepts == inspection.names
        also = "" if same else f", {inspection.concepts:,} concepts (variants of a name are one)"
        click.echo(f"Concepts: {inspection.names:,} names in {terminal_line(where)}{also}")
    for counted in inspection.sources:
        table = terminal_line(mapping.spelled(counted.source.item_table))
        click.echo(f"Tagged: {counted.tagged:,} of {counted.rows:,} rows of {table}")
    click.echo("\nWhy:")
    for reason in reasons:
        click.echo(f"  {terminal_line(reason)}")
    if config is None and mapping.concepts is not None:
        click.echo("\nNo configuration is needed.")
        return
    if config is None:
        click.echo(
            "\nTables can be described in datasette.yaml (0.65: metadata.yaml), for example:\n"
        )
        config = _EXAMPLE
    else:
        click.echo(
            "\nThe same as configuration, in datasette.yaml (0.65: metadata.yaml), to change:\n"
        )
    described = {"databases": {database: config.as_configuration()}}
    block = {"plugins": {"datasette-concept-recall": described}}
    click.echo(yaml.safe_dump(block, sort_keys=False, allow_unicode=True).rstrip())
