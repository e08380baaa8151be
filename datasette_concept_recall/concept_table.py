"""The table of the concepts of any database, from a description of it."""

from __future__ import annotations

from collections.abc import Iterable

from .config import ConceptsConfig, SourceConfig
from .discovery import description_column, name_column
from .errors import BadConfiguration
from .mapping import Concepts
from .reading import quote_identifier
from .schema import Column, Schema, Table, lowered


def table_of(schema: Schema, key: str, name: str) -> Table:
    """The table of a name. Raises `BadConfiguration`."""
    table = schema.get(name)
    if table is None:
        raise BadConfiguration(key, f"there is no table {name}")
    return table


def column_of(table: Table, key: str, name: str, rowid: str | None = None) -> str:
    """A column as it is spelled. Raises `BadConfiguration`."""
    column: Column | None = table.column(name)
    if column:
        return column.name
    if rowid and lowered(name) == rowid:
        return rowid
    raise BadConfiguration(key, f"{table.name} has no column {name}")


class ConceptTable:
    """The table of the concepts, and by which of its columns links refer to it."""

    def __init__(
        self, schema: Schema, config: ConceptsConfig, sources: Iterable[SourceConfig]
    ) -> None:
        self.table = table_of(schema, "table", config.table)
        self.tables = (self.table.name,)
        found = config.name or name_column(self.table)
        if found is None:
            raise BadConfiguration("name", f"{self.table.name} has no column for names; name one")
        self.name = column_of(self.table, "name", found)
        self.key = self._key(schema, config, sources)
        key = f"c.{quote_identifier(self.key)}" if self.key else f"c.{self.table.rowid}"
        self.concepts = Concepts(
            table=lowered(self.table.name),
            tables=(lowered(self.table.name),),
            rows=f"{quote_identifier(self.table.name)} c",
            key=key,
            name=f"c.{quote_identifier(self.name)}",
            description=self._expression("description", self._description(config)),
            identifier_type=self._expression("identifier_type", "identifier_type", needed=False),
            identifier_value=self._expression("identifier_value", "identifier_value", needed=False),
        )

    def _description(self, config: ConceptsConfig) -> str | None:
        if config.description is None:
            return description_column(self.table, self.name)
        return config.description

    def _expression(self, key: str, column: str | None, *, needed: bool = True) -> str:
        if not column or (not needed and self.table.column(column) is None):
            return "null"
        return f"c.{quote_identifier(column_of(self.table, key, column))}"

    def _key(
        self, schema: Schema, config: ConceptsConfig, sources: Iterable[SourceConfig]
    ) -> str | None:
        """As configured, as the first link refers to it, the primary key, or None for the rowid."""
        if config.key:
            return column_of(self.table, "key", config.key[0])
        for source in sources:
            target = self.target(schema.get(source.link or ""), source.concept_key)
            if target and lowered(target) != lowered(self.name):
                return target
        key = self.table.primary_key
        if len(key) == 1:
            return key[0]
        if self.table.rowid is None:
            raise BadConfiguration("key", f"name the column of {self.table.name} that links hold")
        return None

    def target(self, link: Table | None, concept_key: str | None) -> str | None:
        """The column of the concepts to which a link's foreign key refers; None without one."""
        if link is None:
            return None
        for key in link.foreign_keys:
            of_concepts = lowered(key.table) == lowered(self.table.name)
            if not of_concepts or len(key.columns) != 1:
                continue
            if concept_key is None or lowered(key.columns[0]) == lowered(concept_key):
                to = key.to or self.table.primary_key
                return to[0] if len(to) == 1 else None
        return None
