"""Contract of an onboarding step: when it is required, when it is passed, and how it parses its form. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from app.annotation.onboarding.settings import VisitAndAnswerSettings, VisitSettings
from app.annotation.platforms.platform import Platform

StepOutcome: TypeAlias = Literal["passed", "declined", "failed", "taken", "full", "lapsed"]


class StepResult(NamedTuple):
    """Result of a step, or of a part of it.

    Attributes:
        step: Name of the step.
        version: Version of the text that the annotator answered; for repeated steps, a running number.
        outcome: `taken` if this result alone decides nothing; `full` if a quota had no place; `lapsed` if the annotator
            left, lost the place, and is asked again.
        said: Stored details, such as values.

    """

    step: str
    version: int
    outcome: StepOutcome
    said: Mapping[str, Any] = {}


@dataclass(frozen=True)
class VisitHistory:
    """Onboarding history of an annotator.

    Attributes:
        version: Version of the campaign's visit, which a change of its texts increments.
        has_worked: True if the annotator was admitted to an earlier version, or has answered a HIT.
        results: The last results of each step, in the order of versions.

    """

    version: int
    has_worked: bool = False
    results: Sequence[StepResult] = field(default=())

    def results_of_step(self, step: str) -> list[StepResult]:
        return [result for result in self.results if result.step == step]

    def last_result_version_or_zero(self, step: str) -> int:
        """Return the number of results of a step whose versions are running numbers."""
        results = self.results_of_step(step)
        return results[-1].version if results else 0


def empty_step_template_context(_settings: VisitSettings, _history: VisitHistory) -> dict[str, Any]:
    """Return no context, for a step whose page needs only the campaign."""
    return {}


@dataclass(frozen=True)
class VisitStep:
    """Step of the onboarding; its page is `templates/visit/NAME.html`.

    All functions get the settings of the visit and the annotator's history.

    Attributes:
        name: Name of the step.
        is_required: Return whether annotators from a platform must pass the step.
        is_passed: Return whether an annotator has passed the step.
        parse_form: Return the result of a form; None if the form is from an earlier page. Raises `Invalid`; then
            nothing is stored.
        page_context: Return the context of the step's page besides the campaign: `texts` of items that it shows,
            `outcome` if the visit ended in this step, and others.
        endings: Ways in which the visit can end in this step, by the title that researchers read: each returns results
            that lead there, for a preview; none if the settings rule it out.

    """

    name: str
    is_required: Callable[[VisitSettings, Platform], bool]
    is_passed: Callable[[VisitAndAnswerSettings, VisitHistory], bool]
    parse_form: Callable[[Mapping[str, str], VisitAndAnswerSettings, VisitHistory], StepResult | None]
    page_context: Callable[[VisitAndAnswerSettings, VisitHistory], dict[str, Any]] = empty_step_template_context
    endings: Mapping[str, Callable[[VisitAndAnswerSettings, int], list[StepResult]]] = field(default_factory=dict)
