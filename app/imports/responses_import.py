"""Import of answers that were given elsewhere as responses of a launched campaign (the EASL program's "update").

The whole file is checked first. Then its HITs are stored in file order, a few in each transaction, so that annotators
of the campaign never wait longer than one transaction takes. A stored HIT is recognised by its assignment: import the
file again to finish an interrupted import.
"""

import asyncio
import csv
import io
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.answer_files import read_platform_rows_and_notes
from app.annotation.platforms.cell_reading import ReadingNotes, ReadingOptions
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import REQUIRED_RESULT_COLUMNS, ResultRow
from app.background.progress_stream import ReportRowCount
from app.database import tables
from app.database.audit_log import log_change
from app.database.campaign import finish_campaign_if_complete_and_tell
from app.database.statistics import analyze_tables_with_many_new_rows
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.file_format import CriterionValueFormat, ValueFormat
from app.errors import Conflict, pluralize
from app.imports.imported_hits import ImportedHit, convert_rows_to_hits_or_refuse
from app.imports.imported_hits_store import (
    ARE_ANNOTATORS_AT_WORK,
    drop_hits_of_erased_people,
    load_new_hits_or_refuse_changed,
    store_closed_hits_and_return_new_ones,
    store_responses_returning_judgment_counts,
    unnumbered_responses_of_criterion,
)
from app.imports.result_rows import replace_item_texts_by_ids_and_count_items
from app.privacy.retention import refuse_import_without_identifiers
from app.record.bulk_update import lock_and_load_posteriors_by_criterion, take_shared_lock_to_store_answers
from app.record.campaign import load_campaign_by_slug_or_refuse

DEFAULT_READING_OPTIONS = ReadingOptions()
MAX_ROWS_PREVIEWED = 20
MIN_HITS_PER_TRANSACTION, MAX_HITS_PER_TRANSACTION = 5, 5_000
TARGET_TRANSACTION_SECONDS = 0.1  # how long annotators of the campaign may have to wait
TARGET_QUIET_TRANSACTION_SECONDS = 1.0  # while none has a HIT: one who comes then may have to wait so long, once
TABLES_OF_ANSWERS = (tables.assignments, tables.hits, tables.responses)


class ResponseImportReceipt(BaseModel):
    """Receipt of an import of answers."""

    responses: int = Field(0, description="Responses stored by this import.")
    items: int = Field(0, description="Items judged by these responses.")
    not_applicable: int = Field(0, description="Scores left out because their item was marked N/A.")
    without_score: int = Field(0, description="Tasks in which every item was marked N/A: kept, without a response.")
    known: int = Field(0, description="Tasks skipped because they were imported before.")
    erased: int = Field(0, description="Tasks skipped because their annotator was erased.")
    without_worker: int = Field(0, description="Tasks without a WorkerId: they count as one annotator's.")
    over_wanted: int = Field(0, description="Number of these items that now have more judgments than wanted.")
    finished: bool = Field(
        default=False, description="Whether the campaign was finished because every item has its judgments."
    )
    rejected: int = Field(
        0,
        description=(
            "Tasks left out because they were rejected, cancelled or ignored, or were control tasks of another tool."
        ),
    )
    missing: int = Field(0, description="Values left out because their cells are empty or say NA.")
    percent: int = Field(0, description="Values that were written in percent.")
    decimal_comma: bool = Field(default=False, description="Whether numbers were read with decimal commas.")
    date_order: str = Field("", description="How ambiguous dates were read: day_first or month_first.")
    time_zone: str = Field("", description="Time zone of times without one; empty if all times have one.")
    columns: str = Field(
        "", description="What was read from which column, if the file does not have Easel's own columns."
    )
    passed_over: str = Field("", description="The columns that were not read in that case.")
    by_text: int = Field(0, description="Items that were found by their text instead of their id.")
    rows: int = Field(0, description="Rows of the file.")
    lines: int = Field(0, description="Lines of the file, blank ones included.")
    file: str = Field("", description="How the table was read, in sentences.")


