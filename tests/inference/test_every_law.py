"""Promises of every update law, those of the tests included: a new law is checked by being registered."""

import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.introspect import opt_func_info
from scipy.stats import spearmanr

from app.inference.ground.arrays import Array
from app.inference.observations.comparisons import is_tie
from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online import trueskill
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import AnsweredHit, Law, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.online.state_queries import run_law_steps
from tests.inference.beliefs import StoredCampaign, initial_beliefs, law_state_json, posteriors_after
from tests.laws import SCORE_LAWS
from tests.toys.smiles import SMILES

ITEMS = 15
CLASS_COUNT = 3
TUNED = LawParameters(gamma=0.2, epsilon=0.05, tie_margin=0.02)
# Each registered law and that of the tests; a law that reads classes is the one for three of them.
LAWS = [law.law_with_class_count(CLASS_COUNT) for law in (*ONLINE_LAWS.values(), SMILES)]


@pytest.fixture(params=LAWS, ids=lambda law: law.name)
def law(request) -> Law:
    made: Law = request.param
    return made


@pytest.fixture(params=[law for law in LAWS if isinstance(law, ItemLaw)], ids=lambda law: law.name)
def item_law(request) -> ItemLaw:
    made: ItemLaw = request.param
    return made


def hits_for(law: Law, count: int, *, seed: int = 1, max_length: int = 4) -> list[AnsweredHit]:
    """Return HITs of random items with random values that the law reads, by five annotators in turn."""
    rng = np.random.default_rng(seed)
    highest = CLASS_COUNT - 1 if law.reads in CLASS_KINDS else 100
    values = rng.integers(0, highest + 1, (count, max_length)) / (1 if law.reads in CLASS_KINDS else 100)
    if law.reads == "ratio":
        values = np.clip(values, 0.01, 0.99)  # no ratio has a share of 0 or 1
    lengths = rng.integers(1, max_length + 1, count) if max_length > 4 else np.full(count, max_length)
    return [
        AnsweredHit(k % 5, rng.choice(ITEMS, length, replace=False).tolist(), row[:length])
        for k, (length, row) in enumerate(zip(lengths.tolist(), values.tolist(), strict=True))
    ]


def columns_of_priors(law: Law, items: int = ITEMS) -> list[Array]:
    return [np.full(items, number) for number in law.family.default_prior]


def digests() -> dict[str, str]:
    """Return a digest of all bits of the posteriors of each registered law after the same HITs."""
    laws = [law.law_with_class_count(CLASS_COUNT) for law in ONLINE_LAWS.values()]
    return {
        law.name: hashlib.sha256(posteriors_after(law, ITEMS, hits_for(law, 200), TUNED).tobytes()).hexdigest()
        for law in laws
    }


