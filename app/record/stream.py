"""A campaign's responses, in the order in which they count: the one statement that reads them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, copying, numbers
from app.designs.design import Design
from app.inference.online.laws import Hit

LAST = 2**63 - 1  # what a column holds

RESPONSES = """
    SELECT seq, annotator_id, items, values FROM responses
    WHERE campaign_id = $1 AND seq > $2 AND seq <= $3 AND annotator_id <> ALL ($5) AND seq <> ALL ($6)
    ORDER BY seq LIMIT $4
"""

EXCLUSIONS = text("SELECT annotator_id, response_seq FROM exclusions WHERE campaign_id = :campaign")

JUDGMENTS = f"""
    SELECT r.seq, r.annotator_id, shown.item, shown.score
    FROM ({RESPONSES}) AS r, unnest(r.items, r.values) AS shown (item, score)
"""  # noqa: S608  (made of a constant)


class Response(NamedTuple):
    """One answered HIT. annotator: their row's id. items: as presented. values: of each, as its design has them."""

    seq: int
    annotator: int
    items: list[int]
    values: list[float]

    def hit(self, design: Design) -> Hit:
        """As an update law takes it."""
        return self.items, design.shares(self.values)


class Exclusions(NamedTuple):
    """Whose answers, and which, the present revision leaves out."""

    annotators: frozenset[int] = frozenset()
    responses: frozenset[int] = frozenset()


async def exclusions(connection: AsyncConnection, campaign_id: int) -> Exclusions:
    """Those of a campaign."""
    rows = (await connection.execute(EXCLUSIONS, {"campaign": campaign_id})).all()
    annotators = frozenset(row.annotator_id for row in rows if row.annotator_id is not None)
    return Exclusions(annotators, frozenset(row.response_seq for row in rows if row.response_seq is not None))


async def responses(
    connection: AsyncConnection,
    campaign_id: int,
    *,
    after: int = 0,
    until: int = LAST,
    limit: int,
    left_out: Exclusions | None = None,
) -> list[Response]:
    """The first `limit` responses that count, with numbers above `after` and up to `until`.

    left_out: those of the present revision by default.
    """
    arguments = campaign_id, after, until, limit, *map(list, left_out or await exclusions(connection, campaign_id))
    driver = await copying(connection)
    return [Response(*row) for row in await driver.fetch(RESPONSES, *arguments)]


async def in_pieces(
    connection: AsyncConnection, campaign_id: int, size: int, left_out: Exclusions | None = None
) -> AsyncIterator[list[Response]]:
    """All responses that count, at most `size` at once; give it a `snapshot`."""
    after = 0
    while some := await responses(connection, campaign_id, after=after, limit=size, left_out=left_out):
        yield some
        after = some[-1].seq


async def judgments(
    connection: AsyncConnection, campaign_id: int, *, after: int = 0, until: int = LAST, limit: int
) -> dict[str, Numbers]:
    """The judgments of those responses in long form, many times faster: `seq`, `annotator`, `item`, `score`, each (J,),
    sorted by `seq` and within a HIT as presented.
    """
    arguments = campaign_id, after, until, limit, *map(list, await exclusions(connection, campaign_id))
    rows = await numbers(connection, JUDGMENTS, arguments, seq="i8", annotator="i8", item="i4", score="f8")
    return await asyncio.to_thread(in_order, rows)


def in_order(rows: Mapping[str, Numbers]) -> dict[str, Numbers]:
    order = rows["seq"].argsort(kind="stable")
    return {name: column[order] for name, column in rows.items()}
