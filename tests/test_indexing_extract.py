"""What is read of a file of each format, where it says it stands, and what is refused."""

from __future__ import annotations

import datetime
import io
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator

import docx
import openpyxl
import pptx
import pypdfium2
import pytest
from docx.oxml import parse_xml
from fpdf import FPDF
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl.styles import Font

from datasette_concept_recall.indexing import archives, html_pages
from datasette_concept_recall.indexing.extract import extract, html_to_markdown, is_known, kind_of
from datasette_concept_recall.indexing.failures import DocumentFailure, Unusable
from datasette_concept_recall.indexing.formats import FORMATS
from datasette_concept_recall.indexing.models import Segment

Places = list[tuple[str, int | None, str | None]]
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def segments(name: str, data: bytes) -> list[Segment]:
    """All segments of a file."""
    return list(extract(name, data).segments)


def text(name: str, data: bytes) -> str:
    """The whole text of a file."""
    return "".join(segment.text for segment in segments(name, data))


def places(name: str, data: bytes) -> Places:
    """The text of each segment, without its end, with its number and part."""
    return [(segment.text.rstrip("\n"), *segment[2:]) for segment in segments(name, data)]


def failure(name: str, data: bytes) -> Unusable:
    """How a file is refused, at once or while it is read."""
    with pytest.raises(Unusable) as caught:
        segments(name, data)
    return caught.value


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    """What is written by something that saves itself to a file."""
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def pdf(*pages: str, title: str | None = None, password: str | None = None) -> bytes:
    """A PDF with these texts on its pages."""
    document = FPDF()
    if title:
        document.set_title(title)
    if password:
        document.set_encryption(owner_password=f"{password}!", user_password=password)
    document.set_font("Helvetica")
    for page in pages:
        document.add_page()
        for number, line in enumerate(page.splitlines()):
            document.text(20, 20 + 5 * number, line)
    return bytes(document.output())


