"""API: campaigns and their items."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Literal, Self, cast

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError

from app.accounts.guards import CurrentAccess, require_program
from app.accounts.roles import SEE_SETTINGS
from app.annotation.platforms.links import link_base
from app.annotation.platforms.registry import platform_links
from app.campaigns import (
    campaign_file_io,
    campaign_zip,
    hints,
    item_list,
    items,
    lifecycle,
    responses_import,
    summaries,
)
from app.campaigns.answer_options import AnswerFileOptions
from app.campaigns.columns import ROW_NUMBERS_AS_IDS, ColumnMapping, id_column_or_none
from app.campaigns.pages.campaigns import RequestUploadSlots, campaign_archive_response, require_uploaded_file
from app.campaigns.pages.imports import uploaded_media_zip
from app.campaigns.settings import CampaignSettings
from app.campaigns.starter_questions import load_questions
from app.campaigns.yaml_lines import YAML_MEDIA_TYPE
from app.designs.criteria import criterion_view
from app.designs.registry import design_of
from app.designs.schema import ValueSchema
from app.http.dependencies import AppSettings, Database, Now, Transaction, document_refusals, request_base_url
from app.media.media_zip import MediaZip
from app.uploads import MAX_UPLOAD_ROWS, ReadOptions

router = APIRouter(
    prefix="/api/v1/campaigns",
    tags=["Campaigns"],
    dependencies=[Depends(require_program)],
    responses=document_refusals(
        {401: "`token_missing`, `token_invalid`", 422: "`invalid`; `details.fields` names each field"}
    ),
)
CAMPAIGN_NOT_FOUND = {404: "`campaign_not_found`"}
templates_router = APIRouter(prefix="/api/v1/templates", tags=["Campaigns"], dependencies=[Depends(require_program)])


class Transition(BaseModel):
    """What leads a campaign through its life."""

    action: lifecycle.LifecycleAction


class Campaign(BaseModel):
    """A campaign as programs see it."""

    slug: str = Field(description="Its name in addresses.")
    status: str = Field(description="draft, running, paused or finished.")
    rehearsal: bool = Field(description="Whether it is a copy that a made-up crowd answered. Lists leave these out.")
    experiment: str | None = Field(description="The experiment with people of which it is an arm, if any.")
    arm: str | None = Field(description="Which arm of it.")
    settings: CampaignSettings
    better_rule: str | None = Field(
        description="The rule of selection that suits the goal, where the campaign asks by another one."
    )
    values: ValueSchema = Field(description="What annotators give each item; of several criteria, by the first.")
    items: int
    judgments_taken: int
    judgments_wanted: int
    created_at: datetime
    launched_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None = Field(description="Since when it is left out of the list.")
    links: dict[str, str] = Field(
        description="Where annotators come in, by platform; of an arm the links of its experiment, which lead each person to one of the arms at random."
    )

    @classmethod
    def from_row(cls, row: Any, server_url: str) -> Self:
        """From a row of `counted.listed`."""
        value_schema = ValueSchema.from_design(design_of(criterion_view(row, 0)))
        link_by_platform = platform_links(*link_base(server_url, row.link_key, row.experiment_key))
        fields = {"settings": lifecycle.settings_from_row(row), "values": value_schema, "links": link_by_platform}
        fields["better_rule"] = hints.rule_suited_to_goal(row)
        return cls.model_validate(summaries.campaign_progress_json(row) | fields)


class CampaignWithNotes(Campaign):
    """A campaign after a step of its life."""

    notes: list[str] = Field(description="What to know of the step, such as that items begin with their own priors.")


class Campaigns(BaseModel):
    campaigns: list[Campaign]


async def campaign_response(request: Request, connection: Transaction, slug: str) -> Campaign:
    return Campaign.from_row(await summaries.find_campaign_with_progress(connection, slug), request_base_url(request))


@router.get("")
async def list_campaigns(
    request: Request,
    connection: Transaction,
    access: CurrentAccess,
    *,
    archived: Annotated[bool, Query(description="Those that were archived instead of the others.")] = False,
) -> Campaigns:
    """The campaigns whose settings you may see and that are not archived, newest first."""
    rows = await summaries.load_campaign_list(connection, archived=archived, access=access, permission=SEE_SETTINGS)
    return Campaigns(campaigns=[Campaign.from_row(row, request_base_url(request)) for row in rows])


@router.post("", status_code=201)
async def create_campaign(request: Request, connection: Transaction, now: Now, settings: CampaignSettings) -> Campaign:
    """Create a draft. Its slug is made from its name."""
    row = await lifecycle.create_draft_campaign(connection, settings, now=now)
    return await campaign_response(request, connection, row.slug)


def openapi_file_body(*content_types: str, **more_files: str) -> dict[str, Any]:
    """For OpenAPI: a file of one of these content types as the body, or as the field `file` of a form, which may have
    more files, by name and with what they are.
    """
    binary = {"type": "string", "format": "binary"}
    more_properties = {name: binary | {"description": words} for name, words in more_files.items()}
    form = {"schema": {"type": "object", "properties": {"file": binary, **more_properties}, "required": ["file"]}}
    bodies = {kind: {"schema": {"type": "string"}} for kind in content_types}
    return {"requestBody": {"required": True, "content": bodies | {"multipart/form-data": form}}}


CREATE_FROM_FILE_REFUSALS = {
    413: "`too_large`, and of items and of a zip as for items",
    422: "The file: `file_missing`, `file_empty`, `not_utf8`, `yaml_unreadable`, `items_not_sent`, and `campaign_file_invalid`; `details.mistakes` has the `line`, `field` and `message` of each. A zip: `campaign_file_missing`, `zip_stray`. Items and the files that they name: as for items.",
}


@router.post(
    "/files",
    status_code=201,
    responses=document_refusals(CREATE_FROM_FILE_REFUSALS),
    openapi_extra=openapi_file_body(YAML_MEDIA_TYPE, campaign_zip.ZIP_MEDIA_TYPE),
)
async def create_from_file(
    request: Request, database: Database, settings: AppSettings, slots: RequestUploadSlots, now: Now
) -> Campaign:
    """Create a draft from a campaign file, as the body or as the field `file` of a form: all of it or nothing. The file
    may be in a zip with the table that it names and, in the folder `media`, the files that its items name.
    """
    async with open_sent_file(request) as (file, name, _), slots.hold_slot(file):
        sent_campaign = await asyncio.to_thread(campaign_zip.read_sent_campaign, file, name, settings)
        async with database.begin() as connection:
            row = await campaign_file_io.create_campaign_of_file(
                connection,
                sent_campaign.parsed_file,
                now=now,
                max_mb=settings.max_upload_mb,
                table=sent_campaign.table,
                media=sent_campaign.media,
            )
            return await campaign_response(request, connection, row.slug)


@router.get(
    "/{slug}/file", response_class=Response, responses=document_refusals(CAMPAIGN_NOT_FOUND | {413: "`items_too_many`"})
)
async def get_file(
    connection: Transaction,
    now: Now,
    slug: str,
    *,
    items: Annotated[bool, Query(description="With the items, at most 10,000.")] = False,
) -> Response:
    """A campaign as a file, from which an equal one can be created: YAML, or a zip with the files that items name."""
    return campaign_archive_response(
        await campaign_file_io.write_campaign_archive(connection, slug, with_items=items), slug, now
    )


@router.post("/{slug}/copies", status_code=201, responses=document_refusals(CAMPAIGN_NOT_FOUND))
async def copy_campaign(
    request: Request, connection: Transaction, access: CurrentAccess, now: Now, slug: str
) -> Campaign:
    """A draft with the settings and the items of a campaign, and none of its answers."""
    row = await lifecycle.create_copy_of_campaign(connection, slug, now=now, access=access)
    return await campaign_response(request, connection, row.slug)


@router.get("/{slug}", responses=document_refusals(CAMPAIGN_NOT_FOUND))
async def get_campaign(request: Request, connection: Transaction, slug: str) -> Campaign:
    """One campaign with its settings and how far it is."""
    return await campaign_response(request, connection, slug)


Changes = Annotated[
    dict[str, Any], Body(description="Any of the campaign's settings.", examples=[{"judgments_per_item": 5}])
]


@router.patch("/{slug}", responses=document_refusals(CAMPAIGN_NOT_FOUND | {409: "`not_a_draft`, `only_more`"}))
async def change_settings(request: Request, connection: Transaction, slug: str, changes: Changes) -> Campaign:
    """Change some settings of a draft; of a launched campaign those that change no meaning, whose schema says
    `after_launch`.
    """
    await lifecycle.edit_settings(connection, slug, lambda before: apply_setting_changes(before, changes))
    return await campaign_response(request, connection, slug)


def apply_setting_changes(settings: CampaignSettings, changes: Mapping[str, Any]) -> CampaignSettings:
    """The settings with these in the place of what they were."""
    try:
        return CampaignSettings.model_validate({**settings.model_dump(), **changes})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


@router.delete("/{slug}", status_code=204, responses=document_refusals(CAMPAIGN_NOT_FOUND | {409: "`not_a_draft`"}))
async def delete_campaign(connection: Transaction, slug: str) -> None:
    """Delete a draft with its items. A launched campaign holds people's answers and is never deleted."""
    await lifecycle.delete_draft(connection, slug)


