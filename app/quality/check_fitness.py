"""Refusals of checks that a campaign's HITs can never show, or that no answer can meet."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize, shorten_echo
from app.quality.check_expectations import (
    criterion_designs,
    expected_place_or_none_of_each_criterion,
    iterate_reasons_expectations_are_impossible,
)
from app.quality.checks import number_of_checks_per_hit

LIST_EXPECTED_ANSWERS = text("""
    SELECT i.external_id, i.expected, i.fields ->> 'check_set' AS set_name, s.external_id AS segment
    FROM check_items i LEFT JOIN segments s ON s.campaign_id = i.campaign_id AND s.number = i.segment
    WHERE i.campaign_id = :campaign ORDER BY i.number
""")


async def refuse_checks_that_cannot_be_shown_or_met(connection: AsyncConnection, campaign: Campaign) -> None:
    """Raise `Conflict` if a check does not fit the design, which may have been chosen after it.

    Its codes are `check_set_size` and `expected_impossible`.
    """
    designs = criterion_designs(campaign)
    rows = (await connection.execute(LIST_EXPECTED_ANSWERS, {"campaign": campaign.id})).all()
    is_order, count = campaign.design.value_kind == "order", number_of_checks_per_hit(campaign)
    if is_order:
        refuse_check_sets_not_fitting_a_hit(rows, count)
    if campaign.segment_count:
        refuse_segment_checks_not_filling_hits(rows, count, is_order=is_order)
    for row in rows:
        for problem in iterate_reasons_expectations_are_impossible(designs, row.expected):
            raise Conflict(
                f"No answer can meet the check “{row.external_id}”: {problem}. Upload the table with the checks again, "
                "and replace the existing ones.",
                code="expected_impossible",
            )


def refuse_check_sets_not_fitting_a_hit(rows: Sequence[Any], count: int) -> None:
    """Raise `Conflict` (`check_set_size`) if a set has not as many checks as a HIT, or expects no order of them."""
    by_set: dict[tuple[str | None, str], list[Any]] = {}
    for row in rows:
        if row.set_name:
            by_set.setdefault((row.segment, row.set_name), []).append(row)
    for (_, name), members in by_set.items():
        if len(members) != count or not expects_an_order(members):
            raise Conflict(
                f"The set “{shorten_echo(name)}” has {pluralize(len(members), 'check')}. A task shows {count} of one "
                f"set, with at least two different places. Upload the table with the checks again, and replace the "
                "existing ones.",
                code="check_set_size",
                set=shorten_echo(name),
            )


def refuse_segment_checks_not_filling_hits(rows: Sequence[Any], count: int, *, is_order: bool) -> None:
    """Raise `Conflict` (`check_set_size`) if the checks of a segment do not fill HITs; those of a set do."""
    by_segment: dict[str, list[Any]] = {}
    for row in rows:
        if not (is_order and row.set_name):
            by_segment.setdefault(row.segment, []).append(row)
    for segment, members in by_segment.items():
        if len(members) % count or (is_order and (len(members) != count or not expects_an_order(members))):
            places = ", with at least two different places" if is_order else ""
            raise Conflict(
                f"The segment “{shorten_echo(segment)}” has {pluralize(len(members), 'check')}. A task shows {count} "
                f"of one segment{places}. Upload the table with the checks again, and replace the existing ones.",
                code="check_set_size",
                segment=shorten_echo(segment),
            )


def expects_an_order(checks: Sequence[Any]) -> bool:
    """Return whether the checks have at least two different places."""
    return len({expected_place_or_none_of_each_criterion(check.expected) for check in checks}) > 1
