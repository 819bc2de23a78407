"""Settings of a campaign for onboarding."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from app.annotation.onboarding.entry_questions import parse_question_lines
from app.annotation.onboarding.quotas import MAX_QUOTAS, parse_quota_lines
from app.designs.campaign import Campaign
from app.designs.criteria import AskedCampaign
from app.designs.criteria_settings import CriterionSettings
from app.designs.field_flags import EDITABLE, PRIVATE, InputModel, OneLine

MAX_TABLE_CHARACTERS = 100_000
MAX_CONSENT_CHARACTERS = 20_000
MAX_OTHER_CAMPAIGNS = 50
CampaignNames = Annotated[
    list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]],
    Field(max_length=MAX_OTHER_CAMPAIGNS),
]
QuestionLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=3_000)]

QuotaLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=700)]


class VisitSettings(InputModel):
    """Onboarding settings of a campaign."""

    open_link: bool = Field(
        default=True, title="Open link", json_schema_extra=EDITABLE,
        description="Let everyone with the campaign’s link take part.",
    )  # fmt: skip
    open_platforms: bool | None = Field(
        default=None, title="Platform links", json_schema_extra=EDITABLE,
        description="Let new people use the links for platforms. Anyone who knows such a link can invent an ID.",
    )  # fmt: skip
    passphrase: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="", title="Passphrase of the open link", json_schema_extra=EDITABLE | PRIVATE,
        description="Visitors to the open link must enter it. Do not use one of your own passwords.",
    )  # fmt: skip
    people_per_address: Annotated[int, Field(ge=1, le=2_000)] | None = Field(
        default=None, title="New people per network address", json_schema_extra=EDITABLE,
        description="This many new people can start at once, for example a class in one school, and then as many per "
        "hour. Empty: the server’s limit, usually 60.",
    )  # fmt: skip
    exclude_campaigns: CampaignNames = Field(
        default=[], title="Nobody who took part in", json_schema_extra=EDITABLE,
        description="Campaigns of this server by the names in their URLs, one per line. People who answered a "
        "task there cannot take part.",
    )  # fmt: skip
    only_campaigns: CampaignNames = Field(
        default=[], title="Only people who took part in", json_schema_extra=EDITABLE,
        description="Campaigns of this server by the names in their URLs, one per line. Only people who answered "
        "a task in one of them can take part.",
    )  # fmt: skip
    welcome: bool = Field(
        default=Campaign.welcome, title="Welcome page",
        description="Show people from a platform the task, the pay and an example first. People with the open link "
        "always see it.",
    )  # fmt: skip
    consent: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_CONSENT_CHARACTERS)] = Field(
        default=Campaign.consent, title="Consent", json_schema_extra=EDITABLE,
        description="Markdown that annotators must agree to first. If you change it, they are asked again.",
    )  # fmt: skip
    questions: Annotated[list[QuestionLine], Field(max_length=20)] = Field(
        default=[], title="Questions asked once",
        description="One per line, for example: native_language: What is your native language? | English | German | "
        "screen out: another; or: age: How old are you? | number from 0 to 120 | screen out: under 18",
    )  # fmt: skip

    quotas: Annotated[list[QuotaLine], Field(max_length=MAX_QUOTAS)] = Field(
        default=[], title="Quotas", json_schema_extra=EDITABLE,
        description="How many people may give an answer, one quota per line, such as: native_language = German: "
        "50",
    )  # fmt: skip
    training: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TABLE_CHARACTERS)] = Field(
        default=Campaign.training, title="Training",
        description="Practice items with answers: a table with the columns text and expected. People go on only "
        "when each answer is as expected or within its tolerance. These answers do not count.",
    )  # fmt: skip
    qualification: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TABLE_CHARACTERS)] = Field(
        default=Campaign.qualification, title="Qualification",
        description="Items that people must pass first, in the format of the training.",
    )  # fmt: skip
    pass_percent: int = Field(
        default=Campaign.pass_percent, ge=1, le=100, title="Pass mark (%)",
        description="Share of correct answers needed to pass.",
    )  # fmt: skip
    qualification_tries: int = Field(
        default=Campaign.qualification_tries, ge=1, le=10, title="Attempts at the qualification",
        description="After this many failed attempts, people are thanked and cannot take part.",
    )  # fmt: skip

    @field_validator("questions", "quotas", "exclude_campaigns", "only_campaigns", mode="before")
    @classmethod
    def split_text_into_lines(cls, lines: object) -> object:
        """Split a text into lines, as forms and the command line send it."""
        return [line for line in lines.splitlines() if line.strip()] if isinstance(lines, str) else lines

    @field_validator("questions")
    @classmethod
    def require_valid_question_lines(cls, questions: list[str]) -> list[str]:
        parse_question_lines(questions)
        return questions

    @field_validator("quotas")
    @classmethod
    def require_valid_quota_lines(cls, quotas: list[str], info: ValidationInfo) -> list[str]:
        if "questions" in info.data:
            parse_quota_lines(quotas, parse_question_lines(info.data["questions"]))
        return quotas


class VisitAndAnswerSettings(AskedCampaign, VisitSettings):
    """Onboarding settings of a campaign, and those by which answers to practice sets are parsed."""

    design_name: str
    design_settings: dict[str, Any]
    criteria_settings: list[CriterionSettings]
    seed: int
    items_per_hit: int
    cannot_be_judged: bool
    unjudged_reasons: list[str]


# Columns of the settings that have another name there.
COLUMN_BY_ANSWERING_SETTING = {"design_name": "design", "criteria_settings": "criteria"}