@router.post(
    "/{slug}/transitions",
    responses=document_refusals(
        CAMPAIGN_NOT_FOUND
        | {
            409: "`wrong_status`, `nothing_wanted`, `no_items`, `too_few_items`, `impossible_prior`, `item_unknown`, "
            "`expected_impossible`, "
            "`baseline_unknown`, "
            "`column_unknown`, `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`, "
            "`one_system`, `too_few_common_segments`, `iterations_of_systems`, `implied_of_systems`, "
            "`content_of_systems`"
        }
    ),
)
async def transition_campaign(
    request: Request, connection: Transaction, slug: str, requested: Transition, now: Now
) -> CampaignWithNotes:
    """Launch, pause, resume, finish or reopen; archive what does not run, which takes it off the list; restore it."""
    row = await lifecycle.apply_transition(connection, slug, requested.action, now=now)
    campaign = await campaign_response(request, connection, slug)
    note = await items.describe_own_priors(connection, row.id) if requested.action == "launch" else None
    return CampaignWithNotes(**dict(campaign), notes=[note] if note else [])


class Item(BaseModel):
    number: int = Field(description="0 for the first; responses and posteriors are kept by it.")
    id: str
    text: str = Field(description="What annotators see.")
    fields: dict[str, Any] = Field(description="Every column of the uploaded row.")


