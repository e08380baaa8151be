"""Reads a page as a tree of elements, as strictly as our own templates must be written."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

VOID = {"br", "hr", "img", "input", "link", "meta"}


class Element:
    """An element with its attributes, its children, and all text inside it."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.children: list[Element | str] = []

    def __getitem__(self, attribute: str) -> str:
        """The value of an attribute, the empty string when there is none."""
        return self.attributes.get(attribute, "")

    @property
    def text(self) -> str:
        """The text as it is in the tree, without the tags."""
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    @property
    def words(self) -> str:
        """The text as a browser shows it: runs of white space as one space."""
        return " ".join(self.text.split())

    def __iter__(self) -> Iterator[Element]:
        """The element and all inside it, in the order of the page."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child

    def all(self, tag: str, class_: str = "", **attributes: str) -> list[Element]:
        """All elements inside of this tag, class and attributes (``_`` stands for ``-``)."""
        return [
            element
            for element in self
            if element.tag == tag
            and (not class_ or class_ in element["class"].split())
            and all(element[k.replace("_", "-")] == v for k, v in attributes.items())
        ]

    def one(self, tag: str, class_: str = "", **attributes: str) -> Element:
        """The only such element; an error when there is none or another."""
        (element,) = self.all(tag, class_, **attributes)
        return element

    def links(self) -> list[str]:
        """Every address that the element links to or loads."""
        found = [
            e[name] for e in self for name in ("href", "src", "action") if name in e.attributes
        ]
        return list(dict.fromkeys(found))


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        element = self.open.pop()
        assert element.tag == tag, f"<{element.tag}> is closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Element:
    """The tree of a page. Raises AssertionError when tags do not match."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.open == [parser.root], f"<{parser.open[-1].tag}> is not closed"
    return parser.root


def content(response: Any) -> Element:
    """The part of a good page that its own template writes."""
    assert response.status_code == 200, response.text
    return parse(response.text).one("section", "content")
