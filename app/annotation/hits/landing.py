"""Campaign and sample items for the welcome and preview pages, which store nothing."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from app.annotation.hits.served_campaign import SERVED_CAMPAIGN_COLUMNS, ServedCampaign
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.settings import CrowdSettings
from app.database.session import Driver, Record, fetch_first_row_or_none, fetch_rows
from app.designs.content import RenderedItems, SourceAndReference
from app.errors import NotFound
from app.media.render_items import render_campaign_items

# People cannot open a rehearsal: it is removed later, with all of its answers.
SELECT_CAMPAIGN_BY_LINK = text(f"""
    SELECT {SERVED_CAMPAIGN_COLUMNS}, coalesce(open_platforms, open_link AND passphrase = '') AS platforms_open,
           c.crowd_settings, c.slug
    FROM campaigns c WHERE link_key = :link_key AND rehearsal_of IS NULL
""")
# Only items that are for everyone; see `assigned_items`.
SELECT_SAMPLE_ITEMS = text("""
    SELECT number, shown FROM items
    WHERE campaign_id = :campaign AND retired_at IS NULL AND coalesce(fields ->> CAST(:column AS text), '') = ''
    ORDER BY number = ANY(CAST(:always AS int[])) DESC, number LIMIT :number
""")

# Outputs of systems for the first segment, each distinct one once, with source and reference.
SELECT_SAMPLE_OUTPUTS = text("""
    SELECT min(o.item) AS number, min(o.shown) AS shown, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    WHERE o.campaign_id = :campaign AND o.segment = 0
    GROUP BY coalesce(o.digest, o.shown), s.source, s.reference
    ORDER BY bool_or(o.item = ANY(CAST(:always AS int[]))) DESC, 1 LIMIT :number
""")


class LinkedCampaign(ServedCampaign):
    """A campaign found by its link key, and whether the links for platforms admit new people."""

    platforms_open: bool
    crowd_settings: dict[str, Any]
    slug: str


class SampleItem(Record):
    """Number and text of an item, with source and reference if it is an output."""

    number: int
    shown: str

    @property
    def source_and_reference_or_none(self) -> SourceAndReference | None:
        """Texts shown above outputs; None for other items."""
        return SourceAndReference(self["source"], self["reference"]) if "source" in self else None


async def load_campaign_by_link_or_refuse(connection: Driver, link_key: str) -> LinkedCampaign:
    """Return the campaign with this link key. Raises `NotFound` (`campaign_not_found`)."""
    row = await fetch_first_row_or_none(connection, SELECT_CAMPAIGN_BY_LINK, {"link_key": link_key}, LinkedCampaign)
    if row is None:
        raise campaign_not_found_error()
    return row


def campaign_not_found_error() -> NotFound:
    return NotFound(
        "There is no study at this address. Please check that the link is complete.", code="campaign_not_found"
    )


async def load_platform_as_campaign_sets_it_up_or_refuse(
    connection: Driver, platform: Platform, link_key: str
) -> Platform:
    """Return the platform as the campaign with this link key sets it up.

    Raises:
        NotFound: `campaign_not_found`, also if the campaign does not describe the platform.

    """
    if platform.set_up_by_campaign is None:
        return platform
    campaign = await load_campaign_by_link_or_refuse(connection, link_key)
    crowd_settings = dict(CrowdSettings.model_construct(**campaign.crowd_settings))
    if (platform_of_campaign := platform.platform_in_campaign_or_none(crowd_settings)) is None:
        raise campaign_not_found_error()
    return platform_of_campaign


async def load_rendered_sample_items(connection: Driver, campaign: ServedCampaign) -> RenderedItems:
    """Return the first items that everyone may be asked about, as many as a HIT has; none if there are fewer.

    They are the same for all visitors, so a preview stores nothing. With contents, a person sees each one under one
    condition only, and which one is not known yet: so there are none.
    """
    rows: Sequence[SampleItem] = ()
    parameters = {"campaign": campaign.id, "number": campaign.items_per_hit, "always": campaign.always_shown}
    if campaign.segment_count:
        rows = await fetch_rows(connection, SELECT_SAMPLE_OUTPUTS, parameters, SampleItem)
    elif campaign.content_column is None:
        parameters["column"] = campaign.assigned_column
        rows = await fetch_rows(connection, SELECT_SAMPLE_ITEMS, parameters, SampleItem)
        rows = rows if len(rows) == campaign.items_per_hit else ()
    source_and_reference = rows[0].source_and_reference_or_none if rows else None
    return await render_campaign_items(
        connection, campaign, [row.number for row in rows], [row.shown for row in rows], source_and_reference
    )
