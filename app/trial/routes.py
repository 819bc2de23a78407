"""The page on which a campaign is tried, and the HITs in its windows."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from app.auth.guards import looking, researcher
from app.crowd.registry import with_pages
from app.database.campaign import campaign_of_page
from app.designs.answer import Form
from app.designs.numbers import whole_number
from app.designs.registry import design_of
from app.errors import Invalid
from app.trial import hit as hits
from app.web import Entered, Transaction, allow_links, fetched, page, sanitised

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


@free.get(CAMPAIGN + "/try/hit")
async def trial_hit(request: Request, connection: Transaction, slug: str, number: Number = 0) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    return trial_page(request, campaign, await hits.trial_hit(connection, campaign, number))


@free.post(CAMPAIGN + "/try/hit")
async def try_hit(request: Request, values: Entered, connection: Transaction, slug: str) -> HTMLResponse:
    """Checked as an annotator's answer is; the next set, or the same with what is wrong."""
    campaign = await campaign_of_page(connection, slug)
    number = min(whole_number(values.get("hit")) or 0, MOST - 1)
    hit = await hits.trial_hit(connection, campaign, number)
    if "broken" in values:
        return trial_page(request, campaign, hit, {"reported": True, "form": values})
    try:
        hits.check(campaign, hit, Form(values, "form"))
    except Invalid as refusal:
        if fetched(request):
            raise
        return trial_page(request, campaign, hit, {"notice": refusal, "form": values})
    return trial_page(request, campaign, await hits.trial_hit(connection, campaign, number + 1))


@free.put(CAMPAIGN + "/try/hit", status_code=204)
async def forget_draft() -> None:
    """Nothing is kept of what is only tried."""


def trial_page(
    request: Request, campaign: Any, hit: hits.TrialHit, shown: Mapping[str, Any] | None = None
) -> HTMLResponse:
    allow_links(request, campaign)
    context = {
        "campaign": hits.as_served(campaign, hit),
        "design": design_of(campaign),
        "platform": next(platform for platform in with_pages() if platform.starts_here),
        "work": {"hit": hit},
        "drawn": hit.drawn,
        "shown": {"form": {}, **(shown or {})},
        "token": "",
        "instructions": sanitised(campaign.instructions),
        "last": False,
    }
    return page(request, "_work.html" if fetched(request) else "work.html", context)
