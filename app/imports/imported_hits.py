"""HITs that were answered elsewhere, built from the rows of a file and checked against the campaign.

`imported_hits_store` stores them.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, NoReturn, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.answer_details import NO_DETAILS, AnswerDetails
from app.annotation.platforms.result_format import ResultRow
from app.background.collection_pause import pause_garbage_collection
from app.designs.answer import Answer
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.file_format import INPUT_KEPT_MESSAGE
from app.errors import Invalid, pluralize, shorten_echo
from app.imports.imported_segments import ImportedSegments, load_imported_segments
from app.imports.result_rows import align_rows_per_criterion_or_refuse
from app.selection.segments import items_of_hit_with_distinct_outputs, value_of_each_item_by_its_shown_item
from app.text.spreadsheets import unprotect_spreadsheet_cell
from app.uploads import raise_upload_refusal_at_line

IDS_PER_LOOKUP = 5_000

T = TypeVar("T")


class ImportedHit(NamedTuple):
    """A HIT that was answered elsewhere, with the numbers of its items in this campaign.

    Attributes:
        item_scores: Score of each item by the first criterion. For an item marked N/A, NaN if the campaign lets
            annotators say that an item cannot be judged, else None.
        is_anonymous: The file names no annotator.
        unjudged: The items marked N/A in such a campaign, each with the reason.
        segment: The segment, if items are systems, as in the table `hits`.
        shown_as: For each item the first item with the same output, as in the table `hits`.
        other_criteria_scores: `item_scores` by each further criterion.
        asked_criteria: Criteria in the order in which they were asked; empty if it is not known.
        blocks: Block of conditions of each item in the campaign of an export, or None; empty if there were no blocks.
        condition_list: List of conditions of the annotator there, if any.
        answer_details: Comments, flags and telemetry of each item, by each criterion; empty if there are none.

    """

    line: int
    worker_id: str
    assignment_id: str
    shown_items: tuple[int, ...]
    item_scores: tuple[float | None, ...]
    accepted_at: datetime | None
    submitted_at: datetime | None
    details: dict[str, str]
    is_anonymous: bool = False
    unjudged: tuple[tuple[int, str], ...] = ()
    segment: int | None = None
    shown_as: tuple[int, ...] | None = None
    other_criteria_scores: tuple[tuple[float | None, ...], ...] = ()
    asked_criteria: tuple[str, ...] = ()
    blocks: tuple[int | None, ...] = ()
    condition_list: int | None = None
    answer_details: tuple[tuple[AnswerDetails, ...], ...] = ()

    @property
    def has_response(self) -> bool:
        """Return whether an item has a score or a reason for none, so that a response is stored."""
        return self.item_scores.count(None) < len(self.item_scores)

    @property
    def scored_items(self) -> list[int]:
        """Return the items of its response."""
        if None not in self.item_scores:
            return [*self.shown_items]
        return [item for item, mark in zip(self.shown_items, self.item_scores, strict=True) if mark is not None]

    @property
    def all_scores(self) -> list[float]:
        """Return the scores by one criterion after another."""
        if not self.other_criteria_scores:
            return self.scores_by_criterion(0)
        return [mark for marks in (self.item_scores, *self.other_criteria_scores) for mark in marks if mark is not None]

    def scores_by_criterion(self, criterion_number: int) -> list[float]:
        marks = self.other_criteria_scores[criterion_number - 1] if criterion_number else self.item_scores
        return [mark for mark in marks if mark is not None]

    @property
    def unscored_items(self) -> list[int]:
        if None not in self.item_scores:
            return []
        return [item for item, mark in zip(self.shown_items, self.item_scores, strict=True) if mark is None]


FIND_ITEM_NUMBERS = text("""
    SELECT external_id, number FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
