"""Text that passes through Excel, LibreOffice or Google Sheets unchanged. Pure.

These programs read a CSV cell as a formula, number, date or truth value wherever they can: 001 becomes 1, 1e5 becomes
100000, 3/4 a day in April, and saving keeps only that. An apostrophe in front makes the cell plain text in each of
them, however often the file is opened and saved. Excel shows the apostrophe; imports take it away again.
"""

import re
from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
LONGEST_CONVERTED = 40  # characters of a number, date or time
# Months as Excel knows them in the languages of many of its users.
MONTHS = (
    "jan(uary|uar|vier|eiro|uari)? febr?(uary|uar|brero|braio|uari)? mar(ch|s|zo|ço)? apr(il|ile)? may june? july? "
    "aug(ust|ustus)? sept?(ember|iembre|embre|embro)? oct(ober|obre|ubre)? nov(ember|iembre|embre|embro)? "
    "dec(ember)? jän(ner)? mär(z)? mai juni? juli? okt(ober)? dez(ember|embro)? janv fév(r|rier)? avr(il)? juin "
    "juil(let)? aoû(t)? août déc(embre)? ene(ro)? abr(il)? ago(sto)? dic(iembre|embre)? gen(naio)? mag(gio)? giu(gno)? "
    "lug(lio)? set(tembre|embro)? ott(obre)? fev(ereiro)? out(ubro)? mrt maart mei mayo junio julio junho julho"
).replace(" ", "|")
# As people write numbers, dates, times, fractions, percentages, prices, exponents, months and errors.
CONVERTED = re.compile(
    rf"""
    [\s.,:/+\-%()$€£¥]*\d[\s\d.,:/+\-%()$€£¥'’]*
    | [+-]?[\d.,]+[ed][+-]?\d+
    | \d{{1,2}}(:\d\d){{0,2}}\s*[ap]\.?m?\.?
    | (?=.*\d)(\d{{1,4}}[\s.\-/]*)?({MONTHS})[\s.\-/]*\d{{0,4}}([\s,.\-/]+\d{{1,4}})?
    | \#(n/a|nv|[a-z0]+/?[a-z0]*[!?])
    | true|false|wahr|falsch|vrai|faux|verdadero|verdadeiro|vero|falso|waar|onwaar
    """,
    re.IGNORECASE | re.VERBOSE,
)
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
SAME_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", re.ASCII)  # which is written again just so
MOST_DIGITS = 15  # that Excel keeps of a number
# Whose cells name or show something, so that each character matters; numbers of others may lose zeros at their ends.
ID_COLUMNS = frozenset(
    (
        *("id", "item", "annotator", "name", "hit", "segment", "shown_as", "system", "assignment", "leader"),
        *("shown", "text", "source", "reference", "output", "label"),
    )
)


def is_changed(text: str, *, identifier: bool = True) -> bool:
    """Whether a spreadsheet program would change a cell with this text.

    Args:
        text: What stands in the cell.
        identifier: The text names something, so each of its characters matters; otherwise a number may stay a number
            and lose zeros at its end.

    """
    if text.startswith(FORMULA_STARTS):
        return not is_kept_number(text, identifier=identifier)
    bare = text.strip()
    if not bare or len(text) > LONGEST_CONVERTED or not CONVERTED.fullmatch(bare):
        return False
    return not is_kept_number(text, identifier=identifier)


def is_kept_number(text: str, *, identifier: bool) -> bool:
    """Whether this is a number that a spreadsheet program writes again as it was, or of an equal value."""
    written = (SAME_NUMBER if identifier else NUMBER).fullmatch(text)
    digits = re.sub(r"[eE].*|\D", "", text)
    return bool(written) and len(digits.lstrip("0")) <= MOST_DIGITS and text != "-0"


def protect(text: str, *, identifier: bool = True) -> str:
    """Return the text as a cell that spreadsheet programs keep."""
    return f"'{text}" if is_changed(text, identifier=identifier) else text


def unprotect(cell: str) -> str:
    """Return the text of a cell that `protect` has written."""
    return cell[1:] if cell[:1] == "'" and is_changed(cell[1:]) else cell


def guarded(cell: Any) -> Any:
    """Text that a spreadsheet would take for a formula, with an apostrophe before it; numbers stay numbers."""
    if not (isinstance(cell, str) and cell.startswith(FORMULA_STARTS)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
