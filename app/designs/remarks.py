"""Remarks that annotators add to their answers, where the campaign allows them.

A remark is a comment on a HIT or an item, or a flag that something is wrong with it, with a reason from a list. No law
reads remarks, and they make no answer worth less: if a page sends a remark after its campaign has stopped asking for
it, the remark is dropped and the answer counts.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field, StringConstraints, field_validator

from app.designs.field_flags import EDITABLE, InputModel, OneLine, is_blank
from app.errors import Invalid, join_names, join_with_and

RemarkTarget = Literal["none", "HIT", "items", "both"]
CommentRequest = Literal["offered", "asked", "required"]
MAX_QUESTION_CHARS = 200  # of the question above an open comment
CommentQuestion = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_QUESTION_CHARS), OneLine]
DEFAULT_COMMENT_QUESTION = "Why?"
MAX_FLAG_CHARS = 80  # of a reason
FlagReason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_FLAG_CHARS), OneLine]

WHOLE_HIT = "hit"  # what a remark is about that is about no item
COMMENT_PREFIX, FLAG_PREFIX = "comment-", "flag-"  # begin the fields of a form
FLAG_WITHOUT_REASON = "wrong"  # what a form sends where the list of reasons is empty
REMARKS_KEY = "remarks"  # what `responses.extra` calls them: by what each is about, its comment and flag
MAX_COMMENT_CHARS = 500  # characters
DEFAULT_FLAG_REASONS = [
    "It is broken or incomplete",
    "It is offensive",
    "It reveals a person’s identity",
    "Another reason",
]


class RemarkSettings(InputModel):
    """Settings of a campaign for remarks."""

    comment_on: RemarkTarget = Field(
        default="none", title="Comments", json_schema_extra=EDITABLE,
        description="Let annotators comment, or give the reason for their answer.",
    )  # fmt: skip
    comment_request: CommentRequest = Field(
        default="offered", title="How comments are asked for", json_schema_extra=EDITABLE,
        description="Only with comments. An open field asks every annotator; an item that cannot be judged needs none.",
    )  # fmt: skip
    comment_question: CommentQuestion = Field(
        default="", title="Question for the comment", json_schema_extra=EDITABLE,
        description="Shown above an open field. Empty: “Why?”, in the language of the page.",
    )  # fmt: skip
    flag_on: RemarkTarget = Field(
        default="none", title="Flags", json_schema_extra=EDITABLE,
        description="Let annotators report a problem. They still answer.",
    )  # fmt: skip
    flag_reasons: Annotated[list[FlagReason], Field(max_length=20)] = Field(
        default=DEFAULT_FLAG_REASONS, title="Reasons for a flag", json_schema_extra=EDITABLE,
        description="One per line, up to 20. Empty: a flag needs no reason.",
    )  # fmt: skip
    flag_people: int = Field(
        default=2, ge=1, le=1_000, title="Flags that raise an alert", json_schema_extra=EDITABLE,
        description="Alert me once this many people have flagged the same item.",
    )  # fmt: skip

    @field_validator("flag_reasons", mode="before")
    @classmethod
    def split_flag_lines(cls, text_or_reasons: object) -> object:
        """Return the lines of a text that are not blank; return any other value unchanged."""
        return (
            [line for line in text_or_reasons.splitlines() if line.strip()]
            if isinstance(text_or_reasons, str)
            else text_or_reasons
        )

    @field_validator("flag_reasons")
    @classmethod
    def require_distinct_flags(cls, reasons: list[str]) -> list[str]:
        """Refuse reasons that occur twice. Raises ValueError."""
        if len(set(reasons)) < len(reasons):
            raise ValueError("each reason can appear only once")
        return reasons


@dataclass(frozen=True)
class Remark:
    """A comment on, or a flag of, a HIT or an item.

    `flag` is the reason, empty where there is no list of reasons, and None without a flag.
    """

    comment: str = ""
    flag: str | None = None


def parse_remarks_by_subject(form: Mapping[str, str], items: Sequence[int]) -> dict[str, Remark]:
    """Return the remarks in a form's fields `comment-NAME`, `flag-NAME` and `comment-hit`, by subject.

    The subject is the name of an item, or `WHOLE_HIT`. Empty fields are no remarks. Raises `Invalid`
    (`comment_too_long`).
    """
    if not any(field.startswith((COMMENT_PREFIX, FLAG_PREFIX)) for field in form):
        return {}
    remarks = {about: parse_remark_from_form(form, about) for about in (WHOLE_HIT, *map(str, items))}
    return {about: remark for about, remark in remarks.items() if remark != Remark()}


def parse_remark_from_form(form: Mapping[str, str], subject: str) -> Remark:
    comment = form.get(f"{COMMENT_PREFIX}{subject}", "")
    return Remark(
        comment_without_invisible_characters_or_refuse(comment) if comment else "",
        form.get(f"{FLAG_PREFIX}{subject}", "").strip() or None,
    )


def comment_without_invisible_characters_or_refuse(comment: str) -> str:
    """Return a comment without invisible characters. Raises `Invalid` (`comment_too_long`)."""
    visible = text_without_control_characters(comment)
    if len(visible) > MAX_COMMENT_CHARS:
        raise Invalid(
            f"A comment has at most {MAX_COMMENT_CHARS} characters, and one of yours has {len(visible):,}. What you "
            "entered is kept.",
            code="comment_too_long",
        )
    return visible


def text_without_control_characters(text: str) -> str:
    lines = text.replace("\r\n", "\n")
    return "".join(one for one in lines if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cs")).strip()


def does_remark_target_include_subject(target: RemarkTarget, subject: str) -> bool:
    """Return whether annotators are asked about this subject, a HIT or an item."""
    return target in ("both", "HIT" if subject == WHOLE_HIT else "items")


class CommentAsking(Protocol):
    """The settings by which annotators are asked for comments."""

    @property
    def comment_on(self) -> RemarkTarget: ...
    @property
    def comment_request(self) -> CommentRequest | None: ...
    @property
    def comment_question(self) -> str | None: ...


def are_comments_asked(campaign: CommentAsking) -> bool:
    """Return whether the page shows an open field for a comment, which may be required."""
    return campaign.comment_on != "none" and campaign.comment_request in ("asked", "required")


def comment_request_or_none(campaign: CommentAsking) -> CommentRequest | None:
    """Return how comments are asked for; None if they are off. A campaign from before this setting offers them."""
    return None if campaign.comment_on == "none" else campaign.comment_request or "offered"


def asked_comment_question_or_none(campaign: CommentAsking) -> str | None:
    """Return the question above an open comment, or None if comments are not asked for. Easel's own is in English."""
    return (campaign.comment_question or DEFAULT_COMMENT_QUESTION) if are_comments_asked(campaign) else None


