"""The annotator's address: `/link/KEY`, `/prolific/KEY`, `/mturk/KEY`.

GET shows the HIT (or why there is none), POST takes an answer and shows the next one, PUT keeps a draft. One address
per campaign and platform does it all, so framing can be allowed on one address alone, and no cookie is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import Field, StringConstraints
from starlette.convertors import StringConvertor, register_url_convertor

from app.crowd.annotators import (
    AssignmentId,
    WorkerToken,
    WorkerTokens,
    arrive,
    check_arrival,
    is_known,
    refuse_old_token,
)
from app.crowd.doors import Doors, Visitor
from app.crowd.platform import Platform
from app.crowd.registry import PLATFORMS, with_pages
from app.database.session import Driver
from app.designs.answer import Form
from app.designs.content import Above, DrawnItems
from app.designs.criteria import asked_of
from app.designs.item_names import form_by_position, item_by_name
from app.designs.registry import design_of
from app.errors import Conflict, Gone, Invalid, NotFound, Refusal
from app.fields import LARGEST_ID, InputModel, plain_id
from app.media.shown import drawn
from app.serving import broken, drafts, ending, gold, leases, submission, undo
from app.serving.entrance import campaign_by_link, sample
from app.serving.shown_numbers import shown_numbers
from app.serving.standing import ServedCampaign, Standing, by_id, standing
from app.templating import CHOSEN, markdown_to_html
from app.visit import passphrase, people, progress, start_form
from app.visit.steps import STEPS
from app.web import (
    Now,
    ServingConnection,
    address_of,
    allow_links,
    fetched,
    page,
    retry_after,
    speak,
    texts_in,
)

router = APIRouter(include_in_schema=False)


class NameOfPlatform(StringConvertor):
    """Part of an address: a platform that has a page. So no other address looks like these, and they can come first."""

    regex = "|".join(platform.name for platform in with_pages())


register_url_convertor("platform", NameOfPlatform())
ADDRESS = "/{platform_name:platform}/{link_key}"

# After which the page of someone who waits looks again, by the reason why there is no HIT.
LOOK_AGAIN_SECONDS: dict[leases.Reason | None, int] = {"wait": 10, "crowded": 30, "not_open": 30, "paused": 30}
LARGEST_DRAFT = 20_000  # characters; ten items with their scores, touches and comments need less


@dataclass(frozen=True)
class Shown:
    """What a page says besides the work: the receipt of an answer, or why it was refused, or that something that does
    not load was reported, and what was entered. replaces: the number of the answer that is being changed. of_hit: the
    one whose gold items may be told of. leaving: they said that they are done.
    """

    receipt: submission.Receipt | None = None
    notice: Refusal | None = None
    reported: bool = False
    form: Mapping[str, str] = field(default_factory=dict)
    replaces: int | None = None
    of_hit: int | None = None
    leaving: bool = False


# A length also makes Pydantic look whether a text is one that UTF-8 can say.
Short = Annotated[str, StringConstraints(max_length=1000)]


class Draft(InputModel):
    """What was entered so far, by item number: score, first_touch_ms, changes, input_kind."""

    token: Short
    hit: Annotated[int, Field(ge=0, le=LARGEST_ID)]
    entries: dict[Short, dict[Short, Annotated[float, Field(allow_inf_nan=False)] | Short | None]]


def whole_id(raw: str | None) -> int:
    """The HIT a form answers. Raises `Invalid` (`hit_missing`), and `NotFound` (`hit_not_found`) for what no HIT's id
    looks like.
    """
    if not raw:
        raise Invalid("This answer does not say which HIT it belongs to. Nothing was stored.", code="hit_missing")
    if (hit_id := plain_id(raw)) is None:
        raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
    return hit_id


def tokens(request: Request) -> WorkerTokens:
    worker_tokens: WorkerTokens = request.app.state.worker_tokens
    return worker_tokens


async def read_token(request: Request, connection: Driver, token: str, platform: str, link_key: str) -> WorkerToken:
    """Return the content of a token. Whether it is older than its assignment is for `refuse_old_token` to check.

    Raises what `WorkerTokens.read` raises, and `Gone` (`token_expired`).
    """
    worker_token = tokens(request).read(token, platform, link_key)
    if worker_token.assignment.arrived_at is None:  # an earlier version issued it, and `ARRIVED_THEN` cannot tell
        await check_arrival(connection, worker_token)
    return worker_token


def visitor(request: Request) -> Visitor:
    doors: Doors = request.app.state.doors
    return doors.visitor(address_of(request))


@router.get(ADDRESS)
async def show(
    request: Request, platform_name: str, link_key: str, connection: ServingConnection, now: Now
) -> HTMLResponse:
    """The HIT of whoever arrives; a welcome or a preview, which lease and store nothing, when that is not known yet."""
    platform = PLATFORMS[platform_name]
    if token := request.query_params.get("t"):
        worker_token = await read_token(request, connection, token, platform.name, link_key)
        reply = show_work(request, connection, worker_token.assignment, Shown(), now=now)
        return await refuse_old_token(connection, worker_token, reply)
    arrival = platform.arrival(request.query_params.multi_items(), request.app.state.settings)
    if arrival is None and platform.starts_here:
        return await show_door(request, platform, link_key, connection, now=now)
    campaign = await campaign_by_link(connection, link_key)
    closed = not (platform.by_list or platform.starts_here or campaign.platforms_open)
    if closed and not (arrival and await is_known(connection, campaign.id, platform.name, arrival)):
        return kept_out(request, platform, campaign, passphrase.link_closed(), None)
    if arrival is None:
        return await welcome_page(request, platform, campaign, connection)
    if platform.by_list:
        arrival = await people.known(connection, campaign.id, arrival)
    assignment = await arrive(connection, campaign.id, platform.name, arrival, now=now, visitor=visitor(request))
    return await show_work(request, connection, assignment, Shown(), now=now)


@router.post(ADDRESS)
async def post(
    request: Request, platform_name: str, link_key: str, connection: ServingConnection, now: Now
) -> Response:
    """A visitor starts, an annotator answers and the reply shows the next HIT, or they say they are done."""
    platform = PLATFORMS[platform_name]
    form = texts_in(await request.form())
    if platform.starts_here and "token" not in form:
        return await start(request, platform, link_key, connection, form, now=now)
    token = await read_token(request, connection, form.get("token", ""), platform.name, link_key)
    return await refuse_old_token(connection, token, take_form(request, connection, token, form, now=now))


async def take_form(
    request: Request, connection: Driver, token: WorkerToken, form: Mapping[str, str], *, now: datetime
) -> Response:
    """Store what an annotator sent, and show what is next. For an old token nothing is stored."""
    assignment = token.assignment
    if "step" in form:
        return await take_step(request, connection, assignment, form, now=now)
    if "finish" in form:
        return await show_work(request, connection, assignment, Shown(leaving=True), now=now)
    if "broken" in form:
        return await report(request, connection, token, form, now=now)
    if "undo" in form:
        return await show_again(request, connection, assignment, now=now)
    return await take_answer(request, connection, assignment, form, now=now)


async def take_answer(
    request: Request, connection: Driver, assignment: AssignmentId, form: Mapping[str, str], *, now: datetime
) -> HTMLResponse:
    """Store what was entered, and show what is next."""
    try:
        receipt = await answer(request, connection, assignment, form, now=now)
        shown = Shown(receipt=receipt, of_hit=None if "replaces" in form else receipt.hit_id)
    except (Gone, Conflict) as refusal:
        shown = Shown(notice=refusal)
    except Invalid as refusal:
        if fetched(request):
            raise
        if "replaces" in form:
            return await show_again(request, connection, assignment, refusal, form, now=now)
        shown = Shown(notice=refusal, form=form)
    return await show_work(request, connection, assignment, shown, now=now)


async def report(
    request: Request, connection: Driver, token: WorkerToken, form: Mapping[str, str], *, now: datetime
) -> Response:
    """Note that an annotator cannot open what an item shows; they go on with what they entered."""
    assignment, hit = token.assignment, whole_id(form.get("hit"))
    item = item_by_name(form["broken"], await shown_numbers(connection, assignment, hit))
    if item is not None:
        await broken.report(connection, assignment, hit, item, now=now)
    else:
        await check_arrival(connection, token)
    if fetched(request):
        return Response(status_code=204)
    return await show_work(request, connection, assignment, Shown(reported=True, form=form), now=now)


async def show_door(
    request: Request,
    platform: Platform,
    link_key: str,
    connection: Driver,
    said: str | None = None,
    *,
    now: datetime,
) -> HTMLResponse:
    """The welcome for somebody who is nobody yet, or what keeps them from it. said: a passphrase."""
    door = await progress.door(connection, link_key)
    try:
        await passphrase.let_in(connection, door, said, visitor(request), now=now)
    except Refusal as refusal:
        return kept_out(request, platform, await campaign_by_link(connection, link_key), refusal, said)
    campaign = await campaign_by_link(connection, link_key)
    return await welcome_page(request, platform, campaign, connection, passphrase=said)


def kept_out(
    request: Request, platform: Platform, campaign: ServedCampaign, refusal: Refusal, said: str | None
) -> HTMLResponse:
    """The page that asks for the passphrase, or says that the link is closed. Who has begun is offered to go on."""
    speak(request, campaign)
    context = {"campaign": campaign, "platform": platform, "refusal": refusal}
    context |= {"token_hours": request.app.state.settings.worker_token_hours, "said": said or ""}
    status = 200 if refusal.code == "passphrase_missing" else refusal.status
    return page(request, "door.html", context, status=status, headers=retry_after(refusal))


async def welcome_page(
    request: Request, platform: Platform, campaign: ServedCampaign, connection: Driver, **more: str | None
) -> HTMLResponse:
    """What it is, for who is nobody yet; a preview, where people come from a platform."""
    items = await sample(connection, campaign)
    allow_links(request, campaign)
    speak(request, campaign)
    (instructions,) = await markdown_to_html(campaign.instructions, latex=campaign.latex)
    context = {
        "campaign": campaign,
        "design": design_of(campaign),
        "asked": asked_of(campaign, 0),
        "platform": platform,
        "drawn": items,
        "token_hours": request.app.state.settings.worker_token_hours,
        "instructions": instructions,
        "start_token": start_form.new_token(),
    }
    return page(request, "welcome.html", context | more)


async def start(
    request: Request,
    platform: Platform,
    link_key: str,
    connection: Driver,
    form: Mapping[str, str],
    *,
    now: datetime,
) -> Response:
    """Make a visitor an annotator, whose personal address then survives a reload and a bookmark. Who has said the
    passphrase alone is welcomed first.
    """
    said = form.get("passphrase")
    if "enter" in form:
        return await show_door(request, platform, link_key, connection, said, now=now)
    campaign = await progress.door(connection, link_key)
    try:
        await passphrase.let_in(connection, campaign, said, visitor(request), now=now)
    except Refusal as refusal:
        return kept_out(request, platform, await campaign_by_link(connection, link_key), refusal, said)
    token, admitted = form.get(start_form.FIELD), progress.admitted_at_once(campaign, platform)
    assignment = await start_form.begin_visit(
        connection, campaign.id, platform.name, token, now=now, visitor=visitor(request), admitted=admitted
    )
    query = {"t": tokens(request).issue(platform.name, link_key, assignment)}
    if chosen := request.query_params.get(CHOSEN):
        query[CHOSEN] = chosen
    return RedirectResponse(f"{platform.address(link_key)}?{urlencode(query)}", status_code=303)


async def take_step(
    request: Request, connection: Driver, assignment: AssignmentId, form: Mapping[str, str], *, now: datetime
) -> Response:
    """What somebody did before the work; then their address shows what is next, also after a reload."""
    try:
        await progress.take(connection, await progress.find(connection, assignment), form["step"], form, now=now)
    except Invalid as refusal:
        if fetched(request):
            raise
        return await show_work(request, connection, assignment, Shown(notice=refusal, form=form), now=now)
    if fetched(request):
        return await show_work(request, connection, assignment, Shown(), now=now)
    query = request.url.query or urlencode({"t": form["token"]})
    return RedirectResponse(f"{request.url.path}?{query}", status_code=303)


async def answer(
    request: Request, connection: Driver, assignment: AssignmentId, form: Mapping[str, str], *, now: datetime
) -> submission.Receipt:
    """Store what the form holds; committed when this returns."""
    sent, hit = Form(form, source="page" if fetched(request) else "form"), whole_id(form.get("hit"))
    if "replaces" in form:
        receipt = await undo.replace(connection, assignment, hit, whole_id(form["replaces"]), sent, now=now)
    else:
        receipt = await submission.submit(connection, assignment, hit, sent, now=now)
    request.app.state.looks.ask(assignment.campaign)
    return receipt


@router.put(ADDRESS, status_code=204)
async def keep_draft(
    request: Request, platform_name: str, link_key: str, connection: ServingConnection, draft: Annotated[Draft, Body()]
) -> None:
    """Keep what was entered so far, so that a reload shows it again."""
    token = await read_token(request, connection, draft.token, platform_name, link_key)
    too_large = len(str(draft.entries)) > LARGEST_DRAFT
    if too_large or not await drafts.save_draft(connection, token.assignment, draft.hit, draft.entries):
        await check_arrival(connection, token)
    if too_large:
        raise Invalid("This draft is too large to keep.", code="draft_too_large")


async def show_work(
    request: Request, connection: Driver, assignment: AssignmentId, shown: Shown, *, now: datetime
) -> HTMLResponse:
    ask = ending.stop if shown.leaving else leases.next_hit
    work = await ask(connection, request.app.state.posterior_cache, by_id(assignment, visitor(request)), now=now)
    if work.reason == "visit":
        return await step_page(request, connection, work.assignment, shown)
    if work.wants_a_look:
        request.app.state.looks.ask(work.assignment.id)
    items, hit = None, work.hit
    if hit is not None:
        items = await drawn(connection, work.assignment, hit.items, hit.texts, hit.above)
    return await work_page(request, connection, work, shown, items)


async def show_again(
    request: Request,
    connection: Driver,
    assignment: AssignmentId,
    refusal: Refusal | None = None,
    entered: Mapping[str, str] | None = None,
    *,
    now: datetime,
) -> HTMLResponse:
    """What somebody answered last, to be changed; the HIT that they hold stays theirs."""
    try:
        last = await undo.reopen(connection, assignment, now=now)
    except Conflict as final:
        return await show_work(request, connection, assignment, Shown(notice=final), now=now)
    here = await standing(connection, request.app.state.posterior_cache, by_id(assignment))
    items = await drawn(connection, here, last.hit.items, last.hit.texts, last.hit.above)
    shown = Shown(notice=refusal, form=entered or last.form, replaces=last.seq)
    return await work_page(request, connection, leases.Work(here, last.hit), shown, items)


async def step_page(request: Request, connection: Driver, campaign: Standing, shown: Shown) -> HTMLResponse:
    """The step that somebody is to pass before the work. campaign: where they stand in it."""
    platform = PLATFORMS[campaign.platform]
    assignment = AssignmentId(campaign.id, campaign.assignment_id, campaign.arrived_at)
    here = await progress.find(connection, assignment)
    step = here.step or STEPS[0]  # passed in another tab by now: what is sent then is not needed
    allow_links(request, campaign)
    speak(request, campaign)
    instructions, consent = await markdown_to_html(campaign.instructions, here.settings.consent, latex=campaign.latex)
    context: dict[str, Any] = {
        "step": step.name,
        "campaign": campaign,
        "version": here.visit_version,
        "design": design_of(campaign),
        "asked": asked_of(campaign, campaign.annotator_id),
        "platform": platform,
        "token": tokens(request).issue(platform.name, campaign.link_key, assignment),
        "instructions": instructions,
        "consent": consent,
    }
    context |= step.shown(here.settings, here.facts)
    context["shown"] = replace(shown, form=form_by_position(shown.form, range(len(context.get("texts", ())))))
    outcome = context.get("outcome")
    context["completion"] = await ending.way_back(connection, campaign, outcome) if outcome else None
    explanations = (context.get("told") or {}).get("explanations", ())
    context["explained"] = await markdown_to_html(*explanations, latex=campaign.latex)
    context["drawn"] = await drawn_of(connection, campaign, context.get("texts"))
    return page(request, "_step.html" if fetched(request) else "step.html", context)


async def drawn_of(connection: Driver, campaign: ServedCampaign, texts: Sequence[str] | None) -> DrawnItems:
    """The items that a step shows by their texts, or an example of those of the campaign."""
    if texts is None:
        return await sample(connection, campaign)
    return await drawn(connection, campaign, range(len(texts)), texts, Above())


async def work_page(
    request: Request, connection: Driver, work: leases.Work, shown: Shown, items: DrawnItems | None = None
) -> HTMLResponse:
    """The page (or, for our script, the part of it that changes) with the HIT or the reason why there is none."""
    here = work.assignment
    platform, assignment = PLATFORMS[here.platform], AssignmentId(here.id, here.assignment_id, here.arrived_at)
    if work.hit is not None:
        shown = replace(shown, form=form_by_position(shown.form, work.hit.items))
    allow_links(request, here)
    speak(request, here)
    (instructions,) = await markdown_to_html(here.instructions, latex=here.latex)
    context = {
        "work": work,
        "drawn": items,
        "campaign": here,
        "design": design_of(here),
        "asked": asked_of(here, here.annotator_id),
        "platform": platform,
        "token": tokens(request).issue(platform.name, here.link_key, assignment),
        "may_leave": ending.may_leave(here),
        "outcome": ending.outcome_of(work),
        "completion": await ending.completion(connection, work),
        "instructions": instructions,
        "last": leases.is_last(request.app.state.posterior_cache, work),
        "gold": await gold.told_of_gold(connection, here, shown.of_hit),
        "shown": shown,
        "look_again_seconds": LOOK_AGAIN_SECONDS.get(work.reason),
    }
    if fetched(request):
        return page(request, "_work.html", context)
    busy = work.reason == "crowded" and shown.receipt is None
    headers = {"Retry-After": str(LOOK_AGAIN_SECONDS[work.reason])} if busy else None
    return page(request, "work.html", context, status=429 if busy else 200, headers=headers)
