"""Tables of several labels: which of them apply to each item, and which sets of labels annotators gave.

A label is a criterion with the answers no and yes, as the points 0 and 100. Dawid-Skene is fitted to each label by
itself, so nothing is assumed about which labels go together.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from app.analysis.label_columns import FoldedColumns, LabelColumnGroup
from app.analysis.label_tables import DESIGN_LABEL_START_ACCURACY, OVERCONFIDENCE_NOTE
from app.analysis.method_types import MethodExport, TableMethod, TableSection
from app.analysis.result_types import Answers, Column, Mask, Options, ResultTable, columns_to_cell_rows
from app.analysis.scores import refuse_without_answers
from app.designs.several_labels import are_no_and_yes
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.labels import dawid_skene
from app.inference.labels.cautious_posterior import result_with_cautious_posteriors

NO_LABELS = "none of these"
MAX_SETS = 100  # rows of the table of sets; 12 labels have 4,096
OTHER_SETS = "other sets"


def answers_of_each_label(answers: Answers) -> dict[str, Mask]:
    """Return whether each judgment is a yes, (J,), by label.

    Criteria with other answers than no and yes are left out. Raises `Inestimable` (`no_judgments`,
    `no_labels`, `method_reads_other_answers`).
    """
    refuse_without_answers(answers)
    if not answers.yes_or_no_criteria:  # if the table is asked for by its name
        code = "no_labels" if are_no_and_yes(answers.classes) else "method_reads_other_answers"
        raise Inestimable("No criterion has the answers no and yes.", code=code)
    return {name: answers.scores_by_criterion[name] > 0 for name in answers.yes_or_no_criteria}


def share_of_yes_of_each_item(answers: Answers, is_yes: Mask) -> Array:
    """Return the share of annotators who gave an item the label, (N,); NaN without judgments."""
    counts, shares = answers.judgment_counts, np.full(answers.n_items, np.nan)
    yes = np.bincount(answers.item, weights=is_yes, minlength=answers.n_items)
    np.divide(yes, counts, out=shares, where=counts > 0)
    return shares


def probability_of_yes_of_each_item(answers: Answers, is_yes: Mask) -> Array:
    """Return Dawid and Skene's probability that an item has the label, (N,)."""
    labels = is_yes.astype(np.intp)
    result = dawid_skene.fit(
        *(answers.item, answers.annotator, labels),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_labels=2,
        start=DESIGN_LABEL_START_ACCURACY,
    )
    return result_with_cautious_posteriors(result, answers.item, answers.annotator, labels).posterior[:, 1]


def set_of_each_item_or_none(figures_by_label: Mapping[str, Array], has_judgments: Mask) -> list[str | None]:
    """Return the labels whose figure is above a half, as a text; None for items without judgments."""
    return [
        label_set_text([name for name, figures in figures_by_label.items() if figures[item] > 0.5]) if judged else None
        for item, judged in enumerate(has_judgments.tolist())
    ]


def label_set_text(names: Sequence[str]) -> str:
    """Return the labels of a set, with quotation marks around one that would read as several, or as none."""
    is_ambiguous = {name: ";" in name or name.casefold() == NO_LABELS for name in names}
    return "; ".join(f"“{name}”" if is_ambiguous[name] else name for name in names) or NO_LABELS


def build_item_label_set_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per item, with two figures for each label. Raises as `answers_of_each_label` does."""
    labels = answers_of_each_label(answers)
    shares = {name: share_of_yes_of_each_item(answers, is_yes) for name, is_yes in labels.items()}
    probabilities = {name: probability_of_yes_of_each_item(answers, is_yes) for name, is_yes in labels.items()}
    columns = (
        Column("id", "Id", "text"),
        Column("text", "Item", "text"),
        Column("judgments", "Judgments", "count"),
        Column("majority_set", "Labels by majority", "text"),
        Column("probable_set", "Labels by probability", "text"),
        *(Column(f"share_{k}", f"Share of yes for {name}") for k, name in enumerate(labels, start=1)),
        *(Column(f"probability_{k}", f"Probability of {name}") for k, name in enumerate(labels, start=1)),
    )
    rows = columns_to_cell_rows(
        *(answers.ids, answers.shown, answers.judgment_counts),
        set_of_each_item_or_none(shares, answers.has_judgments),
        set_of_each_item_or_none(probabilities, answers.has_judgments),
        *shares.values(),
        *probabilities.values(),
    )
    return ResultTable(columns, rows, (OVERCONFIDENCE_NOTE,))


def build_label_set_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per set of labels, the most frequent first. Raises as `answers_of_each_label` does."""
    labels = answers_of_each_label(answers)
    shares = {name: share_of_yes_of_each_item(answers, is_yes) for name, is_yes in labels.items()}
    given_sets = np.column_stack([*labels.values()])
    item_sets = np.column_stack([*shares.values()])[answers.has_judgments] > 0.5
    sets, set_numbers = np.unique(np.vstack([given_sets, item_sets]), axis=0, return_inverse=True)
    total = len(given_sets)
    judgment_counts = np.bincount(set_numbers[:total], minlength=len(sets))
    item_counts = np.bincount(set_numbers[total:], minlength=len(sets))
    largest_first = np.argsort(-(judgment_counts + item_counts), kind="stable")
    frequent, rare = largest_first[:MAX_SETS], largest_first[MAX_SETS:]
    rows = columns_to_cell_rows(
        [label_set_text([name for name, has in zip(labels, row, strict=True) if has]) for row in sets[frequent]],
        judgment_counts[frequent],
        judgment_counts[frequent] / total,
        item_counts[frequent],
    )
    if len(rare):
        judgments, items = int(judgment_counts[rare].sum()), int(item_counts[rare].sum())
        rows.append((OTHER_SETS, judgments, judgments / total, items))
    columns = (
        Column("labels", "Labels", "text"),
        Column("judgments", "Judgments", "count"),
        Column("share", "Share of judgments"),
        Column("items", "Items with these labels by majority", "count"),
    )
    return ResultTable(columns, rows)


LABEL_SETS_SECTION = TableSection("label_sets", "Sets of labels")

ITEM_LABEL_SET_TABLE = TableMethod(
    LABEL_SETS_SECTION,
    "Items by label",
    "For each item and label, the share of annotators who ticked it, and the probability that it applies according to "
    "the Dawid-Skene model, fitted to each label by itself. An item’s labels are those with more than half.",
    build_item_label_set_table,
    reads=("classes",),
    per_item=True,
    needs_criteria=True,
    needs_yes_or_no=True,
    folded_columns=FoldedColumns(
        Column("by_label", "Most probable labels", "text"),
        (
            LabelColumnGroup("probability_", "Probability of ", "Probability"),
            LabelColumnGroup("share_", "Share of yes for ", "Share of yes"),
        ),
        shows_largest=True,
    ),
    exports=(
        MethodExport(
            "item_label_sets",
            "Items by label",
            "Every item with its labels by majority and by Dawid-Skene, and for each label the share of annotators who "
            "ticked it and the probability that it applies.",
        ),
    ),
)

LABEL_SET_TABLE = TableMethod(
    LABEL_SETS_SECTION,
    "Sets of labels",
    "How often annotators gave each set of labels, and how many items have it by majority. Labels that often come "
    "together may be hard to tell apart.",
    build_label_set_table,
    reads=("classes",),
    needs_criteria=True,
    needs_yes_or_no=True,
    exports=(MethodExport("label_sets", "Sets of labels", "Every set of labels with its judgments and items."),),
)
