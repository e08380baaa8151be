"""A small knowledge database that tests serve, and what they ask of the JSON API."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from datasette.app import Datasette

import knowledge

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
PRIVATE = {"allow": {"id": "root"}}


def build(path: Path) -> Path:
    """A database with 25 items of the concept RAG, 3 of which carry C++ as well."""
    with closing(knowledge.create(path)) as conn:
        fill(conn)
    return path


def fill(conn: sqlite3.Connection) -> None:
    """Fills a database with every kind of item."""
    for number in range(20):
        body = f"Note {number} about <b>RAG</b>"
        knowledge.add_observation(conn, body, concepts=["RAG"], project="Search")
    old = knowledge.add_record(conn, "Use RAG", "Long ago", concepts=["RAG", "C++"])
    new = knowledge.add_record(conn, "No RAG", concepts=["RAG"], status="rejected")
    knowledge.supersede_record(conn, new, old)
    knowledge.add_document(
        conn,
        "Handbook",
        gist=knowledge.Section(summary="RAG in C++", status="reviewed", concepts=["RAG", "C++"]),
        sections=[
            knowledge.Section("Draft", summary="unseen", concepts=["RAG"], stale=True),
            knowledge.Section("Other", concepts=["RAG", "C++"], created_at="2026-02-03T04:05:06.5"),
        ],
        project="Search",
    )
    knowledge.link_project(conn, "Compilers", "C++")
    knowledge.add_concept(conn, "unused")
    conn.commit()


async def get(datasette: Datasette, query: str = "", database: str = "knowledge") -> Any:
    """The answer to a GET request, which must be good."""
    response = await datasette.client.get(f"/{database}/-/recall.json?{query}")
    assert response.status_code == 200, response.text
    return response.json()


def assert_error(response: Any, status: int, message: str) -> None:
    """The response is an error in the shape of Datasette 1.0."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    error = response.json()
    assert message in error["error"]
    assert error == {
        "ok": False,
        "error": error["error"],
        "errors": [error["error"]],
        "status": status,
    }
