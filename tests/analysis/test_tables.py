"""Agreement, annotators, consistency, labels, graded response: tables of a campaign's answers."""

import gc
import json
import weakref
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.analysis import agreement_table
from app.analysis.agreement_verdict import sentence_on_convention
from app.analysis.answer_kinds import class_names_or_score_ranges, label_of_each_judgment
from app.analysis.label_tables import fit_judgment_labels_with_confidence
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.result_types import Answers, Options, ResultTable, cell_or_none_if_not_finite
from app.inference.agreement.agreement_measure import Agreement
from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.online.law import LawParameters
from tests.analysis.answers import answers, crowd_answers

ALONE = [(0, {0: 80.0, 1: 20.0}), (0, {1: 30.0, 2: 10.0})]
TIES = [(who, {0: 50.0, 1: 50.0, 2: 50.0}) for who in range(3)]
APART = [(0, {0: 80.0, 1: 20.0}), (1, {2: 80.0, 3: 20.0})]


def table(made: Answers, name: str, **options) -> ResultTable:
    return TABLE_METHODS[name].fit(made, Options(**options))


def by_name(found: ResultTable) -> dict[str, dict[str, Any]]:
    names = [column.name for column in found.columns]
    return {str(row[0]): dict(zip(names, row, strict=True)) for row in found.rows}


def refusal(made: Answers, name: str, **options) -> str:
    with pytest.raises(Inestimable) as refused:
        table(made, name, **options)
    assert str(refused.value).endswith(".")
    return refused.value.code


def systems_judged(*, tied: bool = False) -> Answers:
    """Return judgments of three systems for eight segments: good is better than plain, and plain than bad."""
    names = [f"s{segment}" for segment in range(8) for _ in range(3)]
    quality = {"bad": 20.0, "good": 80.0, "plain": 50.0}
    rng = np.random.default_rng(5)
    hits = []
    for who in range(6):
        for segment in range(8):
            noise = rng.normal(0, 25, 3)
            values = [
                50.0 if tied else float(np.clip(v + e, 0, 100)) for v, e in zip(quality.values(), noise, strict=True)
            ]
            hits.append((who, {3 * segment + k: values[k] for k in range(3)}))
    return answers(hits, systems=[*quality] * 8, segments=names)


@pytest.mark.parametrize("name", [*TABLE_METHODS])
@pytest.mark.parametrize("made", [crowd_answers(), answers(ALONE), answers(TIES), answers(APART), systems_judged()])
def test_a_table_is_whole_and_without_nan_or_refuses_in_a_sentence(name, made):
    found = None
    with suppress(Inestimable):
        found = table(made, name)
    if found is None:
        assert refusal(made, name)
        return
    assert found.rows
    assert all(len(row) == len(found.columns) for row in found.rows)
    assert len({column.name for column in found.columns}) == len(found.columns)
    json.dumps([found.rows, found.notes], allow_nan=False)


@pytest.mark.parametrize("name", [name for name in TABLE_METHODS if name != "implied"])  # which scores do not reach
def test_before_the_first_answer_every_table_says_so(name):
    assert refusal(answers([], n_items=3), name) == "no_judgments"


def test_every_method_and_table_is_explained_in_sentences():
    for method in SCORE_METHODS.values():
        assert method.title
        assert method.unit
        assert method.assumes.endswith(".")
    for of in TABLE_METHODS.values():
        assert of.title
        assert of.explanation.endswith(".")


def test_every_coefficient_has_an_interval_and_says_what_it_cannot_tell():
    rows = by_name(table(crowd_answers(), "agreement"))
    assert [*rows] == [measure.name for measure in agreement_table.AGREEMENT_MEASURES]
    for row in rows.values():
        assert row["low"] <= row["value"] <= row["high"]
        assert row["annotators"] == 5
        assert len(row["sentence"]) > 80
    assert rows["alpha_interval"]["value"] > 0.8


def test_one_annotator_has_nobody_to_agree_with():
    assert refusal(answers(ALONE), "agreement") == "one_annotator"


def test_what_one_coefficient_cannot_estimate_does_not_hide_the_others():
    rows = by_name(table(answers(TIES), "agreement"))
    assert rows["label_agreement"]["value"] == 1.0
    assert rows["alpha_interval"]["value"] is None
    assert "same" in rows["alpha_interval"]["sentence"]


