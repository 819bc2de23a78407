"""Findings of the last plan of a draft, which its launch page repeats."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns


@dataclass(frozen=True)
class PlanFindings:
    """items: that there were. per_item: judgments wanted of each. warning: that the campaign may end before its goal,
    as a sentence; empty where it has judgments enough. enough: judgments an item with which nine of ten simulated
    campaigns reach it; None where no number does.
    """

    items: int
    per_item: int
    warning: str
    enough: int | None

    @classmethod
    def from_stored(cls, stored: dict[str, Any] | None, *, items: int, per_item: int) -> Self | None:
        """Return a draft's stored plan; None if there is none, or if the draft has other items or judgments by now."""
        plan = cls(**stored) if stored else None
        return plan if plan and (plan.items, plan.per_item) == (items, per_item) else None


async def store_plan_findings(connection: AsyncConnection, slug: str, findings: PlanFindings) -> None:
    """Store what a plan found of a draft; nothing of a campaign that has changed since, or was launched."""
    conditions = (
        campaigns.c.slug == slug,
        campaigns.c.status == "draft",
        campaigns.c.judgments_per_item == findings.per_item,
    )
    await connection.execute(update(campaigns).where(*conditions).values(newest_plan=asdict(findings)))
