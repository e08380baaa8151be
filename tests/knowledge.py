"""Builds knowledge databases for tests: today's schema, older variants, and rows in one line each.

Plain functions over a `sqlite3.Connection`. Columns a variant lacks are left out in silence, so one
call fits every variant; rows that break the rules can be made with explicit values:

    conn = knowledge.create()                       # in memory, today's schema
    knowledge.add_observation(conn, "Toast is fine", concepts=["toast"], project="Breakfast")
    old = knowledge.add_record(conn, "Use jam", concepts=["jam"])
    knowledge.supersede_record(conn, knowledge.add_record(conn, "Use honey"), old)
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

DEFAULT_TIME = "2026-01-15 12:00:00"

# --- the schema ----------------------------------------------------------------------------------
# One column per line, so that a variant can leave lines out.

TABLES: dict[str, str] = {
    "projects": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        name TEXT NOT NULL UNIQUE
        description TEXT NOT NULL DEFAULT ''
        status TEXT NOT NULL DEFAULT 'active'
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP
        updated_at DATETIME DEFAULT CURRENT_TIMESTAMP
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
    """,
    "observations": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        project_id INTEGER REFERENCES projects(id) ON DELETE CASCADE
        kind TEXT NOT NULL DEFAULT 'note'
        body TEXT NOT NULL
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP
        source_doi TEXT NOT NULL DEFAULT ''
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
    """,
    "concepts": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        name TEXT NOT NULL UNIQUE
        description TEXT NOT NULL DEFAULT ''
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP
        identifier_type TEXT NOT NULL DEFAULT ''
        identifier_value TEXT NOT NULL DEFAULT ''
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
        updated_at DATETIME
    """,
    "observation_concepts": """
        observation_id INTEGER REFERENCES observations(id) ON DELETE CASCADE
        concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE
        PRIMARY KEY (observation_id, concept_id)
    """,
    "project_concepts": """
        project_id INTEGER REFERENCES projects(id) ON DELETE CASCADE
        concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE
        PRIMARY KEY (project_id, concept_id)
    """,
    "sources": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        title TEXT NOT NULL
        identifier_type TEXT NOT NULL DEFAULT ''
        identifier_value TEXT NOT NULL DEFAULT ''
        authors TEXT NOT NULL DEFAULT ''
        published_date TEXT NOT NULL DEFAULT ''
        publisher TEXT NOT NULL DEFAULT ''
        rights TEXT NOT NULL DEFAULT ''
        version TEXT NOT NULL DEFAULT ''
        retracted INTEGER NOT NULL DEFAULT 0
        retraction_note TEXT NOT NULL DEFAULT ''
        first_seen_at DATETIME DEFAULT CURRENT_TIMESTAMP
        last_checked_at DATETIME DEFAULT CURRENT_TIMESTAMP
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
    """,
    "observation_sources": """
        observation_id INTEGER REFERENCES observations(id) ON DELETE CASCADE
        source_id INTEGER REFERENCES sources(id) ON DELETE RESTRICT
        relationship TEXT NOT NULL DEFAULT 'cited'
        PRIMARY KEY (observation_id, source_id)
    """,
    "records": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        record_id TEXT NOT NULL
        project_id INTEGER REFERENCES projects(id) ON DELETE SET NULL
        scope TEXT NOT NULL DEFAULT 'project'
        path TEXT NOT NULL
        title TEXT NOT NULL
        date TEXT NOT NULL
        status TEXT NOT NULL DEFAULT 'proposed'
        kind TEXT NOT NULL DEFAULT 'decision'
        "trigger" TEXT NOT NULL DEFAULT ''
        phase TEXT NOT NULL DEFAULT ''
        initiative TEXT NOT NULL DEFAULT ''
        session TEXT NOT NULL DEFAULT ''
        body TEXT NOT NULL
        checksum TEXT NOT NULL DEFAULT ''
        ingested_at DATETIME DEFAULT CURRENT_TIMESTAMP
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
        workspace TEXT NOT NULL DEFAULT ''
    """,
    "record_relations": """
        from_id INTEGER REFERENCES records(id) ON DELETE CASCADE
        to_id INTEGER REFERENCES records(id) ON DELETE CASCADE
        relationship TEXT NOT NULL
        PRIMARY KEY (from_id, to_id, relationship)
    """,
    "record_concepts": """
        record_id INTEGER REFERENCES records(id) ON DELETE CASCADE
        concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE
        PRIMARY KEY (record_id, concept_id)
    """,
    "documents": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        project_id INTEGER REFERENCES projects(id) ON DELETE SET NULL
        title TEXT NOT NULL
        format TEXT NOT NULL DEFAULT ''
        path TEXT NOT NULL
        author TEXT NOT NULL DEFAULT ''
        published_date TEXT NOT NULL DEFAULT ''
        checksum TEXT NOT NULL DEFAULT ''
        ingested_at DATETIME DEFAULT CURRENT_TIMESTAMP
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
    """,
    "document_sections": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        document_id INTEGER REFERENCES documents(id) ON DELETE CASCADE
        level TEXT NOT NULL
        seq INTEGER NOT NULL DEFAULT 0
        heading TEXT NOT NULL DEFAULT ''
        body TEXT NOT NULL DEFAULT ''
        summary_body TEXT NOT NULL DEFAULT ''
        summary_status TEXT NOT NULL DEFAULT 'unsummarized'
        summary_stale INTEGER NOT NULL DEFAULT 0
        source_size INTEGER NOT NULL DEFAULT 0
        tag_density INTEGER NOT NULL DEFAULT 0
        confidence REAL
        generated_by TEXT NOT NULL DEFAULT ''
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP
        uuid TEXT NOT NULL DEFAULT ''
        origin_host TEXT NOT NULL DEFAULT ''
    """,
    "document_section_concepts": """
        section_id INTEGER REFERENCES document_sections(id) ON DELETE CASCADE
        concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE
        PRIMARY KEY (section_id, concept_id)
    """,
    "observation_relations": """
        from_id INTEGER REFERENCES observations(id) ON DELETE CASCADE
        to_id INTEGER REFERENCES observations(id) ON DELETE CASCADE
        relationship TEXT NOT NULL
        PRIMARY KEY (from_id, to_id, relationship)
    """,
}

