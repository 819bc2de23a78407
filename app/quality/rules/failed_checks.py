"""Rules on items with a known answer, and on items that say what to answer."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from app.errors import pluralize
from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import GUESS_CHANCE, AnnotatorBehaviour, MetFlags
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share
from app.quality.sequential_limits import min_consecutive_events_above_limit
from app.quality.share_of_cases import text_on_share_of_cases

# A person who failed no check counts as "nothing found" only if at most this share of people who guess does as well.
MAX_SHARE_OF_GUESSERS = 0.1


class FailedChecksRule(QualityRule):
    """Finds annotators who fail more checks of one kind than a careful person does."""

    reads_values: ClassVar[bool] = False
    failure_unit: ClassVar[Literal["failed gold item", "failed attention item"]]

    careful_percent: Percent

    @abstractmethod
    def met_flags(self, behaviour: AnnotatorBehaviour) -> MetFlags:
        """Return which checks of this kind were answered as expected."""

    @abstractmethod
    def guess_chances(self, behaviour: AnnotatorBehaviour) -> Array:
        """Return the probability that a random answer meets each check of this kind."""

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of failed checks that suffices if none was met."""
        count = min_consecutive_events_above_limit(self.careful_percent / 100, false_alarm_rate)
        return RuleRequirement(count, self.failure_unit)

    @override
    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if too many checks were failed for an accident. Nothing is found if too many were met
        for a guesser, or in the end if none was failed and few guessers do as well; a remark then says how many.
        """
        met_flags, guess_chances = self.met_flags(behaviour), self.guess_chances(behaviour)
        failures, shown, noun = int((~met_flags).sum()), len(met_flags), self.failure_unit.removeprefix("failed ")
        if not shown:
            return RuleAssessment("unknown", f"Has answered no {noun} yet.")
        assessment = assess_event_share(
            failures,
            shown,
            self.careful_percent / 100,
            false_alarm_rate,
            sentence=f"Failed {failures} of {pluralize(shown, noun)}.",
            measures={"failed": failures, "shown": shown},
            careless_share=1.0 - highest_guess_chance(guess_chances),
        )
        chances = guess_chances if len(guess_chances) == shown else np.full(shown, GUESS_CHANCE)
        guesser_share = probability_of_at_most_so_many_failures(failures, chances)
        return assessment._replace(
            figure=f"{failures} of {shown} failed",
            final_state="fine" if not failures and guesser_share <= MAX_SHARE_OF_GUESSERS else None,
            final_remark=f"Someone who guesses does as well {text_on_share_of_cases(guesser_share)}."
            if failures < shown
            else "",
        )


def probability_of_at_most_so_many_failures(failures: int, met_chances: Array) -> float:
    """Return the probability of at most `failures` failed checks, given the probability of meeting each, (C,)."""
    probabilities = np.ones(1)
    for chance in met_chances:
        probabilities = np.convolve(probabilities, (chance, 1.0 - chance))
    return float(probabilities[: failures + 1].sum())


def highest_guess_chance(guess_chances: Array) -> float:
    """Return the highest of these probabilities, away from 0 and 1; `GUESS_CHANCE` if none is known."""
    return float(np.clip(guess_chances.max(), 0.01, 0.99)) if len(guess_chances) else GUESS_CHANCE


class FailedGoldRule(FailedChecksRule):
    """Finds annotators who fail more gold items than a careful person does."""

    name: ClassVar[str] = "gold"
    title: ClassVar[str] = "Fails gold items"
    condition: ClassVar[str] = "an annotator fails more than {careful_percent} % of gold items"
    explanation: ClassVar[str] = (
        "Finds people who miss known answers. Gold items that most people fail are ignored, since they are probably "
        "wrong. The rule cannot distinguish carelessness from a different view of these items."
    )
    failure_unit = "failed gold item"

    careful_percent: Percent = Field(
        default=20,
        title="A careful person may fail (%)",
        description="Share of gold items that a careful person may fail.",
    )

    @override
    def met_flags(self, behaviour: AnnotatorBehaviour) -> MetFlags:
        return behaviour.gold_met

    @override
    def guess_chances(self, behaviour: AnnotatorBehaviour) -> Array:
        return behaviour.gold_guess_chances


class FailedAttentionRule(FailedChecksRule):
    """Finds annotators who do not do what attention items ask."""

    name: ClassVar[str] = "attention"
    title: ClassVar[str] = "Fails attention items"
    condition: ClassVar[str] = "an annotator fails more than {careful_percent} % of attention items"
    explanation: ClassVar[str] = (
        "Finds people who do not follow the instruction in an item, and so probably do not read items. It misses "
        "people who "
        "read these items and answer the others at random."
    )
    failure_unit = "failed attention item"

    careful_percent: Percent = Field(
        default=5,
        title="A careful person may fail (%)",
        description="Share of attention items that a careful person may fail.",
    )

    @override
    def met_flags(self, behaviour: AnnotatorBehaviour) -> MetFlags:
        return behaviour.attention_met

    @override
    def guess_chances(self, behaviour: AnnotatorBehaviour) -> Array:
        return behaviour.attention_guess_chances
