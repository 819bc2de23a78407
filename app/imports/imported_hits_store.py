"""Storage of HITs that were answered elsewhere: recognise stored ones, add new ones, and update the posteriors."""

import asyncio
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.assignment import HIT_IS_OPEN_IN_INDEX
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import ANONYMOUS_ID_PREFIX
from app.database import tables
from app.database.bulk import (
    NULL_IN_COPY,
    format_array_for_copy,
    format_copy_cell,
    insert_text_lines_by_copy,
    reserve_next_ids_of_column,
    reserve_next_record_numbers,
)
from app.designs.campaign import Campaign
from app.designs.criteria import CRITERIA_ORDER_KEY
from app.designs.remarks import stored_remarks_or_empty
from app.designs.unjudged import UNJUDGED_KEY
from app.errors import Conflict, shorten_echo
from app.imports.imported_details import remarks_by_subject, telemetry_json_or_none
from app.imports.imported_hits import ImportedHit, batches_for_lookup
from app.privacy.erasure_list import load_person_hashes, person_hash
from app.privacy.retention import refuse_import_without_identifiers
from app.record import responses, unjudged
from app.record.bulk_update import LockedPosteriors, apply_answers_and_count_by_item
from app.record.responses import Response
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


ARE_ANNOTATORS_AT_WORK = text(f"""
    SELECT EXISTS (SELECT FROM hits h WHERE h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX})
""")

# One batch at a time, so that two processes cannot both find the assignments of a file unknown.
LOCK_RESPONSE_IMPORTS = text("SELECT pg_advisory_xact_lock(hashtext('campaign.results'), CAST(:campaign AS int))")

SELECT_STORED_ANSWERS = """
    SELECT given.worker, given.id, h.items AS shown, h.segment, h.not_applicable, r.items, r.values AS scores, r.extra
    FROM unnest(CAST(:workers AS text[]), CAST(:ids AS text[])) AS given (worker, id)"""
JOIN_LAST_RESPONSE = """
    LEFT JOIN LATERAL (
        SELECT * FROM responses WHERE campaign_id = :campaign AND hit_id = h.id ORDER BY seq DESC LIMIT 1
    ) AS r ON true"""

# For platforms whose assignment ids are unique. A returned assignment may have been taken by another annotator.
# An answer without an annotator may be any annotator's.
FIND_ANSWERS_BY_ASSIGNMENT = text(f"""{SELECT_STORED_ANSWERS}
    JOIN assignments s ON s.campaign_id = :campaign AND s.external_id = given.id
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id AND a.platform = :platform
        AND (a.worker_id = given.worker OR starts_with(a.worker_id, '{ANONYMOUS_ID_PREFIX}')
             OR starts_with(given.worker, '{ANONYMOUS_ID_PREFIX}'))
    LEFT JOIN hits h ON h.campaign_id = :campaign AND h.assignment_id = s.id {JOIN_LAST_RESPONSE}
""")

# For platforms where annotators share assignment ids. An export of the campaign itself has its annotators' pseudonyms
# and its own numbers of HITs. LATERAL looks each answer up by its annotator, however many others share the id.
FIND_ANSWERS_BY_ANNOTATOR = text(f"""{SELECT_STORED_ANSWERS}
    JOIN LATERAL (
        SELECT s.id FROM annotators a
        JOIN assignments s ON s.campaign_id = :campaign AND s.annotator_id = a.id AND s.external_id = given.id
        WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.worker LIMIT 1
    ) AS s ON true
    LEFT JOIN hits h ON h.campaign_id = :campaign AND h.assignment_id = s.id {JOIN_LAST_RESPONSE}
    UNION ALL {SELECT_STORED_ANSWERS}
    JOIN LATERAL (
        SELECT h.* FROM annotators a
        JOIN hits h ON h.campaign_id = :campaign AND h.annotator_id = a.id
            AND h.id = CASE WHEN given.id ~ '^[0-9]{{1,18}}$' THEN CAST(given.id AS bigint) END
        WHERE a.campaign_id = :campaign AND a.pseudonym = given.worker LIMIT 1
    ) AS h ON true {JOIN_LAST_RESPONSE}
""")

CREATE_IMPORTED_ANNOTATORS = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT :campaign, :platform, worker_id, pseudonym, :now
    FROM unnest(CAST(:workers AS text[]), CAST(:pseudonyms AS text[])) AS new (worker_id, pseudonym) ORDER BY worker_id
    ON CONFLICT (campaign_id, platform, worker_id) DO NOTHING