def xlsx(**sheets: dict[str, object]) -> bytes:
    """A workbook of sheets by name, with values by cell."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, cells in sheets.items():
        sheet = workbook.create_sheet(name)
        for cell, value in cells.items():
            sheet[cell] = value
    return saved(workbook.save)


def archive(parts: dict[str, str]) -> bytes:
    """A ZIP archive of these parts."""

    def save(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
            for name, content in parts.items():
                written.writestr(name, content)

    return saved(save)


def ods(*rows: str) -> bytes:
    """An OpenDocument spreadsheet with one sheet, named Stock, of these rows in XML."""
    names = "urn:oasis:names:tc:opendocument:xmlns"
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{names}:manifest:1.0"/>',
            "content.xml": f'<office:document-content xmlns:office="{names}:office:1.0"'
            f' xmlns:table="{names}:table:1.0" xmlns:text="{names}:text:1.0"><office:body>'
            f'<office:spreadsheet><table:table table:name="Stock">{"".join(rows)}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def ods_row(*cells: str, attributes: str = "") -> str:
    """A row of cells of text for `ods`."""
    inner = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
        for cell in cells
    )
    return f"<table:table-row {attributes}>{inner}</table:table-row>"


def word() -> bytes:
    """A Word document with a bit of everything."""
    document = docx.Document()
    document.add_heading("Engines", 1)
    document.add_paragraph("All about engines.")
    document.add_heading("Parts", 2)
    document.add_paragraph("piston", style="List Bullet")
    document.add_paragraph("valve", style="List Bullet")
    document.add_paragraph("turn it", style="List Number")
    table = document.add_table(2, 2)
    for cell, value in zip(
        [cell for row in table.rows for cell in row.cells],
        ["Part", "Price", "A|B", "4"],
        strict=True,
    ):
        cell.text = value
    document.add_paragraph("The end.")
    return saved(document.save)


def presentation() -> bytes:
    """Three slides, of which the second is blank."""
    shown = pptx.Presentation()
    first = shown.slides.add_slide(shown.slide_layouts[1])
    first.shapes.title.text = "Engines"
    first.placeholders[1].text = "They turn."
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    shown.slides.add_slide(shown.slide_layouts[6])
    third = shown.slides.add_slide(shown.slide_layouts[5])
    third.shapes.title.text = "Prices"
    table = third.shapes.add_table(2, 2, 0, 0, 100, 100).table
    for row, values in enumerate([("Part", "Price"), ("Valve", "4")]):
        for column, value in enumerate(values):
            table.cell(row, column).text = value
    box = third.shapes.add_group_shape().shapes.add_textbox(0, 0, 100, 100)
    box.text_frame.text = "In a group."
    return saved(shown.save)


SAMPLES = {
    "a.md": b"# Engines\n\ntext",
    "a.txt": b"text",
    "README": b"text",
    "a.py": b"x = 1",
    "a.csv": b"Part,Price\nValve,4\n",
    "a.tsv": b"Part\tPrice\nValve\t4\n",
    "a.xlsx": xlsx(Stock={"A1": "Part", "B1": "Price", "A2": "Valve", "B2": 4}),
    "a.ods": ods(ods_row("Part", "Price"), ods_row("Valve", "4")),
    "a.docx": word(),
    "a.pptx": presentation(),
    "a.pdf": pdf("one", "two"),
    "a.html": b"<title>Engines</title><p>text</p>",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_segment_is_text_that_ends_its_line(name: str) -> None:
    """Segments can be put one after the other: none is blank and each ends with a line."""
    found = segments(name, SAMPLES[name])
    assert found
    assert all(segment.text.strip() and segment.text.endswith("\n") for segment in found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.md", ("markdown", "markdown")),
        ("A.MARKDOWN", ("markdown", "markdown")),
        ("a.rst", ("text", "plain")),
        ("a.py", ("text", "plain")),
        ("README", ("text", "plain")),
        (".gitignore", ("text", "plain")),
        ("folder.d/LICENSE", ("text", "plain")),
    ],
)
def test_a_file_of_text_is_one_segment_that_begins_with_line_1(
    name: str, expected: tuple[str, str]
) -> None:
    """The suffix in any case says whether text is Markdown, and its lines are what is counted."""
    document = extract(name, b"a\nb")
    assert (document.format, document.strategy) == expected
    assert list(document.segments) == [Segment("a\nb\n", "line", 1)]


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("# Engines #\n\ntext", "Engines"),
        ("text\n\n## C#\n", "C#"),
        ("Engines\n=======\n", "Engines"),
        ("- item\n---\n\nEngines\n---\n", "Engines"),
        ("---\ntitle: 'Of engines'\ndate: x\n---\n# Other\n", "Of engines"),
        ('+++\ntitle = "Of engines"\n+++\n# Other\n', "Of engines"),
        ("---\ntitle: >-\n  folded\n---\n# Other\n", "Other"),
        ("---\nname: x\n---\n# Other\n", "Other"),
        ("```\n# code\n```\n~~~\n# code\n```\n~~~\n# Engines\n", "Engines"),
        ("#tag\n\n#\n\ntext\n", None),
    ],
)
def test_markdown_is_titled_by_its_front_matter_or_its_first_heading(
    content: str, title: str | None
) -> None:
    """A title is what is written as one, not a comment in code or a hash tag."""
    assert extract("a.md", content.encode()).title == title


@pytest.mark.parametrize(
    "data",
    [
        "Caf\u00e9 \u2013 na\u00efve\n".encode(),
        "Caf\u00e9 \u2013 na\u00efve\n".encode("utf-8-sig"),
        "Caf\u00e9 \u2013 na\u00efve\n".encode("utf-16"),
        "\ufeffCaf\u00e9 \u2013 na\u00efve\n".encode("utf-16-be"),
        "Caf\u00e9 \u2013 na\u00efve\n".encode("utf-32"),
        "Caf\u00e9 \u2013 na\u00efve\n".encode("cp1252"),
    ],
)
def test_text_is_decoded_from_the_encodings_in_which_it_comes(data: bytes) -> None:
    """A mark, else UTF-8, else Windows-1252 gives the same text without the mark."""
    assert text("a.txt", data) == "Caf\u00e9 \u2013 na\u00efve\n"


def test_damaged_utf_8_is_not_taken_for_an_older_encoding() -> None:
    """One broken byte in a file of UTF-8 costs one character, not all others."""
    assert text("a.log", "äöü ".encode() * 9 + b"\xff") == "äöü " * 9 + "\ufffd\n"


def test_lines_end_alike_in_every_text() -> None:
    """The ends of lines of Windows and of old Macs count as one line each."""
    assert text("a.txt", b"a\r\nb\rc\n") == "a\nb\nc\n"


@pytest.mark.parametrize(
    "data",
    [b"a\0b", "Привет, мир".encode("koi8-r"), bytes(range(256)), b"\x01\x02ab", b"%PDF-1.4\n"],
)
def test_what_is_not_text_is_refused_under_the_name_of_a_text(data: bytes) -> None:
    """Zero bytes, unknown encodings, control characters and PDFs are no text."""
    assert failure("a.txt", data).code == "not_text"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "README", "a.csv", "a.html", "a.docx", "a.pdf"])
@pytest.mark.parametrize("data", [b"", b" \r\n\t"])
def test_an_empty_file_has_no_text(name: str, data: bytes) -> None:
    """Nothing is nothing in any format."""
    assert failure(name, data).code == "no_text"


@pytest.mark.parametrize(
    "data",
    [b"\x7fELF\2\1\1", b"MZ\x90\0\3", b"\xcf\xfa\xed\xfe\7", b"\xca\xfe\xba\xbe\0", b"\0asm\1"],
)
@pytest.mark.parametrize("name", ["a.txt", "a.pdf", "README", "a.exe", "a.xyz"])
def test_a_program_is_refused_under_any_name(name: str, data: bytes) -> None:
    """What the content shows to be executable is never read as anything else."""
    assert failure(name, data).code == "executable"


def test_a_text_that_begins_like_a_program_is_a_text() -> None:
    """Two letters do not make a program."""
    assert text("a.txt", b"MZ are the first letters of programs.") != ""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a.png", "unsupported"),
        ("a.mp3", "unsupported"),
        ("a.mp4", "unsupported"),
        ("a.tar.gz", "unsupported"),
        ("a.doc", "unsupported"),
        ("a.exe", "executable"),
        ("a.xyz", "unknown_format"),
        ("a.", "text"),
        ("README", "text"),
        ("a.Md", "text"),
    ],
)
def test_a_listing_knows_which_names_are_worth_reading(name: str, code: str) -> None:
    """A name that is not known is one whose file would be refused for its name alone."""
    assert is_known(name) is (code == "text")
    if code == "text":
        assert text(name, b"text") == "text\n"
    else:
        assert failure(name, b"text").code == code


def test_a_file_without_a_suffix_that_is_no_text_is_of_an_unknown_format() -> None:
    """Only text is read without a suffix."""
    assert failure("data", b"\xff\xfe\xff").code == "unknown_format"


def test_notes_are_told_from_files_by_name() -> None:
    """Markdown and plain prose are notes; code, tables and documents are files."""
    notes = ["a.md", "a.TXT", "a.org", "a.rst", "README"]
    files = ["a.py", "a.json", "a.log", "a.csv", "a.pdf", "a.docx", "a.html", "a.xyz"]
    assert [kind_of(name) for name in notes] == ["note"] * len(notes)
    assert [kind_of(name) for name in files] == ["file"] * len(files)


def test_a_row_of_csv_has_the_number_that_a_spreadsheet_shows() -> None:
    """Blank rows give no segment but count, and a row of several lines is one row."""
    data = b'Part;Price\nValve;4,5\n\n"Fuel\npump";\nRod;6\n'
    assert places("a.csv", data) == [
        ("Part | Price", 1, None),
        ("Part: Valve; Price: 4,5", 2, None),
        ("Part: Fuel pump", 4, None),
        ("Part: Rod; Price: 6", 5, None),
    ]
    assert {segment.unit for segment in segments("a.csv", data)} == {"row"}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_csv_is_the_one_that_fits(delimiter: str) -> None:
    """Rows are cut where they fall into equally many cells."""
    data = delimiter.join(["Part", "Price"]) + "\n" + delimiter.join(['"a, b; c"', "4"]) + "\n"
    assert places("a.csv", data.encode())[1][0] == "Part: a, b; c; Price: 4"


def test_a_table_without_names_of_columns_shows_its_cells() -> None:
    """Numbers do not name columns, and a title above a table is not one of its names."""
    assert places("a.tsv", b"1\t2\n3\t4\n") == [("1 | 2", 1, None), ("3 | 4", 2, None)]
    titled = b"Stock\nPart,Price\nValve,4,new\n"
    assert [row for row, *_ in places("a.csv", titled)] == [
        "Stock",
        "Part | Price",
        "Part: Valve; Price: 4; new",
    ]


def test_broken_csv_is_read_as_plain_text() -> None:
    """A quote that is never closed would make one cell of all the rest, so lines are shown."""
    document = extract("a.csv", b'Part,Price\n"Valve,4\n')
    assert (document.format, document.strategy) == ("text", "plain")
    assert list(document.segments) == [Segment('Part,Price\n"Valve,4\n', "line", 1)]


def test_a_row_of_a_spreadsheet_has_its_number_and_its_sheet() -> None:
    """Rows count from 1 as the sheet shows them, wherever its cells begin, in every sheet anew."""
    data = xlsx(
        Stock={"B2": "Part", "C2": "Price", "B4": "Valve", "C4": 4.0, "B5": "Rod", "C5": 0.5},
        Empty={},
        Dates={"A1": datetime.datetime(2024, 5, 1), "B1": True},  # noqa: DTZ001
    )
    expected: Places = [
        ("Part | Price", 2, "Stock"),
        ("Part: Valve; Price: 4", 4, "Stock"),
        ("Part: Rod; Price: 0.5", 5, "Stock"),
        ("2024-05-01 | TRUE", 1, "Dates"),
    ]
    assert places("a.xlsx", data) == expected
    assert places("a.xls", data) == expected  # The content decides.
    assert {segment.unit for segment in segments("a.xlsx", data)} == {"row"}


def test_a_row_of_an_opendocument_spreadsheet_has_its_number_and_its_sheet() -> None:
    """Repeated rows count as often as they are repeated."""
    blank = "<table:table-row table:number-rows-repeated='2'><table:table-cell/></table:table-row>"
    data = ods(ods_row("Part", "Price"), blank, ods_row("Valve", "4"))
    assert places("a.ods", data) == [
        ("Part | Price", 1, "Stock"),
        ("Part: Valve; Price: 4", 4, "Stock"),
    ]


def test_a_sheet_that_spans_billions_of_cells_is_refused_before_it_is_read() -> None:
    """Two cells far apart take a few bytes in the file and more memory than there is."""
    assert failure("a.xlsx", xlsx(Far={"A1": 1, "XFD1048576": 2})).code == "too_large"
    repeated = "table:number-rows-repeated='1000000'"
    wide = ods_row(*"abcdefghijk", attributes=repeated)
    assert failure("a.ods", ods(wide)).code == "too_large"


def test_the_cells_of_all_sheets_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """What many sheets take together is limited, up to the last filled cell of each."""
    monkeypatch.setattr(archives, "MOST_CELLS", 8)
    fits = {"A1": 1, "B2": 2}
    assert len(segments("a.xlsx", xlsx(One=fits, Two=fits))) == 4
    assert failure("a.xlsx", xlsx(One=fits, Two=fits, Three=fits)).code == "too_large"
    assert len(segments("a.ods", ods(ods_row("a", "b"), ods_row("c", "d", "e", "f")))) == 2
    assert failure("a.ods", ods(ods_row("a"), ods_row(*"bcdef"))).code == "too_large"


def test_a_cell_that_is_formatted_only_takes_no_room() -> None:
    """A sheet whose last column has a colour is as small as its text."""
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "text"
    workbook.active["XFD1048576"].font = Font(bold=True)
    assert text("a.xlsx", saved(workbook.save)) == "text\n"


@pytest.mark.parametrize("before", ["garbage", "<other/>", "<!DOCTYPE a [<!ENTITY b 'c'>]>"])
def test_a_sheet_cannot_be_hidden_from_what_measures_it(before: str) -> None:
    """The library skips what stands before a sheet, so such a file is refused."""
    data = xlsx(Stock={"A1": 1})
    parts = {}
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        for name in old.namelist():
            content = old.read(name).decode()
            parts[name] = before + content if name.endswith("sheet1.xml") else content
    assert failure("a.xlsx", archive(parts)).code == "invalid"


@pytest.mark.parametrize("name", ["a.xlsx", "a.ods", "a.docx", "a.pptx"])
def test_an_office_file_that_unpacks_to_too_much_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in an archive is measured before any of it is given to a library."""
    monkeypatch.setattr(archives, "LARGEST_UNPACKED", 100_000)
    with zipfile.ZipFile(file := io.BytesIO(SAMPLES[name]), "a", zipfile.ZIP_DEFLATED) as added:
        added.writestr("bomb.bin", bytes(200_000))
    assert failure(name, file.getvalue()).code == "too_large"