def optional_instructions() -> str:
    """Return the processor features that NumPy uses here and that not every processor has."""
    features = [
        signature["available"].split() for function in opt_func_info().values() for signature in function.values()
    ]
    return " ".join(sorted({name for names in features for name in names if not name.startswith("baseline")}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "poorer",
    [{"NPY_DISABLE_CPU_FEATURES": optional_instructions()}, {"OPENBLAS_CORETYPE": "Prescott"}],
    ids=lambda poorer: next(iter(poorer)),
)
def test_posteriors_have_the_same_bits_on_a_poorer_processor(poorer):
    script = "from tests.inference.test_every_law import digests; print(digests())"
    found = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | poorer, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(digests())


def test_laws_are_registered_by_their_names():
    assert {name: law.name for name, law in ONLINE_LAWS.items()} == {name: name for name in ONLINE_LAWS}
    assert SCORE_LAWS.keys() >= {"easl", "ra", "trueskill", "easl-aware"}


def test_its_own_prior_is_a_valid_one_and_has_a_number_for_each_name(law):
    family = law.family
    assert len(family.default_prior) == len(family.parameter_names)
    assert family.is_valid_prior(*family.default_prior)
    assert not family.is_valid_prior(*[float("nan")] * len(family.parameter_names))


def test_it_can_be_sent_to_another_process(law):
    assert pickle.loads(pickle.dumps(law)) == law


# Beliefs: the same bits however HITs come


def test_hits_at_once_one_by_one_and_in_pieces_lead_to_the_same_bits(law):
    hits = hits_for(law, 60)
    whole, steps, pieces = (initial_beliefs(law, ITEMS, TUNED) for _ in range(3))
    whole.apply_hits(hits)
    for _ in steps.apply_hits_and_iterate_changes(hits):
        pass
    pieces.apply_hits(hits[:17])
    pieces.apply_hits(hits[17:])
    assert whole.state.tobytes() == steps.state.tobytes() == pieces.state.tobytes()


@pytest.mark.parametrize("name", [law.name for law in LAWS])
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 12), cut=st.integers(0, 12))
@settings(max_examples=20)
def test_random_hits_of_any_length_lead_to_the_same_bits_in_any_pieces(name, seed, count, cut):
    law = next(law for law in LAWS if law.name == name)
    hits = hits_for(law, count, seed=seed, max_length=10)
    pieces = initial_beliefs(law, ITEMS, TUNED)
    pieces.apply_hits(hits[:cut])
    for hit in hits[cut:]:
        pieces.apply_hits([hit])
    assert pieces.state.tolist() == posteriors_after(law, ITEMS, hits, TUNED).tolist()
    if isinstance(law, ItemLaw):
        assert pieces.state.tolist() == one_update_after_another(law, hits)


def one_update_after_another(law: ItemLaw, hits: list[AnsweredHit]) -> list[list[float]]:
    """Update as a server does: every posterior is read from its row and written back to it."""
    posteriors = [law.family.default_prior] * ITEMS
    for _, items, values in hits:
        numbers = law.update(*zip(*(posteriors[item] for item in items), strict=True), values, TUNED)
        for item, posterior in zip(items, zip(*numbers, strict=True), strict=True):
            posteriors[item] = posterior
    return [list(column) for column in zip(*posteriors, strict=True)]


def test_many_hits_of_few_items_have_the_bits_of_one_update_after_another(item_law):
    hits = hits_for(item_law, 1600)
    assert posteriors_after(item_law, ITEMS, hits, TUNED).tolist() == one_update_after_another(item_law, hits)


def test_each_step_returns_what_it_changed_in_plain_floats(law):
    beliefs, collected = initial_beliefs(law, ITEMS, TUNED), np.array(columns_of_priors(law))
    hits = hits_for(law, 30)
    for hit, change in zip(hits, beliefs.copy().apply_hits_and_iterate_changes(hits), strict=True):
        beliefs.apply_hits([hit])
        assert list(change.items[: len(hit.items)]) == list(hit.items)
        assert beliefs.state[:, change.items].tolist() == [list(column) for column in change.state]
        assert {type(number) for column in change.state for number in column} == {float}
        collected[:, list(change.items)] = change.state
    assert collected.tolist() == beliefs.state.tolist()


def test_a_copy_is_independent(law):
    beliefs = initial_beliefs(law, ITEMS, TUNED)
    beliefs.apply_hits(hits_for(law, 10))
    before, copy = (beliefs.state.tobytes(), law_state_json(beliefs.law_state_besides_posteriors())), beliefs.copy()
    copy.apply_hits(hits_for(law, 10, seed=2))
    assert (beliefs.state.tobytes(), law_state_json(beliefs.law_state_besides_posteriors())) == before
    assert copy.state.tolist() == (
        posteriors_after(law, ITEMS, hits_for(law, 10) + hits_for(law, 10, seed=2), TUNED).tolist()
    )
    assert before[0] != copy.state.tobytes()


def test_a_campaign_stored_after_every_hit_has_the_bits_of_one_in_memory(law):
    hits = hits_for(law, 60)
    beliefs = initial_beliefs(law, ITEMS, TUNED)
    stored = StoredCampaign(law, beliefs, TUNED)
    for hit in hits:
        stored.apply_hit_and_return_change(hit)
    beliefs.apply_hits(hits)
    assert stored.state == beliefs.state.tolist()
    assert stored.law_state() == law_state_json(beliefs.law_state_besides_posteriors())
    for item in range(ITEMS):
        if step := law.judgment_weights_querying_state_or_none(item):
            weights, values = run_law_steps(step, stored.answer_state_query)
            assert len(weights) == len(values) == sum(item in hit.items for hit in hits)
            assert all(0 <= number <= 1 for number in weights + values)


