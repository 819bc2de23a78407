"""Notice on the pages of a finished campaign that its settings will delete it."""

from datetime import UTC, datetime

from app.designs.campaign import Campaign
from app.errors import pluralize
from app.privacy.retention import WARNING_TIME, list_retention_dues


def deletion_notice_or_empty(campaign: Campaign, now: datetime | None = None) -> str:
    """Return when Easel deletes a finished campaign, as a sentence; empty if it never does.

    A campaign whose time is over is deleted once its alert is a week old, so a past day is not named.
    """
    due_at = next((due.due_at for due in list_retention_dues(campaign, None) if due.period == "everything"), None)
    if due_at is None or campaign.rehearsal_of is not None:
        return ""
    present = now or datetime.now(UTC)
    week = pluralize(WARNING_TIME.days, "day")
    if due_at <= present:
        return f"Easel deletes this campaign, with all answers, {week} after the alert about it."
    earliest = "" if due_at - WARNING_TIME > present else f", but at the earliest {week} after the alert about it"
    return f"Easel deletes this campaign, with all answers, on {due_at:%Y-%m-%d}{earliest}."
