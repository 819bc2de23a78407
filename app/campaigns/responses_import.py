"""Answers that were given elsewhere as responses of a launched campaign: what the released EASL program calls its
update.

The whole file is checked first. Then its HITs are stored in file order, a few at a time, each time in a transaction of
its own: so annotators of the campaign never wait for more than one of these. A HIT that is stored is known by its
assignment, so an import that was interrupted is finished by importing the file again.
"""

import asyncio
import csv
import io
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, BinaryIO

from pydantic import BaseModel, Field
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.answer_files import read_answer_file
from app.annotation.platforms.cell_reading import ReadingOptions
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import REQUIRED_RESULT_COLUMNS
from app.campaigns import lifecycle
from app.campaigns.imported_hits import (
    ImportedHit,
    convert_rows_to_hits,
    drop_stored_hits,
    store_imported_hits,
    store_imported_responses,
    unnumbered_responses,
)
from app.campaigns.items_by_text import replace_item_texts_by_ids
from app.campaigns.progress_stream import ReportRowCount
from app.database.audit_log import log_change
from app.database.campaign import finish_if_complete
from app.designs.criteria import criterion_views
from app.designs.file_format import CriterionValueFormat, ValueFormat
from app.designs.registry import design_of
from app.errors import Conflict, pluralize
from app.record.bulk_update import lock_present_posteriors, share_store_lock

DEFAULT_READING_OPTIONS = ReadingOptions()
MIN_HITS_PER_TRANSACTION, MAX_HITS_PER_TRANSACTION = 5, 2_000  # in one transaction
TARGET_TRANSACTION_SECONDS = 0.1  # about as long as annotators of the campaign may wait for rows that are being stored


class ResponseImportReceipt(BaseModel):
    """What an import of results did."""

    responses: int = Field(0, description="Stored now.")
    items: int = Field(0, description="Judged by them.")
    not_applicable: int = Field(0, description="Scores left out, because their item was marked N/A.")
    without_score: int = Field(0, description="HITs in which every item was marked N/A: kept, without a response.")
    known: int = Field(0, description="HITs passed over, because they were imported before.")
    without_worker: int = Field(0, description="HITs without a WorkerId: they count as one annotator's.")
    over_wanted: int = Field(0, description="How many of these items have more judgments than wanted now.")
    finished: bool = Field(
        default=False, description="Whether the campaign was closed, because every item has what was wanted."
    )
    rejected: int = Field(
        0, description="HITs left out, because they were rejected, cancelled, ignored, or controls of another tool."
    )
    missing: int = Field(0, description="Values left out, because their cells are empty or say NA.")
    percent: int = Field(0, description="Values that were written in percent.")
    decimal_comma: bool = Field(default=False, description="Whether numbers were read with decimal commas.")
    date_order: str = Field("", description="How dates were read whose order matters: day_first or month_first.")
    time_zone: str = Field("", description="The zone of times that name none; empty if all do.")
    columns: str = Field("", description="What was read from which column, where the columns are not Easel's own.")
    passed_over: str = Field("", description="The columns that were not read then.")
    by_text: int = Field(0, description="Items that were found by their text instead of their id.")
    rows: int = Field(0, description="Rows of the file.")
    lines: int = Field(0, description="Lines of the file, blank ones included.")
    file: str = Field("", description="How the table was read, in sentences.")


