import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from app.inference.ground.arrays import Array
from app.inference.observations.comparisons import is_tie
from app.inference.online import trueskill
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import (
    AnsweredHit,
    Law,
    LawParameters,
)
from app.inference.online.state_queries import (
    run_law,
)
from tests.inference.beliefs import Stored, as_text, begun, replayed
from tests.laws import OF_POINTS

ITEMS = 12
tuned = LawParameters(gamma=0.2, epsilon=0.05, tie_margin=0.02)


@st.composite
def hits(draw):
    items = draw(st.lists(st.integers(0, ITEMS - 1), min_size=1, max_size=10, unique=True))
    scores = draw(st.lists(st.integers(0, 100), min_size=len(items), max_size=len(items)))
    return AnsweredHit(draw(st.integers(0, 3)), items, [score / 100 for score in scores])


def columns(law: Law, items: int = ITEMS) -> list[Array]:
    return [np.full(items, number) for number in law.family.default_prior]


def after(law: Law, answers: list[AnsweredHit], items: int = ITEMS) -> Array:
    return replayed(law, items, answers, tuned)


def campaign(
    seed: int, items: int = 100, per_hit: int = 5, judgments: int = 10, noise_sd: float = 0.15
) -> tuple[Array, list[AnsweredHit]]:
    """Every item is scored `judgments` times, its true score plus noise, in HITs drawn at random; twenty people answer
    in turn.
    """
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=items)
    answers: list[AnsweredHit] = []
    for _ in range(judgments):
        for shown in rng.permutation(items).reshape(-1, per_hit):
            scores = np.clip(truth[shown] + rng.normal(0, noise_sd, per_hit), 0, 1).round(2)
            answers.append(AnsweredHit(len(answers) % 20, shown.tolist(), scores.tolist()))
    return truth, answers


def spearman_of(law: Law, truth: Array, answers: list[AnsweredHit]) -> float:
    scores = law.family.score(*replayed(law, len(truth), answers))
    return float(spearmanr(scores, truth).statistic)


def one_update_after_another(law: ItemLaw, answers: list[AnsweredHit], items: int = ITEMS) -> list[list[float]]:
    """As a live server does it: every posterior is read from its row and written back to it."""
    live = [law.family.default_prior] * items
    for _, shown, scores in answers:
        numbers = law.update(*zip(*(live[item] for item in shown), strict=True), scores, tuned)
        for item, posterior in zip(shown, zip(*numbers, strict=True), strict=True):
            live[item] = posterior
    return [list(column) for column in zip(*live, strict=True)]


def test_the_registry_has_the_laws_of_scores():
    assert OF_POINTS.keys() == {"easl", "ra", "trueskill", "easl-aware"}


def test_the_default_prior_is_a_valid_one(law):
    assert law.family.is_valid_prior(*law.family.default_prior)
    assert len(law.family.default_prior) == len(law.family.parameter_names)


def test_a_law_can_be_sent_to_another_process(law):
    assert pickle.loads(pickle.dumps(law)) == law


@pytest.mark.parametrize("name", ["easl", "ra", "trueskill"])
@given(st.lists(hits(), max_size=15))
def test_replay_gives_the_bits_of_one_update_after_another(name, answers):
    law = OF_POINTS[name]
    assert isinstance(law, ItemLaw)
    assert after(law, answers).tolist() == one_update_after_another(law, answers)


def test_many_hits_of_few_items_replay_to_the_bits_of_one_update_after_another(item_law):
    _, answers = campaign(seed=5, items=20, judgments=400)
    assert after(item_law, answers, 20).tolist() == one_update_after_another(item_law, answers, 20)


@pytest.mark.parametrize("name", OF_POINTS)
@given(st.lists(hits(), max_size=12), st.integers(0, 12))
@settings(max_examples=30)
def test_a_replay_has_the_same_bits_in_any_pieces(name, answers, cut):
    beliefs = begun(OF_POINTS[name], ITEMS, tuned)
    beliefs.apply_hits(answers[:cut])
    for answer in answers[cut:]:
        beliefs.apply_hits([answer])
    assert beliefs.state.tolist() == after(OF_POINTS[name], answers).tolist()


