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

from app.database.session import Driver, Record, execute, fetch
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Conflict
from app.quality.expected import ExpectedAnswer, feedback, impossible
from app.quality.mixed_in import MixedIn

CheckKind = Literal["gold", "attention"]
FEWEST_MIXED = 3  # items of a HIT of which a check can take the place of one

UNSEEN = text("""
    SELECT number, external_id, shown, expected FROM check_items i WHERE i.campaign_id = :campaign AND NOT EXISTS (
        SELECT 1 FROM check_answers a
        WHERE a.campaign_id = :campaign AND a.annotator_id = :annotator AND a.check_number = i.number)
    ORDER BY number LIMIT 1000
""")

PLACES = text("""
    SELECT place, check_number, number AS stands_for FROM hit_checks
    WHERE campaign_id = :campaign AND hit_id = :hit ORDER BY place
""")

OF_HIT = text("""
    SELECT number, external_id, shown, expected FROM check_items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
""")

STORE = text("""
    INSERT INTO check_answers (campaign_id, hit_id, check_number, annotator_id, value, answered_at)
    SELECT :campaign, :hit, answer.number, :annotator, answer.value, :now
    FROM unnest(CAST(:numbers AS int[]), CAST(:values AS float8[])) AS answer (number, value)
""")

# Whoever changes an answer sees it as they left it, or what stayed would be known for a check.
CHANGE = text("""
    UPDATE check_answers a SET changed_to = answer.value
    FROM unnest(CAST(:numbers AS int[]), CAST(:values AS float8[])) AS answer (number, value)
    WHERE a.campaign_id = :campaign AND a.hit_id = :hit AND a.check_number = answer.number
""")

EXPECTED = text("SELECT external_id, expected FROM check_items WHERE campaign_id = :campaign ORDER BY number")

