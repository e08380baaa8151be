"""The canned queries: recall in plain SQL over the plugin's functions, for one mapping."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import compat
from .access import current_mapping, databases
from .mapping import Mapping, Source

if TYPE_CHECKING:
    from datasette.app import Datasette

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

    def as_datasette(self) -> dict[str, Any]:
        """The query as the hook ``canned_queries`` of 0.65 returns it."""
        return {
            "sql": self.sql,
            "title": self.title,
            "description": self.description,
            "params": list(self.parameters),
            "hide_sql": True,
        }


def canned_queries(mapping: Mapping) -> list[CannedQuery]:
    """The queries for a database of this mapping; none when it holds no concepts."""
    if not mapping.has_concepts:
        return []
    item_tables = {t for s in mapping.sources for t in s.tables if t != s.link}
    link_tables = {s.link for s in mapping.sources}
    projects = {"projects"} if mapping.has_projects else set()
    recalled = frozenset({"concepts"} | item_tables | link_tables | projects)
    return [
        CannedQuery(
            BY_TEXT,
            "Recall by text",
            "Everything tagged with a concept that the text names, ranked as on the Recall page: "
            "most concepts first, then the most recent. limit: 20 when empty, 0 for all.",
            _recall_sql(mapping, _NAMED_IN_TEXT),
            ("text", "limit"),
            recalled,
        ),
        CannedQuery(
            BY_NAMES,
            "Recall by concept names",
            "Everything tagged with one of the concepts. names: one per line, or separated by "
            "commas, or a JSON array. limit: 20 when empty, 0 for all.",
            _recall_sql(mapping, _NAMED_IN_LIST),
            ("names", "limit"),
            recalled,
        ),
        CannedQuery(
            MENTIONS,
            "Concepts that a text names",
            "Which concepts the text names as whole words, and how often.",
            _MENTIONS_SQL,
            ("text",),
            frozenset({"concepts"}),
        ),
        CannedQuery(
            WORD_SEARCH,
            "Search for a word",
            "Every observation, record and document section that says the word, as a whole word "
            "and in any letter case, whether or not it is tagged with it.",
            _word_search_sql(mapping),
            ("word",),
            frozenset(item_tables),
        ),
    ]


_MENTIONS_SQL = """\
select value as name, word_count(value, :text) as mentions
from json_each(match_concept_names(:text))
order by mentions desc, name"""

_NAMED_IN_TEXT = """\
  named(name) as (select value from json_each(match_concept_names(:text)))"""

# A JSON array as it is; otherwise cut at line breaks, or at commas where there are none.
_NAMED_IN_LIST = """\
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
  ),
  named(name) as (
    select c.name from given join concepts c on c.name = given.name
    union
    select v.value from given, json_each(match_concept_names(given.name)) v
    where word_match(given.name, v.value)
  )"""


def _recall_sql(mapping: Mapping, named: str) -> str:
    """The whole recall, from the clause that yields ``named(name)``, the stored names asked for.

    Names that differ only in case are one name: each is in the other. Times are compared as
    instants: whole seconds by SQLite's own reading of the text without its fraction, then the
    fraction.
    """
    sources = list(enumerate(mapping.sources))
    nothing = "select null, null, null where 0"
    links = "\n    union\n    ".join(
        f"select {order}, l.{s.link_item}, a.name"
        f" from asked a join {s.link} l on l.{s.link_concept} = a.id"
        for order, s in sources
    )
    items = "\n    union all\n    ".join(_item_sql(mapping, order, s) for order, s in sources)
    return f"""\
with recursive
{named},
  asked(id, name) as (
    select c.id, coalesce(
      (select min(v.value) from json_each(match_concept_names(c.name)) v
       where word_match(c.name, v.value)),
      c.name
    )
    from named join concepts c on c.name = named.name
  ),
  links(source, id, name) as (
    {links or nothing}
  ),
  carried(source, id, match_count, concepts) as (
    select source, id, count(*), json_group_array(name)
    from (select * from links order by source, id, name) group by source, id
  ),
  items as (
    {items or _NO_ITEMS}
  )
select match_count, source_type, id, project, title, excerpt, concepts, created_at, status
from items
order by match_count desc,
  {_seconds("created_at")} desc,
  {_fraction("created_at")} desc,
  source, id
limit case
  when coalesce(:limit, '') = '' then 20
  when cast(:limit as integer) < 1 then -1
  else cast(:limit as integer)
end"""


_NO_ITEMS = (
    "select 0 as match_count, '' as source_type, 0 as id, '' as project, '' as title,"
    " '' as excerpt, '' as concepts, '' as created_at, '' as status, 0 as source where 0"
)


def _item_sql(mapping: Mapping, order: int, source: Source) -> str:
    project = (
        f"(select name from projects where id = {source.project_id})"
        if mapping.has_projects
        else "null"
    )
    return f"""\
