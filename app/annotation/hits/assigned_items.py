"""Items that are only for some people: those of a group, or those who gave an answer to an entry question.

The campaign's setting names the column of the items' table that names the people of an item. An item without a cell
there is for everyone.
"""

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex
from app.annotation.platforms.participant_check import LISTED_PERSON_HASH, NAMED_PERSON_ID
from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.database.session import Driver, Record, fetch_first_column, fetch_rows

AUDIENCE_SEPARATOR = "|"

SELECT_ASSIGNED_ITEMS = text("""
    SELECT number, fields ->> CAST(:column AS text) AS audience FROM items
    WHERE campaign_id = :campaign AND coalesce(fields ->> CAST(:column AS text), '') <> ''
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


class AssignedItem(Record):
    """Number of an item, and the cell that names its people."""

    number: int
    audience: str


def parse_audiences(cell: str) -> list[str]:
    """Return the groups and answers in a cell, such as `experts | native_language = German`."""
    audiences = (part.strip() for part in cell.split(AUDIENCE_SEPARATOR))
    return ["=".join(half.strip() for half in part.split("=", 1)) for part in audiences if part]


async def load_items_of_others(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> frozenset[int]:
    """Return the items that are for other people than this annotator, in a campaign whose setting names the column.

    The items are remembered with the posteriors of this process; the annotator's groups and answers are read each time.
    """
    if campaign_index.items_by_audience is None:
        key = {"campaign": assignment.campaign_id, "column": assignment.assigned_column}
        items_by_audience: dict[str, set[int]] = {}
        for row in await fetch_rows(connection, SELECT_ASSIGNED_ITEMS, key, AssignedItem):
            for audience in parse_audiences(row.audience):
                items_by_audience.setdefault(audience, set()).add(row.number)
        campaign_index.items_by_audience = items_by_audience
    own = await fetch_first_column(
        connection,
        SELECT_AUDIENCES_OF_ANNOTATOR,
        {
            "campaign": assignment.campaign_id,
            "annotator": assignment.annotator_id,
            "personal_platform": PERSONAL_PLATFORM.name,
        },
    )
    assigned = frozenset[int]().union(*campaign_index.items_by_audience.values())
    return assigned.difference(*(campaign_index.items_by_audience.get(audience, ()) for audience in own))
