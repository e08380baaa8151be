"""The tables of an index database and how they came to be.

`MIGRATIONS` only grows: a new file gets all of them, an old one those that it lacks.
"""

from __future__ import annotations

import sqlite3

from ..errors import DatabaseUnreadable
from ..index_mapping import APPLICATION_ID

_M001_FIRST_TABLES = """
create table source (
    id integer primary key autoincrement,
    name text not null unique,
    kind text not null,
    origin text not null,
    options text not null default '{}',
    confidence text not null default 'any' check (confidence in ('any', 'local')),
    state text not null default 'new' check (state in (
        'new',          -- nothing was asked yet
        'queued',       -- waits for its turn
        'running',      -- a step is being made
        'waiting',      -- a pass goes on when other sources had their turn
        'done',         -- a pass got through everything
        'failed',       -- a pass ended, and some documents could not be indexed
        'held',         -- so much is gone that the removal waits for approval
        'unreachable',  -- the folder, mailbox or database is not there
        'refused',      -- the embedder may not see this source, or there is none
        'broken'        -- the index of this source has to be repaired
    )),
    problem text,
    held_removals integer not null default 0,
    approved_removals integer not null default 0,
    linked_up_to integer not null default 0,
    is_leaving integer not null default 0,
    added_at text not null,
    next_run_at text
);

create table index_version (
    id integer primary key autoincrement,
    source_id integer not null references source (id) on delete cascade,
    signature text not null,
    embedder text,
    dimensions integer,
    state text not null check (state in ('building', 'live')),
    started_at text not null,
    unique (source_id, state)
);

create table document (
    id integer primary key,
    source_id integer not null references source (id) on delete cascade,
    key blob not null,
    title text not null,
    names_itself integer not null default 0,
    kind text not null check (kind in ('note', 'file', 'mail', 'row')),
    path text not null,
    created_at text,
    live_generation integer references generation (id) on delete set null,
    chunk_count integer not null default 0,
    indexed_at text,
    orphaned_in integer,
    is_unverified integer not null default 0,
    problem text,
    unique (source_id, key)
);
create index document_by_generation on document (live_generation);

create table generation (
    id integer primary key autoincrement,
    document_id integer not null references document (id) on delete cascade,
    version_id integer not null references index_version (id) on delete cascade,
    fingerprint text not null,
    content_hash text not null,
    size integer not null default 0,
    is_complete integer not null default 0,
    chunk_count integer not null default 0,
    started_at text not null,
    unique (document_id, version_id, is_complete)
);
create index generation_by_version on generation (version_id, is_complete);
create index generation_by_content on generation (content_hash);

create table chunk (
    id integer primary key,
    generation_id integer not null references generation (id) on delete cascade,
    position integer not null,
    text text not null,
    text_hash blob not null,
    start_offset integer not null,
    end_offset integer not null,
    unit text check (unit in ('page', 'slide', 'row', 'line')),
    first integer,
    last integer,
    part text,
    place text not null default '',
    unique (generation_id, position)
);

create table vector (
    chunk_id integer primary key references chunk (id) on delete cascade,
    embedding blob not null
);

create virtual table chunk_fts using fts5 (
    text, content = 'chunk', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
create trigger chunk_inserted after insert on chunk begin
    insert into chunk_fts (rowid, text) values (new.id, new.text);
end;
create trigger chunk_deleted after delete on chunk begin
    insert into chunk_fts (chunk_fts, rowid, text) values ('delete', old.id, old.text);
end;
create trigger chunk_updated after update of text on chunk begin
    insert into chunk_fts (chunk_fts, rowid, text) values ('delete', old.id, old.text);
    insert into chunk_fts (rowid, text) values (new.id, new.text);
end;

create table concept (
    id integer primary key,
    name text not null unique
);
create table chunk_concept (
    chunk_id integer not null references chunk (id) on delete cascade,
    concept_id integer not null references concept (id) on delete cascade,
    primary key (chunk_id, concept_id)
) without rowid;
create index chunk_concept_by_concept on chunk_concept (concept_id);
create table document_concept (
    document_id integer not null references document (id) on delete cascade,
    concept_id integer not null references concept (id) on delete cascade,
    primary key (document_id, concept_id)
) without rowid;
create index document_concept_by_concept on document_concept (concept_id, document_id);
create table known_name (
    id integer primary key autoincrement,
    name text not null unique
);

create table location (
    document_id integer not null references document (id) on delete cascade,
    folder text not null,
    position text not null,
    flags text not null default '',
    primary key (document_id, folder, position)
) without rowid;

create table redaction (
    id integer primary key,
    generation_id integer not null references generation (id) on delete cascade,
    family text not null,
    place text not null,
    removed text not null
);
create index redaction_by_generation on redaction (generation_id);

create table skipped (
    source_id integer not null references source (id) on delete cascade,
    key blob not null,
    path text not null,
    fingerprint text not null,
    code text not null,
    message text not null,
    extra text,
    since text not null,
    primary key (source_id, key)
) without rowid;

create table failure (
    source_id integer not null references source (id) on delete cascade,
    key blob not null,
    path text not null,
    code text not null,
    message text not null,
    happened_at text not null,
    primary key (source_id, key)
) without rowid;

create table run (
    id integer primary key,
    source_id integer not null references source (id) on delete cascade,
    reason text not null,
    started_at text not null,
    ended_at text,
    outcome text,
    known integer not null default 0,
    done integer not null default 0,
    indexed integer not null default 0,
    unchanged integer not null default 0,
    skipped integer not null default 0,
    failed integer not null default 0,
    removed integer not null default 0,
    current text
);
create index run_by_source on run (source_id, id);

create table request (
    id integer primary key,
    source_id integer references source (id) on delete cascade,
    action text not null check (action in ('run', 'retry', 'verify', 'approve')),
    asked_at text not null
);

create table setting (
    name text primary key,
    value text not null
);

create view live_chunk as
select chunk.id, document.id as document_id, source.name as source, document.kind,
    document.title, document.path, chunk.place, chunk.text, chunk.position,
    document.created_at
from document
join source on source.id = document.source_id
join chunk on chunk.generation_id = document.live_generation;
"""

