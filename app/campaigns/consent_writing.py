"""Consent text that is written from the settings again after they changed: one press, on its step or before launch."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.settings_edits import store_changed_settings_or_refuse
from app.designs.campaign import Campaign
from app.privacy.consent_changes import load_consent_warnings, load_outdated_consent_sentence_or_empty
from app.privacy.consent_text import StudyFacts, draft_consent_text
from app.record.campaign import load_campaign_by_slug_or_refuse


async def load_consent_context(connection: AsyncConnection, campaign: Campaign, max_days: int | None) -> dict[str, Any]:
    """Return what pages say of the consent text: which settings changed since, and all else that is wrong with it."""
    outdated = await load_outdated_consent_sentence_or_empty(connection, campaign, max_days)
    warnings = await load_consent_warnings(connection, campaign, max_days)
    return {"outdated_consent": outdated, "consent_notes": [note for note in warnings if note != outdated]}


async def write_consent_again(connection: AsyncConnection, slug: str, max_days: int | None) -> None:
    """Store the text that the present settings give; nothing if the stored text is not one that settings gave."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if not await load_outdated_consent_sentence_or_empty(connection, campaign, max_days):
        return
    text = draft_consent_text(StudyFacts.from_campaign(campaign), max_days)
    await store_changed_settings_or_refuse(connection, slug, lambda before: before.model_copy(update={"consent": text}))
