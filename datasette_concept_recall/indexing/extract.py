"""The text of a file from its name and its bytes, whatever its format.

Each format has a module of its own. What holds for all of them is here: no segment is blank, there
is at least one, and a file is closed when its segments are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial

from .decoding import clean
from .failures import Unusable
from .formats import format_of, is_known, kind_of
from .html_pages import html_to_markdown, read_html
from .models import Extracted, Segment
from .pdf import read_pdf
from .presentations import read_presentation
from .spreadsheets import read_spreadsheet
from .tabular import read_csv, read_tsv
from .texts import read_markdown, read_text
from .word_documents import read_word_document

__all__ = ["extract", "html_to_markdown", "is_known", "kind_of"]

_READERS: dict[str, Callable[[bytes], Extracted]] = {
    "markdown": read_markdown,
    "text": read_text,
    "csv": read_csv,
    "tsv": read_tsv,
    "xlsx": partial(read_spreadsheet, format_name="xlsx"),
    "xls": partial(read_spreadsheet, format_name="xls"),
    "ods": partial(read_spreadsheet, format_name="ods"),
    "docx": read_word_document,
    "pptx": read_presentation,
    "pdf": read_pdf,
    "html": read_html,
}


def extract(name: str, data: bytes) -> Extracted:
    """The text of a file, of whose name only the suffix matters and of whose content all.

    The first segment is read at once, each other one when it is asked for; its text is not blank,
    has ``\\n`` at the ends of its lines and at its own end, and no zero characters. Closing the
    segments, or reading them to their end, closes the file. Raises `Unusable`, here or from the
    segments, with any of its codes.
    """
    format_name = format_of(name, data)
    if not data or data.isspace():
        raise _no_text()
    document = _READERS[format_name](data)
    title = clean(document.title or "").strip() or None
    return replace(document, segments=_begun(document.segments), title=title)


def _begun(segments: Iterator[Segment]) -> Iterator[Segment]:
    """The segments, of which the first is read already."""
    stream = _filled(segments)
    # A generator that never ran would close nothing, so it runs up to its first ``yield``.
    next(stream)
    return stream


def _filled(segments: Iterator[Segment]) -> Generator[Segment, None, None]:
    try:
        cleaned = (segment._replace(text=clean(segment.text)) for segment in segments)
        filled = (segment for segment in cleaned if segment.text.strip())
        first = next(filled, None)
        if first is None:
            raise _no_text()
        yield first  # to `_begun`
        yield first
        yield from filled
    finally:
        if isinstance(segments, Generator):
            segments.close()


def _no_text() -> Unusable:
    return Unusable("no_text", "The file holds no text")
