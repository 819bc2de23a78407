"""API: alerts of a campaign."""

from datetime import datetime

from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.alerts import listings
from app.database.alerts import alert_sentence
from app.database.audit_log import CURRENT_ACTOR
from app.http.dependencies import Now, RowId, Transaction, openapi_description_of_refusals
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router("/api/v1/campaigns/{slug}/alerts", "Alerts", refusals={404: "`campaign_not_found`"})


class Alert(BaseModel):
    """An alert for the campaign owner; each is raised once."""

    id: int
    kind: str = Field(
        description="held, flagged, quiet, finished, goal, missed, retention, turned_away, calls or import."
    )
    raised_at: datetime
    about: str = Field(description="The subject, such as A7, item v3 or HITs.")
    because: str = Field(description="An explanation or a comment; may be empty.")
    said: str = Field(description="The alert as a sentence for people.")
    seen_at: datetime | None
    seen_by: str | None


@router.get("")
async def get_alerts(connection: Transaction, slug: str, *, seen: bool = False) -> list[Alert]:
    """Return the newest 50 unseen alerts, or seen alerts with `seen=true`, newest first."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    rows = await listings.load_newest_seen_or_unseen_alerts(connection, campaign.id, want_seen=seen)
    return [Alert(said=alert_sentence(row.kind, row.about), **row._asdict()) for row in rows]


@router.post(
    "/{alert}/seen",
    status_code=204,
    responses=openapi_description_of_refusals({404: "`campaign_not_found`, `alert_not_found`"}),
)
async def mark_alert_as_seen(connection: Transaction, slug: str, alert: RowId, now: Now) -> None:
    """Mark an alert as seen."""
    await listings.mark_alert_seen_or_refuse(
        connection,
        await load_campaign_by_slug_or_refuse(connection, slug),
        alert,
        user_name=CURRENT_ACTOR.get().name,
        now=now,
    )