def test_steps_tell_what_each_hit_changed_in_plain_floats_and_end_where_a_replay_does(law):
    _, answers = campaign(seed=6, items=20, judgments=4)
    beliefs, told = begun(law, 20, tuned), np.array(columns(law, 20))
    for answer, change in zip(answers, beliefs.iterate_changes(answers), strict=True):
        assert list(change.items[:5]) == answer.items
        assert {type(number) for column in change.state for number in column} == {float}
        told[:, list(change.items)] = change.state
    assert told.tolist() == beliefs.state.tolist() == after(law, answers, 20).tolist()


def test_a_campaign_whose_state_was_stored_after_every_hit_has_the_bits_of_its_replay(law):
    _, answers = campaign(seed=7, items=20, judgments=8)
    beliefs, stored = begun(law, 20, tuned), Stored(law, begun(law, 20, tuned), tuned)
    for answer in answers:
        stored.take(answer)
    beliefs.apply_hits(answers)
    assert stored.state == beliefs.state.tolist()
    assert stored.kept() == as_text(beliefs.to_law_state())


def test_a_copy_goes_its_own_way(law):
    _, answers = campaign(seed=8, items=20, judgments=4)
    beliefs = begun(law, 20, tuned)
    beliefs.apply_hits(answers[:8])
    copy, before = beliefs.copy(), (beliefs.state.tolist(), as_text(beliefs.to_law_state()))
    copy.apply_hits(answers[8:])
    assert (beliefs.state.tolist(), as_text(beliefs.to_law_state())) == before
    assert copy.state.tolist() == after(law, answers, 20).tolist()


def test_laws_of_items_keep_nothing_and_do_not_care_who_answered(item_law):
    _, answers = campaign(seed=9, items=20, judgments=4)
    beliefs = begun(item_law, 20, tuned)
    beliefs.apply_hits([answer._replace(annotator=1) for answer in answers])
    assert beliefs.state.tolist() == after(item_law, answers, 20).tolist()
    assert as_text(beliefs.to_law_state()) == {"campaign": None, "annotators": {}, "items": {}}
    assert (item_law.layout, item_law.read_judgment_weights(0)) == (0, None)


def test_a_law_that_keeps_more_than_posteriors_says_which_version_of_it(law):
    beliefs = begun(law, 20, tuned)
    beliefs.apply_hits(campaign(seed=9, items=20, judgments=1)[1])
    assert (law.layout > 0) == (beliefs.to_law_state().campaign is not None)


def test_what_each_judgment_counts_for_is_told_from_what_is_stored(law):
    _, answers = campaign(seed=7, items=20, judgments=8)
    stored = Stored(law, begun(law, 20, tuned), tuned)
    for answer in answers:
        stored.take(answer)
    for item in range(20):
        if asking := law.read_judgment_weights(item):
            weights, values = run_law(asking, stored.answer)
            assert len(weights) == len(values) == 8
            assert all(0 <= number <= 1 for number in weights + values)


def test_estimates_of_a_hit_have_the_bits_of_score_and_variance(law):
    family = law.family
    state = after(law, [AnsweredHit(1, [0, 1, 2], [0.2, 0.9, 0.9]), AnsweredHit(2, [1, 2, 5], [0.0, 1.0, 0.3])])
    scores, variances = family.scores_and_variances(*state)
    assert (scores, variances) == (family.score(*state).tolist(), family.variance(*state).tolist())
    assert family.scores_and_variances(*state.tolist()) == (scores, variances)
    assert {type(value) for value in scores + variances} == {float}


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_estimates_of_a_posterior_that_cannot_be_are_refused(law, bad):
    with pytest.raises(ValueError, match="must be finite"):
        law.family.scores_and_variances([1.0, 1.0], [1.0, bad])


def test_replay_leaves_the_priors_alone(law):
    priors = columns(law)
    law.initial_beliefs(priors, tuned).apply_hits([AnsweredHit(1, [0, 1], [0.2, 0.9])])
    assert np.array_equal(priors, columns(law))


