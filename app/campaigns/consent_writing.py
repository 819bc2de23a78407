"""Consent text that is written from the settings again after they changed: one press, on its step or before launch."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.lifecycle import lock_and_load_campaign_or_refuse
from app.campaigns.settings_edits import store_changed_settings_or_refuse
from app.designs.campaign import Campaign
from app.privacy.consent_changes import load_outdated_consent_sentence_or_empty, other_consent_warnings
from app.privacy.consent_text import StudyFacts, draft_consent_text, retention_contradictions


async def load_consent_context(connection: AsyncConnection, campaign: Campaign, max_days: int | None) -> dict[str, Any]:
    """Return what pages say of the consent text: which settings changed since, and all else that is wrong with it.

    `consent_differs` is true if the text says something else than the settings, or not how long data are kept.
    """
    outdated = await load_outdated_consent_sentence_or_empty(connection, campaign, max_days)
    facts, consent = StudyFacts.from_campaign(campaign), campaign.consent
    return {
        "outdated_consent": outdated,
        "consent_notes": other_consent_warnings(campaign, outdated, max_days),
        "consent_differs": bool(consent and (outdated or retention_contradictions(facts, consent, max_days))),
    }


async def write_consent_again(connection: AsyncConnection, slug: str, max_days: int | None) -> None:
    """Store the text that the present settings give; nothing if the stored text is not one that settings gave.

    The campaign is locked first, so a text that a colleague edits at the same time is kept.
    """
    campaign = await lock_and_load_campaign_or_refuse(connection, slug)
    if not await load_outdated_consent_sentence_or_empty(connection, campaign, max_days):
        return
    text = draft_consent_text(StudyFacts.from_campaign(campaign), max_days)
    await store_changed_settings_or_refuse(connection, slug, lambda before: before.model_copy(update={"consent": text}))
