"""Researchers' page of calls to the platform's server: their states, and decisions about unclear and failed ones."""

from typing import get_args

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.annotation.platforms.platform import VisitOutcome
from app.database.audit_log import log_change
from app.http.dependencies import FormFields, Now, RowId, Transaction, content_disposition_headers, render_page
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse
from app.server_calls.ledger import (
    CALL_COLUMNS,
    CALLS_SHOWN,
    count_people_to_call_for,
    count_server_calls_by_state,
    list_server_calls,
    repeat_server_calls_and_count_them,
    store_and_count_calls_for_earlier_completions,
    store_decision_on_server_call_or_refuse,
)
from app.text.table_formats import format_spreadsheet_rows

router = researcher_router("/admin/campaigns/{slug}")


@router.get("/calls")
async def show_server_calls(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    context = {
        "campaign": campaign,
        "has_address": any(getattr(campaign, f"call_{outcome}") for outcome in get_args(VisitOutcome)),
        "calls": await list_server_calls(connection, campaign.id),
        "counts": await count_server_calls_by_state(connection, campaign.id),
        "earlier_people": await count_people_to_call_for(connection, campaign),
        "rows_shown": CALLS_SHOWN,
    }
    return render_page(request, "admin/calls.html", context)


@router.post("/calls/repeat")
async def submit_repetition_of_server_calls(connection: Transaction, form: FormFields, slug: str) -> Response:
    """Let all failed or all unclear calls be made again."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await repeat_server_calls_and_count_them(connection, campaign, form.get("state", ""))
    return RedirectResponse(f"/admin/campaigns/{slug}/calls", status_code=303)


@router.post("/calls/earlier")
async def submit_calls_for_earlier_people(connection: Transaction, slug: str) -> Response:
    """Prepare a call for each person who completed before the campaign had an address to call."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await store_and_count_calls_for_earlier_completions(connection, campaign)
    return RedirectResponse(f"/admin/campaigns/{slug}/calls", status_code=303)


@router.post("/calls/{call}/decision")
async def submit_server_call_decision(connection: Transaction, form: FormFields, slug: str, call: RowId) -> Response:
    """Store what a person decided about a call."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await store_decision_on_server_call_or_refuse(connection, campaign, call, form.get("decision", ""))
    return RedirectResponse(f"/admin/campaigns/{slug}/calls", status_code=303)


@router.get("/calls.csv")
async def download_server_calls_csv(connection: Transaction, slug: str, now: Now) -> Response:
    """Download all calls. They have no ids of the platform: those are in the export `assignments`."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    rows = await list_server_calls(connection, campaign.id, limit=None)
    await log_change(connection, "people.downloaded", campaign, about="calls.csv")
    text = format_spreadsheet_rows(CALL_COLUMNS, [CALL_COLUMNS, *rows])
    headers = content_disposition_headers(slug, "calls", "csv", now=now) | {"Cache-Control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)
