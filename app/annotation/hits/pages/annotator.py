"""Annotators' page at `/link/KEY`, `/prolific/KEY`, `/mturk/KEY`, ....

GET shows the HIT (or why there is none), POST stores an answer and shows the next one, PUT stores a draft. A campaign
has one address per platform for all of this, so framing can be allowed for that address alone, and no cookie is needed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import Field, StringConstraints
from starlette.convertors import StringConvertor, register_url_convertor

from app.annotation.hits import drafts, media_report, undo
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.landing import load_campaign_by_link_or_refuse, load_platform_as_campaign_sets_it_up_or_refuse
from app.annotation.hits.leases import NextHitRequest
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.next_hit import is_last_hit_as_far_as_known
from app.annotation.hits.pages.hit_page import (
    log_error_and_render_page_of_stored_answer,
    page_part_from_pieces_or_none,
    render_next_page,
    show_last_answer_to_change_it,
    show_next_hit,
)
from app.annotation.hits.pages.steps import PageState, worker_tokens_of_server
from app.annotation.hits.pages.welcome import (
    check_passphrase_and_show_welcome,
    render_may_not_take_part_page,
    render_passphrase_refusal_page,
    render_welcome,
    start_visit_and_redirect,
    visitor_of_request,
)
from app.annotation.hits.shown_numbers import load_item_numbers_shown_on_page
from app.annotation.hits.visit_requests import VisitReply, VisitRequest
from app.annotation.onboarding import passphrase, personal_links, visit_progress
from app.annotation.platforms.assignments import (
    AssignmentId,
    WorkerToken,
    find_or_create_assignment,
    has_arrived_before,
    refuse_outdated_token,
)
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import PLATFORMS, platforms_with_pages
from app.database.session import Driver
from app.designs.answer import Form
from app.designs.field_flags import InputModel
from app.designs.item_names import item_number_of_media_report_or_refuse
from app.errors import Conflict, Forbidden, Gone, Invalid, NotFound, Refusal
from app.http.dependencies import (
    MAX_ROW_ID,
    Now,
    ServingConnection,
    borrow_serving_connection,
    form_text_by_name_refusing_repeats,
    is_script_request,
    parse_canonical_row_id_or_none,
)

router = APIRouter(include_in_schema=False)


class PlatformNameConvertor(StringConvertor):
    """Path segment that names a platform with a page. No other address matches, so these routes can come first."""

    regex = "|".join(platform.name for platform in platforms_with_pages())


register_url_convertor("platform", PlatformNameConvertor())
ANNOTATOR_PATH = "/{platform_name:platform}/{link_key}"

FIELDS_OF_OTHER_FORMS = ("step", "finish", "broken", "undo", "replaces")  # of forms without a first answer to a HIT
MAX_DRAFT_CHARACTERS = 20_000  # ten items with their scores, touches and comments need less


# The length limit also makes Pydantic reject text that UTF-8 cannot encode.
ShortText = Annotated[str, StringConstraints(max_length=1000)]


class DraftRequest(InputModel):
    """Values entered so far, by item number: score, first_touch_ms, changes, input_kind."""

    token: ShortText
    hit: Annotated[int, Field(ge=0, le=MAX_ROW_ID)]
    entries: dict[ShortText, dict[ShortText, Annotated[float, Field(allow_inf_nan=False)] | ShortText | None]]


def parse_hit_id_or_refuse(form_value: str | None) -> int:
    """Return the id of the HIT that a form answers.

    Raises:
        Invalid: `hit_missing`.
        NotFound: `hit_not_found`, if the text cannot be the id of a HIT.

    """
    if not form_value:
        raise Invalid("This answer does not say which HIT it belongs to. Nothing was stored.", code="hit_missing")
    if (hit_id := parse_canonical_row_id_or_none(form_value)) is None:
        raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
    return hit_id


async def read_worker_token_or_refuse(
    request: Request, connection: Driver, token: str, platform: str, link_key: str
) -> WorkerToken:
    """Return the content of a token, which may be older than its assignment: then statements find nothing for it.

    Raises:
        Gone: `token_expired`.
        Invalid: `token_invalid`.

    """
    worker_token = worker_tokens_of_server(request).read_token_or_refuse(token, platform, link_key)
    if worker_token.assignment.arrived_at is None:  # an earlier version issued it, so `ARRIVED_THEN` cannot check it
        await refuse_outdated_token(connection, worker_token)
    return worker_token


async def refuse_outdated_token_of_earlier_version(request: Request, token: WorkerToken) -> None:
    """Check a token that an earlier version of Easel issued, which `ARRIVED_THEN` cannot. Raises `token_expired`."""
    if token.assignment.arrived_at is None:
        async with borrow_serving_connection(request) as connection:
            await refuse_outdated_token(connection, token)


@router.get(ANNOTATOR_PATH)
async def show_annotator_page(request: Request, platform_name: str, link_key: str, now: Now) -> HTMLResponse:
    """Show the HIT of the arriving annotator, or a welcome or preview, which stores nothing, if none is known yet."""
    platform = PLATFORMS[platform_name]
    if token := request.query_params.get("t"):
        return await show_page_of_token(request, token, platform, link_key, now=now)
    async with borrow_serving_connection(request) as connection:
        arrived = await find_or_create_assignment_of_arrival_or_render_page(
            request, platform, link_key, connection, now=now
        )
    if isinstance(arrived, HTMLResponse):
        return arrived
    return await wait_for_next_hit_and_show_it(request, arrived, now=now)


async def show_page_of_token(
    request: Request, token: str, platform: Platform, link_key: str, *, now: datetime
) -> HTMLResponse:
    """Show the HIT of the annotator whose page has this token.

    The token is compared with the assignment only after a refusal: the statements of a HIT find nothing for an old one
    (`ARRIVED_THEN`).

    Raises:
        Gone: `token_expired`.
        Invalid: `token_invalid`.

    """
    worker_token = worker_tokens_of_server(request).read_token_or_refuse(token, platform.name, link_key)
    try:
        await refuse_outdated_token_of_earlier_version(request, worker_token)
        return await wait_for_next_hit_and_show_it(request, worker_token.assignment, now=now)
    except Refusal:
        async with borrow_serving_connection(request) as connection:
            await refuse_outdated_token(connection, worker_token)
        raise


async def find_or_create_assignment_of_arrival_or_render_page(
    request: Request, platform: Platform, link_key: str, connection: Driver, *, now: datetime
) -> AssignmentId | HTMLResponse:
    """Return the assignment of the arriving annotator, or the page that comes before it or refuses it."""
    platform = await load_platform_as_campaign_sets_it_up_or_refuse(connection, platform, link_key)
    arrival = platform.parse_arrival_or_none(request.query_params.multi_items(), request.app.state.settings)
    if arrival is None and platform.has_start_button:
        return await check_passphrase_and_show_welcome(request, platform, link_key, connection, now=now)
    campaign = await load_campaign_by_link_or_refuse(connection, link_key)
    is_closed = not (platform.has_personal_links or platform.has_start_button or campaign.platforms_open)
    if is_closed and not (arrival and await has_arrived_before(connection, campaign.id, platform.name, arrival)):
        error = passphrase.link_closed_error()
        return await render_passphrase_refusal_page(request, platform, campaign, connection, error)
    if arrival is None:
        return await render_welcome(request, platform, campaign, connection)
    if platform.has_personal_links:
        arrival = await personal_links.load_arrival_with_person_number_or_refuse(connection, campaign.id, arrival)
    try:
        return await find_or_create_assignment(
            connection, campaign.id, platform.name, arrival, now=now, visitor=visitor_of_request(request)
        )
    except Forbidden as refusal:
        return await render_may_not_take_part_page(
            request, platform, campaign, connection, refusal, arrival_details=arrival.details
        )


async def wait_for_next_hit_and_show_it(request: Request, assignment: AssignmentId, *, now: datetime) -> HTMLResponse:
    """Show the HIT of an annotator whose page is opened. People who come at the same time are served together."""
    wanted = NextHitRequest(AssignmentQuery(assignment, visitor_of_request(request)), now)
    reply: VisitReply = await request.app.state.page_requests.submit_and_await_reply(
        assignment.campaign_id, VisitRequest(next_hit=wanted)
    )
    async with borrow_serving_connection(request) as connection:
        return await render_next_page(request, connection, reply.next_hit_or_raise_refusal(), PageState())


async def post_annotator_form(request: Request) -> Response:
    """Start a visit, or store what the annotator sent and show the next HIT.

    Most requests come here, so it is a route of Starlette, without the work of FastAPI's dependencies.
    """
    platform, link_key = PLATFORMS[request.path_params["platform_name"]], request.path_params["link_key"]
    form = form_text_by_name_refusing_repeats(await request.form())
    now: datetime = request.app.state.utc_now()  # after the form has arrived
    if platform.has_start_button and "token" not in form:
        async with borrow_serving_connection(request) as connection:
            return await start_visit_and_redirect(request, platform, link_key, connection, form, now=now)
    token = worker_tokens_of_server(request).read_token_or_refuse(form.get("token", ""), platform.name, link_key)
    try:
        await refuse_outdated_token_of_earlier_version(request, token)
        if form.keys().isdisjoint(FIELDS_OF_OTHER_FORMS):
            return await store_answer_and_show_next_hit(request, token, form, now=now)
        async with borrow_serving_connection(request) as connection:
            return await store_form_and_show_next_page(request, connection, token, form, now=now)
    except Refusal:
        async with borrow_serving_connection(request) as connection:
            await refuse_outdated_token(connection, token)
        raise


async def store_answer_and_show_next_hit(
    request: Request, token: WorkerToken, form: Mapping[str, str], *, now: datetime
) -> HTMLResponse:
    """Store the first answer to a HIT and show the next HIT, or show the refusal with the values that were entered.

    Raises:
        Refusal: The answer is not stored, and a script shows why on the page that sent it.

    """
    state, assignment, is_script = request.app.state, token.assignment, is_script_request(request)
    answer: SubmittedAnswer | None = None
    refusal: Refusal | None = None
    try:
        answer = SubmittedAnswer(
            assignment,
            parse_hit_id_or_refuse(form.get("hit")),
            annotator_form_marked_as_script_or_plain(request, form),
            now,
        )
    except Invalid as problem:
        if is_script:
            raise
        refusal = problem
    wanted = NextHitRequest(AssignmentQuery(assignment, visitor_of_request(request)), now)
    visit_request = VisitRequest(answer, wanted, shows_invalid_answer=is_script)
    reply: VisitReply = await state.visit_requests.submit_and_await_reply(assignment.campaign_id, visit_request)
    if reply.receipt is not None:
        state.campaign_monitor.request_scan(assignment.campaign_id)
    if reply.problem is not None:
        return log_error_and_render_page_of_stored_answer(request, reply.problem)
    next_hit, refusal = reply.next_hit_or_raise_refusal(), refusal or reply.refusal
    page_state = PageState(notice=refusal, form=form if isinstance(refusal, Invalid) else {})
    if reply.receipt is not None:
        page_state = PageState(receipt=reply.receipt, answered_hit_id=reply.receipt.hit_id)
    is_last = is_last_hit_as_far_as_known(state.posterior_cache, next_hit)
    if (page := page_part_from_pieces_or_none(request, next_hit, page_state, is_last=is_last)) is not None:
        return page
    async with borrow_serving_connection(request) as connection:
        return await render_next_page(request, connection, next_hit, page_state, is_last=is_last)


def annotator_form_marked_as_script_or_plain(request: Request, form: Mapping[str, str]) -> Form:
    return Form(form, source="page" if is_script_request(request) else "form")


async def store_form_and_show_next_page(
    request: Request, connection: Driver, token: WorkerToken, form: Mapping[str, str], *, now: datetime
) -> Response:
    """Store what an annotator sent besides a first answer, and show the next page."""
    assignment = token.assignment
    if "step" in form:
        return await store_step_result_and_redirect(request, connection, assignment, form, now=now)
    if "finish" in form:
        return await show_next_hit(request, connection, assignment, PageState(is_leaving=True), now=now)
    if "broken" in form:
        return await store_media_report_and_show_hit(request, connection, token, form, now=now)
    if "undo" in form:
        return await show_last_answer_to_change_it(request, connection, assignment, now=now)
    return await replace_answer_and_show_next_hit(request, connection, assignment, form, now=now)


async def replace_answer_and_show_next_hit(
    request: Request, connection: Driver, assignment: AssignmentId, form: Mapping[str, str], *, now: datetime
) -> HTMLResponse:
    """Store the changed answer and show the HIT that the annotator holds, or the refusal with the values entered."""
    try:
        hit_id, replaced_seq = parse_hit_id_or_refuse(form.get("hit")), parse_hit_id_or_refuse(form["replaces"])
        receipt = await undo.replace_answer_and_return_receipt_or_refuse(
            connection,
            assignment,
            hit_id,
            replaced_seq,
            annotator_form_marked_as_script_or_plain(request, form),
            now=now,
        )
    except (Gone, Conflict) as refusal:
        page_state = PageState(notice=refusal)
    except Invalid as refusal:
        if is_script_request(request):
            raise
        return await show_last_answer_to_change_it(request, connection, assignment, refusal, form, now=now)
    else:
        request.app.state.campaign_monitor.request_scan(assignment.campaign_id)
        page_state = PageState(receipt=receipt)
    return await show_next_hit(request, connection, assignment, page_state, now=now)


async def store_media_report_and_show_hit(
    request: Request, connection: Driver, token: WorkerToken, form: Mapping[str, str], *, now: datetime
) -> Response:
    """Store a report of media that do not load, and show the same HIT with the values entered so far."""
    assignment, hit = token.assignment, parse_hit_id_or_refuse(form.get("hit"))
    try:
        item = item_number_of_media_report_or_refuse(
            form, await load_item_numbers_shown_on_page(connection, assignment, hit)
        )
    except Invalid as refusal:
        await refuse_outdated_token(connection, token)
        if is_script_request(request):
            raise
        return await show_next_hit(request, connection, assignment, PageState(notice=refusal, form=form), now=now)
    await media_report.store_media_report(connection, assignment, hit, item, now=now)
    if is_script_request(request):
        return Response(status_code=204)
    return await show_next_hit(request, connection, assignment, PageState(reported=True, form=form), now=now)


async def store_step_result_and_redirect(
    request: Request, connection: Driver, assignment: AssignmentId, form: Mapping[str, str], *, now: datetime
) -> Response:
    """Store the result of an onboarding step and redirect, so that a reload shows the next page and sends nothing."""
    try:
        await visit_progress.store_result_of_open_step(
            connection, await visit_progress.load_visit_or_refuse(connection, assignment), form["step"], form, now=now
        )
    except Invalid as refusal:
        if is_script_request(request):
            raise
        return await show_next_hit(request, connection, assignment, PageState(notice=refusal, form=form), now=now)
    if is_script_request(request):
        return await show_next_hit(request, connection, assignment, PageState(), now=now)
    query = request.url.query or urlencode({"t": form["token"]})
    return RedirectResponse(f"{request.url.path}?{query}", status_code=303)


@router.put(ANNOTATOR_PATH, status_code=204)
async def store_draft_of_open_hit(
    request: Request,
    platform_name: str,
    link_key: str,
    connection: ServingConnection,
    draft: Annotated[DraftRequest, Body()],
) -> None:
    """Store the values entered so far, so that a reload shows them again."""
    token = await read_worker_token_or_refuse(request, connection, draft.token, platform_name, link_key)
    too_large = len(str(draft.entries)) > MAX_DRAFT_CHARACTERS
    if too_large or not await drafts.try_to_save_draft_of_open_hit(
        connection, token.assignment, draft.hit, draft.entries
    ):
        await refuse_outdated_token(connection, token)
    if too_large:
        raise Invalid("This draft is too large to keep.", code="draft_too_large")