def test_a_law_that_keeps_more_than_posteriors_has_a_version_of_its_layout(law):
    beliefs = initial_beliefs(law, ITEMS, TUNED)
    beliefs.apply_hits(hits_for(law, 10))
    assert (law.layout > 0) == (beliefs.law_state_besides_posteriors().campaign is not None)


def test_a_law_of_items_keeps_posteriors_alone_and_ignores_who_answered(item_law):
    hits = hits_for(item_law, 30)
    beliefs = initial_beliefs(item_law, ITEMS, TUNED)
    beliefs.apply_hits([hit._replace(annotator=1) for hit in hits])
    assert beliefs.state.tolist() == posteriors_after(item_law, ITEMS, hits, TUNED).tolist()
    assert law_state_json(beliefs.law_state_besides_posteriors()) == {"campaign": None, "annotators": {}, "items": {}}
    assert (item_law.layout, item_law.judgment_weights_querying_state_or_none(0)) == (0, None)


def test_priors_and_arguments_of_an_update_are_left_alone(law):
    priors, hits = columns_of_priors(law), hits_for(law, 5)
    beliefs = law.initial_beliefs(priors, TUNED)
    assert beliefs.state.tolist() == np.array(priors).tolist()
    beliefs.apply_hits(hits)
    assert np.array_equal(priors, columns_of_priors(law))
    if isinstance(law, ItemLaw):
        _, items, values = hits[0]
        state = [column.tolist() for column in columns_of_priors(law, len(items))]
        from_lists = law.update(*state, values, TUNED)
        assert list(zip(*state, strict=True)) == [law.family.default_prior] * len(items)
        assert from_lists == law.update(*columns_of_priors(law, len(items)), np.array(values), TUNED)
        assert {type(number) for column in from_lists for number in column} == {float}


# Posteriors: scores, variances, intervals, densities


def test_score_and_variance_of_a_few_items_have_the_bits_of_those_of_all(law):
    beliefs = initial_beliefs(law, ITEMS, TUNED)
    beliefs.apply_hits(hits_for(law, 20))
    family, state = law.family, beliefs.state
    scores, variances = family.scores_and_variances(*state[:, :4].tolist())
    assert [list(scores), list(variances)] == [
        family.score(*state[:, :4]).tolist(),
        family.variance(*state[:, :4]).tolist(),
    ]
    assert family.scores_and_variances(*state[:, :4]) == (scores, variances)
    assert {type(value) for value in (*scores, *variances)} == {float}


def test_the_interval_holds_its_share_of_the_density_and_grows_with_its_level(law):
    beliefs = initial_beliefs(law, ITEMS, TUNED)
    beliefs.apply_hits(hits_for(law, 40))
    (low, high), (lower, higher) = (law.family.interval(*beliefs.state, level=level) for level in (0.5, 0.95))
    assert (lower < low).all()
    assert (high < higher).all()
    x = np.linspace(lower - 1e-3, higher + 1e-3, 4001)
    share = np.trapezoid(law.family.density(*beliefs.state, x), x, axis=0)
    assert share == pytest.approx(0.95, abs=0.01)


def test_arrays_of_posteriors_and_states_one_by_one_have_their_shapes(law):
    family, state = law.family, columns_of_priors(law, 4)
    low, high = family.interval(*state)
    assert family.score(*state).shape == family.variance(*state).shape == low.shape == high.shape == (4,)
    assert family.columns_of_item_states([family.default_prior] * 4).tolist() == np.array(state).tolist()
    assert family.columns_of_item_states([]).shape == (len(family.parameter_names), 0)


