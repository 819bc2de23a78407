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

from app.campaigns import lifecycle
from app.campaigns.imported_hits import (
    ImportedHit,
    numbered,
    store_closed,
    store_responses,
    unnumbered,
    without_stored,
)
from app.campaigns.items_by_text import name_items_by_text
from app.campaigns.progress import Progress
from app.crowd.answer_files import read_answers
from app.crowd.answered import NEEDED
from app.crowd.platform import Platform
from app.crowd.reading import ReadingOptions
from app.database.audit_log import note
from app.database.campaign import finish_if_complete
from app.designs.criteria import criteria_of
from app.designs.registry import design_of
from app.designs.written import Written, WrittenByCriterion
from app.errors import Conflict, plural
from app.record.folding import lock_present, share

AS_WRITTEN = ReadingOptions()
FEWEST_ROWS, MOST_ROWS = 5, 2_000  # in one transaction
HOLD_SECONDS = 0.1  # about as long as annotators of the campaign may wait for rows that are being stored


class ImportedResponses(BaseModel):
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


def sentences(done: ImportedResponses) -> list[str]:
    """What an import did, in words."""
    have = "has" if done.over_wanted == 1 else "have"
    said = {
        f"Imported {plural(done.responses, 'response')} on {plural(done.items, 'item')}.": True,
        f"HITs passed over because they were imported before: {done.known:,}.": done.known,
        f"Scores left out because their item was marked N/A: {done.not_applicable:,}. The export of responses has "
        "these marks.": done.not_applicable,
        f"HITs in which every item was marked N/A, kept without a response: {done.without_score:,}.": (
            done.without_score
        ),
        f"Rows without a WorkerId: {done.without_worker:,}. They count as the answers of one annotator.": (
            done.without_worker
        ),
        f"{plural(done.over_wanted, 'item')} now {have} more judgments than you wanted; all of them count.": (
            done.over_wanted
        ),
        "Every item has the judgments you wanted, so the campaign is finished.": done.finished,
        f"HITs left out because they were rejected, cancelled or ignored: {done.rejected:,}.": done.rejected,
        f"Values left out because their cells are empty or say NA: {done.missing:,}.": done.missing,
        f"Values read as percent: {done.percent:,}.": done.percent,
        "Numbers were read with decimal commas.": done.decimal_comma,
        f"Dates were read with the {done.date_order.removesuffix('_first')} first.": done.date_order,
        f"Times without a time zone were read as {done.time_zone}.": done.time_zone,
        f"Columns read: {done.columns}.": done.columns,
        f"Columns passed over: {done.passed_over}.": done.passed_over,
        f"Items found by their text: {done.by_text:,}.": done.by_text,
        f"The file has {plural(done.rows, 'row')} on {plural(done.lines, 'line')}.": done.rows,
        done.file: done.file,
    }
    return [sentence for sentence, true in said.items() if true]


async def import_results(
    engine: AsyncEngine,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    now: datetime,
    max_mb: int,
    options: ReadingOptions = AS_WRITTEN,
    progress: Progress = lambda _rows: None,
    looks: Callable[[int], None] = lambda _campaign_id: None,
) -> ImportedResponses:
    """Store a file's HITs as responses, in file order, with the posteriors that follow.

    The answers exist, so items may come to have more judgments than are wanted. `progress` is told now and then how
    many HITs are in, and `looks` at the end which campaign has new answers. Raises `NotFound`, `Conflict`
    (`not_launched`, `is_a_rehearsal`, `assignment_known`), and `Invalid` as `numbered` and `read_answers` do, before
    anything is stored. Interrupted by anything else, it leaves the first rows stored, and the same file imported again
    goes on after them.
    """
    async with engine.connect() as connection:
        campaign = await launched(connection, slug)
    values = WrittenByCriterion(campaign)
    platform, rows, notes = await asyncio.to_thread(
        read_answers, file, name, values, now=now, max_mb=max_mb, options=options
    )
    async with engine.connect() as connection:
        notes.by_text = await name_items_by_text(connection, campaign.id, rows) if notes.columns else 0
        hits = await numbered(connection, campaign, rows)
        count, first = len(hits), hits[0]
        new = await without_stored(connection, campaign, platform, hits)
    del hits
    if not new:
        raise Conflict(
            f"All rows of this file are in “{campaign.name}” already. Nothing was imported.",
            code="assignment_known",
            line=first.line,
        )
    stored, done = 0, ImportedResponses.model_validate(asdict(notes))
    judgments: dict[int, int] = {}
    async for some, counts in stored_in_turn(engine, campaign, platform, new, now=now):
        stored += len(some)
        done.responses += sum(bool(hit.items) for hit in some)
        done.not_applicable += sum(len(hit.not_applicable) + len(hit.unjudged) for hit in some)
        done.without_score += sum(not hit.items for hit in some)
        done.without_worker += sum(hit.nameless for hit in some)
        judgments |= counts
        progress(stored)
    async with engine.begin() as connection:
        done.finished = await finish_if_complete(connection, campaign.id, now=now)
    looks(campaign.id)
    done.items, done.known = len(judgments), count - stored
    drawn = {item: count for item, count in judgments.items() if item not in campaign.always_shown}
    done.over_wanted = await asyncio.to_thread(more_than, campaign.judgments_per_item, drawn)
    return done


