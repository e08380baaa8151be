"""Presentations of PowerPoint (PPTX), read slide by slide with python-pptx."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from .archives import check_document
from .failures import missing
from .libraries import each, reading
from .models import Extracted, Segment

_WHAT = "a presentation"
_UNTITLED = "PowerPoint Presentation"
"""The title of all presentations that nobody gave one."""


def read_presentation(data: bytes) -> Extracted:
    """A presentation, a segment for each slide with text, as Markdown headed by its title.

    The notes of the speaker come last. The title is the one in the properties of the file, else
    that of its first slide.
    """
    try:
        import pptx
    except ImportError as error:
        raise missing("office", "Presentations") from error
    check_document(data, _WHAT)
    with reading(_WHAT):
        presentation = pptx.Presentation(io.BytesIO(data))
        title = presentation.core_properties.title.strip()
        slides = presentation.slides
        if title in ("", _UNTITLED):
            title = _title(slides[0]) if len(slides) else ""
    return Extracted("pptx", "markdown", _segments(slides), title or None)


def _segments(slides: Iterable[Any]) -> Iterator[Segment]:
    for number, slide in enumerate(each(_WHAT, slides), 1):
        with reading(_WHAT):
            blocks = [block.strip() for block in _blocks(slide)]
        text = "\n\n".join(filter(None, blocks))
        yield Segment(f"{text}\n\n", "slide", number)


def _blocks(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if heading := _title(slide):
        yield f"# {heading}"
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif shape.has_table:
            yield _table(shape.table)
    if slide.has_notes_slide:
        notes = slide.notes_slide.notes_text_frame
        yield notes.text if notes is not None else ""


def _title(slide: Any) -> str:
    title = slide.shapes.title
    return " ".join(title.text_frame.text.split()) if title is not None else ""


def _shapes(shapes: Any) -> Iterator[Any]:
    """The shapes of a slide, those in groups in place of the group."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _table(table: Any) -> str:
    rows = [[" ".join(cell.text.split()) for cell in row.cells] for row in table.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in rows if any(cells)]
    if lines:
        lines.insert(1, "|" + " --- |" * max(map(len, rows)))
    return "\n".join(lines)
