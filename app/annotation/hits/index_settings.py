"""Settings of a campaign on which its index of items depends, and how its assignments are read."""

from typing import Protocol

from app.database.session import Record
from app.selection.registry import SelectingCampaign


class IndexSettings(SelectingCampaign, Record):
    """Settings of a campaign that its index of items depends on."""

    id: int
    releases: int
    rule_name: str
    judgments_per_item: int
    items_per_hit: int
    fewest_items: int
    always_shown: list[int]
    segment_count: int
    gamma: float
    hits_per_iteration: int | None
    leaders_as_companions: bool
    best_items: int
    threshold: float
    seed: int


class ExtendedQuerySettings(Protocol):
    """The settings that decide how an assignment is read."""

    @property
    def cannot_be_judged(self) -> bool: ...
    @property
    def repeat_items(self) -> bool: ...
    @property
    def segment_count(self) -> int: ...
    @property
    def asked_criterion(self) -> int | None: ...


def needs_extended_query(campaign: ExtendedQuerySettings) -> bool:
    """Return whether serving needs the extended query (segments, unjudged items or several criteria).

    The launch fixes this for a campaign.
    """
    unjudged = campaign.cannot_be_judged and campaign.repeat_items
    return bool(campaign.segment_count or unjudged or campaign.asked_criterion != 0)
