"""Passphrase of the open link. Visitors enter it before they become annotators, so it is no `VisitStep`.

It is stored in plain text, because the researcher must be able to look it up; it protects no more than the link does.
"""

import hmac
import unicodedata
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from app.annotation.onboarding.visit_progress import VisitedCampaign
from app.annotation.platforms.rate_limit import (
    ALLOWANCE_WINDOW,
    AllowanceExhausted,
    charge_all_allowances_or_refuse,
    statement_that_charges_counts_with_room,
)
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, execute_statement
from app.errors import Forbidden, Invalid, TooManyAttempts

MAX_GUESSES_PER_ADDRESS_AND_HOUR = 20
MAX_GUESSES_PER_CAMPAIGN_AND_HOUR = 1_000
ADDRESS_KEY_PREFIX, CAMPAIGN_GUESSES_KEY = b"guess ", b"guesses"  # keys of the counts

GUESS_SHARES_SQL = """
    VALUES (CAST(:address AS bytea), CAST(:share AS interval)), (CAST(:all AS bytea), CAST(:share_of_all AS interval))
"""
CHARGE_GUESS = statement_that_charges_counts_with_room(GUESS_SHARES_SQL)
REFUND_GUESS = text(f"""
    UPDATE visit_allowances SET full_at = full_at - guess.share FROM ({GUESS_SHARES_SQL}) AS guess (address, share)
    WHERE campaign_id = :campaign AND visit_allowances.address = guess.address
""")


def is_same_passphrase(expected: str, entered: str) -> bool:
    """Compare passphrases in constant time, ignoring surrounding blanks and Unicode variants of accents."""
    expected_bytes, entered_bytes = (
        unicodedata.normalize("NFC", text.strip()).encode() for text in (expected, entered)
    )
    return hmac.compare_digest(expected_bytes, entered_bytes)


def link_closed_error() -> Forbidden:
    return Forbidden(
        "Only invited people can take part in this study. Please use the link that you were sent.", code="link_closed"
    )


def passphrase_missing_error() -> Invalid:
    return Invalid("Enter the passphrase that came with the link.", code="passphrase_missing")


def passphrase_wrong_error() -> Invalid:
    return Invalid("This is not the passphrase. Please check it, then try again.", code="passphrase_wrong")


async def check_passphrase_and_charge_guess_or_refuse(
    connection: Driver, campaign: VisitedCampaign, entered_passphrase: str | None, visitor: Visitor, *, now: datetime
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
    if entered_passphrase is None:
        raise passphrase_missing_error()
    await charge_guess_or_refuse(connection, campaign.id, visitor, now=now)
    if not is_same_passphrase(settings.passphrase, entered_passphrase):
        raise passphrase_wrong_error()
    refund = query_parameters_of_charged_guess(campaign.id, visitor)  # the guess was right
    await execute_statement(connection, REFUND_GUESS, refund)


def query_parameters_of_charged_guess(campaign_id: int, visitor: Visitor) -> dict[str, Any]:
    """Return the counts of guesses from a visitor's address and on the campaign, and a guess's share of each."""
    return {
        "campaign": campaign_id,
        "address": ADDRESS_KEY_PREFIX + visitor.address_hash,
        "share": ALLOWANCE_WINDOW / MAX_GUESSES_PER_ADDRESS_AND_HOUR,
        "all": CAMPAIGN_GUESSES_KEY,
        "share_of_all": ALLOWANCE_WINDOW / MAX_GUESSES_PER_CAMPAIGN_AND_HOUR,
    }


async def charge_guess_or_refuse(connection: Driver, campaign_id: int, visitor: Visitor, *, now: datetime) -> None:
    """Charge a guess before it is checked. Raises `TooManyAttempts` (details `retry_after_seconds`)."""
    guess = query_parameters_of_charged_guess(campaign_id, visitor)
    try:
        await charge_all_allowances_or_refuse(connection, CHARGE_GUESS, guess, 2, now=now)
    except AllowanceExhausted as reason:
        share: timedelta = guess["share_of_all" if guess["address"] in reason.charged else "share"]
        raise TooManyAttempts(
            "The passphrase was tried too often. Please wait a few minutes, then try again. If you have started "
            "already, you can go on.",
            retry_after_seconds=round(share.total_seconds()),
        ) from None
