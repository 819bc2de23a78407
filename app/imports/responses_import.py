"""Import of answers that were given elsewhere as responses of a launched campaign (the EASL program's "update").

The whole file is checked first. Then its HITs are stored in file order, a few in each transaction, so that annotators
of the campaign never wait longer than one transaction takes. The first transaction also stores the file, and the last
one deletes it: so an interrupted import is continued, by the next import into the campaign or by `import_continuation`.
A stored HIT is recognised by its assignment.
"""

import asyncio
import csv
import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.answer_files import read_platform_rows_and_notes
from app.annotation.platforms.cell_reading import ReadingNotes, ReadingOptions
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import REQUIRED_RESULT_COLUMNS, ResultRow
from app.background.collection_pause import pause_garbage_collection
from app.background.progress_stream import ReportRowCount
from app.database.alerts import store_alert_unless_known
from app.database.exclusive_work import WorkClaim, hold_work_during_block
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.file_format import CriterionValueFormat, ValueFormat
from app.errors import Conflict, Refusal, shorten_echo
from app.imports.imported_details import count_comments_and_flags
from app.imports.imported_hits import ImportedHit, convert_rows_to_hits_or_refuse
from app.imports.imported_hits_store import (
    drop_hits_of_erased_people,
    load_hits_without_stored_answer,
    load_new_hits_or_refuse_changed,
)
from app.imports.response_receipt import ResponseImportReceipt
from app.imports.response_storage import ResponseStorage
from app.imports.result_rows import replace_item_texts_by_ids_and_count_items
from app.imports.unfinished_imports import (
    AnswerFile,
    delete_unfinished_import,
    load_unfinished_import_or_none,
    pack_answer_file,
)
from app.privacy.retention import refuse_import_without_identifiers
from app.record.campaign import load_campaign_by_slug_or_refuse

log = logging.getLogger(__name__)

DEFAULT_READING_OPTIONS = ReadingOptions()
MAX_VALUES_PREVIEWED = 20
# What happens again if the same file is continued. Lost connections pass, and so does the end of a process.
RECURRENT_ERRORS = (Refusal, ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError)
UNEXPECTED_END_TEXT = (
    "The server could not continue; its log says why. Import the file again: only the missing tasks are added."
)
MAX_STORED_FILE_MB = 1024  # the most that an operator can allow for uploads


async def import_responses_of_file_and_return_receipt(
    engine: AsyncEngine,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    now: datetime,
    max_mb: int,
    options: ReadingOptions = DEFAULT_READING_OPTIONS,
    progress: ReportRowCount = lambda _rows: None,
    request_scan: Callable[[int], None] = lambda _campaign_id: None,
) -> ResponseImportReceipt:
    """Store a file's HITs as responses, in file order, and update the posteriors.

    The answers exist already, so items may get more judgments than the campaign wants. `progress` is called now and
    then with the number of stored HITs, and `request_scan` at the end with the campaign's id. Raises `NotFound`,
    `Conflict` (`not_launched`, `is_a_rehearsal`, `identifiers_erased`, `assignment_known`), and `Invalid` as
    `convert_rows_to_hits_or_refuse` and `read_platform_rows_and_notes` do, before anything is stored. One import into a
    campaign runs at a time, and finishes an interrupted one first: if that was of the same file, this is all it does.
    """
    campaign, read_file = await load_campaign_and_read_answer_file_or_refuse(
        engine, slug, file, name, now=now, max_mb=max_mb, options=options
    )
    answer_file = await pack_answer_file(file, name, options, now=now)
    async with hold_work_during_block(engine, response_import_work_name(campaign.id)) as claim:
        finished = await continue_interrupted_response_import_or_none(engine, campaign, claim, request_scan, progress)
        if finished is not None and finished.answer_file.has_same_answers(answer_file):
            return finished.receipt
        checked = await load_new_checked_answers_or_refuse(engine, campaign, read_file)
        storage = ResponseStorage(engine, campaign, read_file.platform, claim, answer_file)
        await storage.store_all_hits_and_finish_if_complete(checked.new_hits, checked.receipt, progress)
    request_scan(campaign.id)
    return checked.receipt


def response_import_work_name(campaign_id: int) -> str:
    """Return the name of the work that one import into a campaign does at a time."""
    return f"import of answers, campaign {campaign_id}"


