"""Alerts: notifications for campaign owners, stored in the transaction of the event.

Call `store_alert_unless_known` where the event happens. It sends nothing: it stores the messages in the same
transaction, and the outbox sends them afterwards. An alert is raised once, however many calls and processes report it.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Driver, execute_statement

# kind -> sentence, with {about} for the subject.
ALERT_SENTENCES = {
    "held": "A rule held {about}.",
    "flagged": "Flagged by annotators: {about}.",
    "quiet": "No answer came for {about}.",
    "finished": "The campaign is finished.",
    "goal": "The goal is reached: {about}.",
    "missed": "The goal was not reached: {about}.",
    "retention": "Soon to be erased: {about}.",
    "import": "An import of answers ended before all of them were stored: {about}.",
    "calls": "Calls to the platform need you: {about}.",
    "turned_away": "Visitors were turned away: {about}.",
}


# Messages of one kind: an annotator who flags everything must not fill a mailbox. The page shows all alerts.
MAX_ALERTS_PER_HOUR = 20


def store_new_alerts_sql(source: str) -> str:
    """Return SQL for WITH queries that store new alerts, and a message for each address of their campaigns.

    Known alerts are skipped, and rehearsals raise none.

    Args:
        source: SQL for rows with campaign_id, kind, occasion, about and because.

    """
    return f"""
        raised AS (
            INSERT INTO alerts (campaign_id, kind, occasion, about, because)
            SELECT happened.campaign_id, happened.kind, happened.occasion, happened.about, happened.because
            FROM {source} AS happened JOIN campaigns c ON c.id = happened.campaign_id AND c.rehearsal_of IS NULL
            ON CONFLICT (campaign_id, kind, occasion) DO NOTHING
            RETURNING campaign_id, id, kind
        ), to_send AS (
            INSERT INTO alert_messages (campaign_id, alert_id, way, receiver)
            SELECT raised.campaign_id, raised.id, ways.way, ways.receiver
            FROM raised JOIN campaigns c ON c.id = raised.campaign_id,
                LATERAL (SELECT DISTINCT 'email', unnest(c.alert_emails)
                         UNION ALL SELECT 'webhook', '' WHERE c.alert_webhook IS NOT NULL) AS ways (way, receiver)
            WHERE {MAX_ALERTS_PER_HOUR} > (
                SELECT count(*) FROM alerts earlier WHERE earlier.campaign_id = raised.campaign_id
                AND earlier.kind = raised.kind AND earlier.raised_at > now() - interval '1 hour')
        )
    """


SINGLE_ALERT_SOURCE = """(SELECT CAST(:campaign AS bigint) AS campaign_id, CAST(:kind AS text) AS kind,
    CAST(:occasion AS text) AS occasion, CAST(:about AS text) AS about, CAST(:because AS text) AS because)"""
RAISE_ALERT = text(f"WITH {store_new_alerts_sql(SINGLE_ALERT_SOURCE)} SELECT 1")


async def store_alert_unless_known(
    connection: "AsyncConnection | Driver", campaign_id: int, kind: str, occasion: str, *, about: str, because: str = ""
) -> None:
    """Raise an alert in the transaction of the event, unless one of the same kind and occasion exists.

    Example: `await store_alert_unless_known(connection, campaign.id, "held", f"decision {seq}", about="A7", because="6
    of 10 gold items were wrong")`.

    Args:
        connection: A connection in the event's transaction.
        campaign_id: The campaign's row id.
        kind: A key of `ALERT_SENTENCES`.
        occasion: Distinguishes this alert from others of its kind in the campaign.
        about: The subject, as pages call it: A7 or item v3, never a platform's id.
        because: A sentence or a comment, if any.

    """
    if kind not in ALERT_SENTENCES:
        raise KeyError(kind)
    parameters = {"campaign": campaign_id, "kind": kind, "occasion": occasion, "about": about, "because": because}
    if isinstance(connection, AsyncConnection):
        await connection.execute(RAISE_ALERT, parameters)
    else:
        await execute_statement(connection, RAISE_ALERT, parameters)


def alert_sentence(kind: str, about: str) -> str:
    return ALERT_SENTENCES.get(kind, "{about}").format(about=about)
