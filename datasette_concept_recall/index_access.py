"""Who may see what of an index, and of the rows it holds of databases that are served.

An actor who may not see the index is not answered from it, and one who may not see a table of a
served database is shown no rows of it that an index has a copy of.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import access, compat
from .file_layers import Covered, resolved
from .mapping import Mapping
from .schema import lowered

if TYPE_CHECKING:
    from datasette.app import Datasette


async def visible_index(datasette: Datasette, actor: compat.Actor, database: str) -> Mapping | None:
    """What an actor sees of an index; None when the database is none, or its text is not to be
    seen."""
    try:
        mapping = await access.known_mapping(datasette, database)
        if not mapping.is_index:
            return None
        visible = await access.visible_mapping(datasette, actor, database, mapping)
    except (sqlite3.Error, KeyError):
        return None  # its own pages say what is wrong with it
    return visible if visible is not None and visible.full_text else None


class Seen(NamedTuple):
    """What an actor may see of the rows in an index: of some sources only these ``tables`` (in
    lower case), of those ``without_subjects`` not all that they are about. Of databases that could
    not be asked nothing may be seen; ``warnings`` says which."""

    tables: tuple[tuple[int, frozenset[str]], ...]
    without_subjects: frozenset[int]
    warnings: tuple[str, ...]


async def rows_seen(datasette: Datasette, actor: compat.Actor, sources: list[Covered]) -> Seen:
    """What may be seen of the sources with rows of databases that are served."""
    seen: list[tuple[int, frozenset[str]]] = []
    without_subjects: set[int] = set()
    warnings: list[str] = []
    for source in sources:
        for name in served_from(datasette, source.path):
            try:
                tables, has_subjects = await _visible_tables(datasette, actor, name)
            except (sqlite3.Error, KeyError) as error:
                tables, has_subjects = frozenset(), False
                warnings.append(f"The rows of {name} were not searched: {error}.")
            seen.append((source.id, tables))
            if not has_subjects:
                without_subjects.add(source.id)
    return Seen(tuple(seen), frozenset(without_subjects), tuple(warnings))


async def _visible_tables(
    datasette: Datasette, actor: compat.Actor, database: str
) -> tuple[frozenset[str], bool]:
    """The tables of a database that an actor may see, in lower case, and whether the names of
    projects are in them."""
    if not await compat.may_view_database(datasette, actor, database):
        return frozenset(), False
    names = await datasette.get_database(database).table_names()
    tables = await compat.visible_tables(datasette, actor, database, names, as_spelled=True)
    mapping = await access.known_mapping(datasette, database)
    return frozenset(map(lowered, tables)), sees_projects(mapping, mapping.visible_to(tables))


def sees_projects(mapping: Mapping, visible: Mapping) -> bool:
    """Whether the names of projects are in what is visible of a mapping, as far as they are in the
    mapping itself."""
    shown = {source.name: source.project_id for source in visible.sources}
    same = all(shown.get(s.name, s.project_id) == s.project_id for s in mapping.sources)
    return same and visible.has_projects == mapping.has_projects


def path_of(datasette: Datasette, database: str) -> Path | None:
    """The file that a database is served from, without links; None when it is in memory, or not
    served."""
    served = datasette.databases.get(database)
    return resolved(Path(served.path)) if served and served.path else None


def served_from(datasette: Datasette, path: Path) -> list[str]:
    """The databases that are served from the file at a path, in the order of the instance."""
    wanted = resolved(path)
    return [name for name in list(datasette.databases) if path_of(datasette, name) == wanted]
