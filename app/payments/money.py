"""Amounts of money as whole hundredths of a currency."""

import re

from app.errors import Invalid, shorten_echo
from app.http.languages.catalogue import ENGLISH, format_money

MAX_AMOUNT = 100_000_000  # a million in the currency
AMOUNT_PATTERN = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,2}))?", re.ASCII)


def parse_amount_or_refuse(text: str, *, where: str = "The amount") -> int:
    """Return an amount such as `4.25` in hundredths. Raises `Invalid` (`amount_unreadable`)."""
    match = AMOUNT_PATTERN.fullmatch(text.strip())
    amount = int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0")) if match else 0
    if not 0 < amount <= MAX_AMOUNT:
        raise Invalid(
            f"{where} “{shorten_echo(text.strip())}” is not an amount such as 4.25: more than 0, at most 1,000,000, "
            "with a dot and at most two places. Nothing was stored.",
            code="amount_unreadable",
        )
    return amount


def hundredths_text(amount: int) -> str:
    """Return hundredths as `4.25`, as people type them into a form."""
    return f"{amount // 100}.{amount % 100:02d}"


def money_text(amount: int, currency: str) -> str:
    """Return hundredths with the sign of the currency, as `£4.25`."""
    return format_money(amount / 100, currency, ENGLISH)