INDEXES = (
    "CREATE UNIQUE INDEX idx_records_identity"
    " ON records(workspace, IFNULL(project_id, -1), scope, record_id)",
    "CREATE UNIQUE INDEX idx_sources_identifier ON sources(identifier_type, identifier_value)"
    " WHERE identifier_type <> '' AND identifier_value <> ''",
)

PROJECT_SUMMARY = """
    CREATE VIEW project_summary AS
    SELECT p.id, p.name, p.status, p.description, GROUP_CONCAT(c.name, ', ') AS concepts
    FROM projects p
    LEFT JOIN project_concepts pc ON pc.project_id = p.id
    LEFT JOIN concepts c ON c.id = pc.concept_id
    GROUP BY p.id
"""

FULL_TEXT = """
    CREATE VIRTUAL TABLE kb_fts USING fts5(
        body, kind, label UNINDEXED, descr UNINDEXED,
        source_type UNINDEXED, source_id UNINDEXED, project_id UNINDEXED)
"""

EXPERIMENTS: dict[str, str] = {
    "experiments": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        name TEXT NOT NULL
        status TEXT NOT NULL DEFAULT 'concept'
        language TEXT
        repo_url TEXT
    """,
    "experiment_concepts": """
        experiment_id INTEGER REFERENCES experiments(id)
        concept_id INTEGER REFERENCES concepts(id)
        PRIMARY KEY (experiment_id, concept_id)
    """,
    "concepts": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        name TEXT NOT NULL UNIQUE
        description TEXT NOT NULL DEFAULT ''
    """,
    "observations": """
        id INTEGER PRIMARY KEY AUTOINCREMENT
        experiment_id INTEGER NOT NULL REFERENCES experiments(id)
        kind TEXT NOT NULL DEFAULT 'note'
        body TEXT NOT NULL
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
    """,
    "observation_concepts": TABLES["observation_concepts"],
}

DOCUMENT_TABLES = {"documents", "document_sections", "document_section_concepts"}
RECORD_TABLES = {"records", "record_relations", "record_concepts"}
EARLY_TABLES = {
    "projects",
    "observations",
    "concepts",
    "observation_concepts",
    "project_concepts",
}
LATE_COLUMNS = {
    "uuid",
    "origin_host",
    "source_doi",
    "identifier_type",
    "identifier_value",
    "updated_at",
}


# --- creating a database -------------------------------------------------------------------------


