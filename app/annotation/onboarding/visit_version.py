"""Version of a campaign's onboarding, which the launch and later changes of the consent text increment."""

from hashlib import sha256

from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.steps import has_visit_steps_on_any_platform
from app.database.tables import campaigns
from app.database.visit_tables import consent_texts
from app.designs.campaign import Campaign


def visit_settings_of_campaign(campaign: Campaign) -> VisitSettings:
    """Return the onboarding settings of a campaign's row."""
    columns = campaign.column_values_of_campaign()
    return VisitSettings.model_construct(**{name: columns[name] for name in VisitSettings.model_fields})


async def create_first_visit_version_if_needed(connection: AsyncConnection, campaign: Campaign) -> None:
    """Create the first version at the launch, if any annotator has a step to pass."""
    if has_visit_steps_on_any_platform(visit_settings_of_campaign(campaign)):
        await increment_version_and_store_consent_text(connection, campaign)


async def create_visit_version_if_consent_changed(
    connection: AsyncConnection, old_settings: VisitSettings, campaign: Campaign
) -> None:
    """Create a new version if the consent text of a launched campaign has changed; annotators must then agree again."""
    if campaign.status != "draft" and campaign.consent != old_settings.consent:
        await increment_version_and_store_consent_text(connection, campaign)


async def increment_version_and_store_consent_text(connection: AsyncConnection, campaign: Campaign) -> None:
    """Increment the version and store the consent text with it. The caller has locked the campaign's row."""
    version = campaign.visit_version + 1
    await connection.execute(update(campaigns).where(campaigns.c.id == campaign.id).values(visit_version=version))
    if campaign.consent:
        digest = sha256(campaign.consent.encode()).hexdigest()
        text = {"campaign_id": campaign.id, "version": version, "markdown": campaign.consent, "sha256": digest}
        await connection.execute(insert(consent_texts).values(text))
