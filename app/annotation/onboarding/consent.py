"""Consent step: the annotator agrees to a text before the first HIT, and again after the text has changed."""

from collections.abc import Mapping

from app.annotation.onboarding.settings import VisitSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.platforms.platform import Platform
from app.errors import Invalid

CONSENT_STEP = "consent"
CONSENT_ANSWERS = ("yes", "no")


def must_agree_to_consent_text(settings: VisitSettings, platform: Platform) -> bool:
    """Return whether annotators must agree to the consent text. Programs' annotators must; simulated ones need not."""
    return bool(settings.consent) and not platform.is_simulated


def has_consented_to_present_version(_settings: VisitSettings, history: VisitHistory) -> bool:
    """Return whether the annotator has agreed to the present version of the text."""
    results = history.results_of_step(CONSENT_STEP)
    return any(result.version == history.version and result.outcome == "passed" for result in results)


def step_result_of_consent_form_or_refuse(
    form: Mapping[str, str], _settings: VisitSettings, history: VisitHistory
) -> StepResult:
    """Return the annotator's answer. Raises `Invalid`: `consent_missing`, or `consent_changed` for an old text."""
    if form.get("version") != str(history.version):
        raise consent_changed_error(history)
    if form.get("answer") not in CONSENT_ANSWERS:
        raise Invalid("Say whether you agree. Nothing was stored.", code="consent_missing")
    return StepResult(CONSENT_STEP, history.version, "passed" if form["answer"] == "yes" else "declined")


def consent_result_of_version_or_refuse(version: int, history: VisitHistory) -> StepResult:
    """Return the annotator's answer to a version of the text.

    Raises:
        Invalid: `consent_changed`, if the annotator was never asked to agree to this version.

    """
    results = [result for result in history.results_of_step(CONSENT_STEP) if result.version == version]
    if not results:
        raise consent_changed_error(history)
    return results[0]


def consent_changed_error(history: VisitHistory) -> Invalid:
    return Invalid(
        "The text has changed since you opened this page. Please read it once more, then answer.",
        code="consent_changed",
        version=history.version,
    )


def consent_template_context(settings: VisitSettings, history: VisitHistory) -> dict[str, bool]:
    """Return whether the annotator has declined the present text, and whether they agreed to an earlier one.

    `introduces` is true if the page shows the task, too: this is the first page that the annotator sees.
    """
    results = history.results_of_step(CONSENT_STEP)
    return {
        "introduces": settings.welcome and not history.has_worked and not history.results,
        "declined": any(result.version == history.version and result.outcome == "declined" for result in results),
        "changed": any(result.version < history.version and result.outcome == "passed" for result in results),
    }


def results_of_declined_consent(_settings: VisitSettings, version: int) -> list[StepResult]:
    """Return the result of an annotator who does not agree."""
    return [StepResult(CONSENT_STEP, version, "declined")]


STEP = VisitStep(
    CONSENT_STEP,
    must_agree_to_consent_text,
    has_consented_to_present_version,
    step_result_of_consent_form_or_refuse,
    consent_template_context,
    {"Consent declined": results_of_declined_consent},
)
