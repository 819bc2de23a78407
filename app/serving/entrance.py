"""What someone sees before they are an annotator: the campaign and a few of its items, for looking only."""

from sqlalchemy import text

from app.database.session import Driver, Record, fetch, fetch_one
from app.designs.content import DrawnItems
from app.errors import NotFound
from app.media.shown import drawn
from app.serving.standing import CAMPAIGN, ServedCampaign

# A rehearsal is not for people: it is removed with all of its answers.
BY_LINK = text(f"SELECT {CAMPAIGN} FROM campaigns c WHERE link_key = :link_key AND rehearsal_of IS NULL")  # noqa: S608  (made of constants)
SAMPLE = text("""
    SELECT number, shown FROM items WHERE campaign_id = :campaign
    ORDER BY number = ANY(CAST(:always AS int[])) DESC, number LIMIT :number
""")


class SampledItem(Record):
    """An item and its text."""

    number: int
    shown: str


async def campaign_by_link(connection: Driver, link_key: str) -> ServedCampaign:
    """The campaign with this link key. Raises `NotFound` (`campaign_not_found`)."""
    row = await fetch_one(connection, BY_LINK, {"link_key": link_key}, ServedCampaign)
    if row is None:
        raise NotFound(
            "There is no task at this address. Please check that the link is complete.",
            code="campaign_not_found",
        )
    return row


async def sample(connection: Driver, campaign: ServedCampaign) -> DrawnItems:
    """The first items, as many as a HIT has: the same for everyone, so a preview stores nothing."""
    parameters = {"campaign": campaign.id, "number": campaign.items_per_hit, "always": campaign.always_shown}
    rows = await fetch(connection, SAMPLE, parameters, SampledItem)
    return await drawn(connection, campaign, [row.number for row in rows], [row.shown for row in rows])