def refuse_missing_comments(
    campaign: CommentAsking, remarks: Mapping[str, Remark], judged_items: Sequence[int]
) -> None:
    """Refuse an answer without a required comment. An item that was not judged needs none, nor does a HIT without one
    that was.

    Args:
        campaign: The campaign.
        remarks: Comments by item number, or `WHOLE_HIT`.
        judged_items: Numbers under which the HIT shows the items and checks that have a value.

    Raises:
        Invalid: `comment_missing`.

    """
    if campaign.comment_request != "required" or not judged_items:
        return
    subjects = [
        about
        for about in (WHOLE_HIT, *map(str, judged_items))
        if does_remark_target_include_subject(campaign.comment_on, about)
    ]
    missing = [about for about in subjects if is_blank(remarks.get(about, Remark()).comment)]
    if not missing:
        return
    places = (["the whole task"] if WHOLE_HIT in missing else []) + (["every item"] if missing != [WHOLE_HIT] else [])
    raise Invalid(
        f"Please answer “{campaign.comment_question or DEFAULT_COMMENT_QUESTION}” for {join_with_and(places)}. "
        "What you entered is kept.",
        code="comment_missing",
    )


def numbers_with_value(numbers: Sequence[int], values: Sequence[float]) -> list[int]:
    """Return the numbers of items that were judged, by their values."""
    return [number for number, value in zip(numbers, values, strict=True) if not math.isnan(value)]


class RemarkOffer(Protocol):
    """The settings by which annotators may comment on HITs and items, and flag them."""

    @property
    def comment_on(self) -> RemarkTarget: ...
    @property
    def flag_on(self) -> RemarkTarget: ...
    @property
    def flag_reasons(self) -> Sequence[str]: ...


def drop_unoffered_remarks(campaign: RemarkOffer, remarks: Mapping[str, Remark]) -> dict[str, Remark]:
    """Return the remarks that the campaign asks for."""
    reasons = {reason: reason for reason in campaign.flag_reasons} or {FLAG_WITHOUT_REASON: "", "": ""}
    offered_remarks = {
        about: Remark(
            remark.comment if does_remark_target_include_subject(campaign.comment_on, about) else "",
            reasons.get(remark.flag)
            if remark.flag is not None and does_remark_target_include_subject(campaign.flag_on, about)
            else None,
        )
        for about, remark in remarks.items()
    }
    return {about: remark for about, remark in offered_remarks.items() if remark != Remark()}


def refuse_unoffered_remarks(campaign: RemarkOffer, remarks: Mapping[str, Remark]) -> None:
    """Raise `Invalid` for remarks that the campaign does not ask for: `remark_not_offered`, `reason_unknown`."""
    for about, remark in remarks.items():
        where = "Tasks" if about == WHOLE_HIT else "items"
        if remark.comment and not does_remark_target_include_subject(campaign.comment_on, about):
            raise Invalid(
                f"This campaign does not take comments on {where}. Nothing was stored.", code="remark_not_offered"
            )
        if remark.flag is not None and not does_remark_target_include_subject(campaign.flag_on, about):
            raise Invalid(
                f"This campaign does not take flags on {where}. Nothing was stored.", code="remark_not_offered"
            )
    if drop_unoffered_remarks(campaign, remarks) != remarks:
        expected = f"one of {join_names(campaign.flag_reasons)}" if campaign.flag_reasons else "left empty"
        raise Invalid(f"The reason for a flag must be {expected}. Nothing was stored.", code="reason_unknown")


def stored_remarks_or_empty(remarks: Mapping[str, Remark]) -> dict[str, dict[str, dict[str, str]]]:
    """Return the remarks as they are stored with an answer; empty where there are none."""
    stored = {
        about: ({"comment": remark.comment} if remark.comment else {})
        | ({"flag": remark.flag} if remark.flag is not None else {})
        for about, remark in remarks.items()
    }
    return {REMARKS_KEY: stored} if stored else {}


def form_fields_of_stored_remarks(stored: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for about, told in stored.items():
        fields |= {f"{COMMENT_PREFIX}{about}": told["comment"]} if "comment" in told else {}
        fields |= {f"{FLAG_PREFIX}{about}": told["flag"] or FLAG_WITHOUT_REASON} if "flag" in told else {}
    return fields