def test_replay_of_nothing_gives_the_priors(law):
    assert tuple(after(law, [])[:, 3]) == law.family.default_prior


def test_numpy_in_plain_floats_out_with_the_same_bits(item_law):
    state = columns(item_law, 5)
    scores = np.array([0.0, 0.25, 0.5, 0.5, 1.0])
    from_arrays = item_law.update(*state, scores, tuned)
    assert from_arrays == item_law.update(*(column.tolist() for column in state), scores.tolist(), tuned)
    assert {type(value) for column in from_arrays for value in column} == {float}


def test_an_update_leaves_its_arguments_alone(item_law):
    state = [column.tolist() for column in columns(item_law, 3)]
    item_law.update(*state, [0.1, 0.2, 0.3], tuned)
    assert list(zip(*state, strict=True)) == [item_law.family.default_prior] * 3


def test_a_higher_score_ends_higher(law):
    scores = law.family.score(*replayed(law, 3, [AnsweredHit(1, [0, 1, 2], [0.9, 0.1, 0.5])]))
    assert scores[0] > scores[2] > scores[1]


def test_every_law_reads_arrays_of_posteriors(law):
    family, state = law.family, columns(law, 4)
    low, high = family.interval(*state)
    assert family.score(*state).shape == family.variance(*state).shape == low.shape == high.shape == (4,)
    assert (low < family.score(*state)).all()
    assert (family.score(*state) < high).all()
    x = np.linspace(-10, 10, 100_001)
    curves = family.density(*(column[:, None] for column in state), x)
    assert np.trapezoid(curves, x) == pytest.approx(np.ones(4), abs=1e-3)


def test_states_one_by_one_become_columns_even_if_there_are_none(law):
    numbers = len(law.family.parameter_names)
    assert law.family.stack_states([law.family.default_prior] * 3).tolist() == np.array(columns(law, 3)).tolist()
    assert law.family.stack_states([]).shape == (numbers, 0)


@pytest.mark.parametrize("scores", [[], [0.5], [0.5, 0.5, 0.5]])
def test_a_hit_without_one_score_per_item_is_refused(item_law, scores):
    with pytest.raises(ValueError, match="one score per item"):
        item_law.update([1.0, 1.0], [1.0, 1.0], scores, tuned)


def test_an_empty_hit_is_refused(item_law):
    with pytest.raises(ValueError, match="one score per item"):
        item_law.update([], [], [], tuned)


def test_half_a_posterior_is_refused(item_law):
    with pytest.raises(ValueError, match="a posterior is a pair"):
        item_law.update([1.0, 1.0], [1.0], [0.5, 0.5], tuned)


@pytest.mark.parametrize("score", [-0.01, 1.01, 50, float("nan"), float("inf")])
def test_a_score_outside_the_scale_is_refused(item_law, score):
    with pytest.raises(ValueError, match="between 0 and 1"):
        item_law.update([1.0, 1.0], [1.0, 1.0], [0.5, score], tuned)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_posterior_that_cannot_be_is_refused(item_law, bad):
    with pytest.raises(ValueError, match="must be finite"):
        item_law.update([1.0, 1.0], [1.0, bad], [0.5, 0.5], tuned)


def test_a_mean_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="mu must be finite"):
        trueskill.update([0.5, float("nan")], [1.0, 1.0], [0.5, 0.5], tuned)


def refused(law: Law, *answers: AnsweredHit, match: str) -> None:
    """Applied all at once, and one by one."""
    with pytest.raises(ValueError, match=match):
        begun(law, ITEMS, tuned).apply_hits(answers)
    with pytest.raises(ValueError, match=match):
        list(begun(law, ITEMS, tuned).iterate_changes(answers))


@pytest.mark.parametrize("items", [[0, ITEMS], [-1, 0]])
def test_an_unknown_item_is_refused(law, items):
    refused(law, AnsweredHit(1, items, [0.1, 0.2]), match="item numbers")


