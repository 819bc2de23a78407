"""Sliders: n items, each scored 0 to 100; the order of the scores is the ranking, equal scores are ties."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from app.designs.design import Design, Yields
from app.designs.scale import POINTS, on_scale
from app.languages.catalogue import Message


class Slider(Design):
    """Ranking with scores: Sakaguchi & Van Durme 2018, section 4."""

    name: ClassVar[str] = "slider"
    title: ClassVar[str] = "Ranking with scores"
    summary: ClassVar[str] = "Score a few items on sliders, in each other’s company."
    example: ClassVar[str] = "How often is this verb used?"
    yields: ClassVar[Yields] = "points"
    items_per_hit: ClassVar[range] = range(2, 11)
    usual_items: ClassVar[int] = 5
    calls_items_by: ClassVar[Literal["letter", "side"] | None] = "letter"
    usual_law: ClassVar[str] = "easl"

    @property
    def ends(self) -> tuple[float, float]:
        """Points."""
        return 0.0, POINTS

    def task(self, campaign: Any) -> str:
        """With the labels of the ends."""
        return Message(
            "You see %(items)d items at a time and place each on a scale from “%(low)s” to “%(high)s”, in the company "
            "of the others.",
            items=campaign.items_per_hit,
            low=campaign.low_label,
            high=campaign.high_label,
        )

    def stored(self, value: float) -> float | None:
        """Any number of points."""
        return on_scale(value)

    def given(self, shares: Sequence[float]) -> list[float]:
        """The steps of the slider at these shares of the scale, or its ends."""
        return [min(max(float(round(POINTS * share)), 0.0), POINTS) for share in shares]
