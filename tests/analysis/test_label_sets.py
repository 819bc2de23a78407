"""Tables of several labels, of answers made without a database."""

from dataclasses import replace

import numpy as np
import pytest

from app.analysis.available_methods import available_methods_for_design
from app.analysis.methods import TABLE_METHODS
from app.analysis.result_types import Options
from app.designs.ordinal import Ordinal
from app.designs.several_labels import SeveralLabels
from app.inference.ground.inestimable import Inestimable
from tests.analysis.answers import answers

JOY = [(0, {0: 100.0, 1: 0.0}), (1, {0: 100.0, 1: 0.0}), (2, {0: 0.0, 1: 0.0})]
FEAR = [100.0, 0.0, 100.0, 100.0, 100.0, 0.0]


def labelled(**more):
    made = answers(JOY, n_items=3, value_kind="ordered_classes", classes=("no", "yes"))
    scores = {"joy": made.score, "fear": np.array(FEAR)} | more
    return replace(made, scores_by_criterion=scores, yes_or_no_criteria=("joy", "fear"))


def answers_with_labels(made, labels):
    return replace(made, scores_by_criterion=labels, yes_or_no_criteria=tuple(labels))


def fitted(name, made):
    table = TABLE_METHODS[name].fit(made, Options())
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def test_each_item_has_its_share_of_yes_and_its_labels_by_majority():
    rows = fitted("item_label_sets", labelled())
    assert [row["judgments"] for row in rows] == [3, 3, 0]
    assert [row["share_1"] for row in rows] == [pytest.approx(2 / 3), 0.0, None]
    assert [row["share_2"] for row in rows] == [1.0, pytest.approx(1 / 3), None]
    assert [row["majority_set"] for row in rows] == ["joy; fear", "none of these", None]
    assert rows[0]["probability_2"] > 0.5 > rows[1]["probability_1"]
    assert rows[2]["probable_set"] is None


def test_half_of_the_annotators_are_no_majority():
    made = answers([(0, {0: 100.0}), (1, {0: 0.0})])
    (row,) = fitted("item_label_sets", answers_with_labels(made, {"joy": made.score}))
    assert (row["share_1"], row["majority_set"]) == (0.5, "none of these")


def test_sets_are_counted_as_they_were_given_and_as_items_have_them_by_majority():
    rows = {row["labels"]: row for row in fitted("label_sets", labelled())}
    given = {labels: (row["judgments"], row["items"]) for labels, row in rows.items()}
    assert given == {"joy; fear": (2, 1), "none of these": (2, 1), "fear": (2, 0)}
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1.0)


def test_rare_sets_are_one_row():
    rng = np.random.default_rng(5)
    made = answers([(who, {0: 100.0}) for who in range(400)])
    names = [f"label {k}" for k in range(10)]
    rows = fitted("label_sets", answers_with_labels(made, {name: rng.choice([0.0, 100.0], 400) for name in names}))
    assert (len(rows), rows[-1]["labels"]) == (101, "other sets")
    assert sum(row["judgments"] for row in rows) == 400
    assert sum(row["items"] for row in rows) == 1


def test_sets_whose_names_could_be_read_as_another_set_are_counted_apart():
    made = answers([(who, {0: 100.0}) for who in range(4)])
    yes, no = [100.0], [0.0]
    labels = {"a": yes + no * 3, "b": yes + no * 3, "a; b": no + yes + no * 2, "None of these": no * 2 + yes + no}
    rows = fitted("label_sets", answers_with_labels(made, {name: np.array(given) for name, given in labels.items()}))
    given = {row["labels"]: (row["judgments"], row["share"]) for row in rows}
    one = (1, 0.25)
    assert given == {"a; b": one, "“a; b”": one, "“None of these”": one, "none of these": one}


def test_a_scale_whose_answers_are_only_its_ends_so_far_is_no_label():
    made = labelled(fluency=np.array(FEAR))
    assert "share_3" not in fitted("item_label_sets", made)[0]
    assert {row["labels"] for row in fitted("label_sets", made)} == {"joy; fear", "none of these", "fear"}
    with pytest.raises(Inestimable) as refused:
        fitted("label_sets", replace(made, yes_or_no_criteria=()))
    assert refused.value.code == "no_labels"


def test_only_questions_with_the_answers_no_and_yes_have_the_tables():
    offered = [
        {"label_sets", "item_label_sets"} & available_methods_for_design(design).tables.keys()
        for design in (SeveralLabels(), Ordinal(labels=("No", "Yes")), Ordinal(), Ordinal(labels=("bad", "good")))
    ]
    assert offered == [{"label_sets", "item_label_sets"}] * 2 + [set()] * 2