def test_coefficients_by_pairs_give_way_to_the_others_where_pairs_are_too_many(monkeypatch):
    monkeypatch.setattr(agreement_table, "MAX_AGREEMENT_PAIRS", 10)
    rows = by_name(table(crowd_answers(), "agreement"))
    assert "too many" in rows["correlation"]["sentence"]
    assert rows["correlation"]["value"] is None
    assert rows["alpha_ordinal"]["value"] > 0.8


def test_agreement_says_once_what_a_label_is():
    upper = "a score on a cut belongs to the upper class."
    two, three = (table(crowd_answers(), "agreement", classes=classes).notes[0] for classes in (2, 3))
    assert two == f"Labels are scores cut into 2 classes at 50; {upper}"
    assert three == f"Labels are scores cut into 3 classes at 33.33, 66.67; {upper}"


def test_no_table_says_a_note_twice(subtests):
    ratios = answers([(0, {0: 0.5, 1: 2.0}), (1, {0: 0.5, 1: 4.0})], value_kind="ratio", law="log-normal")
    for made in (ratios, crowd_answers(), systems_judged()):
        for name in TABLE_METHODS:
            with subtests.test(name=name), suppress(Inestimable):
                notes = table(made, name).notes
                assert len(notes) == len({*notes})


def test_what_holds_for_every_coefficient_is_said_once():
    again = answers([(who, {k: float(8 * k + who) for k in range(12)}) for who in range(3)] + [(0, {0: 9.0, 1: 3.0})])
    found = table(again, "agreement")
    left_out = "2 judgments were left out: their annotators had judged the same items before."
    assert left_out in found.notes
    assert not any(left_out in str(row["notes"]) for row in by_name(found).values())
    assert "pairs of annotators" in str(by_name(found)["cohen"]["notes"])


def test_agreement_on_systems_is_agreement_on_their_outputs():
    """Two annotators score each output alike, in different orders of the segments, which differ more than systems."""
    scores = ({0: 90.0, 1: 80.0}, {0: 20.0, 1: 10.0}, {0: 55.0, 1: 45.0})
    order = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0)]
    hits, segments = [(who, scores[segment]) for who, segment in order], np.array([segment for _, segment in order])
    of_outputs = by_name(table(answers(hits, hit_segments=segments), "agreement"))["alpha_interval"]
    assert (of_outputs["value"], of_outputs["items"], of_outputs["pairs"]) == (1.0, 6, 6)
    assert by_name(table(answers(hits), "agreement"))["alpha_interval"]["value"] < 0.2


def test_preferences_between_systems_are_compared_within_their_segment():
    """One system is better for one segment and the other for the other one, as all annotators say."""
    order = [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)]
    hits = [(who, {0: 100.0 * segment, 1: 100.0 - 100.0 * segment}) for who, segment in order]
    segments = np.array([segment for _, segment in order])
    of_outputs = by_name(table(answers(hits, value_kind="order", hit_segments=segments), "agreement"))
    assert of_outputs["pair_agreement"]["value"] == 1.0
    assert by_name(table(answers(hits, value_kind="order"), "agreement"))["pair_agreement"]["value"] < 0.5


def test_labels_of_agreement_are_cut_as_chosen():
    two, five = (by_name(table(crowd_answers(), "agreement", classes=classes)) for classes in (2, 5))
    assert two["label_agreement"]["value"] > five["label_agreement"]["value"]
    assert two["alpha_interval"] == five["alpha_interval"]


def verdict(made: Answers) -> str:
    return table(made, "agreement").verdict


def test_agreement_begins_with_what_its_figures_say_together():
    found = table(crowd_answers(), "agreement")
    rows = by_name(found)
    alpha, again = (rows[name] for name in ("alpha_interval", "split_half_stepped_up"))
    assert found.verdict == (
        f"Annotators agree more than by chance: Krippendorff’s alpha is {alpha['value']:.2f} (95 % interval "
        f"{alpha['low']:.2f} to {alpha['high']:.2f}). By convention (Krippendorff 2004), single judgments "
        "agree enough to rely on (0.800 or more). A new order of the items would be nearly the same: a "
        f"ranking from as many new judgments would correlate {again['value']:.2f} "
        f"({again['low']:.2f} to {again['high']:.2f}) with this one."
    )


