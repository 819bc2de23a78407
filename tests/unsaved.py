"""Campaigns that are stored nowhere, for tests of what follows from their settings."""

from dataclasses import replace
from typing import Any

from app.campaigns.lifecycle import campaign_of_unsaved_settings
from app.campaigns.settings import CampaignSettings
from app.designs.campaign import Campaign


def unsaved(**values: Any) -> Campaign:
    """Return a campaign with these validated settings, and with these other values without validation."""
    settings = {name: values.pop(name) for name in [*values] if name in CampaignSettings.model_fields}
    usual = {"name": "Verbs", "question": "How good?", "repeat_items": True}
    return replace(campaign_of_unsaved_settings(CampaignSettings.model_validate(usual | settings)), **values)
