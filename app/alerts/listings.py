"""Lists of alerts: those that no one has seen yet, and the last ones that someone has."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.account_tables import alert_messages, alerts
from app.database.alerts import alert_sentence
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import NotFound

MAX_ALERTS_SHOWN = 50
COUNTING_KINDS = frozenset(("turned_away",))  # a newer alert has a newer count, so it outdates the older ones


async def load_newest_seen_or_unseen_alerts(
    connection: AsyncConnection, campaign_id: int, *, want_seen: bool = False
) -> Sequence[Row[Any]]:
    """Return the newest alerts of a campaign, newest first: unseen ones, or seen ones.

    Unseen alerts that count something are left out if a newer one counts the same.
    """
    is_seen = (alerts.c.campaign_id == campaign_id) & alerts.c.seen_at.is_not(None)
    statement = select(alerts).where(is_seen if want_seen else unseen_alerts_sql_condition(campaign_id))
    return (await connection.execute(statement.order_by(alerts.c.id.desc()).limit(MAX_ALERTS_SHOWN))).all()


async def count_unseen_alerts(connection: AsyncConnection, campaign_id: int) -> int:
    """Return how many unseen alerts a campaign has; those that count the same are one."""
    statement = select(func.count()).select_from(alerts).where(unseen_alerts_sql_condition(campaign_id))
    return (await connection.execute(statement)).scalar_one()


def unseen_alerts_sql_condition(campaign_id: int) -> ColumnElement[bool]:
    """Return an SQL condition for the unseen alerts of a campaign, without older ones that count the same as a newer
    one.
    """
    is_unseen = (alerts.c.campaign_id == campaign_id) & alerts.c.seen_at.is_(None)
    counts = alerts.c.kind.in_(COUNTING_KINDS)
    newest_counts = select(func.max(alerts.c.id)).where(is_unseen, counts).group_by(alerts.c.kind)
    return is_unseen & (~counts | alerts.c.id.in_(newest_counts))


async def mark_alert_seen_or_refuse(
    connection: AsyncConnection, campaign: Campaign, alert_id: int, *, user_name: str, now: datetime
) -> None:
    """Mark an alert as seen, and older ones that it outdates. If it was seen before, the first person stays.

    Raises `NotFound` (`alert_not_found`).
    """
    of_campaign = alerts.c.campaign_id == campaign.id
    alert = (await connection.execute(select(alerts).where(of_campaign, alerts.c.id == alert_id))).one_or_none()
    if alert is None:
        raise NotFound(f"“{campaign.name}” has no alert {alert_id}.", code="alert_not_found")
    is_marked = alerts.c.id == alert_id
    if alert.kind in COUNTING_KINDS:
        is_marked = (alerts.c.kind == alert.kind) & (alerts.c.id <= alert_id)
    statement = update(alerts).where(of_campaign, is_marked, alerts.c.seen_at.is_(None))
    if (await connection.execute(statement.values(seen_at=now, seen_by=user_name))).rowcount:
        await log_change(connection, "alert.seen", campaign, about=alert_sentence(alert.kind, alert.about))


async def load_newest_messages_with_alerts(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return the newest messages of a campaign with their alerts, newest first."""
    messages_with_alerts = alert_messages.join(
        alerts, (alerts.c.campaign_id == alert_messages.c.campaign_id) & (alerts.c.id == alert_messages.c.alert_id)
    )
    columns = (alert_messages, alerts.c.kind, alerts.c.about, alerts.c.raised_at)
    statement = select(*columns).select_from(messages_with_alerts).where(alert_messages.c.campaign_id == campaign_id)
    return (await connection.execute(statement.order_by(alerts.c.id.desc()).limit(MAX_ALERTS_SHOWN))).all()