@pytest.mark.parametrize(
    ("alpha", "ending"),
    [
        (0.8, "agree enough to rely on (0.800 or more)."),
        (0.7, "agree enough for tentative conclusions (0.667 or more), but not enough to rely on (0.800 or more)."),
        (0.5, "do not agree enough for conclusions (0.667 or more); use scores from several judgments."),
    ],
)
def test_alpha_is_held_against_the_convention_that_the_field_names(alpha, ending):
    measured = Agreement(alpha, alpha - 0.1, alpha + 0.1, 10, 5, 20, "")
    assert sentence_on_convention(measured) == f"By convention (Krippendorff 2004), single judgments {ending}"


def test_agreement_that_may_be_chance_is_not_called_agreement():
    random = np.random.default_rng(2).integers(0, 101, (4, 12)).tolist()
    made = answers([(who, {k: float(score) for k, score in enumerate(row)}) for who, row in enumerate(random)])
    assert verdict(made).startswith("It is unclear whether annotators agree more than by chance: ")


def test_annotators_who_turn_the_scale_around_disagree():
    truth = {k: 9.0 * k for k in range(12)}
    made = answers([(0, truth), (1, {k: 99 - score + 7 * k % 5 for k, score in truth.items()})])
    assert verdict(made).startswith("Annotators disagree more than by chance: ")


def test_agreement_without_an_interval_is_given_as_a_figure_alone():
    truth = {k: 9.0 * k for k in range(12)}
    said = verdict(answers([(0, truth), (1, truth)]))
    assert said.startswith("There are too few answers to tell agreement from chance: Krippendorff’s alpha is 1.00.")


def test_judgments_that_are_all_the_same_have_no_agreement_beyond_chance():
    assert "agree more than by chance: all judgments are the same" in verdict(answers(TIES))


@pytest.mark.parametrize("name", ["label_items", "graded_response"])
def test_a_fit_that_several_tables_share_keeps_no_campaign_in_memory(name):
    made = systems_judged()
    table(made, name)
    seen = weakref.ref(made)
    del made
    gc.collect()
    assert seen() is None


def ac1(made: Answers, classes: int) -> float:
    found: float = by_name(table(made, "agreement", classes=classes))["gwet"]["value"]
    return found


def test_ac1_counts_the_classes_that_were_chosen_where_none_of_the_scores_is_in_the_upper_one():
    low = answers([(who, {k: float(4 * k + who) for k in range(9)}) for who in range(3)])
    assert ac1(low, 2) == 1.0


def test_ac1_counts_the_classes_that_were_chosen_and_not_those_that_were_given():
    scores = np.random.default_rng(4).integers(0, 80, (4, 30)).tolist()  # of five classes of 20 points, four
    made = answers([(who, {k: float(score) for k, score in enumerate(row)}) for who, row in enumerate(scores)])
    share, given = (by_name(table(made, "agreement", classes=5))[name]["value"] for name in ("label_agreement", "gwet"))
    pi = np.bincount(label_of_each_judgment(made, 5), minlength=5) / len(made.item)
    by_chance = (pi * (1 - pi)).sum() / (5 - 1)  # Gwet 2008
    assert given == pytest.approx((share - by_chance) / (1 - by_chance))


def test_annotators_are_counted_and_described():
    made = answers([(0, {0: 10.0, 1: 30.0}), (0, {2: 80.0, 0: 20.0}), (1, {0: 0.0, 1: 100.0})])
    rows = by_name(table(made, "annotators"))
    assert (rows["a0"]["hits"], rows["a0"]["judgments"], rows["a0"]["mean"]) == (2, 4, 35.0)
    assert rows["a1"]["spread"] == pytest.approx(np.std([0, 100], ddof=1))


def test_of_annotators_the_share_that_they_could_not_judge_is_told_where_it_is_offered():
    told = [(0, {0: 10.0, 1: 30.0, 2: 50.0}), (1, {0: 0.0, 1: 100.0})]
    assert "unjudged" not in by_name(table(answers(told), "annotators"))["a0"]
    found = table(answers(told, unjudged_counts=np.array([1, 0]), names_without_judgment=["A3", "A4"]), "annotators")
    assert [row["unjudged"] for row in by_name(found).values()] == [0.25, 0.0]
    assert any(note.code == "judged_nothing" and "A3, A4" in note for note in found.notes)


