"""A campaign's page for researchers: the page itself, its live updates, and the data behind its charts."""

import csv
import io
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Depends, Header, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from app.accounts.guards import CurrentAccess, is_still_admitted_or_database_away, researcher_router
from app.accounts.roles import SEE_SETTINGS
from app.analysis.pages.analysis import CriterionNameQuery, criterion_template_context
from app.annotation.platforms.registry import (
    annotator_url_by_platform,
    open_link_url_of_campaign,
    platforms_of_campaign,
    platforms_with_pages,
    recruiting_platform,
)
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.campaigns import experiment_arms
from app.campaigns.pages.campaigns import is_loopback_url, qr_code_svg
from app.dashboard import draft_page, drawings, item, overview, table
from app.dashboard.heatmap import Heatmap, best_matching_row_of_each_row
from app.dashboard.live import LiveDashboards
from app.dashboard.state import DashboardState
from app.database.bulk import open_snapshot
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.scale import MAX_POINTS
from app.errors import Conflict, NotFound
from app.http.dependencies import (
    Database,
    Now,
    allow_https_media_if_campaign_does,
    content_disposition_headers,
    get_now,
    is_script_request,
    render_page,
    request_base_url,
)
from app.http.templating import english_environment
from app.record.campaign import load_campaign_by_slug_or_refuse

router = researcher_router("/admin/campaigns/{slug}")

RECONNECT_EVENT = b"retry: 1000\n\n"  # milliseconds until a browser comes back
HEARTBEAT_EVENT = b": still here\n\n"
LOGGED_OUT_EVENT = b"event: logged-out\ndata:\n\n"
FIGURE_MEDIA_TYPES = {"csv": "text/csv", "svg": "image/svg+xml"}


ItemsViewQuery = Annotated[table.ItemsView, Query()]


def live_dashboards_of_server(request: Request) -> LiveDashboards:
    live: LiveDashboards = request.app.state.live
    return live


async def load_criterion_or_refuse_draft(
    database: Database, slug: str, criterion: CriterionNameQuery = ""
) -> Criterion[Campaign]:
    """Load the criterion in the address, of a launched campaign.

    Raises `Conflict` (`not_launched`) for a draft, which has no posteriors to show, and `NotFound`
    (`criterion_not_found`).
    """
    async with database.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft. Its figures appear once it is launched.", code="not_launched")
    return campaign.find_criterion_or_refuse(criterion)


LaunchedCriterion = Annotated[Criterion[Campaign], Depends(load_criterion_or_refuse_draft)]


@router.get("")
async def dashboard_page_or_parts_response(
    request: Request, database: Database, access: CurrentAccess, *, slug: str, view: ItemsViewQuery, now: Now
) -> HTMLResponse:
    """Return the whole page, or for our script the parts that depend on the address: the head, the table, the item."""
    async with database.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        arm = await experiment_arms.load_experiment_arm_or_none(connection, campaign.id, access)
        if campaign.status == "draft":
            return render_page(
                request,
                "admin/_dashboard_draft.html",
                await draft_page.load_draft_page_context(connection, slug) | {"experiment": arm},
            )
    criterion = campaign.find_criterion_or_refuse(view.criterion)
    dashboards = live_dashboards_of_server(request)
    state = await dashboards.load_shared_or_new_state(criterion, now=now)
    shows_own = request.state.session.can(SEE_SETTINGS)
    async with database.connect() as connection:
        parts = await overview.load_score_table_context(connection, criterion, view, state, shows_own_columns=shows_own)
        parts |= await overview.load_whole_campaign_context(
            connection, campaign, state, dashboards.square_counts, now=now
        )
    allow_https_media_if_campaign_does(request, campaign)
    base = request_base_url(request)
    link_parts = experiment_arms.annotator_link_base_and_key_of_campaign(base, campaign, arm)
    crowd_settings = crowd_setting_by_name_with_slug_of_campaign(campaign)
    platform = recruiting_platform(crowd_settings)
    links = annotator_url_by_platform(*link_parts, platforms_of_campaign(crowd_settings))
    context = criterion_template_context(criterion) | overview.figures_template_context(criterion, state) | parts
    context |= {
        "item": await load_viewed_item_page(database, criterion, view, state) if view.item else None,
        "now": now,
        "recruiting_platform": platform,
        "recruiting_url": links.get(platform.name),
        "platforms": platforms_with_pages(),
        "code": qr_code_svg(open_link_url_of_campaign(*link_parts)),
        "loopback_url": base if is_loopback_url(base) else None,
        "experiment": arm,
    }
    return render_page(
        request, "admin/_dashboard_parts.html" if is_script_request(request) else "admin/campaign.html", context
    )


async def load_viewed_item_page(
    database: Database, criterion: Criterion[Campaign], items_view: table.ItemsView, state: DashboardState
) -> item.ItemPage:
    async with open_snapshot(database) as connection:
        return await item.load_item_page_or_refuse(
            connection, criterion, items_view.item, state.history, state.intervals, shrinkage=state.shrinkage
        )


@router.get("/events")
async def stream_state_events_response(
    request: Request, database: Database, criterion: LaunchedCriterion, last_event_id: Annotated[str, Header()] = ""
) -> StreamingResponse:
    """Stream server-sent events: the newest state now, then each that differs. The id of an event is its state's
    version.
    """

    async def stream() -> AsyncIterator[bytes]:
        yield RECONNECT_EVENT
        newest = live_dashboards_of_server(request).stream_states(
            criterion.campaign.slug, criterion.number, seen_version=last_event_id
        )
        async with aclosing(newest) as states:
            async for state in states:
                if not await is_still_admitted_or_database_away(request, database, await get_now()):
                    yield LOGGED_OUT_EVENT
                    return
                yield HEARTBEAT_EVENT if state is None else encode_server_sent_state_event(state)

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def encode_server_sent_state_event(state: DashboardState) -> bytes:
    return f"id: {state.version}\ndata: {state.figures_json_text}\n\n".encode()


