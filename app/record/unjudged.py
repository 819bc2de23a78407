"""Counts of annotators who could not judge an item. An item with too many leaves the pool.

An unjudgeable output gives no evidence about its system, so systems stay in the pool.

Like a posterior, the count follows from the record, and answers that do not count are left out. An answer adds to it;
a new revision and a verification count again from the start.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Driver, fetch_first_column
from app.designs.campaign import Campaign
from app.designs.unjudged import UNJUDGED_KEY
from app.record.law_storage import Revision
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.record.responses import COUNTING_RESPONSES_CONDITION, responses_that_count_condition_sql

# Add one annotator to each of :items, unless an earlier answer of this annotator has marked the item.
ADD_UNJUDGED = text(f"""
    UPDATE posteriors p SET unjudged = p.unjudged + 1
    WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:items AS int[])) AND NOT EXISTS (
        SELECT FROM responses
        WHERE campaign_id = :campaign AND annotator_id = CAST(:annotator AS bigint) AND seq < :seq
        AND extra -> '{UNJUDGED_KEY}' ? CAST(p.subject AS text) AND {COUNTING_RESPONSES_CONDITION}
    )
    RETURNING p.unjudged
""")

# Answers about segments are left out: an unjudgeable output gives no evidence about its system.
UNJUDGED_SOURCE = f"""
    FROM responses, jsonb_each_text(extra -> '{UNJUDGED_KEY}') AS said (item, reason)
    WHERE campaign_id = :campaign AND extra ? '{UNJUDGED_KEY}' AND segment IS NULL"""
COUNT_UNJUDGED_SQL = f"""
    SELECT CAST(said.item AS int) AS item, CAST(count(DISTINCT annotator_id) AS int) AS people {UNJUDGED_SOURCE}
    AND {COUNTING_RESPONSES_CONDITION} GROUP BY 1
"""

COUNT_UNJUDGED = text(COUNT_UNJUDGED_SQL)

FIND_UNJUDGED_BY = text(f"""
    SELECT CAST(said.item AS int) AS item, array_agg(annotator_id) AS people {UNJUDGED_SOURCE}
    AND {responses_that_count_condition_sql(":campaign", "CAST(:decided AS bigint)")}
    AND (CAST(:seqs AS bigint[]) IS NULL OR seq = ANY(CAST(:seqs AS bigint[])))
    GROUP BY 1
""")

SET_UNJUDGED_SQL = """
    UPDATE posteriors p SET unjudged = said.people FROM {said} AS said (item, people)
    WHERE p.campaign_id = :campaign AND p.revision = :revision AND p.criterion = 0 AND p.subject = said.item
    AND p.subject = ANY(CAST(:items AS int[]))
"""
RECOUNT_UNJUDGED = text(SET_UNJUDGED_SQL.format(said=f"({COUNT_UNJUDGED_SQL})"))
SET_UNJUDGED = text(SET_UNJUDGED_SQL.format(said="unnest(CAST(:items AS int[]), CAST(:people AS int[]))"))

# Number of annotators by item and reason.
COUNT_UNJUDGED_REASONS = text(f"""
    SELECT CAST(said.item AS int) AS item, said.reason, count(DISTINCT annotator_id) AS people {UNJUDGED_SOURCE}
    AND {COUNTING_RESPONSES_CONDITION} GROUP BY 1, 2 ORDER BY 3 DESC, 2
""")


async def add_unjudged_and_return_highest_count(
    connection: Driver, campaign: int, annotator: int, seq: int, items: list[int]
) -> int:
    """Add a stored answer that counts, and return the highest number of annotators that any of its items has now.

    The caller has locked the items' posteriors.
    """
    parameters = {"campaign": campaign, "annotator": annotator, "seq": seq, "items": items}
    annotator_counts: list[int] = await fetch_first_column(connection, ADD_UNJUDGED, parameters)
    return max(annotator_counts, default=0)


async def load_count_of_unable_people_by_item(connection: AsyncConnection, campaign: Campaign) -> dict[int, int]:
    """Return the number of annotators who could not judge each item, by item, in the present revision."""
    rows = await connection.execute(COUNT_UNJUDGED, {"campaign": campaign.id})
    return {row.item: row.people for row in rows}


async def load_reason_counts_by_unjudged_item(
    connection: AsyncConnection, campaign_id: int
) -> dict[int, dict[str, int]]:
    """Return the reasons why annotators could not judge each item, with their counts, in the present revision.

    The most frequent reason is first. The reason is empty if the campaign asks for none.
    """
    counts_by_item: dict[int, dict[str, int]] = {}
    for row in await connection.execute(COUNT_UNJUDGED_REASONS, {"campaign": campaign_id}):
        counts_by_item.setdefault(row.item, {})[row.reason] = row.people
    return counts_by_item


async def recount_and_store_unjudged_of_items(
    connection: AsyncConnection, revision: Revision, *, items: Sequence[int]
) -> None:
    """Count again for these items, whose posteriors in the present revision the caller has locked."""
    await connection.execute(RECOUNT_UNJUDGED, {**revision.sql_parameters, "items": items})


async def load_unable_annotators_by_item(
    connection: AsyncConnection, campaign: Campaign, *, last_decision: int, seqs: Sequence[int] | None = None
) -> dict[int, set[int]]:
    """Return the annotators who could not judge each item, by item.

    Args:
        connection: A connection in a transaction.
        campaign: The campaign's row.
        last_decision: Number of the last decision to apply.
        seqs: Only answers with these numbers; None for all.

    """
    if not campaign.cannot_be_judged:
        return {}
    rows = await connection.execute(FIND_UNJUDGED_BY, {"campaign": campaign.id, "decided": last_decision, "seqs": seqs})
    return {row.item: {*row.people} for row in rows}


async def store_unjudged_counts(
    connection: AsyncConnection, revision: Revision, annotators_by_item: Mapping[int, Collection[int]]
) -> None:
    """Set the counts of these items in a revision that no other transaction writes."""
    if annotators_by_item:
        counts = [len(annotators) for annotators in annotators_by_item.values()]
        await connection.execute(
            SET_UNJUDGED, {**revision.sql_parameters, "items": [*annotators_by_item], "people": counts}
        )
