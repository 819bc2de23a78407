"""A campaign's responses, in the order in which they count: all who read them do it here."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, copying, numbers

LAST = 2**63 - 1  # what a column holds

# Up to which decision the present revision knows the record.
DECIDED = "(SELECT decided FROM campaigns WHERE id = {campaign})"


def counting(campaign: str, decided: str) -> str:
    """SQL for the responses of a campaign that count: no decision up to the number `decided` leaves them out."""
    left_out = f"SELECT * FROM exclusions({campaign}, {decided})"  # noqa: S608  (made of constants)
    return f"""
    annotator_id NOT IN (SELECT annotator_id FROM ({left_out}) AS x WHERE annotator_id IS NOT NULL)
    AND seq NOT IN (SELECT response_seq FROM ({left_out}) AS x WHERE response_seq IS NOT NULL)"""  # noqa: S608  (made of constants)


COUNTING = counting(":campaign", DECIDED.format(campaign=":campaign"))

RESPONSES = f"""
    SELECT seq, annotator_id, items, values FROM responses
    WHERE campaign_id = $1 AND seq > $2 AND seq <= $3
    AND {counting("$1", f"coalesce($5, {DECIDED.format(campaign='$1')})")}
    ORDER BY seq LIMIT $4
"""  # noqa: S608  (made of constants)

# MATERIALIZED for the same reason as in `news.changes`.
SINCE = f"""
    WITH recent AS MATERIALIZED (SELECT * FROM responses WHERE transaction_id >= $2::text::xid8)
    SELECT seq, annotator_id, items, values FROM recent
    WHERE campaign_id = $1 AND seq NOT IN (SELECT unnest($3::bigint[])) AND {counting("$1", "$4")} ORDER BY seq
"""  # noqa: S608  (made of constants)

JUDGMENTS = f"""
    SELECT r.seq, r.annotator_id, shown.item, shown.value
    FROM ({RESPONSES}) AS r, unnest(r.items, r.values) AS shown (item, value)
"""  # noqa: S608  (made of a constant)

LEFT_OUT = text(f"""
    SELECT annotator_id FROM exclusions(:campaign, {DECIDED.format(campaign=":campaign")})
    WHERE annotator_id IS NOT NULL
""")  # noqa: S608  (made of constants)


class Response(NamedTuple):
    """One answered HIT. annotator: their row's id. items: as presented. values: of each, as its design has them."""

    seq: int
    annotator: int
    items: list[int]
    values: list[float]


async def left_out(connection: AsyncConnection, campaign_id: int) -> frozenset[int]:
    """The annotators whose answers do not count."""
    return frozenset((await connection.execute(LEFT_OUT, {"campaign": campaign_id})).scalars())


async def responses(
    connection: AsyncConnection,
    campaign_id: int,
    *,
    after: int = 0,
    until: int = LAST,
    limit: int,
    decided: int | None = None,
) -> list[Response]:
    """The first `limit` responses that count, with numbers above `after` and up to `until`.

    decided: the number of the last decision that matters, that of the present revision by default.
    """
    driver = await copying(connection)
    return [Response(*row) for row in await driver.fetch(RESPONSES, campaign_id, after, until, limit, decided)]


async def since(
    connection: AsyncConnection, campaign_id: int, watermark: int, *, without: Sequence[int], decided: int
) -> list[Response]:
    """The responses that count and were written since a watermark of `news`, without those with these numbers."""
    driver = await copying(connection)
    return [Response(*row) for row in await driver.fetch(SINCE, campaign_id, str(watermark), without, decided)]


async def in_pieces(
    connection: AsyncConnection, campaign_id: int, size: int, *, decided: int | None = None
) -> AsyncIterator[list[Response]]:
    """All responses that count, at most `size` at once; give it a `snapshot`."""
    after = 0
    while some := await responses(connection, campaign_id, after=after, limit=size, decided=decided):
        yield some
        after = some[-1].seq


async def judgments(
    connection: AsyncConnection, campaign_id: int, *, after: int = 0, until: int = LAST, limit: int
) -> dict[str, Numbers]:
    """The judgments of those responses in long form, many times faster: `seq`, `annotator`, `item`, `value`, each (J,),
    sorted by `seq` and within a HIT as presented.
    """
    arguments = campaign_id, after, until, limit, None
    rows = await numbers(connection, JUDGMENTS, arguments, seq="i8", annotator="i8", item="i4", value="f8")
    return await asyncio.to_thread(in_order, rows)


def in_order(rows: Mapping[str, Numbers]) -> dict[str, Numbers]:
    order = rows["seq"].argsort(kind="stable")
    return {name: column[order] for name, column in rows.items()}
