"""The lexical layer: full text of whole records, ranked by BM25.

In an index it is stemmed, and of a record not only the text but what is known of it (project, kind,
concepts, date) is searched. Where there is no index it is the full text that the program `kb`
keeps in a knowledge database, which knows no stems.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from unicodedata import combining, normalize

from .folding import fold
from .layered import Passage
from .mapping import FULL_TEXT, Mapping
from .models import Key
from .reading import Reader, json_list
from .topical import Question, in_words, singular

NAMED = 4.0
"""What it adds to the BM25 of a record when the question has the whole name of its subject, or of
an entity of it: about what a rare word adds, also where the name is in most records, of which BM25
would make nothing."""

_MARKS = tuple(f"<{secrets.token_hex(16)}>" for _ in range(2))
"""What full text puts around the words that it found. No text can have them, since nobody knows
them: else it could pass anything for a word of the question."""

_marked = re.compile("(.*?)".join(_MARKS), re.DOTALL).findall


@dataclass(frozen=True)
class Within:
    """What of an index is searched: documents of these sources, of rows those of these tables (in
    lower case), and these kinds. None: all. ``seen`` narrows the rows of some sources to tables
    that may be seen, ``elsewhere`` are tables of which others find the rows. Of what the sources
    ``without_subjects`` have nobody may know what it is about, such as its project: where there are
    any, nothing is found by that, and nothing of them by vectors, which are made of it as well."""

    sources: frozenset[int] | None = None
    tables: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    seen: tuple[tuple[int, frozenset[str]], ...] = ()
    without_subjects: frozenset[int] = frozenset()
    elsewhere: tuple[tuple[int, frozenset[str]], ...] = ()

    @property
    def subjects(self) -> bool:
        """Whether something may be found by what it is about."""
        return not self.without_subjects

    def with_meaning(self) -> Within:
        """What of it may be searched by vectors."""
        nothing = frozenset[str]()
        hidden = tuple((source, nothing) for source in sorted(self.without_subjects))
        return replace(self, seen=(*self.seen, *hidden))

    def admits(self, source: int, table: str | None, kind: str) -> bool:
        """Whether a document of a source is searched."""
        return (
            (self.sources is None or source in self.sources)
            and (self.tables is None or table in self.tables)
            and (self.kinds is None or kind in self.kinds)
            and all(table in tables for each, tables in self.seen if each == source)
            and not any(table in tables for each, tables in self.elsewhere if each == source)
        )

    def condition(self) -> tuple[str, list[object]]:
        """The same as a condition over a document ``d``, and what to bind for it."""
        terms: list[str] = ["d.is_active"]
        values: list[object] = []
        for column, allowed in (
            ("d.source_id", self.sources),
            ("d.item_table", self.tables),
            ("d.kind", self.kinds),
        ):
            if allowed is not None:
                terms.append(f"{column} in (select value from json_each(?))")
                values.append(json_list(sorted(allowed)))
        for source, tables in self.seen:
            terms.append("(d.source_id <> ? or d.item_table in (select value from json_each(?)))")
            values += [source, json_list(sorted(tables))]
        for source, tables in self.elsewhere:
            terms.append(
                "(d.source_id <> ? or d.item_table not in (select value from json_each(?)))"
            )
            values += [source, json_list(sorted(tables))]
        return " and ".join(terms), values

    def scoped(self, query: str) -> str:
        """A query of the full text for the columns that are searched."""
        return query if self.subjects else f"{{text context}} : ({query})"


def search_index(reader: Reader, question: Question, within: Within, limit: int) -> list[Passage]:
    """The live documents of an index that have a topical word of the question, best first.

    They are ranked by all words, topical ones counting twice.
    """
    if not question.topical:
        return []
    condition, values = within.condition()
    rows = reader.rows(
        "select d.id, c.id, d.source_id, d.key, d.item_table is not null,"
        f" min(f.score) - {NAMED} * (d.id in ({_NAMED_DOCUMENTS})) as total"
        " from (select rowid as id, bm25(chunk_fts) as score from chunk_fts"
        " where chunk_fts match ? limit -1) f"  # which keeps SQLite from taking it apart
        " cross join chunk c on c.id = f.id"
        " cross join document d on d.live_generation = c.generation_id"
        f" where {condition} group by d.id order by total, d.id limit ?",
        json_list(_names(question, within)),
        within.scoped(_admitting(question.topical, question.others)),
        *values,
        limit,
    )
    return [
        Passage(id_, chunk, source, key, bool(is_row))
        for id_, chunk, source, key, is_row, _ in rows
    ]


def named(reader: Reader, question: Question, within: Within) -> list[int]:
    """The documents of which the question has the whole name of their subject, or of an entity."""
    rows = reader.rows(_NAMED_DOCUMENTS, json_list(_names(question, within)))
    return [id_ for (id_,) in rows]


def _names(question: Question, within: Within) -> list[str]:
    return sorted(question.names) if within.subjects else []


_NAMED_DOCUMENTS = (
    "select document_id from document_name where name in (select value from json_each(?))"
)


def words_of_chunks(
    reader: Reader, question: Question, within: Within, chunks: Iterable[int]
) -> dict[int, tuple[str, ...]]:
    """Of those of the chunks of an index that have a topical word of the question, their words
    that are such, in lower case, as they stand in the text or in what is known of it."""
    if not question.topical:
        return {}
    # The plus keeps SQLite from searching the words anew for each of the chunks.
    rows = reader.rows(
        "select rowid, highlight(chunk_fts, 0, ?, ?), highlight(chunk_fts, 1, ?, ?),"
        " highlight(chunk_fts, 2, ?, ?) from chunk_fts"
        " where chunk_fts match ? and +rowid in (select value from json_each(?))",
        *_MARKS * 3,
        within.scoped(_any(question.topical)),
        json_list(chunks),
    )
    return {id_: _words(*highlighted) for id_, *highlighted in rows}


def admitted(
    reader: Reader, question: Question, within: Within, chunks: Iterable[int] | None = None
) -> list[int]:
    """The chunks of an index, or those of some, that have a topical word of the question."""
    if not question.topical:
        return []
    sql = "select rowid from chunk_fts where chunk_fts match ?"
    values = [within.scoped(_any(question.topical))]
    if chunks is not None:
        sql += " and +rowid in (select value from json_each(?))"
        values.append(json_list(chunks))
    return [id_ for (id_,) in reader.rows(sql, *values)]


def _words(*highlighted: str | None) -> tuple[str, ...]:
    """The words between marks, each once. What full text takes for two words, which may have
    anything between them, is left out."""
    found = (word.lower() for text in highlighted for word in _marked(text or ""))
    return tuple(filter(_is_word, dict.fromkeys(found)))


def _is_word(text: str) -> bool:
    return in_words(text).split() == [fold(text)]


def _any(words: Sequence[str]) -> str:
    """The query for texts with any of the words; in quotes no character means anything."""
    return " OR ".join(f'"{word}"' for word in words)


def _admitting(topical: Sequence[str], others: Sequence[str]) -> str:
    """The query that any of the topical words admits to, and in which all words rank."""
    if not others:
        return _any(topical)
    return f"({_any(topical)}) AND ({_any([*topical, *others])})"


# --- the full text of a knowledge database -------------------------------------------------------

_KB_SOURCES = {"observation": "observation", "record": "record", "document_summary": "document"}
"""What kb_fts calls the items of a source, with the name of the source."""


class KbHit(NamedTuple):
    """An item that was found: the name of its source, its id, and its words that the question
    has."""

    source: str
    id: Key
    words: tuple[str, ...]


def search_kb(reader: Reader, mapping: Mapping, question: Question, limit: int) -> list[KbHit]:
    """The same in ``kb_fts``, among the sources of a mapping; nothing where it is not to be seen.

    What it holds may be out of date, so each has to be looked up.
    """
    if not question.topical or not mapping.full_text:
        return []
    sources = {source.name for source in mapping.sources}
    kinds = [kind for kind, source in _KB_SOURCES.items() if source in sources]
    query = _admitting(_with_variants(question.topical), question.others)
    rows: list[tuple[Any, ...]] = reader.rows(
        f"select source_type, source_id, highlight({FULL_TEXT}, 0, ?, ?),"
        f" bm25({FULL_TEXT}) from {FULL_TEXT} where {FULL_TEXT} match ?"
        " and source_type in (select value from json_each(?))"
        " order by 4, source_type, source_id limit ?",
        *_MARKS,
        f"body : ({query})",
        json_list(kinds),
        limit,
    )
    topical = set(map(_without_marks, _with_variants(question.topical)))
    return [
        KbHit(
            _KB_SOURCES[kind],
            id_,
            tuple(word for word in _words(text) if _without_marks(word) in topical),
        )
        for kind, id_, text, _ in rows
        if isinstance(id_, int | str)
    ]


def _without_marks(word: str) -> str:
    """A word as full text compares it, which knows no accents."""
    return "".join(c for c in normalize("NFD", word) if not combining(c))


def _with_variants(words: Sequence[str]) -> list[str]:
    """The words, each also as the other number of an English noun, since there are no stems."""
    found: dict[str, None] = {}
    for word in words:
        one = singular(word)
        found |= dict.fromkeys((word, one, f"{one}s"))
        if one.endswith("y"):
            found[f"{one[:-1]}ies"] = None
        elif one.endswith(("s", "x", "z", "ch", "sh")):
            found[f"{one}es"] = None
    return list(found)