def test_a_spreadsheet_cannot_lie_about_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that come out of an archive count, not those that it declares."""
    monkeypatch.setattr(archives, "LARGEST_UNPACKED", 100_000)
    size = 200_000
    with zipfile.ZipFile(file := io.BytesIO(SAMPLES["a.xlsx"]), "a", zipfile.ZIP_DEFLATED) as added:
        added.writestr("bomb.bin", bytes(size))
    lying = file.getvalue().replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != file.getvalue()
    assert failure("a.xlsx", lying).code == "too_large"


def test_the_xml_of_a_document_is_limited_more_tightly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of XML take many times its size, pictures do not."""
    monkeypatch.setattr(archives, "LARGEST_TREES", 1000)
    assert failure("a.docx", SAMPLES["a.docx"]).code == "too_large"
    assert failure("a.pptx", SAMPLES["a.pptx"]).code == "too_large"


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.docx", "a.pptx"])
def test_an_office_file_with_a_password_is_encrypted(name: str) -> None:
    """Office wraps what is protected in an older container, which tells it."""
    container = archives.COMPOUND_FILE + bytes(504) + "EncryptedPackage".encode("utf-16-le")
    assert failure(name, container).code == "encrypted"


def test_an_opendocument_spreadsheet_with_a_password_is_encrypted() -> None:
    """Its manifest says of each part how it is encrypted."""
    manifest = "<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>"
    data = archive({"META-INF/manifest.xml": manifest, "content.xml": "scrambled"})
    assert failure("a.ods", data).code == "encrypted"


