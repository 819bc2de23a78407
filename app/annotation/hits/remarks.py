"""Comments and flags of annotators: stored as far as the campaign asks for them, with alerts for the campaign owner.

An answer without remarks needs no extra statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import text

from app.annotation.platforms.programs import API_PLATFORM
from app.database.alerts import store_alert_unless_known
from app.database.session import Driver, Record, columns_of_row_class_sql, fetch_rows
from app.designs.answer import Answer
from app.designs.item_names import ItemName
from app.designs.remarks import (
    REMARKS_KEY,
    WHOLE_HIT,
    Remark,
    RemarkTarget,
    drop_unoffered_remarks,
    refuse_unoffered_remarks,
)
from app.quality.check_positions import PlacedCheck
from app.record.remarks import (
    ANSWER_NOT_WITHDRAWN,
    CHECK_REMARK_PREFIX,
    EACH_REMARK_JOIN,
    REMARK_SUBJECT_ID,
    REMARK_SUBJECT_JOINS,
)
from app.selection.segments import value_by_item_with_equal_outputs_filled_in

T = TypeVar("T")  # Python 3.11 has no other way

# The items that an answer flags, and HITs in general if it flags its HIT, as far as at least `flag_people` annotators
# flagged them. Each annotator counts once, unless they are excluded or withdrew the answer.
SELECT_FLAGGED_ITEMS = text(f"""
    SELECT said.about, r.segment, {REMARK_SUBJECT_ID} || coalesce(' for ' || s.external_id, '') AS item, others.people,
           others.reasons
    FROM responses r {EACH_REMARK_JOIN} {REMARK_SUBJECT_JOINS}
    JOIN campaigns c ON c.id = r.campaign_id
    CROSS JOIN LATERAL (SELECT r.segment) AS mine (segment)
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT o.annotator_id) AS people, array_agg(DISTINCT o.reason) AS reasons FROM (
            SELECT r.annotator_id, r.extra #>> ARRAY['{REMARKS_KEY}', said.about, 'flag'] AS reason
            FROM responses r WHERE r.campaign_id = :campaign AND r.extra ? '{REMARKS_KEY}'
            AND r.extra -> '{REMARKS_KEY}' -> said.about ? 'flag'
            AND (said.about = '{WHOLE_HIT}' OR r.segment IS NOT DISTINCT FROM mine.segment)
            AND {ANSWER_NOT_WITHDRAWN} AND coalesce((
                SELECT d.kind FROM decisions d WHERE d.campaign_id = :campaign AND d.annotator_id = r.annotator_id
                ORDER BY d.seq DESC LIMIT 1), 'include') = 'include'
        ) AS o
    ) AS others
    WHERE r.campaign_id = :campaign AND r.seq = :seq AND told ? 'flag' AND others.people >= c.flag_people
    ORDER BY said.about
""")


class OfferedRemarks(Record):
    """Remarks that a campaign lets its annotators make."""

    comment_on: RemarkTarget
    flag_on: RemarkTarget
    flag_reasons: list[str]


class FlaggedItem(Record):
    """An item by the researcher's id (None: HITs in general), how many people flagged it, and their reasons."""

    about: str
    segment: int | None
    item: str | None
    people: int
    reasons: list[str]


SELECT_OFFERED_REMARKS = text(
    f"SELECT {columns_of_row_class_sql(OfferedRemarks, 'c')} FROM campaigns c WHERE c.id = :campaign"
)


async def drop_or_refuse_unoffered_remarks(
    connection: Driver, campaign_id: int, answer: Answer, placed_checks: Sequence[PlacedCheck]
) -> Answer:
    """Return the answer with those remarks that the campaign asks for; remarks on checks get the check's number.

    Other remarks are dropped without a refusal, since an annotator's page may be older than the settings.

    Raises:
        Invalid: A program sent a remark that the campaign does not ask for.

    """
    if not answer.remarks:
        return answer
    (offered_remarks,) = await fetch_rows(connection, SELECT_OFFERED_REMARKS, {"campaign": campaign_id}, OfferedRemarks)
    if answer.source == API_PLATFORM.name:
        refuse_unoffered_remarks(offered_remarks, answer.remarks)
    stored_names = {str(check.shown_number): f"{CHECK_REMARK_PREFIX}{check.check_number}" for check in placed_checks}
    accepted_remarks = drop_unoffered_remarks(offered_remarks, answer.remarks)
    return replace(
        answer, remarks={stored_names.get(about, about): remark for about, remark in accepted_remarks.items()}
    )


def remarks_copied_to_equal_outputs(
    remarks: Mapping[str, Remark], items: Sequence[int], shown_as: Sequence[int]
) -> dict[str, Remark]:
    """Return remarks with those on an output copied to every system that has the same output."""
    hit_remark = {WHOLE_HIT: remarks[WHOLE_HIT]} if WHOLE_HIT in remarks else {}
    return hit_remark | value_by_item_with_equal_outputs_filled_in(remarks, map(str, items), map(str, shown_as))


def remarks_by_page_name(
    stored: Mapping[str, T], placed_checks: Sequence[PlacedCheck], names: Mapping[int, ItemName]
) -> dict[str, T]:
    """Return stored remarks by the names that items and checks have on the page. `names` are by item number."""
    page_names = {str(item): str(name) for item, name in names.items()}
    page_names |= {
        f"{CHECK_REMARK_PREFIX}{check.check_number}": str(names[check.shown_number]) for check in placed_checks
    }
    page_names[WHOLE_HIT] = WHOLE_HIT
    return {page_names[about]: remark for about, remark in stored.items() if about in page_names}


async def store_alert_of_each_item_that_reaches_flag_limit(connection: Driver, campaign_id: int, seq: int) -> None:
    """Raise an alert for each item that reaches the campaign's number of flags with this answer.

    HITs differ between annotators, so all flagged HITs of a campaign share one alert. The caller holds locks on the
    posteriors of the items, so the second of two concurrent answers sees the first.
    """
    for flagged_item in await fetch_rows(
        connection, SELECT_FLAGGED_ITEMS, {"campaign": campaign_id, "seq": seq}, FlaggedItem
    ):
        people = "1 annotator" if flagged_item.people == 1 else f"{flagged_item.people} annotators"
        reasons = "; ".join(filter(None, flagged_item.reasons))
        because = f"{people}: {reasons}" if reasons else people
        about = "HITs" if flagged_item.item is None else f"item {flagged_item.item}"
        await store_alert_unless_known(
            connection, campaign_id, "flagged", distinct_key_of_flag_alert(flagged_item), about=about, because=because
        )


def distinct_key_of_flag_alert(flagged: FlaggedItem) -> str:
    """Return the key that makes this alert distinct: one per item and segment, and one for all HITs."""
    if flagged.about == WHOLE_HIT:
        return "HITs"
    return f"item {flagged.about}" + (f" of segment {flagged.segment}" if flagged.segment is not None else "")
