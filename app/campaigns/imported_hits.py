"""HITs that were answered elsewhere: found among those stored before, and stored with what follows from them."""

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.crowd.answered import ResultRow
from app.crowd.registry import of_results
from app.database import tables
from app.database.bulk import copy, reserve, reserve_seqs
from app.errors import Conflict, shortened
from app.record import stream
from app.record.folding import Locked, fold
from app.record.stream import Response
from app.upload import refuse

LOOKED_UP = 5_000  # rows at once
ASSIGNMENT_COLUMNS = ("campaign_id", "id", "annotator_id", "external_id", "arrival", "arrived_at", "completed_at")
HIT_COLUMNS = (
    *("id", "campaign_id", "annotator_id", "assignment_id", "items", "not_applicable"),
    *("issued_at", "expires_at", "closed_at"),
)
RESPONSE_COLUMNS = ("seq", "campaign_id", "hit_id", "annotator_id", "source", "items", "values", "received_at")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImportedHit:
    """A row with the campaign's numbers of its items in the place of their ids.

    shown: all items. marks: the score of each, None where it was marked N/A.
    """

    line: int
    worker_id: str
    assignment_id: str
    shown: tuple[int, ...]
    marks: tuple[float | None, ...]
    accepted_at: datetime | None
    submitted_at: datetime | None
    details: dict[str, str]

    @property
    def items(self) -> list[int]:
        """Those that have a score."""
        return [item for item, mark in zip(self.shown, self.marks, strict=True) if mark is not None]

    @property
    def scores(self) -> list[float]:
        return [mark for mark in self.marks if mark is not None]

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

STORED = text("""
    SELECT s.external_id, h.items AS shown, h.not_applicable, r.items, r.values AS scores
    FROM unnest(CAST(:ids AS text[])) AS given (id)
    JOIN assignments s ON s.campaign_id = :campaign AND s.external_id = given.id
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id AND a.platform = :platform
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id
    LEFT JOIN responses r ON r.campaign_id = h.campaign_id AND r.hit_id = h.id
""")

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
    """The rows with item numbers; `rows` is empty then. Raises `Invalid` (`item_unknown`)."""
    numbers: dict[str, int] = {}
    for ids in pieces(await asyncio.to_thread(ids_in, rows)):
        found = await connection.execute(NUMBERS, {"campaign": campaign.id, "ids": ids})
        numbers |= {row.external_id: row.number for row in found}
    return await asyncio.to_thread(hits_of, rows, numbers)


def ids_in(rows: Sequence[ResultRow]) -> list[str]:
    return list({external_id for row in rows for external_id in row.items})


def hits_of(rows: list[ResultRow], numbers: Mapping[str, int]) -> list[ImportedHit]:
    """Takes each row from `rows`: to let go of a million at once would take a moment in which nothing else is done.

    Raises `Invalid` (`item_unknown`).
    """
    for row in rows:
        for external_id in row.items:
            if external_id not in numbers:
                said = shortened(external_id)
                refuse("item_unknown", row.line, f"the campaign has no item “{said}”.", item=said)
    rows.reverse()
    return [hit_of(rows.pop(), numbers) for _ in range(len(rows))]


def hit_of(row: ResultRow, numbers: Mapping[str, int]) -> ImportedHit:
    shown = tuple(numbers[external_id] for external_id in row.items)
    return ImportedHit(
        row.line,
        row.worker_id,
        row.assignment_id,
        shown,
        row.scores,
        row.accepted_at,
        row.submitted_at,
        row.details,
    )


async def stored_before(
    connection: AsyncConnection, campaign: Row[Any], hits: Sequence[ImportedHit]
) -> dict[str, list[Row[Any]]]:
    """What is stored of the assignments of these HITs, by assignment."""
    known: dict[str, list[Row[Any]]] = {}
    platform, _ = of_results()
    for some in pieces(hits):
        ids = [hit.assignment_id for hit in some]
        for row in await connection.execute(STORED, {"campaign": campaign.id, "platform": platform.name, "ids": ids}):
            known.setdefault(row.external_id, []).append(row)
    return known


async def without_stored(
    connection: AsyncConnection, campaign: Row[Any], hits: Sequence[ImportedHit]
) -> list[ImportedHit]:
    """Without those that are stored just so. Raises `Conflict` (`assignment_known`) where something else is stored."""
    known = await stored_before(connection, campaign, hits)
    return await asyncio.to_thread(new_among, hits, known, campaign.name, "Nothing was imported.")


