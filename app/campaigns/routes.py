"""Researchers' pages that set a campaign up and lead it through its life."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address
from os import SEEK_END
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import segno
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from markupsafe import Markup
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.auth.guards import Who, researcher
from app.campaigns import campaign_zip, experiment_arms, form, hints, lifecycle, listing, stored_file
from app.campaigns.items import sentence_on_priors
from app.campaigns.newest_plan import PlanFound
from app.campaigns.questions import question, questions
from app.campaigns.settings import OPEN_AFTER_LAUNCH, CampaignSettings
from app.campaigns.upload_slots import UploadSlots
from app.crowd.registry import platform_links, platforms_with_pages, public_link
from app.designs.numbers import whole_number
from app.designs.registry import DESIGNS
from app.designs.registry import USUAL as USUAL_DESIGN
from app.errors import Conflict, Invalid, NotFound, Refusal
from app.quality.reach import reach_of_rules
from app.quality.registry import RULES
from app.web import AppSettings, Database, Entered, Now, Transaction, base_url, download_headers, page

public = APIRouter(include_in_schema=False)
router = APIRouter(prefix="/admin", dependencies=[Depends(researcher)], include_in_schema=False)

CAMPAIGN = "/campaigns/{slug}"
MOST_JUDGMENTS = 10_000  # of an item
# action -> the word of the notice, and where one looks next
AFTERWARDS = {
    "launch": ("launched", "/share"),
    "pause": ("paused", ""),
    "resume": ("resumed", ""),
    "finish": ("finished", ""),
    "reopen": ("reopened", ""),
    "archive": ("archived", ""),
    "restore": ("restored", ""),
}


def address(slug: str, part: str = "", *, done: str = "") -> str:
    """A campaign's page, with the notice of what was just done there."""
    return f"/admin/campaigns/{slug}{part}" + (f"?done={done}" if done else "")


def see_other(url: str) -> Response:
    return RedirectResponse(url, status_code=303)


def uploaded(form_data: FormData) -> UploadFile:
    """The file of an upload form. Raises `Invalid` (`file_missing`)."""
    file = form_data.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid("Choose a file first. Nothing was imported.", code="file_missing")
    return file


async def get_upload_slots(request: Request) -> UploadSlots:
    slots: UploadSlots = request.app.state.upload_slots
    return slots


Slots = Annotated[UploadSlots, Depends(get_upload_slots)]


@public.get("/")
async def home() -> Response:
    return see_other("/admin")


@router.get("/campaigns")
async def listed_by_prefix() -> Response:
    return see_other("/admin")


@router.get("/campaigns/new/question")
async def choose_question(request: Request) -> HTMLResponse:
    """Where a new campaign begins: with one of the questions that come with Easel, with none, or with a file."""
    return question_page(request)


def question_page(request: Request, refusal: Refusal | None = None) -> HTMLResponse:
    context = {"questions": questions(), "designs": DESIGNS, "refusal": refusal}
    return page(request, "admin/questions.html", context, status=refusal.status if refusal else 200)


@router.post("/campaigns/new/file")
async def create_from_file(
    request: Request, database: Database, settings: AppSettings, slots: Slots, now: Now
) -> Response:
    """A draft from a campaign file, or the page with what is wrong with it."""
    form_data = await request.form()
    try:
        file = uploaded(form_data)
        async with slots.hold(file.file):
            sent = await asyncio.to_thread(campaign_zip.read, file.file, file.filename or "", settings)
            async with database.begin() as connection:
                row = await stored_file.create(
                    connection, sent.read, now=now, max_mb=settings.max_upload_mb, table=sent.table, media=sent.media
                )
    except Refusal as refusal:
        return question_page(request, refusal)
    return see_other(address(row.slug, "/items", done="created"))


Chosen = Annotated[str | None, Query(alias="template", description="A question that comes with Easel.")]


@router.get("/campaigns/new")
async def new(request: Request, chosen: Chosen = None) -> HTMLResponse:
    return settings_page(request, form.filled(question(chosen).settings) if chosen else form.blank(), chosen=chosen)


def settings_page(
    request: Request,
    values: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
    *,
    campaign: Any = None,
    chosen: str | None = None,
) -> HTMLResponse:
    """The form with what was entered, and beside each field what is wrong with it; `chosen` is the question that a new
    campaign began with.
    """
    least = {} if campaign is None or campaign.status == "draft" else form.least_after_launch(campaign)
    sections = form.sections(values, errors, least)
    context = {"campaign": campaign, "sections": sections, "errors": errors, "designs": DESIGNS}
    context |= {"open_after_launch": OPEN_AFTER_LAUNCH, "longest_seen": form.LONGEST_SEEN}
    context |= {"began_with": question(chosen) if chosen else None}
    context |= {"seen": form.seen(sections, values.get("design", USUAL_DESIGN))}
    return page(request, "admin/settings.html", context, status=422 if errors else 200)


