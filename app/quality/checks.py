"""Gold and attention items. They are stored apart from a campaign's items, with numbers of their own, so that no score,
law, export or selection rule ever meets one.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Driver, Record, execute_statement, fetch_first_column, fetch_rows
from app.designs.campaign import Campaign
from app.designs.criteria import LabelledCampaign
from app.errors import Conflict
from app.quality.behaviour import GUESS_CHANCE
from app.quality.check_expectations import (
    CriterionDesigns,
    criterion_designs,
    feedback_of_each_criterion,
)
from app.quality.check_positions import PlacedCheck
from app.quality.expected_answers import Feedback
from app.quality.guess_chances import chance_that_guess_meets_check, chance_that_guess_meets_order

CheckKind = Literal["gold", "attention"]
MIN_HIT_ITEMS_FOR_ONE_CHECK = 3  # in smaller HITs a single check would stand out

# Checks that are copies of items which stayed in the study, with the numbers of both.
LIST_COPIES_OF_ITEMS = text("""
    SELECT c.number AS check_number, i.number AS item
    FROM check_items c JOIN items i ON i.campaign_id = c.campaign_id AND i.external_id = c.fields ->> 'copy_of'
    WHERE c.campaign_id = :campaign
""")

LIST_CHECKS_SHOWN_TO_ANNOTATOR = text("""
    SELECT DISTINCT shown.check_number
    FROM hits h JOIN hit_checks shown ON shown.campaign_id = h.campaign_id AND shown.hit_id = h.id
    WHERE h.campaign_id = :campaign AND h.annotator_id = :annotator
""")

LIST_CHECK_PLACES = text("""
    SELECT place, check_number, number AS stands_for FROM hit_checks
    WHERE campaign_id = :campaign AND hit_id = :hit ORDER BY place
""")

LIST_CHECK_PLACES_OF_HITS = text("""
    SELECT hit_id, place, check_number, number AS stands_for FROM hit_checks
    WHERE campaign_id = :campaign AND hit_id = ANY(CAST(:hits AS bigint[])) ORDER BY hit_id, place
""")

LOAD_CHECKS_BY_NUMBER = text("""
    SELECT number, external_id, shown, expected FROM check_items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
""")

# Values by the criteria after the first, :others for each check, follow each other.
OTHER_VALUES_OF_ANSWER = """
    (CAST(:other_values AS float8[]))[(place - 1) * CAST(:others AS int) + 1 : place * CAST(:others AS int)]"""
CHECK_ANSWERS_OF_PARAMETERS = """
    unnest(CAST(:numbers AS int[]), CAST(:values AS float8[])) WITH ORDINALITY AS answer (number, value, place)"""

STORE_CHECK_ANSWERS = text(f"""
    INSERT INTO check_answers (campaign_id, hit_id, check_number, annotator_id, value, other_values, answered_at)
    SELECT :campaign, :hit, answer.number, :annotator, answer.value, {OTHER_VALUES_OF_ANSWER}, :now
    FROM {CHECK_ANSWERS_OF_PARAMETERS}
""")

# An annotator who changes an answer sees it as they left it: a value that came back would reveal a check.
# `coalesce` around the values of an array: Citus 13.2.2 crashes if such an expression alone is assigned in an UPDATE.
CHANGE_CHECK_ANSWERS = text(f"""
    UPDATE check_answers a SET changed_to = answer.value, other_changed_to = coalesce({OTHER_VALUES_OF_ANSWER})
    FROM {CHECK_ANSWERS_OF_PARAMETERS}
    WHERE a.campaign_id = :campaign AND a.hit_id = :hit AND a.check_number = answer.number
""")

LIST_CHECK_ANSWERS = text("""
    SELECT a.hit_id, a.annotator_id, a.check_number, a.value, a.other_values, i.kind, i.expected, i.external_id
    FROM check_answers a JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
    WHERE a.campaign_id = :campaign AND (CAST(:those AS bigint[]) IS NULL OR a.annotator_id = ANY(:those))
    ORDER BY a.answered_at, a.hit_id, a.check_number
