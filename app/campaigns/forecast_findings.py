"""Findings of the last forecast of a campaign, which the launch page of a draft and the overview repeat."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns
from app.errors import pluralize


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

    @property
    def sentence_on_sufficient_judgments_or_empty(self) -> str:
        """Sentence that repeats how many judgments per item are enough; empty where no number is."""
        if self.enough is None:
            return ""
        per_item = pluralize(self.enough, "judgment")
        return f"The last plan found that 9 of 10 campaigns like this one reach the goal with {per_item} per item."


async def store_forecast_findings_if_current(
    connection: AsyncConnection, slug: str, findings: ForecastFindings
) -> None:
    """Store the findings of a forecast, unless the campaign asks for another number of judgments since."""
    conditions = (campaigns.c.slug == slug, campaigns.c.judgments_per_item == findings.per_item)
    await connection.execute(update(campaigns).where(*conditions).values(newest_plan=asdict(findings)))
