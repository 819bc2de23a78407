import warnings
from collections.abc import Callable
from typing import Any, Literal

import krippendorff as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from app.inference.agreement import intraclass, krippendorff, score_agreement
from app.inference.agreement.label_agreement import cohens_kappa, fleiss_kappa, gwets_ac1, pairwise_agreement
from app.inference.ground.bootstrap import draw_item_counts_of_resamples
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.weighted_correlation import MeanRanks, weighted_spearman_of_each_block

LABELS: list[Callable[..., Any]] = [pairwise_agreement, cohens_kappa, fleiss_kappa, gwets_ac1, krippendorff.fit]
SCORES: list[Callable[..., Any]] = [
    intraclass.one_way_icc,
    intraclass.two_way_icc,
    score_agreement.mean_annotator_correlation,
    score_agreement.split_half_reliability,
]
EVERY: list[Callable[..., Any]] = [*LABELS, *SCORES]
METRICS: list[Literal["nominal", "ordinal", "interval", "ratio"]] = ["nominal", "ordinal", "interval", "ratio"]

# Krippendorff 2004 and Gwet 2014, with a missing judgment here and there: 12 items by 4 annotators, 0 is none.
FOUR_RATERS = np.array(
    ["1101", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "0555", "0011", "0030"], dtype="U4"
)
FOUR_RATERS = FOUR_RATERS.view("U1").reshape(12, 4).astype(int)
# Shrout & Fleiss 1979, table 2: 6 targets by 4 judges.
SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
# Fleiss 1971 as often printed: of 14 raters, how many put each of 10 subjects into each of 5 categories.
FLEISS = [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]]
FLEISS += [[7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]]


def rng(seed=1):
    return np.random.default_rng(seed)


def long_form(table, missing=0):
    """Return the judgments of a table of items by annotators, row by row."""
    items, annotators = np.nonzero(np.asarray(table) != missing)
    return items, annotators, np.asarray(table)[items, annotators]


def two_by_two(both_0, first_0, first_1, both_1):
    """Return labels 0 and 1 of two annotators, from the frequency of each combination."""
    pairs = [(0, 0)] * both_0 + [(0, 1)] * first_0 + [(1, 0)] * first_1 + [(1, 1)] * both_1
    return long_form(pairs, missing=-1)


def one_judgment_each(counts):
    """Return judgments from frequencies of items by categories; different annotators judge each item."""
    rows = [np.repeat(np.arange(len(row)), row) for row in counts]
    return long_form(rows, missing=-1)


def crowd(seed, *, items=200, each=5, annotators=40, between=1.0, bias=0.5, noise=0.7):
    """Return scores of items by `each` random annotators: normal truth plus bias plus noise (standard deviations)."""
    random = rng(seed)
    truth, biases = random.normal(0, between, items), random.normal(0, bias, annotators)
    who = np.concatenate([random.permutation(annotators)[:each] for _ in range(items)])
    what = np.repeat(np.arange(items), each)
    return what, who, truth[what] + biases[who] + random.normal(0, noise, len(what))


