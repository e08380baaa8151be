"""The configuration of the plugin: which tables of which database hold concepts and their items.

What `discovery` finds in a database that nobody configured has the same form, so that it can be
printed as configuration and changed from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from .errors import BadConfiguration
from .folding import fold
from .ranking import RANK_CONSTANT
from .rendering import RENDERINGS, Rendering

NONE = ""
"""In place of a column: there is none, and none is to be looked for (``null`` in YAML)."""


@dataclass(frozen=True)
class ConceptsConfig:
    """The table of the concepts and its columns; None: found by type and name."""

    table: str
    name: str | None = None
    description: str | None = None
    key: tuple[str, ...] | None = None


@dataclass(frozen=True)
class SourceConfig:
    """A table of tagged items, and what links them to concepts.

    Either ``link`` is a table of which ``item_key`` refers to the columns ``key`` of an item and
    ``concept_key`` to a concept, or ``tags`` is a column of the items' own table that holds a JSON
    array of names. ``where`` is an SQL condition over the items, ``link_where`` one over the links.
    None: found by keys, type and name; `NONE`: there is none.
    """

    table: str
    link: str | None = None
    item_key: tuple[str, ...] | None = None
    concept_key: str | None = None
    link_where: str | None = None
    tags: str | None = None
    key: tuple[str, ...] | None = None
    title: str | None = None
    body: str | None = None
    created: str | None = None
    project: str | None = None
    where: str | None = None


@dataclass(frozen=True)
class DatabaseConfig:
    """One database; ``sources`` by label. Without ``concepts`` the names are those in ``tags``."""

    concepts: ConceptsConfig | None = None
    sources: dict[str, SourceConfig] = field(default_factory=dict)

    def as_configuration(self) -> dict[str, Any]:
        """The same as the plain values of a configuration file, without what is left open."""
        found: dict[str, Any] = {}
        if self.concepts:
            found["concepts"] = _plain(self.concepts)
        return found | {"sources": {label: _plain(s) for label, s in self.sources.items()}}


def _plain(part: ConceptsConfig | SourceConfig) -> dict[str, Any]:
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {
        name: None if value == NONE else _one_or_list(value)
        for name, value in values.items()
        if value is not None
    }


def _one_or_list(value: str | tuple[str, ...]) -> str | list[str]:
    if isinstance(value, str):
        return value
    return value[0] if len(value) == 1 else list(value)


@dataclass(frozen=True)
class IndexConfig:
    """The index that Datasette keeps fresh: the name of its database, whether folders are watched
    and sources looked at in rounds, and the databases whose concepts are looked for in all texts
    (None: every other one that is served). ``embedder`` makes its vectors, and those of questions,
    from the ``rendering`` of each text; None: as the index remembers."""

    database: str
    watch: bool = False
    concepts_of: tuple[str, ...] | None = None
    embedder: str | None = None
    rendering: Rendering | None = None


@dataclass(frozen=True)
class LayersConfig:
    """The layers behind the concepts: the ``deadline_ms`` of the semantic one, and of the fusion
    its ``k`` and what the ranks of each layer count. ``not_topical`` are the words of a question
    that admit nothing, None: the English ones."""

    deadline_ms: float = 50.0
    k: float = RANK_CONSTANT
    lexical: float = 1.0
    semantic: float = 1.0
    not_topical: frozenset[str] | None = None


def parse_index(given: object) -> IndexConfig | None:
    """What is configured of the index, None for nothing. Raises `BadConfiguration`."""
    if given is None:
        return None
    index = _object("", given).get("index")
    if index is None:
        return None
    values = _object("index", index)
    _known("index", values, [f.name for f in fields(IndexConfig)])
    database, watch = values.get("database"), values.get("watch", False)
    if not isinstance(database, str) or not database:
        raise BadConfiguration("index.database", "name the database that is the index")
    if not isinstance(watch, bool):
        raise BadConfiguration("index.watch", f"{watch!r} is neither true nor false")
    names = values.get("concepts_of")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise BadConfiguration("index.concepts_of", f"{names!r} is not a list of databases")
    embedder, rendering = values.get("embedder"), values.get("rendering")
    if embedder is not None and (not isinstance(embedder, str) or not embedder):
        raise BadConfiguration("index.embedder", f"{embedder!r} is no name of an embedder")
    if rendering is not None and rendering not in RENDERINGS:
        problem = f"{rendering!r} is not one of {', '.join(RENDERINGS)}"
        raise BadConfiguration("index.rendering", problem)
    concepts_of = None if names is None else tuple(names)
    return IndexConfig(database, watch, concepts_of, embedder, rendering)


def parse_layers(given: object) -> LayersConfig:
    """What is configured of the layers behind the concepts. Raises `BadConfiguration`."""
    layers = None if given is None else _object("", given).get("layers")
    if layers is None:
        return LayersConfig()
    values = dict(_object("layers", layers))
    _known("layers", values, [f.name for f in fields(LayersConfig)])
    words = values.pop("not_topical", None)
    for name, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < 1e9:
            raise BadConfiguration(f"layers.{name}", f"{value!r} is no number from 0 on")
    if words is not None and not (
        isinstance(words, list) and all(isinstance(word, str) for word in words)
    ):
        raise BadConfiguration("layers.not_topical", f"{words!r} is not a list of words")
    folded = None if words is None else frozenset(fold(word) for word in words)
    return LayersConfig(**values, not_topical=folded)


def parse_configuration(given: object) -> dict[str, DatabaseConfig]:
    """The configuration by name of database. Raises `BadConfiguration`."""
    if given is None:
        return {}
    top = _object("", given)
    _known("", top, ("databases", "index", "layers"))
    databases = _object("databases", _or_nothing(top.get("databases")))
    return {name: _database(f"databases.{name}", value) for name, value in databases.items()}


def _database(key: str, given: object) -> DatabaseConfig:
    parts = _object(key, given)
    _known(key, parts, ("concepts", "sources"))
    concepts = parts.get("concepts")
    given_sources = _object(f"{key}.sources", _or_nothing(parts.get("sources")))
    if not given_sources:
        raise BadConfiguration(f"{key}.sources", "name at least one table of tagged items")
    sources = {
        label: _source(f"{key}.sources.{label}", label, value)
        for label, value in given_sources.items()
    }
    if concepts is None:
        for label, source in sources.items():
            if source.tags is None:
                problem = f"is missing, to which the links of {label} could refer"
                raise BadConfiguration(f"{key}.concepts", problem)
        return DatabaseConfig(None, sources)
    return DatabaseConfig(
        ConceptsConfig(**_read(f"{key}.concepts", concepts, ConceptsConfig)), sources
    )


def _source(key: str, label: str, given: object) -> SourceConfig:
    if not label.isprintable() or not label.strip():
        raise BadConfiguration(key, "is no label that could be shown")
    source = SourceConfig(**_read(key, given, SourceConfig))
    if (source.link is None) == (source.tags is None):
        problem = "give either a table of links, or as tags a column with JSON arrays of names"
        raise BadConfiguration(f"{key}.link", problem)
    if source.tags is not None:
        for name in ("item_key", "concept_key", "link_where"):
            if getattr(source, name) is not None:
                raise BadConfiguration(f"{key}.{name}", "belongs to a link, and there is none")
    return source


_LISTS = {"item_key", "key"}
"""What may be several columns."""

_NULLABLE = {"description", "title", "body", "created", "project"}
"""What may be null, so that it is not looked for."""


def _read(key: str, given: object, kind: type[Any]) -> dict[str, Any]:
    values = _object(key, given)
    names = [f.name for f in fields(kind)]
    _known(key, values, names)
    if "table" not in values:
        raise BadConfiguration(f"{key}.table", "is missing")
    return {name: _value(f"{key}.{name}", name, value) for name, value in values.items()}


def _value(key: str, name: str, value: object) -> str | tuple[str, ...]:
    if value is None and name in _NULLABLE:
        return NONE
    if name in _LISTS:
        several = value if isinstance(value, list) else [value]
        if several and all(isinstance(column, str) and column for column in several):
            return tuple(several)
        raise BadConfiguration(key, f"{value!r} is neither a column nor a list of columns")
    if not isinstance(value, str) or not value.strip():
        raise BadConfiguration(key, f"{value!r} is not a text")
    return value


def _or_nothing(given: object) -> object:
    return {} if given is None else given


def _object(key: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise BadConfiguration(key or "(top)", f"{given!r} is not an object with keys")
    for name in given:
        if not isinstance(name, str):
            raise BadConfiguration(f"{key}.{name}", "keys are texts; write it in quotes")
    return given


def _known(key: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            where = f"{key}.{name}" if key else name
            raise BadConfiguration(where, f"is unknown here; known are {', '.join(names)}")
