"""Gold and attention items as a simulated crowd sees them: careful annotators answer near the expected answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.design import Design
from app.quality.check_expectations import criterion_designs, expected_answer_or_none_of_each_criterion
from app.quality.expected_answers import ExpectedAnswer, expected_class_numbers
from app.simulation.annotators import Habits

CHECK_NOISE_SHARE = 1 / 3  # of an annotator's noise: the answer of a check is beyond doubt
SHARES_TRIED = 201
UNKNOWN_SHARE = 0.5  # where a criterion expects nothing

LIST_EXPECTED_ANSWERS_BY_ID = text("SELECT external_id, expected FROM check_items WHERE campaign_id = :campaign")


async def load_expected_shares_by_check_id(connection: AsyncConnection, campaign: Campaign) -> dict[str, list[float]]:
    """Return the expected positions on the scale by each criterion, by the id of each check."""
    designs = criterion_designs(campaign)
    rows = await connection.execute(LIST_EXPECTED_ANSWERS_BY_ID, {"campaign": campaign.id})
    return {row.external_id: expected_share_of_each_criterion(designs, row.expected) for row in rows}


def expected_share_of_each_criterion(designs: Any, stored_expectations: Mapping[str, Any]) -> list[float]:
    expected = expected_answer_or_none_of_each_criterion(designs, stored_expectations)
    return [
        UNKNOWN_SHARE if answer is None else share_of_expected_answer(design, answer)
        for (_, design), answer in zip(designs, expected, strict=True)
    ]


def share_of_expected_answer(design: Design, expected: ExpectedAnswer) -> float:
    """Return the position on the scale, 0 to 1, of an annotator who gives the expected answer."""
    if expected.place is not None:
        return 1.0 / expected.place
    if design.value_kind == "ratio" and expected.value is not None:
        return expected.value / (1.0 + expected.value)  # whose odds are the ratio to the reference
    wanted = expected.value if not expected.labels else next(iter(expected_class_numbers(design, expected)), None)
    if wanted is None:
        return UNKNOWN_SHARE
    shares = np.linspace(0.0, 1.0, SHARES_TRIED)
    distances = np.array([abs(design.simulate_answer_values([share])[0] - wanted) for share in shares.tolist()])
    return float(np.median(shares[distances == distances.min()]))


def habits_for_checks(habits: Habits) -> Habits:
    """Return the habits with which an annotator answers checks."""
    return replace(habits, bias=0.0, noise=CHECK_NOISE_SHARE * habits.noise)
