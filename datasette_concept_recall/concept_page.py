"""One concept as a page, with its pictures, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from .charts import MOST_NEIGHBOURS, Neighbour, neighbourhood_svg, timeline_svg
from .concept_detail import ConceptDetail
from .concept_list import concept_url, entry_json
from .excerpts import ELLIPSIS
from .filters import table_link
from .identifiers import identifier_label, identifier_url
from .page import item_in_short, short_link
from .parameters import Parameters
from .paths import LONGEST_LINK, concept_link
from .presenting import Answer, rows_json

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

TEMPLATE = "concept_recall_concept.html"

_LONGEST_HEADING = 300


def concept_json(
    request: Request, datasette: Datasette, answer: Answer, found: ConceptDetail
) -> dict[str, Any]:
    """The concept as an object; ``answer`` shows its newest items."""
    database = str(answer.database)
    return {
        "ok": True,
        "database": database,
        **entry_json(found.entry),
        "identifiers": [
            {"type": kind, "value": value, "url": identifier_url(kind, value)}
            for kind, value in found.identifiers
        ],
        "projects": {
            name: count for name, count in found.newest.project_counts.items() if name is not None
        },
        "newest": [_without_body(row) for row in rows_json(request, datasette, answer)],
        "neighbours": [
            {"name": name, "shared": shared, "url": concept_url(request, datasette, database, name)}
            for name, shared in found.neighbours
        ],
        "use": {
            "unit": found.use.unit,
            "periods": [
                {"start": p.start.isoformat(), "label": p.label, "uses": p.uses}
                for p in found.use.periods
            ],
        },
        "url": concept_url(request, datasette, database, found.entry.name),
    }


def _without_body(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the API with its excerpt alone: an overview need not bring whole texts."""
    return {key: value for key, value in row.items() if key != "body"}


def concept_context(datasette: Datasette, answer: Answer, found: ConceptDetail) -> dict[str, Any]:
    """The concept as the context of its template; ``answer`` shows its newest items."""
    database, name = str(answer.database), found.entry.name
    mapping = answer.parts[0].mapping

    def recall_of(*names: str, kinds: tuple[str, ...] = ()) -> str | None:
        return short_link(datasette, database, Parameters(names=names, types=kinds))

    def rows_of(kind: str) -> str | None:
        table = mapping.spelled(mapping.source_of(kind).item_table)
        others = any(dict(source.kinds).keys() - {kind} for source in mapping.sources_of(table))
        link = table_link(datasette, database, table, [name], kind if others else "")
        return link if len(link) <= LONGEST_LINK else None

    return {
        "heading": name if len(name) <= _LONGEST_HEADING else name[:_LONGEST_HEADING] + ELLIPSIS,
        "found": found,
        "name": name,
        "kinds": [
            (label, found.entry.kinds[kind], recall_of(name, kinds=(kind,)), rows_of(kind))
            for kind, label in mapping.kinds.items()
            if found.entry.kinds.get(kind)
        ],
        "identifiers": [
            (identifier_label(kind), value, identifier_url(kind, value))
            for kind, value in found.identifiers
        ],
        "items": [item_in_short(datasette, answer, each) for each in answer.shown],
        "neighbours": [
            (other, shared, concept_link(datasette, database, other), recall_of(name, other))
            for other, shared in found.neighbours
        ],
        "recall_link": recall_of(name),
        "json_link": concept_link(datasette, database, name, ".json"),
        "timeline": _timeline_picture(found),
        "bar": _bar_in_words(found.use.unit),
        "neighbourhood": _neighbourhood_picture(datasette, database, found),
    }


def _timeline_picture(found: ConceptDetail) -> Markup | None:
    if len(found.use.periods) < 2:  # a single bar says nothing
        return None
    unit = found.use.unit
    description = f"{found.use.total:,} items by {unit}, from the first to the last."
    return Markup(timeline_svg(found.use, "use", f"Items by {unit}", description))


def _bar_in_words(unit: str) -> str:
    """What one bar of the picture stands for."""
    span = unit if unit[0].isdigit() else f"one {unit}"
    return f"Each bar holds the items of {span}{', from Monday' if unit == 'week' else ''}."


def _neighbourhood_picture(
    datasette: Datasette, database: str, found: ConceptDetail
) -> Markup | None:
    around = [
        Neighbour(name, shared, link)
        for name, shared in found.neighbours[:MOST_NEIGHBOURS]
        if (link := concept_link(datasette, database, name))
    ]
    if not around:
        return None
    title = "Concepts most often tagged together with it"
    description = "Each line is the wider the more items carry both concepts."
    return Markup(neighbourhood_svg(found.entry.name, around, "around", title, description))
