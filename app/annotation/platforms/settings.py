"""Settings of a campaign for working time, pay, and the way back to the platform."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

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
    """Settings for annotators' work; each is a column of the campaign."""

    minutes_per_hit: Minutes | None = Field(
        default=None, title="Minutes per HIT", json_schema_extra=EDITABLE,
        description="Optional. How long one HIT takes, shown before annotators start and above each HIT.",
    )  # fmt: skip
    pay: PayText | None = Field(
        default=None, title="Pay", json_schema_extra=EDITABLE,
        description="Optional. Pay for one HIT, in your words, for example: $0.35 per HIT. Shown next to the minutes; "
        "Easel does not pay annotators.",
    )  # fmt: skip
    pay_per_hit: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        default=None, title="Pay per HIT, as a number", json_schema_extra=EDITABLE,
        description="Optional. With it annotators see their earnings so far, and you see the pay per hour.",
    )  # fmt: skip
    currency: Currency = Field(
        default="USD", title="Currency", json_schema_extra=EDITABLE, description="Currency of the pay."
    )
    in_short: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="", title="In short", json_schema_extra=EDITABLE,
        description="Optional. The instructions in one line, shown above every HIT.",
    )  # fmt: skip
    leave_early: bool = Field(
        default=False, title="People may leave early", json_schema_extra=EDITABLE,
        description="Show a button to finish after any HIT, even if there is a number of HITs per annotator. Without "
        "such a number, people from a platform can always leave.",
    )  # fmt: skip
    undo: bool = Field(
        default=True, title="People may change their last answers", json_schema_extra=EDITABLE,
        description="Until they submit the next HIT, from pages that ask for one HIT after another. Both answers are "
        "kept, and the newer one counts.",
    )  # fmt: skip
    break_minutes: Annotated[int, Field(ge=5, le=240)] | None = Field(
        default=None, title="Remind of a break (minutes)", json_schema_extra=EDITABLE,
        description="Optional. After this many minutes of work, a line suggests a break; one press hides it.",
    )  # fmt: skip
    prolific_completion_code: CompletionCode | None = Field(
        default=None, title="Prolific completion code", json_schema_extra=EDITABLE,
        description="From the study's page on Prolific. Annotators from Prolific return with it when their work is "
        "done.",
    )  # fmt: skip
    return_completed: ReturnCodeOrUrl | None = Field(
        default=None, title="Way back: completed", json_schema_extra=EDITABLE,
        description="Optional. A code that people get when their work is done, or an https address that they return "
        "to.",
    )  # fmt: skip
    return_failed_checks: ReturnCodeOrUrl | None = Field(
        default=None, title="Way back: held by a check", json_schema_extra=EDITABLE,
        description="Optional, the same for people who get no more HITs because of their answers. Empty: they get no "
        "code.",
    )  # fmt: skip
    return_screened_out: ReturnCodeOrUrl | None = Field(
        default=None, title="Way back: screened out", json_schema_extra=EDITABLE,
        description="Optional, the same for people who did not qualify. Empty: they get no code.",
    )  # fmt: skip
    return_nothing_left: ReturnCodeOrUrl | None = Field(
        default=None, title="Way back: nothing left", json_schema_extra=EDITABLE,
        description="Optional, the same for people who came when there was nothing left to answer. Empty: they get no "
        "code.",
    )  # fmt: skip


RETURN_SETTING_NAMES = [
    name for name in CrowdSettings.model_fields if name.startswith("return_") or name.endswith("_code")
]
