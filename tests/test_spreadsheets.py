"""Which texts spreadsheet programs change, and how these come back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.spreadsheets import is_changed_by_spreadsheet, protect_cell_from_spreadsheet, unprotect_spreadsheet_cell

CHANGED = (
    *("001", "1e5", "1E-2", "2024-01-05", "3/4", "1 1/2", "MARCH1", "SEPT2", "5-Jan", "Jan 5", "5. Mai", "DEC-07"),
    *("00123456789012345678", "1234567890123456", "+49 30", "-5-", "1:30", "12:30:45", "3 PM", "11:05am", "5%", "35 %"),
    *("$5", "5 €", "(5)", "1,000", "1.234,5", "1.50", "1.", ".5", "-0", "+5", "TRUE", "false", "Wahr", "#N/A", "#REF!"),
    *("=2+3", "@home", "-x", "+x", "\tx", " 001", "001 ", "٣", "1d5", "31.12.2024", "12.5.24", "mars 2024"),
)
KEPT = (
    *("0", "7", "-5", "12", "123456789012345", "1.5", "-0.25", "s1", "v12", "0x1F", "A1", "item 3", "doc-7", "Mark"),
    *("May", "Julia", "output1", "a1e5", "1e5x", "'001", "", " ", "x=1", "3 cats", "it's 5 o'clock", "#metoo"),
    *("2026-01-05T09:00:00+00:00", "Truth", "the year 2024", "1-2-3 go", "marker 3"),
)


def test_what_a_spreadsheet_program_would_change_gets_an_apostrophe(subtests):
    for text in CHANGED:
        with subtests.test(text=text):
            assert protect_cell_from_spreadsheet(text) == f"'{text}"


def test_what_it_would_keep_stays_as_it_is(subtests):
    for text in KEPT:
        with subtests.test(text=text):
            assert protect_cell_from_spreadsheet(text) == text


@pytest.mark.parametrize("text", ["1.50", "1e-05", "0.10"])
def test_a_number_that_is_no_id_stays_a_number(text):
    assert is_changed_by_spreadsheet(text)
    assert protect_cell_from_spreadsheet(text, is_identifier=False) == text


def test_other_cells_are_protected_in_any_column(subtests):
    for text in ("001", "2024-01-05", "1234567890123456", "=1", "1,5"):
        with subtests.test(text=text):
            assert protect_cell_from_spreadsheet(text, is_identifier=False) == f"'{text}"


@given(st.text().filter(lambda text: not text.startswith("'")))
def test_every_text_comes_back(text):
    assert unprotect_spreadsheet_cell(protect_cell_from_spreadsheet(text)) == text


def test_long_texts_are_decided_at_once(subtests):
    for text in ("0" * 5000, " " * 5000 + "x", "1," * 2500 + "x", "Jan" + "-" * 5000, "9" * 39 + "e"):
        with subtests.test(text=text):
            assert unprotect_spreadsheet_cell(protect_cell_from_spreadsheet(text)) == text
