"""What a researcher should know about labels before believing what `dawid_skene` makes of them, in sentences."""

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from app.inference.ground.arrays import Integers
from app.inference.ground.notes import MOST_LISTED, Note, listed, mention
from app.inference.labels.latent_classes import Climb, Labels

Mask = npt.NDArray[np.bool_]


def on_items(labelled: Mask, estimable: Mask) -> list[Note]:
    """labelled, estimable: (n_items,), whether an item has a label, and whether one that was used."""
    notes: list[Note] = []
    if not labelled.all():
        sentence = "Without a label, so that all one knows is the prevalence: {0}."
        notes.append(Note("items_without_label", sentence, mention("item", ~labelled)))
    if (aside := labelled & ~estimable).any():
        sentence = (
            "Labelled only by annotators whose labels were set aside, so that all one knows is the prevalence: {0}."
        )
        notes.append(Note("items_set_aside", sentence, mention("item", aside)))
    return notes


def on_annotators(active: Mask, known: Mask) -> list[Note]:
    """active, known: (n_annotators,), whether an annotator gave a label, and whether one that was used."""
    notes: list[Note] = []
    if not active.all():
        sentence = "Without a label, so that nothing can be said of them: {0}."
        notes.append(Note("annotators_without_label", sentence, mention("annotator", ~active)))
    if (aside := active & ~known).any():
        sentence = (
            "None of their items has a second label, so nothing tells how good they are and their labels were set "
            "aside: {0}."
        )
        notes.append(Note("annotators_set_aside", sentence, mention("annotator", aside)))
    return notes


def on_labels(labels: Labels) -> list[Note]:
    """Where what was found rests on the start or the prior more than on the labels."""
    given = labels.counts.sum(axis=0).reshape(labels.n_annotators, labels.n_labels)
    active, used = np.flatnonzero(given.sum(axis=1)), np.flatnonzero(given.sum(axis=0))
    notes: list[Note] = []
    if len(used) == 1:
        sentence = f"Every label is {used[0]}, so nothing tells how annotators would label anything else."
        notes.append(Note("one_label", sentence))
    if len(active) == 1:
        sentence = "All labels are by one annotator, so what is measured is how consistent they are, not how right."
        notes.append(Note("labels_of_one_annotator", sentence))
    if labels.counts.sum(axis=1).max() < 3:
        sentence = (
            "No item has three labels. Two leave open how accurate annotators are and how frequent classes, so these "
            "rest in part on the start."
        )
        notes.append(Note("fewer_than_three_labels", sentence))
    return notes + _on_groups(_groups(labels), active)


def on_restarts(first: Climb, best: Climb, higher: int, lost: int, restarts: int) -> list[Note]:
    """first: from the start asked for; best: the one reported; higher, lost: as `latent_classes.highest` counts."""
    notes: list[Note] = []
    if lost:
        sentence = f"{lost:,} of {restarts:,} random starts did not settle and were left out."
        notes.append(Note("starts_left_out", sentence))
    if not first.converged:
        sentence = "The start asked for did not settle either. Reported is the highest end of a random start."
        notes.append(Note("start_left_out", sentence))
    elif higher:
        sentence = (
            f"{higher:,} of {restarts:,} random starts ended higher than the start asked for, the best by "
            f"{best.trace[-1] - first.trace[-1]:.2f} of log-likelihood. It is the one reported; look whether its "
            "classes still mean what the labels say."
        )
        notes.append(Note("higher_start", sentence))
    return notes


def on_unmet_classes() -> Note:
    """Where, without smoothing, a row of a response matrix rests on no label at all."""
    return Note(
        "unmet_classes",
        "Some annotators never labelled an item of some class, so without smoothing nothing tells how they would, nor "
        "how accurate they are overall.",
    )


def _on_groups(group: Integers, active: Integers) -> list[Note]:
    numbers = np.unique(group[active])
    if len(numbers) == 1:
        return []
    is_active = np.isin(np.arange(len(group)), active)
    members = [mention("annotator", (group == number) & is_active) for number in numbers[:MOST_LISTED]]
    end = "; ..." if len(numbers) > MOST_LISTED else "."
    sentence = (
        f"The annotators fall into {len(numbers):,} groups that share no item: {listed(len(members))}{end} What their "
        "classes are is settled in each group alone, so accuracies of different groups compare only if the prevalence "
        "is the same."
    )
    return [Note("groups_of_annotators", sentence, *members)]


def _groups(labels: Labels) -> Integers:
    """(n_annotators,): the number of each annotator's group, joined by common items, even by way of others."""
    columns, ends = labels.counts.indices // labels.n_labels, labels.counts.indptr[1:-1]
    same_item = np.ones(len(columns) - 1, dtype=np.bool_)
    same_item[ends - 1] = False
    # Neighbours in an item's row are enough to join all of the row.
    edges = columns[:-1][same_item], columns[1:][same_item]
    shape = (labels.n_annotators, labels.n_annotators)
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=shape)
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)
