"""Queries for the changes of a campaign since an earlier read.

Every response stores the id of the transaction that wrote it, and a PostgreSQL snapshot tells for every id whether that
transaction had ended. A reader that keeps the snapshot of its last read, the watermark, therefore finds each response
written since, exactly once, in whatever order numbers were taken and transactions ended. If two answers wait for each
other, the later one has the higher number and is written after the earlier one: no snapshot holds only the later one.

After a crash PostgreSQL may reuse the ids of transactions that left no trace, but never an id up to that of a committed
answer. So a watermark contains no id above the campaign's last committed answer's.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import is_judgeable_sql
from app.database.session import Record, leads_to_citus
from app.record.exclusions import excluded_annotators_and_responses_sql
from app.record.posterior_storage import deciding_score_and_variance_sql
from app.selection.rule import ItemStatus


def watermark_columns_sql(campaign: str) -> str:
    """Return SQL for the watermark of a campaign and the start time of the server.

    The watermark says which transactions had ended, up to the last one that left an answer in the campaign.
    """
    return f"""
    (SELECT concat(least(pg_snapshot_xmin(present)::text::bigint, beyond), ':',
                   least(pg_snapshot_xmax(present)::text::bigint, beyond), ':',
                   (SELECT string_agg(id::text, ',' ORDER BY id) FROM pg_snapshot_xip(present) AS id
                    WHERE id::text::bigint < beyond))
     FROM pg_current_snapshot() AS present,
          coalesce((SELECT transaction_id::text::bigint + 1 FROM responses WHERE campaign_id = {campaign}
                    ORDER BY transaction_id DESC LIMIT 1), 3) AS beyond) AS watermark,
    pg_postmaster_start_time() AS server_started"""


def sort_key_of_watermark(watermark: str) -> tuple[int, int]:
    """Return a key that grows with the answers that a reader with this watermark knows, within one run of the server.

    Later snapshots end at higher ids, or at the same id with fewer transactions still running before it.
    """
    _, end, running = watermark.split(":")
    return int(end), -len(running.split(",")) if running else 0


def responses_since_sql(campaign: str, watermark_sql: str) -> str:
    """Return SQL for the responses of a campaign written after a watermark; for NULL it gives no rows.

    Use it in a MATERIALIZED query: otherwise statistics can lead PostgreSQL to scan all responses of a campaign.
    """
    watermark = f"CAST(CAST({watermark_sql} AS text) AS pg_snapshot)"
    return f"""
    SELECT seq, hit_id, annotator_id, items, segment FROM responses
    WHERE campaign_id = {campaign}
    AND transaction_id >= pg_snapshot_xmin({watermark}) AND NOT pg_visible_in_snapshot(transaction_id, {watermark})
    """


class PosteriorChanges(Record):
    """Row of `changed_items_and_watermark_sql`; arrays without entries are None.

    `releases` counts how often the set of settled items changed. `new_uses` has triples of a segment, a system and the
    number of answers about this output that count. `new_hits`, `new_annotators` and `new_items` have the HIT, the
    annotator and the items (as PostgreSQL's text for an array) of each new answer.
    """

    revision: int
    releases: int
    watermark: str
    server_started: datetime
    new_numbers: list[int] | None
    new_scores: list[float] | None
    new_variances: list[float] | None
    new_judgments: list[int] | None
    new_status: list[int] | None
    new_uses: list[tuple[int, int, int]] | None
    new_hits: list[int] | None
    new_annotators: list[int] | None
    new_items: list[str] | None


POSTERIOR_CHANGE_COLUMNS = tuple(
    name for name in PosteriorChanges.__annotations__ if name not in {"revision", "releases"}
)


def item_status_flags_sql(posterior: str, *, unjudged_limit: str) -> str:
    """Return SQL for the `ItemStatus` of a row of `posteriors`, a smallint."""
    is_judgeable = is_judgeable_sql(posterior, unjudged_limit_sql=unjudged_limit)
    return f"""CAST(CASE WHEN {is_judgeable} THEN 0 ELSE {ItemStatus.GONE:d} END
    + CASE WHEN {posterior}.settled THEN {ItemStatus.SETTLED:d} ELSE 0 END AS smallint)"""


def changed_items_and_watermark_sql(
    *, campaign: str, revision: str, unjudged_people: str, since: str, segments: str = "", asked: str = ""
) -> str:
    """Return SQL for the items changed since a watermark, and the next watermark. In another revision all is new.

    Args:
        campaign: SQL for the campaign's id.
        revision: SQL for its present revision.
        unjudged_people: SQL for the number of annotators unable to judge an item that takes it out of the pool.
        since: SQL for the watermark.
        segments: SQL for the campaign's number of segments; empty if items are not systems.
        asked: SQL for the deciding criterion, as in `deciding_score_and_variance_sql`; empty if the first one decides.

    """
    deciding_source = "LATERAL (SELECT p.score, p.variance)"
    if asked:
        deciding_source = f"LATERAL ({deciding_score_and_variance_sql(campaign, asked)})"
    return f"""
    WITH recent AS MATERIALIZED ({responses_since_sql(campaign, since)}), changed AS (
        SELECT DISTINCT unnest(items) AS number FROM recent
    ){excluded_annotators_and_responses_cte_sql(campaign) if segments else ""}
    SELECT {watermark_columns_sql(campaign)}, array_agg(subject) AS new_numbers,
           array_agg(decides.score) AS new_scores, array_agg(decides.variance) AS new_variances,
           array_agg(p.judgments) AS new_judgments,
           array_agg({item_status_flags_sql("p", unjudged_limit=unjudged_people)}) AS new_status,
           {new_answer_counts_by_output_sql(campaign, segments) if segments else "CAST(NULL AS int[])"} AS new_uses,
           (SELECT array_agg(hit_id) FROM recent) AS new_hits,
           (SELECT array_agg(annotator_id) FROM recent) AS new_annotators,
           (SELECT array_agg(CAST(items AS text)) FROM recent) AS new_items
    FROM posteriors p, {deciding_source} AS decides
    WHERE p.campaign_id = {campaign} AND p.revision = {revision} AND p.criterion = 0
    AND p.subject = ANY (ARRAY(SELECT number FROM changed))"""


def excluded_annotators_and_responses_cte_sql(campaign: str) -> str:
    """Return SQL for one more WITH query: the annotators and responses that the present revision excludes."""
    return f""", left_out AS MATERIALIZED (
        {excluded_annotators_and_responses_sql(campaign, f"(SELECT decided FROM campaigns WHERE id = {campaign})")}
    )"""


def new_answer_counts_by_output_sql(campaign: str, segments: str) -> str:
    """Return SQL for the number of counting answers about each output of the segments in `recent`."""
    return f"""
    CASE WHEN {segments} > 0 THEN (
        SELECT array_agg(ARRAY[judged.segment, judged.item, judged.uses]) FROM (
            SELECT r.segment, item, CAST(count(*) AS int) AS uses FROM responses r, unnest(r.items) AS item
            WHERE r.campaign_id = {campaign} AND r.segment = ANY (ARRAY(
                SELECT segment FROM recent WHERE segment IS NOT NULL))
            AND NOT EXISTS (SELECT FROM left_out WHERE annotator_id = r.annotator_id OR response_seq = r.seq)
            GROUP BY r.segment, item
        ) AS judged
    ) END"""


CAMPAIGN_CHANGES_SQL = changed_items_and_watermark_sql(
    campaign=":campaign",
    revision="c.revision",
    unjudged_people="c.unjudged_people",
    segments="c.segment_count",
    asked="c.asked_criterion",
    since=":since",
)

FIND_POSTERIOR_CHANGES = text(f"""
    SELECT c.revision, c.releases, {", ".join(f"news.{name}" for name in POSTERIOR_CHANGE_COLUMNS)}
    FROM campaigns c, LATERAL ({CAMPAIGN_CHANGES_SQL}) AS news WHERE c.id = :campaign
""")

POLL_CHANGES = text(f"""
    WITH recent AS MATERIALIZED ({responses_since_sql(":campaign", ":since")})
    SELECT {watermark_columns_sql(":campaign")}, revision, (SELECT min(seq) FROM recent) AS first
    FROM campaigns WHERE id = :campaign
""")

# The same for the campaign and watermark of each entry of two arrays.
POLL_CHANGES_OF_CAMPAIGNS = text(f"""
    SELECT polled.place, present.watermark, present.server_started, c.revision, news.first
    FROM unnest(CAST(:campaigns AS bigint[]), CAST(:watermarks AS text[]))
         WITH ORDINALITY AS polled (campaign, since, place)
    JOIN campaigns c ON c.id = polled.campaign,
    LATERAL (SELECT {watermark_columns_sql("polled.campaign")}) AS present,
    LATERAL (
        WITH recent AS MATERIALIZED ({responses_since_sql("polled.campaign", "polled.since")})
        SELECT min(seq) AS first FROM recent
    ) AS news
""")


class Watermark(NamedTuple):
    """Position of a read: what had been written, for one revision and one run of the PostgreSQL server.

    A watermark is void after a restart: PostgreSQL can lose answers if its operator turned off waiting for the disk.
    """

    snapshot: str
    revision: int
    server_started: datetime


class ChangesPoll(NamedTuple):
    """Result of `poll_changes`.

    `watermark` is the one of now. `first_new_seq` is the number of the first response written since the previous
    watermark, or None. `previous` is that watermark, or None if all responses are new.
    """

    watermark: Watermark
    first_new_seq: int | None
    previous: Watermark | None


async def poll_changes(
    connection: AsyncConnection, campaign_id: int, previous_watermark: Watermark | None = None
) -> ChangesPoll:
    """Return what is new in a campaign since `previous_watermark`. Quick, however many responses the campaign has."""
    row = (
        await connection.execute(
            POLL_CHANGES, {"campaign": campaign_id, "since": previous_watermark and previous_watermark.snapshot}
        )
    ).one()
    return changes_poll_of_row(row, previous_watermark)


async def poll_changes_of_campaigns(
    connection: AsyncConnection, watermarks: Sequence[tuple[int, Watermark | None]]
) -> list[ChangesPoll | None]:
    """Return the result of `poll_changes` for each pair of a campaign's id and a watermark, in one statement.

    None for a campaign that was deleted meanwhile. A cluster reads one campaign at a time.
    """
    if not watermarks:
        return []
    if leads_to_citus(connection):
        return [await poll_changes(connection, campaign_id, previous) for campaign_id, previous in watermarks]
    parameters = {
        "campaigns": [campaign_id for campaign_id, _ in watermarks],
        "watermarks": [previous and previous.snapshot for _, previous in watermarks],
    }
    polls: list[ChangesPoll | None] = [None] * len(watermarks)
    for row in await connection.execute(POLL_CHANGES_OF_CAMPAIGNS, parameters):
        polls[row.place - 1] = changes_poll_of_row(row, watermarks[row.place - 1][1])
    return polls


def changes_poll_of_row(row: Row[Any], previous_watermark: Watermark | None) -> ChangesPoll:
    """Return the result of a poll; all responses are new in another revision, or after a restart of PostgreSQL."""
    current = Watermark(row.watermark, row.revision, row.server_started)
    if previous_watermark is None or (previous_watermark.revision, previous_watermark.server_started) != (
        current.revision,
        current.server_started,
    ):
        return ChangesPoll(current, 1, None)
    return ChangesPoll(current, row.first, previous_watermark)