def test_pairwise_agreement_is_the_share_of_equal_pairs():
    items, annotators, labels = [0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [1, 1, 0, 2, 2]
    found = pairwise_agreement(items, annotators, labels, rng=rng())
    assert found.value == 2 / 4
    assert (found.n_items, found.n_annotators, found.n_pairs) == (2, 3, 4)


def test_cohens_kappa_of_a_hand_worked_table():
    # 20 + 15 of 50 agree; by chance .5 * .6 + .5 * .4 = .5.
    found = cohens_kappa(*two_by_two(20, 5, 10, 15), rng=rng())
    assert found.value == pytest.approx(0.4, abs=1e-15)
    assert found.low < 0.4 < found.high


def test_ac1_is_high_where_kappa_is_below_chance_because_one_label_prevails():
    # Gwet 2008: 118 of 125 get yes from both. Chance: .984 * .96 + .016 * .04, or 2 * .972 * .028.
    table = two_by_two(118, 5, 2, 0)
    assert cohens_kappa(*table, rng=rng()).value == pytest.approx((0.944 - 0.94528) / (1 - 0.94528), abs=1e-12)
    assert gwets_ac1(*table, rng=rng()).value == pytest.approx((0.944 - 0.054432) / (1 - 0.054432), abs=1e-12)


def test_fleiss_kappa_of_the_usual_table():
    found = fleiss_kappa(*one_judgment_each(FLEISS), rng=rng())
    assert found.value == pytest.approx(0.20993070442195524, abs=1e-12)  # statsmodels 0.15.0, fleiss_kappa
    assert found.n_pairs == 10 * 14 * 13 / 2


@pytest.mark.parametrize(("measure", "expected"), [(fleiss_kappa, 0.76117), (gwets_ac1, 0.77544)])
def test_missing_labels_are_treated_as_by_gwet(measure, expected):
    items, annotators, labels = long_form(FOUR_RATERS)
    found = measure(items, annotators, labels - 1, rng=rng())
    assert found.value == pytest.approx(expected, abs=5e-6)  # irrCAC 0.4.4 for Python
    assert found.n_items == 11


def test_alpha_with_missing_judgments_agrees_with_the_krippendorff_package(subtests):
    for metric in METRICS:
        with subtests.test(metric=metric):
            found = krippendorff.fit(*long_form(FOUR_RATERS), metric=metric, rng=rng())
            expected = oracle.alpha(np.where(FOUR_RATERS, FOUR_RATERS, np.nan).T, level_of_measurement=metric)
            assert found.value == pytest.approx(expected, abs=1e-14)
            assert (found.n_items, found.n_annotators, found.n_pairs) == (11, 4, 55)
            assert "1 item was left out" in found.notes[0]


@pytest.mark.parametrize("metric", METRICS)
@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=3, max_size=8))
def test_alpha_agrees_with_the_krippendorff_package_on_any_table(metric, table):
    values = long_form(table)
    several = np.bincount(values[0]) >= 2 if len(values[0]) else np.zeros(1, bool)
    pairable = values[2][several[values[0]]] if len(values[0]) else np.array([])
    if len(np.unique(pairable)) < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a table of its own that is empty
        expected = oracle.alpha(np.where(table, table, np.nan).T, level_of_measurement=metric)
    assert krippendorff.fit(*values, metric=metric, draws=0, rng=rng()).value == pytest.approx(expected, abs=1e-12)


def test_alpha_of_the_interval_scale_does_not_see_where_it_starts_or_its_unit():
    items, annotators, values = crowd(1, items=30)
    plain = krippendorff.fit(items, annotators, values, metric="interval", rng=rng())
    moved = krippendorff.fit(items, annotators, 1e3 * values + 1e6, metric="interval", rng=rng())
    assert (moved.value, moved.low, moved.high) == pytest.approx((plain.value, plain.low, plain.high), abs=1e-9)


def test_a_ratio_scale_starts_at_0():
    items, annotators, values = long_form([[1, 2], [3, 3]])
    with pytest.raises(ValueError, match="at least 0"):
        krippendorff.fit(items, annotators, values - 2, metric="ratio", rng=rng())
    zeros = krippendorff.fit([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 5, 5], metric="ratio", rng=rng())
    assert zeros.value == 1.0


def test_icc_of_the_table_of_shrout_and_fleiss(subtests):
    for measure, mean_of, expected in (
        (intraclass.one_way_icc, 1, 0.16574176840547547),
        (intraclass.one_way_icc, 4, 0.44279713367926863),
        (intraclass.two_way_icc, 1, 0.2897637795275592),
        (intraclass.two_way_icc, 4, 0.6200505475989891),
    ):
        with subtests.test(measure=measure, mean_of=mean_of, expected=expected):
            found = measure(*long_form(SHROUT_FLEISS), judgments_per_mean=mean_of, rng=rng())
            assert found.value == pytest.approx(expected, abs=1e-12)  # pingouin 0.6.1; printed: .17 .44 .29 .62
            assert (f"a mean of {mean_of} judgments" in found.sentence) == (mean_of > 1)


