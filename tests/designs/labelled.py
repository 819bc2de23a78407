"""Forms as browsers may send them, and posteriors that count labels."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from app.designs.answer import Form
from app.designs.design import Design
from app.errors import Invalid
from tests.annotation.hits.campaigns import fetch_rows

ITEMS = [4, 9, 2]
CODES = {"scores_missing", "scores_unknown", "score_out_of_range", "score_not_a_number", "answer_impossible"}
NAMES = [*(f"score-{item}" for item in (*ITEMS, 7)), "score-", "score-x", "viewport", "changes-4", "else"]
ODD = ["", " 1 ", "1.0", "0.5", "1e0", "١", "nan"]
FORMS = st.dictionaries(
    st.sampled_from(NAMES), st.one_of(st.integers(-2, 40).map(str), st.sampled_from(ODD), st.text())
)


def read_form(design: Design, fields: dict[str, str]) -> list[float] | Invalid:
    """Return the values that are stored of a form, or its refusal."""
    try:
        return design.checked_values_in_item_order_or_refuse(design.parse_answer(Form(fields, "form"), ITEMS), ITEMS)
    except Invalid as refusal:
        return refusal


def is_stored_or_refused(design: Design, fields: dict[str, str]) -> None:
    """An answer has a class for each item, in their order; a refusal says what is wrong, in words and by a code."""
    found = read_form(design, fields)
    if isinstance(found, Invalid):
        assert found.code in CODES
        assert str(found).endswith(".")
    else:
        assert found == [float(fields[f"score-{item}"]) for item in ITEMS]
        assert set(found) <= set(range(len(design.classes)))


def campaign(items_per_hit: int) -> Any:
    return SimpleNamespace(items_per_hit=items_per_hit)


async def most_counted_classes(engine: AsyncEngine) -> list[int]:
    """The class of the largest count, item after item."""
    rows = await fetch_rows(engine, "SELECT state FROM current_posteriors ORDER BY number")
    return [int(np.argmax(state)) for (state,) in rows]
