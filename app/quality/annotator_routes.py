"""Researchers' pages of a campaign's annotators: all of them, and one with all their answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, BackgroundTasks, Depends, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth.guards import researcher
from app.database.audit_log import ACTIONS as ACTIONS_IN_LOG
from app.database.campaign import campaign_of_page
from app.designs.registry import design_of
from app.quality import acting, annotators
from app.quality.compared import AnnotatorComparisons
from app.quality.shown import checks_said
from app.quality.who_counts import LONGEST_REASON, annotator_named
from app.web import Database, Entered, Now, RowId, Transaction, page

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


async def get_comparisons(request: Request) -> AnnotatorComparisons:
    comparisons: AnnotatorComparisons = request.app.state.comparisons
    return comparisons


async def get_medians(request: Request) -> annotators.MedianSeconds:
    medians: annotators.MedianSeconds = request.app.state.median_seconds
    return medians


Compared = Annotated[AnnotatorComparisons, Depends(get_comparisons)]
Medians = Annotated[annotators.MedianSeconds, Depends(get_medians)]

SHOWN = 50  # annotators, and answers of one, on a page
PATIENCE_SECONDS = 3.0  # until a page is shown whose scores are yet to follow
Name = Annotated[str, PathParameter(max_length=40)]
Page = Annotated[int, Query(alias="page", ge=1, le=1_000_000)]

# What can be done to whoever stands so.
ACTIONS = {None: ("hold", "exclude"), "held": ("release", "exclude"), "excluded": ("restore",)}


@router.get("/annotators")
async def annotators_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    comparisons: Compared,
    medians: Medians,
    sort: annotators.Sorting = "name",
    rising: bool = False,
    number: Page = 1,
) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    total = await annotators.count(connection, campaign.id)
    pages = max(1, -(-total // SHOWN))
    number = min(number, pages)
    how: dict[str, Any] = {"sorting": sort, "rising": rising, "limit": SHOWN, "offset": (number - 1) * SHOWN}
    compared = await comparisons.newest(connection, campaign)
    context = {
        "campaign": campaign,
        "lines": await annotators.listed(connection, campaign, medians=medians, **how),
        "compared": compared,
        "learned": compared.learned,
        "behind": await annotators.behind(connection, campaign.id),
        "bins": design_of(campaign).classes,
        "sort": sort,
        "rising": rising,
        "sortings": get_args(annotators.Sorting),
        "total": total,
        "number": number,
        "pages": pages,
        "per_page": SHOWN,
        "query": urlencode({"sort": sort} | ({"rising": "true"} if rising else {})),
    }
    return page(request, "admin/annotators.html", context)


@router.get("/annotators/{annotator}")
async def annotator_page(
    request: Request, connection: Transaction, comparisons: Compared, slug: str, annotator: Name, *, number: Page = 1
) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    row = await annotator_named(connection, campaign, annotator)
    (line,) = await annotators.listed(connection, campaign, limit=1, annotator=row)
    pages = max(1, -(-line.answers // SHOWN))
    number = min(number, pages)
    answers = await annotators.answers_of(connection, campaign, row, limit=SHOWN, offset=(number - 1) * SHOWN)
    context = {
        "campaign": campaign,
        "line": line,
        "compared": await comparisons.newest(connection, campaign),
        "behind": await annotators.behind(connection, campaign.id),
        "bins": design_of(campaign).classes,
        "actions": ACTIONS[line.barred],
        "answers": answers,
        "decisions": await annotators.decisions_on(connection, campaign.id, line.name),
        "words_of": ACTIONS_IN_LOG,
        "checks": await checks_said(connection, campaign, row),
        "longest": LONGEST_REASON,
        "number": number,
        "pages": pages,
        "per_page": SHOWN,
    }
    return page(request, "admin/annotator.html", context)


@router.post("/annotators/{annotator}/{action}")
async def act_on_annotator(
    form: Entered,
    database: Database,
    later: BackgroundTasks,
    slug: str,
    annotator: Name,
    *,
    action: Literal["hold", "release", "exclude", "restore"],
    now: Now,
) -> Response:
    """Decide; where the posteriors take long to follow, they do so after the reply."""
    reason = form.get("reason", "")
    await follow(await acting.on_annotator(database, slug, annotator, action, reason=reason, now=now), later)
    return back(slug, annotator)


@router.post("/annotators/{annotator}/answers/{answer}/{action}")
async def act_on_answer(
    form: Entered,
    database: Database,
    later: BackgroundTasks,
    slug: str,
    annotator: Name,
    *,
    answer: RowId,
    action: Literal["exclude", "restore"],
    now: Now,
) -> Response:
    """The same about one answer."""
    reason = form.get("reason", "")
    await follow(await acting.on_answer(database, slug, answer, action, reason=reason, now=now, of=annotator), later)
    return back(slug, annotator)


async def follow(revising: Callable[[], Awaitable[None]], later: BackgroundTasks) -> None:
    """Wait a moment for what follows from a decision, so that most pages show it; the rest goes on after the reply."""
    task = asyncio.ensure_future(revising())
    await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
    if task.done():
        task.result()
    else:
        later.add_task(ended, task)


async def ended(task: Awaitable[None]) -> None:
    await task


def back(slug: str, annotator: str) -> Response:
    return RedirectResponse(f"/admin/campaigns/{slug}/annotators/{annotator}", status_code=303)
