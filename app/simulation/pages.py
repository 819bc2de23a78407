"""Pages of rehearsals and plans of a campaign."""

from typing import Annotated

from fastapi import Depends, Form, Request, Response

from app.accounts.guards import researcher_router
from app.campaigns.pages.campaigns import campaign_page_url, redirect_to
from app.http.dependencies import Database, Now, Transaction
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.simulation import rehearsal_offer, rehearsals
from app.simulation.annotators import CarelessKind, build_population_or_refuse
from app.simulation.rehearsals import RehearsalCrowd, RehearsalCrowds

router = researcher_router("/admin/campaigns/{slug}")


async def rehearsal_crowd_of_form(
    *,
    annotators: Annotated[
        int, Form(ge=1, le=rehearsal_offer.MAX_REHEARSAL_ANNOTATORS)
    ] = rehearsal_offer.DEFAULT_REHEARSAL_ANNOTATORS,
    noise: Annotated[float, Form(ge=0, le=50, allow_inf_nan=False)] = 10,
    like: Annotated[str, Form(max_length=100)] = "",
    careless: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = 10,
    careless_how: Annotated[CarelessKind, Form()] = "random",
    truth: Annotated[str, Form(max_length=1000)] = "",
) -> RehearsalCrowd:
    """Read a crowd from the form: noise in points, the careless share in percent."""
    return RehearsalCrowd(
        annotators, build_population_or_refuse(like, noise / 100, careless / 100, careless_how), truth or None
    )


def rehearsal_crowds_of_server(request: Request) -> RehearsalCrowds:
    crowds: RehearsalCrowds = request.app.state.rehearsals
    return crowds


@router.post("/rehearse")
async def start_rehearsal_and_redirect(
    request: Request,
    database: Database,
    slug: str,
    crowd: Annotated[RehearsalCrowd, Depends(rehearsal_crowd_of_form)],
    now: Now,
) -> Response:
    """Start a rehearsal unless there is one, and redirect to it; continue it if the process that led it has died."""
    crowds = rehearsal_crowds_of_server(request)
    crowds.refuse_if_crowds_are_busy()
    async with database.begin() as connection:
        campaign, led_crowd = await rehearsals.create_or_find_rehearsal_and_take_crowd_lead(
            connection, slug, crowd, now=now
        )
    if led_crowd is not None and campaign.id not in crowds.tasks:
        crowds.start_crowd_of_rehearsal(campaign, led_crowd)
    return redirect_to(campaign_page_url(campaign.slug))


@router.get("/rehearsed")
async def redirect_to_rehearsed_campaign(connection: Transaction, slug: str) -> Response:
    """Redirect from a rehearsal to its campaign."""
    source = await rehearsal_offer.load_campaign_of_rehearsal_or_refuse(
        connection, await load_campaign_by_slug_or_refuse(connection, slug)
    )
    return redirect_to(campaign_page_url(source.slug))


@router.post("/remove-rehearsal")
async def submit_removal_of_rehearsal(request: Request, database: Database, slug: str) -> Response:
    """Delete a rehearsal with all of its answers, and redirect to its campaign."""
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await rehearsal_crowds_of_server(request).end_crowd(campaign.id)
    async with database.begin() as connection:
        removed = await rehearsals.delete_and_return_rehearsal_or_refuse(connection, slug)
        source = await rehearsal_offer.load_campaign_of_rehearsal_or_refuse(connection, removed)
    return redirect_to(campaign_page_url(source.slug, notice="rehearsal-removed"))
