"""Storage of HITs that were answered elsewhere: recognise stored ones, add new ones, and update the posteriors."""

import asyncio
import math
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.assignment_sql import HIT_IS_OPEN_IN_INDEX
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import ANONYMOUS_ID_PREFIX
from app.database import tables
from app.database.bulk import (
    array_text_of_texts,
    insert_text_lines_by_copy,
    reserve_next_ids_of_column,
    reserve_next_record_numbers,
    wait_for_both,
)
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.unjudged import UNJUDGED_KEY
from app.errors import Conflict, shorten_echo
from app.imports.imported_hits import ImportedHit, iterate_batches_for_lookup
from app.imports.stored_hit_lines import (
    ASSIGNMENT_COPY_COLUMNS,
    HIT_COPY_COLUMNS,
    RESPONSE_COPY_COLUMNS,
    StoredImportedHit,
    assignment_lines_for_copy,
    hit_lines_for_copy,
    response_lines_without_number,
    unjudged_reason_by_item_number_text,
)
from app.privacy.erasure_list import load_person_hashes, person_hash
from app.privacy.retention import refuse_import_without_identifiers
from app.record import responses, unjudged
from app.record.bulk_update import LockedPosteriors, apply_answers, store_posteriors_and_count_by_item
from app.record.law_runner import LawRunner
from app.record.responses import Response

ARE_ANNOTATORS_AT_WORK = text(f"""
    SELECT EXISTS (SELECT FROM hits h WHERE h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX})
""")

# One batch at a time, so that two processes cannot both find the assignments of a file unknown.
LOCK_RESPONSE_IMPORTS = text("SELECT pg_advisory_xact_lock(hashtext('campaign.results'), CAST(:campaign AS int))")

GIVEN_ANSWERS = (
    "unnest(CAST(CAST(:workers AS text) AS text[]), CAST(CAST(:ids AS text) AS text[])) AS given (worker, id)"
)
STORED_ANSWER_COLUMNS = """
    given.worker, given.id, h.items AS shown, h.segment, h.not_applicable, r.items, r.values AS scores, r.extra"""
SELECT_STORED_ANSWERS = f"SELECT {STORED_ANSWER_COLUMNS} FROM {GIVEN_ANSWERS}"
JOIN_LAST_RESPONSE = """
    LEFT JOIN LATERAL (
        SELECT * FROM responses WHERE campaign_id = :campaign AND hit_id = h.id ORDER BY seq DESC LIMIT 1
    ) AS r ON true"""

