"""The update law of a campaign, as its row says, and how it reads the answers of the campaign's design."""

from collections.abc import Sequence
from typing import Any

from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.inference.observations.coarsening import CLASSES
from app.inference.online.law import Hit, Law, Parameters
from app.inference.online.laws import ONLINE
from app.record.stream import Response


def law_of(campaign: Any) -> Law:
    """The campaign's law, for the classes of its design if that has any."""
    law = ONLINE[campaign.update_law]
    return law.of_classes(len(design_of(campaign).classes)) if law.reads in CLASSES else law


def parameters_of(campaign: Any) -> Parameters:
    """What it is tuned with. A tie margin is one of points; places and the like are equal or not."""
    design = design_of(campaign)
    margin = campaign.tie_margin_points / POINTS if design.yields == "points" else 0.0
    return Parameters(campaign.gamma, campaign.epsilon, margin, ties=design.equal == "tie")


def hit_of(campaign: Any, response: Response) -> Hit:
    """A response as the campaign's law reads it; of one that says nothing, a HIT without items, which no law takes."""
    return as_read(campaign, [response])[0]


def hits_of(campaign: Any, responses: Sequence[Response]) -> list[Hit]:
    """Responses as the campaign's law takes them, without those that say nothing."""
    return as_read(campaign, [one for one in responses if one.items])


def as_read(campaign: Any, responses: Sequence[Response]) -> list[Hit]:
    if ONLINE[campaign.update_law].reads in CLASSES:
        return [Hit(one.annotator, one.items, one.values) for one in responses]
    shares = design_of(campaign).shares
    return [Hit(one.annotator, one.items, shares(one.values)) for one in responses]
