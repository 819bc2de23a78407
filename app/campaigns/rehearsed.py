"""What a campaign's pages say of its rehearsal: whether there is one, and what a made-up crowd could believe."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns, items
from app.errors import NotFound
from app.upload import as_number

LOOKED_AT = 20  # items, to tell which columns hold numbers
USUAL_TRUTHS = ("oracle", "truth", "gold")


@dataclass(frozen=True)
class RehearsalOffer:
    """The form that starts a rehearsal: the one that is there already, the columns that hold numbers, and the one that
    is plainly meant.
    """

    there: Row[Any] | None
    columns: list[str]

    @property
    def column(self) -> str:
        """The column that is plainly meant as what the crowd believes; empty if there is none."""
        return next((name for name in USUAL_TRUTHS if name in self.columns), "")


async def offer(connection: AsyncConnection, campaign: Row[Any]) -> RehearsalOffer | None:
    """None for a campaign that is a rehearsal itself."""
    if campaign.rehearsal_of is not None:
        return None
    return RehearsalOffer(
        await rehearsal_of(connection, campaign.id), await columns_of_numbers(connection, campaign.id)
    )


async def rehearsal_of(connection: AsyncConnection, campaign_id: int) -> Row[Any] | None:
    """The rehearsal of a campaign, if it has one."""
    return (await connection.execute(select(campaigns).where(campaigns.c.rehearsal_of == campaign_id))).one_or_none()


async def rehearsed(connection: AsyncConnection, campaign: Row[Any]) -> Row[Any]:
    """The campaign of which this is a rehearsal. Raises `NotFound` (`campaign_not_found`) if it is none."""
    row = (await connection.execute(select(campaigns).where(campaigns.c.id == campaign.rehearsal_of))).one_or_none()
    if row is None:
        raise NotFound(f"“{campaign.name}” is no rehearsal.", code="campaign_not_found")
    return row


async def columns_of_numbers(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """The columns, but the id, that hold a number for each of the first items."""
    statement = select(items.c.fields).where(items.c.campaign_id == campaign_id, items.c.number < LOOKED_AT)
    rows = list(await connection.scalars(statement))
    first = rows[0] if rows else {}
    return [name for name in first if name != "id" and all(as_number(row.get(name)) is not None for row in rows)]
