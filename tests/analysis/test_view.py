"""The address of the analysis page, and tables that it sorts, searches and cuts into pages."""

import math

import pytest

from app.analysis.result_types import Column, ResultTable
from app.analysis.view import AnalysisView, decimals_for_values, format_interval, searched_and_sorted_table_page
from app.text.numbers import format_with_places

COLUMNS = (Column("id", "Id", "text"), Column("value", "Value"), Column("count", "Count", "count"))


def table(*rows):
    return ResultTable(COLUMNS, list(rows))


def ids(page):
    return [row[0] for row in page.rows]


def test_an_address_holds_only_what_is_not_as_usual():
    assert AnalysisView().query() == "?"
    assert AnalysisView(one="elo", classes=3).query(page=2) == "?one=elo&classes=3&page=2"


def test_a_press_on_a_head_sorts_and_the_next_turns_the_order_around():
    view = AnalysisView(table="items")
    assert view.url_after_click_on_column(COLUMNS[1]) == "?table=items&sort=value"
    assert (
        AnalysisView(table="items", sort="value").url_after_click_on_column(COLUMNS[1])
        == "?table=items&sort=value&order=up"
    )
    assert view.url_after_click_on_column(COLUMNS[0]) == "?table=items&sort=id&order=up"


def test_sorting_starts_on_the_first_page():
    assert "page" not in AnalysisView(table="items", page=3).url_after_click_on_column(COLUMNS[1])


def test_a_view_of_one_table_leaves_the_others_as_they_are():
    view = AnalysisView(one="elo", table="items", sort="value", page=2, search="x")
    assert view.view_of_table_or_its_start("items") == view
    assert view.view_of_table_or_its_start("other") == AnalysisView(one="elo", table="other")


def test_a_form_keeps_the_rest_of_the_address():
    view = AnalysisView(one="elo", other="mean", classes=4, table="items", page=3, search="x")
    assert view.hidden_form_fields("one", "other") == [("classes", 4), ("table", "items")]


def test_rows_without_a_view_stand_in_their_own_order():
    assert ids(searched_and_sorted_table_page(table(("b", 1.0, 1), ("a", 2.0, 1)), AnalysisView())) == ["b", "a"]


@pytest.mark.parametrize(("order", "expected"), [("up", ["a", "c", "b"]), ("down", ["c", "a", "b"])])
def test_what_has_no_figure_comes_last_whichever_way(order, expected):
    rows = table(("b", None, 1), ("a", -1.0, 1), ("c", 2.0, 1))
    assert ids(searched_and_sorted_table_page(rows, AnalysisView(sort="value", order=order))) == expected


def test_texts_are_sorted_without_regard_to_capitals():
    rows = table(("b", 1.0, 1), ("A", 1.0, 1), ("C", 1.0, 1))
    assert ids(searched_and_sorted_table_page(rows, AnalysisView(sort="id", order="up"))) == ["A", "b", "C"]


def test_texts_that_are_whole_numbers_are_sorted_as_numbers():
    rows = table(("10", 1.0, 1), ("b", 1.0, 1), ("2", 1.0, 1), ("-1", 1.0, 1))
    assert ids(searched_and_sorted_table_page(rows, AnalysisView(sort="id", order="up"))) == ["-1", "2", "10", "b"]


def test_a_column_that_does_not_exist_sorts_nothing():
    assert ids(searched_and_sorted_table_page(table(("b", 1.0, 1), ("a", 2.0, 1)), AnalysisView(sort="password"))) == [
        "b",
        "a",
    ]


def test_a_search_looks_into_texts_only():
    rows = table(("Run 7", 1.0, 1), ("walk", 7.0, 7))
    assert ids(searched_and_sorted_table_page(rows, AnalysisView(search="7"))) == ["Run 7"]
    assert ids(searched_and_sorted_table_page(rows, AnalysisView(search="RUN"))) == ["Run 7"]
    assert searched_and_sorted_table_page(rows, AnalysisView(search="swim")).total == 0


def test_pages_have_twenty_rows_and_one_beyond_the_last_is_the_first():
    rows = table(*((f"{i}", float(i), i) for i in range(45)))
    last = searched_and_sorted_table_page(rows, AnalysisView(page=3))
    assert (ids(last), last.offset + 1, last.total) == (["40", "41", "42", "43", "44"], 41, 45)
    beyond = searched_and_sorted_table_page(rows, AnalysisView(page=9))
    assert (len(beyond.rows), beyond.offset + 1) == (20, 1)


def test_a_column_has_as_many_decimals_as_its_largest_number_needs(subtests):
    for values, places in (
        ([0.5, None], 3),
        ([2.5], 2),
        ([20.25], 1),
        ([3.0, 40.0], 0),
        ([], 3),
        ([math.nan, 1.0], 3),
        (["text"], 3),
    ):
        with subtests.test(values=values, places=places):
            assert decimals_for_values(values) == places


def test_a_figure_in_words_has_a_true_minus_and_never_nan(subtests):
    for value, places, words in (
        (-1.25, 1, "−1.2"),
        (-0.0001, 2, "0.00"),
        (12345.6, 0, "12,346"),
        (None, 2, "–"),
        (math.nan, 2, "–"),
        (math.inf, 0, "–"),
    ):
        with subtests.test(value=value, places=places, words=words):
            assert format_with_places(value, places) == words


def test_an_interval_without_an_end_is_a_dash():
    assert format_interval(0.25, 0.5, 2) == "0.25 to 0.50"
    assert format_interval(None, 0.5, 2) == format_interval(math.nan, 1.0, 2) == "–"
