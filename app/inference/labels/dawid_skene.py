"""Dawid-Skene: what items are and how each annotator answers, from categorical labels without any truth.

Every item has one true class, drawn from the prevalence; an annotator who labels an item of class k says l with the
probability in row k, column l of a response matrix of their own. Dawid & Skene 1979, "Maximum Likelihood Estimation of
Observer Error-Rates Using the EM Algorithm", with the additive smoothing and the measures of information of Passonneau
& Carpenter 2014, "The Benefits of a Model of Annotation", sections 2.2.1 and 2.2.2 (their equations have no numbers).

Labels and classes are the same K things, numbered from 0. Information is in bits, log-likelihoods are natural.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.ground.information import entropy, mutual_information
from app.inference.ground.long_form import check_equal_length, numbered
from app.inference.ground.notes import Note
from app.inference.labels import latent_class_notes, latent_classes
from app.inference.labels.latent_classes import ClassParameters, Climb, Labels, StopRule

Mask = npt.NDArray[np.bool_]

# What a start takes for impossible may be what the next batch holds, and EM never leaves a probability of 0.
_LEAST_AT_START = 1e-6


@dataclass(frozen=True, slots=True)
class Result:
    """What a fit found, for n_items items, n_annotators annotators and K classes.

    prevalence: (K,), the share of each class, sums to 1.
    posterior: (n_items, K), how probable each class is for the item, rows sum to 1; the prevalence where not estimable.
    entropy: (n_items,), the uncertainty of that posterior in bits, 0 to log2(K).
    estimable: (n_items,) bool, whether a label was used for the item.
    response: (n_annotators, K, K), [j, k, l] the probability that annotator j says l of an item of class k.
    typical_response: (K, K), the same over all labels together: for an annotator about whom nothing is known.
    class_accuracy: (n_annotators, K), the diagonals: the probability of a right label for an item of class k.
    accuracy: (n_annotators,), the probability of a right label for an item drawn from the prevalence.
    mutual_information: (n_annotators,), what one label tells about an item drawn from the prevalence, in bits: 0 for
        an annotator whose answers do not depend on the item, and much for one who is reliably wrong.
    evidence: (n_annotators, K), the expected number of labels given to items of class k: what row k of `response`
        rests on. Where it is well below 1 the row is little more than the prior; where it is 0 without smoothing, NaN.
    estimable_annotators: (n_annotators,) bool; what belongs to the others is NaN, and their evidence 0.
    log_likelihood: of the labels used, at these parameters.
    trace: (iterations,), the penalised log-likelihood (up to a constant) at each step; never falls but for rounding.
    notes: sentences for the researcher on what could not be estimated, and why.
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
        """How many steps it took to get here."""
        return len(self.trace)