""")

FIND_IMPORTED_ANNOTATORS = text("""
    SELECT worker_id, id FROM annotators
    WHERE campaign_id = :campaign AND platform = :platform AND worker_id = ANY(CAST(:workers AS text[]))
""")


ImportedAnswerKey: TypeAlias = tuple[str, str]
"""Key of an imported answer: the ids of its annotator and its assignment."""


def imported_answer_key(hit: ImportedHit) -> ImportedAnswerKey:
    return hit.worker_id, hit.assignment_id


async def load_stored_rows_by_answer_key(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit]
) -> dict[ImportedAnswerKey, list[Row[Any]]]:
    """Return what is stored of the assignments of these HITs."""
    stored_rows_by_key: dict[ImportedAnswerKey, list[Row[Any]]] = {}
    statement = FIND_ANSWERS_BY_ANNOTATOR if platform.shares_assignment_ids else FIND_ANSWERS_BY_ASSIGNMENT
    for batch in batches_for_lookup(hits):
        workers, ids = zip(*(imported_answer_key(hit) for hit in batch), strict=True)
        parameters = {"campaign": campaign.id, "platform": platform.name, "workers": list(workers), "ids": list(ids)}
        for row in await connection.execute(statement, parameters):
            stored_rows_by_key.setdefault((row.worker, row.id), []).append(row)
    return stored_rows_by_key


async def load_hits_without_stored_answer(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Return the HITs that are not stored yet, whatever the answers of the others."""
    stored_rows_by_key = await load_stored_rows_by_answer_key(connection, campaign, platform, hits)
    return [hit for hit in hits if imported_answer_key(hit) not in stored_rows_by_key]


async def load_new_hits_or_refuse_changed(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Return the HITs that are not stored yet. Raises `Conflict` (`assignment_known`) if a stored answer differs."""
    stored_rows_by_key = await load_stored_rows_by_answer_key(connection, campaign, platform, hits)
    return await asyncio.to_thread(hits_without_stored_row_or_refuse, hits, platform, stored_rows_by_key, campaign.name)


async def drop_hits_of_erased_people(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Return the HITs without those of people who were erased, whom a file must not bring back.

    A worker's id may also be the pseudonym of an erased person, from an earlier export.
    """
    hashes = await load_person_hashes(connection, campaign.id)
    if not hashes:
        return list(hits)
    is_erased = {
        worker: not hashes.isdisjoint(person_hash(campaign.link_key, name, worker) for name in (platform.name, ""))
        for worker in {hit.worker_id for hit in hits}
    }
    return [hit for hit in hits if not is_erased[hit.worker_id]]


def hits_without_stored_row_or_refuse(
    hits: Sequence[ImportedHit],
    platform: Platform,
    stored_rows_by_key: Mapping[ImportedAnswerKey, Sequence[Row[Any]]],
    campaign_name: str,
) -> list[ImportedHit]:
    """Return the HITs without a stored answer. Raises `Conflict` (`assignment_known`) if a stored answer differs."""
    for hit in hits:
        stored_rows = stored_rows_by_key.get(imported_answer_key(hit), ())
        if any(not is_equal_to_stored_answer(hit, row) for row in stored_rows):
            difference = (
                "with another answer"
                if any(map(has_stored_answer, stored_rows))
                else "without an answer: the annotator came to Easel"
            )
            raise Conflict(
                f"Line {hit.line}: {description_of_imported_answer(hit, platform)} is already in “{campaign_name}”, "
                f"{difference}. Nothing was imported.",
                code="assignment_known",
                line=hit.line,
            )
    return [hit for hit in hits if imported_answer_key(hit) not in stored_rows_by_key]


def description_of_imported_answer(hit: ImportedHit, platform: Platform) -> str:
    """Return the name of an answer for a reader of the file."""
    if platform.shares_assignment_ids:
        return f"the task {shorten_echo(hit.assignment_id)} of {shorten_echo(hit.worker_id)}"
    return f"the assignment {shorten_echo(hit.assignment_id)}"


def has_stored_answer(stored_row: Row[Any]) -> bool:
    """Return whether an assignment's HIT has an answer; it may also be open, given up or missing."""
    return stored_row.scores is not None or stored_row.not_applicable is not None


def is_equal_to_stored_answer(hit: ImportedHit, stored_row: Row[Any]) -> bool:
    """Return whether the stored answer equals this one."""
    unjudged_reasons = (stored_row.extra or {}).get(UNJUDGED_KEY, {})
    stored_values = (
        stored_row.shown,
        stored_row.segment,
        stored_row.not_applicable or [],
        stored_row.items or [],
        scores_with_none_for_nan(stored_row.scores or []),
        unjudged_reasons,
    )
    return stored_values == (
        *(list(hit.shown_items), hit.segment, hit.unscored_items, hit.scored_items),
        *(scores_with_none_for_nan(hit.all_scores), unjudged_reason_by_item_number_text(hit)),
    )


def scores_with_none_for_nan(scores: Sequence[float]) -> list[float | None]:
    """Return scores that can be compared: NaN is not equal to itself."""
    return [None if math.isnan(score) else score for score in scores]


def unjudged_reason_by_item_number_text(hit: ImportedHit) -> dict[str, str]:
    """Return the reasons in the format of a response's `extra`."""
    return {str(item): reason for item, reason in hit.unjudged}


async def find_or_create_annotator_id_by_worker(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit], *, now: datetime
) -> dict[str, int]:
    """Return the annotator of each worker id; creates new ones."""
    workers = sorted({hit.worker_id for hit in hits})
    parameters = {
        "campaign": campaign.id,
        "platform": platform.name,
        "workers": workers,
        "pseudonyms": [secrets.token_hex(5) for _ in workers],
        "now": now,
    }
    await connection.execute(CREATE_IMPORTED_ANNOTATORS, parameters)
    return {row.worker_id: row.id for row in await connection.execute(FIND_IMPORTED_ANNOTATORS, parameters)}


