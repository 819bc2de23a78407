"""Draws of the checks of one HIT, at random from those that the annotator has not seen."""

from collections.abc import Collection, Sequence

import numpy as np
from sqlalchemy import text

from app.database.session import Driver, fetch_rows
from app.designs.design import Design
from app.quality.check_expectations import expected_place_or_none_of_each_criterion
from app.quality.checks import CheckItem

LIST_UNSEEN_CHECKS = text("""
    SELECT number, external_id, shown, expected, segment, fields ->> 'check_set' AS set_name
    FROM check_items i WHERE i.campaign_id = :campaign AND NOT EXISTS (
        SELECT 1 FROM check_answers a
        WHERE a.campaign_id = :campaign AND a.annotator_id = :annotator AND a.check_number = i.number)
    ORDER BY number LIMIT 1000
""")


class UnseenCheck(CheckItem):
    """A check that an annotator has not seen.

    A HIT shows checks of one segment only; if the answer is an order, those of one set only.
    """

    segment: int | None
    set_name: str | None


async def draw_unseen_checks_or_empty(
    connection: Driver,
    campaign_id: int,
    annotator_id: int,
    *,
    design: Design,
    count: int,
    barred_numbers: Collection[int] = (),
    barred_segments: Collection[int] = (),
    segments_seen: Collection[int] = (),
    rng: np.random.Generator,
) -> list[UnseenCheck]:
    """Draw `count` checks for one HIT at random from those that an annotator has not answered.

    Args:
        connection: Connection of the request.
        campaign_id: Id of the campaign.
        annotator_id: Id of the annotator.
        design: The campaign's design.
        count: Number of checks.
        barred_numbers: Checks that are not drawn.
        barred_segments: Segments whose checks are not drawn.
        segments_seen: Segments whose checks are drawn only if there are no others.
        rng: The source of the draw.

    Returns:
        The checks; none if too few are left, or, for orders, if all have the same place. They have the same segment;
        for orders, they are those of a set or those without one.

    """
    parameters = {"campaign": campaign_id, "annotator": annotator_id}
    unseen_rows = await fetch_rows(connection, LIST_UNSEEN_CHECKS, parameters, UnseenCheck)
    rows = [row for row in unseen_rows if row.number not in barred_numbers and row.segment not in barred_segments]
    unseen_checks: list[UnseenCheck] = [rows[place] for place in rng.permutation(len(rows)).tolist()]
    is_order = design.value_kind == "order"
    for members in groups_of_checks_shown_together(unseen_checks, is_order=is_order, segments_seen=segments_seen):
        ordered_checks = checks_with_different_places_first(members, count) if is_order else members
        if len(ordered_checks) >= count:
            return ordered_checks[:count]
    return []


def groups_of_checks_shown_together(
    checks: Sequence[UnseenCheck], *, is_order: bool, segments_seen: Collection[int]
) -> list[list[UnseenCheck]]:
    """Return the checks by segment and, for orders, by set; groups of segments that were seen come last."""
    groups: dict[tuple[int | None, str], list[UnseenCheck]] = {}
    for check in checks:
        groups.setdefault((check.segment, (check.set_name or "") if is_order else ""), []).append(check)
    return sorted(groups.values(), key=lambda members: members[0].segment in segments_seen)


def checks_with_different_places_first(checks: Sequence[UnseenCheck], count: int) -> list[UnseenCheck]:
    """Reorder checks so that the first two have different places; return none if all have the same place."""
    places = [expected_place_or_none_of_each_criterion(check.expected) for check in checks]
    same_place = [check for check, place in zip(checks, places, strict=True) if place == places[0]]
    other_places = [check for check, place in zip(checks, places, strict=True) if place != places[0]]
    return [same_place[0], other_places[0], *same_place[1:count], *other_places[1:]] if other_places else []
