"""Readers of a campaign's responses, in the order in which they count. Other rooms read them through this module."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import NumberColumn, begin_transaction_returning_driver, fetch_array_by_column
from app.record.changes import Watermark, poll_changes
from app.record.exclusions import excluded_annotators_and_responses_sql

# Number of the last decision that the present revision includes.
LAST_DECISION_SQL = "(SELECT decided FROM campaigns WHERE id = {campaign})"


def responses_that_count_condition_sql(campaign: str, last_decision: str) -> str:
    """Return SQL that is true for responses that count: no decision up to the number `last_decision` excludes them."""
    exclusions = excluded_annotators_and_responses_sql(campaign, last_decision)
    return f"""
    annotator_id NOT IN (SELECT annotator_id FROM ({exclusions}) AS x WHERE annotator_id IS NOT NULL)
    AND seq NOT IN (SELECT response_seq FROM ({exclusions}) AS x WHERE response_seq IS NOT NULL)"""


COUNTING_RESPONSES_CONDITION = responses_that_count_condition_sql(
    ":campaign", LAST_DECISION_SQL.format(campaign=":campaign")
)


def criterion_values_sql(criterion: str, responses: str = "responses") -> str:
    """Return SQL for the values of a response by one criterion; those of all criteria are stored one after another."""
    values, count = f"{responses}.values", f"cardinality({responses}.items)"
    return f"""
    CASE WHEN cardinality({values}) = {count} THEN {values}
    ELSE {values}[{criterion} * {count} + 1 : ({criterion} + 1) * {count}] END"""


def values_by_criterion(row: Any, criterion: int) -> list[float]:
    """Return the values of a stored response by one criterion, as `criterion_values_sql` does."""
    count = len(row.items)
    values: list[float] = row.values
    return values if len(values) == count else values[criterion * count : (criterion + 1) * count]


def responses_that_count_sql(condition: str) -> str:
    """Return SQL for the responses that count, with their values by the criterion $7.

    If given, $4 and $5 are watermarks: the responses were written after $4 and before $5.
    """
    return f"""
    SELECT seq, annotator_id, items, {criterion_values_sql("$7::int")} AS values FROM responses
    WHERE campaign_id = $1 AND seq > $2
    AND ($4::text IS NULL OR NOT pg_visible_in_snapshot(transaction_id, $4::text::pg_snapshot))
    AND ($5::text IS NULL OR pg_visible_in_snapshot(transaction_id, $5::text::pg_snapshot))
    AND {responses_that_count_condition_sql("$1", f"coalesce($6, {LAST_DECISION_SQL.format(campaign='$1')})")}
    AND {condition}
    ORDER BY seq LIMIT $3
"""


FIND_RESPONSES = responses_that_count_sql("true")

# Responses with a judgment, so that only the last page of judgments can be empty.
HAS_JUDGMENT = "'NaN' <> ANY(values)"

COUNT_RESPONSES = f"SELECT count(*) FROM ({FIND_RESPONSES}) AS r"


def judgments_sql(condition: str) -> str:
    """Return SQL for the judgments of the responses that count and satisfy a condition, in long form.

    Parameters as in `responses_that_count_sql`.
    """
    return f"""
    SELECT r.seq, r.annotator_id, shown.item, shown.value
    FROM ({responses_that_count_sql(condition)}) AS r, unnest(r.items, r.values) AS shown (item, value)
    WHERE shown.value <> 'NaN'
"""


FIND_JUDGMENTS = judgments_sql(HAS_JUDGMENT)

FIND_EXCLUDED_ANNOTATORS = text(f"""
    SELECT annotator_id
    FROM ({excluded_annotators_and_responses_sql(":campaign", LAST_DECISION_SQL.format(campaign=":campaign"))}) AS x
    WHERE annotator_id IS NOT NULL
