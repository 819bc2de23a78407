"""Researchers' pages that import files: items with their media, and answers that were given elsewhere."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.accounts.guards import researcher_router
from app.background.progress_stream import ReportingJob, stream_job_progress_as_json_lines
from app.campaigns import settings_edits
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.campaigns.settings import CampaignSettings
from app.designs.content import MEDIA_FILE_NAMES, Content
from app.errors import Conflict, Invalid, NotFound, Refusal
from app.http.dependencies import (
    AppSettings,
    Database,
    Now,
    is_script_request,
    render_page,
)
from app.imports import items, responses_import
from app.imports.answer_options import AnswerFileOptions
from app.imports.columns import PRIORS_MEANING, SYSTEMS_MEANING, ColumnMapping, id_column_or_none
from app.imports.dependencies import RequestUploadSlots, media_zip_of_form_or_none, uploaded_file_or_refuse
from app.imports.id_lines import IdLines, load_id_lines_and_next_free_number
from app.imports.import_preview import ChosenColumns, UploadPreview, read_upload_preview_or_refuse
from app.imports.media_table import holds_only_media, table_of_media_or_refuse
from app.imports.named_media import missing_and_unnamed_files_report
from app.imports.pages.item_list import items_page_response
from app.imports.pasted import file_name_and_bytes_of_pasted_text
from app.imports.responses_preview import preview_responses_of_file_or_refuse
from app.media import media_store
from app.media.media_zip import MediaZip
from app.quality.check_expectations import criterion_designs
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.settings import Settings
from app.uploads import ENCODINGS, ReadOptions, can_choices_make_table_readable
from app.uploads.rows import ROW_NUMBERS_AS_IDS

router = researcher_router("/admin")

TABLE_OF_MEDIA_NAME = "files.csv"
MAX_CARRIED_FILE_BYTES = 500_000  # of a file that a page without scripts carries from the preview to the import


def uploaded_or_pasted_file_or_refuse(form_data: FormData) -> UploadFile:
    """Return the file of a form, the table that was pasted, or the file that a page without scripts carries since its
    preview.

    Raises `Invalid` (`file_missing`).
    """
    file, carried, pasted = (form_data.get(name) for name in ("file", "carried", "pasted"))
    chosen = isinstance(file, UploadFile) and bool(file.filename)
    if not chosen and isinstance(pasted, str) and pasted.strip():
        name, content = file_name_and_bytes_of_pasted_text(pasted, str(form_data.get("read_as", "")))
        return UploadFile(BytesIO(content), filename=name)
    if isinstance(carried, str) and not chosen:
        with suppress(ValueError):
            return UploadFile(BytesIO(b64decode(carried)), filename=str(form_data.get("carried_name", "")))
    return uploaded_file_or_refuse(form_data)


def table_and_media_of_form_or_refuse(form_data: FormData, settings: Settings) -> tuple[UploadFile, MediaZip | None]:
    """Return the table of a form and its zip of media, if any.

    A zip of media that comes without a table, in the field of either, gives the table too: an item for each file.
    Raises what `uploaded_or_pasted_file_or_refuse` and `table_of_media_or_refuse` raise.
    """
    media = media_zip_of_form_or_none(form_data, settings)
    try:
        file = uploaded_or_pasted_file_or_refuse(form_data)
    except Invalid:
        if media is None:
            raise
    else:
        as_media = MediaZip(file.file, settings.max_media_file_mb, settings.max_media_mb)
        if media is not None or not holds_only_media(as_media):
            return file, media
        media = as_media
    return UploadFile(BytesIO(table_of_media_or_refuse(media)), filename=TABLE_OF_MEDIA_NAME), media


def parse_prior_use_with_declined_meanings(form_data: FormData) -> tuple[bool, frozenset[str]]:
    """Return whether priors are used, and the declined meanings of columns.

    The form names the meanings it asked about (`asked`) and those that are ticked (`take`).
    """
    offered_meanings, ticked_meanings = (
        {str(value) for value in form_data.getlist(name)} for name in ("asked", "take")
    )
    return PRIORS_MEANING in ticked_meanings, frozenset(offered_meanings - ticked_meanings - {PRIORS_MEANING})


def system_columns_of_form(form_data: FormData) -> tuple[str, ...]:
    """Return the columns that the form marks as systems."""
    return tuple(str(name) for name in form_data.getlist("systems"))


def identifier_field_name(systems: Sequence[str]) -> str:
    """Return the field that names the column of ids, or of segments if columns are systems."""
    return "segment_column" if systems else "identifier"


def read_options_of_form(form_data: FormData) -> ReadOptions:
    """Return how to read the file, as the form says."""
    return ReadOptions(
        nonblank_form_text_or_none(form_data, "encoding"),
        nonblank_form_text_or_none(form_data, "quotes"),
        nonblank_form_text_or_none(form_data, "sheet"),
        nonblank_form_text_or_none(form_data, "read_as"),
    )


def parse_chosen_media_kind_or_none(form_data: FormData) -> str | None:
    """Return the kind of media as which the form shows the items of a draft; None if their type stays."""
    show_as = nonblank_form_text_or_none(form_data, "show_as")
    return show_as if show_as in MEDIA_FILE_NAMES else None


def settings_with_item_type_or_refuse(settings: CampaignSettings, kind: str) -> CampaignSettings:
    """Return the settings with another item type. Raises `Invalid` (`item_type_impossible`)."""
    try:
        return CampaignSettings.model_validate({**settings.model_dump(), "content": kind})
    except ValidationError as error:
        message = "Other settings do not allow this item type: change them first. Nothing was imported."
        raise Invalid(message, code="item_type_impossible") from error


@router.post(CAMPAIGN_PATH + "/items/preview")
async def submit_items_upload_for_preview(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str
) -> HTMLResponse:
    """Show the content of the file and its import, without storing anything; our script gets a part of a page."""
    form_data = await request.form()
    file, media = await asyncio.to_thread(table_and_media_of_form_or_refuse, form_data, settings)
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        id_lines = (
            IdLines()
            if "replace" in form_data
            else (await load_id_lines_and_next_free_number(connection, campaign.id))[0]
        )
        files_here = (
            await media_store.load_file_types_total_size_and_next_number(connection, campaign.id)
        ).content_type_by_name
    carried_bytes = file.file.read() if file.size is not None and file.size <= MAX_CARRIED_FILE_BYTES else b""
    show_as = parse_chosen_media_kind_or_none(form_data) if campaign.status == "draft" else None
    content = Content.from_campaign(campaign)
    build_preview = partial(
        read_upload_preview_or_refuse,
        law=campaign.law,
        content=replace(content, kind=show_as) if show_as else content,
        designs=criterion_designs(campaign),
        id_lines=id_lines,
        max_mb=settings.max_upload_mb,
    )
    async with slots.holding_slot_if_file_is_large(file.file, *([media.file] if media else [])):
        preview_context = await preview_context_or_unreadable_context(build_preview, form_data, file)
        if "described" in preview_context:
            preview_context["files"] = await asyncio.to_thread(
                missing_and_unnamed_files_report, preview_context["described"].files, media, files_here
            )
    preview_context |= {"show_as": show_as, "read_as": nonblank_form_text_or_none(form_data, "read_as")}
    if is_script_request(request):
        return render_page(
            request, "admin/_preview.html", preview_context | {"row_numbers": ROW_NUMBERS_AS_IDS, "campaign": campaign}
        )
    carried = {"name": file.filename, "content": b64encode(carried_bytes).decode()} if carried_bytes else None
    async with database.begin() as connection:
        return await items_page_response(
            request,
            connection,
            slug,
            carried=carried,
            pasted=nonblank_form_text_or_none(form_data, "pasted"),
            **preview_context,
        )


async def preview_context_or_unreadable_context(
    build_preview: Callable[..., UploadPreview], form_data: FormData, file: UploadFile
) -> dict[str, Any]:
    """Return the preview of a file as `described`, or its refusal as `unreadable` if options can make it readable.

    Columns that were chosen while the file was read in another way do not count. Raises the other refusals.
    """
    has_same_columns = form_data.get("previewed_as", form_data.get("read_as")) == form_data.get("read_as")
    systems = system_columns_of_form(form_data) if has_same_columns else ()
    identifier, shown, template = (
        nonblank_form_text_or_none(form_data, name) if has_same_columns else None
        for name in (identifier_field_name(systems), "shown", "template")
    )
    chosen_columns = ChosenColumns(
        identifier, shown, template, *parse_prior_use_with_declined_meanings(form_data), systems=systems
    )
    try:
        upload_preview = await asyncio.to_thread(
            build_preview, file.file, file.filename or "", chosen_columns, read_options=read_options_of_form(form_data)
        )
    except Refusal as refusal:
        message = refusal.message.replace(" Nothing was imported.", "")  # nobody asked for that yet
        preview_refusal = type(refusal)(message, code=refusal.code, **refusal.details)
        if not (isinstance(preview_refusal, Invalid) and can_choices_make_table_readable(preview_refusal)):
            raise preview_refusal from None
        return {"unreadable": preview_refusal}
    return {"described": upload_preview, "encodings": ENCODINGS}


@router.post(CAMPAIGN_PATH + "/items")
async def submit_items_import(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str
) -> Response:
    """Import a file: all of its items or none."""
    form_data = await request.form()

    async def job(progress: Callable[[int], None]) -> str:
        file, media = await asyncio.to_thread(table_and_media_of_form_or_refuse, form_data, settings)
        slot = slots.holding_slot_if_file_is_large(file.file, *([media.file] if media else []))
        shown, template = (
            nonblank_form_text_or_none(form_data, "shown"),
            nonblank_form_text_or_none(form_data, "template"),
        )
        systems, meanings = system_columns_of_form(form_data), parse_prior_use_with_declined_meanings(form_data)
        identifier = id_column_or_none(nonblank_form_text_or_none(form_data, identifier_field_name(systems)) or "id")
        async with slot, database.begin() as connection:
            if show_as := parse_chosen_media_kind_or_none(form_data):
                await settings_edits.store_changed_settings_or_refuse(
                    connection, slug, partial(settings_with_item_type_or_refuse, kind=show_as)
                )
            receipt = await items.import_items_and_return_receipt(
                connection,
                slug,
                file.file,
                file.filename or "",
                mapping=ColumnMapping(identifier, shown, template, *meanings, systems=systems),
                read_options=read_options_of_form(form_data),
                replace="replace" in form_data,
                max_mb=settings.max_upload_mb,
                media=media,
                progress=progress,
            )
        progress(receipt.imported)
        return campaign_page_url(slug, "/items", notice="imported")

    return await import_progress_or_redirect_response(request, database, slug, job)


@router.post(CAMPAIGN_PATH + "/items/gold")
async def submit_checks_import(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str
) -> Response:
    """Import a table of gold or attention items: all of its rows or none."""
    form_data = await request.form()
    kind = nonblank_form_text_or_none(form_data, "kind") or "gold"
    try:
        file = uploaded_or_pasted_file_or_refuse(form_data)
        async with slots.holding_slot_if_file_is_large(file.file), database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            ignored = frozenset[str]() if campaign.segment_count else frozenset({SYSTEMS_MEANING})
            mapping = ColumnMapping(ignored=ignored, check_kind=kind)
            await items.import_items_and_return_receipt(
                connection,
                slug,
                file.file,
                file.filename or "",
                mapping=mapping,
                read_options=read_options_of_form(form_data),
                max_mb=settings.max_upload_mb,
            )
    except NotFound:
        raise
    except Refusal as refusal:
        entered_checks = {
            "kind": kind,
            "pasted": nonblank_form_text_or_none(form_data, "pasted"),
            "sheet": nonblank_form_text_or_none(form_data, "sheet"),
        }
        async with database.begin() as connection:
            return await items_page_response(
                request, connection, slug,
                status=refusal.status, check_refusal=refusal, entered_checks=entered_checks,
            )  # fmt: skip
    return redirect_to(campaign_page_url(slug, "/items", notice="imported"))


@router.post(CAMPAIGN_PATH + "/responses/preview")
async def submit_responses_for_preview(
    *, request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str, now: Now
) -> HTMLResponse:
    """Show what the first values of a file would become, without storing anything; our script gets a part of a page."""
    form_data = await request.form()
    file = uploaded_or_pasted_file_or_refuse(form_data)
    carried_bytes = file.file.read() if file.size is not None and file.size <= MAX_CARRIED_FILE_BYTES else b""
    file.file.seek(0)
    refusal, preview = None, None
    try:
        options = AnswerFileOptions.from_form_or_refuse(form_data).reading_options
        async with slots.holding_slot_if_file_is_large(file.file):
            preview = await preview_responses_of_file_or_refuse(
                database, slug, file.file, file.filename or "", now=now, max_mb=settings.max_upload_mb, options=options
            )
    except (Invalid, Conflict) as problem:
        if is_script_request(request):
            raise
        refusal = problem
    if is_script_request(request):
        return render_page(request, "admin/_responses_preview.html", {"answers_preview": preview})
    carried = {"name": file.filename, "content": b64encode(carried_bytes).decode()} if carried_bytes else None
    async with database.begin() as connection:
        return await items_page_response(
            request,
            connection,
            slug,
            refusal=refusal,
            carried_answers=carried,
            answers_preview=preview,
            answer_options=entered_and_proposed_option_by_name(form_data, refusal),
        )


@router.post(CAMPAIGN_PATH + "/responses")
async def submit_responses_import(
    *, request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, slug: str, now: Now
) -> Response:
    """Import a file of answers as responses, with progress as for items."""
    form_data = await request.form()

    async def job(progress: Callable[[int], None]) -> str:
        file, options = uploaded_or_pasted_file_or_refuse(form_data), AnswerFileOptions.from_form_or_refuse(form_data)
        async with slots.holding_slot_if_file_is_large(file.file):
            imported = await responses_import.import_responses_of_file_and_return_receipt(
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

    return await import_progress_or_redirect_response(request, database, slug, job, form_data)


async def import_progress_or_redirect_response(
    request: Request, database: Database, slug: str, job: ReportingJob[str], form_data: FormData | None = None
) -> Response:
    """Run an import and redirect to the address that it returns.

    Our script gets the progress line by line; a browser without it gets a page at the end.
    """
    if is_script_request(request):
        return StreamingResponse(stream_job_progress_as_json_lines(job), media_type="application/x-ndjson")
    try:
        next_url = await job(lambda _rows: None)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await items_page_response(
                request,
                connection,
                slug,
                refusal=refusal,
                answer_options=entered_and_proposed_option_by_name(form_data, refusal),
            )
    return redirect_to(next_url)


def entered_and_proposed_option_by_name(form_data: FormData | None, refusal: Refusal | None) -> dict[str, str]:
    """Return the options of a form for a file of answers, and the columns that its refusal proposes."""
    entered_values = (
        {name: nonblank_form_text_or_none(form_data, name) for name in AnswerFileOptions.model_fields}
        if form_data
        else {}
    )
    proposal = refusal.details.get("proposal", {}) if refusal else {}
    return dict(proposal) | {name: value for name, value in entered_values.items() if value}


def nonblank_form_text_or_none(form_data: FormData, field_name: str) -> str | None:
    """Return a field's text, None if it is empty; of column and template only the chosen one counts."""
    value = form_data.get(field_name)
    unchosen_fields = {"shown", "template"} - {form_data.get("show_by", field_name)}
    if not isinstance(value, str) or not value.strip() or field_name in unchosen_fields:
        return None
    return value if field_name == "template" else value.strip()
