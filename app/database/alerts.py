"""Alerts: what whoever runs a campaign should hear of without looking, noted in the transaction in which it happens.

`raise_alert` is called where it happens. Nothing is sent there: what is to be sent stands in a table from the same
transaction on, and is sent after it. The same alert is raised once, however often and from however many processes it is
told.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Driver, execute_statement

# kind -> what happened, in words around what it is about.
ALERT_SENTENCES = {
    "held": "A rule held {about}.",
    "flagged": "Flagged by annotators: {about}.",
    "quiet": "No answer came for {about}.",
    "finished": "The campaign is finished.",
    "goal": "The goal is reached: {about}.",
    "missed": "The goal was not reached: {about}.",
    "turned_away": "Visitors were turned away: {about}.",
}


MAX_ALERTS_PER_HOUR = 20  # of a kind that are sent: whoever flags everything fills no mailbox. The page shows all


def raise_alerts_sql(source: str) -> str:
    """SQL, of WITH: rows of `source` with campaign_id, kind, occasion, about and because become alerts that nobody has
    raised yet, and a message for each address of the campaign. Rehearsals raise none.
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
    """  # noqa: S608  (made of constants)


SINGLE_ALERT_SOURCE = """(SELECT CAST(:campaign AS bigint) AS campaign_id, CAST(:kind AS text) AS kind,
    CAST(:occasion AS text) AS occasion, CAST(:about AS text) AS about, CAST(:because AS text) AS because)"""
RAISE_ALERT = text(f"WITH {raise_alerts_sql(SINGLE_ALERT_SOURCE)} SELECT 1")


async def raise_alert(
    connection: "AsyncConnection | Driver", campaign_id: int, kind: str, occasion: str, *, about: str, because: str = ""
) -> None:
    """Raise an alert in the transaction of what happened; of the same occasion one is raised once.

    As `await raise_alert(connection, campaign.id, "held", f"decision {seq}", about="A7", because="6 of 10 gold items
    were wrong")`. kind: one of `KINDS`. occasion: what makes it this alert and no other of its kind in the campaign.
    about: whom or what, as people call it: A7, item v3, never a platform's id. because: a
    sentence or a comment, if there is one.
    """
    if kind not in ALERT_SENTENCES:
        raise KeyError(kind)
    parameters = {"campaign": campaign_id, "kind": kind, "occasion": occasion, "about": about, "because": because}
    if isinstance(connection, AsyncConnection):
        await connection.execute(RAISE_ALERT, parameters)
    else:
        await execute_statement(connection, RAISE_ALERT, parameters)


def alert_sentence(kind: str, about: str) -> str:
    """What happened, as a sentence."""
    return ALERT_SENTENCES.get(kind, "{about}").format(about=about)
