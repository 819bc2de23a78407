"""Researchers' pages that import files: items with their media, and answers that were given elsewhere."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.accounts.guards import researcher_router
from app.annotation.platforms.column_mapping import COLUMN_ROLES
from app.annotation.platforms.registry import platforms_with_result_files
from app.background.progress_stream import ReportingJob, stream_job_progress
from app.campaigns import item_list
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.designs.campaign import Campaign
from app.designs.content import CONTENT_KINDS, Content
from app.designs.file_format import CriterionValueFormat
from app.designs.number_parsing import parse_nonnegative_int
from app.errors import Invalid, Refusal
from app.http.dependencies import (
    AppSettings,
    Database,
    FormFields,
    Now,
    Transaction,
    allow_external_media,
    is_script_request,
    render_page,
)
from app.http.paging import Page
from app.imports import items, mark_checks, responses_import
from app.imports.answer_options import AnswerFileOptions
from app.imports.columns import PRIORS_MEANING, ColumnMapping, id_column_or_none
from app.imports.dependencies import RequestUploadSlots, require_uploaded_file, uploaded_media_zip
from app.imports.import_preview import ChosenColumns, UploadPreview, preview_uploaded_file
from app.imports.named_media import report_missing_and_unnamed_files
from app.imports.segment_table import load_segments_page
from app.media import media_store
from app.record.campaign import load_campaign_by_slug, load_campaign_for_page
from app.settings import Settings
from app.uploads import ENCODINGS, MAX_UPLOAD_ROWS, ReadOptions, can_be_read
from app.uploads.rows import ROW_NUMBERS_AS_IDS

router = researcher_router("/admin")

LISTED_ITEMS_PER_PAGE = 50
MAX_CARRIED_FILE_BYTES = 500_000  # of a file that a page without scripts carries from the preview to the import


@router.get(CAMPAIGN_PATH + "/items")
async def campaign_items_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    page: Annotated[int, Query(ge=1, le=MAX_UPLOAD_ROWS)] = 1,
    segment: Annotated[str, Query(max_length=1000)] = "",
    criterion: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    return await render_items_page(request, connection, slug, page_number=page, segment=segment, criterion=criterion)


async def render_items_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    page_number: int = 1,
    segment: str = "",
    criterion: str = "",
    refusal: Refusal | None = None,
    marking_refusal: Refusal | None = None,
    **more_context: Any,
) -> HTMLResponse:
    """Show a page of the items, with the upload form while the campaign is a draft; beyond the last page, the last one.

    For systems, show a page of their segments by a criterion, and the chosen `segment` with its outputs.
    """
    campaign = await load_campaign_for_page(connection, slug)
    segments = (
        await load_segments_page(connection, campaign.find_criterion(criterion), page_number, segment)
        if campaign.segment_count
        else None
    )
    page: Page[Any] = Page(1 if segments else page_number, LISTED_ITEMS_PER_PAGE, campaign.item_count)
    total, rows = await item_list.load_item_total_and_page(connection, campaign.id, offset=page.offset, limit=page.size)
    context = {"campaign": campaign, "total": total, "items": rows, "page": page}
    limits: Settings = request.app.state.settings
    context |= {
        "refusal": refusal,
        "max_mb": limits.max_upload_mb,
        "limits": limits,
        "kind": CONTENT_KINDS[campaign.content],
    }
    drawn_items, reports = await item_list.draw_items_with_report_counts(connection, campaign, rows)
    allow_external_media(request, campaign)
    context |= {"segments": segments, "rendered": drawn_items, "reports": reports}
    ids = [row.external_id for row in rows[: campaign.items_per_hit]]
    context |= {"row_numbers": ROW_NUMBERS_AS_IDS, "prior_columns": campaign.law.family.parameter_names}
    if request.query_params.get("done") == "imported":
        context["receipt"] = await items.load_last_import_receipt(connection, campaign.id)
    segment_id = segments.page.rows[0].segment.external_id if segments else None
    context |= more_context | responses_form_context(request, campaign, ids, segment_id)
    context |= {"not_marked": marking_refusal, "design": campaign.design}
    any_refusal = refusal or marking_refusal
    return render_page(request, "admin/items.html", context, status=any_refusal.status if any_refusal else 200)


def responses_form_context(
    request: Request, campaign: Campaign, example_item_ids: Sequence[str], segment_id: str | None
) -> dict[str, Any]:
    """Return the context of the form that imports answers, with an example file about these items."""
    return {
        "imported": receipt_sentences_of_query(request),
        "platforms": [platform for platform, _ in platforms_with_result_files()],
        "answer_format": CriterionValueFormat(campaign),
        "example": responses_import.example_responses_csv(campaign, example_item_ids, segment_id),
        "answer_fields": AnswerFileOptions.model_fields,
        "mapped": COLUMN_ROLES,
    }


def receipt_sentences_of_query(request: Request) -> list[str]:
    """Return the receipt of the import of responses that redirected here, in sentences."""
    try:
        receipt = responses_import.ResponseImportReceipt.model_validate(dict(request.query_params))
    except ValidationError:  # the address was edited by hand
        return []
    return responses_import.response_receipt_sentences(receipt) if receipt.model_fields_set else []


def require_uploaded_or_carried_file(form_data: FormData) -> UploadFile:
    """Return the file of a form, or the one that a page without scripts carries since its preview.

    Raises `Invalid` (`file_missing`).
    """
    file, carried = form_data.get("file"), form_data.get("carried")
    chosen = isinstance(file, UploadFile) and bool(file.filename)
    if isinstance(carried, str) and not chosen:
        with suppress(ValueError):
            return UploadFile(BytesIO(b64decode(carried)), filename=str(form_data.get("carried_name", "")))
    return require_uploaded_file(form_data)


def read_use_of_priors_and_ignored_meanings(form_data: FormData) -> tuple[bool, frozenset[str]]:
    """Return whether priors are used, and the declined meanings of columns.

    The form names the meanings it asked about (`asked`) and those that are ticked (`take`).
    """
    offered_meanings, ticked_meanings = (
        {str(value) for value in form_data.getlist(name)} for name in ("asked", "take")
    )
    return PRIORS_MEANING in ticked_meanings, frozenset(offered_meanings - ticked_meanings - {PRIORS_MEANING})


def read_options_of_form(form_data: FormData) -> ReadOptions:
    """Return how to read the file, as the form says."""
    return ReadOptions(form_text(form_data, "encoding"), form_text(form_data, "quotes"))


@router.post(CAMPAIGN_PATH + "/items/preview")
async def preview_items_upload(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str
) -> HTMLResponse:
    """Show the content of the file and its import, without storing anything; our script gets a part of a page."""
    form_data = await request.form()
    file = require_uploaded_or_carried_file(form_data)
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug(connection, slug)
        existing_ids = (
            set()
            if "replace" in form_data
            else (await items.load_existing_ids_and_next_number(connection, campaign.id))[0]
        )
        files_here = (await media_store.load_media_types_and_totals(connection, campaign.id)).content_type_by_name
    carried_bytes = file.file.read() if file.size is not None and file.size <= MAX_CARRIED_FILE_BYTES else b""
    build_preview = partial(
        preview_uploaded_file,
        law=campaign.law,
        content=Content.from_campaign(campaign),
        design=campaign.design,
        existing_ids=existing_ids,
        max_mb=settings.max_upload_mb,
    )
    media = uploaded_media_zip(form_data, settings)
    async with slots.hold_slot(file.file, *([media.file] if media else [])):
        preview_context = await preview_context_of_file(build_preview, form_data, file)
        if "described" in preview_context:
            preview_context["files"] = await asyncio.to_thread(
                report_missing_and_unnamed_files, preview_context["described"].files, media, files_here
            )
    if is_script_request(request):
        return render_page(request, "admin/_preview.html", preview_context | {"row_numbers": ROW_NUMBERS_AS_IDS})
    carried = {"name": file.filename, "content": b64encode(carried_bytes).decode()} if carried_bytes else None
    async with database.begin() as connection:
        return await render_items_page(request, connection, slug, carried=carried, **preview_context)


async def preview_context_of_file(
    build_preview: Callable[..., UploadPreview], form_data: FormData, file: UploadFile
) -> dict[str, Any]:
    """Return the preview of a file as `described`, or its refusal as `unreadable` if options can make it readable."""
    identifier, shown, template = (form_text(form_data, name) for name in ("identifier", "shown", "template"))
    chosen_columns = ChosenColumns(identifier, shown, template, *read_use_of_priors_and_ignored_meanings(form_data))
    try:
        upload_preview = await asyncio.to_thread(
            build_preview, file.file, file.filename or "", chosen_columns, read_options=read_options_of_form(form_data)
        )
    except Invalid as refusal:
        if not can_be_read(refusal):
            raise
        return {"unreadable": refusal}
    return {"described": upload_preview, "encodings": ENCODINGS}


@router.post(CAMPAIGN_PATH + "/items")
async def import_items_from_page(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str
) -> Response:
    """Import a file: all of its items or none."""
    form_data = await request.form()

    async def job(progress: Callable[[int], None]) -> str:
        file, media = require_uploaded_or_carried_file(form_data), uploaded_media_zip(form_data, settings)
        slot = slots.hold_slot(file.file, *([media.file] if media else []))
        shown, template = form_text(form_data, "shown"), form_text(form_data, "template")
        identifier = id_column_or_none(form_text(form_data, "identifier") or "id")
        async with slot, database.begin() as connection:
            receipt = await items.import_items(
                connection,
                slug,
                file.file,
                file.filename or "",
                mapping=ColumnMapping(identifier, shown, template, *read_use_of_priors_and_ignored_meanings(form_data)),
                read_options=read_options_of_form(form_data),
                replace="replace" in form_data,
                max_mb=settings.max_upload_mb,
                media=media,
                progress=progress,
            )
        progress(receipt.imported)
        return campaign_page_url(slug, "/items", notice="imported")

    return await run_import_job(request, database, slug, job)


@router.post(CAMPAIGN_PATH + "/items/mark")
async def mark_item_from_page(request: Request, form_values: FormFields, database: Database, slug: str) -> Response:
    """Make one of the items a check, and show its page again."""
    check_values = {name: form_values.get(name, "").strip() for name in ("kind", "expected", "tolerance")}
    page_number = parse_nonnegative_int(form_values.get("page"), maximum=MAX_UPLOAD_ROWS) or 1
    try:
        async with database.begin() as connection:
            await mark_checks.mark_item_as_check(connection, slug, form_values.get("item", ""), **check_values)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_items_page(
                request, connection, slug, page_number=page_number, marking_refusal=refusal, entered=form_values
            )
    return redirect_to(campaign_page_url(slug, "/items", notice="marked") + f"&page={page_number}#mark")


@router.post(CAMPAIGN_PATH + "/items/unmark")
async def unmark_check_from_page(form_values: FormFields, connection: Transaction, slug: str) -> Response:
    """Make a check an item again."""
    await mark_checks.turn_check_into_item(connection, slug, form_values.get("item", ""))
    return redirect_to(campaign_page_url(slug, "/checks", notice="unmarked"))


@router.post(CAMPAIGN_PATH + "/responses")
async def import_responses_from_page(
    *, request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str, now: Now
) -> Response:
    """Import a file of answers as responses, with progress as for items."""
    form_data = await request.form()

    async def job(progress: Callable[[int], None]) -> str:
        file, options = require_uploaded_file(form_data), AnswerFileOptions.from_form(form_data)
        async with slots.hold_slot(file.file):
            imported = await responses_import.import_responses_from_file(
                database,
                slug,
                file.file,
                file.filename or "",
                now=now,
                max_mb=settings.max_upload_mb,
                options=options.reading_options,
                progress=progress,
                request_scan=request.app.state.campaign_monitor.request_scan,
            )
        return campaign_page_url(slug, "/items", notice="responses") + "&" + urlencode(imported.model_dump())

    return await run_import_job(request, database, slug, job, form_data)


async def run_import_job(
    request: Request, database: Database, slug: str, job: ReportingJob[str], form_data: FormData | None = None
) -> Response:
    """Run an import and redirect to the address that it returns.

    Our script gets the progress line by line; a browser without it gets a page at the end.
    """
    if is_script_request(request):
        return StreamingResponse(stream_job_progress(job), media_type="application/x-ndjson")
    try:
        next_url = await job(lambda _rows: None)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_items_page(
                request,
                connection,
                slug,
                refusal=refusal,
                answer_options=entered_and_proposed_options(form_data, refusal),
            )
    return redirect_to(next_url)


def entered_and_proposed_options(form_data: FormData | None, refusal: Refusal) -> dict[str, str]:
    """Return the options of a form for a file of answers, and the columns that its refusal proposes."""
    entered_values = {name: form_text(form_data, name) for name in AnswerFileOptions.model_fields} if form_data else {}
    return dict(refusal.details.get("proposal", {})) | {name: value for name, value in entered_values.items() if value}


def form_text(form_data: FormData, field_name: str) -> str | None:
    """Return a field's text, None if it is empty; of column and template only the chosen one counts."""
    value = form_data.get(field_name)
    unchosen_fields = {"shown", "template"} - {form_data.get("show_by", field_name)}
    if not isinstance(value, str) or not value.strip() or field_name in unchosen_fields:
        return None
    return value if field_name == "template" else value.strip()