def test_the_correlation_with_the_others_leaves_out_the_annotators_own_judgments():
    truth = {k: 10.0 * k for k in range(8)}
    turned = {k: 100.0 - value for k, value in truth.items()}
    rows = by_name(table(answers([(0, truth), (1, truth), (2, truth), (3, turned)]), "annotators"))
    assert rows["a3"]["correlation"] == pytest.approx(-1.0)
    others = [(2 * truth[k] + turned[k]) / 3 for k in range(8)]
    assert rows["a0"]["correlation"] == pytest.approx(np.corrcoef([*truth.values()], others)[0, 1])
    assert rows["a3"]["reliability"] < rows["a0"]["reliability"]


def test_judging_an_item_twice_is_no_agreement_with_others():
    made = answers([(0, {0: 10.0, 1: 20.0, 2: 90.0}), (0, {0: 12.0, 1: 25.0, 2: 80.0}), (1, {3: 5.0})])
    row = by_name(table(made, "annotators"))["a0"]
    assert row["correlation"] is None


def test_one_annotator_has_a_row_with_what_can_be_told_and_a_note():
    found = table(answers(ALONE), "annotators")
    row = by_name(found)["a0"]
    assert (row["hits"], row["correlation"], row["reliability"], row["kappa"]) == (2, None, None, None)
    assert any("One annotator" in note for note in found.notes)
    assert not any("transitivity" in note for note in found.notes)  # these answers are scores


def test_bias_is_in_points():
    truth = {k: 10.0 * k + 5 for k in range(9)}
    high = {k: value + 10 for k, value in truth.items()}
    rows = by_name(table(answers([(0, truth), (1, truth), (2, truth), (3, high)]), "annotators"))
    assert 3 < rows["a3"]["bias"] - rows["a0"]["bias"] < 10  # shrunk, as there are only nine scores


def cyclic() -> Answers:
    """Return three HITs in which 0 beats 1, 1 beats 2 and 2 beats 0."""
    return answers([(0, {0: 60.0, 1: 40.0}), (0, {1: 60.0, 2: 40.0}), (0, {2: 60.0, 0: 40.0})])


def test_a_cycle_counts_against_transitivity_and_forbids_a_scale():
    rows = by_name(table(cyclic(), "consistency"))
    assert rows["transitivity"]["rests_on"] == 1
    assert rows["transitivity"]["value"] < 0
    assert rows["scale"]["value"] is None
    assert "Scale from preferences" in rows["scale"]["sentence"]
    with pytest.raises(Inestimable, match="item “i0” is at least as good as item “i1”"):
        table(cyclic(), "scale")
    assert refusal(cyclic(), "scale") == "no_scale"


def test_pairs_within_one_hit_say_nothing_of_transitivity():
    rows = by_name(table(answers([(0, {0: 10.0, 1: 50.0, 2: 90.0})]), "consistency"))
    assert rows["transitivity"]["value"] is None
    assert "three items in three different tasks" in rows["transitivity"]["sentence"]


def test_preferences_without_a_cycle_make_a_scale():
    made = answers([(0, {0: 10.0, 1: 50.0, 2: 90.0})])
    assert [row[2] for row in table(made, "scale").rows] == [0.0, 1.0, 2.0]
    assert by_name(table(made, "consistency"))["scale"]["value"] == 3


def test_a_missing_pair_is_named_by_its_items_ids():
    with pytest.raises(Inestimable, match="items “i0” and “i2”"):
        table(answers(APART), "scale")


def test_missing_pairs_are_told_with_the_scale_and_not_again_with_consistency():
    sentence = str(by_name(table(answers(APART), "consistency"))["scale"]["sentence"])
    assert "“Scale from preferences” says why" in sentence
    assert "pairs of items" not in sentence


def test_scores_given_again_are_compared_in_points():
    made = answers([(0, {0: 10.0, 1: 20.0}), (0, {0: 14.0, 1: 26.0})], parameters=LawParameters(tie_margin=0.05))
    rows = by_name(table(made, "consistency"))
    assert rows["retest_same"]["value"] == 0.5
    assert rows["retest_shift"]["value"] == pytest.approx(5.0)
    assert rows["retest_error"]["value"] == pytest.approx(np.sqrt((16 + 36) / 2 / 2))
    assert rows["retest_correlation"]["value"] is None
    assert rows["pairs_again_same"]["value"] == 1.0
    assert {row["rests_on"] for name, row in rows.items() if name.startswith("retest")} == {2}


