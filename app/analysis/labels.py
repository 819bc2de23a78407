"""Labels, those of the design or scores cut into some, and what Dawid and Skene make of them: of the classes, the
annotators and the items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.analysis.coarsened import count_of, has_labels, label_names, labels_of, read_as
from app.analysis.contracts import Drawn, LongTable, MethodExport, TableMethod, TableSection
from app.analysis.findings import Answers, Cell, Column, Options, ResultTable, once, rows_of
from app.analysis.scores import require_answers
from app.drawing import SHARES
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.notes import Note, named
from app.inference.labels import dawid_skene
from app.inference.labels.dawid_skene import Result, confidence, consensus, expected_information

TOO_SURE = Note(
    "confidence_too_high",
    "Confidence is too high where items or annotators have few labels: annotators’ errors are taken to be independent, "
    "and what is learned of annotators to be certain.",
)


# On the diagonal of every response matrix before the first step, as Passonneau & Carpenter 2014 start, whose figures it
# gives: labels of a design mean what they are called. What scores were cut into means what most people say.
OF_DESIGN = 0.7


@once
def fitted(answers: Answers, classes: int) -> Result:
    """Dawid-Skene on the labels; raises `Inestimable`."""
    require_answers(answers)
    return dawid_skene.fit(
        answers.item,
        answers.annotator,
        labels_of(answers, classes),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_labels=count_of(answers, classes),
        start=OF_DESIGN if has_labels(answers) else "votes",
    )


def notes_of(answers: Answers, classes: int, found: Result) -> tuple[Note, ...]:
    """How labels were made, and what is to be kept in mind of the fit."""
    names = {"item": answers.ids, "annotator": answers.names}
    return (*read_as(answers, "classes", classes), *named(found.notes, names))


def label_column(answers: Answers) -> Column:
    return Column("label", "Label" if has_labels(answers) else "Label (points)", "text")


def prevalence(answers: Answers, options: Options) -> ResultTable:
    """One row per label."""
    found = fitted(answers, options.classes)
    names = label_names(answers, options.classes)
    given = np.bincount(labels_of(answers, options.classes), minlength=len(names))
    best, _ = consensus(found)
    rows = rows_of(
        names,
        found.prevalence,
        given / given.sum(),
        np.bincount(best[best >= 0], minlength=len(names)),
        np.diagonal(found.typical_response),
    )
    columns = (
        label_column(answers),
        Column("prevalence", "Prevalence"),
        Column("share", "Share of judgments"),
        Column("items", "Items most probably this", "count"),
        Column("accuracy", "Typical accuracy for such items"),
    )
    return ResultTable(columns, rows, notes_of(answers, options.classes, found))


def annotators(answers: Answers, options: Options) -> ResultTable:
    """One row per annotator."""
    found = fitted(answers, options.classes)
    names = label_names(answers, options.classes)
    columns = (
        Column("annotator", "Pseudonym", "text"),
        Column("name", "Annotator", "text"),
        Column("labels", "Labels", "count"),
        Column("accuracy", "Accuracy"),
        Column("information", "Information of a label (bits)"),
        *(Column(f"accuracy_{k}", f"Accuracy for items of {name}") for k, name in enumerate(names)),
        *(Column(f"evidence_{k}", f"Labels given to items of {name}, expected") for k, name in enumerate(names)),
    )
    rows = rows_of(
        answers.annotators,
        answers.names,
        np.bincount(answers.annotator, minlength=answers.n_annotators),
        found.accuracy,
        found.mutual_information,
        *found.class_accuracy.T,
        *found.evidence.T,
    )
    return ResultTable(columns, rows, notes_of(answers, options.classes, found))


def items(answers: Answers, options: Options) -> ResultTable:
    """One row per item; an item whose labels say nothing has none, and the uncertainty of the prevalence."""
    found = fitted(answers, options.classes)
    names = label_names(answers, options.classes)
    best, confident = consensus(found)
    columns = (
        Column("id", "Id", "text"),
        Column("text", "Item", "text"),
        Column("judgments", "Judgments", "count"),
        label_column(answers),
        Column("confidence", "Confidence"),
        Column("entropy", "Uncertainty (bits)"),
        Column("expected_information", "Expected of one more label (bits)"),
        *(Column(f"probability_{k}", f"Probability of {name}") for k, name in enumerate(names)),
    )
    rows = rows_of(
        answers.ids,
        answers.shown,
        answers.judgments,
        [names[k] if k >= 0 else None for k in best.tolist()],
        confident,
        found.entropy,
        expected_information(found),
        *found.posterior.T,
    )
    return ResultTable(columns, rows, (TOO_SURE, *notes_of(answers, options.classes, found)))


@dataclass(frozen=True)
class Labelled:
    """The label of every judgment, (J,), and how probable it is that it is right; the same of every item, (N,).

    Confidence is NaN, and an item's label -1, where nothing can be said.
    """

    labels: Integers
    confidence: Array
    item_labels: Integers
    item_confidence: Array


def labelled(answers: Answers, classes: int) -> Labelled:
    """All labels with their confidence; raises `Inestimable`."""
    found, labels = fitted(answers, classes), labels_of(answers, classes)
    return Labelled(labels, confidence(found, answers.item, labels), *consensus(found))


LABEL_COLUMNS = (
    *("seq", "annotator", "name", "item", "score", "label", "confidence", "item_label", "item_confidence"),
)


def judgments(answers: Answers, options: Options) -> LongTable:
    """One row per judgment: its label, how probable it is that it is right, and the item's most probable label; the
    score too where labels are scores that were cut.
    """
    found, names = labelled(answers, options.classes), label_names(answers, options.classes)
    columns = [name for name in LABEL_COLUMNS if name != "score" or not has_labels(answers)]
    return LongTable(columns, len(answers.item), partial(label_rows, answers, found, names))


def label_rows(
    answers: Answers, found: Labelled, names: Sequence[str], start: int, stop: int
) -> list[tuple[Cell, ...]]:
    """Some judgments as `LABEL_COLUMNS`, those that there are."""
    some = slice(start, stop)
    item, annotator = answers.item[some], answers.annotator[some].tolist()
    return rows_of(
        answers.seq[answers.hit[some]],
        [answers.annotators[k] for k in annotator],
        [answers.names[k] for k in annotator],
        [answers.ids[k] for k in item.tolist()],
        *(() if has_labels(answers) else (answers.score[some],)),
        [names[k] for k in found.labels[some].tolist()],
        found.confidence[some],
        [names[k] if k >= 0 else None for k in found.item_labels[item].tolist()],
        found.item_confidence[item],
    )


SECTION = TableSection("labels", "Labels", asks=("classes",))

PREVALENCE = TableMethod(
    SECTION,
    "Labels",
    "How common each label is according to Dawid and Skene, who ask how good each annotator is before counting their "
    "labels. Where annotators give scores, labels are scores that were cut.",
    prevalence,
    reads=("classes",),
    options=("classes",),
    drawn=Drawn("prevalence", SHARES),
    room=lambda expected: expected.classes,
)

ANNOTATORS = TableMethod(
    SECTION,
    "Annotators’ labels",
    "How probable it is that an annotator’s label is right, and how much one of them tells about an item.",
    annotators,
    reads=("classes",),
    options=("classes",),
    of_people=True,
    drawn=Drawn("accuracy", SHARES),
    room=lambda expected: expected.annotators,
)

ITEMS = TableMethod(
    SECTION,
    "Items’ labels",
    "The most probable label of each item with its confidence, what is still uncertain, and how much one more "
    "label is expected to tell: ask where that is most.",
    items,
    reads=("classes",),
    options=("classes",),
    per_item=True,
    drawn=Drawn("confidence", SHARES),
    room=lambda expected: expected.items,
    exports=(
        MethodExport(
            "item_labels",
            "Labels of items",
            "Dawid and Skene’s label of every item, its confidence and uncertainty.",
            cuts=True,
        ),
        MethodExport(
            "labels",
            "Labels of judgments",
            "The label of every judgment with the confidence that it is right, and the label of its item.",
            judgments,
            cuts=True,
        ),
    ),
)