def response_receipt_sentences(receipt: ResponseImportReceipt) -> list[str]:
    """What an import did, in words."""
    have = "has" if receipt.over_wanted == 1 else "have"
    condition_by_sentence = {
        f"Imported {pluralize(receipt.responses, 'response')} on {pluralize(receipt.items, 'item')}.": True,
        f"HITs passed over because they were imported before: {receipt.known:,}.": receipt.known,
        f"Scores left out because their item was marked N/A: {receipt.not_applicable:,}. The export of responses has these marks.": receipt.not_applicable,
        f"HITs in which every item was marked N/A, kept without a response: {receipt.without_score:,}.": (
            receipt.without_score
        ),
        f"Rows without a WorkerId: {receipt.without_worker:,}. They count as the answers of one annotator.": (
            receipt.without_worker
        ),
        f"{pluralize(receipt.over_wanted, 'item')} now {have} more judgments than you wanted; all of them count.": (
            receipt.over_wanted
        ),
        "Every item has the judgments you wanted, so the campaign is finished.": receipt.finished,
        f"HITs left out because they were rejected, cancelled or ignored: {receipt.rejected:,}.": receipt.rejected,
        f"Values left out because their cells are empty or say NA: {receipt.missing:,}.": receipt.missing,
        f"Values read as percent: {receipt.percent:,}.": receipt.percent,
        "Numbers were read with decimal commas.": receipt.decimal_comma,
        f"Dates were read with the {receipt.date_order.removesuffix('_first')} first.": receipt.date_order,
        f"Times without a time zone were read as {receipt.time_zone}.": receipt.time_zone,
        f"Columns read: {receipt.columns}.": receipt.columns,
        f"Columns passed over: {receipt.passed_over}.": receipt.passed_over,
        f"Items found by their text: {receipt.by_text:,}.": receipt.by_text,
        f"The file has {pluralize(receipt.rows, 'row')} on {pluralize(receipt.lines, 'line')}.": receipt.rows,
        receipt.file: receipt.file,
    }
    return [sentence for sentence, true in condition_by_sentence.items() if true]


