"""A campaign in which people have answered, and decisions about them as a researcher makes them."""

import random
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.assignments import AssignmentId
from app.database.audit_log import Actor
from app.database.bulk import open_snapshot
from app.designs.campaign import Campaign
from app.quality.actions import ANNOTATOR_ACTIONS, ANSWER_ACTIONS
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)

ADA = Actor("ada", "page")

POSTERIORS = "SELECT number, state, score, variance, judgments FROM current_posteriors ORDER BY number"


async def answer_hits(
    engine: AsyncEngine, *, people: int = 3, hits: int = 2, items: int = 30, **settings: Any
) -> tuple[Campaign, list[AssignmentId], list[int]]:
    """Let people answer HITs, and return the campaign, their assignments and the IDs of their rows."""
    campaign = await create_running_campaign(engine, **{"judgments_per_item": 50, "items": items} | settings)
    visits = [await create_annotator(engine, campaign, f"ann {k}") for k in range(people)]
    rng = random.Random(7)
    for _ in range(hits):
        for visit in visits:
            hit = await try_to_lease_hit(engine, visit)
            await submit_scores(engine, visit, hit, scores=[float(rng.randrange(101)) for _ in hit.items])
    rows = await fetch_rows(
        engine, "SELECT annotator_id FROM assignments WHERE campaign_id = :id ORDER BY id", id=campaign.id
    )
    return campaign, visits, [row[0] for row in rows]


async def decide(engine: AsyncEngine, campaign: Campaign, what: str, number: int, *, reason: str = "too fast") -> Any:
    """Apply a decision to an annotator (`hold`, `release`, ...) or an answer (`exclude_answer`, ...), and revise."""
    action, _, subject = what.partition("_")
    function: Any = (ANSWER_ACTIONS if subject == "answer" else ANNOTATOR_ACTIONS)[action]
    async with engine.begin() as connection:
        result = await function(connection, campaign, number, reason=reason, actor=ADA, now=NOW)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    return result


async def verify_campaign(engine: AsyncEngine, campaign: Campaign) -> replay.Verification:
    async with open_snapshot(engine) as connection:
        return await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )
