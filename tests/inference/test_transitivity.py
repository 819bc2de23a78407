from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.ground.inestimable import Inestimable
from app.inference.preferences import transitivity

TRIAD = ([0, 1, 0], [1, 2, 2])
TRANSITIVE, INTRANSITIVE = [1, 1, 1], [1, 1, -1]


def is_weak_order(outcomes) -> bool:
    """Return whether "at least as good as" is transitive over the pairs (0, 1), (1, 2) and (0, 2), by definition."""
    at_least = np.eye(3, dtype=bool)
    for i, j, outcome in zip(*TRIAD, outcomes, strict=True):
        at_least[i, j], at_least[j, i] = outcome >= 0, outcome <= 0
    return all(at_least[a, c] for a, b, c in product(range(3), repeat=3) if at_least[a, b] and at_least[b, c])


def table(rows):
    """Return annotators' triads of separate items as in Table 1; True is a transitive triad."""
    first, second, outcomes, annotators = [], [], [], []
    for annotator, triads in enumerate(rows):
        for number, transitive in enumerate(triads):
            first += [3 * number + item for item in TRIAD[0]]
            second += [3 * number + item for item in TRIAD[1]]
            outcomes += TRANSITIVE if transitive else INTRANSITIVE
            annotators += [annotator] * 3
    return first, second, outcomes, annotators


def test_table_2_of_the_paper_with_exact_shares():
    fit = transitivity.fit(*table([(True, True, True), (True, False, True), (False, True, False)]))
    np.testing.assert_allclose(fit.kappa, [1, 5 / 14, -2 / 7])
    np.testing.assert_allclose(fit.kappa.round(3), [1, 0.357, -0.286])
    assert fit.triads.tolist() == [3, 3, 3]
    assert fit.transitive.tolist() == [3, 2, 1]
    assert fit.pooled_kappa == pytest.approx((6 / 9 - 13 / 27) / (14 / 27))
    # No triad has a tie, so the other figure is against 6/8.
    np.testing.assert_allclose(fit.kappa_without_ties, [1, -1 / 3, -5 / 3])
    assert fit.notes == ()


def test_thirteen_of_the_27_triads_are_transitive_and_six_of_the_8_without_ties():
    verdicts = {}
    for outcomes in product((-1, 0, 1), repeat=3):
        fit = transitivity.fit(*TRIAD, outcomes, [0, 0, 0])
        assert bool(fit.transitive[0]) == is_weak_order(outcomes)
        assert bool(fit.triads_without_ties[0]) == (0 not in outcomes)
        verdicts[outcomes] = bool(fit.transitive[0])
    assert sum(verdicts.values()) == 13 == 27 * transitivity.CHANCE_OF_TRANSITIVE_TRIAD
    assert sum(value for outcomes, value in verdicts.items() if 0 not in outcomes) == 6


@settings(max_examples=40)
@given(st.data())
def test_triads_are_those_that_counting_all_finds_whatever_the_order(data):
    pairs = list(combinations(range(6), 2))
    answers = st.lists(st.sampled_from([None, -1, 0, 1]), min_size=len(pairs), max_size=len(pairs))
    judged = [
        (pair, outcome, annotator)
        for annotator in range(2)
        for pair, outcome in zip(pairs, data.draw(answers), strict=True)
        if outcome is not None
    ]
    known = [{pair: outcome for pair, outcome, who in judged if who == annotator} for annotator in range(2)]
    triads, transitive = [0, 0], [0, 0]
    for annotator, (a, b, c) in product(range(2), combinations(range(6), 3)):
        outcomes = [known[annotator].get(pair) for pair in ((a, b), (b, c), (a, c))]
        if None not in outcomes:
            triads[annotator] += 1
            transitive[annotator] += is_weak_order(outcomes)
    rows = data.draw(st.permutations(judged))
    flips = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    rows = [((j, i), -o, who) if flip else ((i, j), o, who) for ((i, j), o, who), flip in zip(rows, flips, strict=True)]
    arguments = [pair[0] for pair, _, _ in rows], [pair[1] for pair, _, _ in rows], [o for _, o, _ in rows]
    who = [annotator for _, _, annotator in rows]
    if not sum(triads):
        with pytest.raises(Inestimable):
            transitivity.fit(*arguments, who, n_annotators=2)
        return
    fit = transitivity.fit(*arguments, who, n_annotators=2)
    assert fit.triads.tolist() == triads
    assert fit.transitive.tolist() == transitive


