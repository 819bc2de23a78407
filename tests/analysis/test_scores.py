"""Scores by every method, and two of them side by side."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.analysis import pairwise_tables, scores
from app.analysis.methods import SCORE_METHODS
from app.analysis.result_types import Scores
from app.analysis.score_tables import scores_and_interval_ends
from app.analysis.scores import compare_scores_by_correlation
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import moderated_means_of_tally
from tests.analysis.answers import OFFERED, answers, crowd_answers
from tests.inference.beliefs import posteriors_after
from tests.laws import SCORE_LAWS

TWO = [(0, {0: 80.0, 1: 20.0}), (1, {1: 40.0, 0: 60.0})]
ALL_TIES = [(0, {0: 50.0, 1: 50.0}), (1, {0: 50.0, 1: 50.0})]


@cache
def scores_of_crowd(method: str) -> Scores:
    """Return the scores that a method finds in the crowd's answers; some take seconds, and several tests read them."""
    return SCORE_METHODS[method].fit(crowd_answers())


def test_every_update_law_is_a_method():
    assert {law.name for law in ONLINE_LAWS.values() if not law.family.counts_classes} <= set(SCORE_METHODS)


def test_every_method_finds_the_order_that_annotators_saw(subtests):
    for name in OFFERED.scores:
        with subtests.test(name=name):
            found = scores_of_crowd(name)
            assert np.argsort(found.values)[[0, -1]].tolist() == [0, 11]
            assert np.corrcoef(np.argsort(np.argsort(found.values)), np.arange(12))[0, 1] > 0.95
            assert found.has_judgments.all()


def test_an_interval_holds_its_score(subtests):
    for name in OFFERED.scores:
        with subtests.test(name=name):
            found = scores_of_crowd(name)
            if found.low is not None:
                assert found.high is not None
                assert (found.low <= found.values + 1e-12).all()
                assert (found.values <= found.high + 1e-12).all()
                assert (found.low < found.high).all()


def test_trueskill_says_how_far_its_intervals_are_off_as_annotators_disagreement_tells():
    made = crowd_answers()
    found = SCORE_METHODS["trueskill"].fit(made)
    told = moderated_means_of_tally(
        Tally.empty(12).with_judgments_added(made.item, made.annotator, made.scores_between_0_and_1)
    )
    share, times = told.expected_coverage_and_width_ratio(*scores_and_interval_ends(found)[1:])
    assert f"about {100 * share:.0f} in 100 of its intervals contain" in found.notes[0]
    assert (f"{times:.1f} times as wide" if abs(times - 1) >= 0.05 else "about as wide") in found.notes[0]
    assert share < 0.9  # an error of 8 points is more than it believes in


def test_trueskill_says_nothing_of_its_intervals_while_no_two_annotators_differ():
    assert SCORE_METHODS["trueskill"].fit(answers(ALL_TIES)).notes == ()


def test_the_same_answers_get_the_same_scores_and_intervals(subtests):
    for name in OFFERED.scores:
        with subtests.test(name=name):
            one, again = scores_of_crowd(name), SCORE_METHODS[name].fit(crowd_answers())
            np.testing.assert_array_equal(one.values, again.values)
            np.testing.assert_array_equal(
                one.low if one.low is not None else [], again.low if again.low is not None else []
            )


def test_an_item_that_nobody_judged_has_no_score_and_a_note(subtests):
    for name in OFFERED.scores:
        with subtests.test(name=name):
            found = SCORE_METHODS[name].fit(with_one_unseen(crowd_answers()))
            assert np.isnan(found.values[12])
            assert found.has_judgments.tolist() == [True] * 12 + [False]
            assert found.low is None or np.isnan(found.low[12])
            assert found.notes


def with_one_unseen(made):
    names, ones = [*made.ids, "never"], np.ones((2, 13))
    return replace(made, ids=names, shown=names, systems=[None] * 13, segments=[None] * 13, prior=ones)


def test_before_the_first_answer_every_method_says_so(subtests):
    for name in OFFERED.scores:
        with subtests.test(name=name):
            with pytest.raises(Inestimable, match="no judgments") as refusal:
                SCORE_METHODS[name].fit(answers([], n_items=3))
            assert refusal.value.code == "no_judgments"


def test_mean_and_median_are_in_points():
    made = answers([*TWO, (2, {0: 100.0, 1: 0.0})])
    assert scores.mean_scores(made).values.tolist() == [80.0, 20.0]
    assert scores.median_scores(made).values.tolist() == [80.0, 20.0]
    assert scores.median_scores(answers(TWO)).values.tolist() == [70.0, 30.0]


def test_the_median_says_when_it_rounds():
    assert scores.median_scores(answers([(0, {0: 50.4})])).notes[0] == "Scores were rounded to whole points."


