"""Best-worst scaling: what a form says, what is refused, and that nothing is ever said of the middle."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.designs.answer import Answer, Form
from app.designs.best_worst import BestWorst
from app.errors import Invalid
from app.inference.online import bounded_ra, trueskill
from app.inference.online.law import LawParameters
from app.record.campaign_law import convert_response_to_hit_of_law
from app.record.responses import Response
from tests.unsaved import unsaved

DESIGN = BestWorst()
ITEMS = [7, 3, 12, 5]
CAMPAIGN = unsaved(design="best_worst", update_law="ra", gamma=0.1, epsilon=0.1, tie_margin_points=50)


def values(form, items=ITEMS):
    return DESIGN.checked_values_in_item_order_or_refuse(DESIGN.parse_answer(Form(form, "form"), items), items)


def outcome(form):
    """Return the values that are stored of a form, or its refusal."""
    try:
        return values(form)
    except Invalid as refusal:
        return refusal


def refused(form):
    with pytest.raises(Invalid) as refusal:
        values(form)
    return refusal.value


def test_a_form_reads_as_one_best_one_worst_and_the_others_between():
    assert values({"best": "3", "worst": " 5 ", "token": "t", "hit": "1"}) == [2.0, 1.0, 2.0, 3.0]
    assert values({"best": "5", "worst": "3"}, [3, 5]) == [3.0, 1.0]


def test_the_same_item_for_both_is_refused_in_the_words_of_the_page():
    refusal = refused({"best": "3", "worst": "3"})
    assert refusal.code == "answer_impossible"
    assert str(refusal) == "Choose one item as “most” and another one as “least”. What you entered is kept."


def test_half_an_answer_and_items_of_other_hits_are_refused(subtests):
    for form, code in (
        ({}, "scores_missing"),
        ({"best": "3"}, "scores_missing"),
        ({"worst": "3", "best": " "}, "scores_missing"),
        ({"best": "3", "worst": "4"}, "scores_unknown"),
        ({"best": "3", "worst": "٥"}, "scores_unknown"),
        ({"best": "-3", "worst": "5"}, "scores_unknown"),
    ):
        with subtests.test(form=form, code=code):
            assert refused(form).code == code


def test_a_program_sends_one_best_and_one_worst_or_is_refused(subtests):
    for places in ([1, 1, 2, 3], [1, 3, 3, 2], [2, 2, 2, 2], [2, 1, 2, 2], [1, 2, 3, 4], [1, 2, 3, 1.5]):
        with subtests.test(places=places):
            with pytest.raises(Invalid) as refusal:
                DESIGN.checked_values_in_item_order_or_refuse(Answer(dict(zip(ITEMS, places, strict=True))), ITEMS)
            assert refusal.value.code in ("answer_impossible", "score_out_of_range")


@given(st.dictionaries(st.sampled_from(["best", "worst", "score-7"]), st.text() | st.sampled_from(["7", "3", " 12"])))
def test_whatever_a_browser_sends_is_an_answer_or_refused_with_a_code(form):
    found = outcome(form)
    if isinstance(found, Invalid):
        assert found.code in ("scores_missing", "scores_unknown", "answer_impossible")
        assert "kept" in str(found) or "Nothing was stored" in str(found)
    else:
        assert sorted(found) == [1.0, 2.0, 2.0, 3.0]


def test_the_middle_is_half_way_in_a_hit_of_any_length():
    for count in (2, 3, 4, 5):
        places = [1.0, *[2.0] * (count - 2), 3.0]
        assert DESIGN.values_to_scale_shares(places) == [1.0, *[0.5] * (count - 2), 0.0]
        assert DESIGN.values_to_points(np.array(places)).tolist() == [100.0, *[50.0] * (count - 2), 0.0]


def test_its_two_words_must_differ():
    with pytest.raises(ValueError, match="different labels"):
        BestWorst(best_label="best", worst_label=" best ")


# What the laws of orders make of it

LAWS = {law.LAW.name: law.LAW for law in (bounded_ra, trueskill)}


def posteriors_after_places(law, places):
    """The posteriors of fresh items after a HIT with these places, as the campaign's law takes it."""
    items = list(range(len(places)))
    hit = convert_response_to_hit_of_law(CAMPAIGN.criteria[0], Response(0, 1, items, places))
    columns = [[number] * len(places) for number in LAWS[law].family.default_prior]
    return list(zip(*LAWS[law].update(*columns, hit.values, CAMPAIGN.criteria[0].law_parameters), strict=True))


def test_a_hit_of_n_is_its_2n_less_3_pairs_and_nothing_else(subtests):
    for places in ([2.0, 1.0, 3.0, 2.0], [2.0, 2.0, 3.0, 2.0, 1.0], [3.0, 1.0]):
        for name, law in LAWS.items():
            with subtests.test(places=places, law=name):
                posteriors = [law.family.default_prior] * len(places)
                pairs = [(i, j) for i, j in combinations(range(len(places)), 2) if places[i] != places[j]]
                assert len(pairs) == 2 * len(places) - 3
                for i, j in pairs:
                    columns = zip(posteriors[i], posteriors[j], strict=True)
                    order = [1.0, 0.0] if places[i] < places[j] else [0.0, 1.0]
                    posteriors[i], posteriors[j] = zip(
                        *law.update(*columns, order, LawParameters(0.1, 0.1)), strict=True
                    )
                assert posteriors_after_places(name, places) == posteriors


def test_ra_moves_the_four_items_as_by_hand():
    # Fresh Beta(1, 1): mode 1/2, variance 1/12; every pair in the order of the page: best, one, other, worst.
    best, one, other, worst = posteriors_after_places("ra", [1.0, 2.0, 2.0, 3.0])
    step = (1 / 12) / math.sqrt(2 * 0.1**2 + 2 / 12)
    surprise = 1 - math.exp(-0.1) / (1 + math.exp(-0.1))
    # The best has beaten three, none of which had won before; the first of them when nothing was known of it.
    assert best[1] == 1.0
    assert best[0] > 1 + step * surprise
    assert one[1] == pytest.approx(1 + step * surprise)
    # Those between have lost to the best and beaten the worst, and nothing is known between them: had they tied, both
    # of their numbers would have grown once more.
    assert other[1] < one[1]
    assert worst[0] == 1.0
    assert min(one[0], other[0]) > 1.0
