"""Tabs of a campaign: its pages, in their order, and what each needs."""

from typing import NamedTuple

from app.accounts.access import Access
from app.accounts.roles import CHANGE_CAMPAIGN, SEE_CAMPAIGN, SEE_PEOPLE, SEE_SETTINGS, SHARE_CAMPAIGN
from app.designs.campaign import Campaign


class CampaignTab(NamedTuple):
    """A page of a campaign. `subpage` follows the campaign's address."""

    name: str
    title: str
    subpage: str
    need: str


# Tabs that only some campaigns have are the last, so that the others are always at the same place.
CAMPAIGN_TABS = (
    CampaignTab("overview", "Overview", "", SEE_CAMPAIGN),
    CampaignTab("plan", "Plan", "/plan", SEE_CAMPAIGN),
    CampaignTab("analysis", "Analysis", "/analysis", SEE_CAMPAIGN),
    CampaignTab("annotators", "Annotators", "/annotators", SEE_PEOPLE),
    CampaignTab("items", "Items", "/items", SEE_SETTINGS),
    CampaignTab("settings", "Settings", "/settings", SEE_SETTINGS),
    CampaignTab("share", "Share", "/share", SEE_SETTINGS),
    CampaignTab("checks", "Quality", "/checks", SEE_PEOPLE),
    CampaignTab("export", "Export", "/export", SEE_PEOPLE),
    CampaignTab("log", "Log", "/log", SEE_PEOPLE),
    CampaignTab("members", "Members", "/members", SHARE_CAMPAIGN),
    CampaignTab("remarks", "Comments", "/remarks", SEE_PEOPLE),
    CampaignTab("adjudicate", "Adjudicate", "/adjudicate", SEE_PEOPLE),
    CampaignTab("payments", "Payments", "/payments", CHANGE_CAMPAIGN),
)


def list_allowed_campaign_tabs(access: Access, campaign: Campaign, current_tab: str = "") -> list[CampaignTab]:
    """Return the tabs of a campaign that the access allows. The current one is always among them."""
    has_tab = {
        "share": campaign.rehearsal_of is None,
        "members": campaign.rehearsal_of is None,
        "payments": False,  # reached from Share and Annotators, where the people from the platform are
        "adjudicate": campaign.status != "draft" and campaign.has_item_labels,
        "remarks": campaign.flag_on != "none" or campaign.comment_on != "none",
    }
    return [
        tab
        for tab in CAMPAIGN_TABS
        if access.can(tab.need) and (tab.name == current_tab or has_tab.get(tab.name, True))
    ]