@pytest.mark.parametrize("law", SCORE_LAWS.values(), ids=SCORE_LAWS)
def test_scores_lie_within_their_interval_and_a_higher_judgment_ends_higher(law):
    scores = law.family.score(*posteriors_after(law, 3, [AnsweredHit(1, [0, 1, 2], [0.9, 0.1, 0.5])]))
    assert scores[0] > scores[2] > scores[1]
    family, state = law.family, columns_of_priors(law, 4)
    low, high = family.interval(*state)
    assert (low < family.score(*state)).all()
    assert (family.score(*state) < high).all()
    x = np.linspace(-10, 10, 100_001)
    curves = family.density(*(column[:, None] for column in state), x)
    assert np.trapezoid(curves, x) == pytest.approx(np.ones(4), abs=1e-3)


# Refusals


def test_hits_that_cannot_be_are_refused(law, subtests):
    valid = hits_for(law, 1)[0]
    for items, values in (
        ([0, 0], [0.0, 1.0]),
        ([0, ITEMS], [0.0, 1.0]),
        ([0, -1], [0.0, 1.0]),
        ([0, 1], [1.0]),
        ([0, 1], []),
        ([0, 1], [1.0, 1.0, 1.0]),
        ([], []),
        ([0], [7.0]),
        ([0], [-0.01]),
        ([0], [float("nan")]),
        ([0], [float("inf")]),
    ):
        hits = [valid, AnsweredHit(1, items, values)]
        with subtests.test("at once", items=items, values=values), pytest.raises(ValueError, match=r".+"):
            initial_beliefs(law, ITEMS, TUNED).apply_hits(hits)
        with subtests.test("one by one", items=items, values=values), pytest.raises(ValueError, match=r".+"):
            list(initial_beliefs(law, ITEMS, TUNED).apply_hits_and_iterate_changes(hits))


@pytest.mark.parametrize("law", SCORE_LAWS.values(), ids=SCORE_LAWS)
def test_a_law_of_scores_says_what_is_wrong_with_a_hit(law, subtests):
    for items, values, message in (
        ([0, ITEMS], [0.1, 0.2], "item numbers"),
        ([-1, 0], [0.1, 0.2], "item numbers"),
        ([0, 1], [], "one score per item"),
        ([0, 1], [0.1], "one score per item"),
        ([0, 1], [0.1, 0.5, 0.5], "one score per item"),
        ([], [], "one score per item"),
        ([3, 3], [0.1, 0.2], "twice"),
        *(([0, 1], [0.1, score], "between 0 and 1") for score in (-0.01, 1.01, 50, float("nan"), float("inf"))),
    ):
        hits = [AnsweredHit(1, [0, 1], [0.5, 0.5]), AnsweredHit(1, items, values)]
        with subtests.test("at once", items=items, values=values), pytest.raises(ValueError, match=message):
            initial_beliefs(law, ITEMS, TUNED).apply_hits(hits)
        with subtests.test("one by one", items=items, values=values), pytest.raises(ValueError, match=message):
            list(initial_beliefs(law, ITEMS, TUNED).apply_hits_and_iterate_changes(hits))


@pytest.mark.parametrize("name", [name for name, law in SCORE_LAWS.items() if isinstance(law, ItemLaw)])
def test_an_update_that_cannot_be_is_refused(name, subtests):
    law, bad_numbers = SCORE_LAWS[name], (0.0, -1.0, float("nan"), float("inf"))
    assert isinstance(law, ItemLaw)
    *others, last = [[number] * 2 for number in law.family.default_prior]
    valid = [*others, last]
    for state, scores, message in (
        *((valid, scores, "one score per item") for scores in ([], [0.5], [0.5, 0.5, 0.5])),
        ([column[:0] for column in valid], [], "one score per item"),
        ([*others, last[:1]], [0.5, 0.5], "a posterior is a pair" if len(others) == 1 else "a posterior is a"),
        *((valid, [0.5, score], "between 0 and 1") for score in (-0.01, 1.01, 50, float("nan"), float("inf"))),
        *(([*others, [last[0], bad]], [0.5, 0.5], "must be finite") for bad in bad_numbers),
    ):
        with (
            subtests.test(state=state, scores=scores),
            pytest.raises(ValueError, match=message),
        ):
            law.update(*state, scores, TUNED)


