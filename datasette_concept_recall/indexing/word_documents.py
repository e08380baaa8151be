"""Documents of Word (DOCX), read with python-docx, as Markdown in the order of the document."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from .archives import check_document
from .failures import missing
from .libraries import each, reading
from .models import Extracted, Segment

_WHAT = "a Word document"
_UNTITLED = "Word Document"
"""The title that the library gives to a document without properties."""

_AROUND = {"sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "hyperlink", "fldSimple"}
"""Elements around blocks or runs that belong to the text; what was deleted is in others."""

_BOXES = ".//w:txbxContent[not(ancestor::*[local-name() = 'Fallback'])]"


class _Block(NamedTuple):
    """A paragraph or a table as Markdown; ``level`` is that of a heading, 0 for all others."""

    text: str
    level: int = 0
    is_item: bool = False


def read_word_document(data: bytes) -> Extracted:
    """A document of Word, a segment for each paragraph, table and list.

    Its title is the one in its properties, else its first heading.
    """
    try:
        import docx
    except ImportError as error:
        raise missing("office", "Word documents") from error
    check_document(data, _WHAT)
    with reading(_WHAT):
        document = docx.Document(io.BytesIO(data))
        title = document.core_properties.title.strip()
        if title in ("", _UNTITLED):
            title = _first_heading(document) or ""
    return Extracted("docx", "markdown", _segments(document), title or None)


def _first_heading(document: Any) -> str | None:
    headings = (block for block in _blocks(document) if block.level)
    return next((block.text[block.level + 1 :] for block in headings), None)


def _segments(document: Any) -> Iterator[Segment]:
    # Items of a list are lines of one block, as Markdown has them.
    blocks = each(_WHAT, _blocks(document))
    for is_item, group in groupby(blocks, key=lambda block: block.is_item):
        if is_item:
            yield Segment("\n".join(block.text for block in group) + "\n\n")
        else:
            yield from (Segment(f"{block.text}\n\n") for block in group)


def _blocks(document: Any) -> Iterator[_Block]:
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    for element in _elements(document.element.body):
        if _local_name(element) == "p":
            block = _paragraph(Paragraph(element, document))
        else:
            block = _Block(_table(Table(element, document)))
        if block.text:
            yield block


def _elements(parent: Any) -> Iterator[Any]:
    """The paragraphs and tables of a body or cell, also those in controls and text boxes."""
    for element in parent.iterchildren("{*}*"):
        name = _local_name(element)
        if name in ("p", "tbl"):
            yield element
        elif name in _AROUND:
            yield from _elements(element)
        if name == "p":
            for box in element.xpath(_BOXES):
                yield from _elements(box)


def _local_name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _paragraph(paragraph: Any) -> _Block:
    text = _text(paragraph._p)
    if not text:
        return _Block("")
    styles = _style_names(paragraph)
    level = next(filter(None, map(_heading_level, styles)), 0)
    if level:
        return _Block(f"{'#' * level} {' '.join(text.split())}", level)
    properties: Any = paragraph._p.pPr
    numbering = properties.numPr if properties is not None else None
    if numbering is None and not any(name.startswith("List ") for name in styles):
        return _Block(text)
    depth = numbering.ilvl.val if numbering is not None and numbering.ilvl is not None else 0
    mark = "1." if any(name.startswith("List Number") for name in styles) else "-"
    return _Block(f"{'    ' * min(depth, 8)}{mark} {' '.join(text.split())}", is_item=True)


def _text(element: Any) -> str:
    """What the runs of a paragraph say, those in links, insertions and controls included."""
    return "".join(_run_texts(element)).strip()


def _run_texts(parent: Any) -> Iterator[str]:
    for element in parent.iterchildren("{*}*"):
        name = _local_name(element)
        if name == "r":
            yield element.text
        elif name in _AROUND:
            yield from _run_texts(element)


def _style_names(paragraph: Any) -> list[str]:
    """The name of the style of a paragraph and those it is based on, in English in any Word."""
    names: list[str] = []
    style: Any = paragraph.style
    while style is not None and len(names) < 10:  # A damaged file may be based on itself.
        names.append(style.name or "")
        style = style.base_style
    return names


def _heading_level(style: str) -> int:
    if style == "Title":
        return 1
    kind, _, number = style.partition(" ")
    return min(int(number), 6) if kind == "Heading" and number in "123456789" and number else 0


def _table(table: Any) -> str:
    rows = [[_cell(cell) for cell in row.tc_lst] for row in table._tbl.tr_lst]
    lines = [f"| {' | '.join(cells)} |" for cells in rows if any(cells)]
    if lines:
        lines.insert(1, "|" + " --- |" * max(map(len, rows)))
    return "\n".join(lines)


def _cell(cell: Any) -> str:
    """The text of a cell in one line, that of tables in it included."""
    return " ".join(" ".join(_cell_texts(cell)).split()).replace("|", "\\|")


def _cell_texts(cell: Any) -> Iterator[str]:
    for element in _elements(cell):
        if _local_name(element) == "p":
            yield _text(element)
        else:
            yield from (_cell(inner) for row in element.tr_lst for inner in row.tc_lst)
