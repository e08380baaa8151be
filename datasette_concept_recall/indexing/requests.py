"""What anybody may ask of an index by a few rows in it: whoever keeps it fresh sees to them.

The functions write within the transaction of the connection that they are given.
"""

from __future__ import annotations

import json
import sqlite3

from ..errors import RecallError

ACTIONS = ("run", "retry", "verify", "approve")


def request(conn: sqlite3.Connection, action: str, source_id: int | None, moment: str) -> None:
    """Leaves a request of one of `ACTIONS` for a source, or for all of them (None)."""
    conn.execute(
        "insert into request (source_id, action, asked_at) values (?, ?, ?)",
        [source_id, action, moment],
    )


def approve(conn: sqlite3.Connection, source_id: int, count: int, moment: str) -> None:
    """Says that exactly so many documents may be removed, which is what waits, and asks for that.

    Raises `RecallError` when the removal of another number waits, or none.
    """
    changed = conn.execute(
        "update source set approved_removals = ? where id = ? and held_removals = ? and ? > 0",
        [count, source_id, count, count],
    ).rowcount
    if not changed:
        ((held,),) = conn.execute(
            "select coalesce(max(held_removals), 0) from source where id = ?", [source_id]
        ).fetchall()
        waits = f"; that of {held} does" if held else ""
        raise RecallError(f"No removal of {count} documents waits for approval{waits}")
    request(conn, "approve", source_id, moment)


def set_setting(conn: sqlite3.Connection, name: str, value: object) -> None:
    """Changes a setting of the index."""
    conn.execute(
        "insert or replace into setting (name, value) values (?, ?)", [name, json.dumps(value)]
    )


def set_paused(conn: sqlite3.Connection, paused: bool) -> None:
    """Begins or ends a pause; a running step ends by itself soon after."""
    set_setting(conn, "paused", paused)
