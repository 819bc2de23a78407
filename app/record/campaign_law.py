"""The update law of a campaign, and the conversion of its design's answers to what the law reads."""

from collections.abc import Sequence
from typing import Any

from app.designs.registry import design_of
from app.designs.scale import MAX_POINTS
from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online.law import AnsweredHit, Law, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.record.responses import Response


def law_of(campaign: Any) -> Law:
    """Return the campaign's update law, set up for the classes of its design if it has any."""
    law = ONLINE_LAWS[campaign.update_law]
    return law.for_class_count(len(design_of(campaign).classes)) if law.reads in CLASS_KINDS else law


def law_parameters(campaign: Any) -> LawParameters:
    """Return the parameters of the campaign's law. Only points have a tie margin: ranks are equal or not."""
    design = design_of(campaign)
    tie_margin = campaign.tie_margin_points / MAX_POINTS if design.value_kind == "points" else 0.0
    return LawParameters(campaign.gamma, campaign.epsilon, tie_margin, ties=design.equal_means == "tie")


def law_hit(campaign: Any, response: Response) -> AnsweredHit:
    """Return a response as the campaign's law reads it. Without judgments the HIT has no items: no law accepts it."""
    return convert_to_hits(campaign, [response])[0]


def law_hits(campaign: Any, responses: Sequence[Response]) -> list[AnsweredHit]:
    """Return responses as the campaign's law reads them, without those that judge no item."""
    return convert_to_hits(campaign, [response for response in responses if response.items])


def convert_to_hits(campaign: Any, responses: Sequence[Response]) -> list[AnsweredHit]:
    if ONLINE_LAWS[campaign.update_law].reads in CLASS_KINDS:
        return [AnsweredHit(response.annotator, response.items, response.values) for response in responses]
    to_shares = design_of(campaign).to_shares
    return [AnsweredHit(response.annotator, response.items, to_shares(response.values)) for response in responses]
