"""The update law of a campaign, as its row says, and how it reads the answers of the campaign's design."""

from typing import Any

from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.inference.online.law import Hit, Law, Parameters
from app.inference.online.laws import ONLINE
from app.record.stream import Response


def law_of(campaign: Any) -> Law:
    """The campaign's law."""
    return ONLINE[campaign.update_law]


def parameters_of(campaign: Any) -> Parameters:
    """What it is tuned with."""
    return Parameters(campaign.gamma, campaign.epsilon, campaign.tie_margin_points / POINTS)


def hit_of(campaign: Any, response: Response) -> Hit:
    """A response as the campaign's law takes it."""
    values = response.values
    if law_of(campaign).reads == "points":
        values = design_of(campaign).shares(values)
    return Hit(response.annotator, response.items, values)
