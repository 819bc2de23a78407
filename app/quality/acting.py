"""What researchers do about annotators and answers, by the names of addresses and commands: decided, then acted on."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.database.campaign import campaign_by_slug
from app.quality import who_counts
from app.record.revisions import revise

Decide = Callable[..., Awaitable[Any]]

ON_ANNOTATORS: dict[str, Decide] = {
    "hold": who_counts.hold,
    "release": who_counts.release,
    "exclude": who_counts.exclude,
    "restore": who_counts.restore,
}
ON_ANSWERS: dict[str, Decide] = {"exclude": who_counts.exclude_answer, "restore": who_counts.restore_answer}


async def on_annotator(
    engine: AsyncEngine, slug: str, name: str, action: str, *, reason: str, now: datetime
) -> Callable[[], Awaitable[None]]:
    """Do one of `ON_ANNOTATORS` to whom pages call A7. What is returned makes the posteriors follow: seconds to minutes
    in a campaign of a million answers, in which all goes on. Where it is never called, the next one does it.

    Raises `NotFound` (`campaign_not_found`) and what these raise.
    """
    async with engine.begin() as connection:
        campaign = await campaign_by_slug(connection, slug)
        annotator = await who_counts.annotator_named(connection, campaign, name)
        await ON_ANNOTATORS[action](connection, campaign, annotator, reason=reason, now=now)
    return partial(revise, engine, campaign.id, now=now)


async def on_answer(
    engine: AsyncEngine, slug: str, answer: int, action: str, *, reason: str, now: datetime, of: str = ""
) -> Callable[[], Awaitable[None]]:
    """The same to an answer, by its number; it must be this annotator's, if one is named."""
    async with engine.begin() as connection:
        campaign = await campaign_by_slug(connection, slug)
        if of:
            annotator = await who_counts.annotator_named(connection, campaign, of)
            await who_counts.require_answer_of(connection, campaign, annotator, answer)
        await ON_ANSWERS[action](connection, campaign, answer, reason=reason, now=now)
    return partial(revise, engine, campaign.id, now=now)