@router.post("/campaigns/new")
async def create(
    request: Request, values: Entered, connection: Transaction, now: Now, chosen: Chosen = None
) -> Response:
    try:
        settings = form.read(values)
    except ValidationError as error:
        return settings_page(request, values, form.problems_in_form(error, values), chosen=chosen)
    campaign = await lifecycle.create(connection, settings, now=now)
    return see_other(address(campaign.slug, "/items", done="created"))


@router.get(CAMPAIGN + "/edit")
async def edit_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    """The form while the campaign is a draft; afterwards the same settings to read."""
    campaign = await lifecycle.find_for_page(connection, slug)
    return settings_page(request, form.filled(lifecycle.settings_of(campaign)), campaign=campaign)


@router.post(CAMPAIGN + "/edit")
async def edit(request: Request, values: Entered, database: Database, slug: str) -> Response:
    if wrong := await problems_of_edit(database, slug, values, lambda _: form.read(values)):
        async with database.begin() as connection:
            campaign = await lifecycle.find_for_page(connection, slug)
        return settings_page(request, values, wrong, campaign=campaign)
    return see_other(address(slug, "/edit", done="saved"))


@router.post(CAMPAIGN + "/after-launch")
async def edit_launched(request: Request, values: Entered, database: Database, slug: str) -> Response:
    """Of a launched campaign the settings that are not fixed."""
    if wrong := await problems_of_edit(database, slug, values, lambda before: form.read_over(before, values)):
        async with database.begin() as connection:
            campaign = await lifecycle.find_for_page(connection, slug)
        entered = {name: value for name, value in values.items() if name in OPEN_AFTER_LAUNCH}
        shown = form.filled(lifecycle.settings_of(campaign)) | entered
        return settings_page(request, shown, wrong, campaign=campaign)
    return see_other(address(slug, "/edit", done="saved"))


async def problems_of_edit(
    database: Database,
    slug: str,
    values: Mapping[str, str],
    change: Callable[[CampaignSettings], CampaignSettings],
) -> dict[str, str]:
    """Store changed settings, or return what is wrong with which field; the transaction of a refusal is rolled back.

    Raises the refusals that are about no field.
    """
    try:
        async with database.begin() as connection:
            await lifecycle.edit(connection, slug, change)
    except ValidationError as error:
        return form.problems_in_form(error, values)
    except Conflict as refusal:
        if found := form.refused_field(refusal):
            return found
        raise
    return {}


@router.get(CAMPAIGN + "/share")
async def share(request: Request, connection: Transaction, who: Who, slug: str) -> HTMLResponse:
    """The links of a campaign; of an arm those of its experiment, which have no list of people."""
    campaign = await lifecycle.find_for_page(connection, slug)
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal, which nobody can come to.", code="is_a_rehearsal")
    base = base_url(request)
    arm = await experiment_arms.of_campaign(connection, campaign.id, who)
    place = experiment_arms.where_people_come(base, campaign, arm)
    context = {
        "campaign": campaign,
        "experiment": arm,
        "platforms": [platform for platform in platforms_with_pages() if not (arm and platform.has_personal_links)],
        "links": platform_links(*place),
        "code": qr_code(public_link(*place)),
        "only_here": base if is_loopback(base) else None,
        "made_up_hits": await listing.made_up_hits(connection, campaign.id),
    }
    return page(request, "admin/share.html", context)


def qr_code(link: str) -> Markup:
    """A drawing of a link that phones can read. Its ground is white in either theme: scanners want dark on light."""
    drawn = segno.make_qr(link, error="m").svg_inline(scale=4, border=4, light="#fff", omitsize=True, title="QR code")
    return Markup(drawn)  # noqa: S704  (a drawing of our own making)


def is_loopback(base: str) -> bool:
    """Whether an address leads from any machine to that machine itself."""
    host = urlsplit(base).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


