"""A record replayed says what was known after each judgment per item, and what others would have found."""

import numpy as np
import pytest

from app.experiments.arm_replay import ArmRecord, hit_count_at_each_checkpoint, replay_arm
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS

LAW = ONLINE_LAWS["easl"]
TRUTH = np.array([0.1, 0.3, 0.6, 0.9])
HITS = [
    AnsweredHit(7, [0, 1], [0.1, 0.2]),
    AnsweredHit(8, [2, 3], [0.5, 0.9]),
    AnsweredHit(9, [0, 1, 2], [0.3, 0.2, 0.7]),
    AnsweredHit(7, [3], [1.0]),
    AnsweredHit(7, [0], [0.0]),
]


@pytest.fixture
def record():
    return ArmRecord(LAW, LAW.initial_beliefs([np.ones(4), np.ones(4)], LawParameters()), HITS, TRUTH)


def test_looks_end_with_the_hits_that_bring_their_judgments(record):
    assert (record.judgments, record.checkpoint_count, record.people) == (9, 2, [7, 8, 9])
    assert hit_count_at_each_checkpoint(record, 2) == [2, 4]


def test_scores_are_the_means_of_what_was_said_up_to_the_last_look(record):
    assert replay_arm(record, 2).score == pytest.approx([0.2, 0.2, 0.6, 0.95])
    assert replay_arm(record, 1).score == pytest.approx([0.1, 0.2, 0.5, 0.9])


def test_without_somebody_it_is_as_if_they_had_not_answered(record):
    found = replay_arm(record, 2)
    others = ArmRecord(LAW, record.initial_beliefs, [hit for hit in HITS if hit.annotator != 9], TRUTH)
    alone = replay_arm(others, 1)
    assert found.figures_without_person["pearson"][2, 0] == found.figures["pearson"][0]
    assert found.figures_without_person["pearson"][2, 1] == pytest.approx(
        np.corrcoef(TRUTH, [0.1, 0.2, 0.5, 0.95])[0, 1]
    )
    assert alone.figures["pearson"][0] == found.figures["pearson"][0]
    assert found.has_answered.tolist() == [[True, True], [True, True], [False, True]]
    assert found.people.tolist() == [2, 3]


def test_replaying_changes_nothing_of_the_record(record):
    before = record.initial_beliefs.state.copy()
    assert replay_arm(record, 2).figures["spearman"].tolist() == replay_arm(record, 2).figures["spearman"].tolist()
    assert (record.initial_beliefs.state == before).all()