""")


class Response(NamedTuple):
    """Judgments of one answered HIT by one criterion.

    Args:
        seq: Number of the response in the record.
        annotator: Row id of the annotator.
        items: Numbers of the judged items, as presented.
        values: The value of each, in the design's own form.
        unjudged_items: Numbers of the items that the annotator did not judge.

    """

    seq: int
    annotator: int
    items: list[int]
    values: list[float]
    unjudged_items: Sequence[int] = ()

    @classmethod
    def from_stored(cls, seq: int, annotator: int, items: list[int], values: list[float]) -> "Response":
        """Make a response from its stored form, in which NaN marks an unjudged item."""
        total = sum(values)
        if total == total:  # noqa: PLR0124  (one NaN makes it NaN, and this is the quickest way to see that)
            return cls(seq, annotator, items, values)
        judgments = [(item, value) for item, value in zip(items, values, strict=True) if not math.isnan(value)]
        unjudged_items = [item for item, value in zip(items, values, strict=True) if math.isnan(value)]
        return cls(seq, annotator, [item for item, _ in judgments], [value for _, value in judgments], unjudged_items)


async def load_excluded_annotator_ids(connection: AsyncConnection, campaign_id: int) -> frozenset[int]:
    """Return the row ids of the annotators whose answers do not count."""
    return frozenset((await connection.execute(FIND_EXCLUDED_ANNOTATORS, {"campaign": campaign_id})).scalars())


async def load_counted_responses(
    connection: AsyncConnection,
    campaign_id: int,
    *,
    after: int = 0,
    since: Watermark | None = None,
    until: Watermark | None = None,
    limit: int | None = None,
    last_decision: int | None = None,
    criterion: int = 0,
) -> list[Response]:
    """Return the first responses that count, in the order of their numbers.

    Args:
        connection: A connection in a transaction.
        campaign_id: The campaign's row id.
        after: Only responses with higher numbers.
        since: Only responses written after this watermark.
        until: Only responses written before this watermark.
        limit: The most responses to return.
        last_decision: Number of the last decision to apply; by default that of the present revision.
        criterion: Number of the criterion that the values are for.

    """
    driver = await begin_transaction_returning_driver(connection)
    arguments = campaign_id, after, limit, *snapshot_text_of_each_watermark(since, until), last_decision, criterion
    return [Response.from_stored(*row) for row in await driver.fetch(FIND_RESPONSES, *arguments)]


async def count_responses_that_count(
    connection: AsyncConnection, campaign_id: int, *, after_seq: int, since: Watermark | None, until: Watermark
) -> int:
    """Count the responses that count, with higher numbers and between two watermarks. Reads them all."""
    driver = await begin_transaction_returning_driver(connection)
    return int(
        await driver.fetchval(
            COUNT_RESPONSES, campaign_id, after_seq, None, *snapshot_text_of_each_watermark(since, until), None, 0
        )
    )


def snapshot_text_of_each_watermark(*watermarks: Watermark | None) -> list[str | None]:
    return [watermark and watermark.snapshot for watermark in watermarks]


async def load_watermark_and_new_responses(
    connection: AsyncConnection, campaign_id: int, since: Watermark, *, last_decision: int
) -> tuple[Watermark, list[Response]]:
    """Return the present watermark, and the responses that count and were written since the given one."""
    watermark, first_new_seq, _ = await poll_changes(connection, campaign_id, since)
    if first_new_seq is None:
        return watermark, []
    return watermark, await load_counted_responses(
        connection, campaign_id, after=first_new_seq - 1, since=since, until=watermark, last_decision=last_decision
    )


async def iterate_batches_of_responses(
    connection: AsyncConnection, campaign_id: int, size: int, *, last_decision: int | None = None, criterion: int = 0
) -> AsyncIterator[list[Response]]:
    """Yield all responses that count, at most `size` at once. Pass a connection of `open_snapshot`."""
    after = 0
    read_batch = partial(
        load_counted_responses, connection, campaign_id, limit=size, last_decision=last_decision, criterion=criterion
    )
    while batch := await read_batch(after=after):
        yield batch
        after = batch[-1].seq


async def load_judgment_column_by_name(
    connection: AsyncConnection,
    campaign_id: int,
    *,
    after_seq: int = 0,
    since: Watermark | None = None,
    limit: int,
    criterion: int = 0,
) -> dict[str, NumberColumn]:
    """Return the judgments of responses in long form, many times faster than `load_counted_responses`.

    Args:
        connection: A connection in a transaction.
        campaign_id: The campaign's row id.
        after_seq: Only responses with higher numbers.
        since: Only responses written after this watermark.
        limit: The most responses to read.
        criterion: Number of the criterion that the values are for.

    Returns:
        Columns `seq`, `annotator`, `item` and `value`, each (J,), sorted by `seq` and within a HIT as presented.

    """
    arguments = campaign_id, after_seq, limit, *snapshot_text_of_each_watermark(since, None), None, criterion
    rows = await fetch_array_by_column(
        connection, FIND_JUDGMENTS, arguments, seq="i8", annotator="i8", item="i4", value="f8"
    )
    return await asyncio.to_thread(columns_sorted_by_seq, rows)


def columns_sorted_by_seq(rows: Mapping[str, NumberColumn]) -> dict[str, NumberColumn]:
    order = rows["seq"].argsort(kind="stable")
    return {name: column[order] for name, column in rows.items()}
