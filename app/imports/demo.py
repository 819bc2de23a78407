"""The demo campaign: how often are these 150 verbs used? Its items are real, as in a researcher's own campaign."""

import csv
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import lifecycle
from app.campaigns.starter_questions import load_starter_question_or_refuse
from app.designs.campaign import Campaign
from app.errors import NotFound
from app.imports import items
from app.imports.columns import ColumnMapping
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.settings import project_folder

DEMO_ITEMS_FILE = project_folder() / "examples" / "data" / "verbs150.csv"
DEMO_QUESTION_NAME = "lexical-frequency"


async def find_or_launch_demo_campaign(connection: AsyncConnection, *, now: datetime) -> Campaign:
    """Return the demo campaign; create and launch it if there is none yet."""
    settings = load_starter_question_or_refuse(DEMO_QUESTION_NAME).settings
    try:
        return await load_campaign_by_slug_or_refuse(connection, lifecycle.slugify_campaign_name(settings.name))
    except NotFound:
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=now)
    with DEMO_ITEMS_FILE.open("rb") as file:
        await items.import_items_and_return_receipt(
            connection, campaign.slug, file, DEMO_ITEMS_FILE.name, mapping=ColumnMapping(shown="verb"), max_mb=1
        )
    return await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=now)


def read_demo_true_word_frequencies() -> list[float]:
    """Return the frequency of each verb, 0 to 1, from the column `oracle`."""
    with DEMO_ITEMS_FILE.open(encoding="utf-8", newline="") as file:
        return [float(row["oracle"]) for row in csv.DictReader(file)]
