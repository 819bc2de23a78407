"""The methods of analysis by name: one place that says which there are.

Every one is a pure function of a campaign's `Answers`. What cannot be estimated at all raises `Inestimable`, with a
sentence for a researcher and a stable code; it says nothing about the other methods.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.analysis import agreement_table, annotator_table, consistency, graded, labels, pairwise, scores
from app.analysis.findings import Answers, Cell, Column, Comparison, Options, ResultTable, Scores
from app.analysis.scores import compare

__all__ = [
    "SCORES",
    "TABLES",
    "Answers",
    "Cell",
    "Column",
    "Comparison",
    "Options",
    "ResultTable",
    "ScoreMethod",
    "Scores",
    "Section",
    "TableMethod",
    "compare",
]

Section = Literal["agreement", "annotators", "consistency", "labels", "graded_response"]


@dataclass(frozen=True)
class ScoreMethod:
    """title: for people. assumes: what it takes for granted, one sentence. unit: of its scores, in words.

    fit: raises `Inestimable` if there is no score at all.
    """

    title: str
    assumes: str
    unit: str
    fit: Callable[[Answers], Scores]


@dataclass(frozen=True)
class TableMethod:
    """section: what it belongs to on a page. explanation: what it shows and what it cannot, in sentences.

    fit: raises `Inestimable` if nothing of it can be estimated. reads: the options that change it. per_item: whether it
    has a row per item, so that it may be long.
    """

    section: Section
    title: str
    explanation: str
    fit: Callable[[Answers, Options], ResultTable]
    reads: tuple[Literal["classes", "baseline"], ...] = ()
    per_item: bool = False

    def chosen(self, options: Options) -> Options:
        """The options that change this table; the others as if nobody had chosen."""
        return Options(**{name: getattr(options, name) for name in self.reads})


SCORES: dict[str, ScoreMethod] = {
    "mean": ScoreMethod(
        "Mean",
        "All judgments count alike, and 20 points mean the same to every annotator and everywhere on the scale.",
        "points, 0 to 100",
        scores.mean,
    ),
    "ordinal_median": ScoreMethod(
        "Median",
        "Only the order of the points matters, not how far apart they are, and it is the same for every annotator.",
        "points, 0 to 100",
        scores.median,
    ),
    "z_scores": ScoreMethod(
        "Mean of z-scores",
        "Annotators differ in strictness and in how much of the scale they use, but have seen items that are alike on "
        "the whole.",
        "standard deviations of an annotator",
        scores.z_scores,
    ),
    "easl": ScoreMethod(
        "EASL",
        "Each score adds to the two counts of its item’s Beta posterior; annotators are taken to be alike.",
        "mode of the posterior, 0 to 1",
        scores.online("easl", scores.ASKED),
    ),
    "ra": ScoreMethod(
        "Bounded RA",
        "Only the order of the items of a HIT counts; each pair of them moves two Beta posteriors.",
        "mode of the posterior, 0 to 1",
        scores.online("ra", scores.ASKED),
    ),
    "trueskill": ScoreMethod(
        "TrueSkill",
        "Only the order of the items of a HIT counts; each item has a skill that is seen with Normal noise of the same "
        "size everywhere.",
        "mean of the posterior, without bounds",
        scores.online("trueskill", told=scores.how_far_off),
    ),
    "easl-aware": ScoreMethod(
        "EASL-aware",
        "As EASL, but annotators differ in reliability, bias and scale; scores are weighted and corrected as far as "
        "the answers show that it helps.",
        "mode of the posterior, 0 to 1",
        scores.online("easl-aware", scores.ASKED),
    ),
    "bradley_terry": ScoreMethod(
        "Bradley-Terry",
        "The odds that one item is preferred to another depend on the difference of their scores alone; a tie is half "
        "a win for each.",
        "log odds, mean 0",
        pairwise.bradley_terry_scores,
    ),
    "rao_kupper": ScoreMethod(
        "Rao-Kupper",
        "As Bradley-Terry, but two items that are close enough look the same; how close is learned from the ties.",
        "log odds, mean 0",
        pairwise.rao_kupper_scores,
    ),
    "thurstone": ScoreMethod(
        "Thurstone, Case V",
        "The impression that an item makes varies Normally, by the same amount for every item; a tie is half a win for "
        "each.",
        "standard deviations of a difference, mean 0",
        pairwise.thurstone_scores,
    ),
    "elo": ScoreMethod(
        "Elo",
        "Judgments of pairs come one after another, and the last ones say most; ratings never settle.",
        "rating points, start 1500",
        pairwise.elo_ratings,
    ),
    "expected_wins": ScoreMethod(
        "Expected wins",
        "Beating one opponent is worth as much as beating another, however strong they are; a tie is half a win.",
        "chance of beating another item, 0 to 1",
        pairwise.expected_wins_scores,
    ),
    "hopkins_may": ScoreMethod(
        "Hopkins & May",
        "Items and impressions vary Normally by amounts that are known, and two impressions within half a unit of each "
        "other are a tie.",
        "units of an impression’s standard deviation, mean 0",
        pairwise.hopkins_may_scores,
    ),
}

TABLES: dict[str, TableMethod] = {
    "agreement": TableMethod(
        "agreement",
        "Agreement",
        "How far annotators say the same of the same items, in the usual coefficients, each with its 95 % interval "
        "over items. Agreement is neither needed nor enough for right scores: annotators who share a mistake agree.",
        agreement_table.fit,
        reads=("classes",),
    ),
    "annotators": TableMethod(
        "annotators",
        "Annotators",
        "How much each annotator did, how their scores are spread, and how far they go with the others. Going with the "
        "others is no proof of being right, and somebody who differs may know better.",
        annotator_table.fit,
    ),
    "consistency": TableMethod(
        "consistency",
        "Consistency",
        "Whether judgments of different HITs fit together: of three items, and of the same item judged again. "
        "Consistent is not yet right.",
        consistency.fit,
    ),
    "scale": TableMethod(
        "consistency",
        "Scale from preferences",
        "For each item, how many others it is at least as good as by the majority of judgments: a scale that mirrors "
        "all preferences, where there is one.",
        consistency.scale,
        per_item=True,
    ),
    "labels": TableMethod(
        "labels",
        "Labels",
        "Scores cut into labels, and how common each is according to Dawid and Skene, who ask how good each annotator "
        "is before counting their labels.",
        labels.prevalence,
        reads=("classes",),
    ),
    "label_annotators": TableMethod(
        "labels",
        "Annotators’ labels",
        "How probable it is that an annotator’s label is right, and how much one of them tells about an item.",
        labels.annotators,
        reads=("classes",),
    ),
    "label_items": TableMethod(
        "labels",
        "Items’ labels",
        "The most probable label of each item with its confidence, what is still uncertain, and how much one more "
        "label is expected to tell: ask where that is most.",
        labels.items,
        reads=("classes",),
        per_item=True,
    ),
    "graded_response": TableMethod(
        "graded_response",
        "Systems",
        "The performance of systems whose outputs for the same segments were judged by the same annotators, each "
        "compared with one baseline (Otani et al. 2016). It needs the columns system and segment.",
        graded.systems,
        reads=("baseline",),
    ),
    "graded_response_annotators": TableMethod(
        "graded_response",
        "Sensitivity of annotators",
        "How sharply each annotator tells systems from the baseline; near 0 for one who answers at random.",
        graded.annotators,
        reads=("baseline",),
    ),
    "graded_response_segments": TableMethod(
        "graded_response",
        "Difficulty of segments",
        "What performance it takes not to lose to the baseline on a segment, and what to win, in each case with a "
        "chance of one half.",
        graded.segments,
        reads=("baseline",),
    ),
}
