"""Welcome step for people from a platform: the task, its duration and pay, and an example.

Visitors of the open link see the same page before they press Start and become annotators. Where annotators must
agree to a text, the page of the consent step shows all of this, too, and nothing starts before they agree.
"""

from collections.abc import Mapping

from app.annotation.onboarding.consent import CONSENT_STEP, must_agree_to_consent_text
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform

WELCOME_STEP = "welcome"


def has_welcome_page(settings: VisitSettings, platform: Platform) -> bool:
    """Return whether annotators see a page of its own; the page of the consent step replaces it."""
    return (
        settings.welcome
        and platform.has_page
        and not platform.has_start_button
        and not must_agree_to_consent_text(settings, platform)
    )


def has_seen_welcome(_settings: VisitSettings, history: VisitHistory) -> bool:
    """Return whether the annotator has seen the welcome page, or has worked already."""
    return history.has_worked or any(result.step in (WELCOME_STEP, CONSENT_STEP) for result in history.results)


def step_result_of_welcome_form(
    _form: Mapping[str, str], _settings: VisitSettings, _history: VisitHistory
) -> StepResult:
    """Return that the page was seen. Its form has only one button."""
    return StepResult(WELCOME_STEP, 1, "passed")


STEP = VisitStep(WELCOME_STEP, has_welcome_page, has_seen_welcome, step_result_of_welcome_form)