# For platforms whose assignment ids are unique. A returned assignment may have been taken by another annotator.
# An answer without an annotator may be any annotator's. MATERIALIZED and LATERAL with OFFSET look each id up in
# an index, whatever the statistics say: a plan that begins with the annotators reads all assignments of the campaign.
FIND_ANSWERS_BY_ASSIGNMENT = text(f"""
    WITH given AS MATERIALIZED (
        SELECT given.worker, given.id, s.id AS assignment_id, s.annotator_id FROM {GIVEN_ANSWERS}
        JOIN LATERAL (
            SELECT * FROM assignments WHERE campaign_id = :campaign AND external_id = given.id OFFSET 0
        ) AS s ON true
    )
    SELECT {STORED_ANSWER_COLUMNS} FROM given
    JOIN LATERAL (
        SELECT * FROM annotators WHERE campaign_id = :campaign AND id = given.annotator_id OFFSET 0
    ) AS a ON a.platform = :platform
        AND (a.worker_id = given.worker OR starts_with(a.worker_id, '{ANONYMOUS_ID_PREFIX}')
             OR starts_with(given.worker, '{ANONYMOUS_ID_PREFIX}'))
    LEFT JOIN hits h ON h.campaign_id = :campaign AND h.assignment_id = given.assignment_id {JOIN_LAST_RESPONSE}
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


@dataclass(frozen=True)
class ImportedAnswers:
    """Answers to stored HITs, before they are stored and numbered.

    Attributes:
        by_criterion: The responses by each criterion.
        lines: The rows of the responses, in the same order.
        unjudged_items: Items that an annotator could not judge.

    """

    by_criterion: list[list[Response]]
    lines: list[str]
    unjudged_items: set[int]


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
    for batch in iterate_batches_for_lookup(hits):
        parameters = {
            "campaign": campaign.id,
            "platform": platform.name,
            "workers": array_text_of_texts([hit.worker_id for hit in batch]),
            "ids": array_text_of_texts([hit.assignment_id for hit in batch]),
        }
        for row in await connection.execute(statement, parameters):
            stored_rows_by_key.setdefault((row.worker, row.id), []).append(row)
    return stored_rows_by_key


async def load_hits_without_stored_answer(
    connection: AsyncConnection, campaign: Campaign, platform: Platform, hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Return the HITs that are not stored yet, whatever the answers of the others."""
    stored_rows_by_key = await load_stored_rows_by_answer_key(connection, campaign, platform, hits)
    return hits_without_stored_row(hits, stored_rows_by_key)


def hits_without_stored_row(
    hits: Sequence[ImportedHit], stored_rows_by_key: Mapping[ImportedAnswerKey, Sequence[Row[Any]]]
) -> list[ImportedHit]:
    if not stored_rows_by_key:
        return list(hits)
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
    for hit in hits if stored_rows_by_key else ():
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
    return hits_without_stored_row(hits, stored_rows_by_key)


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
) -> tuple[list[StoredImportedHit], ImportedAnswers]:
    """Store annotators, assignments and closed HITs, except those whose annotators answered in Easel meanwhile.

    Returns these HITs and their answers. No annotator at work waits for these rows. Raises `Conflict`
    (`identifiers_erased`) if ids were erased meanwhile.
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
    # While PostgreSQL stores rows, a thread makes those that follow.
    assignment_lines = await asyncio.to_thread(assignment_lines_for_copy, campaign.id, stored_hits, now)
    _, hit_lines = await wait_for_both(
        insert_text_lines_by_copy(connection, tables.assignments, assignment_lines, *ASSIGNMENT_COPY_COLUMNS),
        asyncio.to_thread(hit_lines_for_copy, campaign.id, stored_hits, now),
    )
    _, answers = await wait_for_both(
        insert_text_lines_by_copy(connection, tables.hits, hit_lines, *HIT_COPY_COLUMNS),
        asyncio.to_thread(unnumbered_answers_of_hits, campaign, stored_hits, now),
    )
    return stored_hits, answers


def unnumbered_answers_of_hits(
    campaign: Campaign, stored_hits: Sequence[StoredImportedHit], now: datetime
) -> ImportedAnswers:
    """Return the answers of the HITs that have a response; they are numbered when the posteriors are locked."""
    answered_hits = [stored for stored in stored_hits if stored.imported.has_response]
    return ImportedAnswers(
        [unnumbered_responses_of_criterion(answered_hits, criterion.number) for criterion in campaign.criteria],
        response_lines_without_number(campaign.id, answered_hits, now),
        {item for stored in answered_hits for item, _ in stored.imported.unjudged},
    )


async def store_responses_returning_judgments_by_item(
    connection: AsyncConnection,
    campaign: Campaign,
    answers: ImportedAnswers,
    locked_posteriors: Sequence[LockedPosteriors],
) -> dict[int, int]:
    """Store responses to closed HITs and update the posteriors; return the judgments of the HITs' items.

    Each criterion has its locked posteriors in `locked_posteriors`. Responses are numbered under the locks, so `seq` is
    the order of the updates.
    """
    excluded_annotators = await responses.load_excluded_annotator_ids(connection, campaign.id)
    seqs = await reserve_next_record_numbers(connection, len(answers.lines))
    lines = [f"{seq}\t{line}" for seq, line in zip(seqs, answers.lines, strict=True)]
    driver = await driver_of(connection)
    runners = [
        LawRunner(driver, locked.revision, criterion.law, locked.posteriors)
        for criterion, locked in zip(campaign.criteria, locked_posteriors, strict=True)
    ]
    storing = insert_text_lines_by_copy(connection, tables.responses, lines, *RESPONSE_COPY_COLUMNS)
    learn = partial(apply_counting_answers, runners, campaign, answers.by_criterion, excluded_annotators)
    if all(runner.needs_only_posteriors for runner in runners):
        await wait_for_both(storing, learn())
    else:  # both use the connection
        await storing
        await learn()
    judgments, *_ = [await store_posteriors_and_count_by_item(runner) for runner in runners]
    if answers.unjudged_items:
        await unjudged.recount_and_store_unjudged_of_items(
            connection, locked_posteriors[0].revision, items=sorted(answers.unjudged_items)
        )
    return judgments


async def apply_counting_answers(
    runners: Sequence[LawRunner],
    campaign: Campaign,
    answers_by_criterion: Sequence[Sequence[Response]],
    excluded_annotators: Collection[int],
) -> None:
    """Apply the answers of annotators who are not excluded, by each criterion."""
    for runner, criterion, answers in zip(runners, campaign.criteria, answers_by_criterion, strict=True):
        counting_answers = (
            [answer for answer in answers if answer.annotator not in excluded_annotators]
            if excluded_annotators
            else answers
        )
        await apply_answers(runner, criterion, counting_answers)


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
