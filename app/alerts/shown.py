"""Alerts as they are shown: those that nobody has seen yet, and the last ones that somebody has."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.account_tables import alert_messages, alerts
from app.database.alerts import said
from app.database.audit_log import note
from app.errors import NotFound

MOST_SHOWN = 50


async def listed(connection: AsyncConnection, campaign_id: int, *, seen: bool = False) -> Sequence[Row[Any]]:
    """The newest alerts of a campaign, newest first: those to be seen, or those that were."""
    is_seen = alerts.c.seen_at.is_not(None) if seen else alerts.c.seen_at.is_(None)
    those = select(alerts).where(alerts.c.campaign_id == campaign_id, is_seen)
    return (await connection.execute(those.order_by(alerts.c.id.desc()).limit(MOST_SHOWN))).all()


async def note_seen(connection: AsyncConnection, campaign: Row[Any], alert: int, *, by: str, now: datetime) -> None:
    """Somebody has seen an alert; of an alert that was seen before, the first one stays. Raises `NotFound`
    (`alert_not_found`).
    """
    its = alerts.c.campaign_id == campaign.id, alerts.c.id == alert
    found = (await connection.execute(select(alerts).where(*its))).one_or_none()
    if found is None:
        raise NotFound(f"“{campaign.name}” has no alert {alert}.", code="alert_not_found")
    statement = update(alerts).where(*its, alerts.c.seen_at.is_(None)).values(seen_at=now, seen_by=by)
    if (await connection.execute(statement)).rowcount:
        await note(connection, "alert.seen", campaign, about=said(found.kind, found.about))


async def on_their_way(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """The newest messages of a campaign with their alerts, newest first."""
    joined = alert_messages.join(
        alerts, (alerts.c.campaign_id == alert_messages.c.campaign_id) & (alerts.c.id == alert_messages.c.alert_id)
    )
    columns = (alert_messages, alerts.c.kind, alerts.c.about, alerts.c.raised_at)
    those = select(*columns).select_from(joined).where(alert_messages.c.campaign_id == campaign_id)
    return (await connection.execute(those.order_by(alerts.c.id.desc()).limit(MOST_SHOWN))).all()