@pytest.mark.parametrize("scores", [[], [0.1], [0.1, 0.5, 0.5]])
def test_replaying_a_hit_without_one_score_per_item_is_refused(law, scores):
    refused(law, AnsweredHit(1, [0, 1], [0.5, 0.5]), AnsweredHit(1, [0, 1], scores), match="one score per item")


@pytest.mark.parametrize("score", [-0.01, 1.01, 50, float("nan"), float("inf")])
def test_replaying_a_score_outside_the_scale_is_refused(law, score):
    refused(law, AnsweredHit(1, [0, 1], [0.5, 0.5]), AnsweredHit(1, [0, 1], [0.1, score]), match="between 0 and 1")


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_replaying_priors_that_cannot_be_is_refused(law, bad):
    priors = columns(law)
    priors[1][3] = bad
    with pytest.raises(ValueError, match="must be finite"):
        law.initial_beliefs(priors, tuned)


def test_an_item_twice_in_a_hit_is_refused(law):
    refused(law, AnsweredHit(1, [3, 3], [0.1, 0.2]), match="twice")


def test_replaying_an_empty_hit_is_refused(law):
    refused(law, AnsweredHit(1, [], []), match="one score per item")


def test_priors_of_unlike_shapes_are_refused(law):
    with pytest.raises(ValueError, match="lengths 2, 3"):
        law.initial_beliefs([np.ones(2), np.ones(3)], tuned)
    with pytest.raises(ValueError, match="shape"):
        law.initial_beliefs([np.ones((2, 2)), np.ones((2, 2))], tuned)


@pytest.mark.parametrize("many", [0, 1, 3])
def test_priors_of_too_few_or_too_many_numbers_are_refused(law, many):
    with pytest.raises(ValueError, match="a posterior is " + " and ".join(law.family.parameter_names)):
        law.initial_beliefs([np.ones(2)] * many, tuned)


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        *(("gamma", bad) for bad in (0.0, -0.1, float("nan"), float("inf"))),
        *(("epsilon", bad) for bad in (-0.1, float("nan"), float("inf"))),
        *(("tie_margin", bad) for bad in (-0.1, 1.1, float("nan"))),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(setting, bad):
    with pytest.raises(ValueError, match=setting):
        LawParameters(**{setting: bad})


def test_the_parameters_are_the_papers_by_default():
    assert LawParameters() == LawParameters(gamma=0.1, epsilon=0.1, tie_margin=0.0)


def test_scores_exactly_the_margin_apart_are_a_tie_whatever_their_rounding():
    assert 0.55 - 0.50 > 0.05
    for low in range(96):
        assert is_tie((low + 5) / 100, low / 100, 0.05)
        assert is_tie(low / 100, (low + 5) / 100, 0.05)
        assert not is_tie((low + 5) / 100, low / 100, 0.04)


def test_without_a_margin_only_equal_scores_are_a_tie():
    assert is_tie(0.3, 0.1 + 0.2, 0.0)
    assert not is_tie(0.30, 0.31, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_easl_recovers_true_scores_as_well_as_noise_allows(seed):
    truth, answers = campaign(seed)
    # The mean of 10 noisy scores correlates with uniform truth by sqrt(signal / (signal + noise)); less
    # four standard errors of a correlation over 100 items, (1 - r^2) / sqrt(100).
    r = ((1 / 12) / (1 / 12 + 0.15**2 / 10)) ** 0.5
    assert spearman_of(OF_POINTS["easl"], truth, answers) > r - 4 * (1 - r * r) / 10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["ra", "trueskill"])
def test_rank_laws_recover_the_order_at_least_as_well_as_counting_wins(name, seed):
    truth, answers = campaign(seed)
    wins = np.zeros(len(truth))
    for _, items, scores in answers:
        ahead = np.sign(np.subtract.outer(scores, scores))
        wins[items] += ahead.sum(axis=1)
    # Less one standard error of a correlation near 0.95 over 100 items.
    assert spearman_of(OF_POINTS[name], truth, answers) > spearmanr(wins, truth).statistic - 0.01