def test_nothing_judged_twice_is_said():
    assert "twice" in str(by_name(table(answers(ALONE[:1]), "consistency"))["retest"]["sentence"])


@pytest.mark.parametrize(("classes", "expected"), [(2, [0, 0, 1, 1, 1]), (3, [0, 1, 1, 2, 2]), (4, [0, 1, 2, 2, 3])])
def test_a_cut_belongs_to_the_upper_label(classes, expected):
    made = answers([(0, {0: 0.0, 1: 100 / 3, 2: 50.0, 3: 200 / 3, 4: 100.0})])
    assert label_of_each_judgment(made, classes).tolist() == expected


def test_labels_are_called_by_their_points():
    assert class_names_or_score_ranges(crowd_answers(), 2) == ["0 to 50", "50 to 100"]
    assert class_names_or_score_ranges(crowd_answers(), 3) == ["0 to 33.33", "33.33 to 66.67", "66.67 to 100"]


@pytest.mark.parametrize("classes", [1, 11])
def test_there_are_two_to_ten_classes(classes):
    with pytest.raises(ValueError, match="2 to 10"):
        label_of_each_judgment(crowd_answers(), classes)


def test_items_have_the_label_that_annotators_gave_them_with_a_confidence():
    found = table(crowd_answers(), "label_items")
    rows = by_name(found)
    assert rows["i0"]["label"] == "0 to 50"
    assert rows["i11"]["label"] == "50 to 100"
    for row in rows.values():
        assert row["confidence"] == max(row["probability_0"], row["probability_1"])
        assert 0 <= row["expected_information"] <= row["entropy"] + 1e-12
    assert sum(row["prevalence"] for row in by_name(table(crowd_answers(), "labels")).values()) == pytest.approx(1)
    assert sum(row["share"] for row in by_name(table(crowd_answers(), "labels")).values()) == pytest.approx(1)
    assert by_name(table(crowd_answers(), "label_annotators"))["a0"]["accuracy"] > 0.8


def test_prevalences_have_an_interval_that_holds_them():
    prevalence, low, high = np.array([row[1:4] for row in table(crowd_answers(), "labels").rows], float).T
    assert ((low > 0) & (low < prevalence) & (prevalence < high) & (high < 1)).all()


def test_prevalences_of_too_many_labels_have_no_interval(monkeypatch):
    monkeypatch.setattr("app.analysis.label_tables.MAX_RESAMPLED_LABELS", 10)
    found = table(crowd_answers(), "labels")
    assert {row[2:4] for row in found.rows} == {(None, None)}
    assert found.notes[-1].code == "prevalence_without_interval"


def test_confidence_in_labels_is_said_to_be_too_high_where_errors_are_the_same():
    notes = table(crowd_answers(), "label_items").notes
    assert any("too high where annotators make the same errors" in note for note in notes)


def test_an_item_without_a_judgment_has_no_label_and_no_confidence():
    made = crowd_answers()
    made = replace(
        made,
        ids=[*made.ids, "never"],
        shown=[*made.shown, ""],
        systems=[None] * 13,
        segments=[None] * 13,
        prior=np.ones((2, 13)),
    )
    found = table(made, "label_items")
    row = by_name(found)["never"]
    assert (row["label"], row["confidence"], row["judgments"]) == (None, None, 0)
    assert row["entropy"] > 0.9
    assert any("item “never”" in note for note in found.notes)


def test_every_judgments_label_has_a_confidence():
    found = fit_judgment_labels_with_confidence(crowd_answers(), 2)
    made = crowd_answers()
    agree = found.labels == found.item_labels[made.item]
    assert (found.confidence[agree] == found.item_confidence[made.item][agree]).all()
    assert (found.confidence[~agree] < 0.5).all()


def test_labels_that_do_not_overlap_are_refused():
    assert refusal(answers(APART), "labels") == "no_overlap"


