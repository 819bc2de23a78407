"""Parameters of the statements that store an answer, whether it is the first to a HIT or replaces one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.database.session import SharedParameters
from app.designs.answer import Answer, telemetry_of_answers_json_or_none
from app.designs.criteria import AskedCampaign
from app.designs.extra_json import answer_extra_json_or_none


@dataclass(frozen=True, slots=True)
class AnswerKey(SharedParameters):
    """Parameters of the statements that find the answered HIT: it belongs to the assignment's annotator."""

    campaign: int
    assignment: int
    arrived_at: datetime | None
    hit: int
    now: datetime


@dataclass(kw_only=True)
class ResponseParameters:
    """Columns of a new response, by the names of parameters."""

    campaign: int
    hit: int
    annotator: int
    source: str
    items: Sequence[int]
    values: Sequence[float]
    segment: int | None
    extra: str | None
    telemetry: str | None
    now: datetime


class AnswerableHit(Protocol):
    """A HIT with an answer.

    Attributes:
        hit_items: Its items. If they are systems that share outputs, some are not shown.
        shown_as: For each of the items the one that it is shown as, None if the items are shown themselves.

    """

    @property
    def annotator_id(self) -> int: ...
    @property
    def hit_items(self) -> list[int]: ...
    @property
    def segment(self) -> int | None: ...
    @property
    def shown_as(self) -> list[int] | None: ...


def build_response_parameters(
    key: AnswerKey, campaign: AskedCampaign, hit: AnswerableHit, answers: Sequence[Answer], values: Sequence[float]
) -> ResponseParameters:
    """Return the columns of a response to a HIT with one answer per criterion."""
    return ResponseParameters(
        campaign=key.campaign,
        hit=key.hit,
        annotator=hit.annotator_id,
        source=answers[0].source,
        items=hit.hit_items,
        values=values,
        segment=hit.segment,
        extra=answer_extra_json_or_none(campaign, answers[0], hit.annotator_id),
        telemetry=telemetry_of_answers_json_or_none(answers, hit.hit_items),
        now=key.now,
    )
