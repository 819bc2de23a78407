"""Texts that annotators see of a row."""

import pytest

from app.errors import Invalid
from app.imports.item_text import build_item_text_maker_or_refuse, find_obvious_shown_column_or_none

COLUMNS = ("id", "premise", "hypothesis", "a.b")
ROW = {"id": "1", "premise": "A man sleeps", "hypothesis": "Someone sleeps", "a.b": "x"}


def test_the_shown_column_is_guessed_only_when_it_is_plain(subtests):
    for columns, expected in (
        (("id", "sent"), "sent"),
        (("id", "sent", "alpha", "beta", "mode", "var"), "sent"),
        (("id", "note", "sentence", "text"), "text"),
        (("id", "verb"), "verb"),
        (("id", "verb", "alpha", "beta", "mu", "sigma"), "verb"),
        (("id", "verb", "frequency"), None),
        (("id",), None),
    ):
        with subtests.test(columns=columns, expected=expected):
            assert find_obvious_shown_column_or_none(columns) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{premise} → {hypothesis}", "A man sleeps → Someone sleeps"),
        ("{{{premise}}} {{}}", "{A man sleeps} {}"),
        ("{a.b}", "x"),  # a column's name, not an attribute
    ],
)
def test_a_template_puts_values_into_words(template, expected):
    assert build_item_text_maker_or_refuse(COLUMNS, None, template)(ROW) == expected


def test_a_value_with_braces_is_not_taken_for_a_template():
    shown = build_item_text_maker_or_refuse(COLUMNS, None, "{premise} {hypothesis}")
    assert shown(ROW | {"premise": "{hypothesis}"}) == "{hypothesis} Someone sleeps"


def test_a_template_over_empty_cells_shows_nothing():
    assert (
        build_item_text_maker_or_refuse(COLUMNS, None, "{premise} → {hypothesis}")({"premise": " ", "hypothesis": None})
        == ""
    )


def test_numbers_and_lists_are_shown_as_they_are_written():
    assert build_item_text_maker_or_refuse(("id", "n"), None, "{n}")({"n": 1.5}) == "1.5"
    assert build_item_text_maker_or_refuse(("id", "n"), "n", None)({"n": ["ä", 1]}) == '["ä", 1]'


def test_what_cannot_be_shown_is_refused(subtests):
    for column, template, code in (
        (None, None, "shown_not_chosen"),
        ("premise", "{premise}", "shown_not_chosen"),
        ("verb", None, "column_unknown"),
        (None, "{verb}", "column_unknown"),
        (None, "{verb[0]}", "column_unknown"),
        (None, "{premise[}", "column_unknown"),
        (None, "{premise[x]}", "column_unknown"),
        (None, "{premise.}", "column_unknown"),
        ("premise[0]x", None, "column_unknown"),
        (None, "{premise!r}", "column_unknown"),
        (None, "{premise", "template_invalid"),
        (None, "premise}", "template_invalid"),
        (None, "{} premise", "template_invalid"),
        (None, "the same for all", "template_invalid"),
    ):
        with subtests.test(column=column, template=template, code=code):
            with pytest.raises(Invalid) as problem:
                build_item_text_maker_or_refuse(COLUMNS, column, template)
            assert problem.value.code == code


CHAT = {
    "id": "p1",
    "messages": [
        {"role": "user", "content": "What is 2+2?"},
        {"role": "assistant", "content": "It is 4.\nReally."},
    ],
    "meta": {"model": {"name": "m1"}, "a.b": "x"},
}


def test_a_path_leads_to_a_value_within_a_column(subtests):
    for path, expected in (
        ("messages[0].content", "What is 2+2?"),
        ("messages[-1].content", "It is 4.\nReally."),
        ("meta.model.name", "m1"),
        ("meta.model", '{"name": "m1"}'),
        ("messages[2].content", ""),
        ("messages.role", ""),
        ("messages[0][0]", ""),
        ("id.upper", ""),
        ("id[0]", ""),
    ):
        with subtests.test(path=path, expected=expected):
            assert build_item_text_maker_or_refuse([*CHAT], path, None)(CHAT) == expected
            assert build_item_text_maker_or_refuse([*CHAT], None, f"{{{path}}}")(CHAT) == expected


def test_a_template_goes_over_values_within_columns():
    shown = build_item_text_maker_or_refuse([*CHAT], None, "Q: {messages[0].content}\nA: {messages[1].content} ({id})")
    assert shown(CHAT) == "Q: What is 2+2?\nA: It is 4.\nReally. (p1)"


def test_a_column_whose_name_looks_like_a_path_comes_first():
    row = {"a": {"b": "inner"}, "a.b": "column", "a[0]": {"c": "longest"}}
    assert build_item_text_maker_or_refuse([*row], "a.b", None)(row) == "column"
    assert build_item_text_maker_or_refuse([*row], "a[0].c", None)(row) == "longest"


def test_nothing_but_values_is_reached():
    shown = build_item_text_maker_or_refuse(COLUMNS, None, "{premise.__class__}")
    assert shown(ROW) == ""
    with pytest.raises(Invalid) as problem:
        shown.refuse_paths_never_found()
    assert (problem.value.code, problem.value.details["column"]) == ("column_unknown", "premise.__class__")


def test_a_path_that_some_row_has_is_none_to_be_refused():
    shown = build_item_text_maker_or_refuse(["messages"], "messages[1].content", None)
    assert [shown(CHAT | {"messages": []}), shown(CHAT)] == ["", "It is 4.\nReally."]
    shown.refuse_paths_never_found()


def test_messages_of_a_chat_stand_one_below_the_other(subtests):
    for messages, expected in (
        (CHAT["messages"], "user: What is 2+2?\n\nassistant: It is 4.\nReally."),
        ([{"from": "human", "value": "Hi"}], "human: Hi"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "user: a\nb"),
        ([{"role": "user"}], '[{"role": "user"}]'),
        ([], "[]"),
    ):
        with subtests.test(messages=messages, expected=expected):
            assert build_item_text_maker_or_refuse(["messages"], "messages", None)({"messages": messages}) == expected


def test_a_template_over_cells_that_look_empty_shows_nothing():
    assert (
        build_item_text_maker_or_refuse(COLUMNS, None, "{premise}, {hypothesis}")(
            {"premise": "\u200b", "hypothesis": "\u3164"}
        )
        == ""
    )