@router.get(CAMPAIGN + "/{action}/confirm")
async def confirm(request: Request, connection: Transaction, slug: str, action: str) -> HTMLResponse:
    """Asked before what cannot be taken back."""
    if action not in ("launch", "finish", "delete"):
        raise NotFound("There is no such page.")
    campaign = await lifecycle.find_for_page(connection, slug)
    if action != "launch":
        return action_page(request, campaign, action)
    reach = await reach_of_rules(connection, campaign.id, campaign, items=campaign.item_count)
    blind = {RULES[name].title: one.never for name, one in reach.items() if one.too_little}
    priors = await sentence_on_priors(connection, campaign.id)
    return action_page(request, campaign, action, {"blind_rules": blind, "priors": priors})


def action_page(
    request: Request,
    campaign: Any,
    action: str,
    warnings: Mapping[str, Any] | None = None,
    refusal: Refusal | None = None,
) -> HTMLResponse:
    context = {"campaign": campaign, "action": action, "refusal": refusal, **(warnings or {})}
    context |= {"platforms": platforms_with_pages(), "open_after_launch": OPEN_AFTER_LAUNCH}
    context |= {"fixed_rule": hints.fixed_rule(campaign), "goal": hints.goal_before_launch(campaign)}
    items, per_item = campaign.item_count, campaign.judgments_per_item
    plan = PlanFound.from_stored(campaign.newest_plan, items=items, per_item=per_item) if action == "launch" else None
    context |= {"advice": hints.advice(campaign), "plan": plan}
    return page(request, "admin/action.html", context, status=refusal.status if refusal else 200)


@router.post(CAMPAIGN + "/judgments-per-item")
async def ask_for_more(values: Entered, connection: Transaction, slug: str) -> Response:
    """Ask for as many judgments of each item as a plan found to be enough, and show the launch page again."""
    wanted = whole_number(values.get("judgments_per_item"), most=MOST_JUDGMENTS)
    if not wanted:
        raise Invalid(f"Say a whole number of judgments, {MOST_JUDGMENTS:,} at most. Nothing was changed.")
    await lifecycle.edit(connection, slug, lambda before: before.model_copy(update={"judgments_per_item": wanted}))
    return see_other(address(slug, "/launch/confirm", done="saved"))


@router.get(CAMPAIGN + "/campaign.{ending}")
async def download_file(
    connection: Transaction, slug: str, ending: Literal["yaml", "zip"], now: Now, *, items: bool = False
) -> Response:
    """The campaign as a file, from which an equal one can be created; a zip with the items and the files they name."""
    filed = await stored_file.filed(connection, slug, with_items=items or ending == "zip")
    return downloaded(filed, slug, now)


def downloaded(filed: stored_file.Filed, slug: str, now: datetime) -> Response:
    """Return a campaign's file as a download."""
    headers = download_headers(slug, "campaign", filed.ending, now=now)
    headers["Content-Length"] = str(filed.file.seek(0, SEEK_END))
    filed.file.seek(0)
    return StreamingResponse(stored_file.pieces_of(filed), media_type=filed.media_type, headers=headers)


@router.post(CAMPAIGN + "/copy")
async def copy(connection: Transaction, who: Who, slug: str, now: Now) -> Response:
    """A draft to change."""
    copied = await lifecycle.copy(connection, slug, now=now, seen_by=who)
    return see_other(address(copied.slug, "/edit", done="copied"))


@router.post(CAMPAIGN + "/delete")
async def delete(request: Request, connection: Transaction, slug: str) -> Response:
    try:
        await lifecycle.remove(connection, slug)
    except Refusal as refusal:
        return action_page(request, await lifecycle.find_for_page(connection, slug), "delete", refusal=refusal)
    return see_other("/admin?done=deleted")


# Each by its name: an address with any word at its end would answer 405 to the reader of a page that does not exist.
@router.post(CAMPAIGN + "/launch")
@router.post(CAMPAIGN + "/pause")
@router.post(CAMPAIGN + "/resume")
@router.post(CAMPAIGN + "/finish")
@router.post(CAMPAIGN + "/reopen")
@router.post(CAMPAIGN + "/archive")
@router.post(CAMPAIGN + "/restore")
async def transition(request: Request, database: Database, slug: str, now: Now) -> Response:
    action = request.url.path.rpartition("/")[2]
    try:
        async with database.begin() as connection:
            await lifecycle.transition(connection, slug, action, now=now)
    except Refusal as refusal:
        # The refused transaction is rolled back: half a launch must not stay.
        async with database.begin() as connection:
            return action_page(request, await lifecycle.find_for_page(connection, slug), action, refusal=refusal)
    done, part = AFTERWARDS[action]
    return see_other(address(slug, part, done=done))
