"""Office files are ZIP archives: what is in them is measured before a library unpacks it.

A few kilobytes can unpack to gigabytes, and a sheet of two cells can span seventeen billion: the
libraries hold all of it in memory.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat
from zipfile import ZipFile, ZipInfo

from .failures import Unusable
from .libraries import reading

LARGEST_UNPACKED = 200_000_000
"""Bytes of all parts of an office file."""

LARGEST_TREES = 50_000_000
"""Bytes of its XML where a library makes trees of it, which take ten times as much and more."""

MOST_ELEMENTS = 1_000_000
"""Tags of the XML of a document or presentation: each is an object for the libraries."""

MOST_CELLS = 10_000_000
"""Cells between the first and the last filled one of all sheets, blank ones included."""

COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How older office files begin, and newer ones that are protected by a password."""

_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MANIFEST = "META-INF/manifest.xml"
"""What tells of the parts of an OpenDocument file how they are encrypted."""

_PIECE = 1 << 20
_CELLS_BELOW = re.compile(
    rb"<(\w+:)?(worksheet|sheetData|document-content)[\s/>]|<table:table[\s/>]"
)


def check_document(data: bytes, what: str) -> None:
    """Raise `Unusable` for a document or presentation that is not to be unpacked.

    The sizes are those that the archive declares: Python unpacks no more than these.
    """
    check_encryption(data, what)
    with reading(what), ZipFile(io.BytesIO(data)) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        trees = {name: size for name, size in sizes.items() if name.endswith((".xml", ".rels"))}
        if sum(sizes.values()) > LARGEST_UNPACKED or sum(trees.values()) > LARGEST_TREES:
            raise too_large(what)
        if sum(archive.read(name).count(b"<") for name in trees) > MOST_ELEMENTS:
            raise too_large(what)


def check_workbook(data: bytes, what: str) -> None:
    """Raise `Unusable` for a spreadsheet in an archive that is not to be unpacked or read.

    Other programs than Python unpack what there is, whatever size is declared, so it is measured.
    """
    unpacked = cells = 0
    with reading(what), ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.filename.lower().endswith("workbook.bin"):
                raise Unusable("unsupported", "Binary workbooks (XLSB) are not read")
            sheets = _SheetArea()
            for piece in _pieces(archive, info):
                unpacked += len(piece)
                if info.filename == _MANIFEST and b":encryption-data" in piece:
                    raise _encrypted(what)
                sheets.feed(piece)
                if unpacked > LARGEST_UNPACKED or cells + sheets.cells > MOST_CELLS:
                    raise too_large(what)
            sheets.finish()
            cells += sheets.cells
        if cells > MOST_CELLS:
            raise too_large(what)


def check_encryption(data: bytes, what: str) -> None:
    """Raise `Unusable` for an office file of today that is protected by a password."""
    if data.startswith(COMPOUND_FILE) and _ENCRYPTED in data:
        raise _encrypted(what)


def _encrypted(what: str) -> Unusable:
    return Unusable("encrypted", f"This is {what} that is protected by a password")


def too_large(what: str) -> Unusable:
    """What to raise where reading ``what`` would take too much memory."""
    return Unusable("too_large", f"This is {what} that holds too much to be read")


def _pieces(archive: ZipFile, info: ZipInfo) -> Iterator[bytes]:
    info.file_size = sys.maxsize  # Python would stop at what is declared.
    with archive.open(info) as part:
        while piece := part.read(_PIECE):
            yield piece


class _SheetArea:
    """Counts the cells up to the last filled one of each sheet in a part of a workbook.

    Understands the sheets of XLSX and ODS; parts that are neither have no cells.
    """

    def __init__(self) -> None:
        self._parser: Any = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._begin
        self._parser.EntityDeclHandler = self._declare_entity
        self._is_sheet = self._is_other = self._has_entities = False
        self._tail = b""
        self._done = 0
        self._start_sheet()

    @property
    def cells(self) -> int:
        return self._done + self._height * self._width

    def finish(self) -> None:
        """Count what the parser still holds back when it has been fed the whole part."""
        if self._is_sheet:
            self._parser.Parse(b"", True)

    def feed(self, piece: bytes) -> None:
        """Count the cells in the next piece of the part."""
        if not self._is_other:
            self._parse(piece)
        # The library is less strict: it would find a sheet behind something else.
        if self._is_other and _CELLS_BELOW.search(self._tail + piece):
            raise Unusable("invalid", "The spreadsheet hides a sheet")
        self._tail = piece[-100:]

    def _parse(self, piece: bytes) -> None:
        try:
            self._parser.Parse(piece, False)
        except expat.ExpatError:
            if self._is_sheet:
                raise
            self._is_other = True  # A picture, or another part that is no XML.

    def _start_sheet(self) -> None:
        self._row = self._column = self._height = self._width = 0
        self._rows_end = 0

    def _begin(self, qualified: str, attributes: dict[str, str]) -> None:
        name = qualified.rpartition(" ")[2]
        if not self._is_sheet:
            self._is_sheet = name in ("worksheet", "document-content")
            if not self._is_sheet:
                self._is_other, self._parser.StartElementHandler = True, None
            elif self._has_entities:
                raise Unusable("invalid", "The spreadsheet declares entities")
            return
        handler = _HANDLERS.get(name)
        if handler:
            handler(self, {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    def _begin_row(self, attributes: dict[str, str]) -> None:
        self._row = int(attributes.get("r", self._row + 1))
        self._rows_end, self._column = self._row, 0

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        letters = attributes.get("r", "").rstrip("0123456789")
        self._column = _column_number(letters) if letters else self._column + 1
        digits = attributes.get("r", "")[len(letters) :]
        self._rows_end = int(digits) if digits else self._row

    def _begin_table(self, _: dict[str, str]) -> None:
        self._done = self.cells
        self._start_sheet()

    def _begin_rows(self, attributes: dict[str, str]) -> None:
        self._rows_end += int(attributes.get("number-rows-repeated", 1))
        self._column = 0

    def _begin_cells(self, attributes: dict[str, str]) -> None:
        self._column += int(attributes.get("number-columns-repeated", 1))
        if "value-type" in attributes or "formula" in attributes:
            self._fill(attributes)

    def _fill(self, _: dict[str, str]) -> None:
        self._height = max(self._height, self._rows_end)
        self._width = max(self._width, self._column)

    def _declare_entity(self, *_: Any) -> None:
        self._has_entities = True


_HANDLERS = {
    "row": _SheetArea._begin_row,
    "c": _SheetArea._begin_cell,
    "v": _SheetArea._fill,
    "is": _SheetArea._fill,
    "f": _SheetArea._fill,
    "table": _SheetArea._begin_table,
    "table-row": _SheetArea._begin_rows,
    "table-cell": _SheetArea._begin_cells,
    "covered-table-cell": _SheetArea._begin_cells,
    "p": _SheetArea._fill,
}


def _column_number(letters: str) -> int:
    """``A`` is 1, ``Z`` 26, ``AA`` 27."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
