"""Alert of silence: a campaign runs, but no answer has come for longer than its owner accepts.

Silence counts from the last answer, or from the launch, resumption or reopening if that is later. Each silence raises
one alert, however long it lasts.
"""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.database.alerts import store_new_alerts_sql

START_ACTIONS_SQL = "('campaign.launch', 'campaign.resume', 'campaign.reopen')"

SELECT_SILENT_CAMPAIGNS = f"""
    (SELECT c.id AS campaign_id, 'quiet' AS kind, CAST(last.since AS text) AS occasion,
            c.alert_quiet_minutes || ' minutes' AS about, '' AS because
    FROM campaigns c, LATERAL (SELECT extract(epoch FROM greatest(
        c.launched_at,
        (SELECT r.received_at FROM responses r WHERE r.campaign_id = c.id ORDER BY r.seq DESC LIMIT 1),
        (SELECT max(l.noted_at) FROM audit_log l WHERE l.campaign_id = c.id AND l.action IN {START_ACTIONS_SQL})
    )) AS since) AS last
    WHERE c.status = 'running' AND c.alert_quiet_minutes IS NOT NULL
    AND last.since < extract(epoch FROM CAST(:now AS timestamptz)) - 60 * c.alert_quiet_minutes)
"""

RAISE_QUIET_ALERTS = text(f"WITH {store_new_alerts_sql(SELECT_SILENT_CAMPAIGNS)} SELECT 1")


async def store_alerts_of_silent_campaigns(engine: AsyncEngine, *, now: datetime) -> None:
    """Raise an alert for each campaign that has fallen silent."""
    async with engine.begin() as connection:
        await connection.execute(RAISE_QUIET_ALERTS, {"now": now})
