"""PDF files, read page by page with pypdfium2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import RLock
from typing import Any

from .failures import Unusable, missing
from .libraries import reading
from .models import Extracted, Segment

_WHAT = "a PDF file"
_BY_PASSWORD = (4, 5)
"""The codes of PDFium for a wrong password and for a protection that it does not know."""

_HYPHENATION = re.compile("[\ufffe\x02]\\s*")
"""What PDFium puts between the halves of a word that was cut at the end of a line."""

# PDFium must not be called by two threads at once, not even about two documents. Reentrant, since a
# collection of garbage may close the pages of one document while another one is read.
_pdfium = RLock()


def read_pdf(data: bytes) -> Extracted:
    """A PDF file, a segment for each page that has text.

    Raises `Unusable`: ``encrypted`` where a password is needed, ``no_text`` without any page.
    """
    try:
        import pypdfium2
    except ImportError as error:
        raise missing("pdf", "PDF files") from error
    with _pdfium, reading(_WHAT):
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if error.err_code in _BY_PASSWORD:
                raise Unusable("encrypted", "The PDF file is protected by a password") from error
            if not error.err_code:
                raise Unusable("no_text", "The PDF file has no pages") from error
            raise
        title = document.get_metadata_value("Title").strip() or None
    return Extracted("pdf", "plain", _pages(document), title)


def _pages(document: Any) -> Iterator[Segment]:
    try:
        with _pdfium, reading(_WHAT):
            count = len(document)
        for index in range(count):
            with _pdfium, reading(_WHAT):
                text = _page_text(document, index)
            yield Segment(_HYPHENATION.sub("", text).strip() + "\n\n", "page", index + 1)
    finally:
        with _pdfium:
            document.close()


def _page_text(document: Any, index: int) -> str:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            text: str = text_page.get_text_bounded()
        finally:
            text_page.close()
    finally:
        page.close()
    return text
