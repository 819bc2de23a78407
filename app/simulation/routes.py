"""Rehearsals and plans from a campaign's page."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse

from app.auth.guards import Who, researcher
from app.campaigns import counted, rehearsed
from app.campaigns.routes import address, see_other
from app.database.campaign import campaign_by_slug
from app.errors import Conflict, Invalid
from app.simulation import planned, rehearsals
from app.simulation.annotators import POPULATIONS, Careless, population_of
from app.simulation.rehearsals import MadeUpCrowd, Rehearsals
from app.web import Database, Now, Transaction, page, while_awaited

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


async def crowd_of(
    *,
    annotators: Annotated[int, Form(ge=1, le=100)] = 12,
    noise: Annotated[float, Form(ge=0, le=50, allow_inf_nan=False)] = 10,
    like: Annotated[str, Form(max_length=100)] = "",
    careless: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = 10,
    careless_how: Annotated[Careless, Form()] = "random",
    truth: Annotated[str, Form(max_length=1000)] = "",
) -> MadeUpCrowd:
    """As the form says it: noise in points, the careless ones in percent."""
    return MadeUpCrowd(annotators, population_of(like, noise / 100, careless / 100, careless_how), truth or None)


def crowds_of(request: Request) -> Rehearsals:
    crowds: Rehearsals = request.app.state.rehearsals
    return crowds


@router.post("/rehearse")
async def rehearse(
    request: Request, database: Database, slug: str, crowd: Annotated[MadeUpCrowd, Depends(crowd_of)], now: Now
) -> Response:
    """Begin a rehearsal, or look at the one that there is."""
    crowds = crowds_of(request)
    crowds.refuse_unless_free()
    async with database.begin() as connection:
        campaign, new = await rehearsals.begin(connection, slug, crowd, now=now)
    if new:
        crowds.start(campaign, crowd)
    return see_other(address(campaign.slug))


@router.get("/rehearsed")
async def rehearsed_campaign(connection: Transaction, slug: str) -> Response:
    """From a rehearsal to its campaign."""
    source = await rehearsed.rehearsed(connection, await campaign_by_slug(connection, slug))
    return see_other(address(source.slug))


@router.post("/remove-rehearsal")
async def remove(request: Request, database: Database, slug: str) -> Response:
    """With all of its answers; what follows is its campaign's page."""
    async with database.begin() as connection:
        campaign = await campaign_by_slug(connection, slug)
    await crowds_of(request).end(campaign.id)
    async with database.begin() as connection:
        removed = await rehearsals.remove(connection, slug)
        source = await rehearsed.rehearsed(connection, removed)
    return see_other(address(source.slug, done="rehearsal-removed"))


@router.get("/plan")
async def plan(
    request: Request,
    database: Database,
    slug: str,
    who: Who,
    like: Annotated[str, Query(max_length=200)] = planned.USUAL,
) -> HTMLResponse:
    """What the goal of a campaign will cost. It takes some seconds, in another process."""
    async with database.connect() as connection:
        campaign = await counted.find_counted(connection, slug)
        others = await counted.listed(connection, seen_by=who)
    found, refusal = None, ""
    likes = {name: f"the translations of {name}" for name in POPULATIONS}
    likes |= {other.slug: other.name for other in others if other.status != "draft" and other.slug != slug}
    try:
        of = request.app.state.plans.of(slug, like if like in likes else planned.USUAL)
        found = await while_awaited(request, of)
    except (Conflict, Invalid) as problem:
        refusal = problem.message
    context = {"campaign": campaign, "plan": found, "refusal": refusal, "likes": likes, "like": like}
    return page(request, "admin/plan.html", context)
