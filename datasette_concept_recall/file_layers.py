"""The layers behind the concepts for a file and an index of it, without Datasette."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .beside import is_live, is_there
from .errors import RecallError
from .fusion import Fusion
from .indexing.embedding import Embedder
from .layer_search import Semantic, search_full_text, search_layers, wanted, warned
from .layered import Layers, Origin
from .lexical import Within
from .mapped import read_mapping
from .mapping import Mapping
from .models import RecallRequest, RecallResult
from .opening import opened
from .query_vectors import QueryVectors
from .reading import Reader, reading
from .schema import lowered, read_schema
from .search import recall
from .semantic import VectorIndex

EmbedderOf = Callable[[str], Embedder]
"""Gives an embedder by its name, or raises `RecallError`."""

SemanticOf = Callable[[Reader], tuple[Semantic | None, str | None]]
"""Gives the semantic layer of an index, or why it cannot be asked."""


def recall_with_layers(
    conn: sqlite3.Connection,
    path: Path,
    request: RecallRequest,
    embedder_of: EmbedderOf,
    index: Path | None = None,
    fusion: Fusion | None = None,
    embedder: str | None = None,
) -> RecallResult:
    """Answers a request from the file at ``path``, open as ``conn``; where concepts find less than
    was asked for from the other layers, too.

    These look into the file itself when it is an index, else into the ``index`` that holds its
    rows, else into its own full text. ``embedder`` is the name of the one that is asked, None for
    that of the index, which is not asked when it is remote. Raises what `search.recall` does, and
    `RecallError` when the index is none, or holds no rows of the file.
    """
    fusion = fusion or Fusion()
    result = recall(conn, request, fusion=fusion)
    if not result.wants_layers:
        return result
    semantic_of = partial(_semantic, embedder_of=embedder_of, named=embedder)
    with reading(conn) as reader:
        mapping = read_mapping(reader)
    if mapping.is_index:
        found = _search(conn, mapping, request, fusion, semantic_of, None)
        found = _without_outdated(found)
    elif index is not None:
        with opened(index) as other:
            with reading(other) as reader:
                of_index = read_mapping(reader)
                if not of_index.full_text or not of_index.is_index:
                    raise RecallError(f"{index} is no index of this version")
            found = _search(other, of_index, request, fusion, semantic_of, (path, mapping))
    else:
        found = search_full_text(conn, mapping, request, fusion)
    return recall(conn, request, layers=found, fusion=fusion)


def _search(
    conn: sqlite3.Connection,
    mapping: Mapping,
    request: RecallRequest,
    fusion: Fusion,
    semantic_of: SemanticOf,
    of: tuple[Path, Mapping] | None,
) -> Layers:
    """What is found in an index, or with ``of`` among the rows of that file."""
    if not mapping.full_text:
        return Layers()
    with reading(conn) as reader:
        if of is None:
            within = Within(sources_named(reader, request.project), None, request.types or None)
        else:
            path, rows = of
            covered = covered_by(reader, path)
            if not covered:
                raise RecallError(f"The index holds no rows of {path}")
            within = Within(frozenset(each.id for each in covered), tables_of(rows, request))
        is_wanted = "semantic" in wanted(request)
        semantic, problem = semantic_of(reader) if is_wanted else (None, None)
    found = search_layers(conn, request, within, fusion, semantic, rows_only=of is not None)
    return warned(found, problem)


def sources_named(reader: Reader, name: str | None) -> frozenset[int] | None:
    """The sources of an index to which a project narrows; None for all."""
    if name is None:
        return None
    return frozenset(id_ for (id_,) in reader.rows("select id from source where name = ?", name))


class Covered(NamedTuple):
    """A source with the rows of a database: its id, the path, and the tables that it reads, in
    lower case (None: all of prose)."""

    id: int
    path: Path
    tables: frozenset[str] | None


def row_sources(reader: Reader, are_whole: bool = False) -> list[Covered]:
    """All sources of an index that have rows; with ``are_whole`` those that were read through and
    stay."""
    whole = (
        " and not is_leaving and exists (select 1 from index_version v where v.source_id = s.id"
        " and v.state = 'live')"
    )
    return [
        Covered(id_, Path(origin), _tables_in(options))
        for id_, origin, options in reader.rows(
            f"select id, origin, options from source s where kind = 'rows'{whole * are_whole}"
        )
    ]


def _tables_in(options: str) -> frozenset[str] | None:
    named = json.loads(options).get("tables")
    return frozenset(map(lowered, named)) if named else None


def covered_by(reader: Reader, path: Path) -> list[Covered]:
    """Those of them that have rows of a file."""
    wanted = resolved(path)
    return [each for each in row_sources(reader, are_whole=True) if resolved(each.path) == wanted]


def resolved(path: Path) -> Path:
    """A path without links; as it is where it cannot be looked at, which may be in a folder of
    somebody else or in a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def uncovered(mapping: Mapping, covered: list[Covered]) -> Mapping:
    """What of a mapping no index holds."""
    sources = (
        source
        for source in mapping.sources
        if not any(c.tables is None or source.item_table in c.tables for c in covered)
    )
    return replace(mapping, sources=tuple(sources))