def heatmap_or_refuse(criterion: Criterion[Campaign], state: DashboardState) -> Heatmap:
    """Return the match quality of all pairs. Raises `NotFound` (`figure_not_found`) where items have no scores on a
    scale.
    """
    if state.heatmap is None:
        raise NotFound(
            f"The items of “{criterion.campaign.name}” have labels, not scores, so there is no match quality of pairs.",
            code="figure_not_found",
        )
    return state.heatmap


@router.get("/match-quality")
async def best_partner_table_page(request: Request, criterion: LaunchedCriterion, now: Now) -> HTMLResponse:
    """Show the heatmap as a table: for each item, or group of items, the one with which it is best compared."""
    state = await live_dashboards_of_server(request).load_shared_or_new_state(criterion, now=now)
    heatmap, labels = heatmap_or_refuse(criterion, state), state.figures["heatmap"]["labels"]
    unit = criterion.design.score_unit(criterion.law)
    rows = [
        (labels[row], unit.format_value(score * MAX_POINTS), labels[other], heatmap.quality[row, other])
        for row, (score, other) in enumerate(
            zip(heatmap.score.tolist(), best_matching_row_of_each_row(heatmap).tolist(), strict=True)
        )
    ]
    return render_page(
        request,
        "admin/_dashboard_match_quality.html",
        criterion_template_context(criterion) | {"rows": rows, "picture": heatmap, "unit": unit},
    )


@router.get("/match-quality.csv")
async def match_quality_csv_response(request: Request, criterion: LaunchedCriterion, now: Now) -> Response:
    """Return all cells of the heatmap, to four decimals."""
    state = await live_dashboards_of_server(request).load_shared_or_new_state(criterion, now=now)
    heatmap, labels = heatmap_or_refuse(criterion, state), state.figures["heatmap"]["labels"]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["", *labels])
    for label, cells in zip(labels, heatmap.quality.tolist(), strict=True):
        writer.writerow([label, *(f"{quality:.4f}" for quality in cells)])
    return inline_file_response(criterion, "match-quality", "csv", out.getvalue(), now)


@router.get("/figures/item.svg")
async def item_posterior_svg_response(
    request: Request, database: Database, criterion: LaunchedCriterion, view: ItemsViewQuery, now: Now
) -> Response:
    """Draw the posterior of the viewed item, now and after its first judgments."""
    state = await live_dashboards_of_server(request).load_shared_or_new_state(criterion, now=now)
    design, law = criterion.design, criterion.law
    item_page = await load_viewed_item_page(database, criterion, view, state)
    drawing = drawings.posterior_density_drawing(
        item_page, design.score_unit(law), calibrated=design.has_same_unit_as_scores_of(law)
    )
    return inline_file_response(criterion, "item", "svg", svg_text_of_drawing(drawing), now)


@router.get("/figures/scores.svg")
async def score_forest_plot_svg_response(
    request: Request, database: Database, criterion: LaunchedCriterion, view: ItemsViewQuery, now: Now
) -> Response:
    """Draw the rows of the view with their intervals."""
    state = await live_dashboards_of_server(request).load_shared_or_new_state(criterion, now=now)
    async with database.connect() as connection:
        items_page = await table.load_items_page(connection, criterion, view, state.intervals, state.shrinkage)
    histogram = state.figures["histogram"]
    domain = (histogram["low"], histogram["high"])
    design, law = criterion.design, criterion.law
    drawing = drawings.forest_plot_drawing(
        items_page, domain, design.score_unit(law), calibrated=design.has_same_unit_as_scores_of(law)
    )
    return inline_file_response(criterion, "scores", "svg", svg_text_of_drawing(drawing), now)


@router.get("/figures/{name}.svg")
async def named_chart_svg_response(
    request: Request, criterion: LaunchedCriterion, name: Literal["distribution", "pace", "uncertainty"], now: Now
) -> Response:
    """Draw the histogram, the pace or the curve of uncertainty, with times in UTC."""
    state = await live_dashboards_of_server(request).load_shared_or_new_state(criterion, now=now)
    if name == "pace":
        return inline_file_response(
            criterion, name, "svg", svg_text_of_drawing(drawings.pace_drawing(state.figures)), now
        )
    if name == "uncertainty":
        if not criterion.design.is_ordered:
            raise NotFound("Labels without an order have no mean and no interval.", code="figure_not_found")
        drawing = drawings.typical_interval_curve_drawing(state.figures, criterion.design.unit)
        return inline_file_response(criterion, name, "svg", svg_text_of_drawing(drawing), now)
    drawing = drawings.score_distribution_drawing(state.figures, criterion.design.score_unit(criterion.law))
    return inline_file_response(criterion, name, "svg", svg_text_of_drawing(drawing), now)


def svg_text_of_drawing(drawing: drawings.Drawing) -> str:
    return english_environment.get_template("admin/_dashboard_figure.xml").render(figure=drawing)


def inline_file_response(
    criterion: Criterion[Campaign], file_kind: str, extension: str, content: str, now: datetime
) -> Response:
    """Return a file that browsers show, and save under the campaign's name, its criterion and the date."""
    headers = content_disposition_headers(
        criterion.campaign.slug, file_kind, extension, criterion.name, now=now, inline=True
    )
    return Response(content, media_type=FIGURE_MEDIA_TYPES[extension], headers=headers)
