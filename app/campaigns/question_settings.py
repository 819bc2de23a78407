"""Settings that a draft begins with: its question, and the name that is made of it."""

import textwrap
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, ValidationInfo, field_validator

from app.campaigns.setting_types import MAX_CAMPAIGN_NAME_CHARACTERS, RequiredText

MAX_DERIVED_NAME_CHARACTERS = 50


class QuestionSettings(BaseModel):
    """The question that annotators answer, and the name of the campaign."""

    question: RequiredText = Field(title="Question", description="What annotators are asked about the items of a task.")
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_CAMPAIGN_NAME_CHARACTERS)] = Field(
        default="",
        title="Name",
        description="Shown to annotators at the top of the page. Empty: the first words of the question.",
    )

    @field_validator("name", mode="before")
    @classmethod
    def fill_in_name(cls, name: object, info: ValidationInfo) -> object:
        is_missing = isinstance(name, str) and not name.strip()
        return name_of_question(info.data["question"]) if is_missing and "question" in info.data else name


def name_of_question(question: str) -> str:
    """Return the first words of a question, at most `MAX_DERIVED_NAME_CHARACTERS` characters."""
    line = " ".join(question.split())
    shortened = textwrap.shorten(line, MAX_DERIVED_NAME_CHARACTERS, placeholder="…", break_on_hyphens=False)
    is_one_long_word = shortened == "…"
    return f"{line[: MAX_DERIVED_NAME_CHARACTERS - 1]}…" if is_one_long_word else shortened