def test_a_word_document_is_markdown_in_its_own_order() -> None:
    """Headings, paragraphs, lists and tables stand in the text as in the document."""
    assert [segment.text for segment in segments("a.docx", word())] == [
        "# Engines\n\n",
        "All about engines.\n\n",
        "## Parts\n\n",
        "- piston\n- valve\n1. turn it\n\n",
        "| Part | Price |\n| --- | --- |\n| A\\|B | 4 |\n\n",
        "The end.\n\n",
    ]
    assert {segment[1:] for segment in segments("a.docx", word())} == {(None, None, None)}


def test_a_word_document_is_titled_by_its_properties_or_its_first_heading() -> None:
    """A title that was given counts, one that the program gives to all does not."""
    assert extract("a.docx", word()).title == "Engines"
    document = docx.Document(io.BytesIO(word()))
    document.core_properties.title = "Of engines"
    assert extract("a.docx", saved(document.save)).title == "Of engines"


def test_text_in_controls_insertions_boxes_and_links_of_word_is_read_once() -> None:
    """Nothing that a reader of the document sees is lost, and what was deleted is not seen."""
    run = "<w:r><w:t>{}</w:t></w:r>"
    deleted = "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
    box = "<w:pict><w:txbxContent><w:p>{}</w:p><w:p>{}</w:p></w:txbxContent></w:pict>"
    body = (
        f"<w:sdt><w:sdtContent><w:p>{run.format('control')}</w:p></w:sdtContent></w:sdt>"
        f"<w:p><w:ins>{run.format('inserted')}</w:ins>{deleted}"
        f"<w:hyperlink>{run.format(' link')}</w:hyperlink>"
        f"<w:r>{box.format(run.format('first'), run.format('second'))}</w:r></w:p>"
    )
    document = docx.Document()
    for element in parse_xml(f'<w:body xmlns:w="{W}">{body}</w:body>'):
        document.element.body.insert_element_before(element, "w:sectPr")
    found = text("a.docx", saved(document.save))
    assert found == "control\n\ninserted link\n\nfirst\n\nsecond\n\n"


