"""API that creates a campaign from a file, and sends a campaign as a file."""

import asyncio
from typing import Annotated

from fastapi import Query, Request, Response

from app.accounts.guards import program_router
from app.campaigns.api.campaigns import CAMPAIGN_NOT_FOUND, CampaignSchema, load_campaign_schema
from app.campaigns.yaml_lines import YAML_MEDIA_TYPE
from app.http.dependencies import AppSettings, Database, Now, Transaction, openapi_description_of_refusals
from app.imports import campaign_file_io, campaign_zip
from app.imports.api.imports import open_file_name_and_media_zip_of_request, openapi_body_of_file_upload
from app.imports.dependencies import RequestUploadSlots, campaign_archive_response

router = program_router(
    "/api/v1/campaigns", "Campaigns", refusals={422: "`invalid`; `details.fields` names each field"}
)


CREATE_FROM_FILE_REFUSALS = {
    413: "`too_large`, and of items and of a zip as for items",
    422: (
        "The file: `file_missing`, `file_empty`, `not_utf8`, `yaml_unreadable`, `items_not_sent`, and "
        "`campaign_file_invalid`; `details.mistakes` has the `line`, `field` and `message` of each. A zip: "
        "`campaign_file_missing`, `zip_stray`. Its settings: `address_without_tls`. Items and the files that they "
        "name: as for items."
    ),
}


@router.post(
    "/files",
    status_code=201,
    responses=openapi_description_of_refusals(CREATE_FROM_FILE_REFUSALS),
    openapi_extra=openapi_body_of_file_upload(YAML_MEDIA_TYPE, campaign_zip.ZIP_MEDIA_TYPE),
)
async def create_from_file(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, now: Now
) -> CampaignSchema:
    """Create a draft from a campaign file, sent as the body or as the field `file` of a form: all of it or nothing.

    The file may be in a zip, together with the table that it names and, in the folder `media`, the files that its items
    name.
    """
    async with (
        open_file_name_and_media_zip_of_request(request) as (file, name, _),
        slots.holding_slot_if_file_is_large(file),
    ):
        sent_campaign = await asyncio.to_thread(campaign_zip.read_campaign_file_or_zip, file, name, settings)
        async with database.begin() as connection:
            row = await campaign_file_io.create_draft_from_campaign_file(
                connection, sent_campaign, now=now, max_mb=settings.max_upload_mb
            )
            return await load_campaign_schema(request, connection, row.slug)


@router.get(
    "/{slug}/file",
    response_class=Response,
    responses=openapi_description_of_refusals(CAMPAIGN_NOT_FOUND | {413: "`items_too_many`"}),
)
async def get_campaign_file(
    connection: Transaction,
    now: Now,
    slug: str,
    *,
    items: Annotated[bool, Query(description="Include the items, at most 10,000.")] = False,
) -> Response:
    """Return a campaign as a file from which a campaign with the same settings can be created: YAML, or a zip with the
    files that items
    name.
    """
    return campaign_archive_response(
        await campaign_file_io.build_campaign_yaml_or_zip(connection, slug, with_items=items), slug, now
    )
