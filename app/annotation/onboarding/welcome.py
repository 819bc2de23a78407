"""What it is, how long it takes and what it pays, with an example: for who comes from a platform.

Who comes by a link sees the same before they are anybody, and starts with it.
"""

from collections.abc import Mapping

from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform

WELCOME_STEP = "welcome"


def has_welcome_page(settings: VisitSettings, platform: Platform) -> bool:
    return settings.welcome and platform.has_page and not platform.has_start_button


def has_seen_welcome(_settings: VisitSettings, history: VisitHistory) -> bool:
    """Whoever has worked knows what it is."""
    return history.has_worked or bool(history.results_of_step(WELCOME_STEP))


def parse_welcome_form(_form: Mapping[str, str], _settings: VisitSettings, _history: VisitHistory) -> StepResult:
    """There is one button."""
    return StepResult(WELCOME_STEP, 1, "passed")


STEP = VisitStep(WELCOME_STEP, has_welcome_page, has_seen_welcome, parse_welcome_form)
