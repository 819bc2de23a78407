"""Results of Mechanical Turk as responses of a launched campaign: what the released EASL program calls its update."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import lifecycle
from app.campaigns.items import ROWS_AT_ONCE, Progress
from app.campaigns.mturk_results import Judged, read_results
from app.campaigns.upload import refuse
from app.database import learned, tables
from app.database.bulk import copy, reserve
from app.database.campaign import finish_if_complete
from app.database.session import driver_of
from app.designs import slider
from app.errors import Conflict
from app.inference.annotator_aware_online import Learned
from app.inference.online import ONLINE, Replay

PLATFORM = "mturk"
NO_LEADER = -1  # a result file does not tell which item led the HIT
ASSIGNMENT_COLUMNS = ("id", "annotator_id", "external_id", "arrival", "arrived_at", "completed_at")
HIT_COLUMNS = (
    *("id", "campaign_id", "annotator_id", "assignment_id", "leader", "items"),
    *("issued_at", "expires_at", "closed_at"),
)
RESPONSE_COLUMNS = ("seq", "campaign_id", "hit_id", "annotator_id", "source", "items", "scores", "received_at")


@dataclass(frozen=True)
class Imported:
    """What an import did.

    responses: stored; items: judged by them; over_wanted: of these, how many have more judgments than wanted now;
    finished: whether the campaign was closed, because all items have what was wanted.
    """

    responses: int
    items: int
    over_wanted: int
    finished: bool


@dataclass(frozen=True)
class Hit:
    """A row with the campaign's numbers of its items in the place of their ids."""

    row: Judged
    items: list[int]


LOCK_IMPORTS = text("SELECT pg_advisory_xact_lock(hashtext('campaign.results'), CAST(:campaign AS int))")

NUMBERS = text("""
    SELECT external_id, number FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
""")

KNOWN = text("""
    SELECT s.external_id FROM assignments s JOIN annotators a ON a.id = s.annotator_id
    WHERE a.campaign_id = :campaign AND a.platform = :platform AND s.external_id = ANY(CAST(:ids AS text[]))
""")

ANNOTATORS = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT :campaign, :platform, worker_id, pseudonym, :now
    FROM unnest(CAST(:workers AS text[]), CAST(:pseudonyms AS text[])) AS new (worker_id, pseudonym) ORDER BY worker_id
    ON CONFLICT (campaign_id, platform, worker_id) DO UPDATE SET worker_id = excluded.worker_id
    RETURNING worker_id, id
""")

LOCK_POSTERIORS = text("""
    SELECT number, a, b FROM posteriors WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
    ORDER BY number FOR NO KEY UPDATE
""")

UPDATE_POSTERIORS = text("""
    UPDATE posteriors p
    SET a = new.a, b = new.b, score = new.score, variance = new.variance, judgments = p.judgments + new.judgments
    FROM unnest(CAST(:numbers AS int[]), CAST(:a AS float8[]), CAST(:b AS float8[]), CAST(:score AS float8[]),
                CAST(:variance AS float8[]), CAST(:judgments AS int[]))
         AS new (number, a, b, score, variance, judgments)
    WHERE p.campaign_id = :campaign AND p.number = new.number
    RETURNING p.judgments