def new_among(
    hits: Sequence[ImportedHit], known: Mapping[str, Sequence[Row[Any]]], campaign_name: str, so_far: str
) -> list[ImportedHit]:
    for hit in hits:
        stored = known.get(hit.assignment_id, ())
        if any(not same(hit, row) for row in stored):
            what = "with another answer" if any(map(answered, stored)) else "without an answer: it arrived here itself"
            raise Conflict(
                f"Line {hit.line}: the assignment {shortened(hit.assignment_id)} is in “{campaign_name}” "
                f"already, {what}. {so_far}",
                code="assignment_known",
                line=hit.line,
            )
    return [hit for hit in hits if hit.assignment_id not in known]


def answered(row: Row[Any]) -> bool:
    """Whether a HIT of an assignment has an answer; it may lie open, or be given up, or be none at all."""
    return row.scores is not None or row.not_applicable is not None


def same(hit: ImportedHit, row: Row[Any]) -> bool:
    """Whether this is what is stored."""
    stored = (row.shown, row.not_applicable or [], row.items or [], row.scores or [])
    return stored == (list(hit.shown), hit.not_applicable, hit.items, hit.scores)


async def annotators_of(
    connection: AsyncConnection, campaign: Row[Any], hits: Sequence[ImportedHit], *, now: datetime
) -> dict[str, int]:
    """The annotator of each worker id, made where new."""
    workers = sorted({hit.worker_id for hit in hits})
    platform, _ = of_results()
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
    connection: AsyncConnection, campaign: Row[Any], hits: Sequence[ImportedHit], *, now: datetime
) -> list[Closed]:
    """Their annotators, assignments and closed HITs, except where somebody else stored them meanwhile.

    Nobody who is at work waits for any of these. Raises `Conflict` (`assignment_known`) where somebody else stored
    something else.
    """
    await connection.execute(LOCK_IMPORTS, {"campaign": campaign.id})
    known = await stored_before(connection, campaign, hits)
    hits = new_among(hits, known, campaign.name, "Another import brought it meanwhile. The rows before it are stored.")
    annotators = await annotators_of(connection, campaign, hits, now=now)
    assignments, rows, closed = [], [], []
    keys = [await reserve(connection, table.c.id, len(hits)) for table in (tables.assignments, tables.hits)]
    for hit, assignment_id, hit_id in zip(hits, *keys, strict=True):
        annotator = annotators[hit.worker_id]
        end = hit.submitted_at or now
        start = hit.accepted_at or end
        details = json.dumps(hit.details)
        assignments.append((campaign.id, assignment_id, annotator, hit.assignment_id, details, start, end))
        marked = hit.not_applicable or None
        rows.append((hit_id, campaign.id, annotator, assignment_id, hit.shown, marked, start, end, end))
        closed.append(Closed(hit, hit_id, annotator))
    await copy(connection, tables.assignments, assignments, *ASSIGNMENT_COLUMNS)
    await copy(connection, tables.hits, rows, *HIT_COLUMNS)
    return closed


async def store_responses(
    connection: AsyncConnection,
    campaign: Row[Any],
    closed: Sequence[Closed],
    locked: Locked,
    *,
    now: datetime,
) -> dict[int, int]:
    """Responses to closed HITs with scores, and what follows for these locked posteriors; the judgments that the HITs'
    items then have.

    Responses are numbered under the locks, so `seq` is the order of the updates.
    """
    judgments = await fold(connection, campaign, await counting(connection, campaign, closed), locked)
    seqs = await reserve_seqs(connection, len(closed))
    rows = [
        (
            *(seq, campaign.id, one.id, one.annotator, "import", one.hit.items, one.hit.scores),
            one.hit.submitted_at or now,
        )
        for seq, one in zip(seqs, closed, strict=True)
    ]
    await copy(connection, tables.responses, rows, *RESPONSE_COLUMNS)
    return judgments


async def counting(connection: AsyncConnection, campaign: Row[Any], closed: Sequence[Closed]) -> list[Response]:
    """Their answers, without those of annotators who are left out."""
    left_out = await stream.left_out(connection, campaign.id)
    return [answer for answer in unnumbered(closed) if answer.annotator not in left_out]


def unnumbered(closed: Sequence[Closed]) -> list[Response]:
    """Their answers; numbers are given later."""
    return [Response(0, one.annotator, one.hit.items, one.hit.scores) for one in closed]
