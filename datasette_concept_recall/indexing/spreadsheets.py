"""Spreadsheets (XLSX, XLS, ODS), read sheet by sheet with python-calamine."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any
from zipfile import is_zipfile

from .archives import COMPOUND_FILE, MOST_CELLS, check_encryption, check_workbook, too_large
from .failures import Unusable, missing
from .libraries import each, reading
from .models import Extracted, Segment
from .tabular import row_texts

_WHAT = "a spreadsheet"
_EXACT = 2**53
"""Below it a number that is whole is shown without a fraction."""


def read_spreadsheet(data: bytes, format_name: str) -> Extracted:
    """A spreadsheet, a segment for each row that is not blank, with its sheet as the part.

    Raises `Unusable`: ``encrypted`` where a password is needed.
    """
    try:
        from python_calamine import CalamineWorkbook, PasswordError
    except ImportError as error:
        raise missing("office", "Spreadsheets") from error
    check_encryption(data, _WHAT)
    # The library looks for an archive in any file, also behind something else.
    if not data.startswith(COMPOUND_FILE) or is_zipfile(io.BytesIO(data)):
        check_workbook(data, _WHAT)
    with reading(_WHAT):
        try:
            workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        except PasswordError as error:
            raise Unusable("encrypted", "The spreadsheet is protected by a password") from error
    return Extracted(format_name, "rows", _segments(workbook))


def _segments(workbook: Any) -> Iterator[Segment]:
    from python_calamine import SheetTypeEnum

    cells = 0
    with workbook:
        for index, metadata in enumerate(workbook.sheets_metadata):
            if metadata.typ != SheetTypeEnum.WorkSheet:
                continue
            with reading(_WHAT):
                sheet = workbook.get_sheet_by_index(index)
                rows = sheet.iter_rows()
            cells += sheet.total_height * sheet.total_width
            if cells > MOST_CELLS:
                raise too_large(_WHAT)
            shown = ([_shown(cell) for cell in row] for row in each(_WHAT, rows))
            for number, text in row_texts(shown):
                yield Segment(text, "row", number, metadata.name)


def _shown(cell: Any) -> str:
    """A value about as a spreadsheet shows it."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and abs(cell) < _EXACT and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime):
        return str(cell.date() if cell.time() == time() else cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell)
