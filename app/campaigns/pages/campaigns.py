"""Researchers' pages that create a campaign, change its settings and move it from state to state."""

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import segno
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from app.accounts.guards import CurrentAccess, researcher_router
from app.annotation.onboarding import participant_lists
from app.annotation.onboarding.personal_links import sentence_on_invited_people_or_empty
from app.annotation.platforms.registry import (
    annotator_url_by_platform,
    open_link_url_of_campaign,
    platform_of_completion_code_or_none,
    platforms_of_campaign,
    platforms_offered_for_experiments,
    recruiting_platform,
)
from app.annotation.platforms.settings import (
    crowd_setting_by_name_with_slug_of_campaign,
    note_on_form_origins_of_campaign_or_empty,
)
from app.campaigns import empty_campaigns, experiment_arms, hints, item_list, lifecycle, settings_edits
from app.campaigns.comparisons import ComparisonUnit
from app.campaigns.conditions_check import load_short_block_note_or_empty
from app.campaigns.consent_writing import load_consent_context, write_consent_again
from app.campaigns.forecast_findings import ForecastFindings
from app.campaigns.launch import load_sentence_on_own_priors_or_none
from app.campaigns.open_link import (
    close_open_link_and_keep_platform_links,
    platform_recruiting_beside_open_link_or_none,
)
from app.campaigns.pay import HourlyPay
from app.campaigns.person_pay import settings_with_tasks_per_person
from app.campaigns.quota_shortage import quota_shortage_or_empty
from app.campaigns.recordings_check import load_recording_notes
from app.campaigns.rule_fitting import store_check_remedy_and_return_notice
from app.campaigns.setting_types import MAX_CAMPAIGN_NAME_CHARACTERS
from app.campaigns.settings_edits import SETTINGS_EDITABLE_AFTER_LAUNCH
from app.campaigns.setup_rail import build_setup_rail
from app.campaigns.totals import CampaignTotals, MissedItems
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.errors import Conflict, Invalid, NotFound, Refusal
from app.http.dependencies import Database, FormFields, Now, Transaction, render_page, request_base_url
from app.payments.connections import load_account_or_none
from app.payments.money import money_text
from app.quality.caught_guessers import load_guess_chance_by_kind
from app.quality.check_remedies import unfit_check_rules
from app.quality.rule_reach import load_reach_summary
from app.record.campaign import CampaignOnPage, load_campaign_for_page_or_refuse
from app.record.deletion import count_failed_payments_and_calls

root_redirect_router = APIRouter(include_in_schema=False)
router = researcher_router("/admin")

CAMPAIGN_PATH = "/campaigns/{slug}"
MAX_JUDGMENTS_PER_ITEM = 10_000
# action -> (word of the notice, page to show next)
NOTICE_AND_PAGE_AFTER_ACTION = {
    "launch": ("launched", "/share"),
    "pause": ("paused", ""),
    "resume": ("resumed", ""),
    "finish": ("finished", ""),
    "reopen": ("reopened", ""),
    "archive": ("archived", ""),
    "restore": ("restored", ""),
}


def campaign_page_url(slug: str, subpage: str = "", *, notice: str = "") -> str:
    """Return the address of a campaign's page, with the notice of what was just done."""
    return f"/admin/campaigns/{slug}{subpage}" + (f"?done={notice}" if notice else "")


def redirect_to(url: str) -> Response:
    return RedirectResponse(url, status_code=303)


@root_redirect_router.get("/")
async def redirect_home_to_admin() -> Response:
    return redirect_to("/admin")


@router.get("/campaigns")
async def redirect_campaigns_to_admin() -> Response:
    return redirect_to("/admin")


