"""What someone sees before they are an annotator: the campaign and a few of its items, for looking only."""

from sqlalchemy import text

from app.annotation.hits.assignment import SERVED_CAMPAIGN_COLUMNS, ServedCampaign
from app.database.session import Driver, Record, fetch_first_row, fetch_rows
from app.designs.content import RenderedItems, SourceAndReference
from app.errors import NotFound
from app.media.render_items import render_campaign_items

# A rehearsal is not for people: it is removed with all of its answers.
SELECT_CAMPAIGN_BY_LINK = text(f"""
    SELECT {SERVED_CAMPAIGN_COLUMNS}, coalesce(open_platforms, open_link AND passphrase = '') AS platforms_open FROM campaigns c
    WHERE link_key = :link_key AND rehearsal_of IS NULL
""")  # noqa: S608  (made of constants)
SELECT_SAMPLE_ITEMS = text("""
    SELECT number, shown FROM items WHERE campaign_id = :campaign
    ORDER BY number = ANY(CAST(:always AS int[])) DESC, number LIMIT :number
""")

# Of systems the outputs for their first segment, each once, with what stands above them.
SELECT_SAMPLE_OUTPUTS = text("""
    SELECT min(o.item) AS number, min(o.shown) AS shown, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    WHERE o.campaign_id = :campaign AND o.segment = 0
    GROUP BY coalesce(o.digest, o.shown), s.source, s.reference
    ORDER BY bool_or(o.item = ANY(CAST(:always AS int[]))) DESC, 1 LIMIT :number
""")


class LinkedCampaign(ServedCampaign):
    """A campaign by its link, and whether new people may come by those of platforms."""

    platforms_open: bool


class SampleItem(Record):
    """An item and its text."""

    number: int
    shown: str

    @property
    def source_and_reference(self) -> SourceAndReference | None:
        """What stands above outputs; None above other items."""
        return SourceAndReference(self["source"], self["reference"]) if "source" in self else None


async def load_campaign_by_link(connection: Driver, link_key: str) -> LinkedCampaign:
    """The campaign with this link key. Raises `NotFound` (`campaign_not_found`)."""
    row = await fetch_first_row(connection, SELECT_CAMPAIGN_BY_LINK, {"link_key": link_key}, LinkedCampaign)
    if row is None:
        raise NotFound(
            "There is no task at this address. Please check that the link is complete.",
            code="campaign_not_found",
        )
    return row


async def load_sample_items(connection: Driver, campaign: ServedCampaign) -> RenderedItems:
    """The first items, as many as a HIT has: the same for everyone, so a preview stores nothing."""
    parameters = {"campaign": campaign.id, "number": campaign.items_per_hit, "always": campaign.always_shown}
    statement = SELECT_SAMPLE_OUTPUTS if campaign.segment_count else SELECT_SAMPLE_ITEMS
    rows = await fetch_rows(connection, statement, parameters, SampleItem)
    source_and_reference = rows[0].source_and_reference if rows else None
    return await render_campaign_items(
        connection, campaign, [row.number for row in rows], [row.shown for row in rows], source_and_reference
    )
