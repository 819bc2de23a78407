"""Builders for campaigns whose items are systems."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits.campaign_index import PosteriorCache
from app.designs.campaign import Campaign
from tests.annotation.hits.campaigns import create_annotator, find_or_lease_next_hit, submit_scores, try_to_lease_hit
from tests.campaigns.drafts import apply_action, create_draft, import_items

SYSTEMS = ("ape", "bee", "cat", "doe")


def outputs_table(systems: tuple[str, ...] = SYSTEMS, segments: int = 6, *, above: bool = False) -> str:
    """Every system's output for every segment, no two the same."""
    lines = ["system,segment,output" + ",source,reference" * above]
    lines += [
        f"{system},s{k},{system} on {k}" + f",source {k},reference {k}" * above
        for k in range(segments)
        for system in systems
    ]
    return "\n".join(lines) + "\n"


async def create_campaign_of_systems(engine: AsyncEngine, content: str | None = None, **settings: Any) -> Campaign:
    """A launched campaign of systems."""
    campaign = await create_draft(engine, **{"items_per_hit": 2, "judgments_per_item": 10} | settings)
    await import_items(engine, campaign, content or outputs_table())
    return await apply_action(engine, campaign)


async def answer_hits_of_systems(engine: AsyncEngine, campaign: Campaign, *, by: int, each: int) -> None:
    """So many people answer so many HITs each, as long as there are any."""
    cache = PosteriorCache()
    for name in range(by):
        me = await create_annotator(engine, campaign, f"ann {name}")
        for _ in range(each):
            if (await find_or_lease_next_hit(engine, me, cache=cache)).hit is None:
                break
            hit = await try_to_lease_hit(engine, me, cache=cache)
            seen = campaign.design.simulate_answer_values([item / 10 for item in hit.items])
            await submit_scores(engine, me, hit, scores=seen)
