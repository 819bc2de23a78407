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

from app.campaigns.asked_segments import AskedSegments, asked_segments
from app.campaigns.criteria_import import apart
from app.crowd.answered import ANONYMOUS_ID_PREFIX, ResultRow
from app.crowd.platform import Platform
from app.database import tables
from app.database.bulk import copy, reserve, reserve_seqs
from app.designs.answer import Answer
from app.designs.criteria import criteria_of, names_of, number_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.unjudged import EXTRA
from app.designs.written import KEPT
from app.errors import Conflict, Invalid, plural, shortened
from app.record import stream, unjudged
from app.record.folding import Locked, fold
from app.record.stream import Response
from app.selection.segments import for_all, shown_once
from app.spreadsheets import unprotect
from app.upload import refuse

LOOKED_UP = 5_000  # rows at once
ASSIGNMENT_COLUMNS = ("campaign_id", "id", "annotator_id", "external_id", "arrival", "arrived_at", "completed_at")
HIT_COLUMNS = (
    *("id", "campaign_id", "annotator_id", "assignment_id", "items", "not_applicable", "segment", "shown_as"),
    *("issued_at", "expires_at", "closed_at"),
)
RESPONSE_COLUMNS = (
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
    shown: tuple[int, ...]
    marks: tuple[float | None, ...]
    accepted_at: datetime | None
    submitted_at: datetime | None
    details: dict[str, str]
    nameless: bool = False
    unjudged: tuple[tuple[int, str], ...] = ()
    segment: int | None = None
    shown_as: tuple[int, ...] | None = None
    others: tuple[tuple[float | None, ...], ...] = ()

    @property
    def items(self) -> list[int]:
        """Those that its response has."""
        return [item for item, mark in zip(self.shown, self.marks, strict=True) if mark is not None]

    @property
    def scores(self) -> list[float]:
        """By one criterion after another."""
        return [mark for marks in (self.marks, *self.others) for mark in marks if mark is not None]

    def scores_by(self, criterion: int) -> list[float]:
        """Those by one of them."""
        return [mark for mark in (self.marks, *self.others)[criterion] if mark is not None]

    @property
    def not_applicable(self) -> list[int]:
        return [item for item, mark in zip(self.shown, self.marks, strict=True) if mark is None]


@dataclass(frozen=True)
class Closed:
    """A HIT that is stored, closed: its id, and that of its annotator."""

    hit: ImportedHit
    id: int
    annotator: int


# One batch of results at a time, so that two imports of the same file cannot both find its assignments unknown.
LOCK_IMPORTS = text("SELECT pg_advisory_xact_lock(hashtext('campaign.results'), CAST(:campaign AS int))")

NUMBERS = text("""
    SELECT external_id, number FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
""")

ANSWER = """
    SELECT given.worker, given.id, h.items AS shown, h.segment, h.not_applicable, r.items, r.values AS scores, r.extra
    FROM unnest(CAST(:workers AS text[]), CAST(:ids AS text[])) AS given (worker, id)"""
OF_HIT = """
    LEFT JOIN LATERAL (
        SELECT * FROM responses WHERE campaign_id = h.campaign_id AND hit_id = h.id ORDER BY seq DESC LIMIT 1
    ) AS r ON true"""

# Where an assignment's id stands for one annotator's alone, or for another's, too, who took it after it was returned.
# An answer without an annotator may be anybody's.
STORED = text(f"""{ANSWER}
    JOIN assignments s ON s.campaign_id = :campaign AND s.external_id = given.id
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id AND a.platform = :platform
        AND (a.worker_id = given.worker OR starts_with(a.worker_id, '{ANONYMOUS_ID_PREFIX}')
             OR starts_with(given.worker, '{ANONYMOUS_ID_PREFIX}'))
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id {OF_HIT}
""")

# Where it does not. An export of the campaign itself has pseudonyms for its annotators, and its own numbers of HITs.
# LATERAL: each is looked up, by its annotator, however many others have answered under the same id.
STORED_OF_ANNOTATOR = text(f"""{ANSWER}
    JOIN LATERAL (
        SELECT s.campaign_id, s.id FROM annotators a
        JOIN assignments s ON s.campaign_id = a.campaign_id AND s.annotator_id = a.id AND s.external_id = given.id
        WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.worker LIMIT 1
    ) AS s ON true
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id {OF_HIT}
    UNION ALL {ANSWER}
    JOIN LATERAL (
        SELECT h.* FROM annotators a
        JOIN hits h ON h.campaign_id = a.campaign_id AND h.annotator_id = a.id
            AND h.id = CASE WHEN given.id ~ '^[0-9]{{1,18}}$' THEN CAST(given.id AS bigint) END
        WHERE a.campaign_id = :campaign AND a.pseudonym = given.worker LIMIT 1
    ) AS h ON true {OF_HIT}
""")  # noqa: S608  (made of constants)

MAKE_ANNOTATORS = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT :campaign, :platform, worker_id, pseudonym, :now
    FROM unnest(CAST(:workers AS text[]), CAST(:pseudonyms AS text[])) AS new (worker_id, pseudonym) ORDER BY worker_id
    ON CONFLICT (campaign_id, platform, worker_id) DO NOTHING
""")

ANNOTATORS = text("""
    SELECT worker_id, id FROM annotators
    WHERE campaign_id = :campaign AND platform = :platform AND worker_id = ANY(CAST(:workers AS text[]))
""")


def pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + LOOKED_UP] for start in range(0, len(values), LOOKED_UP))


async def numbered(connection: AsyncConnection, campaign: Row[Any], rows: list[ResultRow]) -> list[ImportedHit]:
    """The rows with item numbers; `rows` is empty then. Raises `Invalid` (`item_unknown`) and what `checked`,
    `AskedSegments.of` and `apart` do.
    """
    numbers: dict[str, int] = {}
    for ids in pieces(await asyncio.to_thread(ids_in, rows)):
        found = await connection.execute(NUMBERS, {"campaign": campaign.id, "ids": ids})
        numbers |= {row.external_id: row.number for row in found}
    await asyncio.to_thread(drop_apostrophes, rows, numbers)
    segments = await asked_segments(connection, campaign)
    return await asyncio.to_thread(hits_by_criteria, rows, numbers, campaign, segments)


def hits_by_criteria(
    rows: list[ResultRow], numbers: Mapping[str, int], campaign: Any, segments: AskedSegments
) -> list[ImportedHit]:
    """Of several criteria, what each HIT has by all of them together. `rows` is empty then."""
    keeps, views = campaign.cannot_be_judged, criteria_of(campaign)
    parts = [rows]
    if campaign.criteria:
        parts = apart(rows, names_of(campaign))
        rows.clear()  # the parts have copies
    read = [
        hits_of(part, numbers, design_of(view), segments, keeps_marks=keeps)
        for part, view in zip(parts, views, strict=True)
    ]
    return [in_one(*hits) for hits in zip(*read, strict=True)] if campaign.criteria else read[0]


def in_one(first: ImportedHit, *others: ImportedHit) -> ImportedHit:
    """A HIT by its criteria, from when it was accepted first to when it was submitted last. Outputs that are the same
    were shown once if they have one value by each.
    """
    parts = first, *others
    return replace(
        first,
        others=tuple(other.marks for other in others),
        shown_as=first.shown_as if all(other.shown_as == first.shown_as for other in others) else None,
        accepted_at=min((part.accepted_at for part in parts if part.accepted_at), default=None),
        submitted_at=max((part.submitted_at for part in parts if part.submitted_at), default=None),
    )


def ids_in(rows: Sequence[ResultRow]) -> list[str]:
    """Return the ids of all items, also without the apostrophe that an export for spreadsheet programs has."""
    ids = {external_id for row in rows for external_id in row.items}
    return list(ids | {unprotect(external_id) for external_id in ids})


def drop_apostrophes(rows: list[ResultRow], numbers: Mapping[str, int]) -> None:
    """Change ids that the campaign has without the apostrophe for spreadsheet programs, and not with it.

    Raises `Invalid` (`item_repeated`).
    """
    for place, row in enumerate(rows):
        if all(external_id in numbers for external_id in row.items):
            continue
        items = tuple(name if name in numbers else unprotect(name) for name in row.items)
        if len(set(items)) < len(items):
            refuse("item_repeated", row.line, "an item is twice in this HIT, with an apostrophe and without.")
        rows[place] = replace(row, items=items)


def hits_of(
    rows: list[ResultRow],
    numbers: Mapping[str, int],
    design: Design,
    segments: AskedSegments,
    *,
    keeps_marks: bool,
) -> list[ImportedHit]:
    """Takes each row from `rows`: to let go of a million at once would take a moment in which nothing else is done.

    Raises `Invalid` (`item_unknown`) and what `checked` and `AskedSegments.of` do.
    """
    rows.reverse()
    return [hit_of(rows.pop(), numbers, design, segments, keeps_marks=keeps_marks) for _ in range(len(rows))]


def hit_of(
    row: ResultRow, numbers: Mapping[str, int], design: Design, segments: AskedSegments, *, keeps_marks: bool
) -> ImportedHit:
    for place, external_id in enumerate(row.items):
        if external_id not in numbers:
            said = shortened(external_id)
            refuse("item_unknown", row.line_of_item(place), f"the campaign has no item “{said}”.", item=said)
    shown = tuple(numbers[external_id] for external_id in row.items)
    marked = marked_in(row, shown) if keeps_marks else {}
    segment, shown_as = segments.of(row, shown)
    return ImportedHit(
        row.line,
        row.worker_id,
        row.assignment_id,
        shown,
        checked(design, row, shown, marked, shown_as),
        row.accepted_at,
        row.submitted_at,
        row.details,
        row.anonymous,
        tuple(marked.items()),
        segment,
        shown_as,
    )


def marked_in(row: ResultRow, shown: Sequence[int]) -> dict[int, str]:
    """The items that were marked, each with the reason, empty where none is known."""
    reasons = row.reasons or [""] * len(shown)
    return {item: reason for item, score, reason in zip(shown, row.scores, reasons, strict=True) if score is None}


def checked(
    design: Design,
    row: ResultRow,
    shown: Sequence[int],
    marked: Mapping[int, str],
    shown_as: Sequence[int] | None,
) -> tuple[float | None, ...]:
    """The marks of a HIT as its design stores them. Raises `Invalid` where nobody can have been asked so, or can have
    answered so: `item_missing`, `hit_size`, `answer_impossible`, and whatever else the design refuses.
    """
    for name in design.always_shown:
        if name not in row.items:
            said = shortened(name)
            refuse(
                "item_missing", row.line, f"every HIT of this campaign has the item “{said}”, and this one lacks it."
            )
    marks = dict(zip(shown, row.scores, strict=True))
    alone = shown_once(shown, shown_as)
    given = {item: mark for item in alone if (mark := marks[item]) is not None and not math.isnan(mark)}
    fewest, most = design.fewest_items, design.items_per_hit[-1]
    if len(shown) > most or (0 < len(given) < fewest and not marked):
        asked = f"{fewest} to {most}" if fewest < most else f"{most}"
        count = plural(len(shown) if len(shown) > most else len(given), "item")
        refuse("hit_size", row.line, f"this HIT has {count} with a {design.noun}, and can have {asked}.")
    told_of = [item for item in alone if marks[item] is not None or item in marked]
    if not told_of:
        return row.scores
    try:
        unjudged_ = {item: marked[item] for item in alone if item in marked}
        values = dict(zip(told_of, design.values(Answer(given, unjudged=unjudged_), told_of), strict=True))
    except Invalid as refused:
        refuse(refused.code, row.line, f"nobody can answer so. {refused.message.removesuffix(KEPT).strip()}")
    return tuple(for_all({**dict.fromkeys(shown), **values}, shown, shown_as))


Key: TypeAlias = tuple[str, str]
"""Key of an imported answer: the id of its annotator, and that of its assignment."""


def key_of(hit: ImportedHit) -> Key:
    return hit.worker_id, hit.assignment_id


async def stored_before(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit]
) -> dict[Key, list[Row[Any]]]:
    """What is stored of the assignments of these HITs."""
    known: dict[Key, list[Row[Any]]] = {}
    statement = STORED_OF_ANNOTATOR if platform.shares_assignment_ids else STORED
    for some in pieces(hits):
        workers, ids = zip(*(key_of(hit) for hit in some), strict=True)
        given = {"campaign": campaign.id, "platform": platform.name, "workers": list(workers), "ids": list(ids)}
        for row in await connection.execute(statement, given):
            known.setdefault((row.worker, row.id), []).append(row)
    return known


async def without_stored(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Without those that are stored just so. Raises `Conflict` (`assignment_known`) where something else is stored."""
    known = await stored_before(connection, campaign, platform, hits)
    return await asyncio.to_thread(new_among, hits, platform, known, campaign.name, "Nothing was imported.")


def new_among(
    hits: Sequence[ImportedHit],
    platform: Platform,
    known: Mapping[Key, Sequence[Row[Any]]],
    campaign_name: str,
    so_far: str,
) -> list[ImportedHit]:
    for hit in hits:
        stored = known.get(key_of(hit), ())
        if any(not same(hit, row) for row in stored):
            what = "with another answer" if any(map(answered, stored)) else "without an answer: it arrived here itself"
            raise Conflict(
                f"Line {hit.line}: {named(hit, platform)} is in “{campaign_name}” already, {what}. {so_far}",
                code="assignment_known",
                line=hit.line,
            )
    return [hit for hit in hits if key_of(hit) not in known]


def named(hit: ImportedHit, platform: Platform) -> str:
    """What an answer is called to whoever has the file."""
    if platform.shares_assignment_ids:
        return f"the HIT {shortened(hit.assignment_id)} of {shortened(hit.worker_id)}"
    return f"the assignment {shortened(hit.assignment_id)}"


def answered(row: Row[Any]) -> bool:
    """Whether a HIT of an assignment has an answer; it may lie open, or be given up, or be none at all."""
    return row.scores is not None or row.not_applicable is not None


def same(hit: ImportedHit, row: Row[Any]) -> bool:
    """Whether this is what is stored."""
    marked = (row.extra or {}).get(EXTRA, {})
    stored = (row.shown, row.segment, row.not_applicable or [], row.items or [], told(row.scores or []), marked)
    return stored == (
        *(list(hit.shown), hit.segment, hit.not_applicable, hit.items),
        *(told(hit.scores), reasons_of(hit)),
    )


def told(scores: Sequence[float]) -> list[float | None]:
    """What can be compared: NaN is not equal to itself."""
    return [None if math.isnan(score) else score for score in scores]


def reasons_of(hit: ImportedHit) -> dict[str, str]:
    """As they lie beside the scores of a response."""
    return {str(item): reason for item, reason in hit.unjudged}


async def annotators_of(
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
    await connection.execute(MAKE_ANNOTATORS, parameters)
    return {row.worker_id: row.id for row in await connection.execute(ANNOTATORS, parameters)}


async def store_closed(
    connection: AsyncConnection, campaign: Row[Any], platform: Platform, hits: Sequence[ImportedHit], *, now: datetime
) -> list[Closed]:
    """Their annotators, assignments and closed HITs, except where somebody else stored them meanwhile.

    Nobody who is at work waits for any of these. Raises `Conflict` (`assignment_known`) where somebody else stored
    something else.
    """
    await connection.execute(LOCK_IMPORTS, {"campaign": campaign.id})
    known = await stored_before(connection, campaign, platform, hits)
    meanwhile = "Another import brought it meanwhile. The rows before it are stored."
    hits = new_among(hits, platform, known, campaign.name, meanwhile)
    annotators = await annotators_of(connection, campaign, platform, hits, now=now)
    assignments, rows, closed = [], [], []
    keys = [await reserve(connection, table.c.id, len(hits)) for table in (tables.assignments, tables.hits)]
    for hit, assignment_id, hit_id in zip(hits, *keys, strict=True):
        annotator = annotators[hit.worker_id]
        end = hit.submitted_at or now
        start = hit.accepted_at or end
        details = json.dumps(hit.details)
        assignments.append((campaign.id, assignment_id, annotator, hit.assignment_id, details, start, end))
        marked = hit.not_applicable or None
        shown = hit.shown, marked, hit.segment, hit.shown_as
        rows.append((hit_id, campaign.id, annotator, assignment_id, *shown, start, end, end))
        closed.append(Closed(hit, hit_id, annotator))
    await copy(connection, tables.assignments, assignments, *ASSIGNMENT_COLUMNS)
    await copy(connection, tables.hits, rows, *HIT_COLUMNS)
    return closed


async def store_responses(
    connection: AsyncConnection,
    campaign: Row[Any],
    closed: Sequence[Closed],
    locked: Sequence[Locked],
    *,
    now: datetime,
) -> dict[int, int]:
    """Responses to closed HITs with scores, and what follows for these posteriors, locked by each criterion; the
    judgments that the HITs' items then have.

    Responses are numbered under the locks, so `seq` is the order of the updates.
    """
    left_out = await stream.left_out(connection, campaign.id)
    count = [one for one in closed if one.annotator not in left_out]  # the others change nothing
    parts = zip(criteria_of(campaign), locked, strict=True)
    judgments, *_ = [await fold(connection, view, unnumbered(count, number_of(view)), its) for view, its in parts]
    seqs = await reserve_seqs(connection, len(closed))
    rows = [
        (
            *(seq, campaign.id, one.id, one.annotator, "import", one.hit.items, one.hit.scores, one.hit.segment),
            one.hit.submitted_at or now,
            json.dumps({EXTRA: reasons_of(one.hit)}) if one.hit.unjudged else None,
        )
        for seq, one in zip(seqs, closed, strict=True)
    ]
    await copy(connection, tables.responses, rows, *RESPONSE_COLUMNS)
    if items := {item for one in closed for item, _ in one.hit.unjudged}:
        await unjudged.count_anew(connection, locked[0].of, items=sorted(items))
    return judgments


def unnumbered(closed: Sequence[Closed], criterion: int) -> list[Response]:
    """Their answers by a criterion; numbers are given later."""
    return [Response.of(0, one.annotator, one.hit.items, one.hit.scores_by(criterion)) for one in closed]
