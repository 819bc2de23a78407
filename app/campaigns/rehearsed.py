"""What a campaign's pages say of its rehearsal: whether there is one, and what a made-up crowd could believe."""

from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import item_count
from app.database.tables import campaigns, items
from app.designs.registry import design_of
from app.errors import NotFound, plural
from app.goals.settings import NONE
from app.upload import as_number

LOOKED_AT = 20  # items, to tell which columns hold numbers
USUAL_ANNOTATORS, MOST_ANNOTATORS = 12, 100  # of a crowd
USUAL_TRUTHS = ("oracle", "truth", "gold")


# By the database's clock: no process leads its crowd.
CROWD_GONE = text("""
    SELECT NOT EXISTS (SELECT FROM crowds WHERE campaign_id = :campaign AND led_until >= clock_timestamp())
""")


@dataclass(frozen=True)
class RehearsalOffer:
    """The form that starts a rehearsal: the one that is there already, and whether its crowd is gone; the columns that
    hold numbers, and the one that is plainly meant. fewest: annotators, since fewer may not do what the campaign wants;
    why, as a sentence. most: of them.
    """

    there: Row[Any] | None
    crowd_gone: bool
    columns: list[str]
    fewest: int
    why: str
    most: int = MOST_ANNOTATORS

    @property
    def usual(self) -> int:
        """With how many annotators the form begins: enough, where a rehearsal may have so many."""
        return max(USUAL_ANNOTATORS, self.fewest) if self.fewest <= self.most else USUAL_ANNOTATORS

    @property
    def column(self) -> str:
        """The column that is plainly meant as what the crowd believes; empty if there is none."""
        return next((name for name in USUAL_TRUTHS if name in self.columns), "")


async def offer(connection: AsyncConnection, campaign: Row[Any]) -> RehearsalOffer | None:
    """None for a campaign that is a rehearsal itself."""
    if campaign.rehearsal_of is not None:
        return None
    count = await connection.scalar(select(item_count(campaign.id))) or 0
    there, columns = await rehearsal_of(connection, campaign.id), await columns_of_numbers(connection, campaign.id)
    gone = there is not None and await crowd_is_gone(connection, there)
    return RehearsalOffer(there, gone, columns, *fewest_annotators(campaign, count))


async def crowd_is_gone(connection: AsyncConnection, rehearsal: Row[Any]) -> bool:
    """Return whether the process that led the crowd of a rehearsal has died before the end."""
    if rehearsal.rehearsal_of is None or rehearsal.status != "running":
        return False
    return bool((await connection.execute(CROWD_GONE, {"campaign": rehearsal.id})).scalar_one())


def fewest_annotators(campaign: Any, count: int) -> tuple[int, str]:
    """How many annotators a campaign with so many items needs, and why, as a sentence; 1 where any number does."""
    always, each = len(design_of(campaign).always_shown), campaign.judgments_per_item
    hits = ceil(max(0, count - always) * each / (campaign.items_per_hit - always))
    limit = campaign.hits_per_annotator
    needed = [(1, "")]
    if limit:
        needed.append((ceil(hits / limit), f"it asks for {plural(hits, 'HIT')}, and each may answer {limit:,}"))
    if not campaign.segment_count and not campaign.repeat_items:
        needed.append((each, f"each item wants {plural(each, 'judgment')} by different people"))
    elif not campaign.segment_count and campaign.goal != NONE:
        needed.append((each, "what somebody says of an item once more brings its goal hardly nearer"))
    fewest, why = max(needed)
    more = "Choose more" if fewest <= MOST_ANNOTATORS else f"A rehearsal has {MOST_ANNOTATORS} at most"
    return fewest, f"Fewer than {fewest:,} annotators may be too few: {why}. {more}."


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
