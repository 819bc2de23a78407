"""Annotators' page on which they have their own answers removed, and take that back for a day."""

from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.completion import load_completion_storing_call_or_none
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.no_hit_replies import load_reply_after_erasure_or_none
from app.annotation.hits.pages.annotator import ANNOTATOR_PATH, read_worker_token_or_refuse
from app.annotation.hits.visit_outcome import outcome_of_finished_visit_or_none
from app.annotation.hits.withdrawal_code import WithdrawalCodes
from app.annotation.platforms.assignments import WorkerToken, refuse_outdated_token
from app.annotation.platforms.registry import platform_with_title
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, Refusal
from app.http.dependencies import (
    Database,
    Now,
    borrow_serving_connection,
    form_text_by_name_refusing_repeats,
    read_whole_body,
    render_page,
    set_request_language,
)
from app.privacy.withdrawal import (
    load_withdrawal_state_or_refuse,
    store_withdrawal_code_hash,
    undo_withdrawal_or_refuse,
    withdraw_annotator_and_return_erasure,
)
from app.record.campaign import load_campaign

router = APIRouter(include_in_schema=False)

WITHDRAW_PATH = ANNOTATOR_PATH + "/withdraw"
SHOWN_REFUSALS = ("withdrawal_final", "not_withdrawn")
WITHDRAWAL_ACTIONS = {"withdraw": withdraw_annotator_and_return_erasure, "keep": undo_withdrawal_or_refuse}


async def read_current_token_or_refuse(request: Request, platform_name: str, link_key: str, token: str) -> WorkerToken:
    """Return the content of a token that is not older than its assignment. Raises as `read_worker_token_or_refuse`."""
    async with borrow_serving_connection(request) as connection:
        worker_token = await read_worker_token_or_refuse(request, connection, token, platform_name, link_key)
        await refuse_outdated_token(connection, worker_token)
    return worker_token


@router.get(WITHDRAW_PATH)
async def show_withdrawal_page(
    request: Request, database: Database, platform_name: str, link_key: str, now: Now
) -> HTMLResponse:
    token = request.query_params.get("t", "")
    worker_token = await read_current_token_or_refuse(request, platform_name, link_key, token)
    return await render_withdrawal_page(request, database, worker_token, now=now)


@router.post(WITHDRAW_PATH, dependencies=[Depends(read_whole_body)])
async def submit_withdrawal_or_its_undoing(
    request: Request, database: Database, platform_name: str, link_key: str, now: Now
) -> HTMLResponse:
    """Have the answers removed after a day, or take that back."""
    form = form_text_by_name_refusing_repeats(await request.form())
    worker_token = await read_current_token_or_refuse(request, platform_name, link_key, form.get("token", ""))
    action = WITHDRAWAL_ACTIONS.get(form.get("action", ""))
    if action is None:
        raise Invalid("This form is not complete. Nothing was changed.", code="invalid")
    assignment = worker_token.assignment
    try:
        async with database.begin() as connection:
            campaign = await load_campaign(connection, assignment.campaign_id)
            await action(connection, campaign, assignment.assignment_id, now=now)
    except Conflict as refusal:  # sent twice, or too late: the page says how things are
        return await render_withdrawal_page(request, database, worker_token, now=now, refusal=refusal)
    return await render_withdrawal_page(request, database, worker_token, now=now)


async def render_withdrawal_page(
    request: Request,
    database: Database,
    worker_token: WorkerToken,
    *,
    now: datetime,
    refusal: Refusal | None = None,
) -> HTMLResponse:
    codes: WithdrawalCodes = request.app.state.withdrawal_codes
    assignment = worker_token.assignment
    async with database.begin() as connection:
        campaign: Campaign = await load_campaign(connection, assignment.campaign_id)
        state = await load_withdrawal_state_or_refuse(connection, campaign, assignment.assignment_id)
        code = codes.code_of_annotator(campaign.id, state.annotator_id)
        if state.erasure is None:
            await store_withdrawal_code_hash(connection, campaign.id, state.annotator_id, code)
        way_back = outcome = None
        if state.can_be_undone:
            driver = await driver_of(connection)
            served = await load_assignment_updating_posteriors_or_refuse(
                driver, request.app.state.posterior_cache, AssignmentQuery(assignment)
            )
            reply = await load_reply_after_erasure_or_none(driver, served) or NextHit(served, reason="held")
            outcome = outcome_of_finished_visit_or_none(reply)
            way_back = await load_completion_storing_call_or_none(driver, reply)
    set_request_language(request, campaign)
    platform = platform_with_title(request.path_params["platform_name"], campaign.panel_title)
    token = request.app.state.worker_tokens.issue_or_reuse_token(platform.name, campaign.link_key, assignment)
    context: dict[str, Any] = {
        "campaign": campaign,
        "design": campaign.design,
        "token": token,
        "platform": platform,
        "completion": way_back,
        "outcome": outcome,
        "task_path": f"{platform.entry_path(campaign.link_key)}?t={token}",
        "state": state,
        "hours_left": hours_until(state.erasure.due_at, now) if state.erasure else 0,
        "code": code,
        "refusal": refusal if refusal is not None and refusal.code in SHOWN_REFUSALS else None,
    }
    return render_page(request, "withdraw.html", context)


def hours_until(moment: datetime, now: datetime) -> int:
    """Return the number of hours until a moment, rounded up, at least 0."""
    return max(0, -((now - moment) // timedelta(hours=1)))