class Items(BaseModel):
    total: int
    items: list[Item]


@router.get("/{slug}/items", responses=document_refusals(CAMPAIGN_NOT_FOUND))
async def list_items(
    connection: Transaction,
    slug: str,
    offset: Annotated[int, Query(ge=0, le=MAX_UPLOAD_ROWS)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Items:
    """A page of the items, in the order of their numbers."""
    campaign = await lifecycle.find_campaign(connection, slug)
    total, rows = await item_list.load_uploaded_items_page(connection, campaign.id, offset=offset, limit=limit)
    item_models = [Item(number=row.number, id=row.external_id, text=row.shown, fields=row.fields) for row in rows]
    return Items(total=total, items=item_models)


class Template(BaseModel):
    """A question to begin with."""

    name: str
    title: str
    description: str
    source: str | None = Field(description="Where the way of asking comes from.")
    settings: CampaignSettings = Field(description="Of the campaign that it begins; change them as you like.")


class Templates(BaseModel):
    templates: list[Template]


@templates_router.get("", responses=document_refusals({401: "`token_missing`, `token_invalid`"}))
async def list_templates() -> Templates:
    """The questions that come with Easel, each with the settings of a campaign that asks it."""
    return Templates(
        templates=[
            Template(name=question.name, settings=question.settings, **question.about.model_dump())
            for question in load_questions()
        ]
    )


# content type -> an ending that names the format
ENDING_BY_CONTENT_TYPE = {
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/x-ndjson": ".jsonl",
    "application/json": ".json",
    "application/gzip": "",
    "application/zip": "",
}
ANSWERS_FILE_BODY = openapi_file_body(*ENDING_BY_CONTENT_TYPE)
ITEMS_FILE_BODY = openapi_file_body(
    *ENDING_BY_CONTENT_TYPE, media="A zip of the images, recordings or videos that the items name."
)
IMPORT_ITEMS_REFUSALS = CAMPAIGN_NOT_FOUND | {
    409: "`not_a_draft`, `kinds_mixed`",
    413: "`too_large`, `file_too_large`, `too_many_rows`, `too_many_items`, `too_many_outputs`, `gzip_too_dense`, `zip_too_dense`, `zip_too_many_files`, `media_file_too_large`, `media_too_large`",
    422: "The file: `file_missing`, `file_empty`, `excel_workbook`, `not_a_table`, `gzip_unreadable`, "
    "`zip_not_one_table`, `not_utf8` (`details.encodings` can be chosen), `encoding_unknown`, `encoding_unsuited`, "
    "`nul_byte`, `csv_unreadable`, `quotes_unclear`, `quotes_unknown`, `json_unreadable`, `json_no_rows`, "
    "`json_several_lists`, `ragged_row`, `row_too_long`, `column_unnamed`, `column_twice`, `too_many_columns`, "
    "`cell_too_long`. "
    "What is shown: `shown_not_chosen`, `column_unknown`, `template_invalid`, `shown_empty`, `shown_too_long`. "
    "Ids: `id_missing`, `id_too_long`, `id_twice`, `id_taken`. "
    "Priors: `prior_invalid`, `prior_of_another_law`, `priors_missing`. "
    "Files: `zip_unreadable`, `zip_encrypted`, `media_name_unsafe`, `media_twice`, `media_unnamed`, `media_missing`, "
    "`media_type_unknown`, `media_wrong_kind`, `media_link_refused`. "
    "Outputs of systems: `system_missing`, `segment_missing`, `output_empty`, `output_twice`, `source_differs`. "
    "`details.line` is the line of the file.",
}


def get_read_as(
    encoding: Annotated[
        str | None, Query(description="For example `windows-1252`; Unicode is recognised.", max_length=40)
    ] = None,
    quotes: Annotated[
        str | None,
        Query(description="`cells` where quotation marks enclose cells, `text` where they are part of the text."),
    ] = None,
) -> ReadOptions:
    """How a table is to be read where it does not say so itself."""
    return ReadOptions(encoding, quotes)


def get_column_mapping(
    *,
    identifier: Annotated[
        str, Query(description=f"The column of ids, each unlike all others; `{ROW_NUMBERS_AS_IDS}` to number the rows.")
    ] = "id",
    shown: Annotated[str | None, Query(description="The column that annotators see.")] = None,
    template: Annotated[str | None, Query(description="Instead of a column, for example `{verb}: {gloss}`.")] = None,
    priors: Annotated[
        bool,
        Query(description="Begin with the priors in `alpha` and `beta` (`mu` and `sigma2` ...), which exports have."),
    ] = False,
    ignore: Annotated[
        list[Literal["check", "system", "source", "reference"]],
        Query(description="Columns that are kept and have no meaning of their own."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> ColumnMapping:
    """Return the use of the columns of a table of items, from the parameters of a request."""
    return ColumnMapping(id_column_or_none(identifier), shown, template, priors, frozenset(ignore))


@router.post(
    "/{slug}/items", status_code=201, responses=document_refusals(IMPORT_ITEMS_REFUSALS), openapi_extra=ITEMS_FILE_BODY
)
async def import_items_into_campaign(
    request: Request,
    database: Database,
    settings: AppSettings,
    slots: RequestUploadSlots,
    slug: str,
    *,
    mapping: Annotated[ColumnMapping, Depends(get_column_mapping)],
    read_as: Annotated[ReadOptions, Depends(get_read_as)],
    replace: Annotated[bool, Query(description="Put the items in the place of those that are there.")] = False,
) -> items.ItemImportReceipt:
    """Import a CSV, TSV or JSON file into a draft, as the body or as the field `file` of a form: all rows or none.

    JSON is an object on each line, a list of objects, or an object with one list of objects. The file may be packed by
    gzip or zip. Images, recordings and videos that items, or outputs, name come as a zip in the field `media` of the
    same form. A file with the columns `system`, `segment` and `output` (perhaps `source` and `reference`) and no `id`
    is one of systems' outputs; it can also join a campaign of systems that was launched.
    """
    # The file first: while it comes in, however slowly, it must not keep a connection from others.
    async with (
        open_sent_file(request) as (file, name, media),
        slots.hold_slot(file, *([media.file] if media else [])),
        database.begin() as connection,
    ):
        return await items.import_items(
            connection,
            slug,
            file,
            name,
            mapping=mapping,
            read_options=read_as,
            replace=replace,
            max_mb=settings.max_upload_mb,
            media=media,
        )


IMPORT_RESPONSES_REFUSALS = CAMPAIGN_NOT_FOUND | {
    409: "`not_launched`, `is_a_rehearsal`, `assignment_known`",
    413: "`too_large`, `file_too_large`, `gzip_too_dense`, `zip_too_dense`, `too_many_rows`",
    422: "The file: as for items, and `result_columns`, `column_unknown`, `answer_column_unknown`, `lists_unequal`. "
    "Its rows: `hit_missing`, `annotator_missing`, `id_too_long`, `item_missing`, `item_repeated`, `item_unknown`, "
    "`position_unusable`, `time_unreadable`, `time_in_future`, `na_unknown`, `assignment_twice`, `segment_missing`, "
    "`segment_unknown`, `segment_differs`, `output_unknown`. Of criteria: `criterion_unknown`, `criteria_missing`, "
    "`criteria_differ`, `criteria_not_imported`. How it is read: `columns_unequal`, `item_ambiguous`, "
    "`answer_several`, `all_rejected`, "
    "`decimal_unclear`, `date_order_unclear`, `time_zone_unknown`. Their values: `scores_missing`, "
    "`score_not_a_number`, `score_out_of_range`, `class_unknown`, `hit_size`, `answer_impossible`. `details.line` is "
    "the line of the file.",
}


@router.post(
    "/{slug}/responses",
    status_code=201,
    responses=document_refusals(IMPORT_RESPONSES_REFUSALS),
    openapi_extra=ANSWERS_FILE_BODY,
)
async def import_responses_into_campaign(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    slots: RequestUploadSlots,
    slug: str,
    now: Now,
    options: Annotated[AnswerFileOptions, Query()],
) -> responses_import.ResponseImportReceipt:
    """Import answers that were given elsewhere as responses of a launched campaign.

    A row for each item of a HIT (`hit`, `annotator`, `item`, `value`; where there are criteria also `criterion`, and a
    row by each), an export of responses, or a result file of Mechanical Turk (`Input.id1` ..., `Answer.range1` ...); as
    the body or as the field `file` of a form. For any other table, also from Mechanical Turk, Label Studio, Prodigy or
    Appraise, the parameters say which column holds what; the refusal `result_columns` has a `proposal` for them. A
    file that is refused changes nothing. An import that was interrupted has stored some of the first HITs; send the
    same file again, and the rest follows.
    """
    async with open_sent_file(request) as (file, name, _), slots.hold_slot(file):
        return await responses_import.import_responses_from_file(
            database,
            slug,
            file,
            name,
            now=now,
            max_mb=settings.max_upload_mb,
            options=options.reading_options,
            request_scan=request.app.state.campaign_monitor.request_scan,
        )


@asynccontextmanager
async def open_sent_file(request: Request) -> AsyncIterator[tuple[BinaryIO, str, MediaZip | None]]:
    """The file in a request, a name for it whose ending names its format, and the zip of media beside it in a form."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "multipart/form-data":
        async with request.form() as form_data:
            file = require_uploaded_file(form_data)
            yield file.file, file.filename or "", uploaded_media_zip(form_data, request.app.state.settings)
        return
    with SpooledTemporaryFile(max_size=1_000_000) as spooled:
        async for chunk in request.stream():
            spooled.write(chunk)
        spooled.seek(0)
        yield cast("BinaryIO", spooled), "body" + ENDING_BY_CONTENT_TYPE.get(content_type, ""), None