@router.get(CAMPAIGN_PATH + "/share")
async def show_share_page(request: Request, connection: Transaction, access: CurrentAccess, slug: str) -> HTMLResponse:
    """Show the links of a campaign; for an arm, those of its experiment, which have no list of people."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal, so it has no links for annotators.", code="is_a_rehearsal")
    server_url = request_base_url(request)
    arm = await experiment_arms.load_experiment_arm_or_none(connection, campaign.id, access)
    link_parts = experiment_arms.annotator_link_base_and_key_of_campaign(server_url, campaign, arm)
    crowd_settings = crowd_setting_by_name_with_slug_of_campaign(campaign)
    platforms = platforms_offered_for_experiments() if arm else platforms_of_campaign(crowd_settings)
    people_from = recruiting_platform(crowd_settings)
    if arm and people_from not in platforms:
        people_from = platforms[0]
    totals = CampaignTotals.from_campaign(campaign)
    context = {
        "campaign": campaign,
        "totals": totals,
        "quota_note": quota_shortage_or_empty(campaign, totals),
        "experiment": arm,
        "platforms": platforms,
        "recruiting_platform": people_from,
        "code_platform": platform_of_completion_code_or_none(crowd_settings),
        "links": annotator_url_by_platform(*link_parts, platforms),
        "code": qr_code_svg(open_link_url_of_campaign(*link_parts)),
        "loopback_url": server_url if is_loopback_url(server_url) else None,
        "listed_people": await participant_lists.count_listed_people_by_list(connection, campaign.id),
        "invited_people_note": await sentence_on_invited_people_or_empty(
            connection, campaign.id, campaign.only_campaigns
        ),
        "simulated_hits": await item_list.count_simulated_hits(connection, campaign.id),
    }
    return render_page(request, "admin/share.html", context)


def qr_code_svg(link: str) -> Markup:
    """Return a QR code of a link. Its ground is white in either theme, because scanners want dark on light."""
    svg = segno.make_qr(link, error="m").svg_inline(scale=4, border=4, light="#fff", omitsize=True, title="QR code")
    return Markup(svg)  # noqa: S704  (a drawing of our own making)


def is_loopback_url(url: str) -> bool:
    """Return whether an address leads from any machine to that machine itself."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


@router.get(CAMPAIGN_PATH + "/{action}/confirm")
async def show_action_confirmation_page(
    request: Request, connection: Transaction, access: CurrentAccess, slug: str, action: str
) -> HTMLResponse:
    """Ask before an action that cannot be undone."""
    if action not in ("launch", "finish", "delete", "revert", "copy"):
        raise NotFound("There is no such page.")
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    if action == "delete":
        failed_payments, failed_calls = await count_failed_payments_and_calls(connection, campaign.id)
        error = await empty_campaigns.load_cannot_delete_error_or_none(connection, campaign)
        facts = {"error": error, "failed_payments": failed_payments, "failed_calls": failed_calls}
        return render_confirmation_page(request, campaign, action, facts)
    if action == "revert":
        facts = {"error": await empty_campaigns.load_cannot_revert_error_or_none(connection, campaign)}
        return render_confirmation_page(request, campaign, action, facts)
    if action == "finish":
        return render_confirmation_page(request, campaign, action)
    consent_context = await load_consent_context(connection, campaign, request.app.state.settings.retention_days)
    if action == "copy":
        facts = consent_context | {
            "copy_name": await lifecycle.find_free_copy_name(connection, campaign.name, access),
            "max_name_length": MAX_CAMPAIGN_NAME_CHARACTERS,
        }
        return render_confirmation_page(request, campaign, action, facts)
    reach_summary = await load_reach_summary(connection, campaign, item_count=campaign.item_count)
    priors = await load_sentence_on_own_priors_or_none(connection, campaign.id)
    recordings = await load_recording_notes(connection, campaign)
    check_counts = await item_list.count_checks_by_kind(connection, campaign.id)
    notes = {
        "reach_summary": reach_summary,
        "unfit_check_rules": unfit_check_rules(
            campaign,
            campaign.item_count,
            check_counts,
            await load_guess_chance_by_kind(connection, campaign),
        ),
        "priors": priors,
        "budget": await load_budget_text_or_empty(connection, campaign),
        "recording_notes": recordings,
        "block_note": await load_short_block_note_or_empty(connection, campaign, with_refusals=True),
        "invited_people_note": await sentence_on_invited_people_or_empty(
            connection, campaign.id, campaign.only_campaigns
        ),
        "quota_note": quota_shortage_or_empty(campaign, CampaignTotals.from_campaign(campaign)),
        "form_note": note_on_form_origins_of_campaign_or_empty(campaign),
    } | consent_context
    return render_confirmation_page(request, campaign, action, notes)


async def load_budget_text_or_empty(connection: Transaction, campaign: CampaignOnPage) -> str:
    """Return the budget for payments, such as `£4.25`; empty if none is set."""
    account = await load_account_or_none(connection, campaign.id)
    return money_text(account.budget, campaign.currency) if account else ""


