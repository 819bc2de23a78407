"""Researchers' pages that create a campaign from a file, and that send a campaign as a file."""

import asyncio
from typing import Literal

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from app.accounts.guards import researcher_router
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.campaigns.starter_questions import starter_questions_by_activity
from app.designs.registry import DESIGNS
from app.errors import Refusal
from app.http.dependencies import AppSettings, Database, Now, Transaction, render_page
from app.imports import campaign_file_io, campaign_zip
from app.imports.dependencies import RequestUploadSlots, campaign_archive_response, uploaded_file_or_refuse

router = researcher_router("/admin")


@router.get("/campaigns/new/question")
async def show_question_choice_page(request: Request) -> HTMLResponse:
    """Show the start of a new campaign: a question that comes with Easel, an empty form, or a file."""
    return new_campaign_start_page_response(request)


def new_campaign_start_page_response(request: Request, refusal: Refusal | None = None) -> HTMLResponse:
    context = {"groups": starter_questions_by_activity(), "designs": DESIGNS}
    return render_page(request, "admin/questions.html", context, refusal=refusal)


@router.post("/campaigns/new/file")
async def submit_campaign_file(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, now: Now
) -> Response:
    """Create a draft from a campaign file, or show the page again with its mistakes."""
    form_data = await request.form()
    try:
        file = uploaded_file_or_refuse(form_data)
        async with slots.holding_slot_if_file_is_large(file.file):
            sent_campaign = await asyncio.to_thread(
                campaign_zip.read_campaign_file_or_zip, file.file, file.filename or "", settings
            )
            async with database.begin() as connection:
                row = await campaign_file_io.create_draft_from_campaign_file(
                    connection, sent_campaign, now=now, max_mb=settings.max_upload_mb
                )
    except Refusal as refusal:
        return new_campaign_start_page_response(request, refusal)
    return redirect_to(campaign_page_url(row.slug, "/items", notice="created"))


@router.get(CAMPAIGN_PATH + "/campaign.{ending}")
async def download_campaign_file(
    connection: Transaction, slug: str, ending: Literal["yaml", "zip"], now: Now, *, items: bool = False
) -> Response:
    """Send the campaign as a file from which an equal one can be created; with items, as a zip if they name files."""
    archive = await campaign_file_io.build_campaign_yaml_or_zip(connection, slug, with_items=items or ending == "zip")
    return campaign_archive_response(archive, slug, now)
