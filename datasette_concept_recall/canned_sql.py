"""The canned queries of one mapping: recall in plain SQL over the plugin's functions."""

from __future__ import annotations

from dataclasses import dataclass

from .mapping import Concepts, Mapping, Source

BY_TEXT = "concept_recall_by_text"
BY_NAMES = "concept_recall_by_names"
MENTIONS = "concept_mentions"
WORD_SEARCH = "concept_word_search"
NAMES = (BY_TEXT, BY_NAMES, MENTIONS, WORD_SEARCH)


@dataclass(frozen=True)
class CannedQuery:
    """A query to ship: what Datasette shows of it, and every table that it reads."""

    name: str
    title: str
    description: str
    sql: str
    parameters: tuple[str, ...]
    tables: frozenset[str]


def canned_queries(mapping: Mapping) -> list[CannedQuery]:
    """The queries for a database of this mapping; none when it holds no concepts."""
    concepts = mapping.concepts
    if concepts is None:
        return []
    names = frozenset(concepts.tables)
    item_tables = frozenset[str]().union(*(s.item_tables for s in mapping.sources))
    projects = {"projects"} if mapping.has_projects else set()
    projects |= {s.project_table for s in mapping.sources if s.project_table}
    recalled = names.union(*(s.tables for s in mapping.sources), projects)
    return [
        CannedQuery(
            BY_TEXT,
            "Recall by text",
            "Everything tagged with a concept that the text names, ranked as on the Recall page: "
            "most concepts first, then the most recent. limit: 20 when empty, 0 for all.",
            _recall_sql(mapping, concepts, _NAMED_IN_TEXT),
            ("text", "limit"),
            recalled,
        ),
        CannedQuery(
            BY_NAMES,
            "Recall by concept names",
            "Everything tagged with one of the concepts. names: one per line, or separated by "
            "commas, or a JSON array. limit: 20 when empty, 0 for all.",
            _recall_sql(mapping, concepts, _named_in_list(concepts)),
            ("names", "limit"),
            recalled,
        ),
        CannedQuery(
            MENTIONS,
            "Concepts that a text names",
            "Which concepts the text names as whole words, and how often.",
            _MENTIONS_SQL,
            ("text",),
            names,
        ),
        CannedQuery(
            WORD_SEARCH,
            "Search for a word",
            "Every observation, record and document section that says the word, as a whole word "
            "and in any letter case, whether or not it is tagged with it.",
            _word_search_sql(mapping),
            ("word",),
            item_tables,
        ),
    ]


_MENTIONS_SQL = """\
select value as name, word_count(value, :text) as mentions
from json_each(match_concept_names(:text))
order by mentions desc, name"""

_NAMED_IN_TEXT = """\
  named(name) as (select value from json_each(match_concept_names(:text)))"""

# A JSON array as it is; otherwise cut at line breaks, or at commas where there are none.
_NAMES_IN_LIST = """\
  separator(mark) as (
    select case when instr(:names, char(10)) then char(10) else ',' end
  ),
  is_array(yes) as (
    select case when json_valid(:names) then json_type(:names) = 'array' else 0 end
  ),
  parts(part, rest) as (
    select null, :names || mark from separator, is_array where not yes
    union all
    select trim(substr(rest, 1, instr(rest, mark) - 1), char(9, 10, 13, 32)),
      substr(rest, instr(rest, mark) + 1)
    from parts, separator where rest <> ''
  ),
  given(name) as (
    select part from parts where part <> ''
    union
    select value from is_array, json_each(case when yes then :names else '[]' end)
  )"""


def _named_in_list(concepts: Concepts) -> str:
    return f"""\
{_NAMES_IN_LIST},
  named(name) as (
    select {concepts.name} from given join {concepts.rows} on {concepts.name} = given.name
    union
    select v.value from given, json_each(match_concept_names(given.name)) v
    where word_match(given.name, v.value)
  )"""


_BY_RANK = "{count} desc, instant desc, fraction desc, source, item"


def _recall_sql(mapping: Mapping, concepts: Concepts, named: str) -> str:
    """The whole recall, from the clause that yields ``named(name)``, the stored names asked for.

    Names that differ only in case are one name: each is in the other. As in `recall`, items are
    ranked by their links and times alone, and only the winners are read in full.
    """
    links = "\n    union all\n    ".join(map(_links_sql, mapping.sources))
    dated = "\n    union all\n    ".join(
        f"select k.*, {s.created} from carried k cross join {s.rows}"
        f" where k.source = {s.order} and {s.id} = k.item"
        for s in mapping.sources
    )
    shown = "\n  union all\n  ".join(_shown_sql(mapping, s) for s in mapping.sources)
    by_rank = _BY_RANK.format(count="match_count")
    return f"""\
with recursive
{named},
  asked(key, stored, name) as (
    select {concepts.key}, {concepts.name}, coalesce(
      (select min(v.value) from json_each(match_concept_names({concepts.name})) v
       where word_match({concepts.name}, v.value)),
      {concepts.name}
    )
    from named join {concepts.rows} on {concepts.name} = named.name
  ),
  links(source, item, name) as (
    {links or "select null, null, null where 0"}
  ),
  carried(source, item, match_count, concepts) as (
    select source, item, count(*), json_group_array(name)
    from (select * from links order by source, item, name) group by source, item
  ),
  dated(source, item, match_count, concepts, created_at) as (
    {dated or "select null, null, null, null, null where 0"}
  ),
{_timed("dated")},
  best as (
    select * from timed
    order by {by_rank}
    limit case
      when trim(:limit) = '0' then -1
      when cast(:limit as integer) > 0 then cast(:limit as integer)
      else 20
    end
  )
select match_count, source_type, id, project, title, excerpt, concepts, created_at, status
from (
  {shown or _NOTHING_SHOWN}
)
order by {by_rank}"""


