"""Whom simulated campaigns ask, where a law learns of annotators."""

import numpy as np

from app.inference.observations.said import Said
from app.inference.online.law import Hit
from app.simulation.supposed import FEWEST_PEOPLE, MOST_PEOPLE, hits_of, people_in_all


def test_judgments_in_a_row_by_one_annotator_are_a_hit_until_it_is_full_or_an_item_comes_again():
    items, who = np.array([0, 1, 2, 3, 3, 0, 1]), np.array([4, 4, 4, 4, 5, 5, 4])
    said = Said(4, items, who, np.linspace(0, 0.6, 7).round(1))
    assert [(hit.annotator, hit.items) for hit in hits_of(said, 3)] == [(4, [0, 1, 2]), (4, [3]), (5, [3, 0]), (4, [1])]
    again = Said(2, np.array([0, 1, 0]), np.array([4, 4, 4]), np.zeros(3))
    assert [hit.items for hit in hits_of(again, 3)] == [[0, 1], [0]]


def test_how_many_people_answer_is_guessed_from_how_many_did_so_once_and_twice():
    """Of 30, 20 answered once and 4 twice: 30 + 20 * 19 / (2 * 5)."""
    often = [1] * 20 + [2] * 4 + [3] * 6
    hits = [Hit(who, [0], [0.5]) for who, count in enumerate(often) for _ in range(count)]
    assert people_in_all(hits) == 68
    assert people_in_all(hits[:3]) == FEWEST_PEOPLE


def test_where_everybody_answered_once_no_millions_are_supposed():
    assert people_in_all([Hit(who, [0], [0.5]) for who in range(3000)]) == 3000 + MOST_PEOPLE