def test_a_table_in_a_cell_of_word_is_part_of_the_cell() -> None:
    """No text of a table within a table is lost or doubled."""
    document = docx.Document()
    cell = document.add_table(1, 1).cell(0, 0)
    cell.text = "outer"
    cell.add_table(1, 2).cell(0, 1).text = "inner"
    assert text("a.docx", saved(document.save)) == "| outer inner |\n| --- |\n\n"


def test_a_slide_has_its_number_its_table_and_its_notes() -> None:
    """A blank slide gives no segment and does not shift the numbers of the others."""
    assert segments("a.pptx", presentation()) == [
        Segment("# Engines\n\nThey turn.\n\nSpeak slowly.\n\n", "slide", 1),
        Segment(
            "# Prices\n\n| Part | Price |\n| --- | --- |\n| Valve | 4 |\n\nIn a group.\n\n",
            "slide",
            3,
        ),
    ]


def test_a_presentation_is_titled_by_its_properties_or_its_first_slide() -> None:
    """A title that was given counts, one that the program gives to all does not."""
    assert extract("a.pptx", presentation()).title == "Engines"
    shown = pptx.Presentation(io.BytesIO(presentation()))
    shown.core_properties.title = "Of engines"
    assert extract("a.pptx", saved(shown.save)).title == "Of engines"


