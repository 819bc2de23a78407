"""What has changed since somebody looked.

Every response keeps the id of the transaction that wrote it, and a snapshot tells of every id whether it had ended by
then. So whoever keeps the snapshot of their last look, the watermark, finds each response that was written since, and
finds it once, in whatever order numbers were taken and transactions ended. Where answers wait for each other, the later
one has the higher number and is written when the earlier one is there: no snapshot has it alone.

But a server that crashed gives out ids again, of transactions that left no trace: never those up to an answer that was
committed, so a watermark knows of no id above that.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.open_items import is_judgeable_sql
from app.database.session import Record
from app.record.posterior_storage import deciding_estimates_sql
from app.selection.rule import GONE_OFFSET, SETTLED_OFFSET

# Which transactions had ended, of those up to the last that left an answer, and since when the server runs.
WATERMARK_COLUMNS = """
    (SELECT concat(least(pg_snapshot_xmin(present)::text::bigint, beyond), ':',
                   least(pg_snapshot_xmax(present)::text::bigint, beyond), ':',
                   (SELECT string_agg(id::text, ',' ORDER BY id) FROM pg_snapshot_xip(present) AS id
                    WHERE id::text::bigint < beyond))
     FROM pg_current_snapshot() AS present,
          coalesce((SELECT transaction_id::text::bigint + 1 FROM responses ORDER BY transaction_id DESC LIMIT 1), 3)
          AS beyond) AS watermark,
    pg_postmaster_start_time() AS server_started"""


def responses_since_sql(watermark_sql: str) -> str:
    """SQL for the responses, of all campaigns, that were written after a watermark; of NULL, for none.

    For a MATERIALIZED query, so that no statistics can talk PostgreSQL into going through all responses of a campaign
    instead.
    """
    watermark = f"CAST(CAST({watermark_sql} AS text) AS pg_snapshot)"
    return f"""
    SELECT campaign_id, seq, items, segment FROM responses
    WHERE transaction_id >= pg_snapshot_xmin({watermark}) AND NOT pg_visible_in_snapshot(transaction_id, {watermark})
    """  # noqa: S608  (made of constants)


class PosteriorChanges(Record):
    """What `changes` found: of no item, None. releases: how often it had changed which items are settled. new_uses:
    pairs of a segment and how many answers about it count.
    """

    revision: int
    releases: int
    watermark: str
    server_started: datetime
    new_numbers: list[int] | None
    new_scores: list[float] | None
    new_variances: list[float] | None
    new_judgments: list[int] | None
    new_uses: list[tuple[int, int]] | None


POSTERIOR_CHANGE_COLUMNS = tuple(
    name for name in PosteriorChanges.__annotations__ if name not in {"revision", "releases"}
)


def judgments_with_flags_sql(posterior: str, *, unjudged_limit: str) -> str:
    """SQL for the judgments of a row of `posteriors` as whoever draws items counts them."""
    return f"""{posterior}.judgments + CASE WHEN {is_judgeable_sql(posterior, unjudged_limit=unjudged_limit)} THEN 0 ELSE {GONE_OFFSET} END
    + CASE WHEN {posterior}.settled THEN {SETTLED_OFFSET} ELSE 0 END"""


def posterior_changes_sql(
    *, campaign: str, revision: str, people: str, since: str, segments: str = "", asked: str = ""
) -> str:
    """SQL for what was written since a watermark, and the next watermark. Of another revision all is new.

    people: how many who cannot judge an item take it out of the pool; its judgments are then told as `counted`
    does. segments: how many the campaign has; asked: as `store.deciding` has it; empty where there are none, and the
    first criterion decides.
    """
    deciding_source = f"LATERAL ({deciding_estimates_sql(asked)})" if asked else "LATERAL (SELECT p.score, p.variance)"
    return f"""
    WITH recent AS MATERIALIZED ({responses_since_sql(since)}), changed AS (
        SELECT DISTINCT unnest(items) AS number FROM recent WHERE campaign_id = {campaign}
    ){excluded_answers_cte(campaign) if segments else ""}
    SELECT {WATERMARK_COLUMNS}, array_agg(subject) AS new_numbers,
           array_agg(decides.score) AS new_scores, array_agg(decides.variance) AS new_variances,
           array_agg({judgments_with_flags_sql("p", unjudged_limit=people)}) AS new_judgments,
           {new_segment_uses_sql(campaign, segments) if segments else "CAST(NULL AS int[])"} AS new_uses
    FROM posteriors p, {deciding_source} AS decides
    WHERE p.campaign_id = {campaign} AND p.revision = {revision} AND p.criterion = 0
    AND p.subject = ANY (ARRAY(SELECT number FROM changed))"""  # noqa: S608  (made of constants)


def excluded_answers_cte(campaign: str) -> str:
    """SQL for what decisions leave out of a campaign's present revision, as one more of several queries."""
    return f""", left_out AS MATERIALIZED (
        SELECT annotator_id, response_seq
        FROM exclusions({campaign}, (SELECT decided FROM campaigns WHERE id = {campaign}))
    )"""  # noqa: S608  (made of constants)


