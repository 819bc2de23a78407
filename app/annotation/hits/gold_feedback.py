"""What people read of a gold item after their answer, where the campaign says so: what was expected, what they said."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from app.annotation.hits.assignment import ServedCampaign
from app.annotation.onboarding.training import answered_order, practice_value_text
from app.database.session import Driver, Record, fetch_rows
from app.designs.content import RenderedItems, SourceAndReference
from app.designs.registry import design_of
from app.media.render_items import render_campaign_items
from app.quality.expected_answers import ExpectedAnswer, Feedback, feedback

SELECT_ANSWERED_GOLD = text("""
    SELECT i.shown, i.expected, a.value
    FROM check_answers a
    JOIN hit_checks p ON p.campaign_id = a.campaign_id AND p.hit_id = a.hit_id AND p.check_number = a.check_number
    JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
    WHERE a.campaign_id = :campaign AND a.hit_id = :hit AND i.kind = 'gold' ORDER BY p.place
""")


class AnsweredGold(Record):
    """A gold item with what an annotator said of it."""

    shown: str
    expected: dict[str, Any]
    value: float


class GoldFeedback(NamedTuple):
    """The gold items of a HIT as they are drawn; of each what was said, in words, None where it cannot be judged, and
    what was expected; of their order, where one was, the positions as they were said.
    """

    items: RenderedItems
    answer_texts: Sequence[str | None]
    feedback: Sequence[Feedback]
    answered_order: Sequence[Sequence[int]] = ()

    @property
    def is_as_expected(self) -> bool:
        """Whether all is as expected."""
        return all(one.met for one in self.feedback)


async def load_gold_feedback(connection: Driver, campaign: ServedCampaign, hit_id: int | None) -> GoldFeedback | None:
    """What is to be read after the answer to a HIT; None where there is nothing."""
    if hit_id is None or not (campaign.gold_feedback and campaign.has_checks):
        return None
    rows = await fetch_rows(connection, SELECT_ANSWERED_GOLD, {"campaign": campaign.id, "hit": hit_id}, AnsweredGold)
    design, values = design_of(campaign), [row.value for row in rows]
    feedbacks = feedback(design, [ExpectedAnswer.model_validate(row.expected) for row in rows], values)
    if not feedbacks or (feedbacks[-1].kind == "order" and len(feedbacks[-1].order) < 2):
        return None
    items = await render_campaign_items(
        connection, campaign, range(len(rows)), [row.shown for row in rows], SourceAndReference()
    )
    judged_values = [None if value != value else value for value in values]  # noqa: PLR0124  (NaN)
    if feedbacks[-1].kind == "order":
        return GoldFeedback(items, (), feedbacks, answered_order(design, judged_values, feedbacks[-1]))
    return GoldFeedback(items, [practice_value_text(design, value) for value in judged_values], feedbacks)
