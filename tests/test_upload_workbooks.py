"""Excel workbooks as people upload them: cells as they are seen, one of several sheets, and hostile files."""

import io
import zipfile
from datetime import date, datetime, time

import openpyxl
import pytest

from app.errors import Invalid, Refusal
from app.uploads import MAX_UPLOADED_CELL_CHARACTERS, ReadOptions, read_table
from tests.workbooks import workbook_bytes

MINIMAL_SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData>'
CELL = '<row r="{row}"><c r="{column}{row}" t="inlineStr"><is><t>{text}</t></is></c></row>'


def read(content, *, sheet=None, max_mb=10):
    upload = read_table(io.BytesIO(content), "items.xlsx", max_mb=max_mb, read_options=ReadOptions(None, None, sheet))
    return upload, list(upload.rows)


def refusal(content, **how):
    with pytest.raises(Refusal) as problem:
        read(content, **how)
    return problem.value


def with_part(content, name, data):
    """Return the workbook with other content in one of its parts."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for part in source.namelist():
            target.writestr(part, data if part == name else source.read(part))
    return packed.getvalue()


def with_rows(*cells):
    """Return a workbook with a sheet of these cells: column, row and text."""
    rows = "".join(CELL.format(column=column, row=row, text=text) for column, row, text in cells)
    sheet = MINIMAL_SHEET.format(rows) + "</worksheet>"
    return with_part(workbook_bytes({"Items": [["id"]]}), "xl/worksheets/sheet1.xml", sheet)


def test_cells_are_the_texts_that_a_person_sees():
    values = {
        "text": "Grüße,\nalle",
        "whole": 1.0,
        "fraction": 0.1 + 0.2,
        "large": 12345678901,
        "truth": True,
        "day": date(2026, 1, 31),
        "moment": datetime(2026, 1, 31, 14, 5),  # noqa: DTZ001 - workbooks know no time zones
        "clock": time(9, 30),
        "empty": None,
        "last": "x",
    }
    upload, rows = read(workbook_bytes({"Items": [list(values), list(values.values())]}))
    assert upload.format == "xlsx"
    assert rows[0].values == {
        "text": "Grüße,\nalle",
        "whole": "1",
        "fraction": "0.3",
        "large": "12345678901",
        "truth": "TRUE",
        "day": "2026-01-31",
        "moment": "2026-01-31 14:05:00",
        "clock": "09:30:00",
        "empty": "",
        "last": "x",
    }


def test_ids_keep_the_zeros_that_their_number_format_shows():
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(["id", "text"])
    sheet.append([7, "a"])
    sheet["A2"].number_format = "000"
    saved = io.BytesIO()
    book.save(saved)
    assert read(saved.getvalue())[1][0].values == {"id": "007", "text": "a"}


def test_lines_are_row_numbers_and_empty_rows_and_columns_are_left_out():
    upload, rows = read(
        workbook_bytes(
            {"Items": [[None], ["id", "text", None], [1, "a", ""], [None, None], [2, "b"], [None], ["", " "]]}
        )
    )
    assert upload.columns == ("id", "text")
    assert [(row.line, row.values) for row in rows] == [(3, {"id": "1", "text": "a"}), (5, {"id": "2", "text": "b"})]
    assert (upload.row_count, len(rows)) == (2, 2)


def test_the_first_sheet_with_content_is_read_or_the_one_that_is_named():
    content = workbook_bytes({"Notes": [], "Train": [["id"], [1]], "Test": [["id"], [2], [3]]})
    upload, rows = read(content)
    assert (upload.sheet, upload.sheets, len(rows)) == ("Train", ("Notes", "Train", "Test"), 1)
    assert "Sheet “Train” was read, one of 3." in upload.notes
    assert len(read(content, sheet="Test")[1]) == 2
    unknown = refusal(content, sheet="Dev")
    assert (unknown.code, unknown.details["sheets"]) == ("sheet_unknown", ["Notes", "Train", "Test"])
    assert refusal(content, sheet="Notes").code == "file_empty"


def test_a_wrong_dimension_does_not_cut_the_sheet():
    content = workbook_bytes({"Items": [["id", "text"], [1, "a"]]})
    sheet = zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml").replace(b'"A1:B2"', b'"A1:A1"')
    assert read(with_part(content, "xl/worksheets/sheet1.xml", sheet))[1][0].values == {"id": "1", "text": "a"}


@pytest.mark.parametrize(
    ("rows", "code", "line"),
    [
        ([["My table"], ["id", "text"], [1, "a"]], "ragged_row", 2),
        ([["id", "id"], [1, "a"]], "column_twice", 1),
        ([["id", None, "text"], [1, 2, "a"]], "column_unnamed", 1),
        ([[f"c{k}" for k in range(501)], [1]], "too_many_columns", 1),
        ([["id"], [None]], None, None),
        ([], "file_empty", None),
    ],
)
def test_mistakes_are_refused_with_the_number_of_the_row(rows, code, line):
    content = workbook_bytes({"Items": rows})
    if code is None:
        assert read(content)[1] == []
        return
    problem = refusal(content)
    assert (problem.code, problem.details.get("line")) == (code, line)


def test_a_workbook_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked():
    content = workbook_bytes({"Items": [["id"]]})
    assert refusal(with_part(content, "xl/styles.xml", b" " * 3_000_000), max_mb=2).code == "file_too_large"
    assert refusal(with_part(content, "xl/styles.xml", b" " * 9_000_000)).code == "zip_too_dense"


def test_a_sheet_of_gaps_is_refused():
    assert refusal(with_rows(("A", 1, "id"), ("A", 3_000_000, "x"))).code == "workbook_too_large"
    wide = [("ZZ", row, "x") for row in range(2, 5)]
    assert refusal(with_rows(("A", 1, "id"), *wide)).code == "ragged_row"


def test_a_cell_that_is_too_long_is_refused_as_in_other_files():
    rows = ("A", 1, "id"), ("A", 2, "a" * MAX_UPLOADED_CELL_CHARACTERS)
    assert read(with_rows(*rows))[1]
    problem = refusal(with_rows(*rows, ("A", 3, "a" * (MAX_UPLOADED_CELL_CHARACTERS + 1))))
    assert (problem.code, problem.details["line"]) == ("cell_too_long", 3)


ENTITIES = (
    '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


def test_damaged_and_hostile_workbooks_are_refused():
    content = workbook_bytes({"Items": [["id"], ["a"]]})
    sheet = "xl/worksheets/sheet1.xml"
    for hostile in (
        with_part(content, "xl/workbook.xml", "no XML"),
        with_part(content, "xl/workbook.xml", ""),
        with_part(content, "[Content_Types].xml", "<a/>"),
        with_part(content, sheet, "<worksheet><sheetData><row"),
        with_part(content, sheet, ENTITIES + MINIMAL_SHEET.format(CELL.format(column="A", row=1, text="&i;"))),
        with_rows(("A", "x", "id")),
    ):
        problem = refusal(hostile)
        assert problem.code == "workbook_unreadable", problem.message
        assert isinstance(problem, Invalid)
        assert "damaged or was cut off" in problem.message
    assert refusal(content[:-200]).code == "zip_unreadable"


def test_a_sheet_that_people_see_is_read_before_hidden_ones():
    book = openpyxl.Workbook()
    for title, state, text in (("Lists", "hidden", "x"), ("Codes", "veryHidden", "y"), ("Data", "visible", "seen")):
        sheet = book.create_sheet(title)
        sheet.sheet_state = state
        sheet.append(["id", "text"])
        sheet.append(["a", text])
    saved = io.BytesIO()
    book.save(saved)
    upload, rows = read(saved.getvalue())
    assert (upload.sheet, rows[0].values["text"]) == ("Data", "seen")
    assert read(saved.getvalue(), sheet="Lists")[1][0].values["text"] == "x"


def formula_cells(*cells):
    """Return a workbook with a header in A1 and B1, and these cells in XML in its second row."""
    header = CELL.format(column="A", row=1, text="id").replace("</row>", "")
    header += '<c r="B1" t="inlineStr"><is><t>text</t></is></c></row>'
    row = '<row r="2"><c r="A2" t="inlineStr"><is><t>a</t></is></c>' + "".join(cells) + "</row>"
    sheet = MINIMAL_SHEET.format(header + row) + "</worksheet>"
    return with_part(workbook_bytes({"Items": [["id"]]}), "xl/worksheets/sheet1.xml", sheet)


@pytest.mark.parametrize(
    "cell",
    [
        '<c r="B2"><f>"x"&amp;"y"</f><v></v></c>',
        '<c r="B2"><f>1+1</f></c>',
        '<c r="B2" t="n"><f t="shared" ref="B2:B3" si="0">1+1</f><v/></c>',
    ],
)
def test_a_formula_without_a_stored_result_is_refused_since_its_cell_would_be_empty(cell):
    problem = refusal(formula_cells(cell))
    assert (problem.code, problem.details) == ("formula_without_result", {"line": 2, "column": "B"})


def test_a_formula_counts_by_its_stored_result_which_may_be_an_empty_text():
    assert read(formula_cells('<c r="B2"><f>1+1</f><v>2</v></c>'))[1][0].values["text"] == "2"
    assert read(formula_cells('<c r="B2" t="str"><f>""</f><v></v></c>'))[1][0].values["text"] == ""


def test_line_ends_that_excel_writes_as_codes_are_line_ends():
    codes = {"one_x000D_\ntwo": "one\ntwo", "one_x000d_two_x000A_": "one\ntwo\n", "a_x0009_b _x0041_": "a\tb _x0041_"}
    for written, text in codes.items():
        content = with_rows(("A", 1, "id"), ("A", 2, written))
        assert read(content)[1][0].values["id"] == text


def test_merged_cells_are_named_since_only_their_first_cell_has_the_text():
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in (["id", "text", "source"], ["a", "x", "both"], ["b", "y", None]):
        sheet.append(row)
    note = "This workbook has merged cells. Only the first cell of each has its text, and the others are empty."
    saved = io.BytesIO()
    book.save(saved)
    assert note not in read(saved.getvalue())[0].notes
    sheet.merge_cells("C2:C3")
    merged = io.BytesIO()
    book.save(merged)
    upload, rows = read(merged.getvalue())
    assert note in upload.notes
    assert [row.values["source"] for row in rows] == ["both", ""]


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.5, "0%", "50%"),
        (0.07, "0.00%", "7%"),
        (1, "0%", "100%"),
        (0.125, "0.0%;[Red]-0.0%", "12.5%"),
        (0.5, '0.0" % of all"', "0.5"),
        (0.5, "0.0\\%", "0.5"),
    ],
)
def test_a_number_that_people_see_as_a_percentage_is_one(value, number_format, text):
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(["id", "share"])
    sheet.append(["a", value])
    sheet["B2"].number_format = number_format
    saved = io.BytesIO()
    book.save(saved)
    assert read(saved.getvalue())[1][0].values["share"] == text
