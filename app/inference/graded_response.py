"""The graded response model for pairwise judgments of systems against one baseline.

Otani, Nakazawa, Kawahara & Kurohashi 2016, "IRT-based aggregation model of crowdsourced pairwise comparisons for
evaluating machine translations". Judge k compares system i with the baseline on segment j; the system is not worse with
probability P*_1 and better with P*_2, P*_c = 1 / (1 + exp(-a_k (theta_i - b_jc))): theta_i is the system's performance,
a_k > 0 the judge's sensitivity, b_j1 < b_j2 the segment's difficulties of not losing and of winning.

First a and b maximise the marginal posterior (section 5.1; quadrature in `graded_marginal`), then theta is the mode of
its own posterior given them (section 5.2). Outcomes are +1 the system is preferred, 0 a tie, -1 the baseline (the
paper's u = 3, 2, 1).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from app.inference.graded_marginal import Nodes, Prior, Terms, adapted_nodes, information, log_marginal, modes, terms_of
from app.inference.inestimable import Inestimable, NotConverged
from app.inference.law import Array
from app.inference.long_form import Integers, check_equal_length, numbered, outcomes_of

__all__ = [
    "BaselineAdvice",
    "GradedResponse",
    "Placement",
    "Prior",
    "against",
    "baseline_advice",
    "fit",
    "item_information",
    "place",
]

MOST_PARAMETERS = 6000
"""Standard errors of a and b need the inverse of a square matrix of this size at most (0.3 GB, some ten seconds)."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GradedResponse:
    """A fit of the graded response model. NaN stands where nothing is known; `notes` say why.

    score: (n_items,), theta, on the scale of its prior N(0, tau^2): 0 is a system of the prior's mean, not the baseline.
    standard_error: (n_items,), of theta given a and b: right for comparing systems with each other.
    estimable: (n_items,), whether the system has a judgment.
    sensitivity, sensitivity_standard_error: (n_annotators,), a_k > 0; near 0 is a judge whose answers are random.
    difficulty, difficulty_standard_error: (n_segments, 2), b_j1 < b_j2.
    log_marginal: log P(U, a, b) up to a constant of the prior, at the maximum.
    iterations: steps of the maximisation.
    """

    score: Array
    standard_error: Array
    estimable: Mask
    sensitivity: Array
    sensitivity_standard_error: Array
    difficulty: Array
    difficulty_standard_error: Array
    log_marginal: float
    iterations: int
    prior: Prior
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Systems added to a fit: as the fields of `GradedResponse` of the same names."""

    score: Array
    standard_error: Array
    estimable: Mask
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BaselineAdvice:
    """How often the baseline was preferred, tied and not preferred, and what to think of it.

    won, tied, lost: numbers of judgments, from the baseline's side.
    share_won: won / (won + lost), NaN when every judgment is a tie.
    verdict: "even", "strong", "weak" or "tied". sentence: for a researcher.
    """

    won: int
    tied: int
    lost: int
    share_won: float
    verdict: str
    sentence: str


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_segments: int | None = None,
    prior: Prior | None = None,
    nodes: int = 21,
    adaptive: bool = True,
    errors: bool = True,
    most_iterations: int = 2000,
) -> GradedResponse:
    """Sensitivities, difficulties and performances from judgments against the baseline.

    items: (n,) the system judged; annotators: (n,) the judge; segments: (n,); outcomes: (n,) of +1, 0, -1.
    nodes: T >= 1, of the quadrature. adaptive: whether each system has nodes of its own; False for the paper's
    common nodes, which lie too far apart once a system has more than some ten judgments.
    errors: False leaves the standard errors of a and b NaN, and saves their time.

    Time and memory of one step are linear in n * nodes; the standard errors of a and b take the cube and square of
    n_annotators + 2 n_segments. Raises `Inestimable` ("no_judgments", "one_outcome") and `NotConverged`
    ("not_converged"); ValueError for arrays that are not as above.
    """
    columns = _checked(items, annotators, segments, outcomes, n_items, n_annotators, n_segments)
    _refuse_what_tells_nothing(columns.outcomes)
    prior = prior or Prior()
    terms = terms_of(columns.items.index, columns.annotators.index, columns.segments.index, columns.outcomes)
    found = _maximise(terms, prior, nodes, most_iterations, adaptive=adaptive)
    theta, curvature = modes(terms, prior, found.log_a, found.b)
    a_error, b_error, error_notes = _errors(terms, prior, found, wanted=errors)
    return GradedResponse(
        score=columns.items.spread(theta),
        standard_error=columns.items.spread(curvature**-0.5),
        estimable=columns.items.seen,
        sensitivity=columns.annotators.spread(np.exp(found.log_a)),
        sensitivity_standard_error=columns.annotators.spread(np.exp(found.log_a) * a_error),
        difficulty=columns.segments.spread(found.b.reshape(2, -1).T),
        difficulty_standard_error=columns.segments.spread(b_error.reshape(2, -1).T),
        log_marginal=found.value,
        iterations=found.iterations,
        prior=prior,
        notes=(*_notes(columns), *error_notes),
    )


def place(
    fitted: GradedResponse,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
) -> Placement:
    """The performance of systems that came later, with the judges and segments as they were fitted (section 1: a new
    system is compared with the baseline alone).

    items are numbered from 0 among the new systems; annotators and segments as in the fit, outcomes as in `fit`. A
    judge or segment without a fit counts as the prior's median, and a note says so. Raises `Inestimable`
    ("no_judgments") and ValueError.
    """
    columns = _checked(
        items, annotators, segments, outcomes, n_items, len(fitted.sensitivity), len(fitted.difficulty)
    )
    if not len(columns.outcomes):
        raise Inestimable("There are no judgments of the new systems.", code="no_judgments")
    a, b = fitted.sensitivity[columns.annotators.used], fitted.difficulty[columns.segments.used]
    new_judges, new_segments = np.isnan(a), np.isnan(b[:, 0])
    a = np.where(new_judges, np.exp(fitted.prior.mu_a), a)
    b = np.where(new_segments[:, None], fitted.prior.mu_b, b)
    terms = terms_of(columns.items.index, columns.annotators.index, columns.segments.index, columns.outcomes)
    theta, curvature = modes(terms, fitted.prior, np.log(a), b.T.ravel())
    notes = [
        f"{_named(name, group.used[new])} had no judgment in the fit and counted as typical."
        for name, group, new in (("judge", columns.annotators, new_judges), ("segment", columns.segments, new_segments))
        if new.any()
    ]
    return Placement(
        columns.items.spread(theta),
        columns.items.spread(curvature**-0.5),
        columns.items.seen,
        (*_unseen("system", columns.items), *notes),
    )


def item_information(theta: npt.ArrayLike, difficulty: npt.ArrayLike, sensitivity: npt.ArrayLike = 1.0) -> Array:
    """How much one judgment tells about a performance near theta: I_j(theta) of section 6.5, the Fisher information.

    theta and sensitivity: arrays that broadcast with difficulty[..., 0]; difficulty: (..., 2), b_1 <= b_2. At theta 0,
    b = (-0.5, 0.5) and a = 1 it is 0.2926. With P*' = a P* (1 - P*) the sum's middle term is a^2 (P*_1 - P*_2)
    (1 - P*_1 - P*_2)^2, so that b_1 = b_2 is no 0 / 0.
    """
    a, b = np.asarray(sensitivity, dtype=np.float64), np.asarray(difficulty, dtype=np.float64)
    distance = np.asarray(theta, dtype=np.float64)[..., None] - b
    with np.errstate(over="ignore"):
        above, below = 1.0 / (1.0 + np.exp(-a[..., None] * distance)), 1.0 / (1.0 + np.exp(a[..., None] * distance))
    not_lost, won = above[..., 0], above[..., 1]
    lost, not_won = below[..., 0], below[..., 1]
    tied = np.maximum(not_lost - won, 0.0)
    return np.asarray(a * a * (not_lost**2 * lost + tied * (lost - won) ** 2 + won * not_won**2))


def baseline_advice(outcomes: npt.ArrayLike) -> BaselineAdvice:
    """Whether the baseline was a good choice: section 6.3, a good one wins and loses about equally.

    outcomes: (n,) as in `fit`. "even" is a share of won among decided judgments from 1/3 to 2/3: neither side has
    more than twice what the other has. Raises `Inestimable` ("no_judgments") and ValueError.
    """
    values = outcomes_of(outcomes)
    if not len(values):
        raise Inestimable("The baseline has not been compared with anything yet.", code="no_judgments")
    won, tied, lost = (int(np.sum(values == value)) for value in (-1, 0, 1))
    share = won / (won + lost) if won + lost else float("nan")
    verdict = "tied" if not won + lost else "strong" if share > 2 / 3 else "weak" if share < 1 / 3 else "even"
    counts = f"The baseline won {won:,}, tied {tied:,} and lost {lost:,} of {len(values):,} judgments"
    return BaselineAdvice(won, tied, lost, share, verdict, f"{counts}{_ADVICE[verdict]}")


_ADVICE = {
    "even": ": it wins and loses about equally, so it tells better systems from worse ones well.",
    "strong": ": it is too strong to tell the weaker systems apart. Choose one that wins and loses about equally.",
    "weak": ": it is too weak to tell the better systems apart. Choose one that wins and loses about equally.",
    "tied": ": it tells no system from another. Choose a baseline that differs from the systems.",
}


def against(
    baseline: int, first: npt.ArrayLike, second: npt.ArrayLike, outcomes: npt.ArrayLike
) -> tuple[Integers, Integers, Integers]:
    """From judgments of any pairs those that have the baseline in them: their positions, the other system of each, and
    the outcome from that system's side, three arrays (m,).

    first, second: (n,); outcomes: (n,) of +1 the first is preferred, 0, -1. A comparison of the baseline with itself
    is left out. Raises ValueError for arrays that are not as above.
    """
    (left, _), (right, _), result = numbered("first", first), numbered("second", second), outcomes_of(outcomes)
    check_equal_length(first=left, second=right, outcomes=result)
    rows = np.flatnonzero((left == baseline) != (right == baseline))
    is_first = left[rows] == baseline
    return rows, np.where(is_first, right[rows], left[rows]), np.where(is_first, -result[rows], result[rows])


@dataclass(frozen=True, slots=True)
class _Group:
    """Systems, judges or segments: used (m,) those with a judgment, index (n,) their positions in `used` by judgment."""

    used: Integers
    index: Integers
    count: int

    @property
    def seen(self) -> Mask:
        mask = np.zeros(self.count, dtype=np.bool_)
        mask[self.used] = True
        return mask

    def spread(self, values: Array) -> Array:
        """(m, ...) as (count, ...), NaN for those without a judgment."""
        whole = np.full((self.count, *values.shape[1:]), np.nan)
        whole[self.used] = values
        return whole


@dataclass(frozen=True, slots=True)
class _Columns:
    items: _Group
    annotators: _Group
    segments: _Group
    outcomes: Integers


def _checked(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    n_items: int | None,
    n_annotators: int | None,
    n_segments: int | None,
) -> _Columns:
    systems, n_items = numbered("items", items, n_items)
    judges, n_annotators = numbered("annotators", annotators, n_annotators)
    places, n_segments = numbered("segments", segments, n_segments)
    results = outcomes_of(outcomes)
    check_equal_length(items=systems, annotators=judges, segments=places, outcomes=results)
    return _Columns(_group(systems, n_items), _group(judges, n_annotators), _group(places, n_segments), results)


def _group(numbers: Integers, count: int) -> _Group:
    used, index = np.unique(numbers, return_inverse=True)
    return _Group(used, index, count)


def _refuse_what_tells_nothing(outcomes: Integers) -> None:
    if not len(outcomes):
        raise Inestimable("There are no judgments against the baseline.", code="no_judgments")
    if (outcomes == outcomes[0]).all():
        same = {1: "prefer the system", 0: "are ties", -1: "prefer the baseline"}[int(outcomes[0])]
        raise Inestimable(
            f"All {len(outcomes):,} judgments {same}, so they tell neither systems nor judges nor segments apart."
            " Compare with another baseline.",
            code="one_outcome",
        )


@dataclass(frozen=True, slots=True)
class _Maximum:
    log_a: Array
    b: Array
    value: float
    iterations: int
    nodes: Nodes


def _maximise(terms: Terms, prior: Prior, nodes: int, most_iterations: int, *, adaptive: bool) -> _Maximum:
    """L-BFGS on (log a, centre of b, log width of b), which need no constraints."""
    judges, segments = terms.n_judges, terms.n_segments
    mode, curvature = np.zeros(terms.n_systems), np.full(terms.n_systems, prior.tau**-2)

    def nodes_at(log_a: Array, b: Array) -> Nodes:
        nonlocal mode, curvature
        if adaptive:
            mode, curvature = modes(terms, prior, log_a, b, mode)
        return adapted_nodes(mode, curvature, prior, nodes)

    def loss(point: Array) -> tuple[float, Array]:
        log_a, b = _parameters(point, judges)
        value, by_log_a, by_b = log_marginal(terms, prior, log_a, b, nodes_at(log_a, b))
        lower, upper = by_b.reshape(2, -1)
        half_width = np.exp(point[judges + segments :]) / 2.0
        return -value, -np.concatenate([by_log_a, lower + upper, (upper - lower) * half_width])

    low, high = prior.mu_b
    start = np.repeat([prior.mu_a, (low + high) / 2.0, np.log(high - low)], [judges, segments, segments])
    options = {"maxiter": most_iterations, "maxfun": 2 * most_iterations, "maxcor": 20, "gtol": 1e-4, "ftol": 1e-11}
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if not result.success:
        raise NotConverged(f"The fit did not settle within {result.nit} steps.", code="not_converged")
    log_a, b = _parameters(result.x, judges)
    return _Maximum(log_a, b, -float(result.fun), int(result.nit), nodes_at(log_a, b))


def _parameters(point: Array, judges: int) -> tuple[Array, Array]:
    """log_a (n_judges,) and b (2 n_segments,) from (log a, centre of b, log width of b)."""
    centre, log_width = point[judges:].reshape(2, -1)
    half_width = np.exp(log_width) / 2.0
    return point[:judges], np.concatenate([centre - half_width, centre + half_width])


def _errors(terms: Terms, prior: Prior, found: _Maximum, *, wanted: bool) -> tuple[Array, Array, tuple[str, ...]]:
    """Standard errors of log a and b, from the inverse of the information, or NaN and why."""
    size = len(found.log_a) + len(found.b)
    unknown = np.full(len(found.log_a), np.nan), np.full(len(found.b), np.nan)
    if not wanted:
        return *unknown, ()
    if size > MOST_PARAMETERS:
        note = (
            f"{terms.n_judges:,} judges and {terms.n_segments:,} segments are too many for standard errors of"
            " sensitivities and difficulties; those of the scores are not affected."
        )
        return *unknown, (note,)
    variance = _inverse_diagonal(information(terms, prior, found.log_a, found.b, found.nodes))
    return *np.split(np.sqrt(variance), [terms.n_judges]), ()


def _inverse_diagonal(matrix: Array) -> Array:
    try:
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        sentence = "Where the fit stopped, the curvature is not that of a maximum."
        raise NotConverged(sentence, code="not_converged") from error
    return np.diag(cho_solve(factor, np.eye(len(matrix)), overwrite_b=True, check_finite=False)).copy()


def _notes(columns: _Columns) -> list[str]:
    groups = (("system", columns.items), ("judge", columns.annotators), ("segment", columns.segments))
    notes = [note for name, group in groups for note in _unseen(name, group)]
    if len(columns.annotators.used) == 1:
        notes.append(
            "All judgments are by one judge: how far apart the systems lie cannot be told from how sensitive the judge"
            " is, and rests on the prior. Their order does not."
        )
    if len(columns.items.used) == 1:
        notes.append("Only one system was judged, so its score cannot be told from the difficulty of the segments.")
    return notes + _disconnected(columns)


def _unseen(name: str, group: _Group) -> list[str]:
    missing = np.flatnonzero(~group.seen)
    return [f"{_named(name, missing)} had no judgment and no estimate."] if len(missing) else []


def _named(name: str, numbers: Integers) -> str:
    listed = ", ".join(map(str, numbers[:10].tolist())) + (", ..." if len(numbers) > 10 else "")
    return f"{name.capitalize()} {listed}" if len(numbers) == 1 else f"{len(numbers):,} {name}s ({listed})"


def _disconnected(columns: _Columns) -> list[str]:
    """Systems judged on no common segments, even by way of others, meet only in the prior of the difficulties."""
    systems, segments = len(columns.items.used), len(columns.segments.used)
    edges = columns.items.index, systems + columns.segments.index
    graph = coo_array((np.ones(len(edges[0])), edges), shape=(systems + segments,) * 2)
    groups, label = connected_components(graph, directed=False)
    if groups == 1:
        return []
    members = [columns.items.used[label[:systems] == group] for group in range(groups)]
    named = "; ".join(_named("system", group) for group in members[:5]) + ("; ..." if groups > 5 else "")
    return [
        f"The systems fall into {groups} groups that share no segment: {named}. Scores of different groups are"
        " comparable only if their segments are equally difficult."
    ]
