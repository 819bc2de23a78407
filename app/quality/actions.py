"""What researchers do about annotators and answers, by the names of addresses and commands: decided, then acted on."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.database.campaign import load_campaign_by_slug
from app.quality import decisions
from app.record.revisions import revise_posteriors

DecisionFunction = Callable[..., Awaitable[Any]]

ANNOTATOR_ACTIONS: dict[str, DecisionFunction] = {
    "hold": decisions.hold_annotator,
    "release": decisions.release_annotator,
    "exclude": decisions.exclude_annotator,
    "restore": decisions.restore_annotator,
}
ANSWER_ACTIONS: dict[str, DecisionFunction] = {
    "exclude": decisions.exclude_answer,
    "restore": decisions.restore_answer,
}


async def decide_on_annotator(
    engine: AsyncEngine, slug: str, annotator_name: str, action: str, *, reason: str, now: datetime
) -> Callable[[], Awaitable[None]]:
    """Do one of `ON_ANNOTATORS` to whom pages call A7. What is returned makes the posteriors follow: seconds to minutes
    in a campaign of a million answers, in which all goes on. Where it is never called, the next one does it.

    Raises `NotFound` (`campaign_not_found`) and what these raise.
    """
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug(connection, slug)
        annotator_id = await decisions.find_annotator_id(connection, campaign, annotator_name)
        await ANNOTATOR_ACTIONS[action](connection, campaign, annotator_id, reason=reason, now=now)
    return partial(revise_posteriors, engine, campaign.id, now=now)


async def decide_on_answer(
    engine: AsyncEngine,
    slug: str,
    answer_number: int,
    action: str,
    *,
    reason: str,
    now: datetime,
    annotator_name: str = "",
) -> Callable[[], Awaitable[None]]:
    """The same to an answer, by its number; it must be this annotator's, if one is named."""
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug(connection, slug)
        if annotator_name:
            annotator_id = await decisions.find_annotator_id(connection, campaign, annotator_name)
            await decisions.require_answer_by_annotator(connection, campaign, annotator_id, answer_number)
        await ANSWER_ACTIONS[action](connection, campaign, answer_number, reason=reason, now=now)
    return partial(revise_posteriors, engine, campaign.id, now=now)
