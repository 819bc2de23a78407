"""Researchers' downloads."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from app.analysis.export import Export, Format, export, has_beta
from app.analysis.fits import Fits
from app.auth.guards import researcher
from app.database.campaign import campaign_by_slug
from app.errors import NotFound
from app.web import ReadingDatabase, Transaction, page

router = APIRouter(prefix="/admin/campaigns/{slug}/export", dependencies=[Depends(researcher)], include_in_schema=False)


async def get_fits(request: Request) -> Fits:
    fits: Fits = request.app.state.fits
    return fits


KeptFits = Annotated[Fits, Depends(get_fits)]

TABLES = (("csv", "CSV"), ("xl.csv", "CSV for Excel"), ("jsonl", "JSONL"))


def downloads(campaign: Any) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """(title, contents, [(file, words)]) of what this campaign can export now."""
    if campaign.status != "draft":
        words = "Every item with its uploaded columns, posterior, score, variance, 95 % interval and judgments."
        yield "Items", words, [(f"items.{end}", title) for end, title in TABLES]
    words = "One row for each item of each answer: annotator, score, rank, HIT, position, times, kind of input."
    yield "Responses", words, [(f"responses.{end}", title) for end, title in TABLES]
    words = (
        "One row for each arrival: annotator, the platform's assignment, HITs answered, when they arrived and ended."
    )
    yield "Assignments", words, [(f"assignments.{end}", title) for end, title in TABLES]
    if campaign.status != "draft":
        words = "Every item with its score and 95 % interval by every method of analysis. Large campaigns take minutes."
        yield "Scores", words, [(f"scores.{end}", title) for end, title in TABLES]
        words = "Dawid and Skene’s label of every item, scores cut at 50 points: its confidence and uncertainty."
        yield "Labels of items", words, [(f"item_labels.{end}", title) for end, title in TABLES]
        words = "The label of every judgment with the confidence that it is right, and the label of its item."
        yield "Labels of judgments", words, [(f"labels.{end}", title) for end, title in TABLES]
    yield "Settings", "Everything needed to set this campaign up again.", [("settings.json", "JSON")]
    if campaign.status != "draft" and has_beta(campaign):
        yield (
            "EASL file",
            "The item file of the released EASL program: your columns, then alpha, beta, mode, var.",
            [("easl.csv", "CSV")],
        )


@router.get("")
async def export_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    campaign = await campaign_by_slug(connection, slug)
    return page(request, "admin/export.html", {"campaign": campaign, "downloads": list(downloads(campaign))})


@router.get("/{file}")
async def download(database: ReadingDatabase, fits: KeptFits, slug: str, file: str) -> StreamingResponse:
    """`items.csv`, `responses.jsonl`, ...; `.xl.csv` is guarded against cells that a spreadsheet takes for formulas."""
    what, _, end = file.partition(".")
    if end not in (("json",) if what == "settings" else ("csv", "xl.csv", "jsonl")):
        raise NotFound(f"There is no export “{file}”.", code="export_not_found")
    format_: Format = "jsonl" if end == "jsonl" else "csv"
    return streamed(await export(database, slug, what, format_, spreadsheet=end == "xl.csv", fits=fits))


def streamed(file: Export) -> StreamingResponse:
    """A download that is written while it is read."""
    headers = {"Content-Disposition": f'attachment; filename="{file.filename}"'}
    return StreamingResponse(file.chunks, media_type=file.media_type, headers=headers)
