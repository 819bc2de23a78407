"""The page with the list of campaigns: filtered and sorted, tags of one campaign, actions on the chosen ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError
from starlette.datastructures import FormData

from app.accounts.access import Access
from app.accounts.guards import CurrentAccess, researcher_router
from app.accounts.roles import CHANGE_CAMPAIGN
from app.campaigns import settings_edits, summaries
from app.campaigns.campaign_filter import STATUSES
from app.campaigns.tags import MAX_TAG_CHARACTERS, MAX_TAGS
from app.dashboard import campaign_list
from app.dashboard.campaign_list import CampaignsView
from app.dashboard.home.chosen_campaigns import (
    MAX_CHOSEN_CAMPAIGNS,
    ChosenAction,
    ChosenChange,
    ChosenOutcome,
    RefusedCampaign,
    change_chosen_campaigns,
    chosen_action_or_refuse,
    load_archived_campaigns,
    load_deletable_and_refused_campaigns,
    tags_or_refuse,
)
from app.dashboard.live import LiveDashboards
from app.designs.campaign import Campaign
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.errors import Conflict, NotFound, Refusal
from app.http.dependencies import Database, FormFields, Now, Transaction, render_page
from app.simulation.pages import rehearsal_crowds_of_server

router = researcher_router("/admin")


@dataclass(frozen=True)
class ChosenNotice:
    """The notice after an action on chosen campaigns.

    Attributes:
        action: The action.
        changed_count: How many campaigns it changed.
        archived: The campaigns that it archived and that an undo restores.
        refused: The campaigns that it did not change.

    """

    action: ChosenAction
    changed_count: int
    archived: Sequence[Campaign] = ()
    refused: Sequence[RefusedCampaign] = ()

    @classmethod
    def from_outcome(cls, action: ChosenAction, outcome: ChosenOutcome) -> "ChosenNotice":
        archived = outcome.changed if action == "archive" else ()
        return cls(action, len(outcome.changed), archived, outcome.refused)


@router.get("")
async def campaigns_page(
    request: Request, database: Database, access: CurrentAccess, view: Annotated[CampaignsView, Query()], now: Now
) -> HTMLResponse:
    """Show the campaigns that the user may see, as the address filters and sorts them."""
    notice = await load_chosen_notice_of_address_or_none(request, database, access)
    return await campaigns_page_response(request, database, access, view, now=now, chosen_notice=notice)


async def campaigns_page_response(
    request: Request,
    database: Database,
    access: Access,
    view: CampaignsView,
    *,
    now: datetime,
    chosen_notice: ChosenNotice | None = None,
    refusal: Refusal | None = None,
) -> HTMLResponse:
    live_dashboards: LiveDashboards = request.app.state.live
    async with database.begin() as connection:
        all_rows = await summaries.load_campaigns_with_progress(
            connection, only_archived=view.shows_archived, access=access
        )
        rows = [row for row in all_rows if view.shows_campaign(row)]
        paces = await campaign_list.load_campaign_pace_by_id(
            connection, live_dashboards.followers.precisions, rows, now=now
        )
        daily_answers = await live_dashboards.daily_answer_counts.load_daily_answers_by_campaign(
            connection, [row.id for row in rows if row.status == "running"], now=now
        )
        archived_count = await summaries.count_archived_campaigns(connection, access=access)
        rehearsals = (
            []
            if view.shows_archived
            else await summaries.load_campaigns_with_progress(connection, only_rehearsals=True, access=access)
        )
    listed_ids = {row.id for row in (*rows, *rehearsals)}
    changeable_ids = {
        row.id for row in (*all_rows, *rehearsals) if access.with_member_role(row.member).can(CHANGE_CAMPAIGN)
    }
    context = {
        "campaigns": campaign_list.campaigns_in_order(rows, paces, view.sort),
        "pace_by_campaign": paces,
        "daily_answers_by_campaign": daily_answers,
        "view": view,
        "has_campaigns": bool(all_rows),
        "statuses": STATUSES,
        "sort_titles": campaign_list.SORT_TITLES,
        "tags": sorted({tag for row in all_rows for tag in row.tags}, key=str.casefold),
        "archived": view.shows_archived,
        "archived_count": archived_count,
        "rehearsals": rehearsals,
        "changeable_ids": changeable_ids & listed_ids,
        "changeable_count": len(changeable_ids),
        "max_tags_characters": (MAX_TAG_CHARACTERS + 2) * MAX_TAGS,
        "chosen_notice": chosen_notice,
        "refusal": refusal,
        "now": now,
    }
    is_partly_refused = chosen_notice is not None and chosen_notice.refused
    status = refusal.status if refusal else Conflict.status if is_partly_refused else 200
    return render_page(request, "admin/campaigns.html", context, status=status)


async def load_chosen_notice_of_address_or_none(
    request: Request, database: Database, access: Access
) -> ChosenNotice | None:
    """Return the notice of the action that redirected here, by the fields `did`, `count` and `changed`."""
    query = request.query_params
    count = parse_nonnegative_int_or_none(query.get("count"), maximum=MAX_CHOSEN_CAMPAIGNS)
    if not count:
        return None
    try:
        action = chosen_action_or_refuse(query.get("did", ""))
    except NotFound:
        return None
    if action != "archive":
        return ChosenNotice(action, count)
    numbers = map(parse_nonnegative_int_or_none, query.get("changed", "").split(",")[:MAX_CHOSEN_CAMPAIGNS])
    async with database.begin() as connection:
        archived = await load_archived_campaigns(connection, access, [number for number in numbers if number])
    return ChosenNotice(action, len(archived), archived) if archived else None


def parse_view_or_default(query: str) -> CampaignsView:
    """Return the view of a query string; the whole list if it is impossible."""
    try:
        return CampaignsView.model_validate(dict(parse_qsl(query.removeprefix("?"))))
    except ValidationError:
        return CampaignsView()


def parse_chosen_change_or_refuse(form_data: FormData) -> ChosenChange:
    """Return the change that a form asks for. Raises `NotFound` (`unknown_action`) and `Invalid`
    (`tags_invalid`).
    """
    action = chosen_action_or_refuse(str(form_data.get("action", "")))
    tags = str(form_data.get("tags", "")) if action in ("add-tags", "remove-tags") else ""
    return ChosenChange.from_input_or_refuse(action, tags)


@router.post("/campaigns/chosen")
async def submit_action_on_chosen_campaigns(
    request: Request, database: Database, access: CurrentAccess, now: Now
) -> Response:
    """Archive, restore, tag or delete the ticked campaigns; before a deletion, ask first.

    The list is shown again with the notice of what was done; if some campaigns were refused, with the reason of each.
    """
    form_data = await request.form()
    view = parse_view_or_default(str(form_data.get("view", "")))
    slugs = [slug for slug in form_data.getlist("campaign") if isinstance(slug, str) and "\0" not in slug]
    try:
        change = parse_chosen_change_or_refuse(form_data)
        if change.action == "delete" and "sure" not in form_data:
            return await deletion_page_response(request, database, access, view, slugs)
        outcome = await change_chosen_campaigns(
            database, rehearsal_crowds_of_server(request), access, slugs, change, now=now
        )
    except Refusal as refusal:
        return await campaigns_page_response(request, database, access, view, now=now, refusal=refusal)
    if outcome.refused:
        notice = ChosenNotice.from_outcome(change.action, outcome)
        return await campaigns_page_response(request, database, access, view, now=now, chosen_notice=notice)
    fields: list[tuple[str, Any]] = [*view.query_fields(), ("did", change.action), ("count", len(outcome.changed))]
    if change.action == "archive":  # ids, because a hundred slugs are longer than a proxy takes in a header
        fields.append(("changed", ",".join(str(campaign.id) for campaign in outcome.changed)))
    return RedirectResponse(f"/admin?{urlencode(fields, safe=',')}", status_code=303)


async def deletion_page_response(
    request: Request, database: Database, access: Access, view: CampaignsView, slugs: Sequence[str]
) -> HTMLResponse:
    """Show which of the ticked campaigns would be deleted, and why the others stay."""
    async with database.begin() as connection:
        deletable, refused = await load_deletable_and_refused_campaigns(connection, access, slugs)
    context = {"deletable": deletable, "refused": refused, "view": view}
    return render_page(request, "admin/campaigns_chosen.html", context)


@router.post("/campaigns/{slug}/tags")
async def submit_tags_and_redirect_to_list(values: FormFields, connection: Transaction, slug: str) -> Response:
    """Store the tags of a campaign, and redirect to the list as it was."""
    tags = tags_or_refuse(values.get("tags", ""))
    await settings_edits.store_changed_settings_or_refuse(
        connection, slug, lambda before: before.model_copy(update={"tags": tags})
    )
    return RedirectResponse(f"/admin?{values.get('view', '').removeprefix('?')}", status_code=303)
