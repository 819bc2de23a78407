"""Behaviour of one annotator as arrays, the input of rules; pure."""

from dataclasses import dataclass, field
from math import nan

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.observations.judgment_kinds import JudgmentKind

MetFlags = npt.NDArray[np.bool_]

GUESS_CHANCE = 0.5  # that a random answer meets a check, where nothing else is known


@dataclass(frozen=True, slots=True)
class AnnotatorBehaviour:
    """How one annotator answers: J judgments in H answers, in order of time; judgments of a HIT as presented.

    Attributes:
        answer_kind: Kind of judgments that the campaign's design yields.
        class_count: Number of classes; 0 for other kinds of answers.
        ties: Whether equal values mean that two items are equal.
        hit: Index of the judgment's HIT, (J,), 0 to H - 1.
        item: Item number, (J,).
        share: Position on the scale, (J,), 0 to 1; for unordered classes the number of the class.
        others_share: Mean of the others' shares for the item, (J,); for unordered classes the class that most of them
            chose. NaN where no other annotator judged the item.
        other_judge_counts: Number of other annotators who judged the item, (J,).
        seconds: Time from getting the HIT to its answer, (H,); NaN where unknown.
        played_share: Share of its longest playback by anyone for each judged recording or video with a report, (P,).
        gold_met: Whether each gold item was met, (G,).
        attention_met: Whether each attention item was met, (A,).
        gold_guess_chances: Probability that a random answer meets each gold item, (G,); empty if unknown.
        attention_guess_chances: Probability that a random answer meets each attention item, (A,); empty if unknown.
        random_answer_probability: Probability of answering at random by the update law, or by a fit to all
            comparisons; NaN where neither learns one.

    """

    answer_kind: JudgmentKind
    class_count: int
    ties: bool
    hit: Integers
    item: Integers
    share: Array
    others_share: Array
    other_judge_counts: Integers
    seconds: Array
    played_share: Array = field(default_factory=lambda: np.zeros(0))
    gold_met: MetFlags = field(default_factory=lambda: np.zeros(0, np.bool_))
    attention_met: MetFlags = field(default_factory=lambda: np.zeros(0, np.bool_))
    gold_guess_chances: Array = field(default_factory=lambda: np.zeros(0))
    attention_guess_chances: Array = field(default_factory=lambda: np.zeros(0))
    random_answer_probability: float = nan

    @property
    def index_of_first_judgment_of_each_hit(self) -> Integers:
        """Index of the first judgment of each HIT that has any, followed by J."""
        return np.append(np.flatnonzero(np.diff(self.hit, prepend=-1)), len(self.hit)).astype(np.intp)
