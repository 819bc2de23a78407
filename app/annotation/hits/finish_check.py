"""The finish of a campaign by its last answer, without reading all items after each answer that completes one."""

from datetime import datetime

from cachetools import LRUCache
from sqlalchemy import text

from app.database.campaign import is_item_open_sql, try_to_finish_complete_campaign
from app.database.session import Driver, fetch_first_column, fetch_first_value_or_none

# Open items to remember of a campaign, and campaigns in a process.
MAX_KNOWN_OPEN_ITEMS, MAX_CAMPAIGNS_WITH_KNOWN_ITEMS = 100, 1_000

OPEN_ITEMS_SQL = f"""
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision AND p.criterion = 0
    WHERE c.id = :campaign AND p.subject <> ALL(c.always_shown)
    AND {is_item_open_sql("p", judgments_wanted_sql="c.judgments_per_item", unjudged_limit_sql="c.unjudged_people")}"""

ARE_ENOUGH_OPEN = text(f"""
    SELECT count(*) >= (SELECT fewest_items FROM campaigns WHERE id = :campaign)
    FROM (SELECT 1 {OPEN_ITEMS_SQL} AND p.subject = ANY(CAST(:items AS int[]))
          LIMIT (SELECT fewest_items FROM campaigns WHERE id = :campaign)) AS open
""")

# Those with the lowest numbers: the key of the table finds them in this order.
FIND_SOME_OPEN_ITEMS = text(f"""
    SELECT p.subject {OPEN_ITEMS_SQL} AND p.campaign_id = :campaign ORDER BY p.subject LIMIT :limit
""")


class FinishCheck:
    """Looks whether campaigns are complete, and remembers some open items of each. They may be open no longer."""

    def __init__(self) -> None:
        self._open_items: LRUCache[int, list[int]] = LRUCache(MAX_CAMPAIGNS_WITH_KNOWN_ITEMS)

    async def finish_if_complete(self, connection: Driver, campaign_id: int, *, now: datetime) -> None:
        """Finish a campaign if fewer items are open than a HIT needs."""
        for is_remembered in (True, False):
            if not is_remembered:
                limits = {"campaign": campaign_id, "limit": MAX_KNOWN_OPEN_ITEMS}
                self._open_items[campaign_id] = await fetch_first_column(connection, FIND_SOME_OPEN_ITEMS, limits)
            items = self._open_items.get(campaign_id)
            if items and await fetch_first_value_or_none(
                connection, ARE_ENOUGH_OPEN, {"campaign": campaign_id, "items": items}
            ):
                return
        await try_to_finish_complete_campaign(connection, campaign_id, now=now)


FINISH_CHECK = FinishCheck()