def response_receipt_sentences(receipt: ResponseImportReceipt) -> list[str]:
    have = "has" if receipt.over_wanted == 1 else "have"
    condition_by_sentence = {
        f"Imported {pluralize(receipt.responses, 'response')} on {pluralize(receipt.items, 'item')}.": True,
        f"Tasks skipped because they were imported before: {receipt.known:,}.": receipt.known,
        f"Tasks skipped because their annotator was erased: {receipt.erased:,}.": receipt.erased,
        f"Scores left out because their item was marked N/A: {receipt.not_applicable:,}. The export of responses "
        "has these marks.": receipt.not_applicable,
        f"Tasks in which every item was marked N/A, kept without a response: {receipt.without_score:,}.": (
            receipt.without_score
        ),
        f"Rows without a WorkerId: {receipt.without_worker:,}. They count as the answers of one annotator.": (
            receipt.without_worker
        ),
        f"{pluralize(receipt.over_wanted, 'item')} now {have} more judgments than you wanted; all of them count.": (
            receipt.over_wanted
        ),
        "Every item has the judgments you wanted, so the campaign is finished.": receipt.finished,
        f"Tasks left out because they were rejected, cancelled or ignored: {receipt.rejected:,}.": receipt.rejected,
        f"Values left out because their cells are empty or say NA: {receipt.missing:,}.": receipt.missing,
        f"Values read as percent: {receipt.percent:,}.": receipt.percent,
        "Numbers were read with decimal commas.": receipt.decimal_comma,
        f"Dates were read with the {receipt.date_order.removesuffix('_first')} first.": receipt.date_order,
        f"Times without a time zone were read as {receipt.time_zone}.": receipt.time_zone,
        f"Columns read: {receipt.columns}.": receipt.columns,
        f"Columns skipped: {receipt.passed_over}.": receipt.passed_over,
        f"Items found by their text: {receipt.by_text:,}.": receipt.by_text,
        f"The file has {pluralize(receipt.rows, 'row')} on {pluralize(receipt.lines, 'line')}.": receipt.rows,
        receipt.file: receipt.file,
    }
    return [sentence for sentence, true in condition_by_sentence.items() if true]


@dataclass
class CheckedAnswers:
    """Answers of a file that passed all checks of an import.

    Attributes:
        campaign: The campaign.
        platform: Platform of the annotators.
        first_rows: First rows of the file, with the names of items as the file has them.
        first_item_ids: The ids of their items in the campaign.
        notes: Notes on how the file was read.
        new_hits: HITs that are not stored yet.
        known_count: Number of HITs that are stored already.
        erased_count: Number of HITs of people who were erased.

    """

    campaign: Campaign
    platform: Platform
    first_rows: list[ResultRow]
    first_item_ids: list[tuple[str, ...]]
    notes: ReadingNotes
    new_hits: list[ImportedHit]
    known_count: int
    erased_count: int

    def build_receipt_of_reading(self) -> ResponseImportReceipt:
        """Return a receipt with what is known before anything is stored."""
        names = ResponseImportReceipt.model_fields.keys() & ReadingNotes.__dataclass_fields__.keys()
        receipt = ResponseImportReceipt.model_validate({name: getattr(self.notes, name) for name in names})
        receipt.known, receipt.erased = self.known_count, self.erased_count
        return receipt


