"""Questions to begin with: campaign files that come with Easel, each with the source of its way of asking."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from app.campaigns import campaign_file
from app.campaigns.campaign_file import About
from app.campaigns.question_names import QUESTION_NAMES
from app.campaigns.settings import CampaignSettings
from app.designs.design import Design
from app.designs.registry import DESIGNS
from app.errors import NotFound, shorten_echo
from app.settings import project_folder

QUESTION_FILES_FOLDER = project_folder() / "examples" / "questions"


class TemplateQuestion(NamedTuple):
    """A campaign file with its description."""

    name: str
    about: About
    settings: CampaignSettings


@cache
def load_starter_question_or_refuse(name: str) -> TemplateQuestion:
    """Return one of the questions. Raises `NotFound` (`template_unknown`)."""
    if name not in QUESTION_NAMES:
        raise NotFound(f"There is no question template “{shorten_echo(name)}”.", code="template_unknown")
    campaign_file_content = campaign_file.parse_campaign_file(
        path_of_starter_question_file(name).read_bytes(), name
    ).content
    return TemplateQuestion(name, About.model_validate(campaign_file_content.about), campaign_file_content.settings)


def load_starter_questions() -> list[TemplateQuestion]:
    """Return all questions, in their order."""
    return [load_starter_question_or_refuse(name) for name in QUESTION_NAMES]


def starter_questions_by_activity() -> dict[str, list[TemplateQuestion]]:
    """Return all questions by what annotators do: rate, compare, rank or label."""
    groups: dict[str, list[TemplateQuestion]] = {title: [] for title in ("Rate", "Compare", "Rank", "Label")}
    for question in load_starter_questions():
        groups[activity_word_of_design(DESIGNS[question.settings.design])].append(question)
    return groups


def activity_word_of_design(design: type[Design]) -> str:
    """Return what annotators do with a design's items, in a word."""
    if design.value_kind == "classes" or design.ticks_criteria:
        return "Label"
    if design.value_kind != "order":
        return "Rate"
    return "Compare" if design.items_per_hit[-1] == 2 else "Rank"


def path_of_starter_question_file(name: str) -> Path:
    return QUESTION_FILES_FOLDER / f"{name}.yaml"
