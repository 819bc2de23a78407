"""Gold and attention items: kept apart from the items of a campaign, with numbers of their own, so that no score, law,
export or rule of selection ever meets one.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Driver, Record, execute_statement, fetch_rows
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Conflict
from app.quality.check_positions import PlacedCheck
from app.quality.expected_answers import ExpectedAnswer, feedback, impossibility_reasons

CheckKind = Literal["gold", "attention"]
MIN_HIT_ITEMS_FOR_ONE_CHECK = 3  # items of a HIT of which a check can take the place of one

LIST_UNSEEN_CHECKS = text("""
    SELECT number, external_id, shown, expected FROM check_items i WHERE i.campaign_id = :campaign AND NOT EXISTS (
        SELECT 1 FROM check_answers a
        WHERE a.campaign_id = :campaign AND a.annotator_id = :annotator AND a.check_number = i.number)
    ORDER BY number LIMIT 1000
""")

LIST_CHECK_PLACES = text("""
    SELECT place, check_number, number AS stands_for FROM hit_checks
    WHERE campaign_id = :campaign AND hit_id = :hit ORDER BY place
""")

LOAD_CHECKS_BY_NUMBER = text("""
    SELECT number, external_id, shown, expected FROM check_items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
""")

STORE_CHECK_ANSWERS = text("""
    INSERT INTO check_answers (campaign_id, hit_id, check_number, annotator_id, value, answered_at)
    SELECT :campaign, :hit, answer.number, :annotator, answer.value, :now
    FROM unnest(CAST(:numbers AS int[]), CAST(:values AS float8[])) AS answer (number, value)
""")

# Whoever changes an answer sees it as they left it, or what stayed would be known for a check.
CHANGE_CHECK_ANSWERS = text("""
    UPDATE check_answers a SET changed_to = answer.value
    FROM unnest(CAST(:numbers AS int[]), CAST(:values AS float8[])) AS answer (number, value)
    WHERE a.campaign_id = :campaign AND a.hit_id = :hit AND a.check_number = answer.number
""")

LIST_EXPECTED_ANSWERS = text(
    "SELECT external_id, expected FROM check_items WHERE campaign_id = :campaign ORDER BY number"
)

LIST_CHECK_ANSWERS = text("""
    SELECT a.hit_id, a.annotator_id, a.check_number, a.value, i.kind, i.expected, i.external_id
    FROM check_answers a JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
    WHERE a.campaign_id = :campaign AND (CAST(:those AS bigint[]) IS NULL OR a.annotator_id = ANY(:those))
    ORDER BY a.answered_at, a.hit_id, a.check_number
""")


class CheckItem(Record):
    """A check: its number among a campaign's checks, the researcher's id, what annotators see, what is expected."""

    number: int
    external_id: str
    shown: str
    expected: dict[str, Any]


class CheckPlace(Record):
    """Where a check stands in a HIT, as `MixedIn` has it."""

    place: int
    check_number: int
    stands_for: int


class CheckOutcome(NamedTuple):
    """Whether an annotator, by their row's id, met a check; of an order, those that were shown together."""

    annotator_id: int
    kind: CheckKind
    check_numbers: tuple[int, ...]
    met: bool


def checks_per_hit(campaign: Any) -> int:
    """How many checks stand in a HIT that has some: one in the place of an item; all, where each HIT shows too few, or
    the answer is about their order.
    """
    fills_whole_hit = design_of(campaign).value_kind == "order" or campaign.items_per_hit < MIN_HIT_ITEMS_FOR_ONE_CHECK
    return campaign.items_per_hit if fills_whole_hit else 1


def refuse_if_checks_do_not_fit(campaign: Any) -> None:
    """Raises `Conflict` (`no_checks_here`) where no check can stand among the items, with what to do."""
    if campaign.segment_count:
        reason = "what is shown are outputs of systems, and a check has none"
    elif campaign.criteria:
        reason = "several criteria are asked about, and what is expected is about one"
    elif design_of(campaign).always_shown:
        reason = "every HIT shows the same item beside another one, and how a check compares with that is not known"
    elif campaign.selection != "streaming":
        reason = "iterations plan which items are shown together; choose streaming for checks"
    elif campaign.source_column or campaign.reference_column:
        reason = "a source or a reference stands beside items, and checks have none; put it into the text of the items"
    else:
        return
    raise Conflict(f"“{campaign.name}” takes no checks: {reason}. Nothing was changed.", code="no_checks_here")


async def refuse_impossible_checks(connection: AsyncConnection, campaign: Any) -> None:
    """Raises `Conflict` (`expected_impossible`) where the design, chosen since, has no answer that a check expects."""
    for row in await connection.execute(LIST_EXPECTED_ANSWERS, {"campaign": campaign.id}):
        for problem in impossibility_reasons(design_of(campaign), ExpectedAnswer.model_validate(row.expected)):
            raise Conflict(
                f"Nobody can meet the check “{row.external_id}”: {problem}. Upload the items with their checks anew, "
                "in the place of those that are there.",
                code="expected_impossible",
            )