@dataclass
class ReadAnswerFile:
    """The platform of a file's annotators, its rows, and notes on the reading."""

    platform: Platform
    rows: list[ResultRow]
    notes: ReadingNotes


@pause_garbage_collection()
def read_answer_file_or_refuse(
    file: BinaryIO, name: str, campaign: Campaign, *, now: datetime, max_mb: int, options: ReadingOptions
) -> ReadAnswerFile:
    values = CriterionValueFormat(campaign)
    platform, rows, notes = read_platform_rows_and_notes(file, name, values, now=now, max_mb=max_mb, options=options)
    return ReadAnswerFile(platform=platform, rows=rows, notes=notes)


async def load_campaign_and_read_answer_file_or_refuse(
    engine: AsyncEngine, slug: str, file: BinaryIO, name: str, *, now: datetime, max_mb: int, options: ReadingOptions
) -> tuple[Campaign, ReadAnswerFile]:
    """Return a campaign that answers can be imported into, and a file of answers, whose rows are not checked yet.

    Raises what `import_responses_of_file_and_return_receipt` raises about the campaign and about reading the file.
    """
    async with engine.connect() as connection:
        campaign = await load_campaign_or_refuse_response_import(connection, slug)
        await refuse_import_without_identifiers(connection, campaign)
    read_file = await asyncio.to_thread(
        read_answer_file_or_refuse, file, name, campaign, now=now, max_mb=max_mb, options=options
    )
    return campaign, read_file


@dataclass
class FinishedImport:
    """An import that was continued and is finished now, with the receipt of what this process stored."""

    answer_file: AnswerFile
    receipt: ResponseImportReceipt


@dataclass
class CheckedAnswers:
    """Answers of a file that passed all checks of an import.

    Attributes:
        first_rows: First rows of the file, with the names of items as the file has them.
        first_item_ids: The ids of their items in the campaign.
        new_hits: HITs that are not stored yet.
        receipt: What is known before anything is stored; `known` counts the new HITs too.

    """

    first_rows: list[ResultRow]
    first_item_ids: list[tuple[str, ...]]
    new_hits: list[ImportedHit]
    receipt: ResponseImportReceipt


async def load_new_checked_answers_or_refuse(
    engine: AsyncEngine, campaign: Campaign, read_file: ReadAnswerFile, *, refuse_changed: bool = True
) -> CheckedAnswers:
    """Return the HITs of a file that are not stored yet, and a receipt with what is known so far.

    Raises what `import_responses_of_file_and_return_receipt` raises about rows. Without `refuse_changed`, HITs with
    another stored answer are left out, and there may be none.
    """
    notes, platform, rows = read_file.notes, read_file.platform, read_file.rows
    first_rows = rows[:MAX_VALUES_PREVIEWED]
    async with engine.connect() as connection:
        notes.by_text = (
            await replace_item_texts_by_ids_and_count_items(connection, campaign.id, rows) if notes.columns else 0
        )
        first_item_ids = [row.items for row in rows[:MAX_VALUES_PREVIEWED]]
        hits = await convert_rows_to_hits_or_refuse(connection, campaign, rows)
        kept_hits = await drop_hits_of_erased_people(connection, campaign, platform, hits)
        new_hits = (
            await load_new_hits_or_refuse_changed(connection, campaign, platform, kept_hits)
            if refuse_changed
            else await load_hits_without_stored_answer(connection, campaign, platform, kept_hits)
        )
    if not new_hits and refuse_changed:
        raise Conflict(
            f"All rows of this file are already in “{campaign.name}”, or are of people who were erased. "
            "Nothing was imported.",
            code="assignment_known",
            line=hits[0].line,
        )
    names = ResponseImportReceipt.model_fields.keys() & ReadingNotes.__dataclass_fields__.keys()
    receipt = ResponseImportReceipt.model_validate({name: getattr(notes, name) for name in names})
    receipt.known, receipt.erased = len(kept_hits), len(hits) - len(kept_hits)
    receipt.remarks = await asyncio.to_thread(lambda: sum(map(count_comments_and_flags, new_hits)))
    return CheckedAnswers(first_rows, first_item_ids, new_hits, receipt)


