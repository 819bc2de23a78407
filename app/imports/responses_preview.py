"""Preview of a file of answers: the checks of an import, and what its first rows become. It stores nothing."""

from datetime import datetime
from typing import BinaryIO

from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.cell_reading import ReadingNotes, ReadingOptions
from app.annotation.platforms.result_format import ResultRow
from app.designs.campaign import Campaign
from app.designs.file_format import ValueFormat
from app.errors import pluralize
from app.imports.response_receipt import response_receipt_sentences
from app.imports.responses_import import (
    DEFAULT_READING_OPTIONS,
    MAX_VALUES_PREVIEWED,
    CheckedAnswers,
    ReadAnswerFile,
    load_campaign_and_read_answer_file_or_refuse,
    load_new_checked_answers_or_refuse,
)


class PreviewedValue(BaseModel):
    """One value of a file, and what an import would store."""

    line: int = Field(description="Line of the file.")
    hit: str = Field(description="The task.")
    annotator: str
    item: str = Field(description="The item, as the file names it.")
    item_id: str = Field(description="Its id in the campaign.")
    criterion: str = Field("", description="The criterion, in campaigns with criteria.")
    cell: str = Field("", description="The value, as the file has it; empty if it has none.")
    value: str = Field(description="The value that an import stores; empty for an item that cannot be judged.")
    submitted_at: datetime | None = Field(None, description="Time of the answer, if the file has it.")


class ResponsePreview(BaseModel):
    """Preview of an import of answers."""

    tasks: int = Field(description="Tasks that an import would store.")
    values: list[PreviewedValue] = Field(description="What the first rows become.")
    sentences: list[str] = Field(description="How the file was read.")


async def preview_responses_of_file_or_refuse(
    engine: AsyncEngine,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    now: datetime,
    max_mb: int,
    options: ReadingOptions = DEFAULT_READING_OPTIONS,
) -> ResponsePreview:
    """Return what an import of a file would store. Raises as the import does before it stores anything."""
    campaign, read_file = await load_campaign_and_read_answer_file_or_refuse(
        engine, slug, file, name, now=now, max_mb=max_mb, options=options
    )
    checked = await load_new_checked_answers_or_refuse(engine, campaign, read_file)
    task_count = len(checked.new_hits)
    checked.receipt.known -= task_count
    _, *sentences = response_receipt_sentences(checked.receipt)  # the first one tells what was imported
    return ResponsePreview(
        tasks=task_count,
        values=previewed_values(campaign, read_file, checked)[:MAX_VALUES_PREVIEWED],
        sentences=[f"The import would store {pluralize(task_count, 'task')}.", *sentences],
    )


def previewed_values(campaign: Campaign, read_file: ReadAnswerFile, checked: CheckedAnswers) -> list[PreviewedValue]:
    """Return the values of the first rows, one for each item."""
    return [
        previewed_value_of_row(campaign, read_file.notes, row, position, item_id)
        for row, item_ids in zip(checked.first_rows, checked.first_item_ids, strict=True)
        for position, item_id in enumerate(item_ids)
    ]


def previewed_value_of_row(
    campaign: Campaign, notes: ReadingNotes, row: ResultRow, position: int, item_id: str
) -> PreviewedValue:
    score, item, line = row.scores[position], row.items[position], row.line_number_of_item_at(position)
    return PreviewedValue(
        line=line,
        hit=row.assignment_id,
        annotator=row.worker_id,
        item=item,
        item_id=item_id,
        criterion=row.criterion,
        cell=notes.first_cells.get((line, item), ""),
        value=format_score_or_empty(campaign, row.criterion, score),
        submitted_at=row.submitted_at,
    )


def format_score_or_empty(campaign: Campaign, criterion_name: str, score: float | None) -> str:
    """Return a value as people write it; empty for an item without one."""
    if score is None or score != score:  # noqa: PLR0124  (NaN: another item of the task was marked)
        return ""
    return ValueFormat(campaign.find_criterion_or_refuse(criterion_name).design).format_value(score)