def example(campaign: Any, ids: Sequence[str], segment: str | None = None) -> str:
    """A file with somebody's answer to a HIT of as many items, the first the best; nothing if they are too few.

    segment: where the items are systems, that of the HIT.
    """
    rows = [row for view in criteria_of(campaign) for row in example_rows(view, ids)]
    file = io.StringIO()
    below = () if segment is None else (segment,)
    columns = (*NEEDED, *(["segment"] if below else []), *(["criterion"] if campaign.criteria else []))
    lines = [(*row[: len(NEEDED)], *below, *row[len(NEEDED) :]) for row in rows]
    csv.writer(file, lineterminator="\n").writerows([columns, *lines] if lines else [])
    return file.getvalue()


def example_rows(campaign: Any, ids: Sequence[str]) -> list[tuple[str, ...]]:
    """By the criterion that the campaign is read by, whose name ends each row."""
    design, name = design_of(campaign), [campaign.criterion_name] if campaign.criteria else []
    ids = list(dict.fromkeys([*design.always_shown, *ids]))[: len(ids)]
    count, written = len(ids), Written(design)
    if count < design.fewest_items:
        return []
    values = design.given([(count - k) / (count + 1) for k in range(count)])
    return [("h1", "Ann", item, written.words(value), *name) for item, value in zip(ids, values, strict=True)]


def more_than(wanted: int, judgments: Mapping[int, int]) -> int:
    return sum(count > wanted for count in judgments.values())


async def launched(connection: AsyncConnection, slug: str) -> Row[Any]:
    campaign = await lifecycle.find(connection, slug)
    if campaign.status == "draft":
        raise Conflict(
            f"“{campaign.name}” is a draft. Launch it (you can pause it at once), then import its results.",
            code="not_launched",
            status=campaign.status,
        )
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal. Import into its campaign.", code="is_a_rehearsal")
    return campaign


async def stored_in_turn(
    engine: AsyncEngine, campaign: Row[Any], platform: Platform, hits: list[ImportedHit], *, now: datetime
) -> AsyncIterator[tuple[list[ImportedHit], dict[int, int]]]:
    """HITs stored, some at a time, as many as hold others up for `HOLD_SECONDS`; those, and the judgments that their
    items then have. They are taken from `hits`, for the reason that `hits_of` has.

    In between annotators have as much time, so that those who waited need not wait again.
    """
    hits.reverse()
    size, fixed, wanted = FEWEST_ROWS, math.inf, len(hits)
    while some := [hits.pop() for _ in range(min(size, len(hits)))]:
        async with engine.begin() as connection:
            await share(connection, campaign)
            if fixed == math.inf:  # with the first of them: who imports the same file again goes on after these
                await note(connection, "answers.imported", campaign, after={"hits": wanted})
            closed = await store_closed(connection, campaign, platform, some, now=now)
            scored = [one for one in closed if one.hit.items]
            locked = await lock_present(connection, campaign, unnumbered(scored, 0))
            began = time.monotonic()  # what it waited for others is no reason to store fewer
            counts = await store_responses(connection, campaign, scored, locked, now=now) if scored else {}
        held = time.monotonic() - began
        yield [one.hit for one in closed], counts
        fixed = min(fixed, held)  # what any number of rows takes, such as the commit, is no reason to store fewer
        of_rows = max(held - fixed, 0.01 * HOLD_SECONDS)
        size = min(max(round(size * HOLD_SECONDS / of_rows), FEWEST_ROWS), 2 * size, MOST_ROWS)
        if campaign.status == "running":
            await asyncio.sleep(held)