""")


async def import_results(
    connection: AsyncConnection,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    now: datetime,
    max_mb: int,
    progress: Progress = lambda _rows: None,
) -> Imported:
    """Store a result file's rows as responses, in file order, with the posteriors that follow: all or nothing.

    The answers exist, so items may come to have more judgments than are wanted. `progress` is told now and then how
    many rows have been applied. Raises `NotFound`, `Conflict` (`not_launched`, `assignment_known`), `Invalid`
    (`item_unknown`) and what `upload.read` and `judged_in` raise.
    """
    campaign = await launched(connection, slug)
    rows = await asyncio.to_thread(read_results, file, name, max_mb=max_mb)
    # One import at a time; so two of the same file cannot both find its assignments unknown.
    await connection.execute(LOCK_IMPORTS, {"campaign": campaign.id})
    await connection.execute(learned.LOCK, {"campaign": campaign.id})
    await refuse_known(connection, campaign, rows)
    hits = await numbered(connection, campaign, rows)
    # Annotators before posteriors, as a live arrival has it: it makes its annotator, then leases.
    annotators = await annotators_of(connection, campaign, rows, now=now)
    judgments = await update_posteriors(connection, campaign, hits, annotators, progress)
    await store(connection, campaign, hits, annotators, now=now)
    finished = await finish_if_complete(connection, campaign.id, now=now)
    over = sum(count > campaign.judgments_per_item for count in judgments)
    return Imported(len(rows), len(judgments), over, finished)


async def launched(connection: AsyncConnection, slug: str) -> Row[Any]:
    campaign = await lifecycle.find(connection, slug)
    if campaign.status == "draft":
        raise Conflict(
            f"“{campaign.name}” is a draft. Launch it (you can pause it at once), then import its results.",
            code="not_launched",
            status=campaign.status,
        )
    return campaign


async def refuse_known(connection: AsyncConnection, campaign: Row[Any], rows: Sequence[Judged]) -> None:
    ids = [row.assignment_id for row in rows]
    known = set(await connection.scalars(KNOWN, {"campaign": campaign.id, "platform": PLATFORM, "ids": ids}))
    for row in rows:
        if row.assignment_id in known:
            raise Conflict(
                f"Line {row.line}: the assignment {row.assignment_id} is in “{campaign.name}” already. "
                "Nothing was imported.",
                code="assignment_known",
                line=row.line,
            )


async def numbered(connection: AsyncConnection, campaign: Row[Any], rows: Sequence[Judged]) -> list[Hit]:
    """The rows with item numbers. Raises `Invalid` (`item_unknown`)."""
    ids = list({external_id for row in rows for external_id in row.items})
    found = await connection.execute(NUMBERS, {"campaign": campaign.id, "ids": ids})
    numbers = {row.external_id: row.number for row in found}
    for row in rows:
        for external_id in row.items:
            if external_id not in numbers:
                refuse("item_unknown", row.line, f"the campaign has no item “{external_id}”.", item=external_id)
    return [Hit(row, [numbers[external_id] for external_id in row.items]) for row in rows]


async def annotators_of(
    connection: AsyncConnection, campaign: Row[Any], rows: Sequence[Judged], *, now: datetime
) -> dict[str, int]:
    """The annotator of each worker id, made where new."""
    workers = sorted({row.worker_id for row in rows})
    parameters = {
        "campaign": campaign.id,
        "platform": PLATFORM,
        "workers": workers,
        "pseudonyms": [secrets.token_hex(5) for _ in workers],
        "now": now,
    }
    return {row.worker_id: row.id for row in await connection.execute(ANNOTATORS, parameters)}


async def update_posteriors(
    connection: AsyncConnection,
    campaign: Row[Any],
    hits: Sequence[Hit],
    annotators: Mapping[str, int],
    progress: Progress,
) -> list[int]:
    """Replay the HITs on the posteriors they touch, locked in number order; the judgments these items have then."""
    touched = sorted({number for hit in hits for number in hit.items})
    key = {"campaign": campaign.id, "numbers": touched}
    before = (await connection.execute(LOCK_POSTERIORS, key)).all()
    place = {posterior.number: k for k, posterior in enumerate(before)}
    judged = [
        ([place[number] for number in hit.items], [score / slider.POINTS for score in hit.row.scores]) for hit in hits
    ]
    law = ONLINE[campaign.update_law]
    a, b = np.array([posterior.a for posterior in before]), np.array([posterior.b for posterior in before])
    replay = Replay(law, a, b, slider.parameters(campaign))
    if replay.learned is not None:
        replay.learned = await learned_before(connection, campaign.id, touched)
    who = [annotators[hit.row.worker_id] for hit in hits]
    for start in range(0, len(judged), ROWS_AT_ONCE):
        chunk = slice(start, start + ROWS_AT_ONCE)
        await asyncio.to_thread(replay.take, judged[chunk], who[chunk])
        progress(start + len(judged[chunk]))
    if replay.learned is not None:
        await keep_learned(connection, campaign.id, touched, replay.learned)
    counts = Counter(chain.from_iterable(places for places, _ in judged))
    values = {
        "a": replay.a.tolist(),
        "b": replay.b.tolist(),
        "score": law.score(replay.a, replay.b).tolist(),
        "variance": law.variance(replay.a, replay.b).tolist(),
        "judgments": [counts[k] for k in range(len(before))],
    }
    return list(await connection.scalars(UPDATE_POSTERIORS, key | values))


async def learned_before(connection: AsyncConnection, campaign_id: int, items: Sequence[int]) -> Learned:
    """What `easl-aware` knows of these items, in this order, and of everybody."""
    driver = await driver_of(connection)
    states = await learned.states(driver, campaign_id, "item", items)
    return Learned(
        priors=await learned.priors(driver, campaign_id, items),
        items=[states.get(number, []) for number in items],
        annotators=await learned.states(driver, campaign_id, "annotator"),
        totals=(await learned.states(driver, campaign_id, "campaign"))[0],
    )


async def keep_learned(connection: AsyncConnection, campaign_id: int, items: Sequence[int], known: Learned) -> None:
    changed: dict[learned.Kind, dict[int, list[float]]] = {
        "campaign": {0: known.totals},
        "item": dict(zip(items, known.items, strict=True)),
        "annotator": known.annotators,
    }
    await learned.keep(await driver_of(connection), campaign_id, changed)


async def store(
    connection: AsyncConnection,
    campaign: Row[Any],
    hits: Sequence[Hit],
    annotators: Mapping[str, int],
    *,
    now: datetime,
) -> None:
    """The assignments, closed HITs and responses. The posteriors are locked, so `seq` is the order of the updates."""
    assignments, closed, responses = [], [], []
    keys = [
        await reserve(connection, column, len(hits))
        for column in (tables.assignments.c.id, tables.hits.c.id, tables.responses.c.seq)
    ]
    for hit, assignment_id, hit_id, seq in zip(hits, *keys, strict=True):
        row, annotator = hit.row, annotators[hit.row.worker_id]
        end = row.submitted_at or now
        start = row.accepted_at or end
        assignments.append((assignment_id, annotator, row.assignment_id, json.dumps(row.details), start, end))
        closed.append((hit_id, campaign.id, annotator, assignment_id, NO_LEADER, hit.items, start, end, end))
        responses.append((seq, campaign.id, hit_id, annotator, "import", hit.items, row.scores, end))
    await copy(connection, tables.assignments, assignments, *ASSIGNMENT_COLUMNS)
    await copy(connection, tables.hits, closed, *HIT_COLUMNS)
    await copy(connection, tables.responses, responses, *RESPONSE_COLUMNS)
