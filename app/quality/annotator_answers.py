"""Answers of one annotator as researchers see them, and the decisions about these and about the annotator."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.design import Design
from app.quality.annotators import SECONDS_TO_ANSWER
from app.record.responses import COUNTING_RESPONSES_CONDITION, Response, criterion_values_sql

LIST_ANSWERS_OF_ANNOTATOR = text(f"""
    SELECT r.seq, r.hit_id, r.source, r.items, {criterion_values_sql("0", "r")} AS values, r.received_at, r.counts,
           {SECONDS_TO_ANSWER} AS seconds, d.kind, d.reason, d.decided_by, d.decided_at,
           ARRAY(SELECT i.external_id FROM unnest(r.items) WITH ORDINALITY AS shown (number, place)
                 JOIN items i ON i.campaign_id = :campaign AND i.number = shown.number ORDER BY place) AS ids
    FROM (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses
          WHERE campaign_id = :campaign AND annotator_id = :annotator
          ORDER BY seq DESC LIMIT :limit OFFSET :offset) AS r
    LEFT JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id AND h.leader IS NOT NULL
    LEFT JOIN LATERAL (
        SELECT * FROM decisions d WHERE d.campaign_id = :campaign AND d.response_seq = r.seq
        ORDER BY d.seq DESC LIMIT 1
    ) AS d ON true
    ORDER BY r.seq DESC
""")

LIST_DECISIONS_ABOUT_ANNOTATOR = text("""
    SELECT who, action, noted_at, after ->> 'reason' AS reason, after ->> 'answer' AS answer FROM audit_log
    WHERE campaign_id = :campaign AND about = :name AND split_part(action, '.', 1) = 'answers' ORDER BY id DESC
""")


@dataclass(frozen=True)
class AnswerLine:
    """An answer of an annotator, with its values for the first criterion as text.

    Attributes:
        seconds: Time from getting the HIT to the first answer; None if unknown.
        judged: Pairs of an item's id and the answer about it, as presented.
        excluded: Why and by whom this answer alone was excluded.
        withdrawn: Whether the annotator took the answer back.

    """

    seq: int
    received_at: datetime
    seconds: float | None
    judged: Sequence[tuple[str, str]]
    counts: bool
    excluded: str | None
    withdrawn: bool


async def load_decisions_about_annotator(
    connection: AsyncConnection, campaign_id: int, annotator_name: str
) -> Sequence[Row[Any]]:
    """Return the decisions about an annotator, given by their name on pages, and about their answers, newest first."""
    return (
        await connection.execute(LIST_DECISIONS_ABOUT_ANNOTATOR, {"campaign": campaign_id, "name": annotator_name})
    ).all()


async def load_answer_lines_of_annotator(
    connection: AsyncConnection, campaign: Campaign, annotator_id: int, *, limit: int, offset: int = 0
) -> list[AnswerLine]:
    """Return the answers of an annotator, newest first."""
    parameters = {"campaign": campaign.id, "annotator": annotator_id, "limit": limit, "offset": offset}
    design = campaign.criteria[0].design
    return [
        answer_line_from_row(design, row) for row in await connection.execute(LIST_ANSWERS_OF_ANNOTATOR, parameters)
    ]


def answer_line_from_row(design: Design, row: Row[Any]) -> AnswerLine:
    response = Response.from_stored(row.seq, 0, row.items, row.values)
    text_by_item = {
        item: design.format_value_at_position(response.values, place) for place, item in enumerate(response.items)
    }
    excluded = f"{row.reason} ({row.decided_by})" if row.kind == "exclude" else None
    answer_texts = [
        (name, text_by_item.get(item, "cannot be judged")) for item, name in zip(row.items, row.ids, strict=True)
    ]
    return AnswerLine(row.seq, row.received_at, row.seconds, answer_texts, row.counts, excluded, row.kind == "withdraw")
