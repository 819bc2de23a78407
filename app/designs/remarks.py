"""What annotators say beside their answers, where their campaign lets them: a comment on a HIT or an item, and that
something is wrong with it, with a reason from a list.

No law reads it, and no answer is worth less for it: what a page still sends after its campaign has stopped asking for
it is left out, and the answer stands.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from app.errors import Invalid, listed
from app.fields import OPEN, InputModel, OneLine

RemarkOn = Literal["none", "HIT", "items", "both"]
FlagReason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine]

HIT = "hit"  # what a remark is about that is about no item
COMMENT, FLAG = "comment-", "flag-"  # begin the fields of a form
WRONG = "wrong"  # what a form sends where the list of reasons is empty
EXTRA = "remarks"  # what `responses.extra` calls them: by what each is about, its comment and flag
LONGEST_COMMENT = 500  # characters
USUAL_FLAGS = ["It is broken or incomplete", "It is offensive", "It tells who somebody is", "Another reason"]


class RemarkSettings(InputModel):
    """A column of a campaign for each."""

    comment_on: RemarkOn = Field(
        default="none", title="Comments", json_schema_extra=OPEN,
        description="What annotators may comment on, in a text that nobody must write: the HIT as a whole, each of its "
        "items, or both.",
    )  # fmt: skip
    flag_on: RemarkOn = Field(
        default="none", title="Flags", json_schema_extra=OPEN,
        description="Of what annotators may say that something is wrong with it, and still answer: the HIT as a whole, "
        "each of its items, or both. It changes no score.",
    )  # fmt: skip
    flag_reasons: Annotated[list[FlagReason], Field(max_length=20)] = Field(
        default=USUAL_FLAGS, title="What can be wrong", json_schema_extra=OPEN,
        description="One per line, up to 20; annotators choose one. Empty: they need not say what.",
    )  # fmt: skip
    flag_people: int = Field(
        default=2, ge=1, le=1_000, title="People until a flag is an alert", json_schema_extra=OPEN,
        description="Once so many different people have flagged an item, or HITs, an alert says so.",
    )  # fmt: skip

    @field_validator("flag_reasons", mode="before")
    @classmethod
    def one_flag_a_line(cls, reasons: object) -> object:
        """A text of lines, as forms and the command line send it."""
        return [line for line in reasons.splitlines() if line.strip()] if isinstance(reasons, str) else reasons

    @field_validator("flag_reasons")
    @classmethod
    def flags_differ(cls, reasons: list[str]) -> list[str]:
        """Each once. Raises ValueError."""
        if len(set(reasons)) < len(reasons):
            raise ValueError("each reason can be there only once")
        return reasons


@dataclass(frozen=True)
class Remark:
    """What somebody says of a HIT or an item. flag: what is wrong with it, empty where nobody asks what; None where
    nothing is.
    """

    comment: str = ""
    flag: str | None = None


def remarks_in(form: Mapping[str, str], items: Sequence[int]) -> dict[str, Remark]:
    """From a form's fields `comment-NAME`, `flag-NAME` and `comment-hit`, by what each is about: the name of an item,
    or `HIT`. Empty ones say nothing.
    """
    said = {about: remark_in(form, about) for about in (HIT, *map(str, items))}
    return {about: remark for about, remark in said.items() if remark != Remark()}


def remark_in(form: Mapping[str, str], about: str) -> Remark:
    comment = form.get(f"{COMMENT}{about}", "")
    return Remark(seen(comment) if comment else "", form.get(f"{FLAG}{about}", "").strip() or None)


def seen(comment: str) -> str:
    """A comment without characters that nobody sees, as long as one can be."""
    plain = comment.replace("\r\n", "\n")
    kept = (one for one in plain if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cs"))
    return "".join(kept).strip()[:LONGEST_COMMENT]


def asked(on: RemarkOn, about: str) -> bool:
    """Whether annotators are asked about a HIT, or about an item."""
    return on in ("both", "HIT" if about == HIT else "items")


def offered(campaign: Any, remarks: Mapping[str, Remark]) -> dict[str, Remark]:
    """Of what was said, what the campaign asks for."""
    reasons = {reason: reason for reason in campaign.flag_reasons} or {WRONG: "", "": ""}
    told = {
        about: Remark(
            remark.comment if asked(campaign.comment_on, about) else "",
            reasons.get(remark.flag) if remark.flag is not None and asked(campaign.flag_on, about) else None,
        )
        for about, remark in remarks.items()
    }
    return {about: remark for about, remark in told.items() if remark != Remark()}


def refuse_not_offered(campaign: Any, remarks: Mapping[str, Remark]) -> None:
    """Raises `Invalid` for what the campaign does not ask for: `remark_not_offered`, `reason_unknown`."""
    for about, remark in remarks.items():
        where = "HITs" if about == HIT else "items"
        if remark.comment and not asked(campaign.comment_on, about):
            raise Invalid(f"This campaign takes no comments on {where}. Nothing was stored.", code="remark_not_offered")
        if remark.flag is not None and not asked(campaign.flag_on, about):
            raise Invalid(f"This campaign takes no flags on {where}. Nothing was stored.", code="remark_not_offered")
    if offered(campaign, remarks) != remarks:
        known = f"one of {listed(campaign.flag_reasons)}" if campaign.flag_reasons else "left empty"
        raise Invalid(f"What is wrong must be {known}. Nothing was stored.", code="reason_unknown")


def remarks_said(remarks: Mapping[str, Remark]) -> dict[str, dict[str, dict[str, str]]]:
    """As they lie beside the values of an answer; nothing where there are none."""
    told = {
        about: ({"comment": remark.comment} if remark.comment else {})
        | ({"flag": remark.flag} if remark.flag is not None else {})
        for about, remark in remarks.items()
    }
    return {EXTRA: told} if told else {}


def form_of_remarks(stored: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The fields of a form in which somebody said what is stored."""
    fields: dict[str, str] = {}
    for about, told in stored.items():
        fields |= {f"{COMMENT}{about}": told["comment"]} if "comment" in told else {}
        fields |= {f"{FLAG}{about}": told["flag"] or WRONG} if "flag" in told else {}
    return fields