""")


def iterate_batches_for_lookup(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + IDS_PER_LOOKUP] for start in range(0, len(values), IDS_PER_LOOKUP))


async def convert_rows_to_hits_or_refuse(
    connection: AsyncConnection, campaign: Campaign, result_rows: list[ResultRow]
) -> list[ImportedHit]:
    """Return the rows of a file as HITs; empties `result_rows`.

    Raises `Invalid` (`item_unknown`, `item_repeated`) and what `stored_scores_of_hit_or_refuse`,
    `segment_and_first_equal_items_of_hit` and `align_rows_per_criterion_or_refuse` raise.
    """
    number_by_id: dict[str, int] = {}
    for ids in iterate_batches_for_lookup(await asyncio.to_thread(item_ids_with_unprotected_variants, result_rows)):
        item_rows = await connection.execute(FIND_ITEM_NUMBERS, {"campaign": campaign.id, "ids": ids})
        number_by_id |= {row.external_id: row.number for row in item_rows}
    await asyncio.to_thread(remove_apostrophes_from_unknown_ids_or_refuse, result_rows, number_by_id)
    segments = await load_imported_segments(connection, campaign)
    return await asyncio.to_thread(build_imported_hits_consuming_rows, result_rows, number_by_id, campaign, segments)


@pause_garbage_collection()
def build_imported_hits_consuming_rows(
    result_rows: list[ResultRow], number_by_id: Mapping[str, int], campaign: Campaign, segments: ImportedSegments
) -> list[ImportedHit]:
    """Return the HITs, each with its scores by all criteria; empties `result_rows`."""
    keeps_unjudged, criteria = campaign.cannot_be_judged, campaign.criteria
    rows_by_criterion = [result_rows]
    if campaign.has_criteria:
        rows_by_criterion = align_rows_per_criterion_or_refuse(result_rows, campaign.criterion_names)
        result_rows.clear()  # the parts have copies
    asked_criteria_of_hits = [asked_criteria_or_empty(rows) for rows in zip(*rows_by_criterion, strict=True)]
    hits_by_criterion = [
        build_hits_consuming_rows_or_refuse(
            part, number_by_id, criterion.design, segments, keeps_unjudged=keeps_unjudged
        )
        for part, criterion in zip(rows_by_criterion, criteria, strict=True)
    ]
    return (
        [
            merge_hit_of_all_criteria(asked, *hits)
            for asked, *hits in zip(asked_criteria_of_hits, *hits_by_criterion, strict=True)
        ]
        if campaign.has_criteria
        else hits_by_criterion[0]
    )


def asked_criteria_or_empty(rows: Sequence[ResultRow]) -> tuple[str, ...]:
    """Return the criteria of the rows of a HIT in the order in which they were asked; empty if it is not known."""
    place_by_criterion = {row.criterion: row.criterion_position or 0 for row in rows}
    is_known = sorted(place_by_criterion.values()) == [*range(1, 1 + len(rows))]
    return tuple(sorted(place_by_criterion, key=place_by_criterion.__getitem__)) if is_known else ()


def merge_hit_of_all_criteria(
    asked_criteria: tuple[str, ...], first_criterion_hit: ImportedHit, *others: ImportedHit
) -> ImportedHit:
    """Return one HIT by all criteria, from its first acceptance to its last submission.

    Equal outputs were shown once if they have equal scores by each criterion.
    """
    parts = first_criterion_hit, *others
    return first_criterion_hit._replace(
        asked_criteria=asked_criteria,
        other_criteria_scores=tuple(other.item_scores for other in others),
        answer_details=tuple(
            details for part in parts for details in part.answer_details or ((NO_DETAILS,) * len(part.shown_items),)
        )
        if any(part.answer_details for part in parts)
        else (),
        shown_as=first_criterion_hit.shown_as
        if all(other.shown_as == first_criterion_hit.shown_as for other in others)
        else None,
        accepted_at=min((part.accepted_at for part in parts if part.accepted_at), default=None),
        submitted_at=max((part.submitted_at for part in parts if part.submitted_at), default=None),
    )


def item_ids_with_unprotected_variants(result_rows: Sequence[ResultRow]) -> list[str]:
    """Return the ids of all items, also without the apostrophe that exports for spreadsheet programs have."""
    ids = {external_id for row in result_rows for external_id in row.items}
    return list(ids | {unprotect_spreadsheet_cell(external_id) for external_id in ids})


def remove_apostrophes_from_unknown_ids_or_refuse(
    result_rows: list[ResultRow], number_by_id: Mapping[str, int]
) -> None:
    """Remove the apostrophe of exports for spreadsheet programs from ids that the campaign has without it only.

    Raises `Invalid` (`item_repeated`).
    """
    for position, row in enumerate(result_rows):
        if all(map(number_by_id.__contains__, row.items)):
            continue
        items = tuple(name if name in number_by_id else unprotect_spreadsheet_cell(name) for name in row.items)
        if len(set(items)) < len(items):
            raise_upload_refusal_at_line(
                "item_repeated", row.line, "an item appears twice in this task, with and without an apostrophe."
            )
        result_rows[position] = row._replace(items=items)


def build_hits_consuming_rows_or_refuse(
    result_rows: list[ResultRow],
    number_by_id: Mapping[str, int],
    design: Design,
    segments: ImportedSegments,
    *,
    keeps_unjudged: bool,
) -> list[ImportedHit]:
    """Return the HITs by one criterion. Takes each row from `result_rows`: freeing a million at once would block
    others.

    Raises `Invalid` (`item_unknown`) and what `stored_scores_of_hit_or_refuse` and
    `segment_and_first_equal_items_of_hit` raise.
    """
    result_rows.reverse()
    return [
        build_imported_hit_of_criterion_or_refuse(
            result_rows.pop(), number_by_id, design, segments, keeps_unjudged=keeps_unjudged
        )
        for _ in range(len(result_rows))
    ]


def build_imported_hit_of_criterion_or_refuse(
    result_row: ResultRow,
    number_by_id: Mapping[str, int],
    design: Design,
    segments: ImportedSegments,
    *,
    keeps_unjudged: bool,
) -> ImportedHit:
    try:
        shown_items = tuple(map(number_by_id.__getitem__, result_row.items))
    except KeyError as unknown:
        refuse_unknown_item(result_row, unknown.args[0])
    reason_by_unjudged_item = unjudged_reason_or_empty_by_item(result_row, shown_items) if keeps_unjudged else {}
    segment, shown_as = segments.segment_and_first_equal_items_of_hit(result_row, shown_items)
    return ImportedHit(
        result_row.line,
        result_row.worker_id,
        result_row.assignment_id,
        shown_items,
        stored_scores_of_hit_or_refuse(design, result_row, shown_items, reason_by_unjudged_item, shown_as),
        result_row.accepted_at,
        result_row.submitted_at,
        result_row.details,
        result_row.anonymous,
        tuple(reason_by_unjudged_item.items()),
        segment,
        shown_as,
        blocks=result_row.blocks,
        condition_list=result_row.condition_list,
        answer_details=(result_row.answer_details,) if result_row.answer_details else (),
    )


def refuse_unknown_item(result_row: ResultRow, external_id: str) -> NoReturn:
    item_name = shorten_echo(external_id)
    raise_upload_refusal_at_line(
        "item_unknown",
        result_row.line_number_of_item_at(result_row.items.index(external_id)),
        f"the campaign has no item “{item_name}”.",
        item=item_name,
    )


def unjudged_reason_or_empty_by_item(result_row: ResultRow, shown_items: Sequence[int]) -> dict[int, str]:
    """Return the items marked N/A, each with the reason, empty if none is known."""
    reasons = result_row.reasons or [""] * len(shown_items)
    return {
        item: reason
        for item, score, reason in zip(shown_items, result_row.scores, reasons, strict=True)
        if score is None
    }


def refuse_hit_without_always_shown_items(design: Design, result_row: ResultRow) -> None:
    for name in design.always_shown:
        if name not in result_row.items:
            item_name = shorten_echo(name)
            raise_upload_refusal_at_line(
                "item_missing",
                result_row.line,
                f"every task in this campaign has the item “{item_name}”, but this one lacks it.",
            )


def stored_scores_of_hit_or_refuse(
    design: Design,
    result_row: ResultRow,
    shown_items: Sequence[int],
    reason_by_unjudged_item: Mapping[int, str],
    shown_as: Sequence[int] | None,
) -> tuple[float | None, ...]:
    """Return the scores of a HIT as its design stores them.

    Raises `Invalid` if no annotator can have been asked or have answered so: `item_missing`, `hit_size`,
    `answer_impossible`, and other refusals of the design.
    """
    refuse_hit_without_always_shown_items(design, result_row)
    if (
        shown_as is None
        and not reason_by_unjudged_item
        and design.fewest_items <= len(shown_items) <= design.items_per_hit[-1]
        and (stored_values := design.stored_values_of_whole_hit_or_none(result_row.scores)) is not None
    ):
        return tuple(stored_values)  # for any other HIT, the rest of this function finds the reason
    score_by_item = dict(zip(shown_items, result_row.scores, strict=True))
    items_shown_once = items_of_hit_with_distinct_outputs(shown_items, shown_as)
    given_scores = {
        item: mark
        for item in items_shown_once
        if (mark := score_by_item[item]) is not None and mark == mark  # noqa: PLR0124  (not NaN, the quickest way)
    }
    fewest, most = design.fewest_items, design.items_per_hit[-1]
    if len(shown_items) > most or (0 < len(given_scores) < fewest and not reason_by_unjudged_item):
        possible_counts = f"{fewest} to {most}" if fewest < most else f"{most}"
        count = pluralize(len(shown_items) if len(shown_items) > most else len(given_scores), "item")
        raise_upload_refusal_at_line(
            "hit_size",
            result_row.line,
            f"this task has {count} with a {design.noun}, but should have {possible_counts}.",
        )
    answered_items = [
        item for item in items_shown_once if score_by_item[item] is not None or item in reason_by_unjudged_item
    ]
    if not answered_items:
        return result_row.scores
    try:
        unjudged_reasons = {
            item: reason_by_unjudged_item[item] for item in items_shown_once if item in reason_by_unjudged_item
        }
        checked_values = design.checked_values_in_item_order_or_refuse(
            Answer(given_scores, unjudged=unjudged_reasons), answered_items
        )
    except Invalid as refused:
        raise_upload_refusal_at_line(
            refused.code,
            result_row.line,
            f"no annotator can give this answer. {refused.message.removesuffix(INPUT_KEPT_MESSAGE).strip()}",
        )
    if len(answered_items) == len(shown_items):
        return tuple(checked_values)
    values = dict.fromkeys(shown_items) | dict(zip(answered_items, checked_values, strict=True))
    return tuple(value_of_each_item_by_its_shown_item(values, shown_items, shown_as))
