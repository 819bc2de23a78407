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

from app.auth.guards import Who, program
from app.auth.roles import SEE_SETTINGS
from app.campaigns import campaign_zip, counted, hints, items, lifecycle, listing, responses_import, stored_file
from app.campaigns.answer_options import AnswerFileOptions
from app.campaigns.columns import ROW_NUMBERS, Matching, column_of_ids
from app.campaigns.documents import MEDIA_TYPE
from app.campaigns.questions import questions
from app.campaigns.routes import Slots, downloaded, uploaded
from app.campaigns.settings import CampaignSettings
from app.campaigns.upload_routes import packed
from app.crowd.places import place_of
from app.crowd.registry import links
from app.designs.asked import AskedValues
from app.designs.criteria import for_criterion
from app.designs.registry import design_of
from app.media.archive import Packed
from app.upload import MOST_ROWS, ReadAs
from app.web import AppSettings, Database, Now, Transaction, base_url, refusals

router = APIRouter(
    prefix="/api/v1/campaigns",
    tags=["Campaigns"],
    dependencies=[Depends(program)],
    responses=refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`; `details.fields` names each field"}),
)
NO_CAMPAIGN = {404: "`campaign_not_found`"}
templates = APIRouter(prefix="/api/v1/templates", tags=["Campaigns"], dependencies=[Depends(program)])


class Transition(BaseModel):
    """What leads a campaign through its life."""

    action: lifecycle.Action


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
    values: AskedValues = Field(description="What annotators give each item; of several criteria, by the first.")
    items: int
    judgments_taken: int
    judgments_wanted: int
    created_at: datetime
    launched_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None = Field(description="Since when it is left out of the list.")
    links: dict[str, str] = Field(
        description="Where annotators come in, by platform; of an arm the links of its experiment, which lead each "
        "person to one of the arms at random."
    )

    @classmethod
    def of(cls, row: Any, base: str) -> Self:
        """From a row of `counted.listed`."""
        asked = AskedValues.of(design_of(for_criterion(row, 0)))
        come = links(*place_of(base, row.link_key, row.experiment_key))
        more = {"settings": lifecycle.settings_of(row), "values": asked, "links": come}
        more["better_rule"] = hints.better_rule(row)
        return cls.model_validate(counted.summary(row) | more)


class LedCampaign(Campaign):
    """A campaign after a step of its life."""

    notes: list[str] = Field(description="What to know of the step, such as that items begin with their own priors.")


class Campaigns(BaseModel):
    campaigns: list[Campaign]


async def shown(request: Request, connection: Transaction, slug: str) -> Campaign:
    return Campaign.of(await counted.find_counted(connection, slug), base_url(request))


@router.get("")
async def list_campaigns(
    request: Request,
    connection: Transaction,
    who: Who,
    *,
    archived: Annotated[bool, Query(description="Those that were archived instead of the others.")] = False,
) -> Campaigns:
    """The campaigns whose settings you may see and that are not archived, newest first."""
    rows = await counted.listed(connection, archived=archived, seen_by=who, need=SEE_SETTINGS)
    return Campaigns(campaigns=[Campaign.of(row, base_url(request)) for row in rows])


@router.post("", status_code=201)
async def create_campaign(request: Request, connection: Transaction, now: Now, settings: CampaignSettings) -> Campaign:
    """Create a draft. Its slug is made from its name."""
    row = await lifecycle.create(connection, settings, now=now)
    return await shown(request, connection, row.slug)


def body_of_a_file(*kinds: str, **beside: str) -> dict[str, Any]:
    """For OpenAPI: a file of one of these content types as the body, or as the field `file` of a form, which may have
    more files, by name and with what they are.
    """
    binary = {"type": "string", "format": "binary"}
    more = {name: binary | {"description": words} for name, words in beside.items()}
    form = {"schema": {"type": "object", "properties": {"file": binary, **more}, "required": ["file"]}}
    bodies = {kind: {"schema": {"type": "string"}} for kind in kinds}
    return {"requestBody": {"required": True, "content": bodies | {"multipart/form-data": form}}}


NOT_CREATED = {
    413: "`too_large`, and of items and of a zip as for items",
    422: "The file: `file_missing`, `file_empty`, `not_utf8`, `yaml_unreadable`, `items_not_sent`, and "
    "`campaign_file_invalid`; `details.mistakes` has the `line`, `field` and `message` of each. A zip: "
    "`campaign_file_missing`, `zip_stray`. Items and the files that they name: as for items.",
}


@router.post(
    "/files",
    status_code=201,
    responses=refusals(NOT_CREATED),
    openapi_extra=body_of_a_file(MEDIA_TYPE, campaign_zip.MEDIA_TYPE),
)
async def create_from_file(
    request: Request, database: Database, settings: AppSettings, slots: Slots, now: Now
) -> Campaign:
    """Create a draft from a campaign file, as the body or as the field `file` of a form: all of it or nothing. The file
    may be in a zip with the table that it names and, in the folder `media`, the files that its items name.
    """
    async with sent_file(request) as (file, name, _), slots.hold(file):
        sent = await asyncio.to_thread(campaign_zip.read, file, name, settings)
        async with database.begin() as connection:
            row = await stored_file.create(
                connection, sent.read, now=now, max_mb=settings.max_upload_mb, table=sent.table, media=sent.media
            )
            return await shown(request, connection, row.slug)


@router.get("/{slug}/file", response_class=Response, responses=refusals(NO_CAMPAIGN | {413: "`items_too_many`"}))
async def get_file(
    connection: Transaction,
    now: Now,
    slug: str,
    *,
    items: Annotated[bool, Query(description="With the items, at most 10,000.")] = False,
) -> Response:
    """A campaign as a file, from which an equal one can be created: YAML, or a zip with the files that items name."""
    return downloaded(await stored_file.filed(connection, slug, with_items=items), slug, now)


@router.post("/{slug}/copies", status_code=201, responses=refusals(NO_CAMPAIGN))
async def copy_campaign(request: Request, connection: Transaction, who: Who, now: Now, slug: str) -> Campaign:
    """A draft with the settings and the items of a campaign, and none of its answers."""
    row = await lifecycle.copy(connection, slug, now=now, seen_by=who)
    return await shown(request, connection, row.slug)


@router.get("/{slug}", responses=refusals(NO_CAMPAIGN))
async def get_campaign(request: Request, connection: Transaction, slug: str) -> Campaign:
    """One campaign with its settings and how far it is."""
    return await shown(request, connection, slug)


Changes = Annotated[
    dict[str, Any], Body(description="Any of the campaign's settings.", examples=[{"judgments_per_item": 5}])
]


@router.patch("/{slug}", responses=refusals(NO_CAMPAIGN | {409: "`not_a_draft`, `only_more`"}))
async def change_settings(request: Request, connection: Transaction, slug: str, changes: Changes) -> Campaign:
    """Change some settings of a draft; of a launched campaign those that change no meaning, whose schema says
    `after_launch`.
    """
    await lifecycle.edit(connection, slug, lambda before: changed(before, changes))
    return await shown(request, connection, slug)


def changed(settings: CampaignSettings, changes: Mapping[str, Any]) -> CampaignSettings:
    """The settings with these in the place of what they were."""
    try:
        return CampaignSettings.model_validate({**settings.model_dump(), **changes})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


@router.delete("/{slug}", status_code=204, responses=refusals(NO_CAMPAIGN | {409: "`not_a_draft`"}))
async def delete_campaign(connection: Transaction, slug: str) -> None:
    """Delete a draft with its items. A launched campaign holds people's answers and is never deleted."""
    await lifecycle.remove(connection, slug)


@router.post(
    "/{slug}/transitions",
    responses=refusals(
        NO_CAMPAIGN
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
async def lead(request: Request, connection: Transaction, slug: str, wanted: Transition, now: Now) -> LedCampaign:
    """Launch, pause, resume, finish or reopen; archive what does not run, which takes it off the list; restore it."""
    row = await lifecycle.transition(connection, slug, wanted.action, now=now)
    campaign = await shown(request, connection, slug)
    said = await items.sentence_on_priors(connection, row.id) if wanted.action == "launch" else None
    return LedCampaign(**dict(campaign), notes=[said] if said else [])


class Item(BaseModel):
    number: int = Field(description="0 for the first; responses and posteriors are kept by it.")
    id: str
    text: str = Field(description="What annotators see.")
    fields: dict[str, Any] = Field(description="Every column of the uploaded row.")


class Items(BaseModel):
    total: int
    items: list[Item]


@router.get("/{slug}/items", responses=refusals(NO_CAMPAIGN))
async def list_items(
    connection: Transaction,
    slug: str,
    offset: Annotated[int, Query(ge=0, le=MOST_ROWS)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Items:
    """A page of the items, in the order of their numbers."""
    campaign = await lifecycle.find(connection, slug)
    total, rows = await listing.items_of(connection, campaign.id, offset=offset, limit=limit)
    found = [Item(number=row.number, id=row.external_id, text=row.shown, fields=row.fields) for row in rows]
    return Items(total=total, items=found)


class Template(BaseModel):
    """A question to begin with."""

    name: str
    title: str
    description: str
    source: str | None = Field(description="Where the way of asking comes from.")
    settings: CampaignSettings = Field(description="Of the campaign that it begins; change them as you like.")


class Templates(BaseModel):
    templates: list[Template]


@templates.get("", responses=refusals({401: "`token_missing`, `token_invalid`"}))
async def list_templates() -> Templates:
    """The questions that come with Easel, each with the settings of a campaign that asks it."""
    return Templates(
        templates=[
            Template(name=question.name, settings=question.settings, **question.about.model_dump())
            for question in questions()
        ]
    )


# content type -> an ending that names the format
ENDINGS = {
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/x-ndjson": ".jsonl",
    "application/json": ".json",
    "application/gzip": "",
    "application/zip": "",
}
FILE_IN_BODY = body_of_a_file(*ENDINGS)
ITEMS_IN_BODY = body_of_a_file(*ENDINGS, media="A zip of the images, recordings or videos that the items name.")
NOT_IMPORTED = NO_CAMPAIGN | {
    409: "`not_a_draft`, `kinds_mixed`",
    413: "`too_large`, `file_too_large`, `too_many_rows`, `too_many_items`, `too_many_outputs`, `gzip_too_dense`, "
    "`zip_too_dense`, `zip_too_many_files`, `media_file_too_large`, `media_too_large`",
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


def read_as(
    encoding: Annotated[
        str | None, Query(description="For example `windows-1252`; Unicode is recognised.", max_length=40)
    ] = None,
    quotes: Annotated[
        str | None,
        Query(description="`cells` where quotation marks enclose cells, `text` where they are part of the text."),
    ] = None,
) -> ReadAs:
    """How a table is to be read where it does not say so itself."""
    return ReadAs(encoding, quotes)


def matching(
    *,
    identifier: Annotated[
        str, Query(description=f"The column of ids, each unlike all others; `{ROW_NUMBERS}` to number the rows.")
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
) -> Matching:
    """Return the use of the columns of a table of items, from the parameters of a request."""
    return Matching(column_of_ids(identifier), shown, template, priors, frozenset(ignore))


@router.post("/{slug}/items", status_code=201, responses=refusals(NOT_IMPORTED), openapi_extra=ITEMS_IN_BODY)
async def import_items(
    request: Request,
    database: Database,
    settings: AppSettings,
    slots: Slots,
    slug: str,
    *,
    columns: Annotated[Matching, Depends(matching)],
    how: Annotated[ReadAs, Depends(read_as)],
    replace: Annotated[bool, Query(description="Put the items in the place of those that are there.")] = False,
) -> items.ImportedItems:
    """Import a CSV, TSV or JSON file into a draft, as the body or as the field `file` of a form: all rows or none.

    JSON is an object on each line, a list of objects, or an object with one list of objects. The file may be packed by
    gzip or zip. Images, recordings and videos that items, or outputs, name come as a zip in the field `media` of the
    same form. A file with the columns `system`, `segment` and `output` (perhaps `source` and `reference`) and no `id`
    is one of systems' outputs; it can also join a campaign of systems that was launched.
    """
    # The file first: while it comes in, however slowly, it must not keep a connection from others.
    async with (
        sent_file(request) as (file, name, media),
        slots.hold(file, *([media.file] if media else [])),
        database.begin() as connection,
    ):
        return await items.import_items(
            connection,
            slug,
            file,
            name,
            matching=columns,
            read_as=how,
            replace=replace,
            max_mb=settings.max_upload_mb,
            media=media,
        )


RESULTS_NOT_IMPORTED = NO_CAMPAIGN | {
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


@router.post("/{slug}/responses", status_code=201, responses=refusals(RESULTS_NOT_IMPORTED), openapi_extra=FILE_IN_BODY)
async def import_responses(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    slots: Slots,
    slug: str,
    now: Now,
    options: Annotated[AnswerFileOptions, Query()],
) -> responses_import.ImportedResponses:
    """Import answers that were given elsewhere as responses of a launched campaign.

    A row for each item of a HIT (`hit`, `annotator`, `item`, `value`; where there are criteria also `criterion`, and a
    row by each), an export of responses, or a result file of Mechanical Turk (`Input.id1` ..., `Answer.range1` ...); as
    the body or as the field `file` of a form. For any other table, also from Mechanical Turk, Label Studio, Prodigy or
    Appraise, the parameters say which column holds what; the refusal `result_columns` has a `proposal` for them. A
    file that is refused changes nothing. An import that was interrupted has stored some of the first HITs; send the
    same file again, and the rest follows.
    """
    async with sent_file(request) as (file, name, _), slots.hold(file):
        return await responses_import.import_results(
            database,
            slug,
            file,
            name,
            now=now,
            max_mb=settings.max_upload_mb,
            options=options.reading,
            looks=request.app.state.looks.ask,
        )


@asynccontextmanager
async def sent_file(request: Request) -> AsyncIterator[tuple[BinaryIO, str, Packed | None]]:
    """The file in a request, a name for it whose ending names its format, and the zip of media beside it in a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form() as form_data:
            file = uploaded(form_data)
            yield file.file, file.filename or "", packed(form_data, request.app.state.settings)
        return
    with SpooledTemporaryFile(max_size=1_000_000) as spooled:
        async for chunk in request.stream():
            spooled.write(chunk)
        spooled.seek(0)
        yield cast("BinaryIO", spooled), "body" + ENDINGS.get(kind, ""), None