def render_confirmation_page(
    request: Request,
    campaign: CampaignOnPage,
    action: str,
    warnings: Mapping[str, Any] | None = None,
    refusal: Refusal | None = None,
) -> HTMLResponse:
    context = {"campaign": campaign, "action": action, **(warnings or {})}
    crowd_settings, server_url = crowd_setting_by_name_with_slug_of_campaign(campaign), request_base_url(request)
    context |= {
        "platforms": platforms_of_campaign(crowd_settings),
        "code_platform": platform_of_completion_code_or_none(crowd_settings),
        "recruiting_platform": recruiting_platform(crowd_settings),
        "open_link_platform": platform_recruiting_beside_open_link_or_none(campaign),
        "loopback_url": server_url if is_loopback_url(server_url) else None,
        "open_after_launch": SETTINGS_EDITABLE_AFTER_LAUNCH,
    }
    context |= {
        "fixed_rule": hints.describe_rule_fixed_by_launch(campaign),
        "goal": hints.goal_sentences_before_launch_or_empty(campaign),
    }
    items, per_item = campaign.item_count, campaign.judgments_per_item
    findings = (
        ForecastFindings.from_stored(campaign.newest_plan, items=items, per_item=per_item)
        if action == "launch"
        else None
    )
    unit = ComparisonUnit.comparison_unit_or_none(campaign, items)
    hourly_pay = HourlyPay.from_campaign(campaign)
    context |= {
        "rail": build_setup_rail(campaign),
        "totals": CampaignTotals.from_campaign(campaign),
        "missed_items": MissedItems.missed_items_or_none(campaign),
        "step": "review",
        "few_comparisons": unit.warning(per_item) if unit else "",
        "one_comparison": unit.judgments_per_system_for_comparisons(1) if unit else None,
        "hourly_pay": hourly_pay,
    }
    context |= {
        "advice": hints.advice_to_use_better_rule_or_empty(campaign),
        "better_rule": hints.name_of_better_rule_or_none(campaign),
        "forecast": findings,
    }
    return render_page(request, "admin/action.html", context, refusal=refusal)


@router.post(CAMPAIGN_PATH + "/judgments-per-item")
async def submit_judgments_per_item(values: FormFields, connection: Transaction, slug: str) -> Response:
    """Set the judgments per item that a forecast found to be enough, and show the page with the form again."""
    judgments = parse_nonnegative_int_or_none(values.get("judgments_per_item"), maximum=MAX_JUDGMENTS_PER_ITEM)
    if not judgments:
        raise Invalid(f"Enter a whole number of judgments, {MAX_JUDGMENTS_PER_ITEM:,} at most. Nothing was changed.")
    await settings_edits.store_changed_settings_or_refuse(
        connection, slug, lambda before: before.model_copy(update={"judgments_per_item": judgments})
    )
    subpage = "/plan" if values.get("from") == "plan" else "/launch/confirm"
    return redirect_to(campaign_page_url(slug, subpage, notice="saved"))


@router.post(CAMPAIGN_PATH + "/better-rule")
async def submit_better_rule(connection: Transaction, slug: str) -> Response:
    """Use the selection rule that suits the goal better, and show the page that launches the campaign again."""
    rule = hints.name_of_better_rule_or_none(await load_campaign_for_page_or_refuse(connection, slug))
    if rule:
        await settings_edits.store_changed_settings_or_refuse(
            connection, slug, lambda before: before.model_copy(update={"rule": rule})
        )
    return redirect_to(campaign_page_url(slug, "/launch/confirm", notice="saved"))


@router.post(CAMPAIGN_PATH + "/tasks-for-all-items")
async def submit_tasks_for_all_items(connection: Transaction, slug: str) -> Response:
    """Let each person do as many tasks as show all items, and show the page that launches the campaign again."""
    missed = MissedItems.missed_items_or_none(await load_campaign_for_page_or_refuse(connection, slug))
    if missed:
        await settings_edits.store_changed_settings_or_refuse(
            connection, slug, lambda before: settings_with_tasks_per_person(before, missed.tasks)
        )
    return redirect_to(campaign_page_url(slug, "/launch/confirm", notice="saved"))