def test_a_page_that_is_blank_keeps_the_numbers_of_the_others() -> None:
    """The pages of a PDF are counted as a reader of the file counts them."""
    assert segments("a.pdf", pdf("one\nmore", "", "three")) == [
        Segment("one\nmore\n\n", "page", 1),
        Segment("three\n\n", "page", 3),
    ]
    assert extract("a.pdf", pdf("one", title="Engines")).title == "Engines"
    assert extract("a.pdf", pdf("one")).title is None


def test_a_word_that_is_cut_at_the_end_of_a_line_of_a_pdf_is_whole() -> None:
    """Words are found though they were divided to fit a line."""
    assert text("a.pdf", pdf("The exam-\nple works")) == "The example works\n\n"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (pdf("secret", password="open"), "encrypted"),
        (pdf("text")[:200], "invalid"),
        (b"%PDF-1.7 nonsense", "invalid"),
        (b"This is no PDF.", "invalid"),
        (b"", "no_text"),
        (pdf("", ""), "no_text"),
    ],
)
def test_a_pdf_that_cannot_be_read_says_why_at_once(data: bytes, code: str) -> None:
    """Encrypted, broken and empty PDFs are left alone until they change."""
    with pytest.raises(Unusable) as caught:
        extract("a.pdf", data)
    assert caught.value.code == code


@pytest.fixture
def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indexes of the pages of PDFs as they are read, and -1 when a document is closed."""
    read: list[int] = []

    class Document(pypdfium2.PdfDocument):
        def __getitem__(self, index: int) -> pypdfium2.PdfPage:
            read.append(index)
            return super().__getitem__(index)

        def close(self) -> None:
            read.append(-1)
            super().close()

    monkeypatch.setattr(pypdfium2, "PdfDocument", Document)
    return read


def test_a_page_is_read_when_it_is_asked_for(pages_read: list[int]) -> None:
    """A long PDF is never held in memory as a whole, and it is closed at its end."""
    stream = extract("a.pdf", pdf("one", "two", "three")).segments
    assert pages_read == [0]
    assert next(stream).number == 1
    assert pages_read == [0]
    assert next(stream).number == 2
    assert pages_read == [0, 1]
    assert [segment.number for segment in stream] == [3]
    assert pages_read == [0, 1, 2, -1]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_file_is_closed_when_its_segments_are(count: int, pages_read: list[int]) -> None:
    """Whoever stops reading, or never begins, keeps nothing open."""
    stream = extract("a.pdf", pdf("one", "two", "three")).segments
    for _ in range(count):
        next(stream)
    stream.close()
    assert pages_read == [*range(max(count, 1)), -1]


def test_a_page_that_cannot_be_read_fails_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was read before is delivered, and the failure is one of the document."""
    whole = pypdfium2.PdfDocument.__getitem__

    def get(document: pypdfium2.PdfDocument, index: int) -> pypdfium2.PdfPage:
        if index == 1:
            raise pypdfium2.PdfiumError("Failed to load page.")
        return whole(document, index)

    monkeypatch.setattr(pypdfium2.PdfDocument, "__getitem__", get)
    stream = extract("a.pdf", pdf("one", "two")).segments
    assert next(stream).number == 1
    with pytest.raises(Unusable, match="Failed to load page") as caught:
        next(stream)
    assert caught.value.code == "invalid"


