"""Researchers' pages that bring files in: items with their media, and answers that were given elsewhere."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.auth.guards import researcher
from app.campaigns import items, lifecycle, listing, marking, responses_import
from app.campaigns.answer_options import AnswerFileOptions
from app.campaigns.columns import PRIORS, ROW_NUMBERS, Matching, column_of_ids
from app.campaigns.described import ChosenColumns, Description, describe
from app.campaigns.named_media import report_files
from app.campaigns.progress import Job, progress_lines
from app.campaigns.routes import CAMPAIGN, Slots, address, see_other, uploaded
from app.campaigns.segment_table import segments_page
from app.crowd.columns import MAPPED
from app.crowd.registry import with_results
from app.designs.content import KINDS, Content
from app.designs.criteria import named
from app.designs.numbers import whole_number
from app.designs.registry import design_of
from app.designs.written import WrittenByCriterion
from app.errors import Invalid, Refusal
from app.media import store
from app.media.archive import Packed
from app.record.law import law_of
from app.settings import Settings
from app.templating import sanitised
from app.upload import ENCODINGS, MOST_ROWS, ReadAs, can_be_read
from app.web import AppSettings, Database, Entered, Now, Transaction, allow_links, fetched, page

router = APIRouter(prefix="/admin", dependencies=[Depends(researcher)], include_in_schema=False)

ITEMS_PER_PAGE = 50
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "importing-responses.md"
MOST_CARRIED = 500_000  # bytes of a file that a page without scripts keeps from its rows to its import


@router.get("/importing-responses")
async def guide_to_responses(request: Request) -> HTMLResponse:
    """The page of the documentation."""
    return page(request, "admin/guide.html", {"guide": sanitised(GUIDE.read_text("utf-8"))})


@router.get(CAMPAIGN + "/items")
async def items_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    page: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1,
    segment: Annotated[str, Query(max_length=1000)] = "",
    criterion: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    return await show_items(request, connection, slug, number=page, segment=segment, criterion=criterion)


async def show_items(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    number: int = 1,
    segment: str = "",
    criterion: str = "",
    refusal: Refusal | None = None,
    not_marked: Refusal | None = None,
    **more: Any,
) -> HTMLResponse:
    """The upload form while the campaign is a draft, and a page of the items it has; beyond the last one, the last. Of
    systems a page of their segments by a criterion, and the `segment` that is looked at.
    """
    campaign = await lifecycle.find_for_page(connection, slug)
    read_by = named(campaign, criterion)
    segments = await segments_page(connection, read_by, number, segment) if campaign.segment_count else None
    number = 1 if segments else number
    pages = max(1, -(-campaign.item_count // ITEMS_PER_PAGE))
    number = min(number, pages)
    offset = (number - 1) * ITEMS_PER_PAGE
    total, rows = await listing.items_of(connection, campaign.id, offset=offset, limit=ITEMS_PER_PAGE)
    context = {"campaign": campaign, "total": total, "items": rows, "number": number, "pages": pages}
    limits: Settings = request.app.state.settings
    context |= {"refusal": refusal, "max_mb": limits.max_upload_mb, "limits": limits, "kind": KINDS[campaign.content]}
    drawn, reports = await listing.as_shown(connection, campaign, rows)
    allow_links(request, campaign)
    context |= {"segments": segments, "drawn": drawn, "reports": reports}
    ids = [row.external_id for row in rows[: campaign.items_per_hit]]
    context |= {"row_numbers": ROW_NUMBERS, "prior_columns": law_of(campaign).family.parameter_names}
    if request.query_params.get("done") == "imported":
        context["receipt"] = await items.last_import(connection, campaign.id)
    context |= more | {"imported": imported_lately(request), "platforms": [it for it, _ in with_results()]}
    of = segments.rows[0].segment.external_id if segments else None
    context |= {"written": WrittenByCriterion(campaign), "example": responses_import.example(campaign, ids, of)}
    context |= {"not_marked": not_marked, "design": design_of(campaign)}
    context |= {"answer_fields": AnswerFileOptions.model_fields, "mapped": MAPPED}
    refused = refusal or not_marked
    return page(request, "admin/items.html", context, status=refused.status if refused else 200)


def imported_lately(request: Request) -> list[str]:
    """What the import of responses did that led here, in words."""
    try:
        done = responses_import.ImportedResponses.model_validate(dict(request.query_params))
    except ValidationError:  # somebody changed the address
        return []
    return responses_import.sentences(done) if done.model_fields_set else []


def uploaded_or_carried(form_data: FormData) -> UploadFile:
    """The file of a form, or the one that a page without scripts has kept since its rows were looked at.

    Raises `Invalid` (`file_missing`).
    """
    file, carried = form_data.get("file"), form_data.get("carried")
    chosen = isinstance(file, UploadFile) and bool(file.filename)
    if isinstance(carried, str) and not chosen:
        with suppress(ValueError):
            return UploadFile(BytesIO(b64decode(carried)), filename=str(form_data.get("carried_name", "")))
    return uploaded(form_data)


def packed(form_data: FormData, settings: Settings) -> Packed | None:
    """The zip of media that may come with the items."""
    file = form_data.get("media")
    if not isinstance(file, UploadFile) or not file.filename:
        return None
    skip = "skip_unnamed" in form_data
    return Packed(file.file, settings.max_media_file_mb, settings.max_media_mb, skip_unnamed=skip)


def meanings_in(form_data: FormData) -> tuple[bool, frozenset[str]]:
    """Whether priors are taken, and the meanings of columns that were declined: the form names those it asked about
    (`asked`) and those that are ticked (`take`).
    """
    asked, taken = ({str(value) for value in form_data.getlist(name)} for name in ("asked", "take"))
    return PRIORS in taken, frozenset(asked - taken - {PRIORS})


def read_as_in(form_data: FormData) -> ReadAs:
    """Return how the file is to be read, as the form says."""
    return ReadAs(text_in(form_data, "encoding"), text_in(form_data, "quotes"))


@router.post(CAMPAIGN + "/items/preview")
async def preview(request: Request, database: Database, settings: AppSettings, slots: Slots, slug: str) -> HTMLResponse:
    """What is in the file and what an import would make of it; for our script a part of a page. Nothing is stored."""
    form_data = await request.form()
    file = uploaded_or_carried(form_data)
    async with database.begin() as connection:
        campaign = await lifecycle.find(connection, slug)
        taken = set() if "replace" in form_data else (await items.already_there(connection, campaign.id))[0]
        files_here = (await store.known_files(connection, campaign.id)).types
    small = file.file.read() if file.size is not None and file.size <= MOST_CARRIED else b""
    described = partial(
        describe,
        law=law_of(campaign),
        content=Content.of(campaign),
        design=design_of(campaign),
        taken=taken,
        max_mb=settings.max_upload_mb,
    )
    media = packed(form_data, settings)
    async with slots.hold(file.file, *([media.file] if media else [])):
        found = await preview_file(described, form_data, file)
        if "described" in found:
            found["files"] = await asyncio.to_thread(report_files, found["described"].files, media, files_here)
    if fetched(request):
        return page(request, "admin/_preview.html", found | {"row_numbers": ROW_NUMBERS})
    carried = {"name": file.filename, "content": b64encode(small).decode()} if small else None
    async with database.begin() as connection:
        return await show_items(request, connection, slug, carried=carried, **found)


async def preview_file(described: Callable[..., Description], form_data: FormData, file: UploadFile) -> dict[str, Any]:
    """Return the description of a file, as `described`; or as `unreadable` the refusal of one that can be read if it
    is said how.
    """
    identifier, shown, template = (text_in(form_data, name) for name in ("identifier", "shown", "template"))
    chosen = ChosenColumns(identifier, shown, template, *meanings_in(form_data))
    try:
        found = await asyncio.to_thread(
            described, file.file, file.filename or "", chosen, read_as=read_as_in(form_data)
        )
    except Invalid as refusal:
        if not can_be_read(refusal):
            raise
        return {"unreadable": refusal}
    return {"described": found, "encodings": ENCODINGS}


@router.post(CAMPAIGN + "/items")
async def import_items(
    request: Request, database: Database, settings: AppSettings, slots: Slots, slug: str
) -> Response:
    """Import a file: all of its items or none."""
    form_data = await request.form()

    async def job(progress: Callable[[int], None]) -> str:
        file, media = uploaded_or_carried(form_data), packed(form_data, settings)
        heavy = slots.hold(file.file, *([media.file] if media else []))
        shown, template = text_in(form_data, "shown"), text_in(form_data, "template")
        identifier = column_of_ids(text_in(form_data, "identifier") or "id")
        async with heavy, database.begin() as connection:
            done = await items.import_items(
                connection,
                slug,
                file.file,
                file.filename or "",
                matching=Matching(identifier, shown, template, *meanings_in(form_data)),
                read_as=read_as_in(form_data),
                replace="replace" in form_data,
                max_mb=settings.max_upload_mb,
                media=media,
                progress=progress,
            )
        progress(done.imported)
        return address(slug, "/items", done="imported")

    return await followed(request, database, slug, job)


@router.post(CAMPAIGN + "/items/mark")
async def mark_item(request: Request, form: Entered, database: Database, slug: str) -> Response:
    """Make one of the items a check; its page again, to mark others."""
    said = {name: form.get(name, "").strip() for name in ("kind", "expected", "tolerance")}
    number = whole_number(form.get("page"), most=MOST_ROWS) or 1
    try:
        async with database.begin() as connection:
            await marking.mark(connection, slug, form.get("item", ""), **said)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await show_items(request, connection, slug, number=number, not_marked=refusal, entered=form)
    return see_other(address(slug, "/items", done="marked") + f"&page={number}#mark")


@router.post(CAMPAIGN + "/items/unmark")
async def unmark_item(form: Entered, connection: Transaction, slug: str) -> Response:
    """Make a check an item again."""
    await marking.unmark(connection, slug, form.get("item", ""))
    return see_other(address(slug, "/checks", done="unmarked"))


@router.post(CAMPAIGN + "/responses")
async def import_responses(
    *, request: Request, database: Database, settings: AppSettings, slots: Slots, slug: str, now: Now
) -> Response:
    """Import a file of answers as responses. Progress as for items."""
    form_data = await request.form()

    async def job(progress: Callable[[int], None]) -> str:
        file, options = uploaded(form_data), AnswerFileOptions.entered(form_data)
        async with slots.hold(file.file):
            imported = await responses_import.import_results(
                database,
                slug,
                file.file,
                file.filename or "",
                now=now,
                max_mb=settings.max_upload_mb,
                options=options.reading,
                progress=progress,
                looks=request.app.state.looks.ask,
            )
        return address(slug, "/items", done="responses") + "&" + urlencode(imported.model_dump())

    return await followed(request, database, slug, job, form_data)


async def followed(
    request: Request, database: Database, slug: str, job: Job[str], form_data: FormData | None = None
) -> Response:
    """Run an import; where it leads is the address to go on at.

    Our script is told of the progress, line by line; a browser without it gets a page at the end.
    """
    if fetched(request):
        return StreamingResponse(progress_lines(job), media_type="application/x-ndjson")
    try:
        done = await job(lambda _rows: None)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await show_items(
                request, connection, slug, refusal=refusal, answer_options=answer_fields_entered(form_data, refusal)
            )
    return see_other(done)


def answer_fields_entered(form_data: FormData | None, refusal: Refusal) -> dict[str, str]:
    """Return the options that a form gave for a file of answers, and the columns that its refusal proposes."""
    said = {name: text_in(form_data, name) for name in AnswerFileOptions.model_fields} if form_data else {}
    return dict(refusal.details.get("proposal", {})) | {name: value for name, value in said.items() if value}


def text_in(form_data: FormData, name: str) -> str | None:
    """A field's text, None if it is empty; of column or template only the chosen one counts."""
    value = form_data.get(name)
    others = {"shown", "template"} - {form_data.get("show_by", name)}
    if not isinstance(value, str) or not value.strip() or name in others:
        return None
    return value if name == "template" else value.strip()
