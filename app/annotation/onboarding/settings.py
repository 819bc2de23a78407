"""Settings of a campaign for onboarding."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from app.annotation.onboarding.entry_questions import parse_question_lines
from app.designs.criteria import AskedCampaign
from app.designs.criteria_settings import CriterionSettings
from app.designs.field_flags import EDITABLE, PRIVATE, InputModel, OneLine

MAX_TABLE_CHARACTERS = 100_000
QuestionLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=3_000)]


class VisitSettings(InputModel):
    """Onboarding settings; each is a column of the campaign."""

    open_link: bool = Field(
        default=True, title="Open link", json_schema_extra=EDITABLE,
        description="Everyone with the campaign’s link can take part. Off: only people with a personal link, or from "
        "a platform.",
    )  # fmt: skip
    open_platforms: bool | None = Field(
        default=None, title="Links for platforms", json_schema_extra=EDITABLE,
        description="Platforms send people by links with an id that proves nothing: anyone who knows the campaign’s "
        "address can make one up. Closed: these links admit no new people. Without a choice they are open as long as "
        "the open link is open and no passphrase is set.",
    )  # fmt: skip
    passphrase: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="", title="Passphrase of the open link", json_schema_extra=EDITABLE | PRIVATE,
        description="Optional. Visitors of the open link must enter it. It is stored in plain text, so that you can "
        "look it up; do not use one of your own passwords.",
    )  # fmt: skip
    people_per_address: Annotated[int, Field(ge=1, le=2_000)] | None = Field(
        default=None, title="People from one network address", json_schema_extra=EDITABLE,
        description="Optional. How many new people may use the open link from one network address at once, and then "
        "in each hour. A class or an office often shares one address: enter the number of its people. Empty: the "
        "server’s limit, usually 60.",
    )  # fmt: skip
    welcome: bool = Field(
        default=True, title="Welcome page",
        description="Before the first HIT, people from a platform see a page with the task, the pay and an example. "
        "Visitors of the open link always see it.",
    )  # fmt: skip
    consent: Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)] = Field(
        default="", title="Consent", json_schema_extra=EDITABLE,
        description="Markdown. Annotators must agree to it before they get a HIT; the version that each agreed to is "
        "kept. If you change it later, they are asked again before the next HIT. Empty: no one is asked.",
    )  # fmt: skip
    questions: Annotated[list[QuestionLine], Field(max_length=20)] = Field(
        default=[], title="Questions asked once",
        description="Optional, one per line, for example: native_language: What is your native language? | English | "
        "German | another. Without choices the answer is free text; a question mark after the name makes it optional. "
        "Exports have the answers, and the analysis uses them as groups.",
    )  # fmt: skip

    training: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TABLE_CHARACTERS)] = Field(
        default="", title="Training",
        description="Optional. A table, as from a spreadsheet, with a header: text, expected, and optionally "
        "tolerance, explanation and set. People answer these sets, see the expected answers and the explanations, and "
        "repeat each set until it is right. These answers do not count.",
    )  # fmt: skip
    qualification: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TABLE_CHARACTERS)] = Field(
        default="", title="Qualification",
        description="Optional. A table in the same format, used as a test that people must pass before they may work.",
    )  # fmt: skip
    pass_percent: int = Field(
        default=80, ge=1, le=100, title="Pass mark (%)",
        description="Percentage of the qualification’s expected answers that people must give.",
    )  # fmt: skip
    qualification_tries: int = Field(
        default=1, ge=1, le=10, title="Tries of the qualification",
        description="After this many failed tries, people get no HIT and see a kind page.",
    )  # fmt: skip

    @field_validator("questions", mode="before")
    @classmethod
    def split_question_lines(cls, questions: object) -> object:
        """Split a text into lines, as forms and the command line send it."""
        return [line for line in questions.splitlines() if line.strip()] if isinstance(questions, str) else questions

    @field_validator("questions")
    @classmethod
    def check_question_lines(cls, questions: list[str]) -> list[str]:
        parse_question_lines(questions)
        return questions


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
