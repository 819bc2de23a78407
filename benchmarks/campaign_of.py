"""A campaign of some settings that is stored nowhere."""

from dataclasses import replace
from typing import Any

from app.campaigns.lifecycle import campaign_of_unsaved_settings
from app.campaigns.settings import CampaignSettings
from app.designs.campaign import Campaign


def campaign_of(**values: Any) -> Campaign:
    """A campaign with these values, unchecked, and for the others what is usual."""
    columns = {"rule": "rule_name", "design": "design_name", "criteria": "criteria_settings"}
    usual = campaign_of_unsaved_settings(CampaignSettings(name="A", question="B?"))
    return replace(usual, **{columns.get(name, name): value for name, value in values.items()})