@router.post(CAMPAIGN_PATH + "/check-remedy")
async def submit_check_remedy(values: FormFields, connection: Transaction, slug: str) -> Response:
    """Let a rule about gold or attention items flag someone, and show the page that launches the campaign again."""
    kind, remedy_name = values.get("kind", ""), values.get("remedy", "")
    notice = await store_check_remedy_and_return_notice(connection, slug, kind, remedy_name)
    return redirect_to(campaign_page_url(slug, "/launch/confirm", notice=notice))


@router.post(CAMPAIGN_PATH + "/close-open-link")
async def submit_closing_of_open_link(connection: Transaction, slug: str) -> Response:
    """Close the open link, keep the links of platforms open, and show the page that launches the campaign again."""
    await close_open_link_and_keep_platform_links(connection, slug)
    return redirect_to(campaign_page_url(slug, "/launch/confirm", notice="link-closed"))


@router.post(CAMPAIGN_PATH + "/write-consent")
async def submit_writing_of_consent(request: Request, connection: Transaction, slug: str) -> Response:
    """Write the consent text from the settings again, and show the page that launches the campaign again."""
    await write_consent_again(connection, slug, request.app.state.settings.retention_days)
    return redirect_to(campaign_page_url(slug, "/launch/confirm", notice="consent-written"))


@router.post(CAMPAIGN_PATH + "/copy")
async def submit_campaign_copy(
    values: FormFields, connection: Transaction, access: CurrentAccess, slug: str, now: Now
) -> Response:
    """Create a copy of the campaign as a draft. A form without the field `content` copies the items."""
    name = values.get("name", "")[:MAX_CAMPAIGN_NAME_CHARACTERS]
    chosen = lifecycle.CampaignCopy(name=name, items=values.get("content") != "settings")
    copied_campaign = await lifecycle.create_copy_of_campaign(connection, slug, now=now, access=access, chosen=chosen)
    notice = "copied" if chosen.items else "copied-settings"
    return redirect_to(campaign_page_url(copied_campaign.slug, "/settings/question", notice=notice))


@router.post(CAMPAIGN_PATH + "/delete")
async def submit_campaign_deletion(request: Request, connection: Transaction, slug: str) -> Response:
    try:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, slug)
    except Refusal as refusal:
        return render_confirmation_page(
            request, await load_campaign_for_page_or_refuse(connection, slug), "delete", refusal=refusal
        )
    return redirect_to("/admin?done=deleted")


@router.post(CAMPAIGN_PATH + "/revert")
async def submit_campaign_revert_to_draft(request: Request, database: Database, slug: str) -> Response:
    """Make a launched campaign without answers a draft again."""
    try:
        async with database.begin() as connection:
            await empty_campaigns.revert_unanswered_to_draft_or_refuse(connection, slug)
    except Refusal as refusal:
        async with database.begin() as connection:
            return render_confirmation_page(
                request, await load_campaign_for_page_or_refuse(connection, slug), "revert", refusal=refusal
            )
    return redirect_to(campaign_page_url(slug, "/settings/question", notice="reverted"))


# One route per action: a route with any word at its end would answer 405 for pages that do not exist.
@router.post(CAMPAIGN_PATH + "/launch")
@router.post(CAMPAIGN_PATH + "/pause")
@router.post(CAMPAIGN_PATH + "/resume")
@router.post(CAMPAIGN_PATH + "/finish")
@router.post(CAMPAIGN_PATH + "/reopen")
@router.post(CAMPAIGN_PATH + "/archive")
@router.post(CAMPAIGN_PATH + "/restore")
async def submit_campaign_transition(request: Request, database: Database, slug: str, now: Now) -> Response:
    action = request.url.path.rpartition("/")[2]
    try:
        async with database.begin() as connection:
            campaign = await lifecycle.change_campaign_status_or_refuse(connection, slug, action, now=now)
    except Refusal as refusal:
        # The refused transaction is rolled back, so that no half launch remains.
        async with database.begin() as connection:
            return render_confirmation_page(
                request, await load_campaign_for_page_or_refuse(connection, slug), action, refusal=refusal
            )
    if campaign.status != "running":  # its annotators are assessed a last time
        request.app.state.campaign_monitor.request_scan(campaign.id)
    notice, subpage = NOTICE_AND_PAGE_AFTER_ACTION[action]
    return redirect_to(campaign_page_url(slug, subpage, notice=notice))
