"""The update law of a campaign, as its row says."""

from typing import Any

from app.designs.scale import POINTS
from app.inference.online.laws import ONLINE, Law, Parameters


def law_of(campaign: Any) -> Law:
    """The campaign's law."""
    return ONLINE[campaign.update_law]


def parameters_of(campaign: Any) -> Parameters:
    """What it is tuned with."""
    return Parameters(campaign.gamma, campaign.epsilon, campaign.tie_margin_points / POINTS)