def create(
    path: str | Path = ":memory:", variant: str = "today", *, wal: bool = False
) -> sqlite3.Connection:
    """A read-write connection to a new database with the tables of one of `VARIANTS`."""
    conn = sqlite3.connect(path)
    if wal:
        conn.execute("PRAGMA journal_mode = WAL")
    VARIANTS[variant](conn)
    conn.commit()
    return conn


def open_read_only(path: str | Path) -> sqlite3.Connection:
    """A connection that cannot write, as Datasette opens files."""
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)


def create_today(conn: sqlite3.Connection) -> None:
    """Everything the newest `kb` creates."""
    _create_tables(conn, TABLES)
    for statement in INDEXES:
        conn.execute(statement)
    conn.execute(PROJECT_SUMMARY)
    create_full_text(conn)


def create_without_documents(conn: sqlite3.Connection) -> None:
    """The first files with records: records carry no concepts yet, and there are no documents."""
    missing = DOCUMENT_TABLES | {"record_concepts", "observation_relations"}
    tables = {name: body for name, body in TABLES.items() if name not in missing}
    _create_tables(conn, tables, without={"updated_at", "workspace"})
    conn.execute("CREATE UNIQUE INDEX idx_records_scope_id ON records(project_id, record_id)")
    conn.execute(PROJECT_SUMMARY)
    create_full_text(conn)


def create_pre_records(conn: sqlite3.Connection) -> None:
    """A file from just before decision records: observations and cited sources only."""
    missing = DOCUMENT_TABLES | RECORD_TABLES | {"observation_relations"}
    tables = {name: body for name, body in TABLES.items() if name not in missing}
    _create_tables(conn, tables, without={"updated_at"})
    conn.execute(PROJECT_SUMMARY)
    create_full_text(conn)


def create_without_uuids(conn: sqlite3.Connection) -> None:
    """An early file: five tables, without the columns that were added later, without full text."""
    tables = {name: body for name, body in TABLES.items() if name in EARLY_TABLES}
    _create_tables(conn, tables, without=LATE_COLUMNS)
    conn.execute(PROJECT_SUMMARY)


def create_hand_made(conn: sqlite3.Connection) -> None:
    """The oldest files: experiments instead of projects, observations belong to an experiment."""
    _create_tables(conn, EXPERIMENTS)


def create_upgraded(conn: sqlite3.Connection) -> None:
    """A hand-made file after today's program opened it: late columns stand at the end."""
    create_hand_made(conn)
    missing = {name: body for name, body in TABLES.items() if name not in EXPERIMENTS}
    _create_tables(conn, missing)
    for table in ("observations", "concepts"):
        present = _columns(conn, table)
        for name, declaration in _declared_columns(TABLES[table]):
            if name not in present:
                plain = declaration.replace(" DEFAULT CURRENT_TIMESTAMP", "")
                conn.execute(f"ALTER TABLE {table} ADD COLUMN {plain}")
    conn.execute(PROJECT_SUMMARY)
    create_full_text(conn)


def create_nothing(conn: sqlite3.Connection) -> None:
    """No tables at all; in a file this leaves zero bytes."""


VARIANTS = {
    "today": create_today,
    "upgraded": create_upgraded,
    "without-documents": create_without_documents,
    "pre-records": create_pre_records,
    "without-uuids": create_without_uuids,
    "hand-made": create_hand_made,
    "nothing": create_nothing,
}


def create_full_text(conn: sqlite3.Connection) -> None:
    """Add kb_fts where SQLite can; a writer without FTS5 leaves it out."""
    with contextlib.suppress(sqlite3.OperationalError):
        conn.execute(FULL_TEXT)


# --- adding rows ---------------------------------------------------------------------------------


def add_project(
    conn: sqlite3.Connection, name: str, *, concepts: Iterable[str] = (), **columns: object
) -> int:
    """A project, tagged with the concepts named (made when missing)."""
    values = {"name": name, "created_at": DEFAULT_TIME, "updated_at": DEFAULT_TIME, **columns}
    project_id = insert(conn, "projects", values)
    _index(conn, name, "project", label=name, source=("project", project_id), project=project_id)
    for concept in concepts:
        link_project(conn, name, concept)
    return project_id


def add_concept(conn: sqlite3.Connection, name: str | bytes, **columns: object) -> int:
    """A concept under exactly this name; bytes are stored as text without a look at them."""
    values = {"name": name, "created_at": DEFAULT_TIME, "updated_at": DEFAULT_TIME, **columns}
    concept_id = insert(conn, "concepts", values)
    if isinstance(name, str):
        _index(conn, name, "concept", label=name, source=("concept", concept_id))
    return concept_id


