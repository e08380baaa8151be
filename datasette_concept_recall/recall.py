"""The SQL of a recall: concept names to candidates, and the winners among them to matches.

Candidates are found from link tables and times alone; titles and bodies, which are most of a
database, are read for the few items that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .bitmaps import members
from .errors import UnknownProject
from .mapping import Concepts, Mapping, Source
from .models import Candidate, ConceptMatch, Key, RankKey
from .reading import Reader, as_text, json_list, quote_identifier
from .timestamps import age_of, parse_instant


@dataclass(frozen=True)
class AskedName:
    """One name asked for: the spelling it is reported by, and all stored ones that are equal."""

    name: str
    spellings: tuple[str, ...]


class AskedKeys(NamedTuple):
    """How links refer to the asked names: the position of each by key of a concept, and by name.

    Case variants share a position.
    """

    by_key: dict[Key, int]
    by_name: dict[str, int]


NOTHING_ASKED = AskedKeys({}, {})


def asked_keys(
    reader: Reader, concepts: Concepts, asked: Sequence[AskedName], names_are_plain: bool = False
) -> AskedKeys:
    """The keys of the asked names.

    Names are looked up by value when all of the database are plain texts. Others read like a text
    that has another value, so all names are read.
    """
    position = {spelling: n for n, name in enumerate(asked) for spelling in name.spellings}
    sql, parameters = f"select {concepts.key}, {concepts.name} from {concepts.rows}", []
    if names_are_plain:
        sql += f" where {concepts.name} in (select value from json_each(?))"
        parameters = [json_list(position)]
    names = ((key, as_text(name)) for key, name in reader.rows(sql, *parameters))
    by_key = {key: position[name] for key, name in names if name in position and _is_key(key)}
    return AskedKeys(by_key, position)


def _is_key(value: object) -> bool:
    """Whether links could refer to a value: JSON, in which keys are bound, has no bytes."""
    return isinstance(value, int | str)


def keys_of(source: Source, asked: AskedKeys) -> dict[Any, int]:
    """How the links of a source refer to the asked names."""
    if source.links_by_name:
        return asked.by_name
    return asked.by_key


def find_candidates(reader: Reader, mapping: Mapping, asked: AskedKeys) -> list[Candidate]:
    """Every item tagged with one of the concepts, one query per source."""
    found: list[Candidate] = []
    for source in mapping.sources:
        keys = keys_of(source, asked)
        found += candidates_of(source, reader.each(candidate_sql(source), json_list(keys)), keys)
    return found


def candidates_of(
    source: Source, rows: Iterable[tuple[Any, ...]], keys: dict[Any, int]
) -> list[Candidate]:
    """The items of a source from the rows of `candidate_sql`, one for each link."""
    # A link may hold the number of a concept as a text, or the other way round.
    position = {str(key): n for key, n in keys.items()} | keys
    carried: dict[Key, int] = {}
    items: dict[Key, tuple[int, Key | None, str]] = {}
    for item, concept, created, project_id, source_type in rows:
        bit = 1 << (position[concept] if concept in position else position[str(concept)])
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
        f"select {source.id}, {source.concept}, {source.created}, {source.project_id},"
        f" {source.source_type} from {source.links}"
        f" where {source.concept} in (select value from json_each(?))"
    )


def fill(
    reader: Reader,
    mapping: Mapping,
    winners: Sequence[Candidate],
    asked: Sequence[AskedName],
    projects: ProjectNames,
) -> list[ConceptMatch]:
    """The winners with all that is shown of them, in the order given. Raises `MissingRow`."""
    rows: dict[tuple[int, Key], tuple[Any, ...]] = {}
    superseded: dict[tuple[int, Key], tuple[str, ...]] = {}
    passages: dict[tuple[int, Key], dict[str, Any]] = {}
    sources = {source.order: source for source in mapping.sources}
    for order, source in sources.items():
        ids = json_list(c.key.id for c in winners if c.key.source == order)
        if ids != "[]":
            rows |= {(order, row[0]): row[1:] for row in reader.rows(fill_sql(source), ids)}
            superseded |= {(order, k): v for k, v in _superseded_by(reader, source, ids).items()}
            passages |= {(order, k): v for k, v in _passages(reader, source, ids, asked).items()}
    tables = {order: mapping.spelled(source.item_table) for order, source in sources.items()}
    return [
        replace(
            _match(candidate, sources[candidate.key.source], _row_of(candidate, rows)),
            **passages.get(candidate.key[2:], {}),
            concepts=tuple(asked[bit].name for bit in members(candidate.carried)),
            project=projects.of(candidate.project_id),
            superseded_by=superseded.get(candidate.key[2:], ()),
            item_table=tables[candidate.key.source],
        )
        for candidate in winners
    ]


class MissingRow(LookupError):
    """There is no row for a candidate, so it was not found in the tables as they are."""


def _row_of(candidate: Candidate, rows: dict[tuple[int, Key], tuple[Any, ...]]) -> tuple[Any, ...]:
    row = rows.get(candidate.key[2:])
    if row is None:
        raise MissingRow(candidate.key)
    return row


def fill_sql(source: Source) -> str:
    """Everything that is shown of the items of one JSON array of ids."""
    key = "".join(f", i.{quote_identifier(column)}" for column in source.key)
    return (
        f"select {source.id}, {source.created}, {source.title}, {source.body},"
        f" {source.summary_status}, {source.summary_stale}, {source.status}{key}"
        f" from {source.rows} where {source.id} in (select value from json_each(?))"
    )


def _match(candidate: Candidate, source: Source, row: tuple[Any, ...]) -> ConceptMatch:
    created, title, body, summary_status, summary_stale, status, *key = row
    return ConceptMatch(
        source_type=candidate.source_type,
        id=shown_id(key),
        project_id=candidate.project_id,
        project=None,
        title=as_text(title),
        body=as_text(body),
        match_count=candidate.carried.bit_count(),
        concepts=(),
        created_at=parse_instant(created),
        summary_status=None if summary_status is None else as_text(summary_status),
        summary_stale=None if summary_stale is None else bool(summary_stale),
        status=None if status is None else as_text(status),
        kind=dict(source.kinds)[candidate.source_type],
        key=tuple(key),
    )


def shown_id(key: Sequence[object]) -> Key:
    """The only value of a key when it is a number or a text, otherwise a JSON array of all."""
    if len(key) == 1 and isinstance(key[0], int | str):
        return key[0]
    values = [value.hex().upper() if isinstance(value, bytes) else value for value in key]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _superseded_by(reader: Reader, source: Source, ids: str) -> dict[Key, tuple[str, ...]]:
    """Item id -> references of the existing items that supersede it."""
    if source.relations is None:
        return {}
    newer: dict[Key, tuple[str, ...]] = {}
    for old, new in reader.rows(
        f"select r.to_id, i.id from {source.relations} r join {source.rows} on i.id = r.from_id"
        " where r.relationship = 'supersedes' and r.to_id in (select value from json_each(?))"
        " order by i.id",
        ids,
    ):
        newer[old] = (*newer.get(old, ()), f"{source.name}:{new}")
    return newer


def passages_of(
    reader: Reader, mapping: Mapping, pieces: Iterable[int]
) -> dict[Key, dict[str, Any]]:
    """Item id -> what is shown of it where these pieces of its text are to be shown."""
    wanted = json_list(pieces)
    if wanted == "[]":
        return {}
    return {
        item: {"passage": piece, "place": as_text(place), "body": as_text(text)}
        for source in mapping.sources
        if source.passage is not None
        for item, piece, place, text in reader.rows(source.passage, wanted)
    }


def _passages(
    reader: Reader, source: Source, ids: str, asked: Sequence[AskedName]
) -> dict[Key, dict[str, Any]]:
    """Item id -> what is shown of it where its text is in pieces: the one that says most."""
    if source.passages is None:
        return {}
    names = json_list(spelling for name in asked for spelling in name.spellings)
    return {
        item: {"passage": piece, "place": as_text(place), "body": as_text(text)}
        for item, piece, place, text in reader.rows(source.passages, ids, names)
    }


class ProjectNames:
    """The names of the projects to which items may belong.

    ``by_id`` is None when items hold the name itself.
    """

    def __init__(self, by_id: dict[Key, str] | None) -> None:
        self._by_id = by_id

    def of(self, project_id: Key | None) -> str | None:
        """The name of an item's project, None when it has none that may be seen."""
        if self._by_id is None or project_id is None:
            return None if project_id is None else str(project_id)
        return self._by_id.get(project_id)

    def ids(self, name: str) -> frozenset[Key]:
        """What stands in the items of a project; nothing when there is no such project."""
        if self._by_id is None:
            return frozenset({name})
        return frozenset(id_ for id_, known in self._by_id.items() if known == name)


