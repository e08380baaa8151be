"""The peer of `bench.recall`: the rules of recall as they are said, in one statement and a sort."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from datasette_concept_recall.timestamps import age_of

_LOAD_ALL = """
    select c.name, 'observation', i.id, p.name, '', i.body, i.created_at, '', 0, ''
    from concepts c join observation_concepts l on l.concept_id = c.id
    join observations i on i.id = l.observation_id left join projects p on p.id = i.project_id
    where c.name in ({names})
    union all
    select c.name, 'record', i.id, p.name, i.title, i.body, i.ingested_at, '', 0, i.status
    from concepts c join record_concepts l on l.concept_id = c.id
    join records i on i.id = l.record_id left join projects p on p.id = i.project_id
    where c.name in ({names})
    union all
    select c.name, 'document_' || iif(i.level = 'gist', 'gist', 'section'), i.id, p.name,
      d.title || ' / ' || i.heading, iif(i.summary_status = 'reviewed', i.summary_body, ''),
      i.created_at, i.summary_status, i.summary_stale, ''
    from concepts c join document_section_concepts l on l.concept_id = c.id
    join document_sections i on i.id = l.section_id
    left join documents d on d.id = i.document_id left join projects p on p.id = d.project_id
    where c.name in ({names})
"""
_ORDER = {"observation": 0, "record": 1, "document_gist": 2, "document_section": 2}


def load_all(conn: sqlite3.Connection, names: Sequence[str], limit: int) -> list[tuple[str, int]]:
    """The rules of recall as they are said: load what is tagged, sort by rank, cut."""
    marks = ", ".join(f"?{number}" for number in range(1, len(names) + 1))
    concepts: dict[tuple[str, int], set[str]] = {}
    items: dict[tuple[str, int], tuple[Any, ...]] = {}
    for name, kind, id_, *rest in conn.execute(_LOAD_ALL.format(names=marks), names):
        concepts.setdefault((kind, id_), set()).add(name)
        items[kind, id_] = tuple(rest)

    def rank(key: tuple[str, int]) -> tuple[int, int, int, int]:
        return -len(concepts[key]), age_of(items[key][3]), _ORDER[key[0]], key[1]

    return sorted(items, key=rank)[:limit]
