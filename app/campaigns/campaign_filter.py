"""Filter of the list of campaigns: by a text, a status and a tag."""

from typing import Literal

from pydantic import Field

from app.campaigns.tags import MAX_TAG_CHARACTERS
from app.designs.campaign import Campaign, CampaignStatus
from app.http.paging import AddressQuery, SearchWords

StatusFilter = Literal["", "draft", "running", "paused", "finished", "archived"]
ARCHIVED_FILTER: StatusFilter = "archived"


class CampaignFilter(AddressQuery):
    """Which campaigns a list shows. Archived ones are shown only by their own filter."""

    search: SearchWords = Field(default="", description="Only campaigns whose name, slug or tags contain this text.")
    status: StatusFilter = Field(default="", description="Only campaigns with this status, or archived ones.")
    tag: str = Field(default="", max_length=MAX_TAG_CHARACTERS, description="Only campaigns with this tag.")

    def shows_campaign(self, campaign: Campaign) -> bool:
        """Return whether a campaign is shown, among the archived ones or the others."""
        words = self.search.casefold()
        texts = [campaign.name, campaign.slug, *campaign.tags]
        return (
            (not words or any(words in text.casefold() for text in texts))
            and self.status in {"", ARCHIVED_FILTER, campaign.status}
            and (not self.tag or self.tag.casefold() in {tag.casefold() for tag in campaign.tags})
        )


STATUSES: tuple[CampaignStatus, ...] = ("draft", "running", "paused", "finished")