@pytest.mark.parametrize("name", ["mean", "ordinal_median", "z_scores"])
def test_direct_assessment_has_an_interval_and_an_error_for_every_item_judged_cut_to_the_scale(name):
    found = SCORE_METHODS[name].fit(answers([*TWO, (2, {0: 100.0, 1: 0.0}), (2, {2: 50.0})]))
    assert found.low is not None
    assert found.high is not None
    assert found.standard_error is not None
    assert (found.low < found.high).all()
    assert (found.standard_error > 0).all()
    assert name == "z_scores" or (found.low[1], found.high[0]) == (0.0, 100.0)


def test_shrunken_means_lie_between_the_mean_of_an_item_and_those_of_the_others():
    made = answers([(0, {0: 90.0, 1: 40.0, 2: 30.0, 3: 50.0}), (1, {0: 100.0, 1: 60.0, 2: 50.0, 3: 50.0})])
    plain, found = scores.mean_scores(made), SCORE_METHODS["shrunken_mean"].fit(made)
    assert 50 < found.values[0] < plain.values[0]
    assert plain.values[2] < found.values[2] < 50
    assert found.low is not None
    assert found.high is not None
    assert ((found.low < found.values) & (found.values < found.high)).all()


def test_there_are_no_shrunken_means_while_nothing_tells_how_far_annotators_differ():
    with pytest.raises(Inestimable) as refused:
        SCORE_METHODS["shrunken_mean"].fit(answers([(0, {0: 90.0, 1: 40.0}), (1, {0: 90.0, 1: 40.0})]))
    assert refused.value.code == "nothing_varies"


def test_z_scores_take_out_strictness():
    made = answers([(0, {0: 10.0, 1: 20.0, 2: 30.0}), (1, {0: 60.0, 1: 70.0, 2: 80.0})])
    assert scores.z_scores(made).values == pytest.approx([-1.0, 0.0, 1.0])


def test_annotators_without_z_scores_are_named_in_a_note_and_their_items_still_count_as_judged():
    made = answers([(0, {0: 10.0, 1: 20.0}), (1, {2: 50.0, 1: 50.0})])
    found = scores.z_scores(made)
    assert found.has_judgments.tolist() == [True, True, True]
    assert np.isnan(found.values[2])
    assert any("always gave the same score" in note for note in found.notes)


@pytest.mark.parametrize("name", ["easl", "ra", "easl-aware"])
def test_a_beta_posteriors_interval_is_said_to_tell_how_much_was_asked_and_is_wider_than_the_means(name):
    found = SCORE_METHODS[name].fit(crowd_answers())
    (_, low, high), (_, mean_low, mean_high) = (
        scores_and_interval_ends(one) for one in (found, SCORE_METHODS["mean"].fit(crowd_answers()))
    )
    assert any("the number of judgments, not how much people agree" in note for note in found.notes)
    assert (100 * (high - low) > mean_high - mean_low).all()


def test_easl_adds_the_scores_to_both_counts():
    found = scores.make_online_score_function("easl")(answers(TWO))
    assert scores.stored_or_replayed_final_state(SCORE_LAWS["easl"], answers(TWO))[0].tolist() == pytest.approx(
        [2.4, 1.6]
    )
    assert found.values == pytest.approx([70, 30])  # points: modes of Beta(2.4, 1.6) and Beta(1.6, 2.4)


def test_a_campaigns_own_law_has_the_stored_posteriors(subtests):
    for name in SCORE_LAWS:
        with subtests.test(name=name):
            state = np.array([[5.0, 2.0], [2.0, 5.0]])
            made = answers(TWO, law=name, state=state)
            np.testing.assert_allclose(
                scores.make_online_score_function(name)(made).values, 100 * SCORE_LAWS[name].family.score(*state)
            )


def test_another_law_is_replayed_with_the_campaigns_parameters(subtests):
    for name in SCORE_LAWS:
        with subtests.test(name=name):
            made = crowd_answers(
                law="trueskill" if name == "easl" else "easl", parameters=LawParameters(gamma=0.3, tie_margin=0.05)
            )
            state = posteriors_after(
                SCORE_LAWS[name], 12, scores.answered_hits(made, made.scores_between_0_and_1), made.parameters
            )
            np.testing.assert_allclose(
                scores.make_online_score_function(name)(made).values, 100 * SCORE_LAWS[name].family.score(*state)
            )


def test_hits_are_those_of_the_answers_with_who_gave_them_and_scores_from_0_to_1():
    made = answers(TWO)
    assert scores.answered_hits(made, made.scores_between_0_and_1) == [
        AnsweredHit(0, [0, 1], [0.8, 0.2]),
        AnsweredHit(1, [1, 0], [0.4, 0.6]),
    ]


