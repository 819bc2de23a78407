"""Rows of imported HITs in COPY's text format: their assignments, the closed HITs, and the responses."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from app.database.bulk import NULL_IN_COPY, format_array_for_copy, format_copy_cell
from app.designs.criteria import CRITERIA_ORDER_KEY
from app.designs.remarks import stored_remarks_or_empty
from app.designs.unjudged import UNJUDGED_KEY
from app.imports.imported_details import remarks_by_subject, telemetry_json_or_none
from app.imports.imported_hits import ImportedHit
from app.selection.condition_squares import BLOCKS_KEY, LIST_KEY, SQUARE_PLACE_KEY

ASSIGNMENT_COPY_COLUMNS = ("campaign_id", "id", "annotator_id", "external_id", "arrival", "arrived_at", "completed_at")
HIT_COPY_COLUMNS = (
    *("id", "campaign_id", "annotator_id", "assignment_id", "items", "not_applicable", "segment", "shown_as"),
    *("issued_at", "expires_at", "closed_at"),
)
RESPONSE_COPY_COLUMNS = (
    *("seq", "campaign_id", "hit_id", "annotator_id", "source", "items", "values", "segment", "received_at"),
    *("extra", "telemetry"),
)


class StoredImportedHit(NamedTuple):
    """A HIT that was stored as closed, with its id and those of its annotator and its assignment."""

    imported: ImportedHit
    hit_id: int
    annotator_id: int
    assignment_id: int


def assignment_lines_for_copy(campaign_id: int, stored_hits: Sequence[StoredImportedHit], now: datetime) -> list[str]:
    """Return the rows of the HITs' assignments, completed when they were submitted."""
    lines, import_time = [], now.isoformat()
    for hit, _, annotator_id, assignment_id in stored_hits:
        start, end = start_and_end_texts(hit, import_time)
        external_id = format_copy_cell(hit.assignment_id)
        details = format_copy_cell(json.dumps(hit.details)) if hit.details else "{}"
        lines.append(f"{campaign_id}\t{assignment_id}\t{annotator_id}\t{external_id}\t{details}\t{start}\t{end}\n")
    return lines


def hit_lines_for_copy(campaign_id: int, stored_hits: Sequence[StoredImportedHit], now: datetime) -> list[str]:
    """Return the rows of the HITs, closed when they were submitted."""
    lines, import_time = [], now.isoformat()
    for hit, hit_id, annotator_id, assignment_id in stored_hits:
        start, end = start_and_end_texts(hit, import_time)
        items, unscored = format_array_for_copy(hit.shown_items), format_array_for_copy(hit.unscored_items or None)
        segment, shown_as = NULL_IN_COPY if hit.segment is None else hit.segment, format_array_for_copy(hit.shown_as)
        lines.append(
            f"{hit_id}\t{campaign_id}\t{annotator_id}\t{assignment_id}\t{items}\t{unscored}\t{segment}\t{shown_as}"
            f"\t{start}\t{end}\t{end}\n"
        )
    return lines


def start_and_end_texts(hit: ImportedHit, import_time: str) -> tuple[str, str]:
    """Return when a HIT was accepted and submitted, or else when it was imported."""
    end = hit.submitted_at.isoformat() if hit.submitted_at else import_time
    return hit.accepted_at.isoformat() if hit.accepted_at else end, end


def response_lines_without_number(
    campaign_id: int, stored_hits: Sequence[StoredImportedHit], now: datetime
) -> list[str]:
    """Return the rows of the responses to HITs, without their first cell, `seq`."""
    lines, import_time = [], now.isoformat()
    for hit, hit_id, annotator_id, _ in stored_hits:
        items, values = format_array_for_copy(hit.scored_items), format_array_for_copy(hit.all_scores)
        segment = NULL_IN_COPY if hit.segment is None else hit.segment
        received_at = hit.submitted_at.isoformat() if hit.submitted_at else import_time
        extra = extra_json_of_imported_answer(hit)
        extra_text = format_copy_cell(json.dumps(extra)) if extra else NULL_IN_COPY
        telemetry = telemetry_json_or_none(hit)
        telemetry_text = NULL_IN_COPY if telemetry is None else format_copy_cell(telemetry)
        lines.append(
            f"{campaign_id}\t{hit_id}\t{annotator_id}\timport\t{items}\t{values}\t{segment}"
            f"\t{received_at}\t{extra_text}\t{telemetry_text}\n"
        )
    return lines


def extra_json_of_imported_answer(hit: ImportedHit) -> dict[str, Any]:
    """Return `responses.extra` of an answer: remarks, what could not be judged, the order of criteria, the place in
    blocks.
    """
    extra: dict[str, Any] = dict(stored_remarks_or_empty(remarks_by_subject(hit))) if hit.answer_details else {}
    if hit.unjudged:
        extra[UNJUDGED_KEY] = unjudged_reason_by_item_number_text(hit)
    if hit.asked_criteria:
        extra[CRITERIA_ORDER_KEY] = hit.asked_criteria
    if hit.blocks or hit.condition_list:
        extra[SQUARE_PLACE_KEY] = {BLOCKS_KEY: hit.blocks, LIST_KEY: hit.condition_list}
    return extra


def unjudged_reason_by_item_number_text(hit: ImportedHit) -> dict[str, str]:
    """Return the reasons in the format of a response's `extra`."""
    return {str(item): reason for item, reason in hit.unjudged}
