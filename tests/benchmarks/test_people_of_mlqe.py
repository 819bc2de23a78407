"""People are found by their z-scores, and the shipped data say who they are."""

import numpy as np
import pytest

from benchmarks.annotator_aware import load_judgment_rows
from benchmarks.people_of_mlqe import UNKNOWN, bias_spread, longest_line, recover_people


def test_the_judgments_of_a_person_are_on_one_line():
    rng = np.random.default_rng(1)
    scores, people = rng.integers(101, size=600).astype(float), rng.integers(8, size=600)
    mean, spread = rng.uniform(40, 80, 8), rng.uniform(15, 35, 8)
    found = recover_people(scores, (scores - mean[people]) / spread[people])
    pairs = set(zip(people.tolist(), found.tolist(), strict=True))
    assert len(pairs) == len({person for person, _ in pairs}) == len({number for _, number in pairs}) == 8


def test_scores_that_no_line_holds_are_of_nobody():
    found = recover_people(np.array([10.0, 20, 30, 40, 70]), np.array([-1.0, 0, 1, 0.3, 0.9]))
    assert found.tolist() == [0, 0, 0, UNKNOWN, UNKNOWN]


def test_a_line_rises():
    falling = longest_line(np.array([10.0, 20, 30]), np.array([1.0, 0, -1]))
    assert not falling.any()


def test_biases_by_hand():
    # Two people, 30 judgments each, 10 above and 10 below the mean of every item: .1 and -.1.
    scores = np.tile([60.0, 40.0], (30, 1))
    assert bias_spread(scores, np.tile([0, 1], (30, 1))) == pytest.approx(np.sqrt(2) / 10)


@pytest.mark.parametrize(("languages", "people"), [("et-en", 23), ("ro-en", 27)])
def test_six_different_people_judged_each_sentence_and_three_of_them_all(languages, people):
    rows = [row for row in load_judgment_rows("mlqe") if row["languages"] == languages]
    by_sentence = np.array([row["person"] for row in rows]).reshape(-1, 6)
    named = [[person for person in sentence if person] for sentence in by_sentence.tolist()]
    assert all(len(set(sentence)) == len(sentence) >= 5 for sentence in named)
    assert len({person for sentence in named for person in sentence}) == people
    assert [len(set(by_sentence[:, place])) for place in range(3)] == [1, 1, 1]
