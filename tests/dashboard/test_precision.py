"""The typical interval as answers came in: exact at every point, and the same however the responses come in pieces."""

import numpy as np
import pytest

from app.dashboard import precision
from app.dashboard.precision import (
    MAX_CURVE_POINTS,
    initial_precision,
    item_annotator_and_value_columns_of_hits,
    median_interval_half_width,
    precision_after_hits,
)
from app.inference.observations.tally import Tally
from app.inference.online.easl import LAW as EASL
from app.inference.online.law import AnsweredHit
from app.inference.ratings.moderated_means import moderated_means_of_tally

ITEMS = 7


def hits_of(count, *, items=ITEMS, size=3, seed=1):
    """Return HITs that five people answer in turn."""
    rng = np.random.default_rng(seed)
    return [
        AnsweredHit(k % 5, rng.choice(items, size, replace=False).tolist(), (rng.integers(0, 101, size) / 100).tolist())
        for k in range(count)
    ]


def each_by_another(*judgments):
    """Return HITs with these items and values, each by another annotator."""
    return [AnsweredHit(who, *judged) for who, judged in enumerate(judgments, start=1)]


def after(hits):
    return precision_after_hits(initial_precision(EASL, ITEMS), hits)


def same(one, two):
    return (one.answers, one.step, one.typical_intervals, one.response_counts_and_median_half_widths()) == (
        two.answers,
        two.step,
        two.typical_intervals,
        two.response_counts_and_median_half_widths(),
    )


def test_the_same_in_any_pieces(subtests):
    for count in (0, 1, 59, 60, 61, 119, 120, 121, 500):
        with subtests.test(count=count):
            hits = hits_of(count)
            whole, one_by_one = after(hits), initial_precision(EASL, ITEMS)
            for hit in hits:
                one_by_one = precision_after_hits(one_by_one, [hit])
            assert same(whole, one_by_one)
            first = precision_after_hits(initial_precision(EASL, ITEMS), hits[:73], total=count)
            assert same(whole, precision_after_hits(first, hits[73:]))
            assert len(whole.typical_intervals) <= MAX_CURVE_POINTS


def test_every_point_is_that_of_the_judgments_until_then():
    hits = hits_of(130)
    points = after(hits).response_counts_and_median_half_widths()
    assert [answers for answers, _ in points] == [*range(0, 129, 4), 130]
    for answers, value in points:
        told = moderated_means_of_tally(
            Tally.empty(ITEMS).with_judgments_added(*item_annotator_and_value_columns_of_hits(hits[:answers]))
        )
        assert value == median_interval_half_width(told)


@pytest.mark.parametrize(("items", "most"), [(300, 50), (3_000, 15), (30_000, 0)])
def test_the_early_course_of_a_large_campaign_is_found_without_looking_at_its_items(items, most, monkeypatch):
    looks, hits = [], hits_of(400, items=items, size=5, seed=4)
    told = [
        median_interval_half_width(
            moderated_means_of_tally(
                Tally.empty(items).with_judgments_added(*item_annotator_and_value_columns_of_hits(hits[:answers]))
            )
        )
        for answers in range(0, 401, 8)
    ]

    def counting(tally):
        looks.append(1)
        return moderated_means_of_tally(tally)

    monkeypatch.setattr(precision, "moderated_means_of_tally", counting)
    assert precision_after_hits(
        initial_precision(EASL, items), hits, total=400
    ).response_counts_and_median_half_widths() == list(zip(range(0, 401, 8), told, strict=True))
    assert len(looks) <= most


def test_the_typical_interval_is_half_the_width_of_the_median_items_in_points():
    # Items 0 to 3 are judged by two, each .2 apart, item 4 by nobody: 2 * .01 of 4 degrees of freedom, t = 2.776.
    known = precision_after_hits(
        initial_precision(EASL, 5), each_by_another(([0, 1, 2, 3], [0.4] * 4), ([0, 1, 2, 3], [0.6] * 4))
    )
    error = np.sqrt(0.02 / 2)
    assert median_interval_half_width(known.intervals) == pytest.approx(100 * 2.776445 * error)


def test_where_half_of_the_items_are_unknown_it_is_half_of_the_scale():
    assert initial_precision(EASL, 4).response_counts_and_median_half_widths() == [(0, 50.0)]
    hits = each_by_another(([0], [0.4]), ([0], [0.6]), ([0], [0.5]), ([0], [0.5]))
    assert precision_after_hits(initial_precision(EASL, 1), hits).response_counts_and_median_half_widths()[-1][1] < 15
    assert precision_after_hits(initial_precision(EASL, 3), hits).response_counts_and_median_half_widths()[-1][1] == 50


def test_going_on_leaves_what_was_known_before_as_it_was():
    before, kept = after(hits_of(10)), after(hits_of(10))
    precision_after_hits(before, hits_of(80, seed=2))
    assert same(before, kept)
