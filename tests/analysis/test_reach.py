"""Methods that the answers of each design support; a new design is checked once it is registered."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from app.analysis.answer_kinds import notes_on_reading_as_kind
from app.analysis.available_methods import (
    available_methods_for_design,
    fit_scores_with_reading_notes,
    fit_table_or_refuse,
)
from app.analysis.label_tables import fit_dawid_skene, lazy_judgment_label_table
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.pairwise_tables import preference_pair_columns
from app.analysis.result_types import Answers, Options, Scores
from app.designs.registry import DESIGNS
from app.inference.ground import metrics
from app.inference.ground.inestimable import Inestimable
from app.inference.labels.dawid_skene import consensus
from app.inference.observations.judgment_kinds import READABLE_KINDS
from app.inference.online.law import LawParameters
from tests.analysis.answers import answers, crowd_answers, simulated_answers
from tests.inference.test_convincing_arguments import arguments  # noqa: F401  (a fixture)
from tests.inference.test_dawid_skene import word_senses
from tests.toys.smiley import Smiley

CODES = ("read_as", "labels_are_cut", "rounded_to_points", "labels_in_points")
FACES = ("sad", "so so", "happy")


@pytest.fixture(scope="module", params=[*DESIGNS.values(), Smiley], ids=lambda design: design.name)
def design(request):
    """Return each design with its default settings."""
    return request.param()


def table(made, name, **chosen) -> list[dict[str, Any]]:
    found = fit_table_or_refuse(TABLE_METHODS[name], made, Options(**chosen))
    return [dict(zip([column.name for column in found.columns], row, strict=True)) for row in found.rows]


def made_by(make, *given):
    """Return the result, or the reason why there is none."""
    try:
        return make(*given)
    except Inestimable as reason:
        return reason


@pytest.fixture(scope="module")
def answers_and_scores(design) -> tuple[Answers, dict[str, Scores]]:
    """Return simulated answers of a design, and the scores by every method that it offers: several tests read them."""
    made = simulated_answers(design, hits=200)
    offered = available_methods_for_design(design, design.default_items).scores
    return made, {name: fit_scores_with_reading_notes(method, made) for name, method in offered.items()}


def test_every_method_that_is_offered_scores_answers_of_the_design(answers_and_scores):
    made, scores = answers_and_scores
    for name, found in scores.items():
        assert np.isfinite(found.values[made.has_judgments]).all(), name


def test_every_table_that_is_offered_has_rows_or_says_why_not(design):
    made = simulated_answers(design)
    offer = available_methods_for_design(design, design.default_items)
    found = {
        name: made_by(fit_table_or_refuse, table, made, table.relevant_options(Options()))
        for name, table in offer.tables.items()
    }
    for reason in [one for one in found.values() if isinstance(one, Inestimable)]:
        assert reason.code != "method_reads_other_answers"
        assert str(reason).endswith(".")
    assert all(found[name].rows for name in ("agreement", "annotators", "consistency"))


def test_what_the_answers_do_not_reach_is_refused_by_name(design):
    made, offer = simulated_answers(design), available_methods_for_design(design)
    left_out = [name for name, method in SCORE_METHODS.items() if name not in offer.scores and method.can_cut_scores]
    for name in left_out:
        with pytest.raises(Inestimable) as refusal:
            fit_scores_with_reading_notes(SCORE_METHODS[name], made)
        assert refusal.value.code == "method_reads_other_answers"
    for name in TABLE_METHODS.keys() - offer.tables.keys():
        with pytest.raises(Inestimable) as refusal:
            fit_table_or_refuse(TABLE_METHODS[name], made, Options())
        assert refusal.value.code == "method_reads_other_answers"


def test_who_reads_answers_as_another_kind_says_so_once(design, answers_and_scores):
    for name, found in answers_and_scores[1].items():
        method = SCORE_METHODS[name]
        codes = [note.code for note in found.notes if note.code in CODES]
        whole_points = method.reads == "ordered_classes" and design.value_kind == "points"
        assert len(codes) == len(set(codes))
        assert bool(codes) == (method.reads != design.value_kind) or whole_points or "labels_in_points" in codes


def test_a_higher_place_on_the_scale_gets_a_higher_score_by_every_method(answers_and_scores):
    made, scores = answers_and_scores
    place = np.arange(made.n_items)[made.has_judgments]
    for name, found in scores.items():
        assert metrics.spearman(place, found.values[made.has_judgments]) > 0.8, name


def test_nothing_is_said_of_answers_that_are_read_as_they_are(subtests):
    for kind in READABLE_KINDS:
        with subtests.test(kind=kind):
            assert notes_on_reading_as_kind(replace(crowd_answers(), value_kind=kind, classes=FACES), kind) == ()


# Orders


def test_a_best_and_a_worst_of_n_are_2_n_minus_3_pairs():
    for n in (4, 5):
        points = dict(enumerate([100.0, *[50.0] * (n - 2), 0.0]))
        made = answers([(0, points)], value_kind="order", parameters=LawParameters(ties=False))
        first, second, outcomes, _ = preference_pair_columns(made)
        assert len(first) == 2 * n - 3
        assert 0 not in outcomes
        assert not {(1, 2)} & {*zip(first.tolist(), second.tolist(), strict=True)}
        assert (
            fit_scores_with_reading_notes(SCORE_METHODS["bradley_terry"], made).notes[0].code
            == "unknown_pairs_left_out"
        )
        assert len(preference_pair_columns(replace(made, parameters=LawParameters()))[0]) == n * (n - 1) // 2


def test_pairs_are_called_dependent_only_where_hits_have_more_than_two_items():
    two = answers([(k % 3, {k % 5: 100.0, (k + 1) % 5: 0.0}) for k in range(20)], value_kind="order")
    three = answers(
        [(k % 3, {k % 5: 100.0, (k + 1) % 5: 50.0, (k + 2) % 5: 0.0}) for k in range(20)], value_kind="order"
    )
    dependent = [
        "dependent_pairs"
        in [note.code for note in fit_scores_with_reading_notes(SCORE_METHODS["thurstone"], made).notes]
        for made in (two, three)
    ]
    assert dependent == [False, True]


def test_one_item_at_a_time_has_no_order():
    design = DESIGNS["slider"]()
    offer = available_methods_for_design(design, 1)
    assert {"elo", "ra", "trueskill"}.isdisjoint(offer.scores)
    assert "scale" not in offer.tables
    made = answers([(k % 3, {k % 5: 10.0 * k}) for k in range(10)])
    with pytest.raises(Inestimable) as refusal:
        fit_scores_with_reading_notes(SCORE_METHODS["elo"], made)
    assert refusal.value.code == "no_pairs"


def test_published_judgments_of_pairs_have_their_transitivity_in_the_tables(arguments):  # noqa: F811  (the fixture)
    count = len(arguments.first)
    hit = np.repeat(np.arange(count), 2)
    made = replace(
        answers([], n_items=arguments.ranks.size),
        seq=np.arange(count) + 1,
        hit=hit,
        item=np.column_stack([arguments.first, arguments.second]).ravel(),
        annotator=np.repeat(np.unique(arguments.annotators, return_inverse=True)[1], 2),
        score=np.column_stack([50.0 + 50.0 * arguments.outcomes, 50.0 - 50.0 * arguments.outcomes]).ravel(),
        value=np.zeros(2 * count),
        value_kind="order",
        annotators=[f"a{k}" for k in range(len(np.unique(arguments.annotators)))],
        names=[f"A{k}" for k in range(len(np.unique(arguments.annotators)))],
    )
    found = fit_table_or_refuse(TABLE_METHODS["consistency"], made, Options())
    rows = {row[0]: row for row in found.rows}
    assert rows["transitivity"][2] == pytest.approx(0.741, abs=0.0005)
    assert rows["transitivity"][3] == 14_476
    assert rows["transitivity_without_ties"][2] == pytest.approx(0.863, abs=0.0005)
    assert "retest" not in rows
    few = replace(
        made,
        seq=made.seq[:200],
        **{name: getattr(made, name)[:400] for name in ("hit", "item", "annotator", "score", "value")},
    )
    columns = [column.name for column in fit_table_or_refuse(TABLE_METHODS["annotators"], few, Options()).columns]
    assert columns == [
        *("annotator", "name", "hits", "judgments"),
        *("discrimination", "discrimination_error", "discrimination_low", "discrimination_high"),
        *("random", "reversed"),
        *("kappa", "triads", "kappa_without_ties", "triads_without_ties"),
    ]


def test_agreement_of_preferences_does_not_depend_on_the_order_of_upload():
    """Three annotators prefer the later item three times in four: a side that always wins is no agreement by chance."""
    rng = np.random.default_rng(2)
    pairs = [pair for pair in combinations(range(12), 2) for _ in range(3)]
    won = 100.0 * (rng.random(len(pairs)) < 0.25)
    hits = [(k % 3, {low: won[k], high: 100.0 - won[k]}) for k, (low, high) in enumerate(pairs)]
    found = {row["measure"]: row["value"] for row in table(answers(hits, value_kind="order"), "agreement")}
    assert [*found] == ["pair_agreement", "alpha_pairs"]
    assert found["alpha_pairs"] == pytest.approx(2 * found["pair_agreement"] - 1, abs=0.02)


def test_outputs_of_systems_are_compared_with_the_baseline_by_places_too():
    rng = np.random.default_rng(1)
    better = {"bad": -1.0, "plain": 0.0, "good": 1.0}
    hits = []
    for segment in range(8):
        for who in range(4):
            for place, level in ((0, -1.0), (2, 1.0)):
                won = 100.0 * float(rng.normal(level) > 0)
                hits.append((who, {3 * segment + place: won, 3 * segment + 1: 100.0 - won}))
    made = answers(hits, value_kind="order", systems=[*better] * 8, segments=[str(k // 3) for k in range(24)])
    rows = {row["system"]: row for row in table(made, "graded_response")}
    assert rows["plain"]["role"] == "baseline"
    assert rows["good"]["score"] > rows["bad"]["score"]
    assert rows["good"]["judgments"] == 32


# Labels


def senses(word):
    items, annotators, labels = word_senses(word)
    count = int(labels.max()) + 1
    hits = np.arange(len(items))
    return replace(
        answers([], n_items=int(items.max()) + 1),
        seq=hits + 1,
        hit=hits,
        item=items,
        annotator=np.unique(annotators, return_inverse=True)[1],
        score=100.0 * labels / (count - 1),
        value=labels.astype(float),
        value_kind="classes",
        classes=tuple(f"sense {k + 1}" for k in range(count)),
        annotators=[f"a{k}" for k in range(len(np.unique(annotators)))],
        names=[f"A{k}" for k in range(len(np.unique(annotators)))],
    )


def test_senses_of_add_are_as_prevalent_as_the_paper_says():
    rows = table(senses("add-v"), "labels")
    assert [row["label"] for row in rows] == [f"sense {k + 1}" for k in range(len(rows))]
    assert round(rows[0]["prevalence"], 2) == 0.51
    assert rows[0]["share"] == pytest.approx(0.637, abs=0.0005)


@pytest.mark.parametrize(("word", "certain"), [("date-n", 0.97), ("help-v", 0.81)])
def test_as_many_items_are_certain_as_the_paper_says(word, certain):
    by_the_model = consensus(fit_dawid_skene(senses(word), 2))[1]
    assert round(np.nanmean(by_the_model >= 0.99), 2) == certain
    shown = [row["confidence"] >= 0.99 for row in table(senses(word), "label_items") if row["confidence"] is not None]
    assert certain - 0.2 < np.mean(shown) < certain  # annotators with few labels are not taken to be known


def test_labels_of_a_design_are_not_cut_whatever_is_chosen():
    made = simulated_answers(DESIGNS["categories"]())
    assert len(made.classes) > 2
    for name in ("labels", "label_annotators", "label_items", "agreement"):
        two, seven = [fit_table_or_refuse(TABLE_METHODS[name], made, Options(classes=classes)) for classes in (2, 7)]
        assert two == seven
        assert not {note.code for note in two.notes} & {*CODES}
        assert "points" not in str(two.columns)


def test_into_how_many_labels_scores_are_cut_is_asked_only_where_there_are_scores():
    offers = available_methods_for_design(DESIGNS["slider"]()), available_methods_for_design(Smiley())
    asked = [
        [option for section in offer.sections for option in offer.options_not_fixed_by_design(section)]
        for offer in offers
    ]
    assert ("classes" in asked[0], "classes" in asked[1]) == (True, False)


def test_agreement_and_consistency_of_labels_without_an_order_are_those_of_labels():
    made = senses("add-v")
    rows = {row["measure"]: row for row in table(made, "agreement")}
    assert [*rows] == ["label_agreement", "alpha_nominal", "cohen", "fleiss", "gwet"]
    assert rows["alpha_nominal"]["value"] == pytest.approx(rows["fleiss"]["value"], abs=0.03)
    assert [row["measure"] for row in table(made, "consistency")] == ["labels_again"]
    assert [*table(made, "annotators")[0]] == ["annotator", "name", "hits", "judgments", "agreement"]


def test_how_far_labels_are_shared_counts_each_pair_of_two_annotators():
    given = {0: {0: 0.0, 1: 1.0}, 1: {0: 0.0, 1: 2.0}, 2: {0: 1.0}}
    made = answers([*given.items(), (2, {2: 2.0})], value_kind="classes", classes=FACES)
    assert [row["agreement"] for row in table(made, "annotators")] == [pytest.approx(1 / 3), pytest.approx(1 / 3), 0.0]


def test_the_export_of_labels_has_their_names_and_no_scores():
    made = answers(
        [(who, {0: 0.0, 1: 2.0, 2: float(who % 2)}) for who in range(4)], value_kind="classes", classes=FACES
    )
    found = lazy_judgment_label_table(made, Options())
    assert "score" not in found.columns
    label = [*found.columns].index("label")
    assert [row[label] for row in found.make_rows(0, 3)] == ["sad", "happy", "sad"]


def test_ordered_labels_are_points_by_their_place_and_say_so():
    made = simulated_answers(Smiley())
    found = fit_scores_with_reading_notes(SCORE_METHODS["mean"], made)
    assert found.notes[0] == (
        "Where answers are read as scores, labels count by their position, from “sad” at 0 points to “happy” at 100."
    )
    median = fit_scores_with_reading_notes(SCORE_METHODS["ordinal_median"], made)
    assert {*median.values[made.has_judgments].tolist()} <= {0.0, 25.0, 50.0, 75.0, 100.0}
    assert median.notes[0] == "Medians are labels, shown as points, “sad” at 0 points and “happy” at 100."
    notes = [note.code for note in fit_table_or_refuse(TABLE_METHODS["labels"], made, Options()).notes]
    assert notes[0] == "read_as"


def test_scores_read_as_an_order_say_what_a_tie_is():
    close = replace(crowd_answers(), parameters=LawParameters(tie_margin=0.05))
    words = [fit_scores_with_reading_notes(SCORE_METHODS["elo"], made).notes[0] for made in (crowd_answers(), close)]
    start = "Answers were read as preferences: the item with the higher score is preferred, and "
    assert words == [f"{start}equal scores are a tie.", f"{start}scores up to 5 points apart are a tie."]


def test_items_beside_a_baseline_that_is_in_every_hit_are_systems_of_their_own():
    rng = np.random.default_rng(6)
    hits = []
    for turn in range(120):
        item = 1 + turn % 4
        won = 100.0 * float(rng.normal((item - 2.5) / 1.5) > 0)
        hits.append((turn // 4 % 5, {item: won, 0: 100.0 - won}))
    made = answers(hits, value_kind="order", always_shown=[0])
    rows = {row["system"]: row for row in table(made, "graded_response")}
    assert rows["i0"]["role"] == "baseline"
    scores = [rows[f"i{item}"]["score"] for item in (1, 2, 3, 4)]
    assert scores == sorted(scores)
    assert [row["segment"] for row in table(made, "graded_response_segments")] == ["any"]
    assert table(made, "graded_response", baseline="i3") == table(made, "graded_response")
    named = replace(made, segments=[None, "1", "1", "2", "2"])
    assert [row["segment"] for row in table(named, "graded_response_segments")] == ["1", "2"]
