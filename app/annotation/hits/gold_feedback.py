"""Feedback on gold items after an answer, if the campaign shows it: the expected answer and the annotator's own."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from app.annotation.hits.served_campaign import ServedCampaign
from app.annotation.onboarding.training import position_groups_in_answered_order, practice_value_text_or_none
from app.database.session import Driver, Record, fetch_rows
from app.designs.content import RenderedItems, SourceAndReference
from app.designs.design import Design
from app.media.render_items import render_campaign_items
from app.quality.check_expectations import criterion_designs, feedback_of_each_criterion
from app.quality.expected_answers import Feedback

SELECT_ANSWERED_GOLD = text("""
    SELECT i.shown, i.expected, array_prepend(a.value, a.other_values) AS given_values, s.source, s.reference
    FROM check_answers a
    JOIN hit_checks p ON p.campaign_id = a.campaign_id AND p.hit_id = a.hit_id AND p.check_number = a.check_number
    JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
    LEFT JOIN segments s ON s.campaign_id = i.campaign_id AND s.number = i.segment
    WHERE a.campaign_id = :campaign AND a.hit_id = :hit AND i.kind = 'gold' ORDER BY p.place
""")


class AnsweredGold(Record):
    """A gold item and the annotator's values for it, by each criterion; source and reference if it has a segment."""

    shown: str
    expected: dict[str, Any]
    given_values: list[float]
    source: str | None
    reference: str | None


class CriterionFeedback(NamedTuple):
    """The annotator's answers to gold items by one criterion, and the expected ones.

    Attributes:
        name: Name of the criterion; empty for one question.
        answer_texts: The annotator's value of each item, in words; None if it could not be judged.
        feedback: The expected answer of each item that has one, or of their order.
        answered_order: Positions of the items in the annotator's order, if an order was expected.

    """

    name: str
    answer_texts: Sequence[str | None]
    feedback: Sequence[Feedback]
    answered_order: Sequence[Sequence[int]] = ()


class GoldFeedback(NamedTuple):
    """Gold items of an answered HIT, with the feedback by each criterion."""

    items: RenderedItems
    by_criterion: Sequence[CriterionFeedback]

    @property
    def is_as_expected(self) -> bool:
        return all(one.met for criterion in self.by_criterion for one in criterion.feedback)


async def load_gold_feedback_or_none(
    connection: Driver, campaign: ServedCampaign, hit_id: int | None
) -> GoldFeedback | None:
    """Return the feedback on the gold items of an answered HIT; None if there is none."""
    if hit_id is None or not (campaign.gold_feedback and campaign.has_checks):
        return None
    rows = await fetch_rows(connection, SELECT_ANSWERED_GOLD, {"campaign": campaign.id, "hit": hit_id}, AnsweredGold)
    designs, values = criterion_designs(campaign), [row.given_values for row in rows]
    feedbacks = [
        feedback_without_order_of_one_place(criterion_feedbacks)
        for criterion_feedbacks in feedback_of_each_criterion(designs, [row.expected for row in rows], values)
    ]
    by_criterion = [
        criterion_feedback(name, design, [row[number] for row in values], feedbacks[number])
        for number, (name, design) in enumerate(designs)
        if feedbacks[number]
    ]
    if not by_criterion:
        return None
    items = await render_campaign_items(
        connection,
        campaign,
        range(len(rows)),
        [row.shown for row in rows],
        SourceAndReference(rows[0].source, rows[0].reference),
    )
    return GoldFeedback(items, by_criterion)


def feedback_without_order_of_one_place(feedbacks: Sequence[Feedback]) -> list[Feedback]:
    """Return the feedback without that on the order of items at one place: no order is expected of them."""
    return [feedback for feedback in feedbacks if feedback.kind != "order" or len(feedback.order) > 1]


def criterion_feedback(
    name: str, design: Design, values: Sequence[float], feedbacks: Sequence[Feedback]
) -> CriterionFeedback:
    """Return the feedback by one criterion on items with these values."""
    judged_values = [None if math.isnan(value) else value for value in values]
    if feedbacks[-1].kind == "order":
        return CriterionFeedback(
            name, (), feedbacks, position_groups_in_answered_order(design, judged_values, feedbacks[-1])
        )
    return CriterionFeedback(name, [practice_value_text_or_none(design, value) for value in judged_values], feedbacks)