Start = Literal["votes"] | float | Result


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
    start: Start = "votes",
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> Result:
    """The parameters of greatest posterior density that EM reaches from its start, and what follows from them.

    items, annotators, labels: (n,) whole numbers from 0, one entry per label; an annotator may label an item twice.
    n_items, n_annotators, n_labels: how many there are; each defaults to 1 + the largest number. n_labels is K.
    alpha: Dirichlet parameter of the rows of every response matrix, at least 1: a number, or (K, K) with row k for
        class k. beta: that of the prevalence: a number or (K,). 1 is no smoothing, 1.01 adds .01 to every count.
    start: the likelihood has many optima, and EM climbs to the one that its start leads to.
        "votes": each item's posterior is the share of its labels, so a class means what most people call it.
        A number between 1/K and 1: that on the diagonal of every response matrix, the rest shared equally, and equal
        prevalence; .7 is a usual choice.
        A Result: its parameters, for going on after one more batch. Give all labels, not the new ones alone; items
        and annotators beyond those of the Result are welcome.
    restarts: how many random starts are tried besides, with `rng`; the highest end is taken, that of `start` if none
        is higher. The classes that a random start ends with are named after the labels they are given most, unless
        alpha or beta tells classes apart.
    tolerance: the fit ends when no posterior is farther than this from where EM leads, as far as its last steps tell.

    Time and memory are linear in the labels. Labels of an annotator none of whose items has a second label are set
    aside, and `notes` says so: nothing tells how good that annotator is, so nothing tells what the labels are worth.

    Raises Inestimable with the code "no_labels", "one_class" (K is 1) or "no_overlap" (no item has two labels), and
    NotConverged with the code "not_converged". Raises ValueError for arrays or options that cannot be.
    """
    items, n_items = numbered("items", items, n_items)
    annotators, n_annotators = numbered("annotators", annotators, n_annotators)
    labels, n_labels = numbered("labels", labels, n_labels)
    check_equal_length(items=items, annotators=annotators, labels=labels)
    _check_there_is_something(labels, n_labels)
    rule, smoothing = StopRule(tolerance, max_iterations), _smoothing(alpha, beta, n_labels)
    labelled, active = np.bincount(items, minlength=n_items) > 0, np.bincount(annotators, minlength=n_annotators) > 0
    known = _with_overlap(items, annotators, n_annotators)
    used = known[annotators]
    items, annotators = items[used], annotators[used]
    estimable = np.bincount(items, minlength=n_items) > 0
    rows = (np.cumsum(estimable) - 1)[items]
    data = latent_classes.labels_of(rows, annotators, labels[used], n_annotators, n_labels)
    climbed, on_restarts = _climbed(start, data, smoothing, rule, restarts=restarts, rng=rng)
    notes = [
        *latent_class_notes.on_items(labelled, estimable),
        *latent_class_notes.on_annotators(active, known),
        *latent_class_notes.on_labels(data),
        *on_restarts,
    ]
    return _result(climbed, smoothing, estimable, known, notes)


def expected_information(result: Result, annotator: int | None = None) -> Array:
    """How far one more label is expected to lower the entropy of each item: (n_items,) bits; ask where it is largest.

    annotator: whose label it would be. None is a typical annotator; so is one about whom nothing is known, as far as
    nothing is known.
    """
    response = result.typical_response
    if annotator is not None:
        response = _typical_where_unknown(result.response[annotator], result)
    return mutual_information(result.posterior, response)


def confidence(result: Result, items: npt.ArrayLike, labels: npt.ArrayLike) -> Array:
    """How probable it is that a label is right, given all labels: (n,) items and their (n,) labels give (n,).

    NaN where the item is not estimable. Raises ValueError for numbers the result does not have.
    """
    items, _ = numbered("items", items, len(result.estimable))
    labels, _ = numbered("labels", labels, len(result.prevalence))
    check_equal_length(items=items, labels=labels)
    return np.where(result.estimable[items], result.posterior[items, labels], np.nan)


def consensus(result: Result) -> tuple[Integers, Array]:
    """The most probable class of each item, and how probable it is: (n_items,) and (n_items,).

    Of classes that are equally probable the lowest. -1 and NaN where the item is not estimable.
    """
    best = result.posterior.argmax(axis=1)
    probability = np.take_along_axis(result.posterior, best[:, None], axis=1)[:, 0]
    return np.where(result.estimable, best, -1), np.where(result.estimable, probability, np.nan)


def _check_there_is_something(labels: Integers, n_labels: int) -> None:
    if not len(labels):
        raise Inestimable("There are no labels, so nothing can be estimated.", code="no_labels")
    if n_labels < 2:
        raise Inestimable(
            "There is only one label to choose, so there is nothing to be right or wrong about.", code="one_class"
        )


def _smoothing(alpha: npt.ArrayLike, beta: npt.ArrayLike, n_labels: int) -> ClassParameters:
    """Dirichlet parameters less 1. Below 1 the density has no peak inside; ValueError then."""
    shape = (n_labels,)
    return ClassParameters(_at_least_one("beta", beta, shape), _at_least_one("alpha", alpha, shape * 2))


