"""Rehearsals from a campaign's page: begin one, look from it to its campaign, remove it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from app.auth.guards import researcher
from app.campaigns import rehearsed
from app.campaigns.routes import address, see_other
from app.database.campaign import campaign_by_slug
from app.simulation import rehearsals
from app.simulation.rehearsals import MadeUpCrowd, Rehearsals
from app.web import Database, Now, Transaction

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


async def crowd_of(
    *,
    annotators: Annotated[int, Form(ge=1, le=100)] = 12,
    noise: Annotated[float, Form(ge=0, le=50, allow_inf_nan=False)] = 10,
    careless: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = 10,
    truth: Annotated[str, Form(max_length=1000)] = "",
) -> MadeUpCrowd:
    """As the form says it: noise in points, the careless ones in percent."""
    return MadeUpCrowd(annotators, noise / 100, careless / 100, truth or None)


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
