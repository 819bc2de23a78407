"""Excel workbooks (.xlsx): the rows of one sheet, with each cell as the text that a person sees.

openpyxl reads the sheet row by row. The sizes in the zip's directory are checked before that: zipfile unpacks no part
beyond the size that the directory gives. Lines of the table are the sheet's row numbers.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Any, BinaryIO, NoReturn, TypeVar

from app.errors import (
    Invalid,
    TooLarge,
    join_names,
    pluralize,
    shorten_echo,
    shortened_names_that_message_shows,
)
from app.uploads.containers import (
    MB,
    ZIP_ENCRYPTED_FLAG,
    ZIP_SIGNATURE,
    peek_first_bytes,
    refuse_table_zip_with_too_many_files,
    refuse_too_dense_archive,
)
from app.uploads.delimited import (
    DelimitedRow,
    column_names_by_position_and_notes,
    iterate_uploaded_rows,
    scan_all_rows_up_to_refusal,
)
from app.uploads.rows import READ_AS_LINES, ReadOptions, UploadedTable

Result = TypeVar("Result")

WORKBOOK_PART = "xl/workbook.xml"
SHEETS_FOLDER = "xl/worksheets/"
LONGEST_TAG = 50  # bytes
FORMULA_TAG_PATTERN = re.compile(rb"<(\w{1,30}:)?f[\s/>]")
MERGED_CELLS_TAG_PATTERN = re.compile(rb"<(\w{1,30}:)?mergeCell[\s/>]")
BYTES_PER_READ = 1 << 20
TEXT_RESULT_TYPE = "str"  # how openpyxl and the file call the result of a formula that is a text
MAX_SHEETS = 200
MAX_SHEET_ROWS = 1_048_576  # of Excel
MAX_SHEET_CELLS = 50_000_000  # counting the gaps in rows, which take time though they take no room in the file
SHOWN_DIGITS = 15  # of a number in Excel
LITERAL_OF_NUMBER_FORMAT = re.compile(r'"[^"]*"|\\.')
# How workbooks write characters that XML does not keep.
CODE_OF_LINE_END_OR_TAB = re.compile(r"_x000D_\n?|_x000A_|_x0009_", re.IGNORECASE)


def is_excel_workbook_refusing_huge_zip(file: BinaryIO) -> bool:
    """Return whether a file is an Excel workbook; leaves it at its beginning."""
    if not peek_first_bytes(file).startswith(ZIP_SIGNATURE):
        return False
    refuse_table_zip_with_too_many_files(file)
    try:
        return WORKBOOK_PART in zipfile.ZipFile(file).namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
    finally:
        file.seek(0)


def read_workbook_table(file: BinaryIO, *, max_mb: int, read_options: ReadOptions) -> UploadedTable:
    """Return the table in a sheet of a workbook.

    Args:
        file: An open workbook; the caller keeps it open until all rows are read.
        max_mb: Limit of the unpacked workbook, in MB.
        read_options: Which sheet to read, and whether its only column has a header.

    Raises:
        TooLarge: `file_too_large`, `zip_too_dense`, `workbook_too_large`.
        Invalid: `file_empty`, `workbook_unreadable`, `zip_encrypted`, `sheet_unknown`, `formula_without_result`,
            `ragged_row`, `column_unnamed`, `column_twice`, `too_many_columns`, `read_as_unsuited`; while rows are read
            `cell_too_long`.

    """
    import openpyxl  # slow to import, and few uploads are workbooks

    refuse_unsafe_workbook(file, max_mb)
    sheet = read_options.sheet
    workbook = call_openpyxl_or_refuse(
        lambda: openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    )
    worksheets = {worksheet.title: worksheet for worksheet in workbook.worksheets}
    if len(worksheets) > MAX_SHEETS:
        message = (
            f"This workbook has more than {MAX_SHEETS} sheets. Copy the table into a new one. Nothing was imported."
        )
        raise TooLarge(message, code="workbook_too_large")
    if sheet is not None and sheet not in worksheets:
        raise_unknown_sheet_refusal(sheet, list(worksheets))
    candidates = [sheet] if sheet is not None else titles_with_visible_sheets_first(worksheets)
    title = next((name for name in candidates if has_sheet_content(worksheets[name])), None)
    if title is None:
        raise Invalid("This file is empty. Nothing was imported.", code="file_empty")
    refuse_formula_without_result(file, worksheets[title])
    scan = scan_all_rows_up_to_refusal(iterate_rows_of_sheet(worksheets[title]), ",")
    if scan.refusal:
        raise scan.refusal
    has_header = read_options.has_header_in(scan.header.cells)
    if has_header and read_options.read_as == READ_AS_LINES:
        message = "This workbook has several columns, so it is not one text per line. Read it as a table with a header."
        raise Invalid(f"{message} Nothing was imported.", code="read_as_unsuited")
    columns, notes = column_names_by_position_and_notes(scan, read_options)
    if len(worksheets) > 1:
        notes.insert(0, f"Sheet “{shorten_echo(title)}” was read, one of {len(worksheets)}.")
    notes += iterate_notes_on_cells(file, scan.empty_row_count)
    return UploadedTable(
        "xlsx",
        tuple(columns.values()),
        iterate_uploaded_rows(iterate_rows_of_sheet(worksheets[title]), columns, has_header=has_header),
        row_count=scan.row_count + (not has_header),
        line_count=scan.header.line + scan.row_count + scan.empty_row_count,
        notes=tuple(notes),
        sheet=title,
        sheets=tuple(worksheets),
        has_header=has_header,
    )


def iterate_notes_on_cells(file: BinaryIO, empty_row_count: int) -> Iterator[str]:
    """Yield a sentence about merged cells, and one about empty rows, if there are any."""
    if has_any_sheet_tag(file, MERGED_CELLS_TAG_PATTERN):
        yield "This workbook has merged cells. Only the first cell of each has its text, and the others are empty."
    if empty_row_count:
        yield f"Skipped {pluralize(empty_row_count, 'row')} without any content."


def refuse_unsafe_workbook(file: BinaryIO, max_mb: int) -> None:
    """Refuse a workbook that is encrypted, damaged or too large, by its zip's directory and before it is unpacked.

    Raises `TooLarge` (`file_too_large`, `zip_too_dense`) and `Invalid` (`zip_encrypted`, `workbook_unreadable`).
    """
    parts = zipfile.ZipFile(file).infolist()
    if any(part.flag_bits & ZIP_ENCRYPTED_FLAG for part in parts):
        raise Invalid("This workbook has a password. Save it without one. Nothing was imported.", code="zip_encrypted")
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
        raise_damaged_workbook_refusal()
    unpacked_bytes = sum(part.file_size for part in parts)
    if unpacked_bytes > max_mb * MB:
        raise TooLarge(
            f"Unpacked, this workbook is larger than the maximum of {max_mb} MB. Nothing was imported. "
            "Save it as CSV UTF-8, split it, or raise EASEL_MAX_UPLOAD_MB.",
            code="file_too_large",
        )
    refuse_too_dense_archive(unpacked_bytes, sum(part.compress_size for part in parts), "This table", "zip_too_dense")


def call_openpyxl_or_refuse(function: Callable[[], Result]) -> Result:
    """Return the result of a call that reads a workbook. Raises `Invalid` (`workbook_unreadable`) if it fails."""
    try:
        return function()
    except Exception:  # noqa: BLE001 - a damaged workbook makes openpyxl raise errors of any kind
        raise_damaged_workbook_refusal()


def raise_damaged_workbook_refusal() -> NoReturn:
    raise Invalid(
        "This Excel workbook is damaged or was cut off. Save it again, or save it as CSV UTF-8. Nothing was imported.",
        code="workbook_unreadable",
    ) from None


def raise_unknown_sheet_refusal(sheet: str, titles: Sequence[str]) -> NoReturn:
    raise Invalid(
        f"This workbook has no sheet “{shorten_echo(sheet)}”. It has {join_names(titles)}. Nothing was imported.",
        code="sheet_unknown",
        sheets=shortened_names_that_message_shows(titles),
    )


def titles_with_visible_sheets_first(worksheets: Mapping[str, Any]) -> list[str]:
    return sorted(worksheets, key=lambda title: worksheets[title].sheet_state != "visible")


def refuse_formula_without_result(file: BinaryIO, worksheet: Any) -> None:
    """Raise `Invalid` (`formula_without_result`) if the result of a formula is not stored in the sheet.

    Programs that write formulas often leave the results to Excel, and the cells would be read as empty.
    """
    try:
        place = place_of_formula_without_result_or_none(file, worksheet)
    except Exception:  # noqa: BLE001 - openpyxl reads results of formulas that it cannot read itself
        return
    if place is not None:
        line, column = place
        raise Invalid(
            f"Line {line}: the workbook has no result of the formula in column {column}. Open it in Excel or "
            "LibreOffice, save it there, and import it then. Nothing was imported.",
            code="formula_without_result",
            line=line,
            column=column,
        )


def place_of_formula_without_result_or_none(file: BinaryIO, worksheet: Any) -> tuple[int, str] | None:
    """Return the line and the column of the first such formula; an empty text is a result."""
    import openpyxl  # slow to import, and few uploads are workbooks

    if not has_any_sheet_tag(file, FORMULA_TAG_PATTERN):
        return None
    formulas = openpyxl.load_workbook(file, read_only=True, keep_links=False)[worksheet.title]
    rows = zip(iterate_cells_of_sheet(formulas), iterate_cells_of_sheet(worksheet), strict=True)
    for line, (row, results) in enumerate(rows, start=1):
        for cell, result in zip(row, results, strict=True):
            if cell.data_type == "f" and result.value is None and result.data_type != TEXT_RESULT_TYPE:
                return line, cell.column_letter
    return None


def has_any_sheet_tag(file: BinaryIO, pattern: re.Pattern[bytes]) -> bool:
    """Return whether any sheet of a workbook has such a tag. Raises `Invalid` (`workbook_unreadable`)."""

    def is_in_any_sheet() -> bool:
        with zipfile.ZipFile(file) as workbook:
            sheets = [name for name in workbook.namelist() if name.startswith(SHEETS_FOLDER)]
            return any(has_part_tag(workbook, name, pattern) for name in sheets)

    return call_openpyxl_or_refuse(is_in_any_sheet)


def has_part_tag(workbook: zipfile.ZipFile, name: str, pattern: re.Pattern[bytes]) -> bool:
    """Return whether a part of a workbook has such a tag, without reading all of it into memory."""
    end = b""
    with workbook.open(name) as part:
        while chunk := part.read(BYTES_PER_READ):
            if pattern.search(end + chunk):
                return True
            end = chunk[-LONGEST_TAG:]
    return False


def has_sheet_content(worksheet: Any) -> bool:
    return any(any(map(str.strip, row.cells)) for row in iterate_rows_of_sheet(worksheet))


def iterate_rows_of_sheet(worksheet: Any) -> Iterator[DelimitedRow]:
    """Yield the rows from the first one with content, each as wide as that one or wider.

    Raises `Invalid` (`workbook_unreadable`) and `TooLarge` (`workbook_too_large`).
    """
    width = empty_count = 0
    for line, row in enumerate(iterate_cells_of_sheet(worksheet), start=1):
        cells = call_openpyxl_or_refuse(partial(cells_without_trailing_blanks, row))
        if not cells:
            empty_count += 1
            continue
        if width:
            for skipped_line in range(line - empty_count, line):
                yield DelimitedRow(skipped_line, [""] * width, ("",))
        width, empty_count = width or len(cells), 0
        yield DelimitedRow(line, cells + [""] * (width - len(cells)), ("",))


def iterate_cells_of_sheet(worksheet: Any) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row. Raises `Invalid` (`workbook_unreadable`) and `TooLarge` (`workbook_too_large`)."""
    worksheet.reset_dimensions()  # some programs write wrong ones, and openpyxl would cut the sheet there
    rows = iter(worksheet.iter_rows())
    cell_count = line = 0
    while (row := call_openpyxl_or_refuse(partial(next, rows, None))) is not None:
        line += 1
        cell_count += len(row)
        if line > MAX_SHEET_ROWS or cell_count > MAX_SHEET_CELLS:
            raise_huge_sheet_refusal_at_line(line)
        yield row