async def store_closed_hits_and_return_new_ones(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit], *, now: datetime
) -> list[StoredImportedHit]:
    """Store annotators, assignments and closed HITs, except those whose annotators answered in Easel meanwhile.

    No annotator at work waits for these rows. Raises `Conflict` (`identifiers_erased`) if ids were erased meanwhile.
    """
    await connection.execute(LOCK_RESPONSE_IMPORTS, {"campaign": campaign.id})
    hits = await load_hits_without_stored_answer(connection, campaign, platform, hits)
    await refuse_import_without_identifiers(connection, campaign)  # after the lookup, which may have found random ids
    hits = await drop_hits_of_erased_people(connection, campaign, platform, hits)
    annotator_id_by_worker = await find_or_create_annotator_id_by_worker(connection, campaign, platform, hits, now=now)
    reserved_ids = [
        await reserve_next_ids_of_column(connection, table.c.id, len(hits))
        for table in (tables.assignments, tables.hits)
    ]
    stored_hits = [
        StoredImportedHit(hit, hit_id, annotator_id_by_worker[hit.worker_id], assignment_id)
        for hit, assignment_id, hit_id in zip(hits, *reserved_ids, strict=True)
    ]
    assignment_lines, hit_lines = await asyncio.to_thread(
        assignment_and_hit_lines_for_copy, campaign.id, stored_hits, now
    )
    await insert_text_lines_by_copy(connection, tables.assignments, assignment_lines, *ASSIGNMENT_COPY_COLUMNS)
    await insert_text_lines_by_copy(connection, tables.hits, hit_lines, *HIT_COPY_COLUMNS)
    return stored_hits


def assignment_and_hit_lines_for_copy(
    campaign_id: int, stored_hits: Sequence[StoredImportedHit], now: datetime
) -> tuple[list[str], list[str]]:
    """Return the rows of the HITs' assignments and of the HITs, closed when they were submitted."""
    assignment_lines, hit_lines, import_time = [], [], now.isoformat()
    for hit, hit_id, annotator_id, assignment_id in stored_hits:
        end = hit.submitted_at.isoformat() if hit.submitted_at else import_time
        start = hit.accepted_at.isoformat() if hit.accepted_at else end
        external_id, details = format_copy_cell(hit.assignment_id), format_copy_cell(json.dumps(hit.details))
        assignment_lines.append(
            f"{campaign_id}\t{assignment_id}\t{annotator_id}\t{external_id}\t{details}\t{start}\t{end}\n"
        )
        items, unscored = format_array_for_copy(hit.shown_items), format_array_for_copy(hit.unscored_items or None)
        segment, shown_as = NULL_IN_COPY if hit.segment is None else hit.segment, format_array_for_copy(hit.shown_as)
        hit_lines.append(
            f"{hit_id}\t{campaign_id}\t{annotator_id}\t{assignment_id}\t{items}\t{unscored}\t{segment}\t{shown_as}"
            f"\t{start}\t{end}\t{end}\n"
        )
    return assignment_lines, hit_lines


