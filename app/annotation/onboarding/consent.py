"""A text that somebody agrees to before they get a HIT; once more when it has changed."""

from collections.abc import Mapping

from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.errors import Invalid

CONSENT_STEP = "consent"
CONSENT_ANSWERS = ("yes", "no")


def has_consent_text(settings: VisitSettings, platform: Platform) -> bool:
    """Also to those for whom a program speaks; made-up annotators agree to nothing."""
    return bool(settings.consent) and not platform.is_simulated


def has_consented(_settings: VisitSettings, history: VisitHistory) -> bool:
    """To the present text."""
    return any(
        one.version == history.version and one.outcome == "passed" for one in history.results_of_step(CONSENT_STEP)
    )


def parse_consent_form(form: Mapping[str, str], _settings: VisitSettings, history: VisitHistory) -> StepResult:
    """Raises `Invalid`: `consent_missing`, and `consent_changed` where another text was agreed to than there is now."""
    if form.get("version") != str(history.version):
        raise consent_changed_error(history)
    if form.get("answer") not in CONSENT_ANSWERS:
        raise Invalid("Say whether you agree. Nothing was stored.", code="consent_missing")
    return StepResult(CONSENT_STEP, history.version, "passed" if form["answer"] == "yes" else "declined")


def consent_result(version: int, history: VisitHistory) -> StepResult:
    """Return what somebody said to a version of the text. Raises `Invalid` (`consent_changed`) for one that they were
    never asked to agree to.
    """
    results = [one for one in history.results_of_step(CONSENT_STEP) if one.version == version]
    if not results:
        raise consent_changed_error(history)
    return results[0]


def consent_changed_error(history: VisitHistory) -> Invalid:
    return Invalid(
        "The text has changed since you opened this page. Please read it once more, then answer.",
        code="consent_changed",
        version=history.version,
    )


def consent_context(_settings: VisitSettings, history: VisitHistory) -> dict[str, bool]:
    """Whether they said no, and whether they had agreed to an earlier text."""
    results = history.results_of_step(CONSENT_STEP)
    return {
        "declined": any(one.version == history.version and one.outcome == "declined" for one in results),
        "changed": any(one.version < history.version and one.outcome == "passed" for one in results),
    }


STEP = VisitStep(CONSENT_STEP, has_consent_text, has_consented, parse_consent_form, consent_context)
