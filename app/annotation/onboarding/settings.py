"""What a researcher decides about the way to the work."""

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from app.annotation.onboarding.entry_questions import parse_question_lines
from app.field_flags import EDITABLE, PRIVATE, InputModel, OneLine

MAX_TABLE_CHARACTERS = 100_000  # characters of a table
QuestionLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=3_000)]


class VisitSettings(InputModel):
    """A column of a campaign for each."""

    open_link: bool = Field(
        default=True, title="Open link", json_schema_extra=EDITABLE,
        description="Whoever has the campaign’s link can take part. Off: only people with a personal link, or from a "
        "platform.",
    )  # fmt: skip
    open_platforms: bool | None = Field(
        default=None, title="Links for platforms", json_schema_extra=EDITABLE,
        description="Platforms send people by links of their own, with an id that proves nothing: whoever knows the "
        "campaign’s address can make one up. Closed: nobody new comes by these links. Without a choice they are open "
        "as long as the open link is, and no passphrase is set.",
    )  # fmt: skip
    passphrase: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="", title="Passphrase of the open link", json_schema_extra=EDITABLE | PRIVATE,
        description="Optional. Whoever comes by the open link must know it. It is stored as you enter it, so that you "
        "can look it up; do not use one of your own passwords.",
    )  # fmt: skip
    people_per_address: Annotated[int, Field(ge=1, le=2_000)] | None = Field(
        default=None, title="People from one network address", json_schema_extra=EDITABLE,
        description="Optional. How many new people may come by the open link from one network address at once, and "
        "then in each hour. A class or an office often shares one: enter how many they are. Empty: what the server "
        "allows, usually 60.",
    )  # fmt: skip
    welcome: bool = Field(
        default=True, title="Welcome page",
        description="Who comes from a platform first sees what it is, what it pays and an example. Who comes by link "
        "always does.",
    )  # fmt: skip
    consent: Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)] = Field(
        default="", title="Consent", json_schema_extra=EDITABLE,
        description="Markdown. Nobody gets a HIT before they agree to it; who agreed to which version is kept. Changed "
        "later, it is asked again before the next HIT. Empty: nobody is asked.",
    )  # fmt: skip
    questions: Annotated[list[QuestionLine], Field(max_length=20)] = Field(
        default=[], title="Questions asked once",
        description="Optional, one per line, for example: native_language: What is your native language? | English | "
        "German | another. Without choices the answer is free text; a question mark behind the name lets people leave "
        "it empty. Answers are in the exports, and are groups in the analysis.",
    )  # fmt: skip

    training: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TABLE_CHARACTERS)] = Field(
        default="", title="Training",
        description="Optional. A table, as from a spreadsheet, with a header: text, expected, and if you like "
        "tolerance, explanation and set. People answer these sets, see what was expected and why, and try each again "
        "until they have it. Nothing of it counts.",
    )  # fmt: skip
    qualification: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TABLE_CHARACTERS)] = Field(
        default="", title="Qualification",
        description="Optional. Such a table of sets by which people are tested before they may work.",
    )  # fmt: skip
    pass_percent: int = Field(
        default=80, ge=1, le=100, title="Pass mark (%)",
        description="Of what the qualification expects, so many of a hundred must be so.",
    )  # fmt: skip
    qualification_tries: int = Field(
        default=1, ge=1, le=10, title="Tries of the qualification",
        description="Who fails so often gets no HIT, and a kind page.",
    )  # fmt: skip

    @field_validator("questions", mode="before")
    @classmethod
    def split_question_lines(cls, questions: object) -> object:
        """A text of lines, as forms and the command line send it."""
        return [line for line in questions.splitlines() if line.strip()] if isinstance(questions, str) else questions

    @field_validator("questions")
    @classmethod
    def check_question_lines(cls, questions: list[str]) -> list[str]:
        """Raises ValueError."""
        parse_question_lines(questions)
        return questions