async def store_responses_returning_judgment_counts(
    connection: AsyncConnection,
    campaign: Campaign,
    stored_hits: Sequence[StoredImportedHit],
    answers_by_criterion: Sequence[Sequence[Response]],
    locked_posteriors: Sequence[LockedPosteriors],
    *,
    now: datetime,
) -> dict[int, int]:
    """Store responses to closed HITs with scores and update the posteriors; return the judgments of the HITs' items.

    Each criterion has its answers in `answers_by_criterion` and its locked posteriors in `locked_posteriors`. Responses
    are numbered under the locks, so `seq` is the order of the updates.
    """
    excluded_annotators = await responses.load_excluded_annotator_ids(connection, campaign.id)
    counting_answers = [
        [answer for answer in answers if answer.annotator not in excluded_annotators]
        for answers in answers_by_criterion
    ]
    judgments, *_ = [
        await apply_answers_and_count_by_item(connection, criterion, answers, locked)
        for criterion, answers, locked in zip(campaign.criteria, counting_answers, locked_posteriors, strict=True)
    ]
    seqs = await reserve_next_record_numbers(connection, len(stored_hits))
    lines = await asyncio.to_thread(response_lines_for_copy, campaign.id, seqs, stored_hits, now)
    await insert_text_lines_by_copy(connection, tables.responses, lines, *RESPONSE_COPY_COLUMNS)
    if items := {item for stored in stored_hits for item, _ in stored.imported.unjudged}:
        await unjudged.recount_and_store_unjudged_of_items(
            connection, locked_posteriors[0].revision, items=sorted(items)
        )
    return judgments


def response_lines_for_copy(
    campaign_id: int, seqs: Sequence[int], stored_hits: Sequence[StoredImportedHit], now: datetime
) -> list[str]:
    """Return the rows of the responses to HITs, numbered by `seqs`."""
    lines, import_time = [], now.isoformat()
    for seq, (hit, hit_id, annotator_id, _) in zip(seqs, stored_hits, strict=True):
        items, values = format_array_for_copy(hit.scored_items), format_array_for_copy(hit.all_scores)
        segment = NULL_IN_COPY if hit.segment is None else hit.segment
        received_at = hit.submitted_at.isoformat() if hit.submitted_at else import_time
        extra = extra_json_of_imported_answer(hit)
        extra_text = format_copy_cell(json.dumps(extra)) if extra else NULL_IN_COPY
        telemetry = telemetry_json_or_none(hit)
        telemetry_text = NULL_IN_COPY if telemetry is None else format_copy_cell(telemetry)
        lines.append(
            f"{seq}\t{campaign_id}\t{hit_id}\t{annotator_id}\timport\t{items}\t{values}\t{segment}"
            f"\t{received_at}\t{extra_text}\t{telemetry_text}\n"
        )
    return lines


def extra_json_of_imported_answer(hit: ImportedHit) -> dict[str, Any]:
    """Return `responses.extra` of an answer: remarks, what could not be judged, the order of criteria, the place in
    blocks.
    """
    extra: dict[str, Any] = dict(stored_remarks_or_empty(remarks_by_subject(hit)))
    if hit.unjudged:
        extra[UNJUDGED_KEY] = unjudged_reason_by_item_number_text(hit)
    if hit.asked_criteria:
        extra[CRITERIA_ORDER_KEY] = hit.asked_criteria
    if hit.blocks or hit.condition_list:
        extra[SQUARE_PLACE_KEY] = {BLOCKS_KEY: hit.blocks, LIST_KEY: hit.condition_list}
    return extra


def unnumbered_responses_of_criterion(
    stored_hits: Sequence[StoredImportedHit], criterion_number: int
) -> list[Response]:
    """Return the answers by a criterion as responses; they are numbered later."""
    return [
        Response.from_stored(
            0, stored.annotator_id, stored.imported.scored_items, stored.imported.scores_by_criterion(criterion_number)
        )
        for stored in stored_hits
    ]
