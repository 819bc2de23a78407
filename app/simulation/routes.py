"""Rehearsals and plans from a campaign's page."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, TypeAdapter, ValidationError

from app.auth.guards import Who, researcher
from app.campaigns import counted, hints, newest_plan, rehearsed
from app.campaigns.progress import Job, watched
from app.campaigns.routes import address, see_other
from app.database.campaign import campaign_by_slug
from app.errors import Conflict, Invalid, Refusal
from app.goals.progress import words
from app.simulation import planned, rehearsals
from app.simulation.annotators import POPULATIONS, Careless, population_of
from app.simulation.planned import Asked, Plan, Plans
from app.simulation.rehearsals import MadeUpCrowd, Rehearsals
from app.simulation.turnout import MOST_SAID
from app.web import Database, Now, Transaction, fetched, page, wants_json

MOST_AT_ONCE = 1_000

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


async def crowd_of(
    *,
    annotators: Annotated[int, Form(ge=1, le=rehearsed.MOST_ANNOTATORS)] = rehearsed.USUAL_ANNOTATORS,
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
    """Begin a rehearsal, or look at the one that there is; let it go on if the process that led it has died."""
    crowds = crowds_of(request)
    crowds.refuse_unless_free()
    async with database.begin() as connection:
        campaign, led = await rehearsals.begin(connection, slug, crowd, now=now)
    if led is not None and campaign.id not in crowds.tasks:
        crowds.start(campaign, led)
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
    *,
    who: Who,
    now: Now,
    like: str = "",
    at_once: str = str(planned.AT_ONCE),
    annotators: str = "",
) -> Response:
    """What the goal of a campaign will cost, once it is asked with whom annotators are `like`.

    It is worked out in another process, which ends with the request. Our script is told how far it is, line by line;
    a browser without it gets a page at the end.
    """
    async with database.connect() as connection:
        campaign = await counted.find_counted(connection, slug)
        likes = whom_to_be_like(await counted.listed(connection, seen_by=who), slug)
        paced = bool(await planned.pace_of(connection, campaign, now=now))
    context = {"campaign": campaign, "likes": likes, "like": like or planned.USUAL, "at_once": at_once, "paced": paced}
    context |= {"annotators": annotators, "most_people": MOST_SAID, "most_at_once": MOST_AT_ONCE}
    try:
        planned.refuse_unless_planned(campaign)
    except Conflict as problem:
        return page(request, "admin/plan.html", context | {"refusal": problem.message, "why": problem.code})
    context |= {"goal": words(campaign), "how_long": planned.how_long(campaign), "runs": planned.RUNS}
    context["advice"] = hints.advice(campaign)
    try:
        asked = Asked(like, *numbers_of(at_once, annotators))
        if like and like not in likes:
            async with database.connect() as connection:
                likes[like] = (await counted.find_seen(connection, like, who)).name
    except Refusal as problem:
        if wants_json(request):
            raise
        return page(request, "admin/plan.html", context | {"refusal": problem.message}, status=problem.status)
    if not like:
        return page(request, "admin/plan.html", context)

    async def job(told: Callable[[int], None]) -> Plan:
        plans: Plans = request.app.state.plans
        found = await plans.of(slug, asked, now, told)
        async with database.begin() as connection:
            await newest_plan.remember(connection, slug, found.as_found)
        return found

    if fetched(request):
        return StreamingResponse(plan_lines(request, job), media_type="application/x-ndjson")
    return StreamingResponse(plan_page(request, context, job), media_type="text/html")


def whom_to_be_like(others: Sequence[Any], slug: str) -> dict[str, str]:
    """What the form of a campaign's plan offers: the names of those whom annotators can be like, by what it sends."""
    likes = {name: f"published translations, {name.removeprefix('mlqe-')}" for name in POPULATIONS}
    return likes | {other.slug: other.name for other in others if other.status != "draft" and other.slug != slug}


def numbers_of(at_once: str, annotators: str) -> tuple[int, int | None]:
    """Annotators at a time, and in all if that is said. Raises `Invalid`."""
    in_all = number_of(annotators, MOST_SAID, "Annotators in all", ", or be left empty") if annotators else None
    return number_of(at_once, MOST_AT_ONCE, "Annotators at a time"), in_all


def number_of(said: str, most: int, title: str, otherwise: str = "") -> int:
    """What somebody says of a field with this title. Raises `Invalid`."""
    try:
        return TypeAdapter(Annotated[int, Field(ge=1, le=most)]).validate_python(said)
    except ValidationError as problem:
        words = f"“{title}” must be a whole number from 1 to {most:,}{otherwise}."
        raise Invalid(words) from problem


async def plan_lines(request: Request, job: Job[Plan]) -> AsyncIterator[str]:
    """JSON lines: {"runs": n} as they are done; at the end {"found": HTML} or {"error": {code, message}}."""
    async with aclosing(watched(job)) as reports:
        async for report in reports:
            if isinstance(report, Plan):
                line: dict[str, Any] = {
                    "found": bytes(page(request, "admin/_plan.html", {"plan": report}).body).decode()
                }
            elif isinstance(report, Refusal):
                line = {"error": {"code": report.code, "message": report.message}}
            else:
                line = {"runs": report}
            yield json.dumps(line) + "\n"


async def plan_page(request: Request, context: dict[str, Any], job: Job[Plan]) -> AsyncIterator[bytes]:
    """One piece, at the end: who leaves before ends the work."""
    try:
        context |= {"plan": await job(lambda _runs: None)}
    except Refusal as problem:
        context |= {"refusal": problem.message}
    yield bytes(page(request, "admin/plan.html", context).body)
