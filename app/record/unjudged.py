"""Items that annotators could not judge: how many different people said so of each. Of so many, it leaves the pool.
An output of a system that cannot be judged says nothing of the system, so systems stay.

Like a posterior, the number follows from the record: those whose answers do not count say nothing. An answer adds to
it; whoever makes a revision or verifies one counts anew.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Driver, Record, fetch
from app.designs.unjudged import EXTRA
from app.record.states import Revision
from app.record.store import PRESENT
from app.record.stream import COUNTING, counting

# One more person for each of :items, except where the same one has said so before.
ADD = text(f"""
    UPDATE posteriors p SET unjudged = p.unjudged + 1
    WHERE {PRESENT} AND p.subject = ANY(CAST(:items AS int[])) AND NOT EXISTS (
        SELECT FROM responses
        WHERE campaign_id = :campaign AND annotator_id = CAST(:annotator AS bigint) AND seq <> :seq
        AND extra -> '{EXTRA}' ? CAST(p.subject AS text) AND {COUNTING}
    )
    RETURNING p.unjudged
""")  # noqa: S608  (made of constants)

# What is said of an output tells nothing of its system, so those of segments are left out.
SAID = f"""
    FROM responses, jsonb_each_text(extra -> '{EXTRA}') AS said (item, reason)
    WHERE campaign_id = :campaign AND extra ? '{EXTRA}' AND segment IS NULL"""
COUNT = f"""
    SELECT CAST(said.item AS int) AS item, CAST(count(DISTINCT annotator_id) AS int) AS people {SAID} AND {COUNTING}
    GROUP BY 1
"""

PEOPLE = text(COUNT)

WHO = text(f"""
    SELECT CAST(said.item AS int) AS item, array_agg(annotator_id) AS people {SAID}
    AND {counting(":campaign", "CAST(:decided AS bigint)")}
    AND (CAST(:seqs AS bigint[]) IS NULL OR seq = ANY(CAST(:seqs AS bigint[])))
    GROUP BY 1
""")

SET = """
    UPDATE posteriors p SET unjudged = said.people FROM {said} AS said (item, people)
    WHERE p.campaign_id = :campaign AND p.revision = :revision AND p.criterion = 0 AND p.subject = said.item
    AND p.subject = ANY(CAST(:items AS int[]))
"""
COUNT_ANEW = text(SET.format(said=f"({COUNT})"))
PUT = text(SET.format(said="unnest(CAST(:items AS int[]), CAST(:people AS int[]))"))

# Why, too: of each item and reason how many different people gave it.
REASONS = text(f"""
    SELECT CAST(said.item AS int) AS item, said.reason, count(DISTINCT annotator_id) AS people {SAID} AND {COUNTING}
    GROUP BY 1, 2 ORDER BY 3 DESC, 2
""")


class Unjudged(Record):
    """How many people could not judge an item."""

    unjudged: int


async def add(connection: Driver, campaign: int, annotator: int, seq: int, items: list[int]) -> int:
    """Count an answer that was stored, and counts; the most people that any of its items has now.

    The items' posteriors are locked.
    """
    parameters = {"campaign": campaign, "annotator": annotator, "seq": seq, "items": items}
    return max((row.unjudged for row in await fetch(connection, ADD, parameters, Unjudged)), default=0)


async def people(connection: AsyncConnection, campaign: Row[Any]) -> dict[int, int]:
    """By item, how many people could not judge it, by the present revision."""
    rows = await connection.execute(PEOPLE, {"campaign": campaign.id})
    return {row.item: row.people for row in rows}


async def reasons(connection: AsyncConnection, campaign_id: int) -> dict[int, dict[str, int]]:
    """By item, why people could not judge it, by the present revision: how many gave each reason, the most frequent
    first; the empty reason where none was asked for.
    """
    found: dict[int, dict[str, int]] = {}
    for row in await connection.execute(REASONS, {"campaign": campaign_id}):
        found.setdefault(row.item, {})[row.reason] = row.people
    return found


async def count_anew(connection: AsyncConnection, of: Revision, *, items: Sequence[int]) -> None:
    """Set it for these items, whose posteriors in the present revision are locked."""
    await connection.execute(COUNT_ANEW, {**of.parameters, "items": items})


async def who(
    connection: AsyncConnection, campaign: Row[Any], *, decided: int, seqs: Sequence[int] | None = None
) -> dict[int, set[int]]:
    """By item, who could not judge it, by the decisions up to this number. seqs: in the answers of these numbers."""
    if not campaign.cannot_be_judged:
        return {}
    rows = await connection.execute(WHO, {"campaign": campaign.id, "decided": decided, "seqs": seqs})
    return {row.item: {*row.people} for row in rows}


async def put(connection: AsyncConnection, of: Revision, people: Mapping[int, Collection[int]]) -> None:
    """Set it for these items of a revision that nobody else writes, to as many people."""
    if people:
        counts = [len(those) for those in people.values()]
        await connection.execute(PUT, {**of.parameters, "items": [*people], "people": counts})
