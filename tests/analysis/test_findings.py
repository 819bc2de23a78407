"""Findings of the analysis in sentences, from results worked out by hand."""

import numpy as np
import pytest

from app.analysis import findings
from app.analysis.annotator_table import build_annotator_table
from app.analysis.result_types import Cell, Column, Options, ResultTable, Scores
from app.analysis.scores import MEAN_METHOD
from app.analysis.system_table import SYSTEM_RANK_COLUMNS
from tests.analysis.answers import answers

FOUR_ITEMS = answers([(0, {0: 10.0, 1: 50.0, 2: 90.0})], n_items=4)


def test_scores_are_told_with_their_usual_exactness_and_both_ends():
    values = np.array([10.0, 50.0, 90.0, np.nan])
    errors = np.array([4.0, 6.0, 8.0, 1.0])
    scores = Scores(values, np.isfinite(values), values - errors, values + errors)
    assert findings.finding_about_scores(MEAN_METHOD, scores, FOUR_ITEMS).sentence == (
        "3 of 4 items have a score (method: Mean). A typical score is known to ± 6 points (95 % interval). "
        "The highest score is that of “text 2” (90, 82 to 98); the lowest is that of “text 0” (10, 6 to 14)."
    )


def test_without_intervals_and_with_one_score_nothing_is_said_of_them():
    values = np.array([np.nan, 50.0, np.nan, np.nan])
    sentence = findings.finding_about_scores(MEAN_METHOD, Scores(values, np.isfinite(values)), FOUR_ITEMS).sentence
    assert sentence == "1 of 4 items have a score (method: Mean)."


def test_a_long_text_is_cut_in_the_sentence():
    made = answers([(0, {0: 10.0, 1: 50.0})], shown=["a" * 200, "b"])
    values = np.array([10.0, 50.0])
    sentence = findings.finding_about_scores(MEAN_METHOD, Scores(values, np.isfinite(values)), made).sentence
    assert f"“{'a' * 59}…”" in sentence


def test_the_most_disputed_items_are_named_with_their_range():
    hits = [(who, dict.fromkeys(range(8), 50.0 + who) | {8: 100.0 * (who % 2)}) for who in range(4)]
    found = findings.finding_about_disputed_items_or_none(answers(hits))
    assert found is not None
    assert found.sentence.endswith("They differ far more on 1 item: “text 8” (0 to 100).")


@pytest.mark.parametrize("spread", [0.0, 5.0])
def test_where_items_are_alike_none_is_disputed(spread):
    hits = [(who, dict.fromkeys(range(8), 50.0 + spread * who)) for who in range(4)]
    assert findings.finding_about_disputed_items_or_none(answers(hits)) is None


def labelled(hits):
    return answers(hits, value_kind="classes", classes=("ja", "nein"))


def test_items_on_which_no_label_has_a_majority_are_named_with_the_labels_given():
    hits = [(0, {0: 0.0, 1: 0.0, 2: 1.0, 3: 1.0}), (1, {0: 0.0, 1: 1.0, 2: 1.0}), (2, {0: 1.0, 2: 1.0})]
    found = findings.finding_about_labels_or_none(labelled(hits))
    assert found is not None
    assert found.part == "labels"
    assert found.sentence == (
        "Annotators agree on the label of 1 of 3 items with two or more judgments. On 1 item no label has a majority, "
        "so look at it yourself: “text 1” (1 ja, 1 nein)."
    )


def test_labels_on_which_all_agree_have_no_undecided_items():
    found = findings.finding_about_labels_or_none(labelled([(0, {0: 1.0}), (1, {0: 1.0})]))
    assert found is not None
    assert found.sentence == "Annotators agree on the label of 1 of 1 item with two or more judgments."


def test_nothing_is_said_about_labels_that_one_annotator_gave_or_about_scores():
    assert findings.finding_about_labels_or_none(labelled([(0, {0: 1.0})])) is None
    assert findings.finding_about_labels_or_none(FOUR_ITEMS) is None


def test_items_that_share_the_highest_score_are_counted_and_none_of_them_is_named():
    values = np.array([90.0, 90.0, 10.0, 50.0])
    scores = Scores(values, np.isfinite(values), values - 5, values + 5)
    sentence = findings.finding_about_scores(MEAN_METHOD, scores, FOUR_ITEMS).sentence
    assert sentence.endswith(
        "The highest score is 90, which 2 items share; the lowest is that of “text 2” (10, 5 to 15)."
    )