_M002_WHOLE_RECORDS = """
alter table document add column item_table text;
alter table document add column is_active integer not null default 1;
alter table document add column record text not null default '';
alter table chunk add column subject text not null default '';
alter table chunk add column context text not null default '';

drop trigger chunk_inserted;
drop trigger chunk_deleted;
drop trigger chunk_updated;
drop table chunk_fts;
create virtual table chunk_fts using fts5 (
    text, subject, context, content = 'chunk', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
insert into chunk_fts (chunk_fts) values ('rebuild');
create trigger chunk_inserted after insert on chunk begin
    insert into chunk_fts (rowid, text, subject, context)
    values (new.id, new.text, new.subject, new.context);
end;
create trigger chunk_deleted after delete on chunk begin
    insert into chunk_fts (chunk_fts, rowid, text, subject, context)
    values ('delete', old.id, old.text, old.subject, old.context);
end;
create trigger chunk_updated after update of text, subject, context on chunk begin
    insert into chunk_fts (chunk_fts, rowid, text, subject, context)
    values ('delete', old.id, old.text, old.subject, old.context);
    insert into chunk_fts (rowid, text, subject, context)
    values (new.id, new.text, new.subject, new.context);
end;

create table document_name (
    document_id integer not null references document (id) on delete cascade,
    name text not null,
    primary key (document_id, name)
) without rowid;
create index document_name_by_name on document_name (name);

create table live_change (
    id integer primary key autoincrement,
    document_id integer not null
);
create trigger document_changed after update of
    source_id, kind, item_table, is_active, live_generation on document
when (old.source_id, old.kind, old.item_table, old.is_active, old.live_generation)
    is not (new.source_id, new.kind, new.item_table, new.is_active, new.live_generation)
begin
    insert into live_change (document_id) values (new.id);
end;
create trigger document_deleted after delete on document begin
    insert into live_change (document_id) values (old.id);
end;
"""

