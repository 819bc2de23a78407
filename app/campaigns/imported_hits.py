"""HITs that were answered elsewhere: found among those stored before, and stored with what follows from them."""

import asyncio
import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import ANONYMOUS_ID_PREFIX, ResultRow
from app.campaigns.criteria_rows import split_rows_by_criterion
from app.campaigns.imported_segments import ImportedSegments, load_imported_segments
from app.database import tables
from app.database.bulk import copy_rows, reserve_ids, reserve_seqs
from app.designs.answer import Answer
from app.designs.criteria import criterion_names, criterion_number, criterion_views
from app.designs.design import Design
from app.designs.file_format import INPUT_KEPT_MESSAGE
from app.designs.registry import design_of
from app.designs.unjudged import UNJUDGED_KEY
from app.errors import Conflict, Invalid, pluralize, shorten_echo
from app.record import responses, unjudged
from app.record.bulk_update import LockedPosteriors, apply_answers_to_posteriors
from app.record.responses import Response
from app.selection.segments import distinct_items, values_for_all_items
from app.text.spreadsheets import unprotect_cell
from app.uploads import refuse_line

IDS_PER_LOOKUP = 5_000  # rows at once
ASSIGNMENT_COPY_COLUMNS = ("campaign_id", "id", "annotator_id", "external_id", "arrival", "arrived_at", "completed_at")
HIT_COPY_COLUMNS = (
    *("id", "campaign_id", "annotator_id", "assignment_id", "items", "not_applicable", "segment", "shown_as"),
    *("issued_at", "expires_at", "closed_at"),
)
RESPONSE_COPY_COLUMNS = (
    *("seq", "campaign_id", "hit_id", "annotator_id", "source", "items", "values", "segment", "received_at"),
    "extra",
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImportedHit:
    """A row with the campaign's numbers of its items in the place of their ids.

    shown: all items. marks: the score of each by the first criterion; where it was marked N/A, NaN if the campaign
    lets annotators say that an item cannot be judged, else None. others: the same by each of the other criteria.
    unjudged: in such a campaign the items that were marked, each with the reason.
    nameless: nobody knows whose it is. segment, shown_as: as in `hits`, where items are systems.
    """

    line: int
    worker_id: str
    assignment_id: str
    shown_items: tuple[int, ...]
    item_scores: tuple[float | None, ...]
    accepted_at: datetime | None
    submitted_at: datetime | None
    details: dict[str, str]
    nameless: bool = False
    unjudged: tuple[tuple[int, str], ...] = ()
    segment: int | None = None
    shown_as: tuple[int, ...] | None = None
    other_criteria_scores: tuple[tuple[float | None, ...], ...] = ()

    @property
    def scored_items(self) -> list[int]:
        """Those that its response has."""
        return [item for item, mark in zip(self.shown_items, self.item_scores, strict=True) if mark is not None]

    @property
    def all_scores(self) -> list[float]:
        """By one criterion after another."""
        return [mark for marks in (self.item_scores, *self.other_criteria_scores) for mark in marks if mark is not None]

    def scores_by_criterion(self, criterion_number: int) -> list[float]:
        """Those by one of them."""
        return [mark for mark in (self.item_scores, *self.other_criteria_scores)[criterion_number] if mark is not None]

    @property
    def unscored_items(self) -> list[int]:
        return [item for item, mark in zip(self.shown_items, self.item_scores, strict=True) if mark is None]


@dataclass(frozen=True)
class StoredImportedHit:
    """A HIT that is stored, closed: its id, and that of its annotator."""

    imported: ImportedHit
    hit_id: int
    annotator_id: int


# One batch of results at a time, so that two imports of the same file cannot both find its assignments unknown.
LOCK_RESPONSE_IMPORTS = text("SELECT pg_advisory_xact_lock(hashtext('campaign.results'), CAST(:campaign AS int))")

FIND_ITEM_NUMBERS = text("""
    SELECT external_id, number FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
""")

SELECT_STORED_ANSWERS = """
    SELECT given.worker, given.id, h.items AS shown, h.segment, h.not_applicable, r.items, r.values AS scores, r.extra
    FROM unnest(CAST(:workers AS text[]), CAST(:ids AS text[])) AS given (worker, id)"""
JOIN_LAST_RESPONSE = """
    LEFT JOIN LATERAL (
        SELECT * FROM responses WHERE campaign_id = h.campaign_id AND hit_id = h.id ORDER BY seq DESC LIMIT 1
    ) AS r ON true"""

# Where an assignment's id stands for one annotator's alone, or for another's, too, who took it after it was returned.
# An answer without an annotator may be anybody's.
FIND_ANSWERS_BY_ASSIGNMENT = text(f"""{SELECT_STORED_ANSWERS}
    JOIN assignments s ON s.campaign_id = :campaign AND s.external_id = given.id
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id AND a.platform = :platform
        AND (a.worker_id = given.worker OR starts_with(a.worker_id, '{ANONYMOUS_ID_PREFIX}')
             OR starts_with(given.worker, '{ANONYMOUS_ID_PREFIX}'))
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id {JOIN_LAST_RESPONSE}
""")

# Where it does not. An export of the campaign itself has pseudonyms for its annotators, and its own numbers of HITs.
# LATERAL: each is looked up, by its annotator, however many others have answered under the same id.
FIND_ANSWERS_BY_ANNOTATOR = text(f"""{SELECT_STORED_ANSWERS}
    JOIN LATERAL (
        SELECT s.campaign_id, s.id FROM annotators a
        JOIN assignments s ON s.campaign_id = a.campaign_id AND s.annotator_id = a.id AND s.external_id = given.id
        WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.worker LIMIT 1
    ) AS s ON true
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id {JOIN_LAST_RESPONSE}
    UNION ALL {SELECT_STORED_ANSWERS}
    JOIN LATERAL (
        SELECT h.* FROM annotators a
        JOIN hits h ON h.campaign_id = a.campaign_id AND h.annotator_id = a.id
            AND h.id = CASE WHEN given.id ~ '^[0-9]{{1,18}}$' THEN CAST(given.id AS bigint) END
        WHERE a.campaign_id = :campaign AND a.pseudonym = given.worker LIMIT 1
    ) AS h ON true {JOIN_LAST_RESPONSE}
""")  # noqa: S608  (made of constants)

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


def split_for_lookup(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + IDS_PER_LOOKUP] for start in range(0, len(values), IDS_PER_LOOKUP))


