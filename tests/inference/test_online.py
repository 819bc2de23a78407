import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from app.inference.ground.arrays import Array
from app.inference.observations.ties import is_tie
from app.inference.online import trueskill
from app.inference.online.laws import ONLINE, Law, Parameters, replay

ITEMS = 12
Answer = tuple[list[int], list[float]]
tuned = Parameters(gamma=0.2, epsilon=0.05, tie_margin=0.02)


@st.composite
def hits(draw):
    items = draw(st.lists(st.integers(0, ITEMS - 1), min_size=1, max_size=10, unique=True))
    scores = draw(st.lists(st.integers(0, 100), min_size=len(items), max_size=len(items)))
    return items, [score / 100 for score in scores]


def start(law: Law, items: int = ITEMS) -> tuple[Array, Array]:
    return np.full(items, law.default_prior[0]), np.full(items, law.default_prior[1])


def campaign(
    seed: int, items: int = 100, per_hit: int = 5, judgments: int = 10, noise_sd: float = 0.15
) -> tuple[Array, list[Answer]]:
    """Every item is scored `judgments` times, its true score plus noise, in HITs drawn at random."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=items)
    answers = []
    for _ in range(judgments):
        for shown in rng.permutation(items).reshape(-1, per_hit):
            scores = np.clip(truth[shown] + rng.normal(0, noise_sd, per_hit), 0, 1).round(2)
            answers.append((shown.tolist(), scores.tolist()))
    return truth, answers


def spearman_of(law: Law, truth: Array, answers: list[Answer]) -> float:
    a, b = replay(law, *start(law, len(truth)), answers, Parameters())
    return float(spearmanr(law.score(a, b), truth).statistic)


def test_the_registry_names_each_law_by_its_own_name():
    assert {name: law.name for name, law in ONLINE.items()} == {n: n for n in ("easl", "ra", "trueskill", "easl-aware")}


def test_the_default_prior_is_a_valid_one(law):
    assert law.valid_prior(*law.default_prior)


def test_a_law_can_be_sent_to_another_process(law):
    assert pickle.loads(pickle.dumps(law)) == law


@pytest.mark.parametrize("name", ["easl", "ra", "trueskill"])
@given(st.lists(hits(), max_size=15))
def test_replay_gives_the_bits_of_one_update_after_another(name, answers):
    law = ONLINE[name]
    live = dict.fromkeys(range(ITEMS), law.default_prior)
    for items, scores in answers:
        # As a live server does it: every posterior is read from its row and written back to it.
        assert law.update is not None
        a, b = law.update([live[i][0] for i in items], [live[i][1] for i in items], scores, tuned)
        live.update(zip(items, zip(a, b, strict=True), strict=True))
    replayed = replay(law, *start(law), iter(answers), tuned)
    assert list(zip(*map(np.ndarray.tolist, replayed), strict=True)) == list(live.values())


def test_many_hits_of_few_items_replay_to_the_bits_of_one_update_after_another(law):
    _, answers = campaign(seed=5, items=20, judgments=400)
    live_a, live_b = (column.tolist() for column in start(law, 20))
    for items, scores in answers:
        a, b = law.update([live_a[i] for i in items], [live_b[i] for i in items], scores, tuned)
        for i, value_a, value_b in zip(items, a, b, strict=True):
            live_a[i], live_b[i] = value_a, value_b
    replayed = replay(law, *start(law, 20), answers, tuned)
    assert [column.tolist() for column in replayed] == [live_a, live_b]


def test_estimates_of_a_hit_have_the_bits_of_score_and_variance(law):
    a, b = replay(law, *start(law), [([0, 1, 2], [0.2, 0.9, 0.9]), ([1, 2, 5], [0.0, 1.0, 0.3])], tuned)
    scores, variances = law.estimates(a, b)
    assert (scores, variances) == (law.score(a, b).tolist(), law.variance(a, b).tolist())
    assert law.estimates(a.tolist(), b.tolist()) == (scores, variances)
    assert {type(value) for value in scores + variances} == {float}


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_estimates_of_a_posterior_that_cannot_be_are_refused(law, bad):
    with pytest.raises(ValueError, match="must be finite"):
        law.estimates([1.0, 1.0], [1.0, bad])


def test_replay_leaves_the_priors_alone(law):
    a, b = start(law)
    replay(law, a, b, [([0, 1], [0.2, 0.9])], tuned)
    assert (a == law.default_prior[0]).all()
    assert (b == law.default_prior[1]).all()


def test_replay_of_nothing_gives_the_priors(law):
    a, b = replay(law, *start(law), [], tuned)
    assert (a[3], b[3]) == law.default_prior


def test_numpy_in_plain_floats_out_with_the_same_bits(law):
    a, b = start(law, 5)
    scores = np.array([0.0, 0.25, 0.5, 0.5, 1.0])
    from_arrays = law.update(a, b, scores, tuned)
    assert from_arrays == law.update(a.tolist(), b.tolist(), scores.tolist(), tuned)
    assert {type(value) for column in from_arrays for value in column} == {float}


def test_an_update_leaves_its_arguments_alone(law):
    a, b = [law.default_prior[0]] * 3, [law.default_prior[1]] * 3
    law.update(a, b, [0.1, 0.2, 0.3], tuned)
    assert list(zip(a, b, strict=True)) == [law.default_prior] * 3


def test_a_higher_score_ends_higher(law):
    a, b = law.update(*(column.tolist() for column in start(law, 3)), [0.9, 0.1, 0.5], Parameters())
    scores = law.score(a, b)
    assert scores[0] > scores[2] > scores[1]


def test_every_law_reads_arrays_of_posteriors(law):
    a, b = start(law, 4)
    low, high = law.interval(a, b)
    assert law.score(a, b).shape == law.variance(a, b).shape == low.shape == high.shape == (4,)
    assert (low < law.score(a, b)).all()
    assert (law.score(a, b) < high).all()
    x = np.linspace(-10, 10, 100_001)
    curves = law.density(a[:, None], b[:, None], x)
    assert np.trapezoid(curves, x) == pytest.approx(np.ones(4), abs=1e-3)


@pytest.mark.parametrize("scores", [[], [0.5], [0.5, 0.5, 0.5]])
def test_a_hit_without_one_score_per_item_is_refused(law, scores):
    with pytest.raises(ValueError, match="one score per item"):
        law.update([1.0, 1.0], [1.0, 1.0], scores, tuned)


def test_an_empty_hit_is_refused(law):
    with pytest.raises(ValueError, match="one score per item"):
        law.update([], [], [], tuned)


def test_half_a_posterior_is_refused(law):
    with pytest.raises(ValueError, match="a posterior is a pair"):
        law.update([1.0, 1.0], [1.0], [0.5, 0.5], tuned)


@pytest.mark.parametrize("score", [-0.01, 1.01, 50, float("nan"), float("inf")])
def test_a_score_outside_the_scale_is_refused(law, score):
    with pytest.raises(ValueError, match="between 0 and 1"):
        law.update([1.0, 1.0], [1.0, 1.0], [0.5, score], tuned)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_posterior_that_cannot_be_is_refused(law, bad):
    with pytest.raises(ValueError, match="must be finite"):
        law.update([1.0, 1.0], [1.0, bad], [0.5, 0.5], tuned)


def test_a_mean_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="mu must be finite"):
        trueskill.update([0.5, float("nan")], [1.0, 1.0], [0.5, 0.5], tuned)


@pytest.mark.parametrize("items", [[0, ITEMS], [-1, 0]])
def test_an_unknown_item_is_refused(law, items):
    with pytest.raises(ValueError, match="item numbers"):
        replay(law, *start(law), [(items, [0.1, 0.2])], tuned)


@pytest.mark.parametrize("scores", [[0.1], [0.1, 1.5], [0.1, float("nan")]])
def test_replaying_scores_that_cannot_be_is_refused(law, scores):
    with pytest.raises(ValueError, match=r"one score per item|between 0 and 1"):
        replay(law, *start(law), [([0, 1], [0.5, 0.5]), ([0, 1], scores)], tuned)


def test_replaying_priors_that_cannot_be_is_refused(law):
    a, b = start(law)
    b[3] = 0.0
    with pytest.raises(ValueError, match="must be finite"):
        replay(law, a, b, [([3, 4], [0.1, 0.2])], tuned)


def test_an_item_twice_in_a_hit_is_refused(law):
    with pytest.raises(ValueError, match="twice"):
        replay(law, *start(law), [([3, 3], [0.1, 0.2])], tuned)


def test_replaying_an_empty_hit_is_refused(law):
    with pytest.raises(ValueError, match="one score per item"):
        replay(law, *start(law), [([], [])], tuned)


def test_priors_of_unlike_shapes_are_refused(law):
    with pytest.raises(ValueError, match="lengths 2 and 3"):
        replay(law, np.ones(2), np.ones(3), [], tuned)
    with pytest.raises(ValueError, match="shape"):
        replay(law, np.ones((2, 2)), np.ones((2, 2)), [], tuned)


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
        Parameters(**{setting: bad})


def test_the_parameters_are_the_papers_by_default():
    assert Parameters() == Parameters(gamma=0.1, epsilon=0.1, tie_margin=0.0)


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
    assert spearman_of(ONLINE["easl"], truth, answers) > r - 4 * (1 - r * r) / 10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["ra", "trueskill"])
def test_rank_laws_recover_the_order_at_least_as_well_as_counting_wins(name, seed):
    truth, answers = campaign(seed)
    wins = np.zeros(len(truth))
    for items, scores in answers:
        ahead = np.sign(np.subtract.outer(scores, scores))
        wins[items] += ahead.sum(axis=1)
    # Less one standard error of a correlation near 0.95 over 100 items.
    assert spearman_of(ONLINE[name], truth, answers) > spearmanr(wins, truth).statistic - 0.01


def test_a_law_that_must_know_who_answered_says_so():
    with pytest.raises(ValueError, match="easl-aware must know who answered"):
        replay(ONLINE["easl-aware"], *start(ONLINE["easl-aware"]), [([0, 1], [0.1, 0.2])], tuned)