def add_observation(
    conn: sqlite3.Connection,
    body: str | bytes,
    *,
    concepts: Iterable[str | int] = (),
    project: str | None = None,
    created_at: object = DEFAULT_TIME,
    **columns: object,
) -> int:
    """An observation; in a hand-made file `project` is the name of its experiment."""
    values: dict[str, object] = {"body": body, "kind": "note", "created_at": created_at}
    if "experiment_id" in _columns(conn, "observations"):
        values["experiment_id"] = _named(conn, "experiments", project or "untitled")
    values["project_id"] = _project_id(conn, project)
    observation_id = insert(conn, "observations", {**values, **columns})
    _index(conn, body, "note", source=("observation", observation_id))
    link(conn, "observation_concepts", observation_id, concepts)
    return observation_id


def add_record(
    conn: sqlite3.Connection,
    title: str,
    body: str | bytes = "",
    *,
    concepts: Iterable[str | int] = (),
    project: str | None = None,
    status: str = "accepted",
    ingested_at: object = DEFAULT_TIME,
    **columns: object,
) -> int:
    """A decision record; without a project it belongs to the workspace tier."""
    number = f"{columns.get('id') or _next_id(conn, 'records'):04}"
    values: dict[str, object] = {
        "record_id": number,
        "project_id": _project_id(conn, project),
        "scope": "project" if project is not None else "workspace",
        "path": f"decisions/{number}.md",
        "title": title,
        "date": "2026-01-15",
        "status": status,
        "body": body,
        "ingested_at": ingested_at,
        "workspace": "example",
    }
    record_id = insert(conn, "records", {**values, **columns})
    text = f"{title}\n{body!s}"
    source = ("record", record_id)
    _index(conn, text, "decision", label=f"DR-{number}", descr=title, source=source)
    link(conn, "record_concepts", record_id, concepts)
    return record_id


@dataclass(frozen=True)
class Section:
    """One row of document_sections to be; the gist of a document is one with level 'gist'."""

    heading: str = ""
    body: str = ""
    summary: str | bytes = ""
    status: str = "unsummarized"
    stale: bool = False
    concepts: Sequence[str | int] = ()
    created_at: object = DEFAULT_TIME
    level: str = "section"
    id: int | None = None


class DocumentIds(NamedTuple):
    """The ids an added document was given; recall reports gist and sections, not the document."""

    document: int
    gist: int
    sections: list[int]


def add_document(
    conn: sqlite3.Connection,
    title: str,
    *,
    gist: Section | None = None,
    sections: Sequence[Section] = (),
    project: str | None = None,
    **columns: object,
) -> DocumentIds:
    """A document with its gist row and its sections."""
    values = {"title": title, "path": f"{title}.md", "format": "markdown"}
    values.update(project_id=_project_id(conn, project), ingested_at=DEFAULT_TIME)
    document_id = insert(conn, "documents", {**values, **columns})
    gist_id = add_section(conn, document_id, gist or Section(), level="gist")
    section_ids = [
        add_section(conn, document_id, section, seq=seq)
        for seq, section in enumerate(sections, start=1)
    ]
    return DocumentIds(document_id, gist_id, section_ids)


def add_section(
    conn: sqlite3.Connection,
    document_id: int | None,
    section: Section,
    *,
    level: str | None = None,
    seq: int = 0,
) -> int:
    """One row of document_sections with its concepts."""
    values: dict[str, object] = {
        "document_id": document_id,
        "level": level or section.level,
        "seq": seq,
        "heading": section.heading,
        "body": section.body,
        "summary_body": section.summary,
        "summary_status": section.status,
        "summary_stale": int(section.stale),
        "created_at": section.created_at,
    }
    if section.id is not None:
        values["id"] = section.id
    section_id = insert(conn, "document_sections", values)
    if section.status == "reviewed":
        source = ("document_summary", section_id)
        _index(conn, section.summary, level or section.level, descr=section.heading, source=source)
    link(conn, "document_section_concepts", section_id, section.concepts)
    return section_id


