"""Feedback on gold items after an answer, if the campaign shows it: the expected answer and the annotator's own."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from app.annotation.hits.served_campaign import ServedCampaign
from app.annotation.onboarding.training import answered_order, practice_value_text_or_none
from app.database.session import Driver, Record, fetch_rows
from app.designs.content import RenderedItems, SourceAndReference
from app.media.render_items import render_campaign_items
from app.quality.expected_answers import ExpectedAnswer, Feedback, feedback_on_check_answers

SELECT_ANSWERED_GOLD = text("""
    SELECT i.shown, i.expected, a.value
    FROM check_answers a
    JOIN hit_checks p ON p.campaign_id = a.campaign_id AND p.hit_id = a.hit_id AND p.check_number = a.check_number
    JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
    WHERE a.campaign_id = :campaign AND a.hit_id = :hit AND i.kind = 'gold' ORDER BY p.place
""")


class AnsweredGold(Record):
    """A gold item and the annotator's value for it."""

    shown: str
    expected: dict[str, Any]
    value: float


class GoldFeedback(NamedTuple):
    """Gold items of an answered HIT, with the annotator's answers and the expected ones.

    Attributes:
        answer_texts: The annotator's value of each item, in words; None if it could not be judged.
        feedback: The expected answer of each item, or of their order.
        answered_order: Positions of the items in the annotator's order, if an order was expected.

    """

    items: RenderedItems
    answer_texts: Sequence[str | None]
    feedback: Sequence[Feedback]
    answered_order: Sequence[Sequence[int]] = ()

    @property
    def is_as_expected(self) -> bool:
        return all(item_feedback.met for item_feedback in self.feedback)


async def load_gold_feedback_if_any(
    connection: Driver, campaign: ServedCampaign, hit_id: int | None
) -> GoldFeedback | None:
    """Return the feedback on the gold items of an answered HIT; None if there is none."""
    if hit_id is None or not (campaign.gold_feedback and campaign.has_checks):
        return None
    rows = await fetch_rows(connection, SELECT_ANSWERED_GOLD, {"campaign": campaign.id, "hit": hit_id}, AnsweredGold)
    design, values = campaign.design, [row.value for row in rows]
    feedbacks = feedback_on_check_answers(design, [ExpectedAnswer.model_validate(row.expected) for row in rows], values)
    if not feedbacks or (feedbacks[-1].kind == "order" and len(feedbacks[-1].order) < 2):
        return None
    items = await render_campaign_items(
        connection, campaign, range(len(rows)), [row.shown for row in rows], SourceAndReference()
    )
    judged_values = [None if math.isnan(value) else value for value in values]
    if feedbacks[-1].kind == "order":
        return GoldFeedback(items, (), feedbacks, answered_order(design, judged_values, feedbacks[-1]))
    return GoldFeedback(items, [practice_value_text_or_none(design, value) for value in judged_values], feedbacks)