async def continue_interrupted_response_import_or_none(
    engine: AsyncEngine,
    campaign: Campaign,
    claim: WorkClaim,
    request_scan: Callable[[int], None],
    progress: ReportRowCount = lambda _rows: None,
) -> FinishedImport | None:
    """Store the rest of the campaign's unfinished import, and return it; None if there is none.

    The file was checked when the import began. If it is refused now, since identifiers were erased, items removed or
    the campaign is a draft again, or if it fails in another way that would recur, what is stored stays, the import
    ends, and an alert says so.
    """
    async with engine.connect() as connection:
        answer_file = await load_unfinished_import_or_none(connection, campaign.id)
    if answer_file is None:
        return None
    try:
        async with engine.connect() as connection:
            campaign = await load_campaign_or_refuse_response_import(connection, campaign.slug)
            await refuse_import_without_identifiers(connection, campaign)
        read_file = await asyncio.to_thread(
            lambda: read_answer_file_or_refuse(
                io.BytesIO(answer_file.content),
                answer_file.name,
                campaign,
                now=answer_file.started_at,
                max_mb=MAX_STORED_FILE_MB,
                options=answer_file.options,
            )
        )
        checked = await load_new_checked_answers_or_refuse(engine, campaign, read_file, refuse_changed=False)
        storage = ResponseStorage(engine, campaign, read_file.platform, claim, answer_file, has_begun=True)
        await storage.store_all_hits_and_finish_if_complete(checked.new_hits, checked.receipt, progress)
    except RECURRENT_ERRORS as problem:
        reason, cause = (problem.message, None) if isinstance(problem, Refusal) else (UNEXPECTED_END_TEXT, problem)
        log.warning("the import of answers into “%s” ends: %s", campaign.name, reason, exc_info=cause)
        about, occasion = shorten_echo(answer_file.name), answer_file.started_at.isoformat()
        async with engine.begin() as connection:
            await claim.hold_until_transaction_ends_or_raise(connection)
            await delete_unfinished_import(connection, campaign.id)
            await store_alert_unless_known(connection, campaign.id, "import", occasion, about=about, because=reason)
        return None
    request_scan(campaign.id)
    return FinishedImport(answer_file, checked.receipt)


def example_response_csv_or_empty(campaign: Campaign, item_ids: Sequence[str], segment_id: str | None = None) -> str:
    """Return an example file with one answer to a HIT of these items, best first; empty if they are too few.

    If the items are systems, `segment_id` is the segment of the HIT.
    """
    rows = [row for criterion in campaign.criteria for row in example_response_rows(criterion, item_ids)]
    file = io.StringIO()
    segment_and_output_id_cells = () if segment_id is None else (segment_id,)
    columns = (
        *REQUIRED_RESULT_COLUMNS,
        *(["segment"] if segment_and_output_id_cells else []),
        *(["criterion"] if campaign.has_criteria else []),
    )
    lines = [
        (*row[: len(REQUIRED_RESULT_COLUMNS)], *segment_and_output_id_cells, *row[len(REQUIRED_RESULT_COLUMNS) :])
        for row in rows
    ]
    csv.writer(file, lineterminator="\n").writerows([columns, *lines] if lines else [])
    return file.getvalue()


def example_response_rows(criterion: Criterion[Campaign], item_ids: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the rows of one criterion, whose name ends each row if there are several."""
    design, name = criterion.design, [criterion.name] if criterion.name else []
    item_ids = list(dict.fromkeys([*design.always_shown, *item_ids]))[: len(item_ids)]
    count, file_values = len(item_ids), ValueFormat(design)
    if count < design.fewest_items:
        return []
    values = design.simulate_answer_values([(count - k) / (count + 1) for k in range(count)])
    return [
        ("h1", "Ann", item, file_values.format_value(value), *name)
        for item, value in zip(item_ids, values, strict=True)
    ]


async def load_campaign_or_refuse_response_import(connection: AsyncConnection, slug: str) -> Campaign:
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if campaign.status == "draft":
        raise Conflict(
            f"“{campaign.name}” is a draft. Launch it (you can pause it at once), then import its results.",
            code="not_launched",
            status=campaign.status,
        )
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal. Import into its campaign.", code="is_a_rehearsal")
    return campaign
