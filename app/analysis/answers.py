"""A campaign's `Answers` out of the database: every judgment from one snapshot, as arrays."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.findings import Answers, Values
from app.designs import slider

ROWS_AT_ONCE = 5_000

ITEMS = text("""
    SELECT i.external_id, i.shown, i.fields->>'system' AS system, i.fields->>'segment' AS segment,
           coalesce(i.prior_a, c.prior_a) AS prior_a, coalesce(i.prior_b, c.prior_b) AS prior_b, p.a, p.b
    FROM campaigns c JOIN items i ON i.campaign_id = c.id
    LEFT JOIN posteriors p ON p.campaign_id = i.campaign_id AND p.number = i.number
    WHERE c.id = :campaign ORDER BY i.number
""")

RESPONSES = text("""
    SELECT seq, annotator_id, items AS shown, values AS scores FROM responses WHERE campaign_id = :campaign ORDER BY seq
""")

SYSTEMS = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign
                   AND fields->>'system' IS NOT NULL AND fields->>'segment' IS NOT NULL)
""")

# Items are numbered from 0 without gaps. Annotators are counted no further than anybody looks at once.
SIZE = text("""
    SELECT (SELECT coalesce(max(number) + 1, 0) FROM items WHERE campaign_id = :campaign) AS items,
           (SELECT count(*) FROM (SELECT FROM annotators WHERE campaign_id = :campaign LIMIT :most) AS some_of_them)
           AS annotators
""")

ANNOTATORS = text("SELECT id, pseudonym, name FROM named_annotators WHERE campaign_id = :campaign")

# A response can be committed after one with a higher number, so the highest number alone would not tell that it came.
MARK = text("""
    SELECT coalesce(max(seq), 0) AS last_seq, count(*) AS responses FROM responses WHERE campaign_id = :campaign
""")

Mark = tuple[Any, ...]


async def mark(connection: AsyncConnection, campaign: Row[Any]) -> Mark:
    """What is the same as long as a campaign's `Answers` are: its row, its last response, how many there are."""
    row = (await connection.execute(MARK, {"campaign": campaign.id})).one()
    return (*campaign, *row)


async def has_answers(connection: AsyncConnection, campaign: Row[Any]) -> bool:
    """Whether anybody has answered."""
    statement = text("SELECT EXISTS (SELECT FROM responses WHERE campaign_id = :campaign)")
    return bool(await connection.scalar(statement, {"campaign": campaign.id}))


async def size(connection: AsyncConnection, campaign: Row[Any], most: int) -> Row[Any]:
    """How many items there are, and how many annotators have come, if they are no more than `most`."""
    return (await connection.execute(SIZE, {"campaign": campaign.id, "most": most})).one()


async def has_systems(connection: AsyncConnection, campaign: Row[Any]) -> bool:
    """Whether an item names the system that made it and the segment it was made from."""
    return bool(await connection.scalar(SYSTEMS, {"campaign": campaign.id}))


async def read(connection: AsyncConnection, campaign: Row[Any]) -> Answers:
    """All of it; give it a `snapshot`. Memory: 32 bytes a judgment, and the items' texts."""
    of = {"campaign": campaign.id}
    items: list[Row[Any]] = []
    async for rows in (await connection.stream(ITEMS, of)).partitions(ROWS_AT_ONCE):
        items += rows
    annotators = {row.id: row for row in await connection.execute(ANNOTATORS, of)}
    parts: list[tuple[Values, ...]] = []
    hits = 0
    async for rows in (await connection.stream(RESPONSES, of)).partitions(ROWS_AT_ONCE):
        parts.append(await asyncio.to_thread(long_form, rows, hits))
        hits += len(rows)
    return await asyncio.to_thread(assembled, campaign, items, annotators, parts)


def assembled(
    campaign: Row[Any],
    items: Sequence[Row[Any]],
    annotators: Mapping[int, Row[Any]],
    parts: Iterable[tuple[Values, ...]],
) -> Answers:
    """From rows of items and the pieces of `long_form`; annotators: their names and pseudonyms by their row ids."""
    nothing = (np.zeros(0, np.intp),) * 4 + (np.zeros(0),)
    seq, hit, item, annotator, score = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    numbers, annotator = np.unique(annotator, return_inverse=True)
    launched = bool(items) and items[0].a is not None
    return Answers(
        seq=seq,
        hit=hit,
        item=item,
        annotator=annotator,
        score=score,
        ids=[row.external_id for row in items],
        shown=[row.shown for row in items],
        systems=[row.system for row in items],
        segments=[row.segment for row in items],
        annotators=[annotators[number].pseudonym for number in numbers.tolist()],
        names=[annotators[number].name for number in numbers.tolist()],
        law=campaign.update_law,
        prior_a=np.array([row.prior_a for row in items], float),
        prior_b=np.array([row.prior_b for row in items], float),
        a=np.array([row.a for row in items], float) if launched else None,
        b=np.array([row.b for row in items], float) if launched else None,
        parameters=slider.parameters(campaign),
        seed=campaign.seed,
    )


def long_form(rows: Sequence[Row[Any]], before: int) -> tuple[Values, ...]:
    """Of some responses, `before` of which came earlier: the number of each, (H,); then HIT, item, annotator's row id
    and score of each judgment, (J,).
    """
    sizes = [len(row.scores) for row in rows]
    total = sum(sizes)
    return (
        np.array([row.seq for row in rows], np.intp),
        np.repeat(np.arange(before, before + len(rows)), sizes),
        np.fromiter(chain.from_iterable(row.shown for row in rows), np.intp, total),
        np.repeat(np.array([row.annotator_id for row in rows], np.intp), sizes),
        np.fromiter(chain.from_iterable(row.scores for row in rows), np.float64, total),
    )
