"""The conversion of a design's answers to what the campaign's update law reads."""

from collections.abc import Sequence

from app.designs.criteria import Criterion, LearningCampaign
from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online.law import AnsweredHit
from app.record.responses import Response


def convert_response_to_hit_of_law(criterion: Criterion[LearningCampaign], response: Response) -> AnsweredHit:
    """Return a response as the criterion's law reads it. Without judgments the HIT has no items: no law accepts it."""
    return convert_responses_to_hits_of_law(criterion, [response])[0]


def convert_judging_responses_to_hits_of_law(
    criterion: Criterion[LearningCampaign], responses: Sequence[Response]
) -> list[AnsweredHit]:
    """Return responses as the criterion's law reads them, without those that judge no item."""
    return convert_responses_to_hits_of_law(criterion, [response for response in responses if response.items])


def convert_responses_to_hits_of_law(
    criterion: Criterion[LearningCampaign], responses: Sequence[Response]
) -> list[AnsweredHit]:
    if criterion.law.reads in CLASS_KINDS:
        return [AnsweredHit(response.annotator, response.items, response.values) for response in responses]
    to_shares = criterion.design.values_to_scale_shares
    return [AnsweredHit(response.annotator, response.items, to_shares(response.values)) for response in responses]