""")


class CheckItem(Record):
    """A check: its number among the campaign's checks, the researcher's id, the text that annotators see, and the
    expected answer as JSON.
    """

    number: int
    external_id: str
    shown: str
    expected: dict[str, Any]


class CopyOfItem(Record):
    """A check that is a copy of an item of the study: the numbers of both."""

    check_number: int
    item: int


class CheckPlace(Record):
    """The position of a check in a HIT, as in `PlacedCheck`."""

    place: int
    check_number: int
    stands_for: int


class CheckPlaceOfHit(CheckPlace):
    """The same, with the HIT."""

    hit_id: int


class CheckOutcome(NamedTuple):
    """Whether an annotator met a check, or the order of several checks that were shown together, and the probability
    that a random answer meets it.
    """

    annotator_id: int
    kind: CheckKind
    check_numbers: tuple[int, ...]
    met: bool
    guess_chance: float = GUESS_CHANCE


def number_of_checks_per_hit(campaign: LabelledCampaign) -> int:
    """Return how many checks a HIT has if it has any: one in the place of an item, or only checks if HITs are too small
    for that or if the answer is an order.
    """
    fills_whole_hit = campaign.design.value_kind == "order" or campaign.items_per_hit < MIN_HIT_ITEMS_FOR_ONE_CHECK
    return campaign.items_per_hit if fills_whole_hit else 1


def reason_hits_cannot_show_checks_or_empty(campaign: Campaign) -> str:
    """Return why this campaign's HITs cannot show checks, as the end of a sentence; empty if they can."""
    if campaign.design.always_shown:
        return "every task compares an item with the same fixed item, and the expected result for a check is unknown"
    if campaign.selection != "streaming":
        return "iterations plan which items are shown together; checks need streaming"
    if campaign.source_column or campaign.reference_column:
        return "its items come with a source or reference, and checks have none; put it into the text of the items"
    return ""


def hint_that_hits_cannot_show_checks_or_empty(campaign: Campaign) -> str:
    """Return a sentence for pages that this campaign cannot have checks; empty if it can."""
    reason = reason_hits_cannot_show_checks_or_empty(campaign)
    return reason and f"This campaign cannot have gold or attention items: {reason}."


def refuse_if_hits_cannot_show_checks(campaign: Campaign) -> None:
    """Raise `Conflict` (`no_checks_here`) with advice if this campaign's HITs cannot show checks."""
    if not (reason := reason_hits_cannot_show_checks_or_empty(campaign)):
        return
    raise Conflict(f"“{campaign.name}” cannot have checks: {reason}. Nothing was changed.", code="no_checks_here")


async def load_copied_item_number_by_check_number(connection: Driver, campaign_id: int) -> dict[int, int]:
    """Return the item that each check copies, by the number of the check; other checks are left out."""
    rows = await fetch_rows(connection, LIST_COPIES_OF_ITEMS, {"campaign": campaign_id}, CopyOfItem)
    return {row.check_number: row.item for row in rows}


async def load_shown_check_numbers_of_annotator(connection: Driver, campaign_id: int, annotator_id: int) -> list[int]:
    parameters = {"campaign": campaign_id, "annotator": annotator_id}
    return [*await fetch_first_column(connection, LIST_CHECKS_SHOWN_TO_ANNOTATOR, parameters)]


async def load_placed_checks_and_check_items(
    connection: Driver, campaign_id: int, hit_id: int | None
) -> tuple[list[PlacedCheck], dict[int, CheckItem]]:
    placed_checks = await load_placed_checks(connection, campaign_id, hit_id)
    if not placed_checks:
        return placed_checks, {}
    parameters = {"campaign": campaign_id, "numbers": [placed.check_number for placed in placed_checks]}
    return placed_checks, {
        row.number: row for row in await fetch_rows(connection, LOAD_CHECKS_BY_NUMBER, parameters, CheckItem)
    }


async def load_placed_checks(connection: Driver, campaign_id: int, hit_id: int | None) -> list[PlacedCheck]:
    """Return the positions of the checks in a HIT."""
    rows = await fetch_rows(connection, LIST_CHECK_PLACES, {"campaign": campaign_id, "hit": hit_id}, CheckPlace)
    return [PlacedCheck(row.place, row.check_number, row.stands_for) for row in rows]


