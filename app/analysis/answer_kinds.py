"""Answers read as another kind than annotators gave: as labels, scores or preferences, with the notes that say so.

`app.inference.observations.judgment_kinds` lists which kind can be read as which.
"""

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from app.analysis.result_types import MAX_CLASSES, Answers
from app.designs.design import ValueKind
from app.designs.scale import MAX_POINTS
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.judgment_kinds import CLASS_KINDS, READABLE_KINDS, JudgmentKind

ANSWER_KIND_WORDS: dict[JudgmentKind, str] = {
    "points": "scores",
    "ratio": "ratios",
    "classes": "labels",
    "ordered_classes": "ordered labels",
    "order": "an order of the items of a task",
}


def can_read_answers_as(wanted_kind: JudgmentKind, given_kind: ValueKind) -> bool:
    """Return whether answers of the given kind can be read as the wanted kind."""
    return wanted_kind in READABLE_KINDS[given_kind]


def refuse_unreadable_answers(
    method_title: str, readable_kinds: Collection[JudgmentKind], answers: Answers, *, as_given: bool = False
) -> None:
    """Refuse a method that cannot read these answers in any of its kinds.

    Args:
        method_title: Title of the method.
        readable_kinds: Kinds of answers that it reads.
        answers: The campaign's answers.
        as_given: Whether it reads only answers that are of such a kind, and none that could be read as one.

    Raises:
        Inestimable: `method_reads_other_answers`.

    """
    given = answers.value_kind
    if not any(kind == given or (not as_given and can_read_answers_as(kind, given)) for kind in readable_kinds):
        kind_words = " or ".join(ANSWER_KIND_WORDS[kind] for kind in readable_kinds)
        raise Inestimable(
            f"“{method_title}” reads {kind_words}. Annotators in this campaign give {ANSWER_KIND_WORDS[given]}, "
            "which it cannot read.",
            code="method_reads_other_answers",
        )


# Labels


def has_class_labels(answers: Answers) -> bool:
    """Return whether annotators chose among classes, so that no scores have to be cut."""
    return answers.value_kind in CLASS_KINDS


def class_count_of_design_or_given(answers: Answers, class_count: int) -> int:
    """Return the number of labels: the design's classes, else `class_count`, into which scores are cut."""
    return len(answers.classes) if has_class_labels(answers) else class_count


def label_of_each_judgment(answers: Answers, class_count: int) -> Integers:
    """Return the label of each judgment, (J,).

    This is the chosen class, or the piece of the scale that holds the score, if the scale is cut into `class_count`
    pieces of equal width. A score on a cut belongs to the upper piece.
    """
    if has_class_labels(answers):
        return answers.value.astype(np.intp)
    if not 2 <= class_count <= MAX_CLASSES:
        raise ValueError(f"there are 2 to {MAX_CLASSES} classes, not {class_count}")
    # Rounded, so that 100 / 3 * 3 and the like land where they should.
    return np.minimum(np.floor(np.round(answers.score * class_count / MAX_POINTS, 9)), class_count - 1).astype(np.intp)


def class_names_or_score_ranges(answers: Answers, class_count: int) -> list[str]:
    """Return the names of the labels: those of the design, or ranges in points such as "0 to 50"."""
    if has_class_labels(answers):
        return [*answers.classes]
    return [f"{low} to {high}" for low, high in pairwise(["0", *score_cut_texts(class_count), f"{MAX_POINTS:g}"])]


def score_cut_texts(class_count: int) -> list[str]:
    """Return the cuts between labels, in points."""
    return [f"{MAX_POINTS * k / class_count:.4g}" for k in range(1, class_count)]


# Notes


def notes_on_reading_as_kind(answers: Answers, kind: JudgmentKind, class_count: int = 2) -> tuple[Note, ...]:
    """Return notes on how the campaign's answers were read as another kind; none if they are of that kind.

    Args:
        answers: The campaign's answers.
        kind: Kind as which a method reads them.
        class_count: Number of labels into which scores are cut.

    """
    if kind == "order":
        return notes_on_reading_as_order(answers)
    if kind == answers.value_kind:
        return ()
    if kind == "classes":
        return notes_on_reading_as_classes(answers, class_count)
    if answers.value_kind == "ordered_classes":
        first, *_, last = answers.classes
        sentence = (
            f"Where answers are read as scores, labels count by their position, from “{first}” at 0 points to “{last}” "
            f"at {MAX_POINTS:g}."
        )
        return notes_on_reading_as_coarser_kind(sentence)
    return notes_on_reading_ratios_as_scores() if answers.value_kind == "ratio" else ()


def notes_on_reading_as_order(answers: Answers) -> tuple[Note, ...]:
    """Return notes on how pairs of items of one HIT are read as preferences and ties."""
    if not answers.parameters.ties:
        sentence = "Items with the same place in a task have no known order: such pairs are not counted."
        return (Note("unknown_pairs_left_out", sentence),)
    if answers.value_kind == "order":
        return ()
    margin = MAX_POINTS * answers.parameters.tie_margin
    words = {
        "points": ("the higher score", f"scores up to {margin:g} points apart" if margin else "equal scores"),
        "ratio": ("the larger ratio", "equal ratios"),
        "ordered_classes": ("the higher label", "equal labels"),
    }
    higher, equal = words[answers.value_kind]
    sentence = f"Answers were read as preferences: the item with {higher} is preferred, and {equal} are a tie."
    return notes_on_reading_as_coarser_kind(sentence)


def notes_on_reading_as_classes(answers: Answers, class_count: int) -> tuple[Note, ...]:
    """Return notes on how other answers are read as labels."""
    if has_class_labels(answers):
        return notes_on_reading_as_coarser_kind("Where answers are read as labels, the order of the labels is ignored.")
    cut_points = ", ".join(score_cut_texts(class_count))
    sentence = (
        f"Labels are scores cut into {class_count} classes at {cut_points}; "
        "a score on a cut belongs to the upper class."
    )
    cut = Note("labels_are_cut", sentence)
    return (*notes_on_reading_ratios_as_scores(), cut) if answers.value_kind == "ratio" else (cut,)


def notes_on_reading_ratios_as_scores() -> tuple[Note, ...]:
    """Return a note on ratios: the share of a ratio r is r / (1 + r), the logistic function of its logarithm."""
    sentence = (
        "Ratios were read as scores by their logarithm: a ratio of 1 to the reference is 50 points, one half is 33, "
        "two is 67, and no ratio reaches 0 or 100."
    )
    return notes_on_reading_as_coarser_kind(sentence)


def notes_on_reading_as_coarser_kind(sentence: str) -> tuple[Note]:
    """Return the note on answers that were read as a coarser kind."""
    return (Note("read_as", sentence),)