def read_projects(reader: Reader, mapping: Mapping, asked: str | None) -> ProjectNames:
    """The projects that may be seen. Raises `UnknownProject` when the asked one is not there."""
    by_id: dict[Key, str] | None = {}
    if mapping.has_projects:
        rows = reader.rows("select id, name from projects")
        by_id = {id_: as_text(name) for id_, name in rows}
    elif mapping.names_projects:
        by_id = None
    if asked is not None and not (
        _is_project(reader, mapping, asked) if by_id is None else asked in by_id.values()
    ):
        raise UnknownProject(asked)
    return ProjectNames(by_id)


def _is_project(reader: Reader, mapping: Mapping, name: str) -> bool:
    """Whether any item has a project of this name."""
    return any(
        reader.rows(f"select 1 from {s.rows} where {s.project_id} = ? limit 1", name)
        for s in mapping.sources
        if s.project_is_name
    )


def linked_projects(reader: Reader, mapping: Mapping, keys: Iterable[Key]) -> set[int]:
    """Ids of the projects that are themselves tagged with one of the concepts."""
    if not mapping.has_project_links:
        return set()
    sql = (
        "select distinct project_id from project_concepts"
        " where concept_id in (select value from json_each(?))"
    )
    return {id_ for (id_,) in reader.rows(sql, json_list(keys))}
