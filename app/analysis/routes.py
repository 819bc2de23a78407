"""Researchers' downloads, and the analysis of a campaign's answers."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from app.analysis.answers import has_answers, size
from app.analysis.contracts import Expected, MethodExport
from app.analysis.export import MEDIA_TYPES, Export, Format, export, has_beta
from app.analysis.findings import MOST_CLASSES, Options
from app.analysis.fits import Fits
from app.analysis.formats import csv_lines
from app.analysis.groups import LONGEST_GROUP, choices
from app.analysis.methods import tells_of_people
from app.analysis.offer import EVERYTHING, offered
from app.analysis.sections import parts, picture_of
from app.analysis.view import ROWS, AnalysisView, between, criterion_in_address
from app.auth.access import require_need
from app.auth.guards import Who, researcher
from app.auth.roles import SEE_PEOPLE
from app.database.campaign import campaign_of_page
from app.designs.criteria import named
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.drawing import COEFFICIENTS, interval, written
from app.errors import NotFound, shortened
from app.inference.online.law import Law
from app.media import store as media
from app.record import remarks
from app.record.law import law_of
from app.templating import templates
from app.web import Now, ReadingDatabase, Transaction, download_headers, fetched, page

router = APIRouter(prefix="/admin/campaigns/{slug}/export", dependencies=[Depends(researcher)], include_in_schema=False)


async def get_fits(request: Request) -> Fits:
    fits: Fits = request.app.state.fits
    return fits


KeptFits = Annotated[Fits, Depends(get_fits)]

CriterionName = Annotated[str, Query(max_length=200)]

FORMATS = (("csv", "CSV"), ("xl.csv", "CSV for Excel"), ("jsonl", "JSONL"))


def downloads(
    campaign: Any, exports: Iterable[MethodExport], *, remarked: bool
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """(title, contents, [(file, words)]) of what this campaign can export now. exports: those that need a fit, which
    are of the criterion by which the campaign is read. remarked: whether there are comments and flags, or can be.
    """
    design, of_each = design_of(campaign), " A row for each criterion." * bool(campaign.criteria)
    of_one = "?" + urlencode({"criterion": campaign.criterion_name}) if campaign.criteria else ""
    if campaign.status != "draft":
        words = items_words(design, law_of(campaign)) + of_each
        yield "Items", words, [(f"items.{end}", title) for end, title in FORMATS]
    told = f"score ({design.possible}){', label' * bool(design.classes)}{', rank' * design.ordered}"
    words = f"One row for each item of each answer: annotator, {told}, HIT, position, times, kind of input.{of_each}"
    yield "Responses", words, [(f"responses.{end}", title) for end, title in FORMATS]
    if campaign.segment_count:
        words = f"Every output with its system, segment, source and reference, its judgments and their mean.{of_each}"
        yield "Segments", words, [(f"segments.{end}", title) for end, title in FORMATS]
    words = (
        "One row for each item that was shown and not answered: annotator, HIT, whether it is open, expired or given "
        "up, when it was shown and when its lease ends."
    )
    yield "Shown, not answered", words, [(f"unanswered.{end}", title) for end, title in FORMATS]
    words = (
        "One row for each arrival: annotator, the platform's assignment, HITs answered, when they arrived and ended."
    )
    yield "Assignments", words, [(f"assignments.{end}", title) for end, title in FORMATS]
    if campaign.visit_version:
        words = "What each annotator did before the work, such as who agreed to which version of the consent, and when."
        yield "Visits", words, [(f"visits.{end}", title) for end, title in FORMATS]
    if remarked:
        words = "What annotators said of items and HITs beside their answers: comments, flags with what they chose."
        yield "Comments and flags", words, [(f"remarks.{end}", title) for end, title in FORMATS]
    for one in exports:
        words = one.contents + f" {cut_words(design)}" * (one.cuts and not design.classes)
        yield one.title, words, [(f"{one.name}.{end}{of_one}", title) for end, title in FORMATS]
    yield "Settings", "All settings by name, and how far the campaign is, for programs.", [("settings.json", "JSON")]
    if campaign.status != "draft" and has_beta(campaign):
        yield (
            "EASL file",
            "The item file of the released EASL program: your columns, then alpha, beta, mode, var.",
            [(f"easl.csv{of_one}", "CSV")],
        )


def items_words(design: Design, law: Law) -> str:
    """What the file of items has in its columns."""
    score = design.unit_of(law).title.lower()
    if law.family.counts_classes:
        score = f"likeliest label and its {score}"
    mean = f", and the {design.unit.mean_words} with its calibrated interval" * design.ordered
    return f"Every item with its uploaded columns, posterior, {score}, variance, 95 % interval and judgments{mean}."


def cut_words(design: Design) -> str:
    """Where labels come from that nobody chose."""
    middle = f"{design.unit.rounded(POINTS / 2)} {design.unit.sign}"
    return f"The {design.noun}s that annotators gave are cut at {middle}."


@router.get("")
async def export_page(
    request: Request, connection: Transaction, slug: str, criterion: CriterionName = ""
) -> HTMLResponse:
    campaign = named(await campaign_of_page(connection, slug), criterion)
    answered = await has_answers(connection, campaign)
    exports = (await offered(connection, campaign)).exports if answered else []
    context = of_criterion(campaign) | {"view": AnalysisView(criterion=criterion)}
    files = [*downloads(campaign, exports, remarked=await remarks.are_there(connection, campaign))]
    context |= {"has_files": await media.has_files(connection, campaign.id)}
    return page(request, "admin/export.html", context | {"downloads": files})


def of_criterion(campaign: Any) -> dict[str, Any]:
    """A campaign for a page, and what addresses on it say of the criterion by which it is read."""
    said = criterion_in_address(campaign)
    return {"campaign": campaign, "of_criterion": said, "by": "?" + urlencode(said) if said else ""}


@router.get("/{file}")
async def download(
    database: ReadingDatabase, fits: KeptFits, slug: str, file: str, *, now: Now, criterion: CriterionName = ""
) -> StreamingResponse:
    """`items.csv`, `responses.jsonl`, ...; `.xl.csv` protects cells that a spreadsheet program would change."""
    what, _, end = file.partition(".")
    if end not in (("json",) if what == "settings" else ("csv", "xl.csv", "jsonl")):
        raise NotFound(f"There is no export “{shortened(file)}”.", code="export_not_found")
    format_: Format = "jsonl" if end == "jsonl" else "csv"
    how: dict[str, Any] = {"spreadsheet": end == "xl.csv", "fits": fits, "criterion": criterion}
    return streamed(await export(database, slug, what, format_, **how), now)


def streamed(file: Export, now: datetime) -> StreamingResponse:
    """A download that is written while it is read."""
    headers = download_headers(file.slug, file.kind, file.ending, file.criterion, now=now)
    return StreamingResponse(file.chunks, media_type=file.media_type, headers=headers)


# The analysis page


async def require_people(request: Request, who: Who) -> None:
    """What tells of single annotators, or sorts them by what they said of themselves, takes more than the address says.

    Raises `Forbidden` (`role_forbids`).
    """
    named_in = request.path_params.get("name") or request.path_params.get("section", "")
    if request.query_params.get("group") or tells_of_people(named_in):
        require_need(who, SEE_PEOPLE)


analysis = APIRouter(
    prefix="/admin/campaigns/{slug}/analysis",
    dependencies=[Depends(researcher), Depends(require_people)],
    include_in_schema=False,
)

Name = Annotated[str, Query(max_length=100)]


async def view_of(
    *,
    one: Name = "",
    other: Name = "",
    classes: Annotated[int, Query(ge=2, le=MOST_CLASSES)] = 2,
    baseline: Annotated[str, Query(max_length=1000)] = "",
    criterion: CriterionName = "",
    group: Annotated[str, Query(max_length=LONGEST_GROUP)] = "",
    table: Name = "",
    sort: Annotated[str, Query(max_length=LONGEST_GROUP + 20)] = "",
    order: Literal["up", "down"] = "down",
    page: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
    search: Annotated[str, Query(max_length=200)] = "",
) -> AnalysisView:
    return AnalysisView(one, other, classes, baseline, criterion, group, table, sort, order, page, search.strip())


Seen = Annotated[AnalysisView, Depends(view_of)]


@analysis.get("")
async def analysis_page(request: Request, database: ReadingDatabase, who: Who, slug: str, view: Seen) -> HTMLResponse:
    """All parts, empty, without a fit: our script fetches each, or one follows its link."""
    return page(request, "admin/analysis.html", await frame(database, slug, view, people=who.may(SEE_PEOPLE)))


async def frame(
    database: ReadingDatabase, slug: str, view: AnalysisView, alone: str = "", *, people: bool
) -> dict[str, Any]:
    """What stands around the parts; `alone` is the one that is shown by itself. people: whether who asks may see single
    annotators.
    """
    async with database.connect() as connection:
        campaign = named(await campaign_of_page(connection, slug), view.criterion)
        answered = await has_answers(connection, campaign)
        seen = await size(connection, campaign, ROWS)
        offer = (await offered(connection, campaign)).seen(people=people)
        groups = await choices(connection, campaign) if people else []
    expected = Expected(min(seen.items, ROWS), min(seen.annotators, ROWS), min(offer.classes or view.classes, ROWS))
    shown = parts(offer)
    shown |= {alone: parts()[alone]} if alone and alone not in shown else {}
    return of_criterion(campaign) | {
        "answered": answered,
        "view": view,
        "groups": groups,
        "alone": alone,
        "titles": {name: part.title for name, part in shown.items()},
        "rows": {name: part.room(expected) for name, part in shown.items()},
    }


@analysis.get("/figures/{name}.svg")
async def analysis_figure(
    fits: KeptFits, database: ReadingDatabase, slug: str, name: str, *, view: Seen, now: Now
) -> Response:
    """A picture of the page for papers. Refused: `figure_not_found`."""
    picture = await picture_of(fits, database, slug, name, view)
    if picture is None:
        raise NotFound(f"There is no picture of {shortened(name)} for these answers.", code="figure_not_found")
    drawn = templates.get_template("admin/_analysis_figure.xml").render(picture=picture)
    headers = download_headers(slug, name, "svg", *view.reads.values(), now=now, inline=True)
    return Response(drawn, media_type="image/svg+xml", headers=headers)


@analysis.get("/tables/{name}.csv")
async def analysis_table(
    fits: KeptFits, database: ReadingDatabase, slug: str, name: str, *, view: Seen, now: Now
) -> Response:
    """A table with all its rows and digits."""
    options = Options(view.classes, view.baseline or None)
    table = await fits.table(database, slug, name, options, **view.reads)
    columns = [column.name for column in table.columns]
    body = await asyncio.to_thread(csv_lines, columns, [columns, *table.rows])
    headers = download_headers(slug, name, "csv", *view.reads.values(), now=now)
    return Response(body, media_type=MEDIA_TYPES["csv"], headers=headers)


# What the templates of all parts may use.
WORDS = {
    "written": written,
    "between": between,
    "interval": interval,
    "correlation_axis": COEFFICIENTS,
    "most_classes": MOST_CLASSES,
}


@analysis.get("/{section}")
async def analysis_part(
    *, request: Request, fits: KeptFits, database: ReadingDatabase, who: Who, slug: str, section: str, view: Seen
) -> HTMLResponse:
    """One part: for our script as it stands on the page, else as a page of its own. Refused: `part_not_found`."""
    people = who.may(SEE_PEOPLE)
    part = parts(EVERYTHING.seen(people=people)).get(section)
    if part is None:
        raise NotFound(f"The analysis has no part “{shortened(section)}”.", code="part_not_found")
    context = await frame(database, slug, view, alone=section, people=people)
    if not context["answered"]:
        return page(request, "admin/analysis.html", context)
    context |= WORDS | {"own": part.reads, "template": part.template}
    context |= await part.content(fits, database, slug, view)
    return page(request, "admin/_analysis_part.html" if fetched(request) else "admin/analysis.html", context)
