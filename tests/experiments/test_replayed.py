"""A record replayed says what was known after each judgment an item, and what others would have found."""

import numpy as np
import pytest

from app.experiments.replayed import ArmRecord, course, ends_of
from app.inference.online.law import Hit, Parameters
from app.inference.online.laws import ONLINE

LAW = ONLINE["easl"]
TRUTH = np.array([0.1, 0.3, 0.6, 0.9])
HITS = [
    Hit(7, [0, 1], [0.1, 0.2]),
    Hit(8, [2, 3], [0.5, 0.9]),
    Hit(9, [0, 1, 2], [0.3, 0.2, 0.7]),
    Hit(7, [3], [1.0]),
    Hit(7, [0], [0.0]),
]


@pytest.fixture
def record():
    return ArmRecord(LAW, LAW.begin([np.ones(4), np.ones(4)], Parameters()), HITS, TRUTH)


def test_looks_end_with_the_hits_that_bring_their_judgments(record):
    assert (record.judgments, record.looks, record.people) == (9, 2, [7, 8, 9])
    assert ends_of(record, 2) == [2, 4]


def test_scores_are_the_means_of_what_was_said_up_to_the_last_look(record):
    assert course(record, 2).score == pytest.approx([0.2, 0.2, 0.6, 0.95])
    assert course(record, 1).score == pytest.approx([0.1, 0.2, 0.5, 0.9])


def test_without_somebody_it_is_as_if_they_had_not_answered(record):
    found = course(record, 2)
    others = ArmRecord(LAW, record.begun, [hit for hit in HITS if hit.annotator != 9], TRUTH)
    alone = course(others, 1)
    assert found.without["pearson"][2, 0] == found.figures["pearson"][0]
    assert found.without["pearson"][2, 1] == pytest.approx(np.corrcoef(TRUTH, [0.1, 0.2, 0.5, 0.95])[0, 1])
    assert alone.figures["pearson"][0] == found.figures["pearson"][0]
    assert found.there.tolist() == [[True, True], [True, True], [False, True]]
    assert found.people.tolist() == [2, 3]


def test_replaying_changes_nothing_of_the_record(record):
    before = record.begun.state.copy()
    assert course(record, 2).figures["spearman"].tolist() == course(record, 2).figures["spearman"].tolist()
    assert (record.begun.state == before).all()