async def convert_rows_to_hits(
    connection: AsyncConnection, campaign: Row[Any], result_rows: list[ResultRow]
) -> list[ImportedHit]:
    """The rows with item numbers; `rows` is empty then. Raises `Invalid` (`item_unknown`) and what `checked`,
    `AskedSegments.of` and `apart` do.
    """
    number_by_id: dict[str, int] = {}
    for ids in split_for_lookup(await asyncio.to_thread(item_ids_of_rows, result_rows)):
        item_rows = await connection.execute(FIND_ITEM_NUMBERS, {"campaign": campaign.id, "ids": ids})
        number_by_id |= {row.external_id: row.number for row in item_rows}
    await asyncio.to_thread(remove_id_apostrophes, result_rows, number_by_id)
    segments = await load_imported_segments(connection, campaign)
    return await asyncio.to_thread(build_imported_hits, result_rows, number_by_id, campaign, segments)


def build_imported_hits(
    result_rows: list[ResultRow], number_by_id: Mapping[str, int], campaign: Any, segments: ImportedSegments
) -> list[ImportedHit]:
    """Of several criteria, what each HIT has by all of them together. `rows` is empty then."""
    keeps_unjudged, views = campaign.cannot_be_judged, criterion_views(campaign)
    rows_by_criterion = [result_rows]
    if campaign.criteria:
        rows_by_criterion = split_rows_by_criterion(result_rows, criterion_names(campaign))
        result_rows.clear()  # the parts have copies
    hits_by_criterion = [
        build_hits_of_criterion(part, number_by_id, design_of(view), segments, keeps_unjudged=keeps_unjudged)
        for part, view in zip(rows_by_criterion, views, strict=True)
    ]
    return (
        [merge_hit_of_criteria(*hits) for hits in zip(*hits_by_criterion, strict=True)]
        if campaign.criteria
        else hits_by_criterion[0]
    )


def merge_hit_of_criteria(first: ImportedHit, *others: ImportedHit) -> ImportedHit:
    """A HIT by its criteria, from when it was accepted first to when it was submitted last. Outputs that are the same
    were shown once if they have one value by each.
    """
    parts = first, *others
    return replace(
        first,
        other_criteria_scores=tuple(other.item_scores for other in others),
        shown_as=first.shown_as if all(other.shown_as == first.shown_as for other in others) else None,
        accepted_at=min((part.accepted_at for part in parts if part.accepted_at), default=None),
        submitted_at=max((part.submitted_at for part in parts if part.submitted_at), default=None),
    )


