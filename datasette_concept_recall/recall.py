"""The SQL of a recall: concept names to candidates, and the winners among them to matches.

Candidates are found from link tables and times alone; titles and bodies, which are most of a
database, are read for the few items that are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .bitmaps import members
from .mapping import Mapping, Source
from .models import Candidate, ConceptMatch, RankKey
from .reading import Reader, as_text, json_list
from .timestamps import age_of, parse_instant


@dataclass(frozen=True)
class AskedName:
    """One name asked for: the spelling it is reported by, and all stored ones that are equal."""

    name: str
    spellings: tuple[str, ...]


def concept_ids(
    reader: Reader, asked: Sequence[AskedName], names_are_plain: bool = False
) -> dict[int, int]:
    """Concept id -> position of the asked name; case variants share a position.

    Names are looked up by value when all of the database are plain texts. Others read like a text
    that has another value, so all names are read.
    """
    position = {spelling: n for n, name in enumerate(asked) for spelling in name.spellings}
    sql, parameters = "select id, name from concepts", []
    if names_are_plain:
        sql += " where name in (select value from json_each(?))"
        parameters = [json_list(position)]
    names = ((id_, as_text(name)) for id_, name in reader.rows(sql, *parameters))
    return {id_: position[name] for id_, name in names if name in position}


def find_candidates(reader: Reader, mapping: Mapping, ids: dict[int, int]) -> list[Candidate]:
    """Every item tagged with one of the concepts, one query per source."""
    found: list[Candidate] = []
    for source in mapping.sources:
        found += candidates_of(source, reader.each(candidate_sql(source), json_list(ids)), ids)
    return found


def candidates_of(
    source: Source, rows: Iterable[tuple[Any, ...]], ids: dict[int, int]
) -> list[Candidate]:
    """The items of a source from the rows of `candidate_sql`, one for each link."""
    carried: dict[int, int] = {}
    items: dict[int, tuple[int, int | None, str]] = {}
    for item, concept, created, project_id, source_type in rows:
        bit = 1 << ids[concept]
        if item in carried:
            carried[item] |= bit
        else:
            carried[item] = bit
            items[item] = age_of(created), project_id, source_type
    return [
        Candidate(
            RankKey(-carried[item].bit_count(), age, source.order, item),
            source_type,
            project_id,
            carried[item],
        )
        for item, (age, project_id, source_type) in items.items()
    ]


def candidate_sql(source: Source) -> str:
    """Links to the concepts of one JSON array, with what decides the rank of their items.

    The columns: item, concept, created, project, source type.
    """
    return (
        f"select i.id, l.{source.link_concept}, {source.created}, {source.project_id},"
        f" {source.source_type}"
        f" from {source.rows} join {source.link} l on l.{source.link_item} = i.id"
        f" where l.{source.link_concept} in (select value from json_each(?))"
    )


def fill(
    reader: Reader,
    mapping: Mapping,
    winners: Sequence[Candidate],
    asked: Sequence[AskedName],
    project_names: dict[int, str],
) -> list[ConceptMatch]:
    """The winners with all that is shown of them, in the order given. Raises `MissingRow`."""
    rows: dict[tuple[int, int], tuple[Any, ...]] = {}
    superseded: dict[tuple[int, int], tuple[str, ...]] = {}
    for source in mapping.sources:
        order = source.order
        ids = json_list(c.key.id for c in winners if c.key.source == order)
        if ids != "[]":
            rows |= {(order, row[0]): row[1:] for row in reader.rows(fill_sql(source), ids)}
            superseded |= {(order, k): v for k, v in _superseded_by(reader, source, ids).items()}
    return [
        _match(
            candidate,
            _row_of(candidate, rows),
            tuple(asked[bit].name for bit in members(candidate.carried)),
            project_names,
            superseded.get(candidate.key[2:], ()),
        )
        for candidate in winners
    ]


class MissingRow(LookupError):
    """There is no row for a candidate, so it was not found in the tables as they are."""


def _row_of(candidate: Candidate, rows: dict[tuple[int, int], tuple[Any, ...]]) -> tuple[Any, ...]:
    row = rows.get(candidate.key[2:])
    if row is None:
        raise MissingRow(candidate.key)
    return row


def fill_sql(source: Source) -> str:
    """Everything that is shown of the items of one JSON array of ids."""
    return (
        f"select i.id, {source.created}, {source.title}, {source.body}, {source.summary_status},"
        f" {source.summary_stale}, {source.status}"
        f" from {source.rows} where i.id in (select value from json_each(?))"
    )


def _match(
    candidate: Candidate,
    row: tuple[Any, ...],
    concepts: tuple[str, ...],
    project_names: dict[int, str],
    superseded_by: tuple[str, ...],
) -> ConceptMatch:
    created, title, body, summary_status, summary_stale, status = row
    project_id = candidate.project_id
    return ConceptMatch(
        source_type=candidate.source_type,
        id=candidate.key.id,
        project_id=project_id,
        project=None if project_id is None else project_names.get(project_id),
        title=as_text(title),
        body=as_text(body),
        match_count=len(concepts),
        concepts=concepts,
        created_at=parse_instant(created),
        summary_status=None if summary_status is None else as_text(summary_status),
        summary_stale=None if summary_stale is None else bool(summary_stale),
        status=None if status is None else as_text(status),
        superseded_by=superseded_by,
    )


def _superseded_by(reader: Reader, source: Source, ids: str) -> dict[int, tuple[str, ...]]:
    """Item id -> references of the existing items that supersede it."""
    if source.relations is None:
        return {}
    newer: dict[int, tuple[str, ...]] = {}
    for old, new in reader.rows(
        f"select r.to_id, i.id from {source.relations} r join {source.rows} on i.id = r.from_id"
        " where r.relationship = 'supersedes' and r.to_id in (select value from json_each(?))"
        " order by i.id",
        ids,
    ):
        newer[old] = (*newer.get(old, ()), f"{source.name}:{new}")
    return newer


def read_project_names(reader: Reader, mapping: Mapping) -> dict[int, str]:
    """Project id -> name, of all projects that may be seen."""
    if not mapping.has_projects:
        return {}
    return {id_: as_text(name) for id_, name in reader.rows("select id, name from projects")}


def linked_projects(reader: Reader, mapping: Mapping, ids: dict[int, int]) -> set[int]:
    """Ids of the projects that are themselves tagged with one of the concepts."""
    if not mapping.has_project_links:
        return set()
    sql = (
        "select distinct project_id from project_concepts"
        " where concept_id in (select value from json_each(?))"
    )
    return {id_ for (id_,) in reader.rows(sql, json_list(ids))}