@pytest.mark.parametrize("passing", [MemoryError, KeyboardInterrupt])
def test_what_says_nothing_about_a_file_is_no_failure_of_it(
    passing: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without memory and a person who stops the run do not mark a document."""

    def stop(*_: object) -> None:
        raise passing

    monkeypatch.setattr(pypdfium2.PdfDocument, "__getitem__", stop)
    with pytest.raises(passing):
        extract("a.pdf", pdf("one"))


def test_a_panic_of_a_library_is_a_failure_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries written in Rust panic past every ``except Exception``."""

    class PanicException(BaseException):
        pass

    def panic(*_: object) -> Iterable[object]:
        raise PanicException("index out of bounds")

    monkeypatch.setattr("python_calamine.CalamineWorkbook", type("W", (), {"from_filelike": panic}))
    assert failure("a.xlsx", SAMPLES["a.xlsx"]).code == "invalid"


def test_a_page_of_html_is_what_a_reader_sees_of_it() -> None:
    """Text, headings, lists, tables and links stay; machinery and what is hidden goes."""
    data = b"""<html><head><title> Of
        engines </title><style>p {}</style><script>run()</script><body><!-- note -->
        <h1>Engines</h1><p>They <b>turn</b> snake_case <img src=x alt=picture>
        <p hidden>secret 1</p><p style="color: red; DISPLAY : none">secret 2</p>
        <p style="visibility:/**/hidden">secret 3</p><div aria-hidden=true>secret 4</div>
        <ul><li>piston<li>valve</ul><table><tr><th>Part<th>Price<tr><td>Valve<td>4</table>
        <p><a href="https://example.org/">link</a> <a href="java&#10;script:x()">live</a>
        <a href=" data:text/html,x">data</a></p>"""
    document = extract("a.htm", data)
    assert (document.format, document.strategy, document.title) == (
        "html",
        "markdown",
        "Of engines",
    )
    assert list(document.segments) == [
        Segment(
            "# Engines\n\nThey **turn** snake_case\n\n- piston\n- valve\n\n"
            "| Part | Price |\n| --- | --- |\n| Valve | 4 |\n\n"
            "[link](https://example.org/) live\ndata\n"
        )
    ]


def test_a_table_that_arranges_a_mail_is_dissolved() -> None:
    """Only tables of data are tables in Markdown."""
    inner = "<table><tr><td>Part</td><td>Price</td></tr><tr><td>Valve</td><td>4</td></tr></table>"
    layout = f"<table><tr><td>Hello</td><td>{inner}</td></tr></table>"
    said = "<table role=presentation><tr><td>left</td><td>right</td></tr></table>"
    assert html_to_markdown(layout + said + "<table><tr><td>alone</td></tr></table>") == (
        "Hello\n\n| Part | Price |\n| --- | --- |\n| Valve | 4 |\n\nleft\n\nright\n\nalone"
    )


def test_markdown_of_html_without_anything_to_see_is_empty() -> None:
    """A mail of nothing but a hidden text and a picture has no text."""
    assert html_to_markdown("<p hidden>x</p><img src=y>") == ""
    assert failure("a.html", b"<p hidden>x</p>").code == "no_text"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("1 < 2 & 3 &lt; 4 <b>bold</b>", "1 < 2 & 3 < 4 **bold**"),
        ("seen<!-- a --> on<!--> and<!-- never ends <p>", "seen on and"),
        ("<!--[if mso]>Word<![endif]--><!--[if !mso]><!-->others<!--<![endif]-->", "others"),
        ("<script>if (a</b) '<p>'</script>seen<style>p {}", "seen"),
        ("<P HIDDEN>secret</P><p title='a>b' hidden=''>secret</p><p title=it's>seen</p>", "seen"),
        ("<a href='https://example.org/?a=\"1\"&amp;b'>x</a>", '[x](https://example.org/?a="1"&b)'),
        ("<a <a <a ", "<a <a <a"),
        ("a" + "&#32;" * 500 + "b" + " " * 500 + "c", "a b c"),
    ],
)
def test_markup_that_is_broken_is_read_as_browsers_read_it(html: str, markdown: str) -> None:
    """Comments, scripts and quotation marks end where they end for whoever sees the page."""
    assert html_to_markdown(html) == markdown


@pytest.mark.parametrize("html", ["<?xml version='1.0'?><p>text</p>", "text.txt", "http://text"])
def test_html_that_looks_like_something_else_is_read_without_a_warning(html: str) -> None:
    """Warnings of the parser are errors in tests; there is none."""
    assert "text" in html_to_markdown(html)


def test_html_in_an_encoding_that_it_declares_is_read_in_it() -> None:
    """Pages of before UTF-8 say how they are written, and names of codecs that are none do not."""
    page = '<meta charset="{}"><p>' + " ".join(["Привет"] * 9)
    assert text("a.html", page.format("koi8-r").encode("koi8-r")).startswith("Привет Привет ")
    assert failure("a.html", page.format("unicode_escape").encode("koi8-r")).code == "not_text"


@pytest.mark.parametrize("tag", ["div", "b", "p", "td", "li", "table", "blockquote"])
def test_html_that_is_nested_too_deep_for_markdown_is_read_as_text(tag: str) -> None:
    """A page whose elements never end still has its text, whatever the depth."""
    found = html_to_markdown(f"<{tag}>word " * 3000)
    assert found.split().count("word") == 3000


