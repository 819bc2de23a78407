"""Builders for campaigns that are set up from files."""

import io
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns import form_input, lifecycle, step_input
from app.campaigns.form_sections import StepName
from app.campaigns.settings import CampaignSettings
from app.database.bulk import open_snapshot
from app.designs.campaign import Campaign
from app.imports import items, responses_import
from app.imports.columns import ColumnMapping
from app.imports.response_receipt import ResponseImportReceipt
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import verify_by_replay_or_refuse
from app.uploads import ReadOptions
from tests.annotation.hits.campaigns import NOW

VERBS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6))


def settings_after_step(before: CampaignSettings, step: StepName, entered: dict[str, str]) -> CampaignSettings:
    """Return the settings, changed by the form of one step as a browser sends it."""
    return form_input.parse_settings_form(step_input.form_values_with_entered_step(before, step, entered))


async def create_draft(engine: AsyncEngine, **settings: Any) -> Campaign:
    values: dict[str, Any] = {"name": "Verbs", "question": "How frequent?", "judgments_per_item": 3, "welcome": False}
    values["repeat_items"] = True
    chosen = CampaignSettings(**values | settings)
    async with engine.begin() as connection:
        return await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=NOW)


async def import_file(
    engine: AsyncEngine, campaign: Campaign, content: str | bytes, name: str = "items.csv", **how: Any
) -> items.ItemImportReceipt:
    """Import a table; `how` may have what `Matching` and `ReadAs` have, too."""
    said = {field: how.pop(field) for field in ColumnMapping.__dataclass_fields__ if field in how}
    read_as = ReadOptions(**{field: how.pop(field) for field in ReadOptions.__dataclass_fields__ if field in how})
    file = io.BytesIO(content.encode() if isinstance(content, str) else content)
    max_mb = how.pop("max_mb", 16)
    async with engine.begin() as connection:
        return await items.import_items_and_return_receipt(
            connection,
            campaign.slug,
            file,
            name,
            mapping=ColumnMapping(**said),
            read_options=read_as,
            max_mb=max_mb,
            **how,
        )


async def import_items(
    engine: AsyncEngine, campaign: Campaign, content: str, name: str = "items.csv", **how: Any
) -> int:
    return (await import_file(engine, campaign, content, name, **how)).imported


async def apply_action(engine: AsyncEngine, campaign: Campaign, action: str = "launch") -> Campaign:
    async with engine.begin() as connection:
        return await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, action, now=NOW)


async def create_launched_campaign(engine: AsyncEngine, content: str = VERBS, **settings: Any) -> Campaign:
    priors = settings.pop("priors", False)
    campaign = await create_draft(engine, **settings)
    await import_items(engine, campaign, content, priors=priors)
    return await apply_action(engine, campaign)


async def import_results(
    engine: AsyncEngine, campaign: Campaign, content: str, name: str = "results.csv", **how: Any
) -> ResponseImportReceipt:
    file = io.BytesIO(content.encode())
    return await responses_import.import_responses_of_file_and_return_receipt(
        engine, campaign.slug, file, name, now=NOW, max_mb=16, **how
    )


async def replay_is_clean(engine: AsyncEngine, slug: str) -> bool:
    """Return whether a replay gives every posterior bit for bit."""
    async with open_snapshot(engine) as connection:
        return (
            await verify_by_replay_or_refuse(connection, await load_campaign_by_slug_or_refuse(connection, slug))
        ).has_no_mismatches
