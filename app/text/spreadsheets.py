"""Protection of texts so that they pass through Excel, LibreOffice or Google Sheets unchanged. Pure.

These programs read a CSV cell as a formula, number, date or truth value wherever they can: 001 becomes 1, 1e5 becomes
100000, 3/4 a day in April, and saving keeps only that. An apostrophe in front makes the cell plain text in each of
them, however often the file is opened and saved. Excel shows the apostrophe; imports take it away again.
"""

import re
from typing import Any

FORMULA_START_CHARACTERS = ("=", "+", "-", "@", "\t", "\r")
MAX_CONVERTED_CHARACTERS = 40  # of a number, date or time
# Months as Excel knows them in the languages of many of its users.
MONTH_NAMES_REGEX = (
    "jan(uary|uar|vier|eiro|uari)? febr?(uary|uar|brero|braio|uari)? mar(ch|s|zo|ço)? apr(il|ile)? may june? july? "
    "aug(ust|ustus)? sept?(ember|iembre|embre|embro)? oct(ober|obre|ubre)? nov(ember|iembre|embre|embro)? "
    "dec(ember)? jän(ner)? mär(z)? mai juni? juli? okt(ober)? dez(ember|embro)? janv fév(r|rier)? avr(il)? juin "
    "juil(let)? aoû(t)? août déc(embre)? ene(ro)? abr(il)? ago(sto)? dic(iembre|embre)? gen(naio)? mag(gio)? giu(gno)? "
    "lug(lio)? set(tembre|embro)? ott(obre)? fev(ereiro)? out(ubro)? mrt maart mei mayo junio julio junho julho"
).replace(" ", "|")
# Spellings of numbers, dates, times, fractions, percentages, prices, exponents, months and errors.
CONVERTED_CELL_PATTERN = re.compile(
    rf"""
    [\s.,:/+\-%()$€£¥]*\d[\s\d.,:/+\-%()$€£¥'’]*
    | [+-]?[\d.,]+[ed][+-]?\d+
    | \d{{1,2}}(:\d\d){{0,2}}\s*[ap]\.?m?\.?
    | (?=.*\d)(\d{{1,4}}[\s.\-/]*)?({MONTH_NAMES_REGEX})[\s.\-/]*\d{{0,4}}([\s,.\-/]+\d{{1,4}})?
    | \#(n/a|nv|[a-z0]+/?[a-z0]*[!?])
    | true|false|wahr|falsch|vrai|faux|verdadero|verdadeiro|vero|falso|waar|onwaar
    """,
    re.IGNORECASE | re.VERBOSE,
)
NUMBER_PATTERN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
UNCHANGED_NUMBER_PATTERN = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", re.ASCII)  # saved exactly as it was
MAX_SPREADSHEET_DIGITS = 15  # of a number in Excel
# Columns of names and texts, in which each character matters; numbers in other columns may lose trailing zeros.
ID_COLUMNS = frozenset(
    (
        *("id", "item", "annotator", "name", "hit", "segment", "shown_as", "system", "assignment", "leader"),
        *("shown", "text", "source", "reference", "output", "label", "condition", "adjudicated", "item_label"),
    )
)


def is_changed_by_spreadsheet(text: str, *, is_identifier: bool = True) -> bool:
    """Return whether a spreadsheet program would change a cell with this text.

    Args:
        text: Text of the cell.
        is_identifier: The text names something, so each of its characters matters; otherwise a number may stay a number
            and lose zeros at its end.

    """
    if text.startswith(FORMULA_START_CHARACTERS):
        return not is_number_kept_by_spreadsheet(text, is_identifier=is_identifier)
    bare = text.strip()
    if not bare or len(text) > MAX_CONVERTED_CHARACTERS or not CONVERTED_CELL_PATTERN.fullmatch(bare):
        return False
    return not is_number_kept_by_spreadsheet(text, is_identifier=is_identifier)


def is_number_kept_by_spreadsheet(text: str, *, is_identifier: bool) -> bool:
    """Return whether a spreadsheet program saves this number unchanged, or unless `is_identifier` with equal value."""
    written = (UNCHANGED_NUMBER_PATTERN if is_identifier else NUMBER_PATTERN).fullmatch(text)
    digits = re.sub(r"[eE].*|\D", "", text)
    return bool(written) and len(digits.lstrip("0")) <= MAX_SPREADSHEET_DIGITS and text != "-0"


def protect_cell_from_spreadsheet(text: str, *, is_identifier: bool = True) -> str:
    """Return the text as a cell that spreadsheet programs keep."""
    return f"'{text}" if is_changed_by_spreadsheet(text, is_identifier=is_identifier) else text


def unprotect_spreadsheet_cell(cell: str) -> str:
    """Return the text of a cell that `protect_cell_from_spreadsheet` has written."""
    return cell[1:] if cell[:1] == "'" and is_changed_by_spreadsheet(cell[1:]) else cell


def guard_against_formula(cell: Any) -> Any:
    """Return a cell with an apostrophe before text that a spreadsheet would read as a formula; numbers stay."""
    if not (isinstance(cell, str) and cell.startswith(FORMULA_START_CHARACTERS)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
