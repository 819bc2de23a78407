"""Groups of annotators by their profile answers: each group alone, and groups side by side."""

import numpy as np
import pytest

from app.analysis import group_tables
from app.analysis.agreement_table import AGREEMENT_TABLE
from app.analysis.methods import SCORE_METHODS
from app.analysis.result_types import Options
from app.analysis.subgroups import answers_of_group_or_refuse
from app.errors import NotFound
from app.inference.ground.inestimable import Inestimable
from tests.analysis.answers import answers

SAID = {"language": ["en", "de", "en", None], "expert": ["yes", None, "yes", None]}


def said_by_groups():
    """Return answers of two English speakers who agree, a German speaker who disagrees, and one who stated no
    language.
    """
    right = {item: 10.0 * item for item in range(8)}
    contrary = {item: 100.0 - score for item, score in right.items()}
    said = [right, contrary, {item: score + 4 for item, score in right.items()}, {0: 50.0}]
    hits = [(who, dict(list(scores.items())[k : k + 4])) for k in (0, 4) for who, scores in enumerate(said)]
    return answers([hit for hit in hits if hit[1]], profile_answers=SAID)


def test_a_group_has_its_annotators_answers_alone_about_the_same_items():
    own = answers_of_group_or_refuse(said_by_groups(), "language=en")
    assert (own.annotators, own.names, own.n_items, own.n_hits) == (["a0", "a2"], ["A1", "A3"], 8, 4)
    assert own.profile_answers == {"language": ["en", "en"], "expert": ["yes", "yes"]}
    assert own.annotator.tolist() == [0] * 4 + [1] * 4 + [0] * 4 + [1] * 4
    np.testing.assert_array_equal(own.hit, np.repeat(np.arange(4), 4))
    others = answers_of_group_or_refuse(said_by_groups(), "language!=en")
    assert others.annotators == ["a1"]  # who left the question open is in neither


def test_a_group_that_is_not_there_is_refused(subtests):
    for group in ("", "language", "language=fr", "age=7", "expert!=yes", "=en"):
        with subtests.test(group=group):
            with pytest.raises(NotFound) as problem:
                answers_of_group_or_refuse(said_by_groups(), group)
            assert problem.value.code == "group_not_found"


@pytest.mark.parametrize("method", ["mean", "easl", "ra"])
def test_scores_of_a_group_are_those_of_a_campaign_of_its_annotators(method):
    whole = said_by_groups()
    right = {item: 10.0 * item for item in range(8)}
    said = [right, {item: score + 4 for item, score in right.items()}]
    hits = [(who, dict(list(scores.items())[k : k + 4])) for k in (0, 4) for who, scores in enumerate(said)]
    one, other = (
        SCORE_METHODS[method].fit(of) for of in (answers_of_group_or_refuse(whole, "language=en"), answers(hits))
    )
    np.testing.assert_array_equal(one.values, other.values)


def test_groups_stand_side_by_side_with_their_agreement_and_how_they_go_with_the_others():
    whole = said_by_groups()
    table = group_tables.GROUP_TABLE.fit(whole, Options())
    rows = [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]
    english, german, expert = rows
    assert [(row["question"], row["answer"], row["annotators"]) for row in rows] == [
        ("language", "en", 2),
        ("language", "de", 1),
        ("expert", "yes", 2),
    ]
    agreement = AGREEMENT_TABLE.fit(answers_of_group_or_refuse(whole, "language=en"), Options())
    (alpha,) = [row for row in agreement.rows if row[0] == "alpha_interval"]
    assert (english["value"], english["low"], english["high"]) == alpha[3:6]
    assert english["with_others"] == pytest.approx(-1)
    assert german["value"] is None
    assert "annotator" in str(german["sentence"])
    assert expert["with_others"] is None  # nobody gave another answer


def test_items_have_the_mean_of_each_group_that_is_one():
    table = group_tables.GROUP_ITEM_TABLE.fit(said_by_groups(), Options())
    assert [column.title for column in table.columns] == [
        *("Item", "Text", "language en: mean", "language en: judgments", "expert yes: mean", "expert yes: judgments")
    ]
    assert table.rows[1] == ("i1", "text 1", 12.0, 2, 12.0, 2)


def test_without_questions_there_are_no_groups():
    with pytest.raises(Inestimable) as problem:
        group_tables.GROUP_TABLE.fit(answers([(0, {0: 10, 1: 20})]), Options())
    assert problem.value.code == "no_groups"
