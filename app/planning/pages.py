"""Page “Plan” of a campaign: the forecast of its goal."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, TypeAdapter, ValidationError

from app.accounts.guards import CurrentAccess, researcher_router
from app.accounts.roles import CHANGE_CAMPAIGN
from app.annotation.platforms.registry import recruiting_platform
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.background.progress_stream import ReportingJob, iterate_progress_then_outcome
from app.campaigns import forecast_findings, hints, summaries
from app.campaigns.forecast_findings import ForecastFindings
from app.campaigns.totals import CampaignTotals, PeopleNeeded, sentence_on_planned_work_and_pay_or_empty
from app.errors import Conflict, Invalid, Refusal
from app.goals.progress import describe_goal
from app.http.dependencies import Database, Now, is_json_wanted, is_script_request, render_page
from app.planning import forecast, forecast_defaults
from app.planning.campaign_forecast import CampaignForecast
from app.planning.forecast import ForecastRequest, ForecastRunner
from app.planning.forecast_defaults import MAX_ANNOTATORS_INPUT
from app.simulation.annotators import POPULATION_TITLES

router = researcher_router("/admin/campaigns/{slug}")


MAX_CONCURRENT_ANNOTATORS = 1_000


@router.get("/plan")
async def show_forecast(
    request: Request,
    database: Database,
    slug: str,
    *,
    access: CurrentAccess,
    now: Now,
    like: str = "",
    at_once: str = str(forecast_defaults.DEFAULT_CONCURRENT_ANNOTATORS),
    annotators: str = "",
) -> Response:
    """Show what the campaign costs by its settings; the forecast, once the form says whom its annotators are `like`.

    Another process computes it, and ends with the request. Our script gets the progress, line by line; a browser
    without it gets a page at the end.
    """
    async with database.connect() as connection:
        campaign = await summaries.load_campaign_with_progress_or_refuse(connection, slug)
        crowd_names = crowd_names_by_form_value(
            await summaries.load_campaigns_with_progress(connection, access=access), slug
        )
        has_pace = bool(await forecast.load_present_hits_per_hour_or_none(connection, campaign, now=now))
    context = {
        "campaign": campaign,
        "crowds": crowd_names,
        "like": like or forecast_defaults.DEFAULT_POPULATION,
        "at_once": at_once,
        "has_pace": has_pace,
        "totals": CampaignTotals.from_campaign(campaign),
        "people_left": people_for_missing_judgments_or_none(campaign),
        "has_all_judgments": 0 < campaign.judgments_wanted <= campaign.judgments_taken,
        "recruiting_platform": recruiting_platform(crowd_setting_by_name_with_slug_of_campaign(campaign)),
        "cost_by_settings": sentence_on_planned_work_and_pay_or_empty(campaign),
        "last_plan": ForecastFindings.from_stored(
            campaign.newest_plan, items=campaign.item_count, per_item=campaign.judgments_per_item
        ),
    }
    context |= {
        "annotators": annotators,
        "max_annotators": MAX_ANNOTATORS_INPUT,
        "max_at_once": MAX_CONCURRENT_ANNOTATORS,
    }
    try:
        forecast.refuse_unless_forecastable(campaign)
    except Conflict as problem:
        context |= {"refusal": problem.message, "refusal_code": problem.code}
        return render_page(request, "admin/forecast.html", context)
    context |= {
        "goal": describe_goal(campaign),
        "planning_time": forecast.text_on_duration_of_planning(campaign),
        "runs": forecast_defaults.DEFAULT_FORECAST_RUNS,
    }
    context["advice"] = hints.advice_to_use_better_rule_or_empty(campaign)
    try:
        forecast_request = ForecastRequest(like, *parse_concurrent_and_total_annotators(at_once, annotators))
        if like and like not in crowd_names:
            async with database.connect() as connection:
                crowd_names[like] = (await summaries.load_visible_campaign_or_refuse(connection, like, access)).name
    except Refusal as problem:
        if is_json_wanted(request):
            raise
        return render_page(
            request, "admin/forecast.html", context | {"refusal": problem.message}, status=problem.status
        )
    if not like:
        return render_page(request, "admin/forecast.html", context)

    async def job(on_run: Callable[[int], None]) -> CampaignForecast:
        runner: ForecastRunner = request.app.state.forecasts
        campaign_forecast = await runner.run(slug, forecast_request, now, on_run)
        if access.can(CHANGE_CAMPAIGN):
            async with database.begin() as connection:
                await forecast_findings.store_forecast_findings_if_current(connection, slug, campaign_forecast.findings)
        return campaign_forecast

    if is_script_request(request):
        lines = stream_forecast_progress_json_lines(request, {"campaign": campaign}, job)
        return StreamingResponse(lines, media_type="application/x-ndjson")
    return StreamingResponse(stream_forecast_page_when_done(request, context, job), media_type="text/html")


def people_for_missing_judgments_or_none(campaign: summaries.CampaignWithProgress) -> PeopleNeeded | None:
    """Return the people for the judgments that are missing; None before the first judgment, or if none are missing."""
    missing = max(0, campaign.judgments_wanted - campaign.judgments_taken)
    return PeopleNeeded.people_needed_or_none(campaign, missing) if campaign.judgments_taken else None


def crowd_names_by_form_value(campaigns: Sequence[Any], slug: str) -> dict[str, str]:
    """Return the crowds that the form of a forecast offers: their names, by the value that the form sends."""
    return POPULATION_TITLES | {
        other.slug: other.name for other in campaigns if other.status != "draft" and other.slug != slug
    }


def parse_concurrent_and_total_annotators(at_once: str, annotators: str) -> tuple[int, int | None]:
    """Parse the numbers of annotators at a time, and in all if it is given. Raises `Invalid`."""
    total = (
        parse_positive_int_or_refuse(annotators, MAX_ANNOTATORS_INPUT, "Total annotators", ", or be left empty")
        if annotators
        else None
    )
    return parse_positive_int_or_refuse(at_once, MAX_CONCURRENT_ANNOTATORS, "Annotators at a time"), total


def parse_positive_int_or_refuse(text: str, maximum: int, title: str, alternative: str = "") -> int:
    """Parse the value of the form field with this title. Raises `Invalid`."""
    try:
        return TypeAdapter(Annotated[int, Field(ge=1, le=maximum)]).validate_python(text)
    except ValidationError as problem:
        raise Invalid(f"“{title}” must be a whole number from 1 to {maximum:,}{alternative}.") from problem


async def stream_forecast_progress_json_lines(
    request: Request, context: dict[str, Any], job: ReportingJob[CampaignForecast]
) -> AsyncIterator[str]:
    """Yield JSON lines: {"runs": n} as they are done; at the end {"found": HTML} or {"error": {code, message}}."""
    async with aclosing(iterate_progress_then_outcome(job)) as reports:
        async for report in reports:
            if isinstance(report, CampaignForecast):
                page = render_page(request, "admin/_forecast.html", context | {"forecast": report})
                line: dict[str, Any] = {"found": bytes(page.body).decode()}
            elif isinstance(report, Refusal):
                line = {"error": {"code": report.code, "message": report.message}}
            else:
                line = {"runs": report}
            yield json.dumps(line) + "\n"


async def stream_forecast_page_when_done(
    request: Request, context: dict[str, Any], job: ReportingJob[CampaignForecast]
) -> AsyncIterator[bytes]:
    """Yield the page in one piece at the end; closing the connection before stops the computation."""
    try:
        context |= {"forecast": await job(lambda _runs: None)}
    except Refusal as problem:
        context |= {"refusal": problem.message}
    yield bytes(render_page(request, "admin/forecast.html", context).body)