async def draw_unseen_checks(
    connection: Driver, campaign: Any, annotator_id: int, rng: np.random.Generator
) -> list[CheckItem]:
    """So many checks as a HIT has, of those that an annotator has not answered, in random order; none where there are
    too few of them, or no order is expected of any two.
    """
    rows = await fetch_rows(
        connection, LIST_UNSEEN_CHECKS, {"campaign": campaign.id, "annotator": annotator_id}, CheckItem
    )
    count = checks_per_hit(campaign)
    unseen_checks: list[CheckItem] = [rows[place] for place in rng.permutation(len(rows)).tolist()]
    if design_of(campaign).value_kind == "order":
        unseen_checks = put_different_places_first(unseen_checks, count)
    return unseen_checks[:count] if len(unseen_checks) >= count else []


def put_different_places_first(checks: Sequence[CheckItem], count: int) -> list[CheckItem]:
    """The same so that the first ones do not all have the same place; none where all have."""
    same_place = [one for one in checks if one.expected["place"] == checks[0].expected["place"]] if checks else []
    other_places = [one for one in checks if one.expected["place"] != checks[0].expected["place"]] if checks else []
    return [same_place[0], other_places[0], *same_place[1:count], *other_places[1:]] if other_places else []


async def load_checks_of_hit(
    connection: Driver, campaign_id: int, hit_id: int | None
) -> tuple[list[PlacedCheck], dict[int, CheckItem]]:
    """The checks in a HIT, where they stand and by their numbers."""
    placed_checks = await load_placed_checks(connection, campaign_id, hit_id)
    if not placed_checks:
        return placed_checks, {}
    parameters = {"campaign": campaign_id, "numbers": [one.check_number for one in placed_checks]}
    return placed_checks, {
        row.number: row for row in await fetch_rows(connection, LOAD_CHECKS_BY_NUMBER, parameters, CheckItem)
    }


async def load_placed_checks(connection: Driver, campaign_id: int, hit_id: int | None) -> list[PlacedCheck]:
    """Where checks stand in a HIT."""
    rows = await fetch_rows(connection, LIST_CHECK_PLACES, {"campaign": campaign_id, "hit": hit_id}, CheckPlace)
    return [PlacedCheck(row.place, row.check_number, row.stands_for) for row in rows]


async def store_check_answers(
    connection: Driver, parameters: Mapping[str, Any], placed_checks: Sequence[PlacedCheck], values: Sequence[float]
) -> None:
    """What an annotator said of the checks of a HIT, of all that it showed, in the transaction of the answer."""
    await execute_statement(
        connection, STORE_CHECK_ANSWERS, {**parameters, **check_answer_arrays(placed_checks, values)}
    )


async def change_check_answers(
    connection: Driver, parameters: Mapping[str, Any], placed_checks: Sequence[PlacedCheck], values: Sequence[float]
) -> None:
    """The same when an answer is changed: what was said first counts on."""
    await execute_statement(
        connection, CHANGE_CHECK_ANSWERS, {**parameters, **check_answer_arrays(placed_checks, values)}
    )


def check_answer_arrays(placed_checks: Sequence[PlacedCheck], values: Sequence[float]) -> dict[str, list[Any]]:
    return {
        "numbers": [one.check_number for one in placed_checks],
        "values": [values[one.place] for one in placed_checks],
    }


async def load_check_outcomes(
    connection: AsyncConnection, campaign: Any, annotator_ids: Sequence[int] | None = None
) -> list[CheckOutcome]:
    """All checks that annotators answered, in the order of their answers, by what is expected now. those: only these
    annotators, by their rows' ids.
    """
    if not campaign.has_checks:
        return []
    rows = (await connection.execute(LIST_CHECK_ANSWERS, {"campaign": campaign.id, "those": annotator_ids})).all()
    design = design_of(campaign)
    return [
        met for _, hit in groupby(rows, key=lambda row: row.hit_id) for met in check_outcomes_of_hit(design, list(hit))
    ]


def check_outcomes_of_hit(design: Design, rows: Sequence[Any]) -> list[CheckOutcome]:
    """Of the checks of one HIT."""
    expected = [ExpectedAnswer.model_validate(row.expected) for row in rows]
    feedbacks = feedback(design, expected, [row.value for row in rows])
    check_numbers = tuple(row.check_number for row in rows)
    return [
        CheckOutcome(
            rows[feedback_item.position].annotator_id,
            rows[feedback_item.position].kind,
            check_numbers if feedback_item.kind == "order" else (rows[feedback_item.position].check_number,),
            feedback_item.met,
        )
        for feedback_item in feedbacks
    ]


def placed_checks_json(placed_checks: Sequence[PlacedCheck]) -> str | None:
    """As a lease takes them, JSON; None for none."""
    return json.dumps([list(one) for one in placed_checks]) if placed_checks else None
