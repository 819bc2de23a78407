"""Settings that changed after a consent text was written from them, found in the audit log."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.errors import join_with_and
from app.privacy.consent_text import StudyFacts, consent_warnings, draft_consent_text

FACT_SETTINGS = (
    *("study_controller", "study_contact", "study_purpose", "ethics_approval", "minutes_per_hit", "pay", "pay_per_hit"),
    *("currency", "hits_per_annotator", "recruiting_minutes", "people_from", "open_link", "withdrawal"),
    *("identifiers_days", "free_text_days", "telemetry_days", "everything_days"),
)
FACT_TITLES = {
    "controller": "the institution",
    "contact": "the contact",
    "purpose": "the purpose",
    "ethics_approval": "the ethics approval",
    "time": "the time",
    "pay": "the pay",
    "stored_id": "where people come from",
    "is_self_withdrawal": "how people withdraw",
}
RETENTION_TITLE = "how long data are kept"

LIST_SETTINGS_CHANGES = text("""
    SELECT before, after FROM audit_log
    WHERE campaign_id = :campaign AND action = 'settings.changed' AND id < :line ORDER BY id DESC
""")
# A campaign that got the slug of a deleted original is newer than the copy.
FIND_ORIGINAL = text("""
    SELECT original.id AS campaign_id, copied.id AS line
    FROM audit_log copied JOIN campaigns original ON original.slug = copied.after ->> 'copy_of'
    WHERE copied.campaign_id = :campaign AND copied.action = 'campaign.copied' AND original.id < :campaign
""")
NEWEST_LINE = 2**63 - 1


async def load_consent_warnings(
    connection: AsyncConnection, campaign: Campaign, max_days: int | None = None
) -> list[str]:
    """Return what the consent text lacks or says differently from the settings, and what changed since it was written.

    Only a text that was written from the settings and not edited can be out of date. What it says differently follows
    from that, so only what it lacks is named, too.
    """
    outdated = await load_outdated_consent_sentence_or_empty(connection, campaign, max_days)
    return [*filter(None, [outdated]), *other_consent_warnings(campaign, outdated, max_days)]


def other_consent_warnings(campaign: Campaign, outdated_sentence: str, max_days: int | None) -> list[str]:
    """Return what the consent text lacks or says differently, beside the sentence on what changed, if there is one."""
    if not outdated_sentence:
        return consent_warnings(campaign, max_days)
    new_text = draft_consent_text(StudyFacts.from_campaign(campaign), max_days)
    as_if_new = Campaign.from_columns(campaign.column_values_of_campaign() | {"consent": new_text})
    return consent_warnings(as_if_new, max_days)


async def load_outdated_consent_sentence_or_empty(
    connection: AsyncConnection, campaign: Campaign, max_days: int | None = None
) -> str:
    """Return which settings changed since the consent text was written from them; empty if it is up to date."""
    if not campaign.consent:
        return ""
    former_values = await load_settings_when_consent_was_stored(connection, campaign.id)
    return outdated_consent_sentence_or_empty(campaign, former_values, max_days)


async def load_settings_when_consent_was_stored(connection: AsyncConnection, campaign_id: int) -> dict[str, Any]:
    """Return the former values of settings that changed since the consent text was stored.

    The text of a copy may have been stored in its original, or in the campaign that this was copied from.
    """
    former_values: dict[str, Any] = {}
    line = NEWEST_LINE
    while True:
        changes = await connection.execute(LIST_SETTINGS_CHANGES, {"campaign": campaign_id, "line": line})
        for before, after in changes.all():
            if "consent" in after:
                return former_values
            former_values |= {name: before.get(name) for name in FACT_SETTINGS if name in after}
        original = (await connection.execute(FIND_ORIGINAL, {"campaign": campaign_id})).first()
        if original is None:
            return former_values
        campaign_id, line = original.campaign_id, original.line


def outdated_consent_sentence_or_empty(
    campaign: Campaign, former_values: Mapping[str, Any], max_days: int | None
) -> str:
    """Return the sentence for settings whose values were others when the consent text was stored. Pure."""
    former_campaign = Campaign.from_columns(campaign.column_values_of_campaign() | dict(former_values))
    former_facts, facts = StudyFacts.from_campaign(former_campaign), StudyFacts.from_campaign(campaign)
    is_written_from_settings = draft_consent_text(former_facts, max_days).split() == campaign.consent.split()
    if not is_written_from_settings or draft_consent_text(facts, max_days).split() == campaign.consent.split():
        return ""
    changed = [
        FACT_TITLES.get(one.name, RETENTION_TITLE)
        for one in fields(StudyFacts)
        if getattr(former_facts, one.name) != getattr(facts, one.name)
    ]
    titles = join_with_and([*dict.fromkeys(changed)])
    return f"{titles[0].upper()}{titles[1:]} changed since the consent text was written from the settings."
