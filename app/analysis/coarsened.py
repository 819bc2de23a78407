"""Answers read as another kind than they are: as labels, and what is said of it.

What can be read as what stands in `app.inference.observations.coarsening`.
"""

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from app.analysis.findings import MOST_CLASSES, Answers
from app.designs.design import Yields
from app.designs.scale import POINTS
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.coarsening import CLASSES, REACHES, Reads

IN_WORDS: dict[Reads, str] = {
    "points": "scores",
    "ratio": "ratios",
    "classes": "labels",
    "ordered_classes": "labels in an order",
    "order": "an order of the items of a HIT",
}


def reached(reads: Reads, yields: Yields) -> bool:
    """Whether answers of this kind can be read so."""
    return reads in REACHES[yields]


def refuse_other_answers(title: str, reads: Collection[Reads], answers: Answers) -> None:
    """Raises `Inestimable` (`method_reads_other_answers`) for a method that takes none of what can be made of them."""
    if not any(reached(kind, answers.yields) for kind in reads):
        wanted = " or ".join(IN_WORDS[kind] for kind in reads)
        raise Inestimable(
            f"“{title}” reads {wanted}. Annotators of this campaign give {IN_WORDS[answers.yields]}, which cannot be "
            "read so.",
            code="method_reads_other_answers",
        )


# Labels


def has_labels(answers: Answers) -> bool:
    """Whether annotators chose among classes, so that nothing need be cut."""
    return answers.yields in CLASSES


def count_of(answers: Answers, classes: int) -> int:
    """How many labels there are: the design's, else `classes`, into which scores are cut."""
    return len(answers.classes) if has_labels(answers) else classes


def labels_of(answers: Answers, classes: int) -> Integers:
    """(J,) the label of each judgment: the class that was chosen, or a score cut into `classes` pieces of the scale of
    equal width, a cut belonging to the upper one.
    """
    if has_labels(answers):
        return answers.value.astype(np.intp)
    if not 2 <= classes <= MOST_CLASSES:
        raise ValueError(f"there are 2 to {MOST_CLASSES} classes, not {classes}")
    # Rounded, so that 100 / 3 * 3 and the like land where they should.
    return np.minimum(np.floor(np.round(answers.score * classes / POINTS, 9)), classes - 1).astype(np.intp)


def label_names(answers: Answers, classes: int) -> list[str]:
    """What the labels are called: as the design does, or in points, "0 to 50", "50 to 100"."""
    if has_labels(answers):
        return [*answers.classes]
    return [f"{low} to {high}" for low, high in pairwise(["0", *cuts(classes), f"{POINTS:g}"])]


def cuts(classes: int) -> list[str]:
    """Where scores are cut, in points."""
    return [f"{POINTS * k / classes:.4g}" for k in range(1, classes)]


# What is said of it


def read_as(answers: Answers, reads: Reads, classes: int = 2) -> tuple[Note, ...]:
    """How the campaign's answers were read as another kind, in sentences; none where they are of that kind.

    classes: into how many labels scores are cut.
    """
    if reads == "order":
        return as_order(answers)
    if reads == answers.yields:
        return ()
    if reads == "classes":
        return as_classes(answers, classes)
    if answers.yields == "ordered_classes":
        first, *_, last = answers.classes
        sentence = f"Labels were read as scores by their place, from “{first}” at 0 points to “{last}” at {POINTS:g}."
        return read(sentence)
    return ratios_as_points() if answers.yields == "ratio" else ()


def as_order(answers: Answers) -> tuple[Note, ...]:
    """Of pairs of items of a HIT: which is preferred, and when it is a tie."""
    if not answers.parameters.ties:
        sentence = "Of items with the same place in a HIT nobody knows which is better: such pairs count for nothing."
        return (Note("unknown_pairs_left_out", sentence),)
    if answers.yields == "order":
        return ()
    margin = POINTS * answers.parameters.tie_margin
    words = {
        "points": ("the higher score", f"scores up to {margin:g} points apart" if margin else "equal scores"),
        "ratio": ("the larger ratio", "equal ratios"),
        "ordered_classes": ("the higher label", "equal labels"),
    }
    higher, equal = words[answers.yields]
    sentence = f"Answers were read as an order: of two items the one with {higher} is preferred; {equal} are a tie."
    return read(sentence)


def as_classes(answers: Answers, classes: int) -> tuple[Note, ...]:
    """What labels are where annotators gave something else."""
    if has_labels(answers):
        return read("Labels were read without their order.")
    where = ", ".join(cuts(classes))
    sentence = f"Labels are scores cut into {classes} classes at {where}; a score on a cut belongs to the upper class."
    cut = Note("labels_are_cut", sentence)
    return (*ratios_as_points(), cut) if answers.yields == "ratio" else (cut,)


def ratios_as_points() -> tuple[Note, ...]:
    """The share of a ratio in itself and the reference is the logistic function of its logarithm."""
    sentence = (
        "Ratios were read as scores by their logarithm: as much as the reference is 50 points, half as much 33, twice "
        "as much 67, and nothing reaches 0 or 100."
    )
    return read(sentence)


def read(sentence: str) -> tuple[Note]:
    """What was made of answers of a finer kind."""
    return (Note("read_as", sentence),)
