"""A campaign's responses, in the order in which they count: all who read them do it here."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, copying, numbers
from app.record.news import Watermark, look

# Up to which decision the present revision knows the record.
DECIDED = "(SELECT decided FROM campaigns WHERE id = {campaign})"


def counting(campaign: str, decided: str) -> str:
    """SQL for the responses of a campaign that count: no decision up to the number `decided` leaves them out."""
    left_out = f"SELECT * FROM exclusions({campaign}, {decided})"  # noqa: S608  (made of constants)
    return f"""
    annotator_id NOT IN (SELECT annotator_id FROM ({left_out}) AS x WHERE annotator_id IS NOT NULL)
    AND seq NOT IN (SELECT response_seq FROM ({left_out}) AS x WHERE response_seq IS NOT NULL)"""  # noqa: S608  (made of constants)


COUNTING = counting(":campaign", DECIDED.format(campaign=":campaign"))


def values_by(criterion: str, responses: str = "responses") -> str:
    """SQL for the values of a response by one of the campaign's criteria, which lie one after another."""
    values, count = f"{responses}.values", f"cardinality({responses}.items)"
    return f"""
    CASE WHEN cardinality({values}) = {count} THEN {values}
    ELSE {values}[{criterion} * {count} + 1 : ({criterion} + 1) * {count}] END"""


def responses_where(condition: str) -> str:
    """SQL for the responses that count, with their values by the criterion $7: written after the watermark $4 and
    before $5, if there are such.
    """
    return f"""
    SELECT seq, annotator_id, items, {values_by("$7::int")} AS values FROM responses
    WHERE campaign_id = $1 AND seq > $2
    AND ($4::text IS NULL OR NOT pg_visible_in_snapshot(transaction_id, $4::text::pg_snapshot))
    AND ($5::text IS NULL OR pg_visible_in_snapshot(transaction_id, $5::text::pg_snapshot))
    AND {counting("$1", f"coalesce($6, {DECIDED.format(campaign='$1')})")} AND {condition}
    ORDER BY seq LIMIT $3
"""  # noqa: S608  (made of constants)


RESPONSES = responses_where("true")

# Those that judge something, so that no page of judgments is empty but the last.
JUDGED = responses_where("'NaN' <> ANY(values)")

COUNT = f"SELECT count(*) FROM ({RESPONSES}) AS r"  # noqa: S608  (made of a constant)

JUDGMENTS = f"""
    SELECT r.seq, r.annotator_id, shown.item, shown.value
    FROM ({JUDGED}) AS r, unnest(r.items, r.values) AS shown (item, value) WHERE shown.value <> 'NaN'
"""  # noqa: S608  (made of a constant)

LEFT_OUT = text(f"""
    SELECT annotator_id FROM exclusions(:campaign, {DECIDED.format(campaign=":campaign")})
    WHERE annotator_id IS NOT NULL
""")  # noqa: S608  (made of constants)


class Response(NamedTuple):
    """What one answered HIT says by one criterion. annotator: their row's id. items: as presented. values: of each, as
    its design has them. others: the items of which it says nothing.
    """

    seq: int
    annotator: int
    items: list[int]
    values: list[float]
    others: Sequence[int] = ()

    @classmethod
    def of(cls, seq: int, annotator: int, items: list[int], values: list[float]) -> "Response":
        """Of an answer as it is stored, in which NaN says nothing: everybody who reads the record leaves that out."""
        total = sum(values)
        if total == total:  # noqa: PLR0124  (one NaN makes it NaN, and this is the quickest way to see that)
            return cls(seq, annotator, items, values)
        judged = [(item, value) for item, value in zip(items, values, strict=True) if not math.isnan(value)]
        others = [item for item, value in zip(items, values, strict=True) if math.isnan(value)]
        return cls(seq, annotator, [item for item, _ in judged], [value for _, value in judged], others)


async def left_out(connection: AsyncConnection, campaign_id: int) -> frozenset[int]:
    """The annotators whose answers do not count."""
    return frozenset((await connection.execute(LEFT_OUT, {"campaign": campaign_id})).scalars())


async def responses(
    connection: AsyncConnection,
    campaign_id: int,
    *,
    after: int = 0,
    since: Watermark | None = None,
    until: Watermark | None = None,
    limit: int | None = None,
    decided: int | None = None,
    criterion: int = 0,
) -> list[Response]:
    """The first `limit` responses that count, with numbers above `after`, written between two watermarks.

    decided: the number of the last decision that matters, that of the present revision by default. criterion: by which
    of the campaign's the values are.
    """
    driver = await copying(connection)
    arguments = campaign_id, after, limit, *snapshots(since, until), decided, criterion
    return [Response.of(*row) for row in await driver.fetch(RESPONSES, *arguments)]


async def count(
    connection: AsyncConnection, campaign_id: int, *, after: int, since: Watermark | None, until: Watermark
) -> int:
    """How many of these responses there are; it goes through them all."""
    driver = await copying(connection)
    return int(await driver.fetchval(COUNT, campaign_id, after, None, *snapshots(since, until), None, 0))


def snapshots(*watermarks: Watermark | None) -> list[str | None]:
    return [watermark and watermark.snapshot for watermark in watermarks]


async def news(
    connection: AsyncConnection, campaign_id: int, since: Watermark, *, decided: int
) -> tuple[Watermark, list[Response]]:
    """The watermark as of now, and the responses that count and were written since the one before."""
    now, first, _ = await look(connection, campaign_id, since)
    if first is None:
        return now, []
    return now, await responses(connection, campaign_id, after=first - 1, since=since, until=now, decided=decided)


async def in_pieces(
    connection: AsyncConnection, campaign_id: int, size: int, *, decided: int | None = None, criterion: int = 0
) -> AsyncIterator[list[Response]]:
    """All responses that count, at most `size` at once; give it a `snapshot`."""
    after = 0
    read = partial(responses, connection, campaign_id, limit=size, decided=decided, criterion=criterion)
    while some := await read(after=after):
        yield some
        after = some[-1].seq


async def judgments(
    connection: AsyncConnection,
    campaign_id: int,
    *,
    after: int = 0,
    since: Watermark | None = None,
    limit: int,
    criterion: int = 0,
) -> dict[str, Numbers]:
    """The judgments of such responses in long form, many times faster: `seq`, `annotator`, `item`, `value`, each (J,),
    sorted by `seq` and within a HIT as presented.
    """
    arguments = campaign_id, after, limit, *snapshots(since, None), None, criterion
    rows = await numbers(connection, JUDGMENTS, arguments, seq="i8", annotator="i8", item="i4", value="f8")
    return await asyncio.to_thread(in_order, rows)


def in_order(rows: Mapping[str, Numbers]) -> dict[str, Numbers]:
    order = rows["seq"].argsort(kind="stable")
    return {name: column[order] for name, column in rows.items()}
