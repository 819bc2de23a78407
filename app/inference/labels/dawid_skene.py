"""Dawid-Skene: the classes of items and the response matrix of each annotator, from labels without any truth.

Every item has one true class, drawn from the prevalence; an annotator who labels an item of class k gives label l with
the probability in row k, column l of a response matrix of their own. Dawid & Skene 1979, "Maximum Likelihood Estimation
of Observer Error-Rates Using the EM Algorithm", with the additive smoothing and the measures of information of
Passonneau & Carpenter 2014, "The Benefits of a Model of Annotation", sections 2.2.1 and 2.2.2 (their equations have no
numbers).

Labels and classes are the same K things, numbered from 0. Information is in bits, log-likelihoods are natural.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.ground.information import entropy, mutual_information
from app.inference.ground.notes import Note
from app.inference.ground.validation import index_array_and_count_or_raise, refuse_columns_of_unequal_length
from app.inference.labels import latent_class_notes, latent_classes
from app.inference.labels.latent_classes import ClassParameters, ClimbResult, LabelMatrix, StopRule

Mask = npt.NDArray[np.bool_]

# What a start takes for impossible may be what the next batch holds, and EM never leaves a probability of 0.
_MIN_START_PROBABILITY = 1e-6


@dataclass(frozen=True, slots=True)
class DawidSkeneResult:
    """Estimates for n_items items, n_annotators annotators and K classes.

    Attributes:
        prevalence: (K,), the share of each class, sums to 1.
        posterior: (n_items, K), the probability of each class for the item, rows sum to 1; the prevalence where not
        estimable.
        entropy: (n_items,), the uncertainty of that posterior in bits, 0 to log2(K).
        estimable: (n_items,) bool, whether a label was used for the item.
        response: (n_annotators, K, K), [j, k, l] the probability that annotator j gives label l to an item of class k.
        typical_response: (K, K), the same over all labels together: for an annotator without estimates.
        class_accuracy: (n_annotators, K), the diagonals: the probability of a right label for an item of class k.
        accuracy: (n_annotators,), the probability of a right label for an item drawn from the prevalence.
        mutual_information: (n_annotators,), the information of one label about an item drawn from the prevalence, in
            bits:
        0 for an annotator whose answers do not depend on the item, and high for one who is reliably wrong.
        evidence: (n_annotators, K), the expected number of labels given to items of class k: the basis of row k of
        `response`. Where it is well below 1 the row is little more than the prior; where it is 0 without smoothing,
        NaN.
        estimable_annotators: (n_annotators,) bool; the figures of the others are NaN, and their evidence 0.
        log_likelihood: The log-likelihood of the labels used, at these parameters.
        trace: (iterations,), the penalised log-likelihood (up to a constant) at each step; never falls but for
            rounding.
        notes: Sentences for the researcher on what could not be estimated, and why.

    """

    prevalence: Array
    posterior: Array
    entropy: Array
    estimable: Mask
    response: Array
    typical_response: Array
    class_accuracy: Array
    accuracy: Array
    mutual_information: Array
    evidence: Array
    estimable_annotators: Mask
    log_likelihood: float
    trace: Array
    notes: tuple[Note, ...]

    @property
    def iterations(self) -> int:
        """Number of steps of the climb."""
        return len(self.trace)


StartingPoint = Literal["votes"] | float | DawidSkeneResult


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_labels: int | None = None,
    alpha: npt.ArrayLike = 1.01,
    beta: npt.ArrayLike = 1.01,
    start: StartingPoint = "votes",
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> DawidSkeneResult:
    """Estimate the parameters of greatest posterior density that EM reaches from its start.

    Time and memory are linear in the labels. If no item of an annotator has a second label, the labels of this
    annotator are set aside, and `notes` says so: there is no evidence of how good the annotator is, and so of what the
    labels are worth.

    Args:
        items: (n,) whole numbers from 0, one entry per label; an annotator may label an item twice.
        annotators: (n,) whole numbers from 0.
        labels: (n,) whole numbers from 0.
        n_items: The number of items; this and the next two default to 1 + the largest number.
        n_annotators: The number of annotators.
        n_labels: K, the number of labels.
        alpha: Dirichlet parameter of the rows of every response matrix, at least 1: a number, or (K, K) with row k for
        class k. 1 is no smoothing, 1.01 adds .01 to every count.
        beta: Dirichlet parameter of the prevalence: a number or (K,).
        start: The likelihood has many optima, and EM climbs to the one that its start leads to. "votes": each item's
        posterior is the share of its labels, so a class means what most people call it. A number between 1/K and 1:
        that on the diagonal of every response matrix, the rest shared equally, and equal prevalence; .7 is a usual
        choice. A `DawidSkeneResult`: its parameters, for continuing after one more batch; give all labels, not the new
        ones alone; new items and annotators are allowed.
        restarts: The number of additional random starts, with `rng`; the highest end is taken, that of `start` if none
            is
        higher. The classes of a random start are named after the labels they are given most, unless alpha or beta
        tells classes apart.
        rng: The source of the random starts.
        tolerance: The fit ends when no posterior is farther than this from its limit, as predicted by its last steps.
        max_iterations: The largest number of steps.

    Raises:
        Inestimable: "no_labels", "one_class" (K is 1) or "no_overlap" (no item has two labels).
        NotConverged: "not_converged".
        ValueError: An array or option is invalid.

    """
    items, n_items = index_array_and_count_or_raise("items", items, n_items)
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    labels, n_labels = index_array_and_count_or_raise("labels", labels, n_labels)
    refuse_columns_of_unequal_length(items=items, annotators=annotators, labels=labels)
    _refuse_no_labels_or_one_class(labels, n_labels)
    rule, smoothing = StopRule(tolerance, max_iterations), _make_smoothing(alpha, beta, n_labels)
    is_labelled, is_active = (
        np.bincount(items, minlength=n_items) > 0,
        np.bincount(annotators, minlength=n_annotators) > 0,
    )
    has_overlap = _mask_of_overlapping_annotators(items, annotators, n_annotators)
    is_used = has_overlap[annotators]
    items, annotators = items[is_used], annotators[is_used]
    estimable = np.bincount(items, minlength=n_items) > 0
    row_numbers = (np.cumsum(estimable) - 1)[items]
    label_matrix = latent_classes.make_label_matrix(row_numbers, annotators, labels[is_used], n_annotators, n_labels)
    climb_result, restart_notes = _highest_climb_and_restart_notes(
        start, label_matrix, smoothing, rule, restarts=restarts, rng=rng
    )
    notes = [
        *latent_class_notes.unlabelled_item_notes(is_labelled, estimable),
        *latent_class_notes.unused_annotator_notes(is_active, has_overlap),
        *latent_class_notes.weak_label_evidence_notes(label_matrix),
        *restart_notes,
    ]
    return _make_result_from_climb(climb_result, smoothing, estimable, has_overlap, notes)


def expected_information(result: DawidSkeneResult, annotator: int | None = None) -> Array:
    """Expected decrease of each item's entropy by one more label, (n_items,) bits; ask where it is largest.

    `annotator` gives the label; None is a typical annotator, as is an annotator without estimable responses.
    """
    response = result.typical_response
    if annotator is not None:
        response = _fill_nan_with_typical_response(result.response[annotator], result)
    return mutual_information(result.posterior, response)


def probability_of_each_label_being_right(
    result: DawidSkeneResult, items: npt.ArrayLike, labels: npt.ArrayLike
) -> Array:
    """Probability that a label is right, given all labels: (n,) items and their (n,) labels give (n,).

    NaN where the item is not estimable. Raises ValueError for numbers the result does not have.
    """
    items, _ = index_array_and_count_or_raise("items", items, len(result.estimable))
    labels, _ = index_array_and_count_or_raise("labels", labels, len(result.prevalence))
    refuse_columns_of_unequal_length(items=items, labels=labels)
    return np.where(result.estimable[items], result.posterior[items, labels], np.nan)


def consensus(result: DawidSkeneResult) -> tuple[Integers, Array]:
    """Return the most probable class of each item, (n_items,), and its probability, (n_items,).

    The lowest of equally probable classes. -1 and NaN where the item is not estimable.
    """
    best_class = result.posterior.argmax(axis=1)
    probability = np.take_along_axis(result.posterior, best_class[:, None], axis=1)[:, 0]
    return np.where(result.estimable, best_class, -1), np.where(result.estimable, probability, np.nan)


def _refuse_no_labels_or_one_class(labels: Integers, n_labels: int) -> None:
    if not len(labels):
        raise Inestimable("There are no labels, so nothing can be estimated.", code="no_labels")
    if n_labels < 2:
        raise Inestimable("There is only one label to choose, so no label can be wrong.", code="one_class")


def _make_smoothing(alpha: npt.ArrayLike, beta: npt.ArrayLike, n_labels: int) -> ClassParameters:
    """Return Dirichlet parameters minus 1. Raises ValueError below 1, where the density has no peak inside."""
    shape = (n_labels,)
    return ClassParameters(
        _parameters_minus_one_or_raise("beta", beta, shape), _parameters_minus_one_or_raise("alpha", alpha, shape * 2)
    )


def _parameters_minus_one_or_raise(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    parameters = np.asarray(values, dtype=np.float64)
    if parameters.shape not in ((), shape):
        raise ValueError(f"{name} must be a number or of shape {shape}, not {parameters.shape}")
    if not np.all((parameters >= 1.0) & (parameters < np.inf)):
        raise ValueError(f"{name} must be finite and at least 1")
    return np.broadcast_to(parameters - 1.0, shape)


def _mask_of_overlapping_annotators(items: Integers, annotators: Integers, n_annotators: int) -> Mask:
    """Return which annotators (n_annotators,) gave a label to an item that has another label.

    The others' response matrices can explain any shares of their labels by any prevalence, so the likelihood is the
    same whatever they are.
    """
    is_shared = (np.bincount(items) > 1)[items]
    if not is_shared.any():
        raise Inestimable(
            "No item has two labels, so it is unknown who is right. Let several annotators label the same items.",
            code="no_overlap",
        )
    return np.bincount(annotators[is_shared], minlength=n_annotators) > 0


def _highest_climb_and_restart_notes(
    start: StartingPoint,
    label_matrix: LabelMatrix,
    smoothing: ClassParameters,
    rule: StopRule,
    *,
    restarts: int,
    rng: np.random.Generator | None,
) -> tuple[ClimbResult, list[Note]]:
    best = latent_classes.run_em(_start_parameters(start, label_matrix, smoothing), label_matrix, smoothing, rule)
    notes: list[Note] = []
    if restarts:
        if rng is None:
            raise ValueError("random restarts need rng")
        first = best
        best, higher, unconverged = latent_classes.best_climb_and_restart_counts(
            first, label_matrix, smoothing, rule, restarts=restarts, rng=rng
        )
        notes = latent_class_notes.restart_notes(first, best, higher, unconverged, restarts)
    if not best.converged:
        raise NotConverged(
            f"The fit did not converge in {rule.max_iterations:,} iterations: the last one still gained "
            f"{best.trace[-1] - best.trace[-2]:.2g} of log-likelihood. Allow more iterations or more tolerance.",
            code="not_converged",
        )
    return best, notes


def _start_parameters(start: StartingPoint, label_matrix: LabelMatrix, smoothing: ClassParameters) -> ClassParameters:
    if isinstance(start, DawidSkeneResult):
        return _parameters_from_result(start, label_matrix)
    if start == "votes":
        return latent_classes.parameters_from_label_shares(label_matrix, smoothing)
    if not 1.0 / label_matrix.n_labels < start < 1.0:
        raise ValueError(f"a starting accuracy must lie between 1/{label_matrix.n_labels} and 1, not be {start}")
    return latent_classes.parameters_from_accuracy(start, label_matrix)


def _parameters_from_result(result: DawidSkeneResult, label_matrix: LabelMatrix) -> ClassParameters:
    """Return the result's parameters for the annotators of these labels; a new annotator starts as typical."""
    if len(result.prevalence) != label_matrix.n_labels:
        raise ValueError(f"the start has {len(result.prevalence)} classes, not {label_matrix.n_labels}")
    response = np.full((label_matrix.n_annotators, label_matrix.n_labels, label_matrix.n_labels), np.nan)
    common_count = min(len(result.response), label_matrix.n_annotators)
    response[:common_count] = result.response[:common_count]
    response = _fill_nan_with_typical_response(response, result)
    return ClassParameters(
        *(latent_classes.counts_to_shares(p.clip(_MIN_START_PROBABILITY)) for p in (result.prevalence, response))
    )


