"""What people read of a gold item after their answer, where the campaign says so: what was expected, what they said."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from app.database.session import Driver, Record, fetch
from app.designs.content import Above, DrawnItems
from app.designs.registry import design_of
from app.media.shown import drawn
from app.quality.expected import ExpectedAnswer, Feedback, feedback
from app.serving.standing import ServedCampaign
from app.visit.training import in_order, in_words

GOLD_OF_HIT = text("""
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


class GoldTold(NamedTuple):
    """The gold items of a HIT as they are drawn; of each what was said, in words, None where it cannot be judged, and
    what was expected; of their order, where one was, the positions as they were said.
    """

    items: DrawnItems
    given: Sequence[str | None]
    told: Sequence[Feedback]
    order: Sequence[Sequence[int]] = ()

    @property
    def met(self) -> bool:
        """Whether all is as expected."""
        return all(one.met for one in self.told)


async def told_of_gold(connection: Driver, campaign: ServedCampaign, hit: int | None) -> GoldTold | None:
    """What is to be read after the answer to a HIT; None where there is nothing."""
    if hit is None or not (campaign.gold_feedback and campaign.has_checks):
        return None
    rows = await fetch(connection, GOLD_OF_HIT, {"campaign": campaign.id, "hit": hit}, AnsweredGold)
    design, values = design_of(campaign), [row.value for row in rows]
    said = feedback(design, [ExpectedAnswer.model_validate(row.expected) for row in rows], values)
    if not said or (said[-1].kind == "order" and len(said[-1].order) < 2):
        return None
    items = await drawn(connection, campaign, range(len(rows)), [row.shown for row in rows], Above())
    known = [None if value != value else value for value in values]  # noqa: PLR0124  (NaN)
    if said[-1].kind == "order":
        return GoldTold(items, (), said, in_order(design, known, said[-1]))
    return GoldTold(items, [in_words(design, value) for value in known], said)
