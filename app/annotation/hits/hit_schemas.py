"""Bodies of API replies: a HIT, its items and criteria, and the receipt of an answer."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from app.annotation.hits.no_hit_reasons import NoHitReason
from app.designs.criteria import Criterion, LabelledCampaign
from app.designs.remarks import CommentRequest, RemarkTarget
from app.designs.schema import ValueSchema


class HitItemSchema(BaseModel):
    id: str
    text: str


class HitCriterionSchema(BaseModel):
    """One of the questions about each item."""

    name: str
    question: str
    low_label: str
    middle_label: str | None
    high_label: str
    values: ValueSchema

    @classmethod
    def from_criterion(cls, criterion: Criterion[LabelledCampaign]) -> Self:
        return cls(
            name=criterion.name,
            question=criterion.question,
            low_label=criterion.low_label,
            middle_label=criterion.middle_label,
            high_label=criterion.high_label,
            values=ValueSchema.from_design(criterion.design),
        )


class HitSchema(BaseModel):
    id: int
    items: list[HitItemSchema] = Field(description="In the order to show them in, which is random.")
    source: str | None = Field(description="The source text, if the items are outputs of systems.")
    reference: str | None = Field(description="An example of a good output, if the items are outputs of systems.")
    values: ValueSchema = Field(description="The values to give for each item; with several criteria, for the first.")
    criteria: list[HitCriterionSchema] = Field(
        description="The criteria, in the order to ask this annotator; empty if the campaign has only one question."
    )
    reasons: list[str] | None = Field(
        description="Reasons to choose from if an item cannot be judged; empty if no reason is asked for; null if the "
        "campaign wants a value for every item."
    )
    comment_on: RemarkTarget = Field(description="What the annotator may comment on.")
    comment_request: CommentRequest | None = Field(
        description="`required`: an answer without the comments of `comment_on` is refused (`comment_missing`); an "
        "item without a value needs none. `asked`: an open field, which may stay empty. Null if comments are off."
    )
    comment_question: str | None = Field(
        description="The question to show above an open field for the comment; null if comments are not asked for."
    )
    flag_on: RemarkTarget = Field(description="What the annotator may flag as wrong.")
    flag_reasons: list[str] | None = Field(
        description="Reasons to choose from for a flag; empty if no reason is asked for; null if flags are off."
    )
    block_notice: str = Field(
        description="A text to show before the first task of a block of conditions, about a pause; else empty."
    )
    expires_at: datetime = Field(description="The items are held for this annotator until this time.")


class NextHitSchema(BaseModel):
    """A HIT, or the reason why there is none."""

    hit: HitSchema | None
    reason: NoHitReason | None = Field(
        description="Why there is no HIT. After `wait` and `paused`, ask again later; after other reasons, stop."
    )


class ReceiptSchema(BaseModel):
    hit: int
    seq: int = Field(description="The response's number; a replay applies responses in this order.")
    repeated: bool = Field(description="True if the HIT already had an answer, so this request changed nothing.")
