import numpy as np
import pytest

from app.inference.ground.notes import Note, listed, mention, named

NAMES = {"item": "abcdefghijkl", "annotator": "xy"}


@pytest.mark.parametrize(
    ("numbers", "by_number", "by_name"),
    [
        ([3], "item 3", "item “d”"),
        ([1, 3], "items 1 and 3", "items “b” and “d”"),
        ([0, 1, 3], "items 0, 1 and 3", "items “a”, “b” and “d”"),
        (
            range(12),
            "12 items (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)",
            "12 items (“a”, “b”, “c”, “d”, “e”, “f”, “g”, “h”, “i”, “j”, ...)",
        ),
    ],
)
def test_a_note_speaks_of_things_by_their_numbers_until_their_names_are_known(numbers, by_number, by_name):
    note = Note("Nothing is known about {0}.", mention("item", numbers))
    assert note == f"Nothing is known about {by_number}."
    assert note.named(NAMES) == f"Nothing is known about {by_name}."


def test_numbers_that_are_not_of_things_stay_as_they_are():
    note = Note("{0} gave 3 of 1,000 items 2 judgments; judge 0 none.", mention("annotator", [1]))
    assert note.named(NAMES) == "Annotator “y” gave 3 of 1,000 items 2 judgments; judge 0 none."
    assert note.named({}) == note


def test_a_mask_mentions_what_it_marks():
    assert Note("{0}", mention("item", np.array([False, True, False]))) == "Item 1"


def test_groups_are_mentioned_one_after_another():
    note = Note(f"Two groups: {listed(2)}.", mention("item", [0, 1]), mention("item", [2]))
    assert note.named(NAMES) == "Two groups: items “a” and “b”; item “c”."


def test_plain_sentences_among_notes_are_left_alone():
    assert named(["items 0, 1", Note("{0}", mention("item", [0]))], NAMES) == ("items 0, 1", "Item “a”")