def test_systems_are_ranked_against_the_baseline_that_was_judged_most():
    found = table(systems_judged(), "graded_response", baseline="plain")
    rows = by_name(found)
    assert rows["good"]["score"] > rows["bad"]["score"]
    assert rows["plain"]["score"] is None
    assert rows["good"]["low"] < rows["good"]["score"] < rows["good"]["high"]
    assert rows["good"]["judgments"] == 48
    assert "The baseline is “plain”" in found.notes[0]
    assert "The baseline won" in found.notes[1]
    assert "“bad”" in table(systems_judged(), "graded_response").notes[0]  # all are judged alike, so the first by name


def test_the_baseline_stands_in_the_table_as_such_and_is_not_said_to_be_without_judgments():
    found = table(systems_judged(), "graded_response", baseline="plain")
    rows = by_name(found)
    assert {name: row["role"] for name, row in rows.items()} == {"bad": "system", "good": "system", "plain": "baseline"}
    assert rows["plain"]["judgments"] is None
    assert not any("no judgment" in note for note in found.notes)


def test_notes_on_systems_name_the_right_ones_whichever_is_the_baseline():
    hits = [(who, {k: float((30 * k + 40 * who) % 100) for k in range(3)}) for who in range(4)]
    made = answers(hits, n_items=4, systems=["b", "c", "d", "never"], segments=["1"] * 4)
    for baseline in "bcd":
        found = table(made, "graded_response", baseline=baseline)
        assert "System “never” has no judgments and no estimate." in found.notes
        assert by_name(found)["never"]["score"] is None
        assert {name for name, row in by_name(found).items() if row["score"] is not None} == {*"bcd"} - {baseline}


def test_segments_that_are_whole_numbers_stand_in_their_order():
    names = ["10", "x", "2", "1"]
    hits = [(who, {k: float((37 * k + 11 * who) % 50) for k in range(8)}) for who in range(3)]
    made = answers(hits, systems=["x", "y"] * 4, segments=[name for name in names for _ in range(2)])
    assert [*by_name(table(made, "graded_response_segments"))] == ["1", "2", "10", "x"]


def test_annotators_and_segments_of_graded_response_are_described():
    made = systems_judged()
    judges = by_name(table(made, "graded_response_annotators", baseline="plain"))
    segments = by_name(table(made, "graded_response_segments", baseline="plain"))
    assert [*judges] == [f"a{k}" for k in range(6)]
    assert all(row["sensitivity"] > 0 for row in judges.values())
    assert all(row["not_losing"] < row["winning"] for row in segments.values())
    assert {row["judgments"] for row in segments.values()} == {12}


def test_outputs_of_a_segment_are_compared_across_the_hits_of_one_annotator():
    hits = [(who, {k: float((37 * k + 11 * who) % 50)}) for who in range(3) for k in range(4)]
    made = answers(hits, systems=["x", "y", "x", "y"], segments=["1", "1", "2", "2"])
    assert by_name(table(made, "graded_response", baseline="y"))["x"]["judgments"] == 6


def test_items_without_system_and_segment_have_no_graded_response():
    assert refusal(crowd_answers(), "graded_response") == "no_systems"
    assert refusal(crowd_answers(systems=["x"] * 12), "graded_response_segments") == "no_systems"


def test_systems_that_share_no_segment_cannot_be_compared():
    made = answers(ALONE, systems=["x", "y", "z"], segments=["1", "2", "3"])
    assert refusal(made, "graded_response") == "no_shared_segments"


def test_a_baseline_that_is_no_system_is_refused():
    assert refusal(systems_judged(), "graded_response", baseline="none") == "no_such_system"


def test_nothing_but_ties_tells_no_system_from_another():
    assert refusal(systems_judged(tied=True), "graded_response") == "one_outcome"


def test_what_is_not_a_number_is_an_empty_cell():
    assert [cell_or_none_if_not_finite(value) for value in (np.float64("nan"), np.inf, np.intp(3), 0.5, "x", None)] == [
        *(None, None, 3, 0.5, "x", None)
    ]


def test_annotators_whose_reliabilities_do_not_settle_keep_their_other_figures(monkeypatch):
    def never(*_, **__):
        raise NotConverged("Reliabilities had not settled.", code="not_converged")

    monkeypatch.setattr("app.inference.ratings.annotator_aware.fit", never)
    found = table(crowd_answers(), "annotators")
    assert "No reliability, bias or scale: Reliabilities had not settled." in found.notes
    assert by_name(found)["a0"]["reliability"] is None
    assert by_name(found)["a0"]["correlation"] > 0.9
