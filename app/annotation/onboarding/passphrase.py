"""Passphrase of the open link. Visitors enter it before they become annotators, so it is no `VisitStep`.

It is stored in plain text, because the researcher must be able to look it up; it protects no more than the link does.
"""

import hmac
import unicodedata
from datetime import datetime

from app.annotation.onboarding.visit_progress import VisitedCampaign
from app.annotation.platforms import passphrase_limit
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver
from app.errors import Forbidden, Invalid


def is_same_passphrase(expected: str, entered: str) -> bool:
    """Compare passphrases in constant time, ignoring surrounding blanks and Unicode variants of accents."""
    expected_bytes, entered_bytes = (
        unicodedata.normalize("NFC", text.strip()).encode() for text in (expected, entered)
    )
    return hmac.compare_digest(expected_bytes, entered_bytes)


def link_closed_error() -> Forbidden:
    return Forbidden(
        "Only invited people can take part in this task. Please use the link that you were sent.", code="link_closed"
    )


async def check_passphrase(
    connection: Driver, campaign: VisitedCampaign, entered: str | None, visitor: Visitor, *, now: datetime
) -> None:
    """Check the passphrase that a visitor entered, and count the attempt.

    Raises:
        Forbidden: `link_closed`.
        Invalid: `passphrase_missing`, `passphrase_wrong`.
        TooManyAttempts: `too_many_attempts`.

    """
    settings = campaign.settings
    if not settings.open_link:
        raise link_closed_error()
    if not settings.passphrase:
        return
    if entered is None:
        raise Invalid("Enter the passphrase that came with the link.", code="passphrase_missing")
    await passphrase_limit.charge_guess(connection, campaign.id, visitor, now=now)
    if not is_same_passphrase(settings.passphrase, entered):
        raise Invalid("This is not the passphrase. Please check it, then try again.", code="passphrase_wrong")
    await passphrase_limit.refund_guess(connection, campaign.id, visitor)
