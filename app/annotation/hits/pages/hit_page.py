"""Pages that show an annotator a HIT, their last answer to change it, or why there is no HIT."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from fastapi import Request
from fastapi.responses import HTMLResponse

from app.annotation.hits import completion, gold_feedback, undo, visit_outcome
from app.annotation.hits.assignment import (
    AssignmentQuery,
    AssignmentState,
    load_assignment_updating_posteriors_or_refuse,
)
from app.annotation.hits.leases import find_or_lease_next_hit
from app.annotation.hits.next_hit import NextHit, is_last_hit_as_far_as_known
from app.annotation.hits.no_hit_reasons import NoHitReason
from app.annotation.hits.pages.page_pieces import (
    PagePiecesCache,
    build_page_key,
    can_page_be_made_of_pieces,
    page_values_by_mark_name,
)
from app.annotation.hits.pages.steps import PageState, render_onboarding_step, worker_tokens_of_server
from app.annotation.hits.pages.welcome import visitor_of_request
from app.annotation.hits.withdrawal_code import load_withdrawal_offer_and_store_code_hash_or_none
from app.annotation.platforms.assignments import AssignmentId
from app.annotation.platforms.registry import PLATFORMS, platform_with_title
from app.database.session import Driver, is_database_away
from app.designs.content import RenderedItems
from app.designs.item_names import rename_form_items_to_positions
from app.errors import Conflict, Refusal
from app.http.dependencies import (
    STATUSES_OF_STORED_STATE,
    allow_campaign_sources_and_frames,
    chosen_language_of_request,
    is_script_request,
    render_page,
    render_template,
    require_database_is_current_primary,
    set_request_language,
)
from app.http.templating import markdown_texts_to_safe_html
from app.media.render_items import render_campaign_items

log = logging.getLogger(__name__)

# Seconds after which the page of a waiting annotator polls again, by the reason why there is no HIT.
POLL_SECONDS: dict[NoHitReason | None, int] = {"wait": 10, "crowded": 30, "not_open": 30, "paused": 30}


async def show_next_hit(
    request: Request, connection: Driver, assignment: AssignmentId, page_state: PageState, *, now: datetime
) -> HTMLResponse:
    choose_hit = completion.end_visit_or_find_next_hit if page_state.is_leaving else find_or_lease_next_hit
    next_hit = await choose_hit(
        connection,
        request.app.state.posterior_cache,
        AssignmentQuery(assignment, visitor_of_request(request)),
        now=now,
    )
    return await render_next_page(request, connection, next_hit, page_state)


async def render_next_page(
    request: Request, connection: Driver, next_hit: NextHit, page_state: PageState, *, is_last: bool | None = None
) -> HTMLResponse:
    """Return the page with the next HIT or onboarding step, or the reason why there is none.

    `is_last` is as `is_last_hit_as_far_as_known` returned it, if that was asked before.
    """
    if next_hit.reason == "visit":
        return await render_onboarding_step(request, connection, next_hit.assignment, page_state)
    if next_hit.should_check_goal:
        request.app.state.campaign_monitor.request_scan(next_hit.assignment.campaign_id)
    items, hit = None, next_hit.hit
    if hit is not None:
        items = await render_campaign_items(
            connection, next_hit.assignment, hit.items, hit.texts, hit.source_and_reference
        )
    return await render_next_hit(request, connection, next_hit, page_state, items, is_last=is_last)


async def show_last_answer_to_change_it(
    request: Request,
    connection: Driver,
    assignment: AssignmentId,
    refusal: Refusal | None = None,
    entered_form: Mapping[str, str] | None = None,
    *,
    now: datetime,
) -> HTMLResponse:
    """Show the annotator's last answer so that they can change it; they keep the HIT that they hold."""
    try:
        reopened = await undo.load_last_answer_for_change_or_refuse(connection, assignment, now=now)
    except Conflict as conflict:
        return await show_next_hit(request, connection, assignment, PageState(notice=conflict), now=now)
    assignment_state = await load_assignment_updating_posteriors_or_refuse(
        connection, request.app.state.posterior_cache, AssignmentQuery(assignment)
    )
    items = await render_campaign_items(
        connection, assignment_state, reopened.hit.items, reopened.hit.texts, reopened.hit.source_and_reference
    )
    page_state = PageState(notice=refusal, form=entered_form or reopened.form, replaces=reopened.seq)
    return await render_next_hit(request, connection, NextHit(assignment_state, reopened.hit), page_state, items)


