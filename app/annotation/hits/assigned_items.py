"""Items that are only for some people: those of a group, or those who gave an answer to an entry question.

The campaign's setting names the column of the items' table that names the people of an item. An item without a cell
there is for everyone.
"""

import asyncio

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex
from app.annotation.hits.item_audiences import ItemAudiences, ItemsOfOthers, build_item_audiences
from app.annotation.platforms.participant_check import LISTED_PERSON_HASH, NAMED_PERSON_ID
from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.database.session import Driver, Record, fetch_first_column, fetch_rows

SELECT_ASSIGNED_ITEMS = text("""
    SELECT fields ->> CAST(:column AS text) AS audience, array_agg(number) AS numbers FROM items
    WHERE campaign_id = :campaign AND fields ->> CAST(:column AS text) <> '' GROUP BY 1
""")

SELECT_AUDIENCES_OF_ANNOTATOR = text(f"""
    SELECT l.list FROM campaigns c JOIN annotators a ON a.campaign_id = c.id AND a.id = :annotator
    JOIN participant_lists l ON l.campaign_id = c.id AND l.list NOT IN ('allow', 'block')
        AND l.person_hash = {LISTED_PERSON_HASH.format(person_id=NAMED_PERSON_ID)}
    WHERE c.id = :campaign
    UNION ALL
    SELECT concat(given.key, '=', given.value) FROM visits v CROSS JOIN LATERAL jsonb_each_text(v.said) AS given
    WHERE v.campaign_id = :campaign AND v.annotator_id = :annotator AND v.step = 'questions' AND v.outcome = 'passed'
""")


class AssignedItems(Record):
    """A cell that names the people of items, and the numbers of these items."""

    audience: str
    numbers: list[int]


async def load_items_reserved_for_others(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> ItemsOfOthers:
    """Return the items that are for other people than this annotator, in a campaign whose setting names the column.

    The items are remembered with the posteriors of this process; the annotator's groups and answers are read each time.
    """
    own = await fetch_first_column(
        connection,
        SELECT_AUDIENCES_OF_ANNOTATOR,
        {
            "campaign": assignment.campaign_id,
            "annotator": assignment.annotator_id,
            "personal_platform": PERSONAL_PLATFORM.name,
        },
    )
    audiences = campaign_index.audiences or await load_item_audiences_once(connection, assignment, campaign_index)
    own_audiences = audiences.own_audiences(own)
    if own_audiences in audiences.items_of_others:
        return audiences.items_of_others_than(own_audiences)
    return await asyncio.to_thread(audiences.items_of_others_than, own_audiences)


async def load_item_audiences_once(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> ItemAudiences:
    """Read the people of items. Concurrent requests wait for the first one; all items may have a cell."""
    async with campaign_index.audiences_lock:
        if campaign_index.audiences is None:
            key = {"campaign": assignment.campaign_id, "column": assignment.assigned_column}
            rows = await fetch_rows(connection, SELECT_ASSIGNED_ITEMS, key, AssignedItems)
            campaign_index.audiences = await asyncio.to_thread(
                build_item_audiences, [(row.audience, row.numbers) for row in rows], len(campaign_index.index.score)
            )
        return campaign_index.audiences
