"""Settings of a campaign for working time, pay, and the way back to the platform."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from app.designs.campaign import Campaign
from app.designs.field_flags import EDITABLE, InputModel, OneLine

Minutes = Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)]
PayText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
COMPLETION_CODE_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
COMPLETION_CODE_MESSAGE = "only letters, digits, _ and - can be in this code, 64 at most"
RETURN_URL_PATTERN = re.compile(r"https://[^\s\"'<>\\]{1,500}")
Currency = Literal["USD", "EUR", "GBP", "JPY", "CNY", "CAD", "AUD", "CHF", "INR", "BRL", "MXN", "SEK", "PLN", "CZK"]


def validate_completion_code(code: str) -> str:
    if not COMPLETION_CODE_PATTERN.fullmatch(code):
        raise ValueError(COMPLETION_CODE_MESSAGE)
    return code


CompletionCode = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_completion_code)]


def validate_code_or_url(code_or_url: str) -> str:
    if COMPLETION_CODE_PATTERN.fullmatch(code_or_url) or RETURN_URL_PATTERN.fullmatch(code_or_url):
        return code_or_url
    raise ValueError("enter a code of letters, digits, _ and -, or an address that begins with https://")


ReturnCodeOrUrl = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_code_or_url)]


class CrowdSettings(InputModel):
    """Settings of a campaign for annotators' work."""

    minutes_per_hit: Minutes | None = Field(
        default=None, title="Minutes per task", json_schema_extra=EDITABLE,
        description="How long one task takes. Shown to annotators.",
    )  # fmt: skip
    pay: PayText | None = Field(
        default=None, title="Pay in your own words", json_schema_extra=EDITABLE,
        description="Shown to annotators instead of the amount, for example: course credit.",
    )  # fmt: skip
    pay_per_hit: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        default=None, title="Pay per task", json_schema_extra=EDITABLE,
        description="Shown to annotators, with what they have earned so far.",
    )  # fmt: skip
    currency: Currency = Field(
        default="USD", title="Currency", json_schema_extra=EDITABLE, description="Currency of the pay."
    )
    in_short: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="", title="Short instructions", json_schema_extra=EDITABLE,
        description="The instructions in one line, shown above every task.",
    )  # fmt: skip
    leave_early: bool = Field(
        default=False, title="People may leave early", json_schema_extra=EDITABLE,
        description="Let people finish after any task, even before their limit.",
    )  # fmt: skip
    undo: bool = Field(
        default=True, title="People may change their last answers", json_schema_extra=EDITABLE,
        description="Let people change an answer until they submit the next task. Both versions are kept.",
    )  # fmt: skip
    break_minutes: Annotated[int, Field(ge=5, le=240)] | None = Field(
        default=None, title="Suggest a break (minutes)", json_schema_extra=EDITABLE,
        description="Suggest a break after this many minutes.",
    )  # fmt: skip
    prolific_completion_code: CompletionCode | None = Field(
        default=Campaign.prolific_completion_code, title="Prolific completion code", json_schema_extra=EDITABLE,
        description="From your study’s page on Prolific. People return with it when they are done.",
    )  # fmt: skip
    return_completed: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_completed, title="Completion code", json_schema_extra=EDITABLE,
        description="Code or https:// address for people who have finished.",
    )  # fmt: skip
    return_failed_checks: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_failed_checks, title="Code for failed checks", json_schema_extra=EDITABLE,
        description="Code or https:// address for people stopped by quality checks.",
    )  # fmt: skip
    return_screened_out: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_screened_out, title="Code for people screened out", json_schema_extra=EDITABLE,
        description="Code or https:// address for people who did not qualify.",
    )  # fmt: skip
    return_nothing_left: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_nothing_left, title="Code if no work is left", json_schema_extra=EDITABLE,
        description="Code or https:// address for people who arrive when all tasks are done.",
    )  # fmt: skip


RETURN_SETTING_NAMES = [
    name for name in CrowdSettings.model_fields if name.startswith("return_") or name.endswith("_code")
]
