"""An unsaved campaign, for benchmarks that need settings but no database."""

from dataclasses import replace
from typing import Any

from app.campaigns.lifecycle import campaign_of_unsaved_settings
from app.campaigns.settings import CampaignSettings
from app.designs.campaign import Campaign


def make_unsaved_campaign(**settings: Any) -> Campaign:
    """Return an unsaved campaign with these settings, without validation; the other settings have their defaults.

    Args:
        settings: Settings by the field name of `Campaign`, or by `rule`, `design` or `criteria`.

    Returns:
        The campaign.

    """
    field_names = {"rule": "rule_name", "design": "design_name", "criteria": "criteria_settings"}
    defaults = campaign_of_unsaved_settings(CampaignSettings(name="A", question="B?", repeat_items=True))
    return replace(defaults, **{field_names.get(name, name): value for name, value in settings.items()})
