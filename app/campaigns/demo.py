"""The demo campaign: how often are these 150 verbs used? Real items, so that a first look shows the real thing."""

from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import items, lifecycle
from app.campaigns.settings import CampaignSettings
from app.errors import NotFound

VERBS = Path(__file__).resolve().parents[2] / "examples" / "data" / "verbs150.csv"
SETTINGS = CampaignSettings(
    name="Lexical frequency",
    question="How often is this verb used?",
    instructions=(
        "Think of everything you read, hear and say. Compare the verbs with each other: "
        "the order you bring them into matters as much as the numbers."
    ),
    low_label="very rare",
    high_label="very frequent",
)


async def demo(connection: AsyncConnection, *, now: datetime) -> Row[Any]:
    """The demo campaign as it stands; made and launched if there is none yet."""
    try:
        return await lifecycle.find(connection, lifecycle.slug_of(SETTINGS.name))
    except NotFound:
        campaign = await lifecycle.create(connection, SETTINGS, now=now)
    with VERBS.open("rb") as file:
        await items.import_items(connection, campaign.slug, file, VERBS.name, shown="verb", max_mb=1)
    return await lifecycle.transition(connection, campaign.slug, "launch", now=now)
