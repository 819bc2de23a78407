"""Halo between criteria, of answers made without a database."""

from dataclasses import replace

import numpy as np
import pytest

from app.analysis.available_methods import available_methods_for_design
from app.analysis.methods import TABLE_METHODS
from app.analysis.result_types import Options
from app.designs.categories import Categories
from app.designs.pairwise import Pairwise
from app.designs.slider import Slider
from app.inference.ground.inestimable import Inestimable
from tests.analysis.answers import answers, crowd_answers, simulated_answers


def halo(made):
    return TABLE_METHODS["halo"].fit(made, Options())


def by_criteria(made, *, alike, others=("fluency",)):
    """Return the same answers by more criteria, whose errors share these parts with those of the first one."""
    rng = np.random.default_rng(4)
    noise = {name: rng.normal(50, 10, len(made.score)) for name in others}
    return replace(
        made,
        scores_by_criterion={"adequacy": made.score}
        | {name: alike * made.score + (1 - alike) * values for name, values in noise.items()},
    )


def test_criteria_judged_as_one_are_warned_of_with_figures_and_code():
    found = halo(by_criteria(crowd_answers(), alike=0.9))
    ((one, other, within, low, high, judgments, means, *_, items),) = found.rows
    assert (one, other, judgments, items) == ("adequacy", "fluency", 240, 12)
    assert 0.9 < low < within < high <= 1
    assert means > 0.99
    assert found.verdict == "These criteria were hardly judged separately: “adequacy” and “fluency”."
    (note,) = found.notes
    assert note.code == "halo"
    assert "(correlation .9".replace(".9", "0.9") in note


def test_criteria_judged_apart_are_said_to_be():
    found = halo(by_criteria(crowd_answers(), alike=0.0))
    assert abs(found.rows[0][2]) < 0.2
    assert (
        found.verdict
        == "The criteria were judged separately: within items, no two of them have a correlation of 0.5 or more."
    )
    assert found.notes == ()


def test_each_two_criteria_have_a_row():
    found = halo(by_criteria(crowd_answers(), alike=0.0, others=("fluency", "style")))
    pairs = [("adequacy", "fluency"), ("adequacy", "style"), ("fluency", "style")]
    assert [row[:2] for row in found.rows] == pairs


def test_each_two_of_twelve_labels_have_an_interval():
    labels = tuple(f"label {k}" for k in range(11))
    found = halo(by_criteria(crowd_answers(), alike=0.0, others=labels))
    assert len(found.rows) == 66
    assert all(low < within < high for _, _, within, low, high, *_ in found.rows)


def test_few_answers_are_no_reason_to_warn_and_say_so():
    found = halo(by_criteria(answers([(0, {0: 10.0, 1: 50.0}), (1, {0: 30.0, 1: 80.0})]), alike=1.0))
    assert found.verdict == ""
    assert [note.code for note in found.notes] == ["too_few_for_halo"]


def test_where_nothing_moves_nothing_can_move_together():
    same = answers([(who, dict.fromkeys(range(6), 50.0)) for who in range(6)])
    found = halo(by_criteria(same, alike=1.0))
    assert found.rows[0][2] is None
    assert [note.code for note in found.notes] == ["no_halo_figure"]


def test_one_criterion_has_no_other():
    with pytest.raises(Inestimable) as refusal:
        halo(crowd_answers())
    assert refusal.value.code == "one_criterion"


def test_the_company_of_an_item_in_an_order_is_no_halo():
    # Item 0 beats item 1 by both criteria and loses to item 2 by both, for every annotator.
    hits = [(who, {0: 100.0, 1: 0.0}) for who in range(8)] + [(who, {0: 0.0, 2: 100.0}) for who in range(8)]
    # Two people disagree with all others by one criterion, two others by the other.
    one, other = (turned([50.0 * 2, 0.0] * 8 + [0.0, 100.0] * 8, which) for which in ((0, 8), (1, 9)))
    made = answers(hits, value_kind="order", score=one)
    found = halo(replace(made, scores_by_criterion={"adequacy": one, "fluency": other}))
    assert found.rows[0][2] == pytest.approx(-1 / 7)
    assert found.rows[0][5] == 16
    assert "same_items_side_by_side" in [note.code for note in found.notes]


def turned(scores, hits):
    """Return the scores with reversed order in some HITs of two items."""
    pairs = np.reshape(scores, (-1, 2))
    pairs[[*hits]] = pairs[[*hits], ::-1]
    return pairs.ravel()


def test_orders_have_halo_where_the_same_pairs_are_judged_again():
    found = halo(by_criteria(simulated_answers(Pairwise(), hits=400, n_items=5), alike=1.0))
    assert found.rows[0][2] == pytest.approx(1.0)


def test_labels_without_an_order_have_none():
    assert "halo" in available_methods_for_design(Slider()).tables
    assert "halo" not in available_methods_for_design(Categories(labels=("a", "b"))).tables
