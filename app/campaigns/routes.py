"""Researchers' pages that set a campaign up and lead it through its life."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from app.auth.guards import researcher
from app.campaigns import form, lifecycle
from app.crowd.platforms import PLATFORMS
from app.errors import NotFound, Refusal
from app.web import Database, Now, Transaction, base_url, page

public = APIRouter(include_in_schema=False)
router = APIRouter(prefix="/admin", dependencies=[Depends(researcher)], include_in_schema=False)

CAMPAIGN = "/campaigns/{slug}"
# action -> the word of the notice, and where one looks next
AFTERWARDS = {
    "launch": ("launched", "/share"),
    "pause": ("paused", ""),
    "resume": ("resumed", ""),
    "finish": ("finished", ""),
}
PROLIFIC_PARAMETERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def address(slug: str, part: str = "", *, done: str = "") -> str:
    """A campaign's page, with the notice of what was just done there."""
    return f"/admin/campaigns/{slug}{part}" + (f"?done={done}" if done else "")


def see_other(url: str) -> Response:
    return RedirectResponse(url, status_code=303)


@public.get("/")
async def home() -> Response:
    return see_other("/admin")


@router.get("")
async def listed(request: Request, connection: Transaction) -> HTMLResponse:
    return page(request, "admin/campaigns.html", {"campaigns": await lifecycle.listed(connection)})


@router.get("/campaigns")
async def listed_by_prefix() -> Response:
    return see_other("/admin")


@router.get("/campaigns/new")
async def new(request: Request) -> HTMLResponse:
    return settings_page(request, form.blank())


def settings_page(
    request: Request, values: Mapping[str, str], errors: Mapping[str, str] | None = None, *, campaign: Any = None
) -> HTMLResponse:
    """The form with what was entered, and beside each field what is wrong with it."""
    context = {"campaign": campaign, "sections": form.sections(values, errors), "errors": errors}
    return page(request, "admin/settings.html", context, status=422 if errors else 200)


async def entered(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


@router.post("/campaigns/new")
async def create(request: Request, connection: Transaction, now: Now) -> Response:
    values = await entered(request)
    try:
        settings = form.read(values)
    except ValidationError as error:
        return settings_page(request, values, form.problems(error))
    campaign = await lifecycle.create(connection, settings, now=now)
    return see_other(address(campaign.slug, "/items", done="created"))


@router.get(CAMPAIGN + "/edit")
async def edit_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    """The form while the campaign is a draft; afterwards the same settings to read."""
    campaign = await lifecycle.find(connection, slug)
    return settings_page(request, form.filled(lifecycle.settings_of(campaign)), campaign=campaign)


@router.post(CAMPAIGN + "/edit")
async def edit(request: Request, connection: Transaction, slug: str) -> Response:
    values = await entered(request)
    try:
        settings = form.read(values)
    except ValidationError as error:
        campaign = await lifecycle.find(connection, slug)
        return settings_page(request, values, form.problems(error), campaign=campaign)
    await lifecycle.edit(connection, slug, settings)
    return see_other(address(slug, "/edit", done="saved"))


@router.get(CAMPAIGN + "/share")
async def share(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    campaign = await lifecycle.find(connection, slug)
    links = {name: f"{base_url(request)}/{name}/{campaign.link_key}" for name, platform in PLATFORMS.items() if platform.has_page}
    links["prolific"] += "?" + PROLIFIC_PARAMETERS
    return page(request, "admin/share.html", {"campaign": campaign, "links": links})


@router.get(CAMPAIGN + "/export")
async def export(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return page(request, "admin/export.html", {"campaign": await lifecycle.find(connection, slug)})


@router.get(CAMPAIGN + "/{action}/confirm")
async def confirm(request: Request, connection: Transaction, slug: str, action: str) -> HTMLResponse:
    """Asked before what cannot be taken back."""
    if action not in ("finish", "delete"):
        raise NotFound("There is no such page.")
    return action_page(request, await lifecycle.find(connection, slug), action)


def action_page(request: Request, campaign: Any, action: str, refusal: Refusal | None = None) -> HTMLResponse:
    context = {"campaign": campaign, "action": action, "refusal": refusal}
    return page(request, "admin/action.html", context, status=refusal.status if refusal else 200)


@router.post(CAMPAIGN + "/delete")
async def delete(request: Request, connection: Transaction, slug: str) -> Response:
    try:
        await lifecycle.remove(connection, slug)
    except Refusal as refusal:
        return action_page(request, await lifecycle.find(connection, slug), "delete", refusal)
    return see_other("/admin?done=deleted")


@router.post(CAMPAIGN + "/{action}")
async def transition(request: Request, database: Database, slug: str, action: str, now: Now) -> Response:
    """Launch, pause, resume, finish."""
    try:
        async with database.begin() as connection:
            await lifecycle.transition(connection, slug, action, now=now)
    except Refusal as refusal:
        # The refused transaction is rolled back: half a launch must not stay.
        async with database.begin() as connection:
            return action_page(request, await lifecycle.find(connection, slug), action, refusal)
    done, part = AFTERWARDS[action]
    return see_other(address(slug, part, done=done))