def tables_of(mapping: Mapping, request: RecallRequest | None) -> frozenset[str]:
    """The tables of the items of a mapping, or of those that a request asks for, in lower case."""
    types = request.types if request else None
    return frozenset(
        source.item_table
        for source in mapping.sources
        if not types or types & dict(source.kinds).keys()
    )


def embedder_name(reader: Reader) -> str | None:
    """The name of the embedder of the vectors that are searched in an index, None without one: that
    with which it is made, or while it is built anew with another one that of what is there."""
    settings = dict(reader.rows("select name, value from setting where name like 'embedder%'"))
    chosen = json.loads(settings.get("embedder", "null"))
    names = json.loads(settings.get("embedder_names", "{}"))
    live = [
        names[embedder]
        for (embedder,) in reader.rows(
            "select distinct embedder from index_version where state = 'live' order by id"
        )
        if embedder in names
    ]
    return live[0] if live and chosen not in live else chosen


def not_allowed(name: str, how: str) -> str:
    """Why a remote embedder, which an index remembers, is not asked: nobody named it, which is done
    as ``how`` says."""
    return (
        f"the index was made with the embedder {name}, which sends questions to another machine;"
        f" name it {how} to allow that"
    )


def _semantic(
    reader: Reader, embedder_of: EmbedderOf, named: str | None
) -> tuple[Semantic | None, str | None]:
    name = embedder_name(reader)
    if name is None:
        return None, None
    try:
        embedder = embedder_of(name if named is None else named)
    except RecallError as error:
        return None, str(error)
    if embedder.is_remote and named is None:
        return None, not_allowed(name, "with --embedder")
    return Semantic(VectorIndex(embedder.identity.name), QueryVectors(embedder)), None


def _without_outdated(layers: Layers) -> Layers:
    """Without the rows that no longer hold in the files that they come from, as far as these are
    there."""
    origins = {each.origin for found in layers.lists for each in found.found if each.origin}
    gone: set[Origin] = set()
    for path in {origin.path for origin in origins}:
        try:
            with opened(Path(path)) as conn:
                gone |= outdated(conn, [each for each in origins if each.path == path])
        except RecallError:
            continue  # what cannot be read says nothing of what holds
    return without(layers, gone)


def outdated(
    conn: sqlite3.Connection, origins: list[Origin], mapping: Mapping | None = None
) -> set[Origin]:
    """Those of the rows of one database that are gone from it or hold no longer."""
    with reading(conn) as reader:
        mapping = mapping or read_mapping(reader)
        tables = {source.item_table for source in mapping.sources}
        items = {o for o in origins if o.row.table in tables and not o.row.is_rowid}
        schema = None if len(items) == len(set(origins)) else read_schema(reader)
        return {
            origin
            for origin in origins
            if not (
                is_live(reader, mapping, origin.row)
                if schema is None or origin in items
                else is_there(reader, schema, origin.row)
            )
        }


def without(layers: Layers, gone: set[Origin]) -> Layers:
    """What layers found but for these rows."""
    if not gone:
        return layers
    lists = (
        replace(each, found=tuple(f for f in each.found if f.origin not in gone))
        for each in layers.lists
    )
    return replace(layers, lists=tuple(lists))