select k.match_count, {source.source_type} as source_type, i.id, {project} as project,
      {source.title} as title, substr({source.body}, 1, 300) as excerpt, k.concepts,
      {source.created} as created_at,
      coalesce({source.status}, {source.summary_status}) as status, k.source
    from {source.rows} join carried k on k.source = {order} and k.id = i.id"""


def _zone(time: str) -> str:
    return f"ltrim(substr({time}, 20), '.0123456789')"


def _seconds(time: str) -> str:
    """Seconds since 1970 of a stored time, NULL (last in descending order) when unreadable."""
    return (
        f"case when typeof({time}) = 'text' and date(substr({time}, 1, 10)) = substr({time}, 1, 10)"
        f" then cast(strftime('%s', substr({time}, 1, 19) || {_zone(time)}) as integer) end"
    )


def _fraction(time: str) -> str:
    """The microseconds of a stored time as six digits."""
    digits = f"replace(substr({time}, 21), {_zone(time)}, '')"
    return (
        f"case when substr({time}, 20, 1) = '.' then substr({digits} || '000000', 1, 6)"
        " else '000000' end"
    )


def _word_search_sql(mapping: Mapping) -> str:
    found = "\n  union all\n  ".join(_said_sql(n, s) for n, s in enumerate(mapping.sources))
    nothing = "select '', 0, '', '', 0, '', 0 where 0"
    return f"""\
with said(source_type, id, title, excerpt, mentions, created_at, source) as (
  {found or nothing}
)
select mentions, source_type, id, title, excerpt, created_at
from said
order by mentions desc, {_seconds("created_at")} desc, {_fraction("created_at")} desc, source, id"""


def _said_sql(order: int, source: Source) -> str:
    text = " || char(10) || ".join(f"coalesce({part}, '')" for part in source.searched)
    start = f"max(1, instr(lower({text}), lower(trim(:word))) - 80)"
    return f"""\
select {source.source_type}, i.id, {source.title}, substr({text}, {start}, 300),
    word_count(:word, {text}), {source.created}, {order}
  from {source.rows} where coalesce(:word, '') <> '' and word_match(:word, {text})"""


async def offered_queries(datasette: Datasette, database: str) -> dict[str, CannedQuery]:
    """The queries for a database as it is now, by name."""
    mapping = await current_mapping(datasette, database)
    return {query.name: query for query in canned_queries(mapping)}


async def for_hook(datasette: Datasette, database: str) -> dict[str, dict[str, Any]]:
    """What the hook ``canned_queries`` of 0.65 returns.

    There a query hides a table of the same name and one of the metadata, so such are left out.
    """
    offered = await offered_queries(datasette, database)
    if not offered:
        return {}
    db = datasette.get_database(database)
    taken = compat.configured_query_names(datasette, database)
    taken.update(await db.table_names(), await db.view_names())
    return {name: q.as_datasette() for name, q in offered.items() if name not in taken}


async def store(datasette: Datasette) -> None:
    """On 1.0, stores the queries of every database that is there at start-up."""
    for database in databases(datasette):
        offered = await offered_queries(datasette, database)
        queries = {name: query.as_datasette() for name, query in offered.items()}
        await compat.store_queries(datasette, database, queries)


async def hidden(datasette: Datasette, actor: compat.Actor) -> list[tuple[str, str]]:
    """``(database, query)`` of all queries that read a table which the actor may not view."""
    found: list[tuple[str, str]] = []
    for database in databases(datasette):
        offered = await offered_queries(datasette, database)
        if not offered:
            continue
        tables = frozenset().union(*(query.tables for query in offered.values()))
        visible = await compat.visible_tables(datasette, actor, database, tables)
        found += [(database, name) for name, q in offered.items() if not q.tables <= visible]
    return found


def veto_0_65(
    datasette: Datasette, actor: compat.Actor, resource: tuple[str, str]
) -> Callable[[], Awaitable[bool | None]] | None:
    """The opinion of this plugin on ``view-query``: False, or None for no opinion."""
    database, name = resource
    if name not in NAMES or database not in datasette.databases:
        return None

    async def opinion() -> bool | None:
        query = (await offered_queries(datasette, database)).get(name)
        shown = await compat.canned_query_sql(datasette, actor, database, name)
        if query is None or shown != query.sql:  # not ours: somebody else's of the same name
            return None
        visible = await compat.visible_tables(datasette, actor, database, query.tables)
        return None if query.tables <= visible else False

    return opinion


def rule_1_0(datasette: Datasette, actor: compat.Actor) -> Callable[[], Awaitable[Any]]:
    """The rule of this plugin on ``view-query``."""

    async def rule() -> Any:
        found = await hidden(datasette, actor)
        return compat.hidden_queries_sql(found) if found else None

    return rule
