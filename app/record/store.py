"""How posteriors are written: all of a revision at its beginning, then those that answers change, in one statement."""

import asyncio

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, copy_numbers
from app.database.session import driver_of
from app.database.tables import posteriors
from app.inference.online.laws import Replay
from app.record import states
from app.record.states import Revision

AT_ONCE = 50_000

# New values of :numbers, and so many judgments more. Whoever sends it holds their locks.
UPDATE = """
    UPDATE posteriors p
    SET state = ARRAY[new.a, new.b], score = new.score, variance = new.variance,
        judgments = p.judgments + new.judgments
    FROM unnest(CAST(:numbers AS int[]), CAST(:a AS float8[]), CAST(:b AS float8[]), CAST(:score AS float8[]),
                CAST(:variance AS float8[]), CAST(:more AS int[]))
         AS new (number, a, b, score, variance, judgments)
    WHERE p.campaign_id = :campaign AND p.revision = :revision AND p.criterion = 0 AND p.subject = new.number
    RETURNING p.subject AS number, p.judgments"""

UPDATE_POSTERIORS = text(UPDATE)


async def begin(connection: AsyncConnection, of: Revision, replay: Replay, judgments: Numbers) -> None:
    """Store a revision: the posteriors after a replay, and what its law has learned. judgments: of each item, (N,)."""
    law, a, b = replay.law, replay.a, replay.b
    score, variance = await asyncio.to_thread(lambda: (law.score(a, b), law.variance(a, b)))
    await keep(
        connection,
        of,
        {"state": np.column_stack([a, b]), "score": score, "variance": variance, "judgments": judgments},
    )
    if replay.learned is not None:
        await states.keep(
            await driver_of(connection),
            of,
            campaign=replay.learned.totals,
            annotators=replay.learned.annotators,
            items={
                number: (item.since, np.empty(0) if item.looked is None else item.looked)
                for number, item in enumerate(replay.learned.items)
                if item.judgments
            },
        )


async def keep(connection: AsyncConnection, of: Revision, columns: dict[str, Numbers]) -> None:
    """Insert the posteriors of the items 0 to N - 1: `state` (N, 2), `score`, `variance` and perhaps `judgments`, (N,).

    In pieces, so that other requests are not kept waiting.
    """
    count = len(columns["score"])
    for start in range(0, count, AT_ONCE):
        piece = {name: column[start : start + AT_ONCE] for name, column in columns.items()}
        subject = np.arange(start, min(start + AT_ONCE, count), dtype=np.int32)
        keys: dict[str, Numbers] = {
            "campaign_id": np.full(len(subject), of.campaign, np.int64),
            "revision": np.full(len(subject), of.revision, np.int32),
            "subject": subject,
        }
        await copy_numbers(connection, posteriors, keys | piece)
