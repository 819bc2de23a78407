"""What is left of a campaign of systems that ended because nobody could be asked to compare the rest."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import item_count
from app.database.pool import wants
from app.database.session import driver_of
from app.record.outputs import segments_of
from app.record.store import PRESENT
from app.selection.registry import asking_of

LEFT = text(f"""
    SELECT i.number, i.external_id, p.judgments FROM posteriors p
    JOIN items i ON i.campaign_id = p.campaign_id AND i.number = p.subject
    WHERE {PRESENT} AND {wants("p", judgments=":wanted", people=":people")}
    AND i.number <> ALL(CAST(:always AS int[])) ORDER BY i.number
""")  # noqa: S608  (made of constants)


async def listed(connection: AsyncConnection, campaign: Row[Any]) -> Sequence[Row[Any]]:
    """The systems with fewer judgments than wanted, if they are enough for a HIT, yet no two of them can be compared;
    none of a campaign that goes on.
    """
    if not campaign.segment_count or campaign.status != "finished":
        return ()
    asked = {"wanted": campaign.judgments_per_item, "people": campaign.unjudged_people, "always": campaign.always_shown}
    left = (await connection.execute(LEFT, {"campaign": campaign.id, **asked})).all()
    if len(left) < campaign.fewest_items:
        return ()
    count = await connection.scalar(select(item_count(campaign.id))) or 0
    segments = await segments_of(await driver_of(connection), campaign.id, campaign.segment_count, count)
    asking, always = asking_of(campaign), campaign.always_shown
    goes_on = segments.can_compare([row.number for row in left], always, n=asking.n, fewest=asking.fewest + len(always))
    return () if goes_on else left
