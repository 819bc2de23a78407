"""A campaign's page for researchers: the page, its live updates, and what lies behind its charts."""

import csv
import io
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from app.alerts import shown as alerts
from app.analysis.routes import CriterionName, of_criterion
from app.auth.guards import Who, researcher, still_admitted
from app.campaigns import counted, experiment_arms, lifecycle, rehearsed
from app.campaigns.routes import is_loopback, qr_code
from app.crowd import doors
from app.crowd.registry import public_link, with_pages
from app.dashboard import campaigns, draft, figures, item, left_over, table, unjudged
from app.dashboard.heatmap import Heatmap, closest
from app.dashboard.live import Live
from app.dashboard.state import State
from app.database import audit_log
from app.database.alerts import said
from app.database.bulk import snapshot
from app.designs.criteria import named, number_of
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.errors import Conflict, NotFound
from app.quality import shown as findings
from app.record.law import law_of
from app.templating import templates
from app.web import Database, Now, allow_links, base_url, download_headers, fetched, get_now, page

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)

home = APIRouter(prefix="/admin", dependencies=[Depends(researcher)], include_in_schema=False)

RECONNECT = b"retry: 1000\n\n"  # milliseconds until a browser comes back
HEARTBEAT = b": still here\n\n"
LOGGED_OUT = b"event: logged-out\ndata:\n\n"
FILE_TYPES = {"csv": "text/csv", "svg": "image/svg+xml"}


async def view_of(
    *,
    sort: table.Sort = "score",
    order: Literal["up", "down"] = "down",
    search: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
    item: Annotated[str, Query(max_length=1000)] = "",
    criterion: CriterionName = "",
) -> table.ItemsView:
    return table.ItemsView(sort, order == "up", search.strip(), page, item, criterion)


View = Annotated[table.ItemsView, Depends(view_of)]


def live_of(request: Request) -> Live:
    live: Live = request.app.state.live
    return live


async def launched(database: Database, slug: str, criterion: CriterionName = "") -> Any:
    """The campaign, by the criterion of the address. Raises `Conflict` (`not_launched`) for a draft, which has no
    posteriors to show, and `NotFound` (`criterion_not_found`).
    """
    async with database.connect() as connection:
        campaign = named(await lifecycle.find(connection, slug), criterion)
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft. Its figures appear once it is launched.", code="not_launched")
    return campaign


Launched = Annotated[Any, Depends(launched)]


@home.get("")
async def listed(request: Request, database: Database, who: Who, now: Now, *, archived: bool = False) -> HTMLResponse:
    """The campaigns that are there for them, or those that were archived."""
    async with database.begin() as connection:
        rows = await counted.listed(connection, archived=archived, seen_by=who)
        going = await campaigns.how_they_go(connection, live_of(request).followers.precisions, rows, now=now)
        count = await counted.archived_count(connection, seen_by=who)
        rehearsals = [] if archived else await counted.listed(connection, rehearsals=True, seen_by=who)
    context = {"campaigns": rows, "going": going, "archived": archived, "archived_count": count}
    context |= {"rehearsals": rehearsals}
    return page(request, "admin/campaigns.html", context)


@router.get("")
async def show(request: Request, database: Database, who: Who, *, slug: str, view: View, now: Now) -> HTMLResponse:
    """The whole page, or for our script the parts that depend on its address: the head, the table, the item."""
    async with database.connect() as connection:
        campaign = await lifecycle.find(connection, slug)
        arm = await experiment_arms.of_campaign(connection, campaign.id, who)
        if campaign.status == "draft":
            return page(request, "admin/_dashboard_draft.html", await draft.of(connection, slug) | {"experiment": arm})
    campaign = named(campaign, view.criterion)
    state = await live_of(request).state(campaign, now=now)
    async with database.connect() as connection:
        shown = await table.page_of(connection, campaign, view, state.intervals)
        not_judged = await unjudged.listed(connection, campaign)
        left = await left_over.listed(connection, campaign)
        unseen = await alerts.listed(connection, campaign.id)
        turned_away = await doors.lately_refused(connection, campaign.id, now=now)
        changed = await audit_log.since_launch(connection, campaign.id)
        people_found = await findings.people_found(connection, campaign.id)
        rehearsal = None if state.figures["answered"] else await rehearsed.offer(connection, campaign)
    allow_links(request, campaign)
    base, done_at = base_url(request), state.figures["done_at"]
    link = public_link(*experiment_arms.where_people_come(base, campaign, arm))
    context = of_criterion(campaign) | {
        "law": law_of(campaign),
        "design": design_of(campaign),
        "unit": design_of(campaign).unit_of(law_of(campaign)),
        "shown": shown,
        "unjudged": not_judged,
        "left_over": left,
        "alerts": unseen,
        "people_found": people_found,
        "alert_said": said,
        "changed": changed,
        "change_said": audit_log.said,
        "changes": audit_log.changes,
        "state": state,
        "item": await chosen(database, campaign, view, state) if view.item else None,
        "dashes": figures.DASHES,
        "now": now,
        "done_at": done_at and datetime.fromtimestamp(done_at, UTC),
        "public_link": link,
        "platforms": with_pages(),
        "code": qr_code(link),
        "only_here": base if is_loopback(base) else None,
        "rehearsal": rehearsal,
        "turned_away": turned_away,
        "experiment": arm,
        "pace_rows": figures.pace_rows(state.figures),
    }
    return page(request, "admin/_dashboard_parts.html" if fetched(request) else "admin/campaign.html", context)