def test_html_of_too_many_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree of a page takes many times its size."""
    monkeypatch.setattr(html_pages, "_MOST_TAGS", 10)
    assert failure("a.html", b"<p>" * 11).code == "too_large"


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("a.pdf", "pypdfium2", "pdf"),
        ("a.xlsx", "python_calamine", "office"),
        ("a.ods", "python_calamine", "office"),
        ("a.docx", "docx", "office"),
        ("a.pptx", "pptx", "office"),
        ("a.html", "markdownify", "html"),
    ],
)
def test_a_library_that_is_not_installed_is_named(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is told at once what to install for files of this format."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unusable, match=rf"datasette-concept-recall\[{extra}\]") as caught:
        extract(name, SAMPLES[name])
    assert (caught.value.code, caught.value.extra) == ("missing_extra", extra)


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.ods", "a.docx", "a.pptx"])
@pytest.mark.parametrize("data", [b"text", b"PK\3\4 nothing", archive({"a.txt": "text"})])
def test_a_file_that_is_not_what_its_name_says_is_invalid(name: str, data: bytes) -> None:
    """Text, a broken archive or another archive is no office file."""
    assert failure(name, data).code == "invalid"


suffixes = st.sampled_from(["", *(f".{suffix}" for suffix in FORMATS)])
beginnings = st.sampled_from([b"", b"%PDF-1.7\n", b"PK\3\4", b"\xff\xfe", archives.COMPOUND_FILE])


def read(name: str, data: bytes) -> Iterator[Segment]:
    """The segments of a file up to its failure, if there is one."""
    try:
        yield from extract(name, data).segments
    except DocumentFailure:
        return


@given(
    suffix=suffixes, beginning=beginnings, data=st.binary(max_size=300) | st.text().map(str.encode)
)
@example(suffix=".html", beginning=b"", data=b"<![x[<!a [<a>]")
@settings(max_examples=250, deadline=None)
def test_any_bytes_under_any_name_are_text_or_a_failure(
    suffix: str, beginning: bytes, data: bytes
) -> None:
    """Nothing but failures of documents escapes, and no text holds zeros, surrogates or ``\\r``."""
    for segment in read(f"a{suffix}", beginning + data):
        assert segment.text.strip()
        assert segment.text.endswith("\n")
        assert not set(segment.text) & {"\0", "\r"}
        assert segment.text.encode()


@given(
    name=st.sampled_from(["a.xlsx", "a.ods", "a.docx", "a.pptx", "a.pdf", "a.html"]),
    place=st.floats(0, 1, exclude_max=True),
    junk=st.binary(max_size=8),
    cut=st.integers(0, 8),
)
@settings(max_examples=150, deadline=None)
def test_a_damaged_file_is_text_or_a_failure(
    name: str, place: float, junk: bytes, cut: int
) -> None:
    """Real files with some bytes put in another's place never make anything else escape."""
    data = SAMPLES[name]
    at = int(place * len(data))
    for segment in read(name, data[:at] + junk + data[at + cut :]):
        assert segment.text.strip()


HTML_PIECES = (
    "<p> </p> <div> </div> <table> <tr> <td> </table> <ul> <li> </ul> <pre> </pre> <b> word &amp; "
    "<a/href='javascript:x'> </a> <!-- --> <![CDATA[ <?x <h1> <br> <select> <dl> <dt> <dd>"
)


@given(pieces=st.lists(st.sampled_from(HTML_PIECES.split()), max_size=40))
@settings(max_examples=150, deadline=None)
def test_any_html_becomes_markdown_without_links_that_run(pieces: list[str]) -> None:
    """Elements may end anywhere or never."""
    assert "](javascript:" not in html_to_markdown("".join(pieces))


def test_a_document_of_millions_of_empty_elements_is_refused() -> None:
    """A few kilobytes that unpack to more elements than anybody wrote are not made objects of."""
    packed = io.BytesIO()
    docx.Document().save(packed)
    bomb = io.BytesIO()
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "word/document.xml":
                data = data.replace(b"<w:body>", b"<w:body>" + b"<w:p/>" * 1_000_001)
            new.writestr(name, data)
    with pytest.raises(Unusable) as failure:
        extract("a.docx", bomb.getvalue())
    assert failure.value.code == "too_large"
