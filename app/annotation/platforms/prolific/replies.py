"""Replies of Prolific's API: their shapes, and what a reply that is no success means."""

import re
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, Field, ValidationError

from app.annotation.platforms.service import (
    CallNotMade,
    CallOutcomeUnknown,
    CallRefused,
    Submission,
    SubmissionStatus,
    clean_service_document,
)

MAX_DETAIL_CHARACTERS = 300
PROLIFIC_ID_PATTERN = r"(?<![0-9a-fA-F])[0-9a-fA-F]{24}(?![0-9a-fA-F])"
STATUS_BY_PROLIFIC_NAME: dict[str, SubmissionStatus] = {
    "RESERVED": "reserved",
    "ACTIVE": "active",
    "AWAITING REVIEW": "awaiting",
    "APPROVED": "approved",
    "PARTIALLY APPROVED": "partially_approved",
    "REJECTED": "rejected",
    "RETURNED": "returned",
    "TIMED OUT": "timed_out",
    "SCREENED OUT": "screened_out",
}


class SubmissionReply(BaseModel):
    """The part of a submission that Easel reads; network addresses are left out."""

    id: str
    participant_id: str = ""
    participant: str = ""
    study_id: str = ""
    study: str = ""
    status: str
    bonus_payments: list[int] | None = None
    reward: float | None = None

    def to_submission(self, study: str = "") -> Submission:
        return Submission(
            self.id,
            self.participant_id or self.participant,
            self.study_id or self.study or study,
            STATUS_BY_PROLIFIC_NAME.get(self.status.upper().replace("-", " ").replace("_", " "), "other"),
            None if self.bonus_payments is None else tuple(self.bonus_payments),
            round(self.reward) if self.reward else None,
        )


class SubmissionPage(BaseModel):
    results: list[SubmissionReply]


class RecommendationReply(BaseModel):
    min_reward_per_hour: int
    recommended_reward_per_hour: int


class StudyReply(BaseModel):
    status: str
    reward: int
    total_available_places: int


class MoneyReply(BaseModel):
    amount: float
    currency: str = ""


class RewardsCostReply(BaseModel):
    rewards: MoneyReply
    fees: MoneyReply
    tax: MoneyReply


class CostReply(BaseModel):
    rewards: RewardsCostReply


class TestStudyReply(BaseModel):
    study_id: str
    study_url: str = Field(pattern=r"^https://")


class SecretReply(BaseModel):
    value: str = Field(min_length=1)


class SecretsReply(BaseModel):
    results: list[SecretReply]


class SubscriptionReply(BaseModel):
    id: str = Field(min_length=1)
    event_type: str = ""
    target_url: str = ""
    is_enabled: bool = False


class SubscriptionsReply(BaseModel):
    results: list[SubscriptionReply]


class CreatedReply(BaseModel):
    id: str = Field(min_length=1)


class BalanceReply(BaseModel):
    currency_code: str = ""
    available_balance: int


R = TypeVar("R", bound=BaseModel)  # Python 3.11 has no other way


def seconds_to_wait_or_none(reply: httpx.Response) -> float | None:
    """Return after how many seconds the service wants the next call; None if it does not say, or had no problem."""
    text = reply.headers.get("retry-after", "").strip() if reply.status_code == 429 else ""
    if text.isascii() and text.isdigit() and len(text) < 7:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, TypeError):
        return None


def read_document(reply: httpx.Response, ids: Sequence[str] = ()) -> Any:
    """Return the JSON of a reply, None if it is empty.

    Args:
        reply: The reply.
        ids: Ids of people's submissions in the call, which no message may have.

    Raises:
        CallRefused: The API refused the call (4xx).
        CallNotMade: There were too many calls (429).
        CallOutcomeUnknown: It failed (5xx), or its reply cannot be read.

    """
    status = reply.status_code
    if status == 429:
        wait = seconds_to_wait_or_none(reply)
        message = "Prolific got too many calls. Easel tries again later."
        raise CallNotMade(message, status, retry_after_seconds=wait)
    if status == 401:
        raise CallRefused("Prolific does not accept the token. Enter a new one.", status)
    if 400 <= status < 500 and status != 408:
        raise CallRefused(
            f"Prolific refused this ({status}): {hide_ids(error_detail_text(reply), ids)[:MAX_DETAIL_CHARACTERS]}",
            status,
        )
    if not 200 <= status < 300:
        raise CallOutcomeUnknown(f"Prolific failed with status {status}.", status)
    try:
        return clean_service_document(reply.json()) if reply.content else None
    except ValueError:
        raise CallOutcomeUnknown("Prolific sent a reply that is not JSON.", status) from None


def error_detail_text(reply: httpx.Response) -> str:
    """Return the reason in a reply, which is in one of three shapes: an error object, a message, or plain text."""
    try:
        document = reply.json()
    except ValueError:
        return reply.text.strip() or "no reason was given."
    parts = document.get("error", document) if isinstance(document, dict) else {}
    if not isinstance(parts, dict):
        parts = {"detail": parts}
    detail = parts.get("detail") or parts.get("message") or parts.get("title") or "no reason was given."
    return str(detail)


def hide_ids(text: str, ids: Sequence[str]) -> str:
    """Return a text without Prolific's ids of people and things, and without those that were sent to it."""
    sent = [rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in ids if name]
    return re.sub("|".join([PROLIFIC_ID_PATTERN, *sent]), "(id)", text)


def validate_reply_or_raise(shape: type[R], document: Any) -> R:
    """Return a reply in its shape. Raises `CallOutcomeUnknown` if it has another one."""
    try:
        return shape.model_validate(document)
    except ValidationError:
        raise CallOutcomeUnknown("Prolific sent a reply that Easel cannot read.") from None