async def load_placed_checks_by_hit(
    connection: Driver, campaign_id: int, hit_ids: Sequence[int]
) -> dict[int, list[PlacedCheck]]:
    """Return the positions of the checks in each of these HITs that has any."""
    placed_checks: dict[int, list[PlacedCheck]] = {}
    for row in await fetch_rows(
        connection, LIST_CHECK_PLACES_OF_HITS, {"campaign": campaign_id, "hits": hit_ids}, CheckPlaceOfHit
    ):
        placed_checks.setdefault(row.hit_id, []).append(PlacedCheck(row.place, row.check_number, row.stands_for))
    return placed_checks


async def store_first_check_answers(
    connection: Driver,
    campaign_id: int,
    hit_id: int,
    placed_checks: Sequence[PlacedCheck],
    values: Sequence[Sequence[float]],
    *,
    annotator_id: int,
    now: datetime,
) -> None:
    """Store an annotator's answers to the checks of a HIT, in the transaction of the answer. `values` has, by each
    criterion, an entry for all items and checks shown.
    """
    key = {"campaign": campaign_id, "hit": hit_id, "annotator": annotator_id, "now": now}
    await execute_statement(
        connection, STORE_CHECK_ANSWERS, key | sql_parameters_of_check_answers(placed_checks, values)
    )


async def replace_stored_check_answers(
    connection: Driver,
    campaign_id: int,
    hit_id: int,
    placed_checks: Sequence[PlacedCheck],
    values: Sequence[Sequence[float]],
) -> None:
    """Store changed answers to the checks of a HIT. The first answers continue to count."""
    key = {"campaign": campaign_id, "hit": hit_id}
    await execute_statement(
        connection, CHANGE_CHECK_ANSWERS, key | sql_parameters_of_check_answers(placed_checks, values)
    )


def sql_parameters_of_check_answers(
    placed_checks: Sequence[PlacedCheck], values: Sequence[Sequence[float]]
) -> dict[str, Any]:
    first, *others = values
    return {
        "numbers": [placed.check_number for placed in placed_checks],
        "values": [first[placed.place] for placed in placed_checks],
        "others": len(others),
        "other_values": [other[placed.place] for placed in placed_checks for other in others],
    }


async def load_check_outcomes(
    connection: AsyncConnection, campaign: Campaign, annotator_ids: Sequence[int] | None = None
) -> list[CheckOutcome]:
    """Return the outcomes of all answered checks in order of time, by what is expected now; only of these annotators if
    `annotator_ids` is given.
    """
    if not campaign.has_checks:
        return []
    rows = (await connection.execute(LIST_CHECK_ANSWERS, {"campaign": campaign.id, "those": annotator_ids})).all()
    designs = criterion_designs(campaign)
    return [
        outcome
        for _, hit_rows in groupby(rows, key=lambda row: row.hit_id)
        for outcome in outcomes_of_checks_in_hit_rows(designs, list(hit_rows))
    ]


def outcomes_of_checks_in_hit_rows(designs: CriterionDesigns, rows: Sequence[Any]) -> list[CheckOutcome]:
    """Return whether each check of a HIT, or their order, is met by all criteria that expect an answer."""
    feedbacks = feedback_of_each_criterion(
        designs, [row.expected for row in rows], [answer_values_of_check_row(row) for row in rows]
    )
    together: dict[tuple[bool, int], list[Feedback]] = {}  # on one check, or on the order of all
    for one in chain.from_iterable(feedbacks):
        is_order = one.kind == "order"
        together.setdefault((is_order, 0 if is_order else one.position), []).append(one)
    return [
        CheckOutcome(
            rows[about[0].position].annotator_id,
            rows[about[0].position].kind,
            tuple(row.check_number for row in rows) if is_order else (rows[about[0].position].check_number,),
            all(one.met for one in about),
            chance_that_guess_meets_order(designs, [row.expected for row in rows])
            if is_order
            else chance_that_guess_meets_check(designs, rows[about[0].position].expected),
        )
        for (is_order, _), about in sorted(together.items())
    ]


def answer_values_of_check_row(row: Any) -> list[float]:
    """Return the values of an answer to a check, by each criterion."""
    return [row.value, *row.other_values]


def placed_checks_json_or_none(placed_checks: Sequence[PlacedCheck]) -> str | None:
    """Return the checks as JSON, as leases store them; None if there are none."""
    return json.dumps([list(placed) for placed in placed_checks]) if placed_checks else None