def test_a_mean_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="mu must be finite"):
        trueskill.update([0.5, float("nan")], [1.0, 1.0], [0.5, 0.5], TUNED)


@pytest.mark.parametrize("law", SCORE_LAWS.values(), ids=SCORE_LAWS)
def test_posteriors_and_priors_that_cannot_be_are_refused(law, subtests):
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with subtests.test("estimates", bad=bad), pytest.raises(ValueError, match="must be finite"):
            law.family.scores_and_variances([1.0, 1.0], [1.0, bad])
        priors = columns_of_priors(law)
        priors[1][3] = bad
        with subtests.test("priors", bad=bad), pytest.raises(ValueError, match="must be finite"):
            law.initial_beliefs(priors, TUNED)


def test_priors_of_the_wrong_shape_are_refused(law):
    numbers = len(law.family.parameter_names)
    with pytest.raises(ValueError, match="prior"):
        law.initial_beliefs([np.ones((2, 2))] * numbers, TUNED)
    with pytest.raises(ValueError, match="lengths 2, 3"):
        law.initial_beliefs([np.ones(2), np.ones(3), *[np.ones(2)] * (numbers - 2)], TUNED)
    for wrong in (0, 1, numbers + 1):
        with pytest.raises(ValueError, match="a posterior is " + " and ".join(law.family.parameter_names)):
            law.initial_beliefs([np.ones(2)] * wrong, TUNED)


def test_parameters_that_cannot_be_are_refused(subtests):
    for setting, bad in (
        *(("gamma", bad) for bad in (0.0, -0.1, float("nan"), float("inf"))),
        *(("epsilon", bad) for bad in (-0.1, float("nan"), float("inf"))),
        *(("tie_margin", bad) for bad in (-0.1, 1.1, float("nan"))),
    ):
        with subtests.test(setting=setting, bad=bad), pytest.raises(ValueError, match=setting):
            LawParameters(**{setting: bad})  # type: ignore[arg-type]


# Laws of scores: ties, and how well they recover the truth


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


def simulate_campaign(
    seed: int, items: int = 100, per_hit: int = 5, judgments: int = 10, noise_sd: float = 0.15
) -> tuple[Array, list[AnsweredHit]]:
    """Return true scores, and HITs drawn at random in which twenty annotators score them with noise."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=items)
    answers: list[AnsweredHit] = []
    for _ in range(judgments):
        for shown in rng.permutation(items).reshape(-1, per_hit):
            scores = np.clip(truth[shown] + rng.normal(0, noise_sd, per_hit), 0, 1).round(2)
            answers.append(AnsweredHit(len(answers) % 20, shown.tolist(), scores.tolist()))
    return truth, answers


def spearman_of(law: Law, truth: Array, answers: list[AnsweredHit]) -> float:
    scores = law.family.score(*posteriors_after(law, len(truth), answers))
    return float(spearmanr(scores, truth).statistic)


def test_laws_of_scores_recover_the_order_of_true_scores(subtests):
    for seed in range(3):
        truth, answers = simulate_campaign(seed)
        with subtests.test("as well as noise allows", law="easl", seed=seed):
            # The mean of 10 noisy scores correlates with uniform truth by sqrt(signal / (signal + noise)); less
            # four standard errors of a correlation over 100 items, (1 - r^2) / sqrt(100).
            r = ((1 / 12) / (1 / 12 + 0.15**2 / 10)) ** 0.5
            assert spearman_of(SCORE_LAWS["easl"], truth, answers) > r - 4 * (1 - r * r) / 10
        wins = np.zeros(len(truth))
        for _, items, scores in answers:
            wins[items] += np.sign(np.subtract.outer(scores, scores)).sum(axis=1)
        for name in ("ra", "trueskill"):
            with subtests.test("at least as well as counting wins", law=name, seed=seed):
                # Less one standard error of a correlation near 0.95 over 100 items.
                assert spearman_of(SCORE_LAWS[name], truth, answers) > spearmanr(wins, truth).statistic - 0.01
