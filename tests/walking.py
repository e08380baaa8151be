"""A walk along every link of our pages, which finds what is broken, unsafe or lost on the way.

    path = hostile.build(tmp_path / "hostile.db")
    await walking.walk(make_datasette(path), hostile.starts("hostile"))

A page, a filter or a facet that our pages link to is walked without being named here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from datasette.app import Datasette
from datasette.utils import PrefixedUrlString

from hostile import NAMES, SCRIPT, VALUE
from pages import parse

ORIGIN = "http://localhost"
LINKING = ("href", "xlink:href", "src", "action", "formaction")

MOST = 450
"""So many addresses are visited; after that only those that are like none before."""
MOST_NAMED = len(NAMES) + 8
MOST_ALIKE = 6
"""Of addresses that differ in one name only, and of others that are alike, so many are visited."""

_our_path = re.compile(r"/-/(recall|concepts)\b").search
_names_an_address = re.compile(r"(^|_)(url|href|link)$").search
_REPORTED = 20

Get = Callable[[str], Awaitable[Any]]


def is_ours(address: str) -> bool:
    """Whether this plugin gives the answer; Datasette's own pages are seen, but not judged."""
    return bool(_our_path(urlsplit(address).path))


def shape(address: str) -> tuple[str, ...]:
    """Path and parameters, without what differs from one concept, row or value to the next."""
    parts = urlsplit(address)
    path = re.sub(r"(/-/concepts/).+?(\.\w+)?$", r"\1*\2", parts.path)
    path = re.sub(r"/\d+(\.\w+)?$", r"/*\1", path)
    return (path, *sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}))


async def walk(datasette: Datasette, starts: Iterable[str], most: int = MOST) -> Walk:
    """A walk through an instance; `starts` are paths without its base URL. See `Walk.along`."""

    async def get(address: str) -> Any:
        return await datasette.client.get(PrefixedUrlString(address))

    walk = Walk(get, datasette.setting("base_url"), most)
    await walk.along(starts)
    return walk


@dataclass
class Walk:
    """What a walk has seen, status by address, and everything that was wrong with it."""

    get: Get
    base_url: str = "/"
    most: int = MOST
    seen: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _alike: Counter[tuple[str, ...]] = field(default_factory=Counter)

    async def along(self, starts: Iterable[str]) -> None:
        """Visits the starts and, breadth first, what they lead to.

        From our own pages every link is followed, from other pages those that lead to ours.
        Raises AssertionError with all that was wrong: an error of the server, any error behind a
        link that we make, an answer that cannot be read, markup of the database that came through,
        a link that lacks the base URL or leads where no page of ours may lead.
        """
        given = [self.base_url + start.lstrip("/") for start in starts]
        waiting = deque((address, False) for address in given)
        while waiting:
            address, linked = waiting.popleft()
            if address in self.seen or not (not linked or self._wants(address)):
                continue
            links = await self._visit(address, linked)
            followed = links if is_ours(address) else filter(is_ours, links)
            waiting.extend((link, True) for link in followed)
        assert not self.problems, self._report()

    def shapes(self) -> set[tuple[str, ...]]:
        """The `shape` of everything seen, without the base URL."""
        start = len(self.base_url) - 1
        return {shape(address[start:]) for address in self.seen}

    def _wants(self, address: str) -> bool:
        of_this = shape(address)
        self._alike[of_this] += 1
        if len(self.seen) >= self.most:
            return self._alike[of_this] == 1
        named = _our_path(of_this[0]) and len(of_this) <= 2
        return self._alike[of_this] <= (MOST_NAMED if named else MOST_ALIKE)

    def _report(self) -> str:
        shown = "\n".join(self.problems[:_REPORTED])
        return f"{len(self.problems)} problems in {len(self.seen)} answers:\n{shown}"

    def _wrong(self, address: str, problem: str) -> None:
        self.problems.append(f"{address[:200]}: {problem[:300]}")

    async def _visit(self, address: str, linked: bool) -> list[str]:
        """Looks at one address; the addresses it leads to, as a browser would find them."""
        response = await self.get(address)
        self.seen[address] = response.status_code
        if response.status_code >= (400 if linked else 500):
            self._wrong(address, f"status {response.status_code}")
        found = list(self._links(address, response))
        if "location" in response.headers:
            found.append(response.headers["location"])
        targets = (self._target(address, link) for link in found)
        return [target for target in targets if target is not None]

    def _links(self, address: str, response: Any) -> Iterator[str]:
        kind = response.headers.get("content-type", "").split(";")[0]
        try:
            if kind == "text/html":
                yield from self._links_of_page(address, response.text)
            elif kind.endswith("json"):
                yield from _links_of_json(json.loads(response.text))
            elif kind == "text/csv":
                _check_csv(response.text)
        except (AssertionError, ValueError, csv.Error) as error:
            self._wrong(address, f"cannot be read: {error}")

    def _links_of_page(self, address: str, html: str) -> Iterator[str]:
        for sign in (SCRIPT, VALUE):
            if sign in html:
                self._wrong(address, f"{sign} came through")
        page = parse(html)
        if is_ours(address):
            for element in page.one("section", "content"):
                if any(name.startswith("on") for name in element.attributes):
                    self._wrong(address, f"<{element.tag}> has a handler of events")
        for element in page:
            yield from (element[name] for name in LINKING if name in element.attributes)

    def _target(self, address: str, link: str) -> str | None:
        """The address a link leads to; None when that is the same page, or another site."""
        if link.startswith("#"):
            return None
        parts = urlsplit(urljoin(ORIGIN + address, link))
        if f"{parts.scheme}://{parts.netloc}" != ORIGIN:
            if is_ours(address) and not _may_lead_to(parts.scheme, parts.netloc):
                self._wrong(address, f"leads to {link}")
            return None
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        if target.startswith(self.base_url):
            return target
        if is_ours(address) or is_ours(target):
            self._wrong(address, f"{link} is not below {self.base_url}")
        return None


def _may_lead_to(scheme: str, host: str) -> bool:
    """Whether a page of ours may have such a link: not to where only a hostile name can lead."""
    return scheme in ("http", "https") and not host.endswith(".example")


def _links_of_json(value: Any) -> Iterator[str]:
    """The strings in a value, however deep, whose keys say that they are addresses."""
    if isinstance(value, list):
        for each in value:
            yield from _links_of_json(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and _names_an_address(key):
                yield each
            else:
                yield from _links_of_json(each)


def _check_csv(text: str) -> None:
    """Raises AssertionError when the rows are not all as long as the first."""
    lengths = {len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)}
    assert len(lengths) <= 1, f"rows of {sorted(lengths)} values"