async def chosen(database: Database, campaign: Any, view: table.ItemsView, state: State) -> item.ItemPage:
    """The view's item."""
    async with snapshot(database) as connection:
        return await item.item_of(connection, campaign, view.item, state.course, state.intervals)


@router.get("/events")
async def events(
    request: Request, database: Database, campaign: Launched, last_event_id: Annotated[str, Header()] = ""
) -> StreamingResponse:
    """Server-sent events: the newest state now, then each that differs. A state's version is its event's id."""

    async def stream() -> AsyncIterator[bytes]:
        yield RECONNECT
        newest = live_of(request).states(campaign.slug, number_of(campaign), seen=last_event_id)
        async with aclosing(newest) as states:
            async for state in states:
                if not await still_admitted(request, database, await get_now()):
                    yield LOGGED_OUT
                    return
                yield HEARTBEAT if state is None else event(state)

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def event(state: State) -> bytes:
    return f"id: {state.version}\ndata: {state.body}\n\n".encode()


def compared(campaign: Any, state: State) -> Heatmap:
    """The match quality of all pairs. Raises `NotFound` (`figure_not_found`) where items stand on no scale."""
    if state.picture is None:
        raise NotFound(
            f"The items of “{campaign.name}” have labels, and stand on no scale on which pairs could be near.",
            code="figure_not_found",
        )
    return state.picture


@router.get("/match-quality")
async def match_quality(request: Request, campaign: Launched, now: Now) -> HTMLResponse:
    """The heatmap as a table: for each item, or group of items, the one it is best compared with."""
    state = await live_of(request).state(campaign, now=now)
    picture, labels = compared(campaign, state), state.figures["heatmap"]["labels"]
    unit = design_of(campaign).unit_of(law_of(campaign))
    rows = [
        (labels[row], unit.words(score * POINTS), labels[other], picture.quality[row, other])
        for row, (score, other) in enumerate(zip(picture.score.tolist(), closest(picture).tolist(), strict=True))
    ]
    return page(
        request,
        "admin/_dashboard_match_quality.html",
        of_criterion(campaign) | {"rows": rows, "picture": picture, "unit": unit},
    )


@router.get("/match-quality.csv")
async def match_quality_csv(request: Request, campaign: Launched, now: Now) -> Response:
    """All cells of the heatmap, to four decimals."""
    state = await live_of(request).state(campaign, now=now)
    picture, labels = compared(campaign, state), state.figures["heatmap"]["labels"]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["", *labels])
    for label, cells in zip(labels, picture.quality.tolist(), strict=True):
        writer.writerow([label, *(f"{quality:.4f}" for quality in cells)])
    return inline_file(campaign, "match-quality", "csv", out.getvalue(), now)


@router.get("/figures/item.svg")
async def item_figure(request: Request, database: Database, campaign: Launched, view: View, now: Now) -> Response:
    """The posterior of the view's item, now and before."""
    state = await live_of(request).state(campaign, now=now)
    design, law = design_of(campaign), law_of(campaign)
    found = await chosen(database, campaign, view, state)
    drawn = figures.density(found, design.unit_of(law), calibrated=design.means_beside(law))
    return inline_file(campaign, "item", "svg", svg(drawn), now)


@router.get("/figures/scores.svg")
async def scores_figure(request: Request, database: Database, campaign: Launched, view: View, now: Now) -> Response:
    """The rows of the view with their intervals."""
    state = await live_of(request).state(campaign, now=now)
    async with database.connect() as connection:
        shown = await table.page_of(connection, campaign, view, state.intervals)
    histogram = state.figures["histogram"]
    domain = (histogram["low"], histogram["high"])
    design, law = design_of(campaign), law_of(campaign)
    drawn = figures.forest(shown, domain, design.unit_of(law), calibrated=design.means_beside(law))
    return inline_file(campaign, "scores", "svg", svg(drawn), now)


@router.get("/figures/{name}.svg")
async def figure(
    request: Request, campaign: Launched, name: Literal["distribution", "pace", "uncertainty"], now: Now
) -> Response:
    """What the histogram, the bars and the curve of uncertainty show, with times in UTC."""
    state = await live_of(request).state(campaign, now=now)
    if name == "pace":
        return inline_file(campaign, name, "svg", svg(figures.hits_per_hour(state.figures)), now)
    if name == "uncertainty":
        if not design_of(campaign).ordered:
            raise NotFound("Of labels without an order there is no mean, and no interval.", code="figure_not_found")
        drawn = figures.uncertainty(state.figures, design_of(campaign).unit)
        return inline_file(campaign, name, "svg", svg(drawn), now)
    drawn = figures.distribution(state.figures, design_of(campaign).unit_of(law_of(campaign)))
    return inline_file(campaign, name, "svg", svg(drawn), now)


def svg(drawn: figures.Drawing) -> str:
    return templates.get_template("admin/_dashboard_figure.xml").render(figure=drawn)


def inline_file(campaign: Any, kind: str, ending: str, content: str, now: datetime) -> Response:
    """Return a file that browsers show, and save under the campaign's name, its criterion and the date."""
    criterion = campaign.criterion_name if campaign.criteria else ""
    headers = download_headers(campaign.slug, kind, ending, criterion, now=now, inline=True)
    return Response(content, media_type=FILE_TYPES[ending], headers=headers)
