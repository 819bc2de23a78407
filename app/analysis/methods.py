"""The methods of analysis by name: one place that says which there are.

Every one is a pure function of a campaign's `Answers`. What cannot be estimated at all raises `Inestimable`, with a
sentence for a researcher and a stable code; it says nothing about the other methods.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.analysis import annotator_table, scores
from app.analysis.findings import Answers, Cell, Column, Comparison, Figure, Options, Scores, Table
from app.analysis.scores import compare

__all__ = [
    "SCORES",
    "TABLES",
    "Answers",
    "Cell",
    "Column",
    "Comparison",
    "Figure",
    "Options",
    "ScoreMethod",
    "Scores",
    "Section",
    "Table",
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

    fit: raises `Inestimable` if nothing of it can be estimated. per_item: whether it has a row per item, so that it may
    be long.
    """

    section: Section
    title: str
    explanation: str
    fit: Callable[[Answers, Options], Table]
    per_item: bool = False


SCORES: dict[str, ScoreMethod] = {
    "mean": ScoreMethod(
        "Mean",
        "All judgments count alike, and 20 points mean the same to every annotator and everywhere on the scale.",
        "points, 0 to 100",
        scores.mean,
    ),
    "easl": ScoreMethod(
        "EASL",
        "Each score adds to the two counts of its item's Beta posterior; annotators are taken to be alike.",
        "mode of the posterior, 0 to 1",
        scores.online("easl"),
    ),
}

TABLES: dict[str, TableMethod] = {
    "annotators": TableMethod(
        "annotators",
        "Annotators",
        "How much each annotator did, how their scores are spread, and how far they go with the others. Going with the "
        "others is no proof of being right, and somebody who differs may know better.",
        annotator_table.fit,
    ),
}
