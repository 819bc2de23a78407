"""Update law that counts each smiley: a Dirichlet posterior whose score is the mean smiley, 0 to 1."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import beta
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Columns, LawParameters, PosteriorFamily

Count = npt.ArrayLike


def counts(*state: Count) -> list[Array]:
    columns = [np.asarray(column, np.float64) for column in np.broadcast_arrays(*state)]
    if not all(((column > 0) & np.isfinite(column)).all() for column in columns):
        raise ValueError("counts must be finite and above 0")
    return columns


def valid_prior(*state: float) -> bool:
    return all(1e-6 <= number <= 1e9 for number in state)


def score(*state: Count) -> Array:
    sad, so_so, happy = counts(*state)
    return (0.5 * so_so + happy) / (sad + so_so + happy)


def variance(*state: Count) -> Array:
    sad, so_so, happy = counts(*state)
    total = sad + so_so + happy
    mean = (0.5 * so_so + happy) / total
    return ((0.25 * so_so + happy) / total - mean * mean) / (total + 1.0)


def as_beta(*state: Count) -> tuple[Array, Array]:
    """Return the parameters of the Beta distribution with this mean and variance."""
    mean, spread = score(*state), variance(*state)
    size = mean * (1 - mean) / spread - 1
    return mean * size, (1 - mean) * size


def interval(*state: Count, level: float = 0.95) -> tuple[Array, Array]:
    return beta.interval(*as_beta(*state), level=level)


def density(*state: Count) -> Array:
    *numbers, x = state
    return beta.density(*as_beta(*numbers), x)


def estimates(*state: Sequence[float]) -> tuple[list[float], list[float]]:
    return score(*state).tolist(), variance(*state).tolist()


def update(*hit: object) -> Columns:
    *state, values, parameters = hit
    assert isinstance(values, Sequence | np.ndarray)
    assert isinstance(parameters, LawParameters)
    columns = [column.tolist() for column in counts(*state)]  # type: ignore[arg-type]  # the first of them are numbers
    if not 0 < len(values) == len(columns[0]):
        raise ValueError("a HIT needs one smiley per item")
    for place, face in enumerate(values):
        if face not in range(len(columns)):
            raise ValueError(f"there is no smiley {face}")
        columns[int(face)][place] += 1.0
    return tuple(columns)


SMILES = ItemLaw(
    name="smiles",
    title="Smiles: each smiley is counted",
    assumes="All annotators mean the same by a smiley.",
    family=PosteriorFamily(
        name="Dirichlet",
        parameter_names=("sad", "so_so", "happy"),
        score_name="mean",
        default_prior=(1.0, 1.0, 1.0),
        support=(0.0, 1.0),
        is_valid_prior=valid_prior,
        score=score,
        variance=variance,
        interval=interval,
        density=density,
        scores_and_variances=estimates,
    ),
    reads="ordered_classes",
    update=update,
)