def test_icc_of_unequal_numbers_by_hand():
    # Means 2 and 6 of 2 and 3 judgments, 4.4 of all. Between: 2 * 2.4^2 + 3 * 1.6^2 = 19.2; within: (2 + 2) / 3.
    found = intraclass.one_way_icc([0, 0, 1, 1, 1], [0, 1, 0, 1, 2], [1, 3, 5, 6, 7], rng=rng())
    typical = 5 - 13 / 5
    between = (19.2 - 4 / 3) / typical
    assert found.value == pytest.approx(between / (between + 4 / 3), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_icc_recovers_the_variances_that_made_the_scores_though_most_judgments_are_missing(seed):
    table = crowd(seed, items=1500, annotators=100)
    share = 1 / (1 + 0.5**2 + 0.7**2)
    for measure in (intraclass.one_way_icc, intraclass.two_way_icc):
        assert measure(*table, draws=0, rng=rng()).value == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize(("kind", "expected"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_correlation_is_the_mean_over_all_pairs_of_annotators(kind, expected):
    found = score_agreement.mean_annotator_correlation(*long_form(SHROUT_FLEISS), kind=kind, rng=rng())
    pairs = [expected(SHROUT_FLEISS[:, i], SHROUT_FLEISS[:, j]).statistic for i in range(4) for j in range(i)]
    assert found.value == pytest.approx(np.mean(pairs), abs=1e-12)
    assert found.low <= found.value <= found.high <= 1.0
    assert "6 pairs of annotators" in found.notes[0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=3, max_size=12))
def test_weights_count_as_copies_do(entries):
    x, y, weights = (np.array(column, dtype=float) for column in zip(*entries, strict=True))
    copies = np.repeat(np.arange(len(x)), weights.astype(int))
    one_block = np.zeros(len(x), dtype=int)
    found = weighted_spearman_of_each_block(
        MeanRanks.from_values(x, one_block), MeanRanks.from_values(y, one_block), weights[:, None]
    )[0, 0]
    if len(np.unique(x[copies])) < 2 or len(np.unique(y[copies])) < 2:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(x[copies], y[copies]).statistic, abs=1e-12)


def test_ranks_by_hand_count_each_entry_as_often_as_its_weight_says():
    # Block 0 is 3, 1, 3 with the second twice: 1, 1, 3, 3, ranks 1.5 and 3.5 around 2.5. Block 1 is a single value.
    ranking = MeanRanks.from_values(np.array([3.0, 1.0, 3.0, 8.0]), np.array([0, 0, 0, 1]))
    ranks, squares = ranking.centred_ranks_and_square_sums(np.array([[1.0], [2.0], [1.0], [5.0]]))
    assert ranks[:, 0].tolist() == [1.0, -1.0, 1.0, 0.0]
    assert squares[:, 0].tolist() == [4.0, 0.0]


@pytest.mark.parametrize("shared", [5, 10, 30])
def test_orders_of_few_items_correlate_less_by_as_much_as_is_said(shared):
    many, pairs = 20_000, 2_000
    truth, noise = rng().normal(size=(2, many)), rng(2).normal(size=(2, many))
    whole = spearmanr(truth[0] + noise[0] / 2, truth[0] + noise[1] / 2).statistic
    truth, noise = rng(3).normal(size=(pairs, shared)), rng(4).normal(size=(2, pairs, shared))
    few = np.mean([spearmanr(a, b).statistic for a, b in zip(truth + noise[0] / 2, truth + noise[1] / 2, strict=True)])
    assert whole - few == pytest.approx(score_agreement.spearman_deficit_from_few_items(whole, [shared] * 3), abs=0.012)


def test_it_is_told_where_pairs_share_few_items_and_not_where_they_share_many():
    for shared, told in ((5, True), (400, False)):
        truth = np.repeat(rng().normal(size=shared), 2)
        scores = truth + rng(2).normal(size=2 * shared) / 2
        items, annotators = np.repeat(np.arange(shared), 2), np.tile([0, 1], shared)
        found = score_agreement.mean_annotator_correlation(items, annotators, scores, draws=0, rng=rng())
        assert ("few_items_a_pair" in {note.code for note in found.notes}) is told


def test_blocks_and_draws_are_correlated_each_by_itself():
    random = rng()
    block, x, y = np.repeat([0, 1, 2], [4, 9, 30]), random.integers(5, size=43) * 1.0, random.random(43)
    weights = random.integers(1, 4, size=(43, 3)) * 1.0
    found = weighted_spearman_of_each_block(MeanRanks.from_values(x, block), MeanRanks.from_values(y, block), weights)
    for k, draw in np.ndindex(3, 3):
        copies = np.repeat(np.flatnonzero(block == k), weights[block == k, draw].astype(int))
        assert found[k, draw] == pytest.approx(spearmanr(x[copies], y[copies]).statistic, abs=1e-12)


def test_items_are_drawn_as_one_after_another_whatever_the_block():
    at_once, one_by_one, plain = rng(), rng(), rng()
    drawn = draw_item_counts_of_resamples(7, 5, at_once)
    np.testing.assert_array_equal(drawn, [draw_item_counts_of_resamples(7, 1, one_by_one)[0] for _ in range(5)])
    np.testing.assert_array_equal(drawn, [np.bincount(plain.integers(7, size=7), minlength=7) for _ in range(5)])


def test_halves_of_two_judgments_are_the_two_judgments():
    # With two annotators who put the items in opposite orders every split has the correlation -1.
    items, annotators, scores = long_form([[1, 9], [2, 8], [3, 7], [4, 6]])
    assert score_agreement.split_half_reliability(items, annotators, scores, rng=rng()).value == pytest.approx(-1.0)


def test_spearman_and_brown_step_the_correlation_of_halves_up_and_it_is_said():
    table = crowd(1)
    plain = score_agreement.split_half_reliability(*table, rng=rng())
    stepped = score_agreement.split_half_reliability(*table, spearman_brown=True, rng=rng())
    assert stepped.value == pytest.approx(2 * plain.value / (1 + plain.value), abs=1e-12)
    assert "half of the judgments" in plain.sentence
    assert "the Spearman-Brown formula" in stepped.sentence


def test_the_interval_of_near_complete_split_half_agreement_holds_that_of_many_more_items():
    # .9986 is the split-half Spearman of 20,000 items; drawing 200 twice makes ties, which alone cost .002.
    intervals = []
    for seed in range(10):
        generator = rng(seed)
        items = np.repeat(np.arange(200), 4)
        scores = generator.normal(size=200)[items] + generator.normal(0, 0.05, 800)
        found = score_agreement.split_half_reliability(
            items, np.tile(np.arange(4), 200), scores, splits=5, draws=200, rng=generator
        )
        intervals.append(found.low <= 0.99862 <= found.high)
    assert sum(intervals) >= 8


def test_complete_agreement_is_1_and_no_certainty(subtests):
    for measure in EVERY:
        with subtests.test(measure=measure):
            found = measure(*long_form(np.tile(np.arange(1, 13)[:, None] % 5 + 1, 4)), rng=rng())
            assert found.value == pytest.approx(1.0)
            assert np.isnan([found.low, found.high]).all()
            assert "the value is the same for every draw of the items" in found.notes[-1]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_few_items_have_a_value_without_an_interval(n):
    found = krippendorff.fit(*long_form(np.tile(np.arange(n)[:, None] + 1, 3)), rng=rng())
    assert found.value == 1.0
    assert np.isnan([found.low, found.high]).all()
    assert found.notes[-1].endswith(f"{n} items are too few.")


def test_the_interval_surrounds_the_value_and_depends_only_on_the_seed(subtests):
    for measure in EVERY:
        with subtests.test(measure=measure):
            items, annotators, scores = crowd(2, items=60, each=4, annotators=8)
            table = items, annotators, (scores > 0).astype(int) if measure in LABELS else scores
            found, again, other = (measure(*table, draws=200, rng=rng(seed)) for seed in (5, 5, 6))
            assert found.low < found.value < found.high
            assert found == again
            assert found != other


@pytest.mark.parametrize("measure", EVERY)
def test_the_order_of_the_judgments_and_the_names_of_annotators_do_not_matter(measure):
    items, annotators, scores = crowd(3, items=60, each=4, annotators=8)
    scores = (scores > 0).astype(int)
    shuffled, renamed = rng().permutation(len(items)), rng().permutation(8)
    plain = measure(items, annotators, scores, draws=0, rng=rng())
    if measure is score_agreement.split_half_reliability:  # its halves are drawn each time
        return
    other = measure(items[shuffled], renamed[annotators][shuffled], scores[shuffled], draws=0, rng=rng())
    assert other.value == pytest.approx(plain.value, abs=1e-12)


def test_the_sentence_says_that_agreement_is_not_correctness(subtests):
    for measure in EVERY:
        with subtests.test(measure=measure):
            sentence = measure(*long_form(SHROUT_FLEISS), draws=0, rng=rng()).sentence
            assert any(words in sentence for words in ("right", "correct"))
            assert sentence.endswith(".")


def test_annotators_who_share_every_mistake_agree_completely():
    # Passonneau & Carpenter 2014, section 2.1: two adversarial annotators have chance-adjusted agreement 1.
    truth = rng().integers(2, size=50)
    assert cohens_kappa(*long_form(np.column_stack([2 - truth, 2 - truth])), rng=rng()).value == 1.0


@pytest.mark.parametrize("measure", EVERY)
@pytest.mark.parametrize(
    ("items", "annotators", "code"),
    [([], [], "no_shared_items"), ([0, 1], [0, 0], "one_annotator"), ([0, 1], [0, 1], "no_shared_items")],
)
def test_without_two_judgments_of_an_item_it_is_said_why_there_is_no_figure(measure, items, annotators, code):
    items, annotators, values = (np.array(column, dtype=int) for column in (items, annotators, items))
    with pytest.raises(Inestimable) as refused:
        measure(items, annotators, values, rng=rng())
    assert refused.value.code == code


def test_if_all_judgments_are_the_same_chance_cannot_be_told_from_agreement(subtests):
    for measure in [m for m in EVERY if m not in (pairwise_agreement, gwets_ac1)]:
        with subtests.test(measure=measure):
            with pytest.raises(Inestimable) as refused:
                measure(*long_form(np.full((8, 3), 2)), rng=rng())
            assert refused.value.code == "all_the_same"


def test_if_all_judgments_are_the_same_pairwise_agreement_and_ac1_are_complete():
    table = long_form(np.full((8, 3), 2))
    assert pairwise_agreement(*table, rng=rng()).value == gwets_ac1(*table, rng=rng()).value == 1.0


def test_ac1_needs_labels_to_choose_from():
    items, annotators, _ = long_form(SHROUT_FLEISS)
    with pytest.raises(Inestimable, match="only one label"):
        gwets_ac1(items, annotators, np.zeros(len(items), int), rng=rng())
    three = gwets_ac1(*two_by_two(20, 5, 10, 15), n_labels=3, rng=rng())
    assert three.value > gwets_ac1(*two_by_two(20, 5, 10, 15), rng=rng()).value


def test_one_item_has_a_value_without_an_interval():
    found = pairwise_agreement([0, 0, 0], [0, 1, 2], [1, 1, 0], rng=rng())
    assert found.value == pytest.approx(1 / 3)
    assert np.isnan([found.low, found.high]).all()
    assert found.notes[-1].endswith("there is only 1 item.")
    with pytest.raises(Inestimable, match="Only one item"):
        intraclass.one_way_icc([0, 0, 0], [0, 1, 2], [1, 1, 0], rng=rng())


def test_an_interval_is_optional():
    found = pairwise_agreement(*two_by_two(20, 5, 10, 15), draws=0, rng=rng())
    assert np.isnan([found.low, found.high]).all()
    assert found.notes == ()


def test_draws_without_a_value_are_left_out_and_counted():
    # Only one item is not all 1, so a third of the draws have one label throughout.
    found = krippendorff.fit(*long_form([[1, 1]] * 6 + [[1, 2]]), rng=rng())
    assert "draws of the items, the value is not defined" in found.notes[-1]
    assert np.isfinite([found.low, found.high]).all()


def test_if_no_draw_has_a_value_there_is_no_interval():
    # Only one item has the label 1, and this draw does not have it.
    table = np.repeat(np.arange(7), 2), np.tile([0, 1], 7), np.repeat([0] * 6 + [1], 2)
    found = cohens_kappa(*table, least_shared=2, draws=1, rng=rng(0))
    assert found.value == 1.0
    assert np.isnan([found.low, found.high]).all()
    assert "no draw" in found.notes[-1]


def test_of_an_annotators_two_judgments_of_an_item_the_first_counts():
    found = pairwise_agreement([0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [1, 0, 1, 1, 1], rng=rng())
    assert found.value == 1.0
    assert found.n_pairs == 2
    assert found.notes[0] == "1 judgment was left out: its annotator had judged the same item before."
    twice = pairwise_agreement([0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 1, 1], rng=rng())
    assert "3 judgments were left out" in twice.notes[0]


def test_items_and_annotators_without_judgments_change_nothing():
    items, annotators, scores = long_form(SHROUT_FLEISS)
    plain = intraclass.two_way_icc(items, annotators, scores, rng=rng())
    gaps = intraclass.two_way_icc(2 * items, 3 * annotators, scores, n_items=20, n_annotators=15, rng=rng())
    assert plain == gaps


def test_items_judged_once_are_left_out_and_counted():
    found = intraclass.one_way_icc([0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 0, 1], [1, 2, 5, 6, 9, 9], rng=rng())
    assert "2 items were left out" in found.notes[0]
    assert found.n_items == 2


@pytest.mark.parametrize("measure", [cohens_kappa, score_agreement.mean_annotator_correlation])
def test_pairs_of_annotators_who_share_too_little_are_left_out_and_counted(measure):
    table = np.zeros((12, 3), int)
    table[:, 0] = table[:8, 1] = 0
    table[:, 0] = np.arange(12) % 3 + 1
    table[:8, 1] = np.arange(8) % 3 + 1
    table[10:, 2] = 1
    found = measure(*long_form(table), rng=rng())
    assert found.value == pytest.approx(1.0)
    assert found.n_pairs == 8
    assert "1 pair of annotators shared fewer than 5 items" in " ".join(found.notes)
    with pytest.raises(Inestimable, match="9 or more") as refused:
        measure(*long_form(table), least_shared=9, rng=rng())
    assert refused.value.code == "too_few_shared_items"


def test_shared_items_are_told_in_whole_items():
    table = np.zeros((12, 4), int)
    table[:5, 0] = table[:5, 1] = np.arange(5) % 3 + 1
    table[6:, 2] = table[6:, 3] = np.arange(6) % 3 + 1
    assert (
        "half of the pairs share 5 or fewer"
        in score_agreement.mean_annotator_correlation(*long_form(table), rng=rng()).notes[0]
    )


@pytest.mark.parametrize("measure", [cohens_kappa, score_agreement.mean_annotator_correlation])
def test_a_pair_that_always_says_the_same_has_no_value_and_is_counted(measure):
    table = np.column_stack([np.full(8, 1), np.full(8, 1), np.arange(8) % 2 + 1])
    varied = np.column_stack([table, np.arange(8) % 2 + 1])
    assert "because" in " ".join(measure(*long_form(varied), rng=rng()).notes)
    with pytest.raises(Inestimable, match="No pair of annotators has a value"):
        measure(*long_form(table[:, :2]), rng=rng())


def test_without_an_annotator_of_two_items_strictness_cannot_be_told_from_noise():
    with pytest.raises(Inestimable) as refused:
        intraclass.two_way_icc([0, 0, 1, 1], [0, 1, 2, 3], [1, 2, 3, 4], rng=rng())
    assert refused.value.code == "annotators_not_shared"


def test_two_items_are_too_few_for_halves():
    with pytest.raises(Inestimable, match="Fewer than 3 items"):
        score_agreement.split_half_reliability([0, 0, 1, 1], [0, 1, 0, 1], [1, 2, 3, 4], rng=rng())


def test_options_that_cannot_be_are_refused(subtests):
    for measure, options, words in (
        (krippendorff.fit, {"draws": -1}, "number of draws"),
        (krippendorff.fit, {"level": 1.0}, "between 0 and 1"),
        (intraclass.one_way_icc, {"judgments_per_mean": 0.5}, "at least 1 judgment"),
        (score_agreement.mean_annotator_correlation, {"least_shared": 1}, "at least 2"),
        (score_agreement.split_half_reliability, {"splits": 0}, "at least 1 split"),
        (gwets_ac1, {"n_labels": 4}, "labels are numbered"),
        (pairwise_agreement, {"n_items": 5}, "items are numbered"),
        (pairwise_agreement, {"n_annotators": 3}, "annotators are numbered"),
    ):
        with (
            subtests.test(measure=measure, options=options, words=words),
            pytest.raises(ValueError, match=words),
        ):
            measure(*long_form(SHROUT_FLEISS), **options, rng=rng())


def test_scores_that_cannot_be_are_refused(subtests):
    for values in ([1.0, np.nan], [1.0, np.inf], [1.0], [[1.0, 2.0]]):
        with subtests.test(values=values), pytest.raises(ValueError, match=r"finite|lengths|shape"):
            intraclass.one_way_icc([0, 0], [0, 1], values, rng=rng())


def test_labels_are_whole_numbers():
    with pytest.raises(ValueError, match="whole numbers"):
        pairwise_agreement([0, 0], [0, 1], [0.5, 1.0], rng=rng())


@pytest.mark.parametrize("measure", EVERY)
def test_the_interval_has_the_share_of_cases_it_names(measure):
    """Of 60 simulated campaigns about 57 should have the mean of all in their interval; 50 are five deviations off."""
    campaigns = [crowd(seed, items=60, each=4, annotators=10, bias=0.1) for seed in range(60)]
    tables = [(i, j, (s > 0).astype(int) if measure in LABELS else s) for i, j, s in campaigns]
    found = [measure(*table, draws=100, rng=rng(seed)) for seed, table in enumerate(tables)]
    centre = np.mean([one.value for one in found])
    assert sum(one.low <= centre <= one.high for one in found) >= 50