def item_ids_of_rows(result_rows: Sequence[ResultRow]) -> list[str]:
    """Return the ids of all items, also without the apostrophe that an export for spreadsheet programs has."""
    ids = {external_id for row in result_rows for external_id in row.items}
    return list(ids | {unprotect_cell(external_id) for external_id in ids})


def remove_id_apostrophes(result_rows: list[ResultRow], number_by_id: Mapping[str, int]) -> None:
    """Change ids that the campaign has without the apostrophe for spreadsheet programs, and not with it.

    Raises `Invalid` (`item_repeated`).
    """
    for position, row in enumerate(result_rows):
        if all(external_id in number_by_id for external_id in row.items):
            continue
        items = tuple(name if name in number_by_id else unprotect_cell(name) for name in row.items)
        if len(set(items)) < len(items):
            refuse_line("item_repeated", row.line, "an item is twice in this HIT, with an apostrophe and without.")
        result_rows[position] = replace(row, items=items)


def build_hits_of_criterion(
    result_rows: list[ResultRow],
    number_by_id: Mapping[str, int],
    design: Design,
    segments: ImportedSegments,
    *,
    keeps_unjudged: bool,
) -> list[ImportedHit]:
    """Takes each row from `rows`: to let go of a million at once would take a moment in which nothing else is done.

    Raises `Invalid` (`item_unknown`) and what `checked` and `AskedSegments.of` do.
    """
    result_rows.reverse()
    return [
        build_hit_of_criterion(result_rows.pop(), number_by_id, design, segments, keeps_unjudged=keeps_unjudged)
        for _ in range(len(result_rows))
    ]


def build_hit_of_criterion(
    result_row: ResultRow,
    number_by_id: Mapping[str, int],
    design: Design,
    segments: ImportedSegments,
    *,
    keeps_unjudged: bool,
) -> ImportedHit:
    for position, external_id in enumerate(result_row.items):
        if external_id not in number_by_id:
            item_name = shorten_echo(external_id)
            refuse_line(
                "item_unknown",
                result_row.line_of_item(position),
                f"the campaign has no item “{item_name}”.",
                item=item_name,
            )
    shown_items = tuple(number_by_id[external_id] for external_id in result_row.items)
    reason_by_unjudged_item = reasons_of_unjudged_items(result_row, shown_items) if keeps_unjudged else {}
    segment, shown_as = segments.segment_and_shown_items(result_row, shown_items)
    return ImportedHit(
        result_row.line,
        result_row.worker_id,
        result_row.assignment_id,
        shown_items,
        require_possible_scores(design, result_row, shown_items, reason_by_unjudged_item, shown_as),
        result_row.accepted_at,
        result_row.submitted_at,
        result_row.details,
        result_row.anonymous,
        tuple(reason_by_unjudged_item.items()),
        segment,
        shown_as,
    )


def reasons_of_unjudged_items(result_row: ResultRow, shown_items: Sequence[int]) -> dict[int, str]:
    """The items that were marked, each with the reason, empty where none is known."""
    reasons = result_row.reasons or [""] * len(shown_items)
    return {
        item: reason
        for item, score, reason in zip(shown_items, result_row.scores, reasons, strict=True)
        if score is None
    }


