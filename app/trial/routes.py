"""The page on which a campaign is tried, and the HITs in its windows."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth.guards import looking, researcher
from app.campaigns import form
from app.campaigns.settings import CampaignSettings
from app.crowd.registry import with_pages
from app.database.campaign import campaign_of_page
from app.designs.answer import Form
from app.designs.criteria import asked_of
from app.designs.numbers import whole_number
from app.designs.registry import design_of
from app.errors import Invalid
from app.templating import markdown_to_html
from app.trial import hit as hits
from app.web import Entered, Now, Transaction, allow_links, fetched, page, speak

router = APIRouter(prefix="/admin", dependencies=[Depends(researcher)], include_in_schema=False)
free = APIRouter(prefix="/admin", dependencies=[Depends(looking)], include_in_schema=False)
CAMPAIGN = "/campaigns/{slug}"
MOST = 1_000_000  # trial HITs of a campaign


Number = Annotated[int, Query(ge=0, le=MOST)]


@router.get(CAMPAIGN + "/try")
async def try_page(request: Request, connection: Transaction, slug: str, number: Number = 0) -> HTMLResponse:
    """What annotators see, to answer without anything being stored."""
    campaign = await campaign_of_page(connection, slug)
    return page(request, "admin/trial.html", {"campaign": campaign, "number": number})


async def entered_settings(request: Request, slug: str) -> CampaignSettings | None:
    """The settings in the address, as the form says them that is being filled in; None where the campaign's count."""
    values = request.query_params
    return form.read_leniently(values) if "design" in values or slug == hits.NEW else None


Unsaved = Annotated[CampaignSettings | None, Depends(entered_settings)]


@free.get(CAMPAIGN + "/try/hit")
async def trial_hit(
    request: Request, connection: Transaction, slug: str, unsaved: Unsaved, number: Number = 0
) -> HTMLResponse:
    """One HIT, for a frame of the page on which a campaign is tried or its settings are chosen."""
    campaign = await hits.tried_campaign(connection, slug, unsaved)
    speak(request, campaign)
    return await trial_page(request, campaign, await hits.trial_hit(connection, campaign, number))


@free.post(CAMPAIGN + "/try/hit")
async def try_hit(
    request: Request, values: Entered, connection: Transaction, *, slug: str, unsaved: Unsaved, now: Now
) -> Response:
    """Checked as an annotator's answer is; the next set, or the same with what is wrong. That a draft was tried is all
    that is kept. The form of settings, sent here by a browser without scripts, is shown as what it makes of a HIT.
    """
    if "design" in values:
        shown = {name: value for name, value in values.items() if value and name != "csrf"}
        return RedirectResponse(f"{request.url.path}?{urlencode(shown)}", status_code=303)
    campaign = await hits.tried_campaign(connection, slug, unsaved)
    speak(request, campaign)
    number = min(whole_number(values.get("hit")) or 0, MOST - 1)
    hit = await hits.trial_hit(connection, campaign, number)
    if "broken" in values:
        return await trial_page(request, campaign, hit, {"reported": True, "form": values})
    try:
        hits.check(campaign, hit, Form(values, "form"))
    except Invalid as refusal:
        if fetched(request):
            raise
        return await trial_page(request, campaign, hit, {"notice": refusal, "form": values})
    if unsaved is None:
        await hits.note_trial(connection, campaign, now=now)
    return await trial_page(request, campaign, await hits.trial_hit(connection, campaign, number + 1))


@free.put(CAMPAIGN + "/try/hit", status_code=204)
async def forget_draft() -> None:
    """Nothing is kept of what is only tried."""


async def trial_page(
    request: Request, campaign: Any, hit: hits.TrialHit, shown: Mapping[str, Any] | None = None
) -> HTMLResponse:
    allow_links(request, campaign)
    here = hits.as_served(campaign, hit)
    (instructions,) = await markdown_to_html(campaign.instructions, latex=campaign.latex)
    context = {
        "campaign": here,
        "asked": asked_of(here, hit.id),
        "design": design_of(campaign),
        "platform": next(platform for platform in with_pages() if platform.starts_here),
        "work": {"hit": hit},
        "drawn": hit.drawn,
        "shown": {"form": {}, "replaces": None, **(shown or {})},
        "token": "",
        "instructions": instructions,
        "last": False,
    }
    return page(request, "_work.html" if fetched(request) else "work.html", context)
