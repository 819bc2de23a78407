"""How posteriors are written: all of a revision at its beginning, then those that answers change, in one statement."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, copy_numbers
from app.database.session import driver_of
from app.database.tables import posteriors
from app.designs.criteria import MOST
from app.inference.ground.arrays import Array, distinct
from app.inference.online.law import Beliefs, Columns, Law
from app.record import states
from app.record.states import Revision

AT_ONCE = 50_000
EVERY = f"{{{','.join(map(str, range(MOST)))}}}"  # criterion, as an array


def present(campaign: str) -> str:
    """SQL for the posteriors p of a campaign's present revision, by its first criterion, without a join: all of their
    key but the item is known before they are looked for, whatever the statistics say.
    """
    return f"""
    p.campaign_id = {campaign} AND p.revision = (SELECT revision FROM campaigns WHERE id = {campaign})
    AND p.criterion = 0"""  # noqa: S608  (made of constants)


PRESENT = present(":campaign")


def deciding(asked: str) -> str:
    """SQL for what decides what is asked, of posteriors p by the first criterion: score and variance by the criterion
    of the number `asked`; where that is NULL, the variances of all criteria together.
    """
    others = f"""
        FROM posteriors o WHERE o.campaign_id = p.campaign_id AND o.subject = p.subject AND o.revision = p.revision
        AND o.criterion = ANY(CASE WHEN {asked} IS NULL THEN '{EVERY}'::smallint[] ELSE ARRAY[{asked}] END)"""
    return f"""
    SELECT CASE WHEN {asked} > 0 THEN (SELECT o.score {others}) ELSE p.score END AS score,
           CASE WHEN {asked} = 0 THEN p.variance ELSE (SELECT sum(o.variance ORDER BY o.criterion) {others}) END
           AS variance"""


# New values of :numbers, and so many judgments more; :states one after another, :width floats each. Whoever sends it
# holds their locks.
UPDATE = """
    UPDATE posteriors p
    SET state = (CAST(:states AS float8[]))[(new.place - 1) * CAST(:width AS int) + 1 : new.place * :width],
        score = new.score, variance = new.variance, judgments = p.judgments + new.judgments
    FROM unnest(CAST(:numbers AS int[]), CAST(:score AS float8[]), CAST(:variance AS float8[]), CAST(:more AS int[]))
         WITH ORDINALITY AS new (number, score, variance, judgments, place)
    WHERE p.campaign_id = :campaign AND p.revision = :revision AND p.criterion = :criterion AND p.subject = new.number
    AND p.subject = ANY(CAST(:numbers AS int[]))  -- so that the index finds them whatever the statistics say
    RETURNING p.subject AS number, p.judgments"""

UPDATE_POSTERIORS = text(UPDATE)


def changes(law: Law, numbers: Sequence[int], state: Columns, more: Sequence[int]) -> dict[str, Any]:
    """The parameters of `UPDATE` for items whose posteriors are these now. more: how many judgments each has got."""
    score, variance = law.family.estimates(*state) if numbers else ([], [])
    rows = zip(*state, strict=True)
    return {
        "numbers": numbers,
        "states": list(chain.from_iterable(rows)),
        "width": len(state),
        "score": score,
        "variance": variance,
        "more": more,
    }


async def begin(
    connection: AsyncConnection, of: Revision, law: Law, beliefs: Beliefs, judgments: Numbers | None = None
) -> None:
    """Store a revision: the posteriors, and what its law keeps besides. judgments: of each item, (N,), none if None."""
    score, variance = await asyncio.to_thread(estimates, law, beliefs)
    columns = {"state": np.ascontiguousarray(beliefs.state.T), "score": score, "variance": variance}
    await copied(connection, of, columns if judgments is None else columns | {"judgments": judgments})
    if law.layout:
        kept = await asyncio.to_thread(beliefs.kept)
        for piece in states.pieces(kept):
            await states.keep(await driver_of(connection), of, piece, layout=law.layout)


def estimates(law: Law, beliefs: Beliefs) -> tuple[Array, Array]:
    """Score and variance of every item, (N,) each; many may be alike, as at the launch."""
    first, which = distinct([*beliefs.state])
    state = beliefs.state[:, first]
    return law.family.score(*state)[which], law.family.variance(*state)[which]


async def copied(connection: AsyncConnection, of: Revision, columns: Mapping[str, Numbers]) -> None:
    """Insert the posteriors of the items 0 to N - 1, in pieces, so that other requests are not kept waiting."""
    count = len(columns["score"])
    for start in range(0, count, AT_ONCE):
        piece = {name: column[start : start + AT_ONCE] for name, column in columns.items()}
        subject = np.arange(start, min(start + AT_ONCE, count), dtype=np.int32)
        keys: dict[str, Numbers] = {
            "campaign_id": np.full(len(subject), of.campaign, np.int64),
            "revision": np.full(len(subject), of.revision, np.int32),
            "criterion": np.full(len(subject), of.criterion, np.int16),
            "subject": subject,
        }
        await copy_numbers(connection, posteriors, keys | piece)
