"""A campaign whose annotators gave labels, and decisions about them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.database.audit_log import Actor
from app.designs.campaign import Campaign
from app.quality.adjudications import Adjudication, adjudicate_item_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)

ADA, BEN = Actor("ada", "page"), Actor("ben", "page")
LABELS = ["yes", "no", "unclear"]

# By annotator the label of each item. On v1 and v3 no label has a majority; all agree on v0.
VOTES = {"ann": [0, 0, 1, 2], "bob": [0, 1, 1, 0], "cat": [0, 2, 1, 1], "dan": [0, 1, 2, 1]}


async def create_labelled_campaign(
    engine: AsyncEngine, votes: Mapping[str, Sequence[int]] = VOTES, **settings: Any
) -> Campaign:
    """Let annotators label all items of a campaign. Without other settings, the labels are categories."""
    count = len(next(iter(votes.values())))
    chosen: dict[str, Any] = {"design": "categories", "design_settings": {"labels": LABELS}, "items_per_hit": count}
    campaign = await create_running_campaign(engine, items=count, **chosen | {"judgments_per_item": 50} | settings)
    for name, labels in votes.items():
        visit = await create_annotator(engine, campaign, name)
        hit = await try_to_lease_hit(engine, visit)
        await submit_scores(engine, visit, hit, scores=[float(labels[item]) for item in hit.items])
    return campaign


async def settle(
    engine: AsyncEngine, campaign: Campaign, item: str, label: str | None, *, criterion: str = "", **more: Any
) -> Adjudication:
    """Store a final label; ada chooses it."""
    given: dict[str, Any] = {"now": NOW, "actor": ADA} | more
    async with engine.begin() as connection:
        return await adjudicate_item_or_refuse(
            connection, campaign.find_criterion_or_refuse(criterion), item, label, **given
        )