ANSWERS = text("""
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


class CheckMet(NamedTuple):
    """Whether an annotator, by their row's id, met a check; of an order, those that were shown together."""

    annotator: int
    kind: CheckKind
    numbers: tuple[int, ...]
    met: bool


def how_many(campaign: Any) -> int:
    """How many checks stand in a HIT that has some: one in the place of an item; all, where each HIT shows too few, or
    the answer is about their order.
    """
    of_its_own = design_of(campaign).yields == "order" or campaign.items_per_hit < FEWEST_MIXED
    return campaign.items_per_hit if of_its_own else 1


def refuse_where_none_fit(campaign: Any) -> None:
    """Raises `Conflict` (`no_checks_here`) where no check can stand among the items, with what to do."""
    if campaign.segment_count:
        why = "what is shown are outputs of systems, and a check has none"
    elif campaign.criteria:
        why = "several criteria are asked about, and what is expected is about one"
    elif design_of(campaign).always_shown:
        why = "every HIT shows the same item beside another one, and how a check compares with that is not known"
    elif campaign.selection != "streaming":
        why = "iterations plan which items are shown together; choose streaming for checks"
    elif campaign.source_column or campaign.reference_column:
        why = "a source or a reference stands beside items, and checks have none; put it into the text of the items"
    else:
        return
    raise Conflict(f"“{campaign.name}” takes no checks: {why}. Nothing was changed.", code="no_checks_here")


async def refuse_impossible(connection: AsyncConnection, campaign: Any) -> None:
    """Raises `Conflict` (`expected_impossible`) where the design, chosen since, has no answer that a check expects."""
    for row in await connection.execute(EXPECTED, {"campaign": campaign.id}):
        for problem in impossible(design_of(campaign), ExpectedAnswer.model_validate(row.expected)):
            raise Conflict(
                f"Nobody can meet the check “{row.external_id}”: {problem}. Upload the items with their checks anew, "
                "in the place of those that are there.",
                code="expected_impossible",
            )


async def unseen(connection: Driver, campaign: Any, annotator: int, rng: np.random.Generator) -> list[CheckItem]:
    """So many checks as a HIT has, of those that an annotator has not answered, in random order; none where there are
    too few of them, or no order is expected of any two.
    """
    rows = await fetch(connection, UNSEEN, {"campaign": campaign.id, "annotator": annotator}, CheckItem)
    wanted = how_many(campaign)
    mixed: list[CheckItem] = [rows[place] for place in rng.permutation(len(rows)).tolist()]
    if design_of(campaign).yields == "order":
        mixed = with_an_order(mixed, wanted)
    return mixed[:wanted] if len(mixed) >= wanted else []


def with_an_order(checks: Sequence[CheckItem], wanted: int) -> list[CheckItem]:
    """The same so that the first ones do not all have the same place; none where all have."""
    first = [one for one in checks if one.expected["place"] == checks[0].expected["place"]] if checks else []
    others = [one for one in checks if one.expected["place"] != checks[0].expected["place"]] if checks else []
    return [first[0], others[0], *first[1:wanted], *others[1:]] if others else []


async def of_hit(connection: Driver, campaign_id: int, hit: int | None) -> tuple[list[MixedIn], dict[int, CheckItem]]:
    """The checks in a HIT, where they stand and by their numbers."""
    mixed = await places(connection, campaign_id, hit)
    if not mixed:
        return mixed, {}
    asked = {"campaign": campaign_id, "numbers": [one.check for one in mixed]}
    return mixed, {row.number: row for row in await fetch(connection, OF_HIT, asked, CheckItem)}


async def places(connection: Driver, campaign_id: int, hit: int | None) -> list[MixedIn]:
    """Where checks stand in a HIT."""
    rows = await fetch(connection, PLACES, {"campaign": campaign_id, "hit": hit}, CheckPlace)
    return [MixedIn(row.place, row.check_number, row.stands_for) for row in rows]


async def store(
    connection: Driver, parameters: Mapping[str, Any], mixed: Sequence[MixedIn], values: Sequence[float]
) -> None:
    """What an annotator said of the checks of a HIT, of all that it showed, in the transaction of the answer."""
    await execute(connection, STORE, {**parameters, **said_of(mixed, values)})


async def change(
    connection: Driver, parameters: Mapping[str, Any], mixed: Sequence[MixedIn], values: Sequence[float]
) -> None:
    """The same when an answer is changed: what was said first counts on."""
    await execute(connection, CHANGE, {**parameters, **said_of(mixed, values)})


def said_of(mixed: Sequence[MixedIn], values: Sequence[float]) -> dict[str, list[Any]]:
    return {"numbers": [one.check for one in mixed], "values": [values[one.place] for one in mixed]}


async def answered(connection: AsyncConnection, campaign: Any, those: Sequence[int] | None = None) -> list[CheckMet]:
    """All checks that annotators answered, in the order of their answers, by what is expected now. those: only these
    annotators, by their rows' ids.
    """
    if not campaign.has_checks:
        return []
    rows = (await connection.execute(ANSWERS, {"campaign": campaign.id, "those": those})).all()
    design = design_of(campaign)
    return [met for _, hit in groupby(rows, key=lambda row: row.hit_id) for met in met_in(design, list(hit))]


def met_in(design: Design, rows: Sequence[Any]) -> list[CheckMet]:
    """Of the checks of one HIT."""
    expected = [ExpectedAnswer.model_validate(row.expected) for row in rows]
    told = feedback(design, expected, [row.value for row in rows])
    together = tuple(row.check_number for row in rows)
    return [
        CheckMet(
            rows[one.position].annotator_id,
            rows[one.position].kind,
            together if one.kind == "order" else (rows[one.position].check_number,),
            one.met,
        )
        for one in told
    ]


def as_stored(mixed: Sequence[MixedIn]) -> str | None:
    """As a lease takes them, JSON; None for none."""
    return json.dumps([list(one) for one in mixed]) if mixed else None
