"""The demo campaign: how often are these 150 verbs used? Real items, so that a first look shows the real thing."""

import csv
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import items, lifecycle
from app.campaigns.columns import Matching
from app.campaigns.questions import question
from app.errors import NotFound

VERBS = Path(__file__).resolve().parents[2] / "examples" / "data" / "verbs150.csv"
QUESTION = "lexical-frequency"


async def demo(connection: AsyncConnection, *, now: datetime) -> Row[Any]:
    """The demo campaign as it stands; made and launched if there is none yet."""
    settings = question(QUESTION).settings
    try:
        return await lifecycle.find(connection, lifecycle.slug_of(settings.name))
    except NotFound:
        campaign = await lifecycle.create(connection, settings, now=now)
    with VERBS.open("rb") as file:
        await items.import_items(connection, campaign.slug, file, VERBS.name, matching=Matching(shown="verb"), max_mb=1)
    return await lifecycle.transition(connection, campaign.slug, "launch", now=now)


def verbs() -> list[float]:
    """How frequent each verb is, 0 to 1, as its column `oracle` says."""
    with VERBS.open(encoding="utf-8", newline="") as file:
        return [float(row["oracle"]) for row in csv.DictReader(file)]
