"""What annotators see of a row."""

import pytest

from app.campaigns.template import guess, shown_by
from app.errors import Invalid

COLUMNS = ("id", "premise", "hypothesis", "a.b")
ROW = {"id": "1", "premise": "A man sleeps", "hypothesis": "Someone sleeps", "a.b": "x"}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("id", "sent"), "sent"),
        (("id", "sent", "alpha", "beta", "mode", "var"), "sent"),
        (("id", "note", "sentence", "text"), "text"),
        (("id", "verb"), "verb"),
        (("id", "verb", "alpha", "beta", "mu", "sigma"), "verb"),
        (("id", "verb", "frequency"), None),
        (("id",), None),
    ],
)
def test_the_shown_column_is_guessed_only_when_it_is_plain(columns, expected):
    assert guess(columns) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{premise} → {hypothesis}", "A man sleeps → Someone sleeps"),
        ("{{{premise}}} {{}}", "{A man sleeps} {}"),
        ("{a.b}", "x"),  # a column's name, not an attribute
    ],
)
def test_a_template_puts_values_into_words(template, expected):
    assert shown_by(COLUMNS, None, template)(ROW) == expected


def test_a_value_with_braces_is_not_taken_for_a_template():
    shown = shown_by(COLUMNS, None, "{premise} {hypothesis}")
    assert shown(ROW | {"premise": "{hypothesis}"}) == "{hypothesis} Someone sleeps"


def test_a_template_over_empty_cells_shows_nothing():
    assert shown_by(COLUMNS, None, "{premise} → {hypothesis}")({"premise": " ", "hypothesis": None}) == ""


def test_numbers_and_lists_are_shown_as_they_are_written():
    assert shown_by(("id", "n"), None, "{n}")({"n": 1.5}) == "1.5"
    assert shown_by(("id", "n"), "n", None)({"n": ["ä", 1]}) == '["ä", 1]'


@pytest.mark.parametrize(
    ("column", "template", "code"),
    [
        (None, None, "shown_not_chosen"),
        ("premise", "{premise}", "shown_not_chosen"),
        ("verb", None, "column_unknown"),
        (None, "{verb}", "column_unknown"),
        (None, "{premise.__class__}", "column_unknown"),
        (None, "{premise!r}", "column_unknown"),
        (None, "{premise", "template_invalid"),
        (None, "premise}", "template_invalid"),
        (None, "{} premise", "template_invalid"),
        (None, "the same for all", "template_invalid"),
    ],
)
def test_what_cannot_be_shown_is_refused(column, template, code):
    with pytest.raises(Invalid) as problem:
        shown_by(COLUMNS, column, template)
    assert problem.value.code == code