async def render_next_hit(
    request: Request,
    connection: Driver,
    next_hit: NextHit,
    page_state: PageState,
    items: RenderedItems | None = None,
    *,
    is_last: bool | None = None,
) -> HTMLResponse:
    """Return the page with the HIT, or the reason why there is none; for our script, the part that changes."""
    await require_current_primary_if_page_ends_or_refuses(request, connection, next_hit, page_state)
    assignment = next_hit.assignment
    platform = platform_with_title(assignment.platform, assignment.panel_title)
    if next_hit.hit is not None:
        page_state = replace(page_state, form=rename_form_items_to_positions(page_state.form, next_hit.hit.items))
    allow_campaign_sources_and_frames(request, assignment)
    set_request_language(request, assignment)
    (instructions,) = await markdown_texts_to_safe_html(assignment.instructions, mark_formulas=assignment.latex)
    if is_last is None:
        is_last = is_last_hit_as_far_as_known(request.app.state.posterior_cache, next_hit)
    token = issue_page_token(request, assignment)
    context = {
        "next_hit": next_hit,
        "rendered": items,
        "campaign": assignment,
        "design": assignment.design,
        "criterion_forms": assignment.shuffled_criteria_for_annotator(assignment.annotator_id),
        "platform": platform,
        "token": token,
        "may_leave": visit_outcome.may_end_visit_after_any_hit(assignment),
        "outcome": visit_outcome.outcome_of_finished_visit_or_none(next_hit),
        "completion": await completion.load_completion_storing_call_or_none(connection, next_hit),
        "instructions": instructions,
        "last": is_last,
        "gold": await gold_feedback.load_gold_feedback_or_none(connection, assignment, page_state.answered_hit_id),
        "shown": page_state,
        "look_again_seconds": POLL_SECONDS.get(next_hit.reason),
        "withdrawal": await load_withdrawal_offer_and_store_code_hash_or_none(
            connection, request.app.state.withdrawal_codes, next_hit, token
        ),
    }
    if is_script_request(request):
        page = render_page(request, "_work.html", context)
        if next_hit.hit is not None and can_page_be_made_of_pieces(next_hit, page_state):
            request.app.state.page_pieces.learn_pieces_of_rendered_page(
                build_page_key(next_hit, page_state, language=chosen_language_of_request(request), is_last=is_last),
                context,
                page_values_by_mark_name(
                    issue_page_token(request, assignment), render_progress_html(request, next_hit), next_hit.hit
                ),
                bytes(page.body).decode(),
                partial(render_template, request, "_work.html"),
            )
        return page
    is_crowded = next_hit.reason == "crowded" and page_state.receipt is None
    headers = {"Retry-After": str(POLL_SECONDS[next_hit.reason])} if is_crowded else None
    return render_page(request, "work.html", context, status=429 if is_crowded else 200, headers=headers)


async def require_current_primary_if_page_ends_or_refuses(
    request: Request, connection: Driver, next_hit: NextHit, page_state: PageState
) -> None:
    """Raise one of `DATABASE_ERRORS` if an outdated database may be why the page ends the visit or refuses something.

    A page that is loaded again by itself need not be right at once, and a stored answer was itself a commit.
    """
    ends_visit = next_hit.hit is None and next_hit.reason not in POLL_SECONDS
    refuses = page_state.notice is not None and page_state.notice.status in STATUSES_OF_STORED_STATE
    if (ends_visit or refuses) and page_state.receipt is None:
        await require_database_is_current_primary(request, connection)


def log_error_and_render_page_of_stored_answer(request: Request, problem: Exception) -> HTMLResponse:
    """Return the page after an answer that is stored, while the next HIT cannot be read; it needs no connection."""
    log.warning(
        "no next HIT after a stored answer: %r", problem, exc_info=None if is_database_away(problem) else problem
    )
    context = {"campaign": None, "criterion_forms": (), "look_again_seconds": POLL_SECONDS["wait"]}
    return render_page(request, "_stored.html" if is_script_request(request) else "stored.html", context)


def page_part_from_pieces_or_none(
    request: Request, next_hit: NextHit, page_state: PageState, *, is_last: bool
) -> HTMLResponse | None:
    """Return the part of the page that changes, if the pieces of pages like it are known; it needs no connection."""
    if next_hit.hit is None or not is_script_request(request) or not can_page_be_made_of_pieces(next_hit, page_state):
        return None
    allow_campaign_sources_and_frames(request, next_hit.assignment)
    set_request_language(request, next_hit.assignment)
    key = build_page_key(next_hit, page_state, language=chosen_language_of_request(request), is_last=is_last)
    page_pieces: PagePiecesCache = request.app.state.page_pieces
    values = page_values_by_mark_name(
        issue_page_token(request, next_hit.assignment), render_progress_html(request, next_hit), next_hit.hit
    )
    page = page_pieces.page_html_or_none(key, values)
    return None if page is None else HTMLResponse(page)


def render_progress_html(request: Request, next_hit: NextHit) -> str:
    """Return the progress of the annotator as HTML."""
    assignment = next_hit.assignment
    context = {"campaign": assignment, "next_hit": next_hit, "platform": PLATFORMS[assignment.platform]}
    return render_template(request, "_progress.html", context)


def issue_page_token(request: Request, assignment: AssignmentState) -> str:
    return worker_tokens_of_server(request).issue_or_reuse_token(
        assignment.platform, assignment.link_key, assignment.key
    )
