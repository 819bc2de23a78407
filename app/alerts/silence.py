"""Alert of silence: a campaign runs, but no answer has come for longer than its owner accepts.

Silence counts from the last answer, or from the launch, resumption or reopening if that is later. Each silence raises
one alert, however long it lasts.
"""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.alerts import store_new_alerts_sql
from app.database.session import leads_to_citus

START_ACTIONS_SQL = "('campaign.launch', 'campaign.resume', 'campaign.reopen')"

HAS_SILENCE_ALERTS = "status = 'running' AND alert_quiet_minutes IS NOT NULL"

LAST_ANSWER_TIME_SQL = "SELECT received_at FROM responses WHERE campaign_id = {campaign} ORDER BY seq DESC LIMIT 1"

LIST_LAST_ANSWER_TIMES = text(f"""
    SELECT c.id, ({LAST_ANSWER_TIME_SQL.format(campaign="c.id")}) AS received_at
    FROM campaigns c WHERE {HAS_SILENCE_ALERTS}
""")

# The same for Citus, which finds the last answer of one campaign at a time.
LIST_CAMPAIGNS_WITH_SILENCE_ALERTS = text(f"SELECT id FROM campaigns WHERE {HAS_SILENCE_ALERTS}")
SELECT_LAST_ANSWER_TIME = text(LAST_ANSWER_TIME_SQL.format(campaign=":campaign"))

SELECT_SILENT_CAMPAIGNS = f"""
    (SELECT c.id AS campaign_id, 'quiet' AS kind, CAST(last.since AS text) AS occasion,
            c.alert_quiet_minutes || ' minutes' AS about, '' AS because
    FROM unnest(CAST(:campaigns AS bigint[]), CAST(:times AS timestamptz[])) AS answered (campaign_id, answered_at)
    JOIN campaigns c ON c.id = answered.campaign_id,
    LATERAL (SELECT extract(epoch FROM greatest(
        c.launched_at, answered.answered_at,
        (SELECT max(l.noted_at) FROM audit_log l WHERE l.campaign_id = c.id AND l.action IN {START_ACTIONS_SQL})
    )) AS since) AS last
    WHERE {HAS_SILENCE_ALERTS}
    AND last.since < extract(epoch FROM CAST(:now AS timestamptz)) - 60 * c.alert_quiet_minutes)
"""

RAISE_QUIET_ALERTS = text(f"WITH {store_new_alerts_sql(SELECT_SILENT_CAMPAIGNS)} SELECT 1")


async def store_alerts_of_silent_campaigns(engine: AsyncEngine, *, now: datetime) -> None:
    """Raise an alert for each campaign that has fallen silent."""
    async with engine.begin() as connection:
        times = await load_last_answer_time_by_silence_campaign(connection)
        parameters = {"campaigns": [*times.keys()], "times": [*times.values()], "now": now}
        await connection.execute(RAISE_QUIET_ALERTS, parameters)


async def load_last_answer_time_by_silence_campaign(connection: AsyncConnection) -> dict[int, datetime | None]:
    """Return when the last answer came, by campaign, for running campaigns with alerts of silence."""
    if not leads_to_citus(connection):
        return {row.id: row.received_at for row in await connection.execute(LIST_LAST_ANSWER_TIMES)}
    ids = (await connection.scalars(LIST_CAMPAIGNS_WITH_SILENCE_ALERTS)).all()
    return {
        campaign_id: await connection.scalar(SELECT_LAST_ANSWER_TIME, {"campaign": campaign_id}) for campaign_id in ids
    }
