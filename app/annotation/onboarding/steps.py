"""Onboarding steps in their order. To add one, add a module with a `STEP`, its page, and one line here."""

from typing import NamedTuple

from app.annotation.onboarding import consent, qualification, questions, training, welcome
from app.annotation.onboarding.consent import must_agree_to_consent_text
from app.annotation.onboarding.settings import VisitAndAnswerSettings, VisitSettings
from app.annotation.onboarding.step import VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import PLATFORMS

VISIT_STEPS: tuple[VisitStep, ...] = (
    welcome.STEP,
    consent.STEP,  # before the first question about the person
    questions.STEP,
    training.STEP,
    qualification.STEP,
)


class StepPlace(NamedTuple):
    """Place of a page among those before the work: the page with the button that starts a visit, and each step."""

    number: int
    total: int


def has_consent_on_start_page(settings: VisitSettings, platform: Platform) -> bool:
    """Return whether the page with the Start button asks for consent, so that this step needs no page of its own."""
    return platform.has_start_button and must_agree_to_consent_text(settings, platform)


def steps_with_own_page(settings: VisitSettings, platform: Platform) -> list[VisitStep]:
    """Return the required steps, without the consent where the page with the Start button asks for it."""
    is_on_start_page = has_consent_on_start_page(settings, platform)
    return [
        step
        for step in VISIT_STEPS
        if step.is_required(settings, platform) and not (is_on_start_page and step is consent.STEP)
    ]


def place_of_step_among_pages(
    settings: VisitAndAnswerSettings, platform: Platform, step: VisitStep | None
) -> StepPlace:
    """Return the place of a step among all pages before the work; of the page that starts it without one."""
    steps = steps_with_own_page(settings, platform)
    start_pages = int(platform.has_start_button)
    number = start_pages + 1 + steps.index(step) if step in steps else 1
    return StepPlace(number, start_pages + len(steps))


def first_open_step_or_none(
    settings: VisitAndAnswerSettings, platform: Platform, history: VisitHistory
) -> VisitStep | None:
    """Return the first step that an annotator from this platform has not passed; None if they may work."""
    return next(
        (
            step
            for step in VISIT_STEPS
            if step.is_required(settings, platform) and not step.is_passed(settings, history)
        ),
        None,
    )


def has_visit_steps_on_any_platform(settings: VisitSettings) -> bool:
    """Return whether annotators from any platform have a step to pass."""
    return any(step.is_required(settings, platform) for step in VISIT_STEPS for platform in PLATFORMS.values())
