"""The number of judgments of a campaign's drawn items, from an earlier count and the answers since."""

from collections.abc import Sequence

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import leads_to_citus
from app.record.changes import responses_since_sql, watermark_columns_sql
from app.record.exclusions import excluded_annotators_and_responses_sql
from app.record.responses import criterion_values_sql

# Counting so many answers again costs less than a write.
MAX_ANSWERS_COUNTED_AGAIN = 200
UNSTORED = ("answers", "is_known", "is_draft", "is_storable")

# An answer counts for each of its items that it judges by the first criterion. The whole count reads all posteriors.
COUNT_JUDGMENTS_SQL = f"""
    SELECT c.id AS campaign, c.revision, c.decided, c.always_shown, now.watermark, now.server_started, since.answers,
           known.campaign_id IS NOT NULL AS is_known, c.status = 'draft' AS is_draft,
           current_setting('transaction_read_only') = 'off'
           AND current_setting('transaction_isolation') = 'read committed' AS is_storable,
           CASE WHEN known.campaign_id IS NULL THEN (
               SELECT CAST(coalesce(sum(p.judgments), 0) AS bigint) FROM posteriors p
               WHERE p.campaign_id = {{campaign}} AND p.revision = c.revision AND p.criterion = 0
               AND p.subject <> ALL (c.always_shown)
           ) ELSE known.judgments + since.judgments END AS judgments
    FROM campaigns c
    LEFT JOIN counted_judgments known ON known.campaign_id = c.id AND known.revision = c.revision
        AND known.decided = c.decided AND known.always_shown = c.always_shown
        AND known.server_started = pg_postmaster_start_time(),
    LATERAL (SELECT {watermark_columns_sql("{campaign}")}) AS now,
    LATERAL (
        WITH recent AS MATERIALIZED ({responses_since_sql("{campaign}", "known.watermark")}),
        left_out AS MATERIALIZED ({excluded_annotators_and_responses_sql("{campaign}", "c.decided")})
        SELECT count(*) AS answers, CAST(coalesce(sum((
            SELECT count(*) FROM unnest(r.items, {criterion_values_sql("0", "r")}) AS shown (item, value)
            WHERE shown.value <> 'NaN' AND shown.item <> ALL (c.always_shown)
        )), 0) AS bigint) AS judgments
        FROM recent JOIN responses r ON r.campaign_id = {{campaign}} AND r.seq = recent.seq
        WHERE NOT EXISTS (
            SELECT FROM left_out WHERE left_out.annotator_id = r.annotator_id OR left_out.response_seq = r.seq)
    ) AS since
    WHERE c.id = {{condition}} ORDER BY c.id
"""
COUNT_JUDGMENTS = text(COUNT_JUDGMENTS_SQL.format(campaign="c.id", condition="ANY (CAST(:campaigns AS bigint[]))"))
COUNT_JUDGMENTS_OF_CAMPAIGN = text(COUNT_JUDGMENTS_SQL.format(campaign=":campaign", condition=":campaign"))

STORE_COUNTED_JUDGMENTS = text("""
    INSERT INTO counted_judgments
        (campaign_id, revision, decided, always_shown, server_started, watermark, judgments)
    VALUES (:campaign, :revision, :decided, :always_shown, :server_started, :watermark, :judgments)
    ON CONFLICT (campaign_id) DO UPDATE SET
        revision = excluded.revision, decided = excluded.decided, always_shown = excluded.always_shown,
        server_started = excluded.server_started, watermark = excluded.watermark, judgments = excluded.judgments
""")


async def count_judgments_by_campaign(connection: AsyncConnection, campaign_ids: Sequence[int]) -> dict[int, int]:
    """Return the number of judgments of the drawn items of each campaign, by its present posteriors.

    Campaigns that were deleted meanwhile are left out.

    Pass a connection in a transaction: if many answers were counted, the result is stored for the next time, unless the
    transaction reads a snapshot.
    """
    if not campaign_ids:
        return {}
    rows: list[RowMapping] = []
    if leads_to_citus(connection):
        for campaign_id in campaign_ids:
            rows += (await connection.execute(COUNT_JUDGMENTS_OF_CAMPAIGN, {"campaign": campaign_id})).mappings()
    else:
        rows += (await connection.execute(COUNT_JUDGMENTS, {"campaigns": list(campaign_ids)})).mappings()
    to_store = [
        {name: value for name, value in row.items() if name not in UNSTORED}
        for row in rows
        if row["is_storable"]
        and (row["answers"] > MAX_ANSWERS_COUNTED_AGAIN or not (row["is_known"] or row["is_draft"]))
    ]
    if to_store:
        await connection.execute(STORE_COUNTED_JUDGMENTS, to_store)
    return {row["campaign"]: row["judgments"] for row in rows}
