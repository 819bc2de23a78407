"""Answers of one annotator as researchers see them, and the decisions about these and about the annotator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.quality.annotators import SECONDS_TO_ANSWER
from app.record.responses import COUNTING_RESPONSES_CONDITION, Response, values_by_criterion

LIST_ANSWERS_OF_ANNOTATOR = text(f"""
    SELECT r.seq, r.hit_id, r.source, r.items, r.values, r.received_at, r.counts,
           (SELECT external_id FROM segments s WHERE s.campaign_id = :campaign AND s.number = r.segment) AS segment,
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
    """An answer of an annotator, with its values as text.

    Attributes:
        seconds: Time from getting the HIT to the first answer; None if unknown.
        judged: Pairs of an item's id and the answer about it by the first criterion, as presented.
        excluded: Why and by whom this answer alone was excluded.
        withdrawn: Whether the annotator took the answer back.
        segment: The researcher's id of the segment whose outputs were judged; None if items were.
        by_criterion: Answers about the items of `judged` by each criterion's name; empty with one question.

    """

    seq: int
    received_at: datetime
    seconds: float | None
    judged: Sequence[tuple[str, str]]
    counts: bool
    excluded: str | None
    withdrawn: bool
    segment: str | None = None
    by_criterion: Mapping[str, Sequence[str]] = field(default_factory=dict)


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
    return [
        answer_line_from_row(campaign, row) for row in await connection.execute(LIST_ANSWERS_OF_ANNOTATOR, parameters)
    ]


def answer_line_from_row(campaign: Campaign, row: Row[Any]) -> AnswerLine:
    texts = [answer_texts_by_criterion(criterion, row) for criterion in campaign.criteria]
    return AnswerLine(
        seq=row.seq,
        received_at=row.received_at,
        seconds=row.seconds,
        judged=list(zip(row.ids, texts[0], strict=True)),
        counts=row.counts,
        excluded=f"{row.reason} ({row.decided_by})" if row.kind == "exclude" else None,
        withdrawn=row.kind == "withdraw",
        segment=row.segment,
        by_criterion=dict(zip(campaign.criterion_names, texts, strict=False)),
    )


def answer_texts_by_criterion(criterion: Criterion[Campaign], row: Row[Any]) -> list[str]:
    """Return the answers about the items of a row, as presented, by a criterion."""
    response = Response.from_stored(row.seq, 0, row.items, values_by_criterion(row, criterion.number))
    text_by_item = {
        item: criterion.design.format_value_at_position(response.values, place)
        for place, item in enumerate(response.items)
    }
    return [text_by_item.get(item, "cannot be judged") for item in row.items]
