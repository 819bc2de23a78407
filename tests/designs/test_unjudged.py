"""Items that cannot be judged, in every design: any form is stored once or refused with a message."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.designs.answer import Answer, Form
from app.designs.item_names import item_names
from app.designs.registry import DESIGNS
from app.designs.unjudged import refuse_unoffered_unjudged_reasons
from app.errors import Invalid

ITEMS = [4, 9, 2, 7]
REASONS = ["broken", "another"]
CODES = {
    *("scores_missing", "scores_unknown", "score_out_of_range", "score_not_a_number", "answer_impossible"),
    *("reason_unknown", "reason_missing"),
}
NAMED = item_names(len(ITEMS) + 1)
FORMS = st.dictionaries(
    st.sampled_from([*(f"score-{item}" for item in NAMED), "preferred", "best", "worst"]),
    st.sampled_from(["", "0", "1", "2", "3", "50", "tie", "00", "01", "03", "04"]) | st.text(max_size=4),
)
MARKS = st.dictionaries(
    st.sampled_from([f"unjudged-{item}" for item in NAMED]), st.sampled_from(["", "broken", "another", "tired"])
)


def items_and_campaign(design):
    """Its items, and its campaign."""
    items = ITEMS[: design.items_per_hit[-1]]
    return items, SimpleNamespace(cannot_be_judged=True, unjudged_reasons=REASONS)


def outcome(design, campaign, items, form):
    """The answer and what is stored of it, or the refusal."""
    try:
        answer = design.parse_answer(form, items)
        refuse_unoffered_unjudged_reasons(campaign, answer, items)
        return answer, design.checked_values_in_item_order_or_refuse(answer, items)
    except Invalid as refusal:
        return refusal


@pytest.mark.parametrize("design", [design() for design in DESIGNS.values()], ids=lambda design: design.name)
@given(form=FORMS, marks=MARKS)
def test_whatever_a_browser_can_send_is_stored_or_refused_with_a_message(design, form, marks):
    items, campaign = items_and_campaign(design)
    found = outcome(design, campaign, items, Form(form | marks, "form"))
    if isinstance(found, Invalid):
        assert found.code in CODES
        assert found.message.endswith(".")
        return
    answer, values = found
    assert len(values) == len(items)
    said = {item for name, item in zip(NAMED, items, strict=False) if marks.get(f"unjudged-{name}")}
    judged = {item: value for item, value in zip(items, values, strict=True) if not math.isnan(value)}
    assert judged.keys() == ({*items} - said if len({*items} - said) >= design.fewest_items else set())
    assert all(design.stored_value_or_none(value) == value for value in judged.values())
    assert answer.unjudged.keys() == said


@pytest.mark.parametrize("design", [design() for design in DESIGNS.values()], ids=lambda design: design.name)
def test_the_others_are_answered_as_if_they_were_all(design):
    items, _ = items_and_campaign(design)
    others = items[1:]
    given = design.simulate_answer_values([0.2, 0.9, 0.5][: len(others)])
    values = design.checked_values_in_item_order_or_refuse(
        Answer(dict(zip(others, given, strict=True)), unjudged={items[0]: ""}), items
    )
    assert math.isnan(values[0])
    if len(others) < design.fewest_items:
        assert math.isnan(values[1])
    else:
        assert values[1:] == design.checked_values_in_item_order_or_refuse(
            Answer(dict(zip(others, given, strict=True))), others
        )


@pytest.mark.parametrize("design", [design() for design in DESIGNS.values()], ids=lambda design: design.name)
def test_an_item_of_another_hit_cannot_be_said_to_be_beyond_judging(design):
    items, _ = items_and_campaign(design)
    with pytest.raises(Invalid) as refused:
        design.checked_values_in_item_order_or_refuse(Answer({}, unjudged={99: ""}), items)
    assert refused.value.code == "scores_unknown"
