"""Researchers' pages that create a campaign from a file, and that send a campaign as a file."""

import asyncio
from datetime import datetime
from os import SEEK_END
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from starlette.datastructures import FormData, UploadFile

from app.accounts.guards import require_researcher
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.campaigns.starter_questions import load_questions
from app.designs.registry import DESIGNS
from app.errors import Invalid, Refusal
from app.http.dependencies import AppSettings, Database, Now, Transaction, download_headers, render_page
from app.imports import campaign_file_io, campaign_zip
from app.imports.upload_slots import UploadSlots

router = APIRouter(prefix="/admin", dependencies=[Depends(require_researcher)], include_in_schema=False)


def require_uploaded_file(form_data: FormData) -> UploadFile:
    """Return the file of an upload form. Raises `Invalid` (`file_missing`)."""
    file = form_data.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid("Choose a file first. Nothing was imported.", code="file_missing")
    return file


async def get_upload_slots(request: Request) -> UploadSlots:
    slots: UploadSlots = request.app.state.upload_slots
    return slots


RequestUploadSlots = Annotated[UploadSlots, Depends(get_upload_slots)]


@router.get("/campaigns/new/question")
async def choose_question_page(request: Request) -> HTMLResponse:
    """Show the start of a new campaign: a question that comes with Easel, an empty form, or a file."""
    return render_question_page(request)


def render_question_page(request: Request, refusal: Refusal | None = None) -> HTMLResponse:
    context = {"questions": load_questions(), "designs": DESIGNS}
    return render_page(request, "admin/questions.html", context, refusal=refusal)


@router.post("/campaigns/new/file")
async def create_campaign_from_upload(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, now: Now
) -> Response:
    """Create a draft from a campaign file, or show the page again with its mistakes."""
    form_data = await request.form()
    try:
        file = require_uploaded_file(form_data)
        async with slots.hold_slot(file.file):
            sent_campaign = await asyncio.to_thread(
                campaign_zip.read_sent_campaign, file.file, file.filename or "", settings
            )
            async with database.begin() as connection:
                row = await campaign_file_io.create_campaign_of_file(
                    connection, sent_campaign, now=now, max_mb=settings.max_upload_mb
                )
    except Refusal as refusal:
        return render_question_page(request, refusal)
    return redirect_to(campaign_page_url(row.slug, "/items", notice="created"))


@router.get(CAMPAIGN_PATH + "/campaign.{ending}")
async def download_campaign_file(
    connection: Transaction, slug: str, ending: Literal["yaml", "zip"], now: Now, *, items: bool = False
) -> Response:
    """Send the campaign as a file from which an equal one can be created; with items, as a zip if they name files."""
    archive = await campaign_file_io.write_campaign_archive(connection, slug, with_items=items or ending == "zip")
    return campaign_archive_response(archive, slug, now)


def campaign_archive_response(archive: campaign_file_io.CampaignArchive, slug: str, now: datetime) -> Response:
    """Return a campaign's file as a download."""
    headers = download_headers(slug, "campaign", archive.ending, now=now)
    headers["Content-Length"] = str(archive.file.seek(0, SEEK_END))
    archive.file.seek(0)
    return StreamingResponse(
        campaign_file_io.stream_campaign_archive(archive), media_type=archive.media_type, headers=headers
    )
