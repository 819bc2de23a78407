"""What a step is: when it applies, when somebody has passed it, and what it makes of a form that they send. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from app.annotation.onboarding.settings import VisitSettings
from app.annotation.platforms.platform import Platform

StepOutcome: TypeAlias = Literal["passed", "declined", "failed", "taken"]


class StepResult(NamedTuple):
    """What somebody did in a step. version: of a text that was agreed to, the number of the text; of what is done again
    and again, a number that counts. outcome: `taken` of what alone decides nothing.
    """

    step: str
    version: int
    outcome: StepOutcome
    said: Mapping[str, Any] = {}


@dataclass(frozen=True)
class VisitHistory:
    """What is known of somebody's way to the work.

    version: of the campaign's visit, which a change of its texts raises. begun: whether they were admitted under an
    earlier version, or have answered a HIT. taken: in the order of versions, of each step the last ones.
    """

    version: int
    has_worked: bool = False
    results: Sequence[StepResult] = field(default=())

    def results_of_step(self, step: str) -> list[StepResult]:
        """What they did in one step."""
        return [one for one in self.results if one.step == step]

    def count_step_results(self, step: str) -> int:
        """Return how often they have done a step whose versions count."""
        results = self.results_of_step(step)
        return results[-1].version if results else 0


def empty_step_context(_settings: VisitSettings, _history: VisitHistory) -> dict[str, Any]:
    """What the page of a step needs that needs nothing."""
    return {}


@dataclass(frozen=True)
class VisitStep:
    """One step of the visit; its page is `templates/visit/NAME.html`.

    applies(settings, platform): whether it is asked of those who come from there.
    passed(settings, facts): whether somebody need not see it any more.
    take(sent, settings, facts): what they did, from a form's fields; None if it is not for now, as from a page of
    before. Raises `Invalid`, and nothing is kept.
    shown(settings, facts): what its page needs beside the campaign; `texts` of items that it shows; `outcome`, where
    their visit has ended here.
    settings: with those of the campaign's way of asking, `WAY_OF_ASKING`.
    """

    name: str
    is_required: Callable[[VisitSettings, Platform], bool]
    is_passed: Callable[[VisitSettings, VisitHistory], bool]
    parse_form: Callable[[Mapping[str, str], VisitSettings, VisitHistory], StepResult | None]
    page_context: Callable[[VisitSettings, VisitHistory], dict[str, Any]] = empty_step_context
