"""The layers behind the concepts in Datasette: which database they look into, and for whom.

An index that is served answers for itself, and for every served database whose rows it holds. What
it finds of these is looked up in their own tables, so it may know of more than an actor may see;
what it may answer with is said by `index_access`.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from . import access, compat
from .deadlines import TooLate
from .fallbacks import SemanticFallback
from .file_layers import (
    Covered,
    covered_by,
    outdated,
    row_sources,
    sources_named,
    tables_of,
    uncovered,
    without,
)
from .fusion import Fusion
from .index_access import path_of, rows_seen, sees_projects, served_from, visible_index
from .instances import layers_config
from .layer_search import (
    NO_SEMANTIC,
    Semantic,
    references,
    search_full_text,
    search_layers,
    wanted,
    warned,
    without_semantic,
)
from .layered import Layers, Origin, RankedList
from .lexical import Within
from .mapping import Mapping
from .models import RecallRequest
from .reading import Reader, reading
from .registered import semantic_fallbacks
from .semantic_layers import kept_of, semantic_of

if TYPE_CHECKING:
    from datasette.app import Datasette

log = logging.getLogger("datasette_concept_recall")

T = TypeVar("T")

_FALLBACK_LIMIT = 100
"""So many references a fallback is asked for, of which some may be gone or not to be seen."""


_ONLY_CONCEPTS = "Searching by words and meaning failed, so only concepts were found"


class Asker(NamedTuple):
    """Who asks what of a database, and what of it may be seen: ``visible``."""

    actor: compat.Actor
    database: str
    visible: Mapping
    request: RecallRequest


def fusion_of(datasette: Datasette) -> Fusion:
    """How layers are fused, as configured."""
    config = layers_config(datasette)
    fusion = Fusion(config.k, config.lexical, config.semantic)
    if config.not_topical is None:
        return fusion
    return replace(fusion, not_topical=config.not_topical)


async def find_layers(datasette: Datasette, asker: Asker, asked_too: Iterable[str] = ()) -> Layers:
    """What the layers find. What fails becomes a warning: a recall is answered without it. Rows of
    databases that are ``asked_too`` are theirs to find, and not once more as documents of an
    index."""
    fusion = fusion_of(datasette)
    others: list[SemanticFallback] = []
    if "semantic" in wanted(asker.request):
        others = [f for f in semantic_fallbacks(datasette) if f.database == asker.database]
    try:
        found = await _without_fallbacks(datasette, asker, fusion, asked_too, bool(others))
    except Exception as error:  # a value in the index that nobody expects, or a fault of ours
        log.exception("The layers behind the concepts failed for %s", asker.database)
        found = Layers(warnings=(f"{_ONLY_CONCEPTS} ({type(error).__name__})",))
    answered = await asyncio.gather(
        *(_asked(datasette, other, asker.request.text, fusion) for other in others)
    )
    lists = (each for each in answered if isinstance(each, RankedList))
    warnings = (each for each in answered if isinstance(each, str))
    return Layers((*found.lists, *lists), (*found.warnings, *warnings))


async def _without_fallbacks(
    datasette: Datasette,
    asker: Asker,
    fusion: Fusion,
    asked_too: Iterable[str],
    by_words_alone: bool,
) -> Layers:
    """What is found in an index, or in the full text of a knowledge database."""
    if by_words_alone:
        if "lexical" not in wanted(asker.request):
            return Layers()
        asker = asker._replace(request=replace(asker.request, mode="lexical"))
    if asker.visible.is_index:
        return await _in_index(datasette, asker, fusion, asked_too)
    return await _in_rows(datasette, asker, fusion)


async def _asked(
    datasette: Datasette, fallback: SemanticFallback, text: str, fusion: Fusion
) -> RankedList | str:
    """What another plugin finds, in a thread, or why it does not answer."""
    deadline = layers_config(datasette).deadline_ms / 1000
    calls = kept_of(datasette).calls[id(fallback)]

    def search() -> RankedList | str:
        try:
            found = [str(ref) for ref in fallback.search(text, _FALLBACK_LIMIT)]
            return references(found[:_FALLBACK_LIMIT], fusion)
        # Whatever another plugin raises stays in its thread: SystemExit would end the server, and
        # a StopIteration, which no future can hold, would let the request wait for ever.
        except BaseException as error:
            return without_semantic(f"{type(error).__name__}: {error}")

    try:
        return await asyncio.to_thread(calls.call, search, deadline)
    except TooLate as late:
        return without_semantic(str(late))
    except Exception as error:  # such as of a machine that has no thread left
        return without_semantic(f"{type(error).__name__}: {error}")


async def _trip(
    datasette: Datasette, database: str, reader: Callable[[sqlite3.Connection], T]
) -> T | str:
    """What a function reads from a database under the time limit, or why it could not."""
    try:
        return await access.in_time(datasette, database, reader)
    except (sqlite3.Error, KeyError) as error:
        why = "took too long" if access.was_interrupted(error) else f"failed ({error})"
        return f"Searching the words in {database} {why}, so only concepts were found."


# --- in an index, among its own documents --------------------------------------------------------


async def _in_index(
    datasette: Datasette, asker: Asker, fusion: Fusion, asked_too: Iterable[str]
) -> Layers:
    """What an index finds among its own documents. Of rows from databases that are served those
    that the actor may see there and that hold there, and none of databases that are asked too."""
    actor, database, visible, request = asker
    if not visible.full_text:
        return Layers()
    sources = await _trip(datasette, database, _row_sources)
    if isinstance(sources, str):
        return Layers(warnings=(sources,))
    seen = await rows_seen(datasette, actor, sources)
    elsewhere = await _items_of(datasette, sources, asked_too)

    def search(conn: sqlite3.Connection) -> Layers:
        with reading(conn) as reader:
            chosen = sources_named(reader, request.project)
            # What was added since it was asked who may see which rows is for the next question.
            known = {each.id for each in sources}
            new = (each.id for each in row_sources(reader) if each.id not in known)
            hidden = tuple((id_, frozenset[str]()) for id_ in new)
            tables = (*seen.tables, *hidden)
            everything = Within(None, None, None, tables, seen.without_subjects)
            kinds = request.types or None
            within = replace(everything, sources=chosen, kinds=kinds, elsewhere=elsewhere)
            semantic, problem = _semantic(datasette, database, visible, reader, request)
        found = search_layers(conn, request, within, fusion, semantic, visible=everything)
        return warned(found, problem)

    found = await _trip(datasette, database, search)
    if isinstance(found, str):
        return Layers(warnings=(found, *seen.warnings))
    found = await _without_outdated(datasette, found)
    return replace(found, warnings=(*found.warnings, *seen.warnings))


def _row_sources(conn: sqlite3.Connection) -> list[Covered]:
    with reading(conn) as reader:
        return row_sources(reader)


async def _items_of(
    datasette: Datasette, sources: list[Covered], asked_too: Iterable[str]
) -> tuple[tuple[int, frozenset[str]], ...]:
    """Of sources with rows of databases that are asked themselves the tables whose rows these find:
    those of items. Other tables have nobody else to be found by."""
    asked = frozenset(asked_too)
    found: list[tuple[int, frozenset[str]]] = []
    for source in sources:
        for name in asked.intersection(served_from(datasette, source.path)):
            with suppress(sqlite3.Error, KeyError):  # then it finds nothing itself
                mapping = await access.known_mapping(datasette, name)
                found.append((source.id, tables_of(mapping, None)))
    return tuple(found)


async def _without_outdated(datasette: Datasette, layers: Layers) -> Layers:
    """Without the rows that no longer hold in the databases that they come from, and those of
    databases that cannot say which hold."""
    origins = {each.origin for found in layers.lists for each in found.found if each.origin}
    gone: set[Origin] = set()
    warnings: list[str] = []
    for path in sorted({origin.path for origin in origins}):
        here = [origin for origin in origins if origin.path == path]
        for name in served_from(datasette, Path(path)):
            try:
                mapping = await access.known_mapping(datasette, name)
                gone |= await access.in_time(
                    datasette, name, partial(outdated, origins=here, mapping=mapping)
                )
            except (sqlite3.Error, KeyError) as error:
                gone.update(here)
                warnings.append(
                    f"Rows of {name} were left out, since it could not be asked: {error}."
                )
    return replace(without(layers, gone), warnings=(*layers.warnings, *warnings))


# --- among the rows of a database ----------------------------------------------------------------


async def _in_rows(datasette: Datasette, asker: Asker, fusion: Fusion) -> Layers:
    """What is found of a database in the index that holds its rows, and of tables that no such
    index holds in its own full text."""
    visible, found = asker.visible, Layers()
    answered = await _in_index_of(datasette, asker, fusion)
    if answered is not None:
        found, covered = answered
        visible = uncovered(visible, covered)
    elif asker.request.mode == "semantic":
        return Layers(warnings=(NO_SEMANTIC,))
    if not visible.full_text or not visible.sources or asker.request.mode == "semantic":
        return found
    more = await _trip(
        datasette,
        asker.database,
        lambda conn: search_full_text(conn, visible, asker.request, fusion),
    )
    if isinstance(more, str):
        return replace(found, warnings=(*found.warnings, more))
    return Layers((*found.lists, *more.lists), (*found.warnings, *more.warnings))


async def _in_index_of(
    datasette: Datasette, asker: Asker, fusion: Fusion
) -> tuple[Layers, list[Covered]] | None:
    """What an index finds among the rows of a database, and of which tables it holds them; None
    when no index that the actor may see holds any."""
    actor, database, visible, request = asker
    path = path_of(datasette, database)
    if path is None:
        return None
    has_subjects = sees_projects(await access.known_mapping(datasette, database), visible)
    tables, narrowed = tables_of(visible, None), tables_of(visible, request)
    failed: tuple[Layers, list[Covered]] | None = None
    answers: list[tuple[int, bool, int, Layers, list[Covered]]] = []
    for name in access.databases(datasette):
        seen = None if name == database else await visible_index(datasette, actor, name)
        if seen is None:
            continue

        def search(
            conn: sqlite3.Connection, name: str = name, seen: Mapping = seen
        ) -> tuple[Layers, list[Covered], bool] | None:
            with reading(conn) as reader:
                covered = covered_by(reader, path)
                if not covered:
                    return None
                semantic, problem = _semantic(datasette, name, seen, reader, request)
            sources = frozenset(each.id for each in covered)
            hidden = frozenset[int]() if has_subjects else sources
            everything = Within(sources, tables, without_subjects=hidden)
            within = replace(everything, tables=narrowed)
            found = search_layers(
                conn, request, within, fusion, semantic, visible=everything, rows_only=True
            )
            return warned(found, problem), covered, semantic is not None

        found = await _trip(datasette, name, search)
        if isinstance(found, str):
            failed = failed or (Layers(warnings=(found,)), [])
        elif found is not None:
            layers, covered, has_meaning = found
            left = len(uncovered(visible, covered).sources)
            has_meaning = has_meaning or "semantic" not in wanted(request)
            answers.append((left, not has_meaning, len(answers), layers, covered))
            if not left and has_meaning:
                break
    if answers:  # of several indexes the one that holds most
        *_, layers, covered = min(answers, key=lambda answer: answer[:3])
        return layers, covered
    return failed


def _semantic(
    datasette: Datasette, database: str, visible: Mapping, reader: Reader, request: RecallRequest
) -> tuple[Semantic | None, str | None]:
    """The semantic layer of an index as the actor may use it, or why it cannot be asked."""
    if not visible.vectors or "semantic" not in wanted(request):
        return None, None
    return semantic_of(datasette, database, reader)
