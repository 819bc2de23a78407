"""The steps in their order. A new one is a module with a `STEP`, its page, and one line here."""

from app.crowd.platform import Platform
from app.crowd.registry import PLATFORMS
from app.visit import consent, qualification, questions, training, welcome
from app.visit.settings import VisitSettings
from app.visit.step import Step, VisitFacts

STEPS: tuple[Step, ...] = (
    welcome.STEP,
    consent.STEP,  # before anything that is asked of the person
    questions.STEP,
    training.STEP,
    qualification.STEP,
)


def next_step(settings: VisitSettings, platform: Platform, facts: VisitFacts) -> Step | None:
    """The first that somebody who came from a platform has not passed; None where they may work."""
    return next((step for step in STEPS if step.applies(settings, platform) and not step.passed(settings, facts)), None)


def any_applies(settings: VisitSettings) -> bool:
    """Whether anybody has a step to pass."""
    return any(step.applies(settings, platform) for step in STEPS for platform in PLATFORMS.values())