def link(
    conn: sqlite3.Connection, table: str, item_id: int | None, concepts: Iterable[str | int]
) -> None:
    """Tag an item with concepts given by exact name (made when missing) or by id (as given)."""
    if not table_exists(conn, table):
        return
    for concept in concepts:
        concept_id = concept if isinstance(concept, int) else _named(conn, "concepts", concept)
        _execute(conn, f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", (item_id, concept_id))


def link_project(conn: sqlite3.Connection, project: str, concept: str | int) -> None:
    """Tag a project (made when missing) with a concept."""
    link(conn, "project_concepts", _project_id(conn, project), [concept])


def supersede_record(
    conn: sqlite3.Connection, new: int, old: int, relationship: str = "supersedes"
) -> None:
    """Say that the record `new` replaces the record `old`, or relates to it in another way."""
    _execute(conn, "INSERT INTO record_relations VALUES (?, ?, ?)", (new, old, relationship))


def supersede_observation(
    conn: sqlite3.Connection, new: int, old: int, relationship: str = "supersedes"
) -> None:
    """Say that the observation `new` replaces the observation `old`."""
    _execute(conn, "INSERT INTO observation_relations VALUES (?, ?, ?)", (new, old, relationship))


def insert(conn: sqlite3.Connection, table: str, values: dict[str, object]) -> int:
    """Insert the values whose columns the table has, and a uuid where it wants one; the new id."""
    columns = _columns(conn, table)
    if not columns:
        raise sqlite3.OperationalError(f"no such table: {table}")
    if "uuid" in columns:
        serial = values.get("id") or _next_id(conn, table)
        values = {"uuid": f"00000000-0000-7000-8000-{serial:012x}", **values}
    kept = {name: value for name, value in values.items() if name in columns}
    names = ", ".join(f'"{name}"' for name in kept)
    # Bytes become text as they are: that is how invalid UTF-8 gets into a file.
    marks = ", ".join(
        "CAST(? AS TEXT)" if isinstance(value, bytes) else "?" for value in kept.values()
    )
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
    row_id = _execute(conn, sql, tuple(kept.values())).lastrowid
    assert row_id is not None
    return row_id


def table_exists(conn: sqlite3.Connection, table: str) -> bool:
    """Whether the database has this table."""
    return bool(_columns(conn, table))


# --- internals -----------------------------------------------------------------------------------


def _execute(
    conn: sqlite3.Connection, sql: str, parameters: tuple[object, ...] = ()
) -> sqlite3.Cursor:
    """Run a statement with rows as tuples, whatever row factory the connection has."""
    cursor = conn.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, parameters)


def _declared_columns(body: str) -> list[tuple[str, str]]:
    lines = [line.strip() for line in body.strip().splitlines()]
    return [(re.split(r"[\s(]", line)[0].strip('"'), line) for line in lines]


def _create_tables(
    conn: sqlite3.Connection, tables: dict[str, str], *, without: Collection[str] = ()
) -> None:
    for table, body in tables.items():
        columns = [(name, line) for name, line in _declared_columns(body) if name not in without]
        conn.execute(f"CREATE TABLE {table} ({', '.join(line for _, line in columns)})")
        if any(name == "uuid" for name, _ in columns):
            conn.execute(f"CREATE UNIQUE INDEX idx_{table}_uuid ON {table}(uuid)")


def _columns(conn: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in _execute(conn, f"PRAGMA table_info({table})")}


def _next_id(conn: sqlite3.Connection, table: str) -> int:
    row = _execute(conn, f"SELECT IFNULL(MAX(id), 0) + 1 FROM {table}").fetchone()
    return int(row[0])


def _named(conn: sqlite3.Connection, table: str, name: str) -> int:
    """The id of the row with exactly this name, made when missing."""
    row = _execute(conn, f"SELECT id FROM {table} WHERE name = ?", (name,)).fetchone()
    if row is not None:
        return int(row[0])
    if table == "concepts":
        return add_concept(conn, name)
    return insert(conn, table, {"name": name})


def _project_id(conn: sqlite3.Connection, project: str | None) -> int | None:
    if project is None or not table_exists(conn, "projects"):
        return None
    return _named(conn, "projects", project)


def _index(
    conn: sqlite3.Connection,
    body: str | bytes,
    kind: str,
    *,
    label: str = "",
    descr: str = "",
    source: tuple[str, int],
    project: int = 0,
) -> None:
    """Write the full-text row that `kb` would write, where the file has the table."""
    if isinstance(body, str) and table_exists(conn, "kb_fts"):
        row = (body, kind, label, descr, *source, project)
        _execute(conn, "INSERT INTO kb_fts VALUES (?, ?, ?, ?, ?, ?, ?)", row)
