"""The rail beside the settings: the steps of setting up a campaign, which are done, and what they add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.campaigns import visit_preview
from app.campaigns.form_sections import STEP_BY_SETTING, STEP_TITLES, STEPS_IN_ORDER, StepName
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import mark_of_step_changed_elsewhere
from app.campaigns.totals import CampaignTotals
from app.designs.campaign import Campaign
from app.quality.check_remedies import unfit_check_rules
from app.quality.fitting_rules import UnfitRules
from app.record.campaign import CampaignOnPage, CountedCampaign

FIRST_STEP: StepName = "question"
QUALITY_STEP: StepName = "quality"
RULE_WARNING = "saved, but a rule can flag no one"
OUTSIDE_ORDER: tuple[StepName, ...] = ("advanced",)


@dataclass(frozen=True)
class RailStep:
    """A step as the rail shows it.

    Attributes:
        url: Empty while the campaign does not exist.
        warning: Why a saved step is not done; empty if it is, or was not saved.

    """

    name: StepName
    title: str
    number: int | None
    is_done: bool
    url: str
    warning: str = ""


@dataclass(frozen=True)
class SetupRail:
    """The rail of a campaign.

    Attributes:
        visit_pages: Titles of the onboarding steps by their names in the preview as participant.

    """

    steps: Sequence[RailStep]
    totals: CampaignTotals | None
    visit_pages: Mapping[str, str]


def build_setup_rail(campaign: CampaignOnPage | None) -> SetupRail:
    """Return the rail of a campaign, or of one that does not exist yet."""
    steps = rail_steps(campaign)
    if campaign is None:
        return SetupRail(steps, None, {})
    visit_steps = visit_preview.required_onboarding_steps(
        campaign, visit_preview.preview_platform_or_first(campaign, "")
    )
    visit_pages = {one.name: visit_preview.capitalized_step_name(one) for one in visit_steps}
    return SetupRail(steps, CampaignTotals.from_campaign(campaign), visit_pages)


def rail_steps(campaign: CountedCampaign | None) -> list[RailStep]:
    """Return the steps of a campaign, or of one that does not exist yet; only drafts have the last one."""
    return [
        RailStep(
            step,
            STEP_TITLES[step],
            None if step in OUTSIDE_ORDER else number,
            campaign is not None and is_setup_step_done(campaign, step),
            step_url(campaign.slug, step) if campaign else "",
            saved_step_warning_or_empty(campaign, step) if campaign else "",
        )
        for number, step in enumerate(STEPS_IN_ORDER, start=1)
        if step != "review" or campaign is None or campaign.status == "draft"
    ]


def numbered_steps_of_draft(campaign: CountedCampaign) -> list[RailStep]:
    """Return the steps for the pages of a draft that have no rail; items are added on their own page."""
    steps = [step for step in rail_steps(campaign) if step.number is not None]
    items_url = f"/admin/campaigns/{campaign.slug}/items"
    return [replace(step, url=items_url) if step.name == "items" else step for step in steps]


def step_url(slug: str, step: StepName) -> str:
    """Return the address of a step. The last one is the page that launches the campaign."""
    return f"/admin/campaigns/{slug}/" + ("launch/confirm" if step == "review" else f"settings/{step}")


def is_setup_step_done(campaign: CountedCampaign, step: StepName) -> bool:
    """Return whether a step was saved or has settings of its own; items are done once there are any, and quality only
    while each rule that is on can flag someone. A step that only the form of another step changed is not done.
    """
    if step == "items":
        return campaign.item_count > 0
    if step == "review":
        return campaign.status != "draft"
    if step == QUALITY_STEP and has_rule_that_can_flag_no_one(campaign):
        return False
    if mark_of_step_changed_elsewhere(step) in campaign.step_versions:
        return False
    return step == FIRST_STEP or step in campaign.step_versions or has_step_non_default_settings(campaign, step)


def saved_step_warning_or_empty(campaign: CountedCampaign, step: StepName) -> str:
    """Return why a step that was saved is not done; empty if it is done, or was not saved."""
    is_saved = step in campaign.step_versions
    return RULE_WARNING if is_saved and step == QUALITY_STEP and has_rule_that_can_flag_no_one(campaign) else ""


def has_rule_that_can_flag_no_one(campaign: CountedCampaign) -> bool:
    """Return whether the step on quality names a rule that can flag no one; False before there are items."""
    if not campaign.item_count:
        return False
    check_counts = {"gold": campaign.gold_count, "attention": campaign.check_count - campaign.gold_count}
    return bool(
        unfit_check_rules(campaign, campaign.item_count, check_counts)
        or UnfitRules.unfit_rules_or_none(campaign, campaign.item_count, check_counts)
    )


def has_step_non_default_settings(campaign: Campaign, step: StepName) -> bool:
    """Return whether a setting of the step is not the default of new campaigns; a template or a file sets some."""
    columns, fields = campaign.column_values_of_campaign(), CampaignSettings.model_fields
    names = [name for name, setting_step in STEP_BY_SETTING.items() if setting_step == step]
    return any(
        columns[name] != fields[name].get_default(call_default_factory=True)
        for name in names
        if name not in ("update_law", "prior", "repeat_items")  # which follow from the way of asking
    )


def neighbouring_step_or_none(step: StepName, offset: int) -> StepName | None:
    """Return the step before (-1) or after (1) another one; None if there is none."""
    ordered = [name for name in STEPS_IN_ORDER if name not in OUTSIDE_ORDER]
    if step not in ordered:
        return None
    place = ordered.index(step) + offset
    return ordered[place] if 0 <= place < len(ordered) else None
