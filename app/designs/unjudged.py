"""Items that annotators cannot judge, where their campaign lets them say so, with a reason from its list."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol

from pydantic import Field, StringConstraints, field_validator

from app.designs.answer import Answer
from app.designs.field_flags import InputModel, OneLine
from app.errors import Invalid, join_names

UnjudgedReason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine]

UNJUDGED_PREFIX = "unjudged-"
UNJUDGED_WITHOUT_REASON = "yes"  # what a form sends where the list of reasons is empty
UNJUDGED_CHECKS_KEY = "checks_cannot_be_judged"  # the same by the number of a check, for the annotator's own page alone
UNJUDGED_KEY = (
    "cannot_be_judged"  # what `responses.extra` calls it: by item number the reason, empty where there are none
)
DEFAULT_UNJUDGED_REASONS = [
    "I do not understand it",
    "It is broken or incomplete",
    "It is in another language",
    "Another reason",
]


class UnjudgedSettings(InputModel):
    """Settings of a campaign for items that cannot be judged."""

    cannot_be_judged: bool = Field(
        default=False, title="Offer “cannot be judged”",
        description="Let annotators say that an item cannot be judged. They then give it no score.",
    )  # fmt: skip
    unjudged_reasons: Annotated[list[UnjudgedReason], Field(max_length=20)] = Field(
        default=DEFAULT_UNJUDGED_REASONS,
        title="Reasons why an item cannot be judged",
        description="One per line, up to 20. Empty: annotators need not give a reason.",
    )
    unjudged_people: int = Field(
        default=2, ge=1, le=1_000, title="People needed to drop an item",
        description="Drop an item after this many people said it cannot be judged.",
    )  # fmt: skip

    @field_validator("unjudged_reasons", mode="before")
    @classmethod
    def split_unjudged_reason_lines(cls, text_or_reasons: object) -> object:
        """Return the lines of a text that are not blank; return any other value unchanged."""
        return (
            [line for line in text_or_reasons.splitlines() if line.strip()]
            if isinstance(text_or_reasons, str)
            else text_or_reasons
        )

    @field_validator("unjudged_reasons")
    @classmethod
    def require_distinct_unjudged_reasons(cls, reasons: list[str]) -> list[str]:
        """Refuse reasons that occur twice."""
        if len(set(reasons)) < len(reasons):
            raise ValueError("each reason can appear only once")
        return reasons


class UnjudgedOffer(Protocol):
    """The settings by which annotators may leave items unjudged."""

    @property
    def cannot_be_judged(self) -> bool: ...
    @property
    def unjudged_reasons(self) -> Sequence[str]: ...


def parse_unjudged_reasons_by_item(form: Mapping[str, str], items: Sequence[int]) -> dict[int, str]:
    """Return the reasons in a form's fields `unjudged-NAME`, by item; empty fields are no reasons."""
    reasons = {item: form.get(f"{UNJUDGED_PREFIX}{item}", "").strip() for item in items}
    return {item: reason for item, reason in reasons.items() if reason}


def refuse_unoffered_unjudged_reasons(campaign: UnjudgedOffer, answer: Answer, items: Sequence[int]) -> None:
    """Raise `Invalid` for reasons that the campaign does not offer: `reason_missing`, `reason_unknown`, and `invalid`,
    as for any other invalid value.
    """
    for item, reason in answer.unjudged.items():
        if not campaign.cannot_be_judged:
            message = "In this campaign every item is judged. Nothing was stored."
            raise Invalid(message, code="invalid", fields={"values": message})
        if reason in (campaign.unjudged_reasons or ("", UNJUDGED_WITHOUT_REASON)):
            continue
        place = items.index(item) + 1 if item in items else 0
        expected = f"one of {join_names(campaign.unjudged_reasons)}" if campaign.unjudged_reasons else "left out"
        raise Invalid(
            f"The reason why item {place} cannot be judged must be {expected}. What you entered is kept.",
            code="reason_unknown" if reason else "reason_missing",
            position=place,
        )


def stored_unjudged_reasons_or_empty(campaign: UnjudgedOffer, answer: Answer) -> dict[str, dict[str, str]]:
    """Return the unjudged items as they are stored with an answer; empty where there are none."""
    reasons_by_key = {UNJUDGED_KEY: answer.unjudged, UNJUDGED_CHECKS_KEY: answer.unjudged_checks}
    return {
        name: {str(number): reason if campaign.unjudged_reasons else "" for number, reason in reasons.items()}
        for name, reasons in reasons_by_key.items()
        if reasons
    }
