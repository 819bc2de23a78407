import ast
import pickle
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from app.analysis.api.analysis import NOTE_CODES
from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.ground.notes import Note, joined_mention_placeholders_text, make_mention, notes_with_names

APP = Path(__file__).resolve().parents[2] / "app"
NAMES = {"item": "abcdefghijkl", "annotator": "xy"}


def test_a_note_speaks_of_things_by_their_numbers_until_their_names_are_known(subtests):
    for numbers, by_number, by_name in (
        ([3], "item 3", "item “d”"),
        ([1, 3], "items 1 and 3", "items “b” and “d”"),
        ([0, 1, 3], "items 0, 1 and 3", "items “a”, “b” and “d”"),
        (
            range(12),
            "12 items (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)",
            "12 items (“a”, “b”, “c”, “d”, “e”, “f”, “g”, “h”, “i”, “j”, ...)",
        ),
    ):
        with subtests.test(numbers=numbers, by_number=by_number, by_name=by_name):
            note = Note("unrated", "Nothing is known about {0}.", make_mention("item", numbers))
            assert note == f"Nothing is known about {by_number}."
            assert note.with_names(NAMES) == f"Nothing is known about {by_name}."


def test_numbers_that_are_not_of_things_stay_as_they_are():
    note = Note("few", "{0} gave 3 of 1,000 items 2 judgments; judge 0 none.", make_mention("annotator", [1]))
    assert note.with_names(NAMES) == "Annotator “y” gave 3 of 1,000 items 2 judgments; judge 0 none."
    assert note.with_names({}) == note


def test_a_mask_mentions_what_it_marks():
    assert Note("one", "{0}", make_mention("item", np.array([False, True, False]))) == "Item 1"


def test_groups_are_mentioned_one_after_another():
    note = Note(
        "groups",
        f"Two groups: {joined_mention_placeholders_text(2)}.",
        make_mention("item", [0, 1]),
        make_mention("item", [2]),
    )
    assert note.with_names(NAMES) == "Two groups: items “a” and “b”; item “c”."


def test_a_note_without_mentions_is_its_sentence_whatever_is_in_it():
    assert notes_with_names([Note("plain", "items {0}, 1"), Note("one", "{0}", make_mention("item", [0]))], NAMES) == (
        "items {0}, 1",
        "Item “a”",
    )


def test_a_note_has_a_code_and_what_it_speaks_of_by_number_or_name():
    note = Note(
        "groups", "{0}; {1} by {2}", make_mention("item", [0, 1]), make_mention("item", [2]), make_mention("judge", [5])
    )
    assert (note.code, note.about) == ("groups", {"item": [0, 1, 2], "judge": [5]})
    assert (note.with_names(NAMES).code, note.with_names(NAMES).about) == (
        "groups",
        {"item": ["a", "b", "c"], "judge": [5]},
    )


@cache
def codes() -> list[str]:
    """Return the code of every note that the application makes."""
    calls = (
        node
        for file in APP.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note"
    )
    return [str(call.args[0].value) for call in calls if isinstance(call.args[0], ast.Constant)]


def test_every_code_is_a_word_for_programs_and_is_given_in_one_place():
    found = codes()
    assert len(found) > 50
    assert [code for code in found if not re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", code)] == []
    assert [code for code in found if found.count(code) > 1] == []


def test_the_documentation_of_the_api_lists_every_code():
    assert sorted(re.findall(r"`(\w+)`", NOTE_CODES)) == sorted(codes())


@pytest.mark.parametrize("kind", [Inestimable, NotConverged])
def test_a_refusal_comes_from_another_process_as_it_was_raised(kind):
    again = pickle.loads(pickle.dumps(kind("Nothing was judged.", code="no_judgments")))
    assert (type(again), str(again), again.code) == (kind, "Nothing was judged.", "no_judgments")
