"""Databases that no program of ours made: as Django, taggit, sqlite-utils and others lay them out.

Each builder writes a file in which three items are tagged: one with bread and jam, one with jam,
one with nothing that ties it to either. `TITLES` tells what is found.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import sqlite_utils

BOTH, ONE, NEITHER = "Breakfast", "Afternoon tea", "Supper"
ITEMS = (
    (BOTH, "Bread with jam.", "2026-03-01 08:00:00", ("bread", "jam")),
    (ONE, "Scones and jam.", "2026-03-02 16:00:00", ("jam",)),
    (NEITHER, "Soup.", "2026-03-03 19:00:00", ("soup",)),
)
TAGS = ("bread", "jam", "soup")


def executed(path: Path, *scripts: str) -> Path:
    """A database, new or not, in which some scripts were run."""
    with closing(sqlite3.connect(path)) as conn:
        for script in scripts:
            conn.executescript(script)
    return path


def django_many_to_many(path: Path) -> Path:
    """A ManyToManyField: its link table has an id of its own, beside tables of Django itself."""
    executed(
        path,
        """
        create table django_content_type (id integer primary key, app_label varchar(100),
            model varchar(100));
        create table auth_permission (id integer primary key, name varchar(255),
            content_type_id integer references django_content_type(id));
        create table auth_group (id integer primary key, name varchar(150));
        create table auth_group_permissions (id integer primary key,
            group_id integer references auth_group(id),
            permission_id integer references auth_permission(id));
        create table auth_user (id integer primary key, username varchar(150));
        create table auth_user_user_permissions (id integer primary key,
            user_id integer references auth_user(id),
            permission_id integer references auth_permission(id));
        create table blog_topic (id integer primary key, name varchar(50) not null unique,
            slug varchar(50));
        create table blog_post (id integer primary key, title varchar(200) not null,
            slug varchar(50), body text not null, pub_date datetime not null,
            author_id integer references auth_user(id));
        create table blog_post_topics (id integer primary key,
            post_id bigint not null references blog_post(id),
            topic_id bigint not null references blog_topic(id));
        """,
    )
    with closing(sqlite3.connect(path)) as conn:
        for id_, name in enumerate(TAGS, start=1):
            conn.execute("insert into blog_topic values (?, ?, ?)", (id_, name, name))
        for id_, (title, body, created, tags) in enumerate(ITEMS, start=1):
            row = (id_, title, title.lower(), body, created, None)
            conn.execute("insert into blog_post values (?, ?, ?, ?, ?, ?)", row)
            for tag in tags:
                conn.execute(
                    "insert into blog_post_topics (post_id, topic_id) values (?, ?)",
                    (id_, TAGS.index(tag) + 1),
                )
        conn.commit()
    return path


def taggit(path: Path) -> Path:
    """Django's taggit: links to rows of any table by content type, of which one has no table."""
    executed(
        path,
        """
        create table django_content_type (id integer primary key, app_label varchar(100),
            model varchar(100));
        insert into django_content_type values
            (6, 'gone', 'thing'), (7, 'food', 'meal'), (8, 'food', 'drink');
        create table food_meal (id integer primary key, title varchar(200), body text,
            created datetime);
        create table food_drink (id integer primary key, name varchar(200), added date);
        create table taggit_tag (id integer primary key, name varchar(100) unique,
            slug varchar(100) unique);
        create table taggit_taggeditem (id integer primary key, object_id integer not null,
            content_type_id integer not null references django_content_type(id),
            tag_id integer not null references taggit_tag(id));
        """,
    )
    with closing(sqlite3.connect(path)) as conn:
        for id_, name in enumerate(TAGS, start=1):
            conn.execute("insert into taggit_tag values (?, ?, ?)", (id_, name, name))
        for id_, (title, body, created, tags) in enumerate(ITEMS, start=1):
            conn.execute("insert into food_meal values (?, ?, ?, ?)", (id_, title, body, created))
            for tag in tags:
                _tag_generic(conn, id_, 7, tag)
        conn.execute("insert into food_drink values (1, 'Jam shake', '2025-01-01')")
        _tag_generic(conn, 1, 8, "jam")
        _tag_generic(conn, 1, 6, "jam")
        conn.commit()
    return path