async def import_responses_from_file(
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
    """Store a file's HITs as responses, in file order, with the posteriors that follow.

    The answers exist, so items may come to have more judgments than are wanted. `progress` is told now and then how
    many HITs are in, and `looks` at the end which campaign has new answers. Raises `NotFound`, `Conflict`
    (`not_launched`, `is_a_rehearsal`, `assignment_known`), and `Invalid` as `numbered` and `read_answers` do, before
    anything is stored. Interrupted by anything else, it leaves the first rows stored, and the same file imported again
    goes on after them.
    """
    async with engine.connect() as connection:
        campaign = await find_campaign_for_responses(connection, slug)
    values = CriterionValueFormat(campaign)
    platform, rows, notes = await asyncio.to_thread(
        read_answer_file, file, name, values, now=now, max_mb=max_mb, options=options
    )
    async with engine.connect() as connection:
        notes.by_text = await replace_item_texts_by_ids(connection, campaign.id, rows) if notes.columns else 0
        hits = await convert_rows_to_hits(connection, campaign, rows)
        hit_count, first_hit = len(hits), hits[0]
        new_hits = await drop_stored_hits(connection, campaign, platform, hits)
    del hits
    if not new_hits:
        raise Conflict(
            f"All rows of this file are in “{campaign.name}” already. Nothing was imported.",
            code="assignment_known",
            line=first_hit.line,
        )
    stored_count, receipt = 0, ResponseImportReceipt.model_validate(asdict(notes))
    judgments_by_item: dict[int, int] = {}
    async for batch, counts in store_hits_in_batches(engine, campaign, platform, new_hits, now=now):
        stored_count += len(batch)
        receipt.responses += sum(bool(hit.scored_items) for hit in batch)
        receipt.not_applicable += sum(len(hit.unscored_items) + len(hit.unjudged) for hit in batch)
        receipt.without_score += sum(not hit.scored_items for hit in batch)
        receipt.without_worker += sum(hit.nameless for hit in batch)
        judgments_by_item |= counts
        progress(stored_count)
    async with engine.begin() as connection:
        receipt.finished = await finish_if_complete(connection, campaign.id, now=now)
    request_scan(campaign.id)
    receipt.items, receipt.known = len(judgments_by_item), hit_count - stored_count
    judgments_by_drawn_item = {
        item: count for item, count in judgments_by_item.items() if item not in campaign.always_shown
    }
    receipt.over_wanted = await asyncio.to_thread(
        count_items_over_wanted, campaign.judgments_per_item, judgments_by_drawn_item
    )
    return receipt


def example_responses_csv(campaign: Any, item_ids: Sequence[str], segment_id: str | None = None) -> str:
    """A file with somebody's answer to a HIT of as many items, the first the best; nothing if they are too few.

    segment: where the items are systems, that of the HIT.
    """
    rows = [row for view in criterion_views(campaign) for row in example_response_rows(view, item_ids)]
    file = io.StringIO()
    segment_cells = () if segment_id is None else (segment_id,)
    columns = (
        *REQUIRED_RESULT_COLUMNS,
        *(["segment"] if segment_cells else []),
        *(["criterion"] if campaign.criteria else []),
    )
    lines = [
        (*row[: len(REQUIRED_RESULT_COLUMNS)], *segment_cells, *row[len(REQUIRED_RESULT_COLUMNS) :]) for row in rows
    ]
    csv.writer(file, lineterminator="\n").writerows([columns, *lines] if lines else [])
    return file.getvalue()


def example_response_rows(criterion_view: Any, item_ids: Sequence[str]) -> list[tuple[str, ...]]:
    """By the criterion that the campaign is read by, whose name ends each row."""
    design, name = design_of(criterion_view), [criterion_view.criterion_name] if criterion_view.criteria else []
    item_ids = list(dict.fromkeys([*design.always_shown, *item_ids]))[: len(item_ids)]
    count, file_values = len(item_ids), ValueFormat(design)
    if count < design.fewest_items:
        return []
    values = design.simulate_answer([(count - k) / (count + 1) for k in range(count)])
    return [
        ("h1", "Ann", item, file_values.format_value(value), *name)
        for item, value in zip(item_ids, values, strict=True)
    ]


def count_items_over_wanted(judgments_wanted: int, judgments_by_item: Mapping[int, int]) -> int:
    return sum(count > judgments_wanted for count in judgments_by_item.values())


async def find_campaign_for_responses(connection: AsyncConnection, slug: str) -> Row[Any]:
    campaign = await lifecycle.find_campaign(connection, slug)
    if campaign.status == "draft":
        raise Conflict(
            f"“{campaign.name}” is a draft. Launch it (you can pause it at once), then import its results.",
            code="not_launched",
            status=campaign.status,
        )
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal. Import into its campaign.", code="is_a_rehearsal")
    return campaign


async def store_hits_in_batches(
    engine: AsyncEngine, campaign: Row[Any], platform: Platform, hits: list[ImportedHit], *, now: datetime
) -> AsyncIterator[tuple[list[ImportedHit], dict[int, int]]]:
    """HITs stored, some at a time, as many as hold others up for `HOLD_SECONDS`; those, and the judgments that their
    items then have. They are taken from `hits`, for the reason that `hits_of` has.

    In between annotators have as much time, so that those who waited need not wait again.
    """
    hits.reverse()
    batch_size, fixed_seconds, hit_count = MIN_HITS_PER_TRANSACTION, math.inf, len(hits)
    while batch := [hits.pop() for _ in range(min(batch_size, len(hits)))]:
        async with engine.begin() as connection:
            await share_store_lock(connection, campaign)
            if fixed_seconds == math.inf:  # with the first of them: who imports the same file again goes on after these
                await log_change(connection, "answers.imported", campaign, after={"hits": hit_count})
            stored_hits = await store_imported_hits(connection, campaign, platform, batch, now=now)
            scored_hits = [one for one in stored_hits if one.imported.scored_items]
            locked_posteriors = await lock_present_posteriors(
                connection, campaign, unnumbered_responses(scored_hits, 0)
            )
            start_time = time.monotonic()  # what it waited for others is no reason to store fewer
            counts = (
                await store_imported_responses(connection, campaign, scored_hits, locked_posteriors, now=now)
                if scored_hits
                else {}
            )
        held_seconds = time.monotonic() - start_time
        yield [one.imported for one in stored_hits], counts
        fixed_seconds = min(
            fixed_seconds, held_seconds
        )  # what any number of rows takes, such as the commit, is no reason to store fewer
        row_seconds = max(held_seconds - fixed_seconds, 0.01 * TARGET_TRANSACTION_SECONDS)
        batch_size = min(
            max(round(batch_size * TARGET_TRANSACTION_SECONDS / row_seconds), MIN_HITS_PER_TRANSACTION),
            2 * batch_size,
            MAX_HITS_PER_TRANSACTION,
        )
        if campaign.status == "running":
            await asyncio.sleep(held_seconds)