def _fill_nan_with_typical_response(response: Array, result: DawidSkeneResult) -> Array:
    return np.where(np.isnan(response), result.typical_response, response)


def _make_result_from_climb(
    climb_result: ClimbResult, smoothing: ClassParameters, estimable: Mask, has_overlap: Mask, notes: list[Note]
) -> DawidSkeneResult:
    end = climb_result.end
    prevalence, evidence = end.parameters.prevalence, end.expected.sum(axis=-1)
    typical = latent_classes.counts_to_shares(end.expected.sum(axis=0) + smoothing.response)
    lacks_evidence = ~has_overlap[:, None] | (evidence + smoothing.response.sum(axis=-1) == 0.0)
    response = np.where(lacks_evidence[:, :, None], np.nan, end.parameters.response)
    if (lacks_evidence & has_overlap[:, None] & (prevalence > 0.0)).any():
        notes = [*notes, latent_class_notes.note_on_rows_without_labels()]
    # A class that no item has is nobody's to be right about.
    usable_response = np.where(prevalence[:, None] > 0.0, response, typical)
    posterior = np.tile(prevalence, (len(estimable), 1))
    posterior[estimable] = end.posterior.T
    return DawidSkeneResult(
        prevalence=prevalence,
        posterior=posterior,
        entropy=entropy(posterior),
        estimable=estimable,
        response=response,
        typical_response=typical,
        class_accuracy=np.diagonal(response, axis1=1, axis2=2).copy(),
        accuracy=np.einsum("jkk,k->j", usable_response, prevalence),
        mutual_information=mutual_information(prevalence, usable_response),
        evidence=evidence,
        estimable_annotators=has_overlap,
        log_likelihood=end.log_likelihood,
        trace=np.array(climb_result.trace),
        notes=tuple(notes),
    )