def test_a_few_candidates_at_a_time_give_the_same_counts(monkeypatch):
    rng = np.random.default_rng(19)
    pairs = np.array(list(combinations(range(30), 2)))
    judgments = pairs[:, 0], pairs[:, 1], rng.integers(-1, 2, len(pairs)), np.zeros(len(pairs), dtype=int)
    at_once = transitivity.fit(*judgments)
    monkeypatch.setattr(transitivity, "_WEDGES_AT_ONCE", 7)
    piecemeal = transitivity.fit(*judgments)
    assert at_once.triads[0] == piecemeal.triads[0] == 30 * 29 * 28 / 6
    assert at_once.transitive[0] == piecemeal.transitive[0]


def test_an_annotator_who_guesses_has_kappa_0_and_one_who_ranks_has_1():
    rng = np.random.default_rng(20)
    pairs = np.array(list(combinations(range(60), 2)))
    guesses = rng.integers(-1, 2, len(pairs))
    strength = rng.integers(0, 20, 60)
    ranked = np.sign(strength[pairs[:, 0]] - strength[pairs[:, 1]])
    annotators = np.repeat([0, 1], len(pairs))
    first, second = np.tile(pairs, (2, 1)).T
    fit = transitivity.fit(first, second, np.concatenate([guesses, ranked]), annotators)
    assert abs(fit.kappa[0]) < 0.03
    assert fit.kappa[1] == 1


def test_pairs_of_one_hit_do_not_count():
    first, second = TRIAD
    with pytest.raises(Inestimable):
        transitivity.fit(first, second, TRANSITIVE, [0, 0, 0], hits=[1, 1, 1])
    with pytest.raises(Inestimable, match="in three different tasks") as refusal:
        transitivity.fit(first, second, TRANSITIVE, [0, 0, 0], hits=[1, 1, 2])
    assert "more judgments per item" in str(refusal.value)
    assert transitivity.fit(first, second, TRANSITIVE, [0, 0, 0], hits=[1, 3, 2]).triads.tolist() == [1]


def test_the_first_judgment_of_a_pair_counts():
    fit = transitivity.fit([0, 1, 0, 2], [1, 2, 2, 0], [1, 1, 1, 1], [0, 0, 0, 0])
    assert fit.transitive.tolist() == [1]


def test_annotators_without_triads_are_told():
    fit = transitivity.fit([0, 1, 0, 0], [1, 2, 2, 1], [0, 0, 0, 1], [1, 1, 1, 0], n_annotators=4)
    assert fit.estimable.tolist() == [False, True, False, False]
    assert np.isnan(fit.kappa[[0, 2, 3]]).all()
    assert "1 of 2 annotators have no triad whose pairs they judged in three different tasks" in fit.notes[0]
    assert "Every triad contains a tie" in fit.notes[1]
    assert np.isnan(fit.pooled_kappa_without_ties)


def test_triads_of_different_annotators_do_not_mix():
    with pytest.raises(Inestimable) as refusal:
        transitivity.fit(*TRIAD, TRANSITIVE, [0, 1, 0])
    assert refusal.value.code == "no_triads"


def test_arrays_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="annotators 2"):
        transitivity.fit(*TRIAD, TRANSITIVE, [0, 0])
    with pytest.raises(ValueError, match="annotators are numbered from 0 to 0"):
        transitivity.fit(*TRIAD, TRANSITIVE, [0, 1, 1], n_annotators=1)
