"""The order in which items wait for a researcher, and which of them have no majority."""

import numpy as np

from app.analysis.fit_cache import FitCache
from app.analysis.label_queue import build_label_queue, queue_of_estimated_labels
from tests.adjudication.labelled import create_labelled_campaign


def queue_of(votes, confidence):
    ids = [f"v{k}" for k, _ in enumerate(votes)]
    return queue_of_estimated_labels(np.array(votes), np.argmax(votes, axis=1), np.array(confidence), ids)


def test_an_item_has_no_majority_if_half_of_its_votes_or_fewer_agree():
    queue = queue_of([[1, 1, 0], [2, 1, 1], [3, 2, 0], [1, 0, 0], [0, 0, 0]], [0.5, 0.5, 0.5, 0.5, 0.5])
    assert queue.is_disputed.tolist() == [True, True, False, False, False]


def test_items_without_a_majority_come_first_then_the_least_confident_and_unjudged_ones_last():
    queue = queue_of([[0, 0], [3, 0], [2, 1], [1, 1]], [np.nan, 0.9, 0.7, 0.99])
    assert queue.worst_first.tolist() == [3, 2, 1, 0]


def test_among_equally_confident_items_those_with_more_divided_votes_come_first():
    assert queue_of([[3, 1, 0], [2, 1, 1]], [0.8, 0.8]).worst_first.tolist() == [1, 0]
    assert queue_of([[4, 1, 0], [3, 2, 0]], [0.8, 0.8]).worst_first.tolist() == [1, 0]


def test_a_filter_keeps_settled_items_or_the_others():
    queue = queue_of([[3, 0], [1, 1], [2, 2]], [0.9, 0.5, 0.6])
    assert queue.item_numbers("disputed", {2}).tolist() == [1, 2]
    assert queue.item_numbers("open", {2}).tolist() == [1, 0]
    assert queue.item_numbers("settled", {2}).tolist() == [2]
    assert queue.item_numbers("all", {2}).tolist() == [1, 2, 0]
    assert queue.count_disputed_and_settled({0, 2}) == (2, 1)


def test_the_next_item_comes_after_the_present_one_and_after_the_last_the_first():
    queue = queue_of([[3, 0], [1, 1], [2, 2]], [0.9, 0.5, 0.6])
    assert queue.next_open_item_or_none("disputed", (), None) == 1
    assert queue.next_open_item_or_none("disputed", (), 1) == 2
    assert queue.next_open_item_or_none("disputed", (), 2) == 1
    assert queue.next_open_item_or_none("disputed", {1, 2}, 2) is None
    assert queue.next_open_item_or_none("all", {1, 2}, 2) == 0
    assert queue.next_open_item_or_none("settled", {1}, 1) == 2


async def test_a_campaign_s_queue_has_its_votes_and_the_labels_of_the_analysis(app):
    engine = app.state.database
    campaign = await create_labelled_campaign(engine)
    answers = await FitCache().load_answers(engine, campaign.slug)
    queue = build_label_queue(answers)
    assert queue.votes.tolist() == [[4, 0, 0], [1, 2, 1], [0, 3, 1], [1, 2, 1]]
    assert (queue.label[0], queue.label[2]) == (0, 1)
    assert set(queue.worst_first[:2].tolist()) == {1, 3}
    assert queue.number_by_id == {"v0": 0, "v1": 1, "v2": 2, "v3": 3}
    assert {"is_disputed", "worst_first", "number_by_id"} <= {*vars(queue)}  # not left to the event loop
    assert queue.confidence[0] > queue.confidence[1]


async def test_before_the_first_answer_nothing_is_disputed(app):
    engine = app.state.database
    campaign = await create_labelled_campaign(engine, {"ann": [0, 0]})
    empty = await create_labelled_campaign(engine, {"ann": [0, 0]}, name="Empty")
    answers = await FitCache().load_answers(engine, campaign.slug)
    assert not build_label_queue(answers).is_disputed.any()
    assert empty.slug != campaign.slug