@pytest.mark.parametrize(
    ("correlation", "consequence"),
    [
        (0.97, "it hardly matters which of the two you report"),
        (0.85, "the orders are similar, so say which method you report"),
        (0.5, "the order depends on the method, so report both, or say why you chose one"),
    ],
)
def test_the_finding_about_methods_says_what_follows_for_a_report(correlation, consequence):
    assert findings.consequence_of_method_choice(correlation) == consequence


def careful_and_random(careful: int, at_random: int):
    """Return answers of annotators who all judge 40 items; the last ones answer at random."""
    rng = np.random.default_rng(1)
    truth = rng.uniform(10, 90, 40)
    people = [np.clip(truth + rng.normal(0, 6, 40), 0, 100) for _ in range(careful)]
    people += [rng.uniform(0, 100, 40) for _ in range(at_random)]
    return answers([(who, dict(enumerate(scores.round().tolist()))) for who, scores in enumerate(people)])


def test_an_annotator_who_does_not_follow_the_others_is_named_with_their_effect_on_agreement():
    made = careful_and_random(6, 1)
    found = findings.finding_about_annotator_reliability_or_none(build_annotator_table(made, Options()), made)
    assert found is not None
    assert found.sentence.startswith(
        "1 of 7 annotators seems not to agree with the others: A7. Without this annotator, the others agree "
        "more: Krippendorff’s alpha"
    )
    without, present = (float(word.rstrip(".")) for word in found.sentence.split() if word[:2] in ("0.", "1."))
    assert without > 0.9 > present > 0.4


def test_careful_annotators_are_told_to_be_that():
    made = careful_and_random(6, 0)
    found = findings.finding_about_annotator_reliability_or_none(build_annotator_table(made, Options()), made)
    assert found is not None
    assert found.sentence == "All 6 annotators with enough judgments agree with the others."


def test_names_beyond_the_first_few_are_counted():
    assert findings.join_leading_names_and_count_of_others(["A1"]) == "A1"
    assert findings.join_leading_names_and_count_of_others(["A1", "A2"]) == "A1 and A2"
    assert findings.join_leading_names_and_count_of_others([f"A{k}" for k in range(1, 8)]) == "A1, A2, A3 and 4 more"


def test_the_first_cluster_of_systems_is_named():
    rows: list[tuple[Cell, ...]] = [("a", 1, 1, 1, 1, 60.0, 55.0, 65.0, 9), ("b", 2, 2, 2, 2, 40.0, 35.0, 45.0, 9)]
    table = ResultTable(
        SYSTEM_RANK_COLUMNS, rows, (), "2 clusters: systems in the same cluster cannot be distinguished."
    )
    found = findings.finding_about_systems_or_none(table)
    assert found is not None
    assert found.sentence.startswith("a ranks first. 2 clusters:")
    assert findings.finding_about_systems_or_none(ResultTable(SYSTEM_RANK_COLUMNS, [])) is None


def test_the_least_similar_group_is_named():
    columns = tuple(Column(name, name) for name in ("question", "answer", "with_others"))
    table = ResultTable(columns, [("native", "yes", 0.91), ("native", "no", 0.78), ("native", "?", None)])
    found = findings.finding_about_groups_or_none(table)
    assert found is not None
    assert found.sentence == (
        "Item means of groups of annotators correlate 0.78 or more with those of the others; the lowest is native: no."
    )
    assert findings.finding_about_groups_or_none(ResultTable(columns, [("native", "?", None)])) is None


def test_two_methods_are_compared_by_their_order():
    one, same, constant = (np.array(values, float) for values in ([1, 2, 3], [1, 4, 9], [5, 5, 5]))
    scores = [Scores(values, np.isfinite(values)) for values in (one, same, constant)]
    found = findings.finding_about_effect_of_method_or_none(("Mean", "Elo"), (scores[0], scores[1]))
    assert found is not None
    assert found.sentence == (
        "The orders of the items by Mean and by Elo correlate 1.00 (Spearman): it hardly matters which of the two you "
        "report."
    )
    assert findings.finding_about_effect_of_method_or_none(("Mean", "Elo"), (scores[0], scores[2])) is None
