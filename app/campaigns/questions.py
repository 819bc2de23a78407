"""Questions to begin with: campaign files that come with Easel, each of which says where its way of asking is from."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from app.campaigns import campaign_file
from app.campaigns.campaign_file import About
from app.campaigns.settings import CampaignSettings
from app.errors import NotFound, shortened

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "questions"
# In the order in which they are offered. A new one is a file and its name here.
QUESTIONS = (
    *("lexical-frequency", "political-spectrum", "translation-systems"),
    *("translation-adequacy", "translation-fluency", "translation-adequacy-and-fluency", "translation-quality"),
    "translation-ranking",
    *("answers-of-language-models", "systems-against-a-baseline", "naturalness"),
    *("sentiment", "emotion-intensity", "convincing-arguments", "word-senses"),
)


class Question(NamedTuple):
    """A campaign file that says what it is."""

    name: str
    about: About
    settings: CampaignSettings


@cache
def question(name: str) -> Question:
    """Raises `NotFound` (`template_unknown`)."""
    if name not in QUESTIONS:
        raise NotFound(f"There is no question template “{shortened(name)}”.", code="template_unknown")
    found = campaign_file.read(path_of(name).read_bytes(), name).content
    return Question(name, About.model_validate(found.about), found.settings)


def questions() -> list[Question]:
    """All of them, in their order."""
    return [question(name) for name in QUESTIONS]


def path_of(name: str) -> Path:
    """The file of one of `QUESTIONS`."""
    return FOLDER / f"{name}.yaml"
