"""Questions to begin with: campaign files that come with Easel, each with the source of its way of asking."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from app.campaigns import campaign_file
from app.campaigns.campaign_file import About
from app.campaigns.settings import CampaignSettings
from app.errors import NotFound, shorten_echo
from app.settings import project_folder

QUESTION_FILES_FOLDER = project_folder() / "examples" / "questions"
# In the order on the page. To add a question, add its file and its name here.
QUESTION_NAMES = (
    *("lexical-frequency", "political-spectrum", "translation-systems"),
    *("translation-adequacy", "translation-fluency", "translation-adequacy-and-fluency", "translation-quality"),
    "translation-ranking",
    *("answers-of-language-models", "systems-against-a-baseline", "naturalness"),
    *("sentiment", "emotion-intensity", "convincing-arguments", "word-senses"),
)


class TemplateQuestion(NamedTuple):
    """A campaign file with its description."""

    name: str
    about: About
    settings: CampaignSettings


@cache
def load_starter_question(name: str) -> TemplateQuestion:
    """Return one of the questions. Raises `NotFound` (`template_unknown`)."""
    if name not in QUESTION_NAMES:
        raise NotFound(f"There is no question template “{shorten_echo(name)}”.", code="template_unknown")
    campaign_file_content = campaign_file.parse_campaign_file(question_file_path(name).read_bytes(), name).content
    return TemplateQuestion(name, About.model_validate(campaign_file_content.about), campaign_file_content.settings)


def load_starter_questions() -> list[TemplateQuestion]:
    """Return all questions, in their order."""
    return [load_starter_question(name) for name in QUESTION_NAMES]


def question_file_path(name: str) -> Path:
    return QUESTION_FILES_FOLDER / f"{name}.yaml"
