"""Onboarding step in which annotators promise once to take their time."""

from collections.abc import Mapping

from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.errors import Invalid


def is_promise_required(_settings: VisitSettings, platform: Platform) -> bool:
    """Return whether annotators of the platform see pages: programs promise nothing."""
    return platform.has_page


def has_promised(_settings: VisitSettings, history: VisitHistory) -> bool:
    return any(result.outcome == "passed" for result in history.results_of_step("promise"))


def parse_promise_form(form: Mapping[str, str], _settings: VisitSettings, history: VisitHistory) -> StepResult:
    """Return the result of the form. Raises `Invalid`: `promise_missing`."""
    if form.get("promise") != "yes":
        raise Invalid("Tick the box to go on. Nothing was stored.", code="promise_missing")
    return StepResult("promise", history.version, "passed")


STEP = VisitStep("promise", is_promise_required, has_promised, parse_promise_form)
