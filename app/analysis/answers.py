"""A campaign's `Answers` out of the database: every judgment from one snapshot, as arrays."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.findings import Answers, Values
from app.database.bulk import Numbers
from app.designs.registry import design_of
from app.record.law import law_of, parameters_of
from app.record.news import Watermark
from app.record.stream import judgments

ROWS_AT_ONCE = 5_000
HITS_AT_ONCE = 50_000  # about 20 MB of numbers

ITEM_COUNT = text("SELECT count(*) FROM items WHERE campaign_id = :campaign")

ITEMS = text("""
    SELECT i.external_id, i.shown, i.fields->>'system' AS system, i.fields->>'segment' AS segment,
           priors.state AS prior, p.state
    FROM items i JOIN priors USING (campaign_id, number) LEFT JOIN current_posteriors p USING (campaign_id, number)
    WHERE campaign_id = :campaign ORDER BY number
""")

UPLOADED = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign
                   AND (SELECT bool_and(fields->>name IS NOT NULL) FROM unnest(CAST(:columns AS text[])) AS name))
""")

# Items are numbered from 0 without gaps. Annotators are counted no further than anybody looks at once.
SIZE = text("""
    SELECT (SELECT coalesce(max(number) + 1, 0) FROM items WHERE campaign_id = :campaign) AS items,
           (SELECT count(*) FROM (SELECT FROM annotators WHERE campaign_id = :campaign LIMIT :most) AS some_of_them)
           AS annotators
""")

ANNOTATORS = text("SELECT id, pseudonym, name FROM named_annotators WHERE campaign_id = :campaign")


async def has_answers(connection: AsyncConnection, campaign: Row[Any]) -> bool:
    """Whether anybody has answered."""
    statement = text("SELECT EXISTS (SELECT FROM responses WHERE campaign_id = :campaign)")
    return bool(await connection.scalar(statement, {"campaign": campaign.id}))


async def item_count(connection: AsyncConnection, campaign_id: int) -> int:
    return int((await connection.execute(ITEM_COUNT, {"campaign": campaign_id})).scalar_one())


async def size(connection: AsyncConnection, campaign: Row[Any], most: int) -> Row[Any]:
    """How many items there are, and how many annotators have come, if they are no more than `most`."""
    return (await connection.execute(SIZE, {"campaign": campaign.id, "most": most})).one()


async def has_uploaded(connection: AsyncConnection, campaign: Row[Any], columns: Sequence[str]) -> bool:
    """Whether an item came with all of these columns."""
    return bool(await connection.scalar(UPLOADED, {"campaign": campaign.id, "columns": [*columns]}))


async def read(connection: AsyncConnection, campaign: Row[Any]) -> Answers:
    """All of it; give it a `snapshot`. Memory: 32 bytes a judgment, and the items' texts."""
    of = {"campaign": campaign.id}
    items: list[Row[Any]] = []
    async for rows in (await connection.stream(ITEMS, of)).partitions(ROWS_AT_ONCE):
        items += rows
    annotators = {row.id: row for row in await connection.execute(ANNOTATORS, of)}
    pieces = [piece async for piece in in_pieces(connection, campaign.id)]
    return await asyncio.to_thread(assembled, campaign, items, annotators, pieces)


async def in_pieces(
    connection: AsyncConnection, campaign_id: int, *, after: int = 0, since: Watermark | None = None
) -> AsyncIterator[dict[str, Numbers]]:
    """The judgments of the responses with numbers above `after`, written since a watermark, as `judgments` has them."""
    while len((piece := await judgments(connection, campaign_id, after=after, since=since, limit=HITS_AT_ONCE))["seq"]):
        yield piece
        after = int(piece["seq"][-1])


def assembled(
    campaign: Row[Any],
    items: Sequence[Row[Any]],
    annotators: Mapping[int, Row[Any]],
    pieces: Sequence[Mapping[str, Values]],
) -> Answers:
    """From rows of items and judgments in long form; annotators: their names and pseudonyms by their row ids."""
    nothing: dict[str, Values] = {
        name: np.zeros(0, np.float64 if name == "value" else np.intp) for name in ("seq", "annotator", "item", "value")
    }
    columns = {name: np.concatenate([none, *(piece[name] for piece in pieces)]) for name, none in nothing.items()}
    seq, hit = np.unique(columns["seq"], return_inverse=True)
    numbers, annotator = np.unique(columns["annotator"], return_inverse=True)
    design = design_of(campaign)
    family, launched = law_of(campaign).family, bool(items) and items[0].state is not None
    return Answers(
        seq=seq,
        hit=hit,
        item=columns["item"].astype(np.intp),
        annotator=annotator,
        score=design.points(columns["value"], hit),
        value=columns["value"],
        yields=design.yields,
        classes=design.classes,
        always_shown=campaign.always_shown,
        compares_pairs=design.compares_pairs,
        ids=[row.external_id for row in items],
        shown=[row.shown for row in items],
        systems=[row.system for row in items],
        segments=[row.segment for row in items],
        annotators=[annotators[number].pseudonym for number in numbers.tolist()],
        names=[annotators[number].name for number in numbers.tolist()],
        law=campaign.update_law,
        prior=family.columns([row.prior or family.default_prior for row in items]),
        state=family.columns([row.state for row in items]) if launched else None,
        parameters=parameters_of(campaign),
        seed=campaign.seed,
    )