def raise_huge_sheet_refusal_at_line(line: int) -> NoReturn:
    raise TooLarge(
        f"Line {line}: this sheet has more than {MAX_SHEET_ROWS:,} rows or {MAX_SHEET_CELLS:,} cells, counting empty "
        "ones. Copy the table into a new workbook. Nothing was imported.",
        code="workbook_too_large",
        line=line,
    )


def cells_without_trailing_blanks(row: Sequence[Any]) -> list[str]:
    """Return the texts of a row up to its last cell with content."""
    end = len(row)
    while end and is_blank_cell(row[end - 1].value):
        end -= 1
    return [
        text_of_cell_as_displayed(cell.value, cell.number_format if cell.value is not None else "")
        for cell in row[:end]
    ]


def is_blank_cell(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def text_of_cell_as_displayed(value: Any, number_format: str) -> str:
    """Return a cell as a person sees it: 1 for 1.0, 007 for a 7 in the format 000, 50% for 0.5 in the format 0%, dates
    in ISO 8601.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return text_with_line_ends_and_tabs(value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return text_of_number_as_displayed(value, number_format)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time.min else value.isoformat(" ", "seconds")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def text_of_number_as_displayed(value: float, number_format: str) -> str:
    if is_percentage_format(number_format):
        return f"{value * 100:.{SHOWN_DIGITS}g}%"
    if isinstance(value, int):
        whole = value
    elif value.is_integer() and abs(value) < 10**SHOWN_DIGITS:
        whole = int(value)
    else:
        return f"{value:.{SHOWN_DIGITS}g}"
    return f"{whole:0{len(number_format)}d}" if set(number_format) == {"0"} else str(whole)


def is_percentage_format(number_format: str) -> bool:
    return "%" in number_format and "%" in LITERAL_OF_NUMBER_FORMAT.sub("", number_format)


def text_with_line_ends_and_tabs(text: str) -> str:
    """Return the text of a cell with line ends and tabs instead of their codes."""
    return CODE_OF_LINE_END_OR_TAB.sub(lambda code: "\t" if "9" in code[0] else "\n", text) if "_x" in text else text