_M003_LISTINGS = """
alter table index_version add column listing blob;
create trigger listing_ends_without_document after delete on document begin
    update index_version set listing = null
    where source_id = old.source_id and listing is not null;
end;
create trigger listing_ends_by_document after update of key, orphaned_in, is_unverified on document
when (old.key, old.orphaned_in, old.is_unverified)
    is not (new.key, new.orphaned_in, new.is_unverified)
begin
    update index_version set listing = null
    where source_id = old.source_id and listing is not null;
end;
create trigger listing_ends_with_generation after insert on generation begin
    update index_version set listing = null where id = new.version_id and listing is not null;
end;
create trigger listing_ends_without_generation after delete on generation begin
    update index_version set listing = null where id = old.version_id and listing is not null;
end;
create trigger listing_ends_by_generation after update of fingerprint, is_complete on generation
begin
    update index_version set listing = null where id = new.version_id and listing is not null;
end;
create trigger listing_ends_without_vector after delete on vector begin
    update index_version set listing = null where listing is not null;
end;
create trigger listing_ends_without_location after delete on location begin
    update index_version set listing = null
    where source_id = (select source_id from document where id = old.document_id)
    and listing is not null;
end;
create trigger listing_ends_by_location after update on location begin
    update index_version set listing = null
    where source_id = (select source_id from document where id = old.document_id)
    and listing is not null;
end;
create trigger listing_ends_with_skipped after insert on skipped begin
    update index_version set listing = null
    where source_id = new.source_id and listing is not null;
end;
create trigger listing_ends_by_skipped after update on skipped begin
    update index_version set listing = null
    where source_id = new.source_id and listing is not null;
end;
create trigger listing_ends_without_skipped after delete on skipped begin
    update index_version set listing = null
    where source_id = old.source_id and listing is not null;
end;
create trigger listing_ends_with_failure after insert on failure begin
    update index_version set listing = null
    where source_id = new.source_id and listing is not null;
end;
"""
"""With what listing of its source a version is in line, so that a run knows at once that there is
nothing to do; it is forgotten when something is written of which a run would take notice."""

_M004_MARKS = """
alter table live_change add column mark integer;
drop trigger document_changed;
drop trigger document_deleted;
create trigger document_changed after update of
    source_id, kind, item_table, is_active, live_generation on document
when (old.source_id, old.kind, old.item_table, old.is_active, old.live_generation)
    is not (new.source_id, new.kind, new.item_table, new.is_active, new.live_generation)
begin
    insert into live_change (document_id, mark) values (new.id, random());
end;
create trigger document_deleted after delete on document begin
    insert into live_change (document_id, mark) values (old.id, random());
end;
"""
"""Marks that tell the changes of this file from those of a copy of it that went on otherwise."""

MIGRATIONS = (_M001_FIRST_TABLES, _M002_WHOLE_RECORDS, _M003_LISTINGS, _M004_MARKS)


def is_index(conn: sqlite3.Connection) -> bool:
    """Whether a database is an index, of whatever version."""
    ((found,),) = conn.execute("pragma application_id").fetchall()
    return bool(found == APPLICATION_ID)


def migrate(conn: sqlite3.Connection) -> None:
    """Brings an index, or an empty database, to the tables of this version in one transaction.

    Raises `DatabaseUnreadable` for a database of something else, and for an index that a newer
    version of this plugin wrote.
    """
    ((version,),) = conn.execute("pragma user_version").fetchall()
    if version == len(MIGRATIONS) and is_index(conn):
        return
    conn.execute("begin immediate")
    try:
        _migrate(conn)
    except BaseException:
        conn.execute("rollback")
        raise
    conn.execute("commit")


def _migrate(conn: sqlite3.Connection) -> None:
    ((version,),) = conn.execute("pragma user_version").fetchall()
    ((tables,),) = conn.execute("select count(*) from sqlite_master").fetchall()
    if not is_index(conn):
        if tables:
            raise DatabaseUnreadable("This database holds something else; an index has its own")
        version = 0
    if version > len(MIGRATIONS):
        raise DatabaseUnreadable("This index was written by a newer version of the plugin")
    for migration in MIGRATIONS[version:]:
        for statement in statements(migration):
            conn.execute(statement)
    conn.execute(f"pragma user_version = {len(MIGRATIONS)}")
    conn.execute(f"pragma application_id = {APPLICATION_ID}")


def statements(script: str) -> list[str]:
    """The statements of a script, one by one: `executescript` would commit before the first."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return found