def test_priors_are_the_campaigns_where_the_law_can_start_from_them():
    made = answers(TWO, prior=np.array([[3.0, 1.0], [2.0, 1.0]]))
    assert scores.campaign_or_default_prior_state(SCORE_LAWS["ra"], made).tolist() == [[3.0, 1.0], [2.0, 1.0]]
    assert scores.campaign_or_default_prior_state(SCORE_LAWS["trueskill"], made).tolist() == [
        [0.5, 0.5],
        [1 / 12, 1 / 12],
    ]


def test_a_law_that_learns_refuses_more_hits_than_it_can_replay(monkeypatch):
    monkeypatch.setattr(scores, "MAX_HITS_TO_REPLAY", 1)
    with pytest.raises(Inestimable, match="too many") as refusal:
        scores.make_online_score_function("easl-aware")(answers(TWO))
    assert refusal.value.code == "too_many_hits"
    own = answers(TWO, law="easl-aware", state=np.array([[2.0, 1.0], [1.0, 2.0]]))
    assert np.isfinite(scores.make_online_score_function("easl-aware")(own).values).all()


def test_a_hit_of_n_items_is_all_its_pairs_and_the_tie_margin_makes_ties():
    made = answers([(0, {0: 10.0, 1: 14.0, 2: 90.0})], parameters=LawParameters(tie_margin=0.05))
    first, second, outcomes, hits = pairwise_tables.preference_pair_columns(made)
    assert list(zip(first, second, outcomes, hits, strict=True)) == [(0, 1, 0, 0), (0, 2, -1, 0), (1, 2, -1, 0)]


def test_bradley_terry_says_that_pairs_of_one_hit_are_not_independent():
    assert pairwise_tables.DEPENDENT_PAIRS_NOTE in SCORE_METHODS["bradley_terry"].fit(crowd_answers()).notes
    assert pairwise_tables.DEPENDENT_PAIRS_NOTE not in SCORE_METHODS["bradley_terry"].fit(answers(TWO)).notes


def test_groups_that_were_never_compared_are_named_by_the_items_ids():
    found = SCORE_METHODS["bradley_terry"].fit(answers([(0, {0: 80.0, 1: 20.0}), (1, {2: 60.0, 3: 40.0})]))
    assert any("items “i0” and “i1”; items “i2” and “i3”" in note for note in found.notes)


def test_all_ties_leave_no_width_to_estimate_and_say_so():
    with pytest.raises(Inestimable) as refusal:
        SCORE_METHODS["rao_kupper"].fit(answers(ALL_TIES))
    assert refusal.value.code == "all_ties"
    assert SCORE_METHODS["bradley_terry"].fit(answers(ALL_TIES)).values.tolist() == [0.0, 0.0]


def test_elo_has_no_intervals_where_there_are_too_many_pairs(monkeypatch):
    monkeypatch.setattr(pairwise_tables, "MAX_ELO_PAIRS_IN_RESAMPLES", 100)
    found = pairwise_tables.elo_scores_with_bootstrap_intervals(crowd_answers())
    assert found.low is None
    assert "360 pairs are too many to resample, so there are no intervals." in found.notes


def test_expected_wins_stay_chances_in_per_cent():
    found = SCORE_METHODS["expected_wins"].fit(crowd_answers())
    assert found.low is not None
    assert found.high is not None
    assert found.low.min() >= 0.0
    assert 2.0 < found.high.max() <= 100.0


def test_scores_side_by_side_have_all_four_figures_with_intervals():
    made = crowd_answers()
    one = scores.mean_scores(made)
    higher = one.values + 12.0 * (np.arange(12) == 0)  # above its neighbour: where no order differs nothing varies
    found = compare_scores_by_correlation(made, one, replace(one, values=higher))
    assert [figure.name for figure in found.figures] == ["spearman", "pearson", "kendall", "ndcg"]
    assert found.n == 12
    for figure in found.figures:
        low, value, high = (number or 0.0 for number in (figure.low, figure.value, figure.high))
        assert low > 0.8
        assert low - 1e-9 <= value <= high + 1e-9


def test_two_constant_scores_have_no_correlation_and_a_note_not_nan():
    made = answers(ALL_TIES)
    found = compare_scores_by_correlation(made, scores.mean_scores(made), scores.mean_scores(made))
    assert {figure.name: figure.value for figure in found.figures}["spearman"] is None
    assert any("equal" in note for note in found.notes)


def test_a_single_common_item_is_too_few_and_the_comparison_says_so():
    made = answers(TWO)
    one = scores.mean_scores(made)
    found = compare_scores_by_correlation(made, one, replace(one, values=np.array([1.0, np.nan])))
    assert (found.n, found.figures) == (1, ())
    assert "at least two items" in found.refusal