async def read_and_check_answers_or_refuse(
    engine: AsyncEngine,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    now: datetime,
    max_mb: int,
    options: ReadingOptions,
) -> CheckedAnswers:
    """Return the HITs of a file after all checks. Raises as `import_responses_of_file_and_return_receipt` does."""
    async with engine.connect() as connection:
        campaign = await load_campaign_or_refuse_response_import(connection, slug)
        await refuse_import_without_identifiers(connection, campaign)
    values = CriterionValueFormat(campaign)
    platform, rows, notes = await asyncio.to_thread(
        read_platform_rows_and_notes, file, name, values, now=now, max_mb=max_mb, options=options
    )
    first_rows = rows[:MAX_ROWS_PREVIEWED]
    async with engine.connect() as connection:
        notes.by_text = (
            await replace_item_texts_by_ids_and_count_items(connection, campaign.id, rows) if notes.columns else 0
        )
        first_item_ids = [row.items for row in rows[:MAX_ROWS_PREVIEWED]]
        hits = await convert_rows_to_hits_or_refuse(connection, campaign, rows)
        first_hit = hits[0]
        kept_hits = await drop_hits_of_erased_people(connection, campaign, platform, hits)
        hit_count, erased_count = len(kept_hits), len(hits) - len(kept_hits)
        new_hits = await load_new_hits_or_refuse_changed(connection, campaign, platform, kept_hits)
    if not new_hits:
        raise Conflict(
            f"All rows of this file are already in “{campaign.name}”, or are of people who were erased. "
            "Nothing was imported.",
            code="assignment_known",
            line=first_hit.line,
        )
    return CheckedAnswers(
        campaign=campaign,
        platform=platform,
        first_rows=first_rows,
        first_item_ids=first_item_ids,
        notes=notes,
        new_hits=new_hits,
        known_count=hit_count - len(new_hits),
        erased_count=erased_count,
    )


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
    `convert_rows_to_hits_or_refuse` and `read_platform_rows_and_notes` do, before anything is stored. If it is
    interrupted, the first rows stay stored, and importing the same file again continues after them.
    """
    checked = await read_and_check_answers_or_refuse(engine, slug, file, name, now=now, max_mb=max_mb, options=options)
    campaign, new_hits, new_count = checked.campaign, checked.new_hits, len(checked.new_hits)
    stored_count, receipt = 0, checked.build_receipt_of_reading()
    judgments_by_item: dict[int, int] = {}
    async for batch, counts in store_hits_yielding_each_batch(engine, campaign, checked.platform, new_hits, now=now):
        stored_count += len(batch)
        receipt.responses += sum(bool(hit.scored_items) for hit in batch)
        receipt.not_applicable += sum(len(hit.unscored_items) + len(hit.unjudged) for hit in batch)
        receipt.without_score += sum(not hit.scored_items for hit in batch)
        receipt.without_worker += sum(hit.is_anonymous for hit in batch)
        judgments_by_item |= counts
        progress(stored_count)
    async with engine.begin() as connection:
        await analyze_tables_with_many_new_rows(connection, TABLES_OF_ANSWERS, added_count=stored_count)
    async with engine.begin() as connection:
        receipt.finished = await finish_campaign_if_complete_and_tell(connection, campaign.id, now=now)
    request_scan(campaign.id)
    receipt.items = len(judgments_by_item)
    receipt.known = checked.known_count + new_count - stored_count
    receipt.over_wanted = await asyncio.to_thread(count_items_over_wanted_judgments, campaign, judgments_by_item)
    return receipt


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


def count_items_over_wanted_judgments(campaign: Campaign, judgments_by_item: Mapping[int, int]) -> int:
    drawn_items = judgments_by_item.keys() - set(campaign.always_shown)
    return sum(judgments_by_item[item] > campaign.judgments_per_item for item in drawn_items)


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


async def store_hits_yielding_each_batch(
    engine: AsyncEngine, campaign: Campaign, platform: Platform, hits: list[ImportedHit], *, now: datetime
) -> AsyncIterator[tuple[list[ImportedHit], dict[int, int]]]:
    """Store HITs in batches, and yield each batch with the number of judgments that its items have then.

    The batch size is adapted so that a transaction takes `TARGET_TRANSACTION_SECONDS` while annotators have HITs, and
    `TARGET_QUIET_TRANSACTION_SECONDS` while none has. Between two batches annotators get as much time, so that those
    who waited need not wait again. Takes the HITs from `hits`: freeing a million at once would block this process.
    """
    hits.reverse()
    batch_size, fixed_seconds, hit_count = MIN_HITS_PER_TRANSACTION, math.inf, len(hits)
    while batch := [hits.pop() for _ in range(min(batch_size, len(hits)))]:
        async with engine.begin() as connection:
            await take_shared_lock_to_store_answers(connection, campaign)
            if fixed_seconds == math.inf:  # with the first batch: importing the file again continues after it
                await log_change(connection, "answers.imported", campaign, new_values={"hits": hit_count})
            stored_hits = await store_closed_hits_and_return_new_ones(connection, campaign, platform, batch, now=now)
            scored_hits = [stored for stored in stored_hits if stored.imported.scored_items]
            answers_by_criterion = [
                await asyncio.to_thread(unnumbered_responses_of_criterion, scored_hits, criterion.number)
                for criterion in campaign.criteria
            ]
            locked_posteriors = await lock_and_load_posteriors_by_criterion(
                connection, campaign, answers_by_criterion[0]
            )
            start_time = time.monotonic()  # excludes the wait for locks, which is no reason to store fewer
            counts = (
                await store_responses_returning_judgment_counts(
                    connection, campaign, scored_hits, answers_by_criterion, locked_posteriors, now=now
                )
                if scored_hits
                else {}
            )
            has_annotators = await connection.scalar(ARE_ANNOTATORS_AT_WORK, {"campaign": campaign.id})
        held_seconds = time.monotonic() - start_time
        yield [stored.imported for stored in stored_hits], counts
        target_seconds = TARGET_TRANSACTION_SECONDS if has_annotators else TARGET_QUIET_TRANSACTION_SECONDS
        # The time that any batch takes, such as the commit, is no reason to store fewer.
        fixed_seconds = min(fixed_seconds, held_seconds)
        row_seconds = max(held_seconds - fixed_seconds, 0.01 * target_seconds)
        batch_size = min(
            max(round(batch_size * target_seconds / row_seconds), MIN_HITS_PER_TRANSACTION),
            2 * batch_size,
            MAX_HITS_PER_TRANSACTION,
        )
        if has_annotators:
            await asyncio.sleep(held_seconds)
