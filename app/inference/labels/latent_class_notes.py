"""Notes that a researcher needs before trusting a fit of `dawid_skene`."""

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from app.inference.ground.arrays import Integers
from app.inference.ground.notes import MAX_LISTED_MENTIONS, Note, joined_mention_placeholders_text, make_mention
from app.inference.labels.latent_classes import ClimbResult, LabelMatrix

Mask = npt.NDArray[np.bool_]


def unlabelled_item_notes(is_labelled: Mask, is_estimable: Mask) -> list[Note]:
    """Return notes on items without a label, and without one that was used, given (n_items,) masks."""
    notes: list[Note] = []
    if not is_labelled.all():
        sentence = "No label was given to these items, so only the prevalence is known: {0}."
        notes.append(Note("items_without_label", sentence, make_mention("item", ~is_labelled)))
    if (set_aside := is_labelled & ~is_estimable).any():
        sentence = (
            "Only annotators whose labels were set aside labelled these items, so only the prevalence is known: {0}."
        )
        notes.append(Note("items_set_aside", sentence, make_mention("item", set_aside)))
    return notes


def unused_annotator_notes(is_active: Mask, is_used: Mask) -> list[Note]:
    """Return notes on annotators whose labels were all left out, given (n_annotators,) masks."""
    notes: list[Note] = []
    if not is_active.all():
        sentence = "These annotators gave no label, so nothing is known about them: {0}."
        notes.append(Note("annotators_without_label", sentence, make_mention("annotator", ~is_active)))
    if (set_aside := is_active & ~is_used).any():
        sentence = "These annotators’ labels were set aside, because none of their items has a second label: {0}."
        notes.append(Note("annotators_set_aside", sentence, make_mention("annotator", set_aside)))
    return notes


def weak_label_evidence_notes(label_matrix: LabelMatrix) -> list[Note]:
    """Return notes on results that rest on the start or the prior more than on the labels."""
    label_counts = label_matrix.counts.sum(axis=0).reshape(label_matrix.n_annotators, label_matrix.n_labels)
    active, used = np.flatnonzero(label_counts.sum(axis=1)), np.flatnonzero(label_counts.sum(axis=0))
    notes: list[Note] = []
    if len(used) == 1:
        sentence = f"Every label is {used[0]}, so nothing is known about how annotators use other labels."
        notes.append(Note("one_label", sentence))
    if len(active) == 1:
        sentence = "All labels are by one annotator, so this measures consistency, not accuracy."
        notes.append(Note("labels_of_one_annotator", sentence))
    if label_matrix.counts.sum(axis=1).max() < 3:
        sentence = (
            "No item has three labels. Two labels do not determine both the accuracy of annotators and the "
            "frequency of classes, so these partly depend on the starting values."
        )
        notes.append(Note("fewer_than_three_labels", sentence))
    return notes + _disconnected_annotators_notes(_group_of_each_annotator(label_matrix), active)


def restart_notes(
    first_climb: ClimbResult, best_climb: ClimbResult, higher_count: int, unconverged_count: int, restart_count: int
) -> list[Note]:
    """Return notes on the random starts; the counts are those of `latent_classes.best_climb_and_restart_counts`."""
    notes: list[Note] = []
    if unconverged_count:
        sentence = f"{unconverged_count:,} of {restart_count:,} random starts did not converge and were left out."
        notes.append(Note("starts_left_out", sentence))
    if not first_climb.converged:
        sentence = "The requested start did not converge either. The result is from the best random start."
        notes.append(Note("start_left_out", sentence))
    elif higher_count:
        sentence = (
            f"{higher_count:,} of {restart_count:,} random starts ended higher than the requested start, the best by "
            f"{best_climb.trace[-1] - first_climb.trace[-1]:.2f} of log-likelihood. The result is from the best start. "
            "Check that its classes still have the meaning of the labels."
        )
        notes.append(Note("higher_start", sentence))
    return notes


def note_on_rows_without_labels() -> Note:
    """Return the note on rows of a response matrix that rest, without smoothing, on no label at all."""
    return Note(
        "unmet_classes",
        "Some annotators never labelled an item of some class, so without smoothing it is unknown how they would label "
        "it and how accurate they are overall.",
    )


def _disconnected_annotators_notes(group_of_annotator: Integers, active_annotators: Integers) -> list[Note]:
    numbers = np.unique(group_of_annotator[active_annotators])
    if len(numbers) == 1:
        return []
    is_active = np.isin(np.arange(len(group_of_annotator)), active_annotators)
    members = [
        make_mention("annotator", (group_of_annotator == number) & is_active)
        for number in numbers[:MAX_LISTED_MENTIONS]
    ]
    end = "; ..." if len(numbers) > MAX_LISTED_MENTIONS else "."
    sentence = (
        f"The annotators fall into {len(numbers):,} groups that share no item: "
        f"{joined_mention_placeholders_text(len(members))}{end} The classes are estimated separately in each group, "
        f"so accuracies "
        "of different groups are comparable only if the prevalence is the same."
    )
    return [Note("groups_of_annotators", sentence, *members)]


def _group_of_each_annotator(label_matrix: LabelMatrix) -> Integers:
    """Return the group of each annotator, (n_annotators,): groups are connected by common items, even indirectly."""
    columns, ends = label_matrix.counts.indices // label_matrix.n_labels, label_matrix.counts.indptr[1:-1]
    same_item = np.ones(len(columns) - 1, dtype=np.bool_)
    same_item[ends - 1] = False
    # Neighbours in an item's row are enough to join all of the row.
    edges = columns[:-1][same_item], columns[1:][same_item]
    shape = (label_matrix.n_annotators, label_matrix.n_annotators)
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=shape)
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)