def require_possible_scores(
    design: Design,
    result_row: ResultRow,
    shown_items: Sequence[int],
    reason_by_unjudged_item: Mapping[int, str],
    shown_as: Sequence[int] | None,
) -> tuple[float | None, ...]:
    """The marks of a HIT as its design stores them. Raises `Invalid` where nobody can have been asked so, or can have
    answered so: `item_missing`, `hit_size`, `answer_impossible`, and whatever else the design refuses.
    """
    for name in design.always_shown:
        if name not in result_row.items:
            item_name = shorten_echo(name)
            refuse_line(
                "item_missing",
                result_row.line,
                f"every HIT of this campaign has the item “{item_name}”, and this one lacks it.",
            )
    score_by_item = dict(zip(shown_items, result_row.scores, strict=True))
    items_shown_once = distinct_items(shown_items, shown_as)
    given_scores = {
        item: mark for item in items_shown_once if (mark := score_by_item[item]) is not None and not math.isnan(mark)
    }
    fewest, most = design.fewest_items, design.items_per_hit[-1]
    if len(shown_items) > most or (0 < len(given_scores) < fewest and not reason_by_unjudged_item):
        possible_counts = f"{fewest} to {most}" if fewest < most else f"{most}"
        count = pluralize(len(shown_items) if len(shown_items) > most else len(given_scores), "item")
        refuse_line(
            "hit_size", result_row.line, f"this HIT has {count} with a {design.noun}, and can have {possible_counts}."
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
        values = dict(
            zip(
                answered_items,
                design.validated_values(Answer(given_scores, unjudged=unjudged_reasons), answered_items),
                strict=True,
            )
        )
    except Invalid as refused:
        refuse_line(
            refused.code,
            result_row.line,
            f"nobody can answer so. {refused.message.removesuffix(INPUT_KEPT_MESSAGE).strip()}",
        )
    return tuple(values_for_all_items({**dict.fromkeys(shown_items), **values}, shown_items, shown_as))


ImportedAnswerKey: TypeAlias = tuple[str, str]
"""Key of an imported answer: the id of its annotator, and that of its assignment."""


def imported_answer_key(hit: ImportedHit) -> ImportedAnswerKey:
    return hit.worker_id, hit.assignment_id


async def load_stored_answers(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit]
) -> dict[ImportedAnswerKey, list[Row[Any]]]:
    """What is stored of the assignments of these HITs."""
    stored_rows_by_key: dict[ImportedAnswerKey, list[Row[Any]]] = {}
    statement = FIND_ANSWERS_BY_ANNOTATOR if platform.shares_assignment_ids else FIND_ANSWERS_BY_ASSIGNMENT
    for batch in split_for_lookup(hits):
        workers, ids = zip(*(imported_answer_key(hit) for hit in batch), strict=True)
        parameters = {"campaign": campaign.id, "platform": platform.name, "workers": list(workers), "ids": list(ids)}
        for row in await connection.execute(statement, parameters):
            stored_rows_by_key.setdefault((row.worker, row.id), []).append(row)
    return stored_rows_by_key


