"""The steps in their order. A new one is a module with a `STEP`, its page, and one line here."""

from app.annotation.onboarding import consent, qualification, questions, training, welcome
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import PLATFORMS

VISIT_STEPS: tuple[VisitStep, ...] = (
    welcome.STEP,
    consent.STEP,  # before anything that is asked of the person
    questions.STEP,
    training.STEP,
    qualification.STEP,
)


def find_next_step(settings: VisitSettings, platform: Platform, history: VisitHistory) -> VisitStep | None:
    """The first that somebody who came from a platform has not passed; None where they may work."""
    return next(
        (
            step
            for step in VISIT_STEPS
            if step.is_required(settings, platform) and not step.is_passed(settings, history)
        ),
        None,
    )


def has_visit_steps(settings: VisitSettings) -> bool:
    """Whether anybody has a step to pass."""
    return any(step.is_required(settings, platform) for step in VISIT_STEPS for platform in PLATFORMS.values())