def new_segment_uses_sql(campaign: str, segments: str) -> str:
    """SQL for how many answers that count there are about each segment of the `recent` ones."""
    return f"""
    CASE WHEN {segments} > 0 THEN (
        SELECT array_agg(ARRAY[judged.segment, judged.uses]) FROM (
            SELECT r.segment, CAST(count(*) AS int) AS uses FROM responses r
            WHERE r.campaign_id = {campaign} AND r.segment = ANY (ARRAY(
                SELECT segment FROM recent WHERE campaign_id = {campaign} AND segment IS NOT NULL))
            AND NOT EXISTS (SELECT FROM left_out WHERE annotator_id = r.annotator_id OR response_seq = r.seq)
            GROUP BY r.segment
        ) AS judged
    ) END"""  # noqa: S608  (made of constants)


CAMPAIGN_CHANGES_SQL = posterior_changes_sql(
    campaign="c.id",
    revision="c.revision",
    people="c.unjudged_people",
    segments="c.segment_count",
    asked="c.asked_criterion",
    since=":since",
)

FIND_POSTERIOR_CHANGES = text(f"""
    SELECT c.revision, c.releases, {", ".join(f"news.{name}" for name in POSTERIOR_CHANGE_COLUMNS)}
    FROM campaigns c, LATERAL ({CAMPAIGN_CHANGES_SQL}) AS news WHERE c.id = :campaign
""")  # noqa: S608  (made of constants)

POLL_CHANGES = text(f"""
    WITH recent AS MATERIALIZED ({responses_since_sql(":since")})
    SELECT {WATERMARK_COLUMNS}, revision,
           (SELECT min(seq) FROM recent WHERE campaign_id = :campaign) AS first
    FROM campaigns WHERE id = :campaign
""")  # noqa: S608  (made of constants)


class Watermark(NamedTuple):
    """What had been written at a look; of what revision and of which run of the server, since others keep nothing.

    Answers may be lost when a server stops, if its operator has not let it wait for its disk.
    """

    snapshot: str
    revision: int
    server_started: datetime


class ChangesPoll(NamedTuple):
    """The watermark as of now, the number of the first response that was written since the one before, None if there
    is none, and that one, None if all responses are new.
    """

    watermark: Watermark
    first_new_seq: int | None
    previous: Watermark | None


async def poll_changes(connection: AsyncConnection, campaign_id: int, previous: Watermark | None = None) -> ChangesPoll:
    """What is new in a campaign; quick, however many responses it has."""
    row = (
        await connection.execute(POLL_CHANGES, {"campaign": campaign_id, "since": previous and previous.snapshot})
    ).one()
    current = Watermark(row.watermark, row.revision, row.server_started)
    if previous is None or (previous.revision, previous.server_started) != (current.revision, current.server_started):
        return ChangesPoll(current, 1, None)
    return ChangesPoll(current, row.first, previous)