def _tag_generic(conn: sqlite3.Connection, item: int, content_type: int, tag: str) -> None:
    conn.execute(
        "insert into taggit_taggeditem (object_id, content_type_id, tag_id) values (?, ?, ?)",
        (item, content_type, TAGS.index(tag) + 1),
    )


def many_to_many_of_sqlite_utils(path: Path) -> Path:
    """``table.insert(…).m2m("tags", …)``, with texts as the items' keys."""
    with closing(sqlite3.connect(path)) as conn:
        db = sqlite_utils.Database(conn)
        for title, body, created, tags in ITEMS:
            meal = {"slug": title.lower(), "title": title, "body": body, "created": created}
            table = db["meals"].insert(meal, pk="slug")  # type: ignore[union-attr]
            for tag in tags:
                table.m2m("tags", lookup={"tag": tag})
        conn.commit()
    return path


def json_array(path: Path) -> Path:
    """Names in a column, as JSON, in some rows none and in some what is no JSON."""
    with closing(sqlite3.connect(path)) as conn:
        conn.execute(
            "create table meals (id integer primary key, title text, body text,"
            " created text, tags text)"
        )
        for title, body, created, tags in ITEMS:
            conn.execute(
                "insert into meals (title, body, created, tags) values (?, ?, ?, ?)",
                (title, body, created, json.dumps(tags)),
            )
        conn.commit()
    return path


def add_odd_arrays(path: Path) -> None:
    """Rows of `json_array` whose tags are not arrays of names."""
    with closing(sqlite3.connect(path)) as conn:
        odd = (None, "", "[", '"jam"', '{"a": "jam"}', '[null, 1, ["jam"], {"a": 1}]', b"\xff")
        conn.executemany("insert into meals (title, tags) values ('odd', ?)", [(v,) for v in odd])
        conn.commit()


def epochs(path: Path) -> Path:
    """Times as seconds and as milliseconds since 1970, and one that is no time."""
    return executed(
        path,
        """
        create table tags (id integer primary key, name text);
        create table meals (id integer primary key, title text, created_at integer);
        create table meal_tags (meal_id integer references meals(id),
            tag_id integer references tags(id));
        insert into tags values (1, 'jam');
        insert into meals values (1, 'seconds', 1700000000), (2, 'milliseconds', 1700000001000),
            (3, 'text', '2023-11-14T22:13:22Z'), (4, 'none', null), (5, 'blob', x'00');
        insert into meal_tags select id, 1 from meals;
        """,
    )


def compound(path: Path, *, without_rowid: bool = False) -> Path:
    """Items with a key of two columns, of which links hold both."""
    ending = " without rowid" if without_rowid else ""
    executed(
        path,
        f"""
        create table tags (id integer primary key, name text);
        create table meals (kitchen text, number integer, title text, body text,
            created text, primary key (kitchen, number)){ending};
        create table meal_tags (kitchen text, number integer,
            tag_id integer references tags(id),
            foreign key (kitchen, number) references meals(kitchen, number));
        """,
    )
    with closing(sqlite3.connect(path)) as conn:
        for id_, name in enumerate(TAGS, start=1):
            conn.execute("insert into tags values (?, ?)", (id_, name))
        for number, (title, body, created, tags) in enumerate(ITEMS, start=1):
            kitchen = f"a/b, {number}"
            row = (kitchen, number, title, body, created)
            conn.execute("insert into meals values (?, ?, ?, ?, ?)", row)
            for tag in tags:
                link = (kitchen, number, TAGS.index(tag) + 1)
                conn.execute("insert into meal_tags values (?, ?, ?)", link)
        conn.commit()
    return path


FOUND_WITHOUT_CONFIGURATION: dict[str, Callable[[Path], Path]] = {
    "django": django_many_to_many,
    "taggit": taggit,
    "sqlite-utils": many_to_many_of_sqlite_utils,
    "json": json_array,
    "compound": compound,
    "without-rowid": lambda path: compound(path, without_rowid=True),
}
