"""The update law of a campaign, as its row says, and how it reads the answers of the campaign's design."""

from collections.abc import Sequence
from typing import Any

from app.designs.registry import design_of
from app.designs.scale import MAX_POINTS
from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online.law import AnsweredHit, Law, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.record.responses import Response


def law_of(campaign: Any) -> Law:
    """The campaign's law, for the classes of its design if that has any."""
    law = ONLINE_LAWS[campaign.update_law]
    return law.for_class_count(len(design_of(campaign).classes)) if law.reads in CLASS_KINDS else law


def law_parameters(campaign: Any) -> LawParameters:
    """What it is tuned with. A tie margin is one of points; places and the like are equal or not."""
    design = design_of(campaign)
    tie_margin = campaign.tie_margin_points / MAX_POINTS if design.value_kind == "points" else 0.0
    return LawParameters(campaign.gamma, campaign.epsilon, tie_margin, ties=design.equal_means == "tie")


def law_hit(campaign: Any, response: Response) -> AnsweredHit:
    """A response as the campaign's law reads it; of one that says nothing, a HIT without items, which no law takes."""
    return convert_to_hits(campaign, [response])[0]


def law_hits(campaign: Any, responses: Sequence[Response]) -> list[AnsweredHit]:
    """Responses as the campaign's law takes them, without those that say nothing."""
    return convert_to_hits(campaign, [one for one in responses if one.items])


def convert_to_hits(campaign: Any, responses: Sequence[Response]) -> list[AnsweredHit]:
    if ONLINE_LAWS[campaign.update_law].reads in CLASS_KINDS:
        return [AnsweredHit(one.annotator, one.items, one.values) for one in responses]
    shares = design_of(campaign).to_shares
    return [AnsweredHit(one.annotator, one.items, shares(one.values)) for one in responses]
