"""Systems that a finished campaign could not compare any further, because no annotator could be asked about them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import is_item_open_sql, number_of_items_sql
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.record.outputs import load_segment_index
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

LIST_UNDERJUDGED_SYSTEMS = text(f"""
    SELECT i.number, i.external_id, p.judgments FROM posteriors p
    JOIN items i ON i.campaign_id = p.campaign_id AND i.number = p.subject
    WHERE {PRESENT_POSTERIORS_CONDITION} AND {
    is_item_open_sql("p", judgments_wanted_sql=":wanted", unjudged_limit_sql=":people")
}
    AND i.number <> ALL(CAST(:always AS int[])) ORDER BY i.number
""")


async def load_uncompared_systems_if_finished(connection: AsyncConnection, campaign: Campaign) -> Sequence[Row[Any]]:
    """List the systems with fewer judgments than wanted, if they fill a HIT but no two of them can be compared.

    Return none for a campaign that continues.
    """
    if not campaign.segment_count or campaign.status != "finished":
        return ()
    parameters = {
        "wanted": campaign.judgments_per_item,
        "people": campaign.unjudged_people,
        "always": campaign.always_shown,
    }
    systems = (await connection.execute(LIST_UNDERJUDGED_SYSTEMS, {"campaign": campaign.id, **parameters})).all()
    if len(systems) < campaign.fewest_items:
        return ()
    count = await connection.scalar(select(number_of_items_sql(campaign.id))) or 0
    segments = await load_segment_index(await driver_of(connection), campaign.id, campaign.segment_count, count)
    asking, always = campaign.selection_settings, campaign.always_shown
    can_continue = segments.can_any_segment_compare_systems(
        [row.number for row in systems], always, n=asking.items_per_hit, min_outputs=asking.min_items + len(always)
    )
    return () if can_continue else systems
