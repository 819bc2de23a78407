"""A HIT to try out: what annotators would see of a campaign, on its items. Nothing of it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import item_numbers
from app.database.session import driver_of
from app.database.tables import items
from app.designs.answer import Form
from app.designs.content import DrawnItems
from app.designs.registry import design_of
from app.media.shown import drawn


@dataclass(frozen=True)
class TrialHit:
    """A HIT as its page reads it. id: which of the campaign's trial HITs."""

    id: int
    items: list[int]
    drawn: DrawnItems
    draft: Mapping[str, Any] = field(default_factory=dict)


async def trial_hit(connection: AsyncConnection, campaign: Row[Any], number: int) -> TrialHit:
    """A HIT of random items, each time the same for a number; where items are lacking, others stand in for them.

    campaign: with `item_count`.
    """
    always = [*(await item_numbers(connection, campaign.id, design_of(campaign).always_shown)).values()]
    rng = np.random.default_rng([campaign.seed, number])
    others = np.delete(np.arange(max(campaign.item_count, campaign.items_per_hit)), always)
    chosen = rng.choice(others, campaign.items_per_hit - len(always), replace=False).tolist()
    chosen = rng.permutation([*chosen, *always]).tolist() if always else chosen
    statement = select(items.c.number, items.c.shown).where(
        items.c.campaign_id == campaign.id, items.c.number.in_(chosen)
    )
    texts = {row.number: row.shown for row in await connection.execute(statement)}
    shown = [texts.get(item, f"Item {item + 1}") for item in chosen]
    return TrialHit(number, chosen, await drawn(await driver_of(connection), campaign, chosen, shown))


def check(campaign: Row[Any], hit: TrialHit, form: Form) -> None:
    """Raises `Invalid` for what an annotator could not send."""
    design = design_of(campaign)
    design.values(design.read(form, hit.items), hit.items)


def as_served(campaign: Row[Any], hit: TrialHit) -> SimpleNamespace:
    """The campaign as annotators' pages read it, for somebody who has answered the HITs before this one."""
    return SimpleNamespace(**campaign._mapping, hits_answered=hit.id, answered_here=False)  # noqa: SLF001  (public)