def _at_least_one(name: str, parameter: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    parameters = np.asarray(parameter, dtype=np.float64)
    if parameters.shape not in ((), shape):
        raise ValueError(f"{name} must be a number or of shape {shape}, not {parameters.shape}")
    if not np.all((parameters >= 1.0) & (parameters < np.inf)):
        raise ValueError(f"{name} must be finite and at least 1")
    return np.broadcast_to(parameters - 1.0, shape)


def _with_overlap(items: Integers, annotators: Integers, n_annotators: int) -> Mask:
    """Which annotators (n_annotators,) gave a label to an item that has another.

    The others' response matrices can take any shares of their labels from any prevalence, so the likelihood is the
    same whatever they are.
    """
    overlaps = (np.bincount(items) > 1)[items]
    if not overlaps.any():
        raise Inestimable(
            "No item has two labels, so nothing tells who is right. Let several annotators label the same items.",
            code="no_overlap",
        )
    return np.bincount(annotators[overlaps], minlength=n_annotators) > 0


def _climbed(
    start: Start,
    labels: Labels,
    smoothing: ClassParameters,
    rule: StopRule,
    *,
    restarts: int,
    rng: np.random.Generator | None,
) -> tuple[Climb, list[Note]]:
    climbed = latent_classes.climb(_start(start, labels, smoothing), labels, smoothing, rule)
    notes: list[Note] = []
    if restarts:
        if rng is None:
            raise ValueError("random restarts need rng")
        first = climbed
        climbed, higher, lost = latent_classes.highest(first, labels, smoothing, rule, restarts=restarts, rng=rng)
        notes = latent_class_notes.on_restarts(first, climbed, higher, lost, restarts)
    if not climbed.converged:
        raise NotConverged(
            f"The fit did not settle in {rule.max_iterations:,} iterations: the last one still gained "
            f"{climbed.trace[-1] - climbed.trace[-2]:.2g} of log-likelihood. Allow more iterations or more tolerance.",
            code="not_converged",
        )
    return climbed, notes


def _start(start: Start, labels: Labels, smoothing: ClassParameters) -> ClassParameters:
    if isinstance(start, Result):
        return _from_result(start, labels)
    if start == "votes":
        return latent_classes.from_votes(labels, smoothing)
    if not 1.0 / labels.n_labels < start < 1.0:
        raise ValueError(f"an accuracy to start from lies between 1/{labels.n_labels} and 1, not at {start}")
    return latent_classes.from_diagonal(start, labels)


def _from_result(result: Result, labels: Labels) -> ClassParameters:
    """Its parameters for the annotators of these labels; a newcomer starts as typical."""
    if len(result.prevalence) != labels.n_labels:
        raise ValueError(f"the start is of {len(result.prevalence)} classes, not of {labels.n_labels}")
    response = np.full((labels.n_annotators, labels.n_labels, labels.n_labels), np.nan)
    both = min(len(result.response), labels.n_annotators)
    response[:both] = result.response[:both]
    response = _typical_where_unknown(response, result)
    return ClassParameters(*(latent_classes.normalised(p.clip(_LEAST_AT_START)) for p in (result.prevalence, response)))


def _typical_where_unknown(response: Array, result: Result) -> Array:
    return np.where(np.isnan(response), result.typical_response, response)


def _result(climbed: Climb, smoothing: ClassParameters, estimable: Mask, known: Mask, notes: list[Note]) -> Result:
    end = climbed.end
    prevalence, evidence = end.parameters.prevalence, end.expected.sum(axis=-1)
    typical = latent_classes.normalised(end.expected.sum(axis=0) + smoothing.response)
    from_nothing = ~known[:, None] | (evidence + smoothing.response.sum(axis=-1) == 0.0)
    response = np.where(from_nothing[:, :, None], np.nan, end.parameters.response)
    if (from_nothing & known[:, None] & (prevalence > 0.0)).any():
        notes = [*notes, latent_class_notes.on_unmet_classes()]
    # A class that no item has is nobody's to be right about.
    weighed = np.where(prevalence[:, None] > 0.0, response, typical)
    posterior = np.tile(prevalence, (len(estimable), 1))
    posterior[estimable] = end.posterior.T
    return Result(
        prevalence=prevalence,
        posterior=posterior,
        entropy=entropy(posterior),
        estimable=estimable,
        response=response,
        typical_response=typical,
        class_accuracy=np.diagonal(response, axis1=1, axis2=2).copy(),
        accuracy=np.einsum("jkk,k->j", weighed, prevalence),
        mutual_information=mutual_information(prevalence, weighed),
        evidence=evidence,
        estimable_annotators=known,
        log_likelihood=end.log_likelihood,
        trace=np.array(climbed.trace),
        notes=tuple(notes),
    )
