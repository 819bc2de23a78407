"""API of imports into campaigns: items with their media, and answers that were given elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Literal, cast

from fastapi import Depends, Query, Request

from app.accounts.guards import program_router
from app.campaigns.api.campaigns import CAMPAIGN_NOT_FOUND
from app.http.dependencies import AppSettings, Database, Now, openapi_description_of_refusals
from app.imports import items, responses_import
from app.imports.answer_options import AnswerFileOptions
from app.imports.columns import ColumnMapping, id_column_or_none
from app.imports.dependencies import RequestUploadSlots, media_zip_of_form_or_none, uploaded_file_or_refuse
from app.imports.response_receipt import ResponseImportReceipt
from app.imports.responses_preview import ResponsePreview, preview_responses_of_file_or_refuse
from app.media.media_zip import MediaZip
from app.uploads import ReadOptions
from app.uploads.rows import ROW_NUMBERS_AS_IDS

router = program_router(
    "/api/v1/campaigns", "Campaigns", refusals={422: "`invalid`; `details.fields` names each field"}
)


def openapi_body_of_file_upload(*content_types: str, **more_files: str) -> dict[str, Any]:
    """Return the OpenAPI description of a request that sends a file.

    Args:
        content_types: Content types of the file, sent as the body or as the field `file` of a form.
        more_files: Further files of the form: description by field name.

    """
    binary = {"type": "string", "format": "binary"}
    more_properties = {name: binary | {"description": description} for name, description in more_files.items()}
    form = {"schema": {"type": "object", "properties": {"file": binary, **more_properties}, "required": ["file"]}}
    bodies = {kind: {"schema": {"type": "string"}} for kind in content_types}
    return {"requestBody": {"required": True, "content": bodies | {"multipart/form-data": form}}}


# content type -> an ending that names the format
ENDING_BY_CONTENT_TYPE = {
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/x-ndjson": ".jsonl",
    "application/json": ".json",
    "application/gzip": "",
    "application/zip": "",
}


ANSWERS_FILE_BODY = openapi_body_of_file_upload(*ENDING_BY_CONTENT_TYPE)


ITEMS_FILE_BODY = openapi_body_of_file_upload(
    *ENDING_BY_CONTENT_TYPE, media="Zip with the images, recordings or videos that the items name."
)


IMPORT_ITEMS_REFUSALS = CAMPAIGN_NOT_FOUND | {
    409: "`not_a_draft`, `kinds_mixed`, `no_checks_here`, `revision_running`; checks of a launched campaign of systems "
    "`check_set_size`, `expected_impossible`; to a launched campaign with conditions `condition_added`, "
    "`condition_cell_missing`, `content_cell_missing`, `content_incomplete`",
    413: (
        "`too_large`, `file_too_large`, `too_many_rows`, `too_many_items`, `too_many_outputs`, `gzip_too_dense`, "
        "`workbook_too_large`, `zip_too_dense`, `zip_too_many_files`, `media_file_too_large`, `media_too_large`"
    ),
    422: "The file: `file_missing`, `file_empty`, `excel_workbook`, `workbook_unreadable`, `sheet_unknown`, "
    "`formula_without_result`, `not_a_table`, `gzip_unreadable`, `zip_not_one_table`, `not_utf8` "
    "(`details.encodings` can be chosen), `encoding_unknown`, `encoding_unsuited`, `nul_byte`, `csv_unreadable`, "
    "`quotes_unclear`, `quotes_unknown`, `read_as_unknown`, `read_as_unsuited`, `json_unreadable`, "
    "`json_no_rows`, `json_several_lists`, `ragged_row`, `row_too_long`, `column_unnamed`, `column_twice`, "
    "`too_many_columns`, `cell_too_long`. What is shown: `shown_not_chosen`, `column_unknown`, "
    "`template_invalid`, `shown_empty`, `shown_too_long`. Ids: `id_missing`, `id_too_long`, `id_twice`, "
    "`id_taken`. Priors: `prior_invalid`, `prior_of_another_law`, `priors_missing`. Files: `zip_unreadable`, "
    "`zip_encrypted`, `media_name_unsafe`, "
    "`media_twice`, `media_unnamed`, `media_missing`, `media_type_unknown`, `media_wrong_kind`, `media_link_refused`. "
    "Outputs of systems: `system_missing`, `segment_missing`, `output_empty`, `output_twice`, `source_differs`, "
    "`system_column_used`. Checks of their segments: `segment_unknown`, `expected_without_check`, "
    "`check_needs_segment`. "
    "`details.line` is the line of the file.",
}


def get_read_options_of_request(
    encoding: Annotated[
        str | None,
        Query(description="Encoding of the file if it is not Unicode, for example `windows-1252`.", max_length=40),
    ] = None,
    quotes: Annotated[
        str | None,
        Query(description="`cells` if quotation marks enclose cells, `text` if they are part of the text."),
    ] = None,
    sheet: Annotated[
        str | None,
        Query(description="Sheet of an Excel workbook. Default: the first visible one with content.", max_length=200),
    ] = None,
    read_as: Annotated[
        str | None,
        Query(
            description="`table` if the first row names the columns, `lines` if every line is a text, `auto` for the "
            "default: a file named .txt without columns is read as lines, and the first line of another table with a "
            "single column is an item unless it is one word such as `text`."
        ),
    ] = None,
) -> ReadOptions:
    """Return how to read a table where the file itself does not say."""
    return ReadOptions(encoding, quotes, sheet, read_as)


def get_column_mapping_of_request(
    *,
    identifier: Annotated[
        str, Query(description=f"Column of unique ids; `{ROW_NUMBERS_AS_IDS}` to number the rows.")
    ] = "id",
    shown: Annotated[str | None, Query(description="Column that annotators see.")] = None,
    template: Annotated[
        str | None, Query(description="Instead of `shown`: a text with columns in it, for example `{verb}: {gloss}`.")
    ] = None,
    priors: Annotated[
        bool,
        Query(description="Use the columns `alpha` and `beta` (`mu` and `sigma2` ...), which exports have, as priors."),
    ] = False,
    ignore: Annotated[
        list[Literal["check", "system", "source", "reference"]],
        Query(description="Columns to keep without their special meaning."),
    ] = [],  # noqa: B006 - FastAPI copies it
    system: Annotated[
        list[str],
        Query(
            description="Column with the outputs of one system, for a table with a column for each system. Repeat it "
            "for each of them. `identifier` then names the segments (default: the column `segment`, else `id`, else "
            "row numbers)."
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> ColumnMapping:
    """Return the use of the columns of a table of items, from the parameters of a request."""
    return ColumnMapping(
        id_column_or_none(identifier), shown, template, priors, frozenset(ignore), systems=tuple(system)
    )


@router.post(
    "/{slug}/items",
    status_code=201,
    responses=openapi_description_of_refusals(IMPORT_ITEMS_REFUSALS),
    openapi_extra=ITEMS_FILE_BODY,
)
async def import_items_into_campaign(
    request: Request,
    database: Database,
    settings: AppSettings,
    slots: RequestUploadSlots,
    slug: str,
    *,
    mapping: Annotated[ColumnMapping, Depends(get_column_mapping_of_request)],
    read_options: Annotated[ReadOptions, Depends(get_read_options_of_request)],
    replace: Annotated[bool, Query(description="Replace the present items.")] = False,
) -> items.ItemImportReceipt:
    """Import a CSV, TSV, TXT, JSON or XLSX file into a draft, as the body or the field `file` of a form: all or none.

    JSON is an object on each line, a list of objects, or an object with one list of objects. The file may be packed by
    gzip or zip. Send the images, recordings and videos that items or outputs name as a zip in the field `media` of the
    same form. A file with the columns `system`, `segment` and `output` (perhaps `source` and `reference`) and no `id`
    holds outputs of systems; you can also add it to a launched campaign of systems.
    """
    # The file first: while it comes in, however slowly, it must not keep a connection from others.
    async with (
        open_file_name_and_media_zip_of_request(request) as (file, name, media),
        slots.holding_slot_if_file_is_large(file, *([media.file] if media else [])),
        database.begin() as connection,
    ):
        return await items.import_items_and_return_receipt(
            connection,
            slug,
            file,
            name,
            mapping=mapping,
            read_options=read_options,
            replace=replace,
            max_mb=settings.max_upload_mb,
            media=media,
        )


IMPORT_RESPONSES_REFUSALS = CAMPAIGN_NOT_FOUND | {
    409: "`not_launched`, `is_a_rehearsal`, `identifiers_erased`, `assignment_known`",
    413: "`too_large`, `file_too_large`, `gzip_too_dense`, `zip_too_dense`, `too_many_rows`",
    422: "The file: as for items, and `result_columns`, `column_unknown`, `answer_column_unknown`, `lists_unequal`. "
    "Its rows: `hit_missing`, `annotator_missing`, `id_too_long`, `item_missing`, `item_repeated`, `item_unknown`, "
    "`position_unusable`, `time_unreadable`, `time_in_future`, `na_unknown`, `assignment_twice`, `segment_missing`, "
    "`segment_unknown`, `segment_differs`, `place_differs`, `detail_unusable`, `output_unknown`. "
    "Its criteria: `criterion_unknown`, `criteria_missing`, `criteria_differ`, `criteria_not_imported`. How it "
    "is read: `columns_unequal`, `item_ambiguous`, `answer_several`, `all_rejected`, `decimal_unclear`, "
    "`date_order_unclear`, `time_zone_unknown`. Their values: `scores_missing`, `score_not_a_number`, "
    "`score_out_of_range`, `class_unknown`, `hit_size`, `answer_impossible`. Their scale: `scale_unusable`, "
    "`scale_not_possible`, `score_outside_file_scale`, `score_between_classes`. `details.line` is the line of "
    "the file.",
}


@router.post(
    "/{slug}/responses",
    status_code=201,
    responses=openapi_description_of_refusals(IMPORT_RESPONSES_REFUSALS),
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
) -> ResponseImportReceipt:
    """Import answers that were given elsewhere; they become responses of a launched campaign.

    The file has a row for each item of a HIT (`hit`, `annotator`, `item`, `value`; with several criteria also
    `criterion`, and a row for each), or is an export of responses or a result file of Mechanical Turk (`Input.id1` ...,
    `Answer.range1` ...). Send it as the body or as the field `file` of a form. For any other table, also from
    Mechanical Turk, Label Studio, Prodigy or Appraise, the parameters say which column holds what; the refusal
    `result_columns` has a `proposal` for them. Choices of No More Marking (`judge`, `candidate_chosen`,
    `candidate_not_chosen`) need no parameters. A refused file changes nothing. If the request is
    interrupted after that, the server stores the rest; one import into a campaign runs at a time.
    """
    async with (
        open_file_name_and_media_zip_of_request(request) as (file, name, _),
        slots.holding_slot_if_file_is_large(file),
    ):
        return await responses_import.import_responses_of_file_and_return_receipt(
            database,
            slug,
            file,
            name,
            now=now,
            max_mb=settings.max_upload_mb,
            options=options.reading_options,
            request_scan=request.app.state.campaign_monitor.request_scan,
        )


@router.post(
    "/{slug}/responses/preview",
    responses=openapi_description_of_refusals(IMPORT_RESPONSES_REFUSALS),
    openapi_extra=ANSWERS_FILE_BODY,
)
async def preview_responses_of_campaign(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    slots: RequestUploadSlots,
    slug: str,
    now: Now,
    options: Annotated[AnswerFileOptions, Query()],
) -> ResponsePreview:
    """Check a file of answers as its import does, and return what its first values would become. Nothing is stored."""
    async with (
        open_file_name_and_media_zip_of_request(request) as (file, name, _),
        slots.holding_slot_if_file_is_large(file),
    ):
        return await preview_responses_of_file_or_refuse(
            database,
            slug,
            file,
            name,
            now=now,
            max_mb=settings.max_upload_mb,
            options=options.reading_options,
        )


@asynccontextmanager
async def open_file_name_and_media_zip_of_request(
    request: Request,
) -> AsyncIterator[tuple[BinaryIO, str, MediaZip | None]]:
    """Yield the file in a request, a name whose ending names its format, and the zip of media of a form, if any."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "multipart/form-data":
        async with request.form() as form_data:
            file = uploaded_file_or_refuse(form_data)
            yield file.file, file.filename or "", media_zip_of_form_or_none(form_data, request.app.state.settings)
        return
    with SpooledTemporaryFile(max_size=1_000_000) as spooled:
        async for chunk in request.stream():
            spooled.write(chunk)
        spooled.seek(0)
        yield cast("BinaryIO", spooled), "body" + ENDING_BY_CONTENT_TYPE.get(content_type, ""), None