async def drop_stored_hits(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Without those that are stored just so. Raises `Conflict` (`assignment_known`) where something else is stored."""
    stored_rows_by_key = await load_stored_answers(connection, campaign, platform, hits)
    return await asyncio.to_thread(
        select_new_hits, hits, platform, stored_rows_by_key, campaign.name, "Nothing was imported."
    )


def select_new_hits(
    hits: Sequence[ImportedHit],
    platform: Platform,
    stored_rows_by_key: Mapping[ImportedAnswerKey, Sequence[Row[Any]]],
    campaign_name: str,
    outcome_sentence: str,
) -> list[ImportedHit]:
    for hit in hits:
        stored_rows = stored_rows_by_key.get(imported_answer_key(hit), ())
        if any(not is_same_as_stored(hit, row) for row in stored_rows):
            difference = (
                "with another answer"
                if any(map(has_stored_answer, stored_rows))
                else "without an answer: it arrived here itself"
            )
            raise Conflict(
                f"Line {hit.line}: {imported_answer_name(hit, platform)} is in “{campaign_name}” already, {difference}. {outcome_sentence}",
                code="assignment_known",
                line=hit.line,
            )
    return [hit for hit in hits if imported_answer_key(hit) not in stored_rows_by_key]


def imported_answer_name(hit: ImportedHit, platform: Platform) -> str:
    """What an answer is called to whoever has the file."""
    if platform.shares_assignment_ids:
        return f"the HIT {shorten_echo(hit.assignment_id)} of {shorten_echo(hit.worker_id)}"
    return f"the assignment {shorten_echo(hit.assignment_id)}"


def has_stored_answer(stored_row: Row[Any]) -> bool:
    """Whether a HIT of an assignment has an answer; it may lie open, or be given up, or be none at all."""
    return stored_row.scores is not None or stored_row.not_applicable is not None


def is_same_as_stored(hit: ImportedHit, stored_row: Row[Any]) -> bool:
    """Whether this is what is stored."""
    unjudged_reasons = (stored_row.extra or {}).get(UNJUDGED_KEY, {})
    stored_values = (
        stored_row.shown,
        stored_row.segment,
        stored_row.not_applicable or [],
        stored_row.items or [],
        replace_nan_by_none(stored_row.scores or []),
        unjudged_reasons,
    )
    return stored_values == (
        *(list(hit.shown_items), hit.segment, hit.unscored_items, hit.scored_items),
        *(replace_nan_by_none(hit.all_scores), unjudged_reasons_as_json(hit)),
    )


def replace_nan_by_none(scores: Sequence[float]) -> list[float | None]:
    """What can be compared: NaN is not equal to itself."""
    return [None if math.isnan(score) else score for score in scores]


def unjudged_reasons_as_json(hit: ImportedHit) -> dict[str, str]:
    """As they lie beside the scores of a response."""
    return {str(item): reason for item, reason in hit.unjudged}


async def find_or_create_imported_annotators(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit], *, now: datetime
) -> dict[str, int]:
    """The annotator of each worker id, made where new."""
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


async def store_imported_hits(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit], *, now: datetime
) -> list[StoredImportedHit]:
    """Their annotators, assignments and closed HITs, except where somebody else stored them meanwhile.

    Nobody who is at work waits for any of these. Raises `Conflict` (`assignment_known`) where somebody else stored
    something else.
    """
    await connection.execute(LOCK_RESPONSE_IMPORTS, {"campaign": campaign.id})
    stored_rows_by_key = await load_stored_answers(connection, campaign, platform, hits)
    outcome_sentence = "Another import brought it meanwhile. The rows before it are stored."
    hits = select_new_hits(hits, platform, stored_rows_by_key, campaign.name, outcome_sentence)
    annotator_id_by_worker = await find_or_create_imported_annotators(connection, campaign, platform, hits, now=now)
    assignment_rows, hit_rows, stored_hits = [], [], []
    reserved_ids = [await reserve_ids(connection, table.c.id, len(hits)) for table in (tables.assignments, tables.hits)]
    for hit, assignment_id, hit_id in zip(hits, *reserved_ids, strict=True):
        annotator_id = annotator_id_by_worker[hit.worker_id]
        end = hit.submitted_at or now
        start = hit.accepted_at or end
        details = json.dumps(hit.details)
        assignment_rows.append((campaign.id, assignment_id, annotator_id, hit.assignment_id, details, start, end))
        unscored_items = hit.unscored_items or None
        shown = hit.shown_items, unscored_items, hit.segment, hit.shown_as
        hit_rows.append((hit_id, campaign.id, annotator_id, assignment_id, *shown, start, end, end))
        stored_hits.append(StoredImportedHit(hit, hit_id, annotator_id))
    await copy_rows(connection, tables.assignments, assignment_rows, *ASSIGNMENT_COPY_COLUMNS)
    await copy_rows(connection, tables.hits, hit_rows, *HIT_COPY_COLUMNS)
    return stored_hits


async def store_imported_responses(
    connection: AsyncConnection,
    campaign: Row[Any],
    stored_hits: Sequence[StoredImportedHit],
    locked_posteriors: Sequence[LockedPosteriors],
    *,
    now: datetime,
) -> dict[int, int]:
    """Responses to closed HITs with scores, and what follows for these posteriors, locked by each criterion; the
    judgments that the HITs' items then have.

    Responses are numbered under the locks, so `seq` is the order of the updates.
    """
    excluded_annotators = await responses.load_excluded_annotator_ids(connection, campaign.id)
    counting_hits = [
        one for one in stored_hits if one.annotator_id not in excluded_annotators
    ]  # the others change nothing
    views_with_locks = zip(criterion_views(campaign), locked_posteriors, strict=True)
    judgments, *_ = [
        await apply_answers_to_posteriors(
            connection, view, unnumbered_responses(counting_hits, criterion_number(view)), its
        )
        for view, its in views_with_locks
    ]
    seqs = await reserve_seqs(connection, len(stored_hits))
    rows = [
        (
            *(
                seq,
                campaign.id,
                one.hit_id,
                one.annotator_id,
                "import",
                one.imported.scored_items,
                one.imported.all_scores,
                one.imported.segment,
            ),
            one.imported.submitted_at or now,
            json.dumps({UNJUDGED_KEY: unjudged_reasons_as_json(one.imported)}) if one.imported.unjudged else None,
        )
        for seq, one in zip(seqs, stored_hits, strict=True)
    ]
    await copy_rows(connection, tables.responses, rows, *RESPONSE_COPY_COLUMNS)
    if items := {item for one in stored_hits for item, _ in one.imported.unjudged}:
        await unjudged.recount_unjudged(connection, locked_posteriors[0].revision, items=sorted(items))
    return judgments


def unnumbered_responses(stored_hits: Sequence[StoredImportedHit], criterion_number: int) -> list[Response]:
    """Their answers by a criterion; numbers are given later."""
    return [
        Response.from_stored(
            0, one.annotator_id, one.imported.scored_items, one.imported.scores_by_criterion(criterion_number)
        )
        for one in stored_hits
    ]
