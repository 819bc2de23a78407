"""Findings of the last forecast of a campaign, which the launch page of a draft and the overview repeat."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns


@dataclass(frozen=True)
class ForecastFindings:
    """Findings of a forecast.

    Attributes:
        items: Number of items that the draft had.
        per_item: Judgments wanted of each item.
        warning: A sentence if the campaign may end before its goal is reached, else empty.
        enough: Judgments per item with which nine in ten simulated campaigns reach the goal; None if no number does.
        totals: Judgments in all that reach the goal: the middle and the ends of the band, None for an end without
            limit. Empty for findings of older versions.

    """

    items: int
    per_item: int
    warning: str
    enough: int | None
    totals: Sequence[int | None] = ()

    @classmethod
    def from_stored(cls, stored: dict[str, Any] | None, *, items: int, per_item: int) -> Self | None:
        """Return stored findings; None if there are none, or if the items or judgments have changed."""
        findings = cls(**stored) if stored else None
        return findings if findings and (findings.items, findings.per_item) == (items, per_item) else None


async def store_forecast_findings_if_current(
    connection: AsyncConnection, slug: str, findings: ForecastFindings
) -> None:
    """Store the findings of a forecast, unless the campaign asks for another number of judgments since."""
    conditions = (campaigns.c.slug == slug, campaigns.c.judgments_per_item == findings.per_item)
    await connection.execute(update(campaigns).where(*conditions).values(newest_plan=asdict(findings)))