_NOTHING_SHOWN = (
    "select *, '' as source_type, '' as id, '' as project, '' as title, '' as excerpt,"
    " '' as status from best"
)


def _links_sql(source: Source) -> str:
    asked = f"{source.concept} = a.{'stored' if source.links_by_name else 'key'}"
    if source.link_item:  # nothing of the items is needed yet
        return (
            f"select distinct {source.order}, l.{source.link_item}, a.name"
            f" from asked a join {source.link} l on {asked}"
        )
    return (
        f"select distinct {source.order}, {source.id}, a.name"
        f" from {source.links} join asked a on {asked}"
    )


def _shown_sql(mapping: Mapping, source: Source) -> str:
    project = "null"
    if source.project_is_name:
        project = source.project_id
    elif mapping.has_projects:
        project = f"(select name from projects where id = {source.project_id})"
    return f"""\
select best.*, {source.source_type} as source_type, {source.shown_id} as id, {project} as project,
    {source.title} as title, substr({source.body}, 1, 300) as excerpt,
    coalesce({source.status}, {source.summary_status}) as status
  from best cross join {source.rows}
  where best.source = {source.order} and {source.id} = best.item"""


_DIGITS = "[0-9][0-9]"
_DAY = f"{_DIGITS}{_DIGITS}-{_DIGITS}-{_DIGITS}"
_MINUTE = f"{_DAY}[ T]{_DIGITS}:{_DIGITS}"


def _timed(rows: str) -> str:
    """Clauses that end in ``timed``, the rows of a clause with the instants of ``created_at``.

    ``instant`` is the seconds since 1970 and ``fraction`` six digits, both NULL for what
    `timestamps.parse_instant` does not read: SQLite reads more and other spellings.
    """
    return f"""\
  zoned as (
    select *, case
      when typeof(created_at) <> 'text' then null
      when length(created_at) <> length(cast(created_at as blob)) then null
      when created_at glob '*Z' then 'Z'
      when created_at glob '*[+-]{_DIGITS}:{_DIGITS}' then substr(created_at, -6)
      else '' end as zone
    from {rows}
  ),
  cut as (
    select *, substr(created_at, 1, min(19, length(created_at) - length(zone))) as second,
      substr(created_at, 20, max(0, length(created_at) - length(zone) - 19)) as point
    from zoned
  ),
  told as (
    select *, case
      when not (second glob '{_DAY}' and zone = ''
        or second glob '{_MINUTE}' or second glob '{_MINUTE}:{_DIGITS}') then null
      when point <> '' and (point not glob '.[0-9]*' or substr(point, 2) glob '*[^0-9]*') then null
      when date(substr(second, 1, 10), '+0 days') is not substr(second, 1, 10) then null
      when substr(second, 12, 2) > '23' or substr(zone, 2, 2) > '23' then null
      when substr(zone, 5, 2) > '59' then null
      else strftime('%s', second) - (case substr(zone, 1, 1) when '-' then -1 else 1 end)
        * (substr(zone, 2, 2) * 3600 + substr(zone, 5, 2) * 60) end as told
    from cut
  ),
  timed as (
    select *, case when told between {_YEAR_1} and {_YEAR_9999} then told end as instant,
      case when told between {_YEAR_1} and {_YEAR_9999}
        then substr(substr(point, 2) || '000000', 1, 6) end as fraction
    from told
  )"""


_YEAR_1 = -62_135_596_800
"""The first second that a `datetime` can be, in seconds since 1970."""

_YEAR_9999 = 253_402_300_799
"""The last one."""


def _word_search_sql(mapping: Mapping) -> str:
    found = "\n    union all\n    ".join(map(_said_sql, mapping.sources))
    nothing = "select '', 0, 0, '', '', 0, '', 0 where 0"
    return f"""\
with said(source_type, item, id, title, excerpt, mentions, created_at, source) as (
    {found or nothing}
  ),
{_timed("said")}
select mentions, source_type, id, title, excerpt, created_at
from timed
order by {_BY_RANK.format(count="mentions")}"""


def _said_sql(source: Source) -> str:
    # To the functions as bytes: text that is no valid UTF-8 could not be handed over.
    text = " || char(10) || ".join(f"coalesce({part}, '')" for part in source.searched)
    start = f"max(1, instr(lower({text}), lower(trim(:word))) - 80)"
    return f"""\
select {source.source_type}, {source.id}, {source.shown_id}, {source.title},
      substr({text}, {start}, 300), word_count(:word, cast({text} as blob)), {source.created},
      {source.order}
    from {source.rows}
    where coalesce(:word, '') <> '' and word_match(:word, cast({text} as blob))"""
