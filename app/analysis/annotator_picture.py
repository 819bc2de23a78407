"""The annotators as a picture: who is reliable, who scores higher than the others."""

import numpy as np

from app.analysis.findings import ResultTable
from app.analysis.scatter import MOST_DOTS, Dot, Scatter, labelled, numbers, squares, upside_down
from app.drawing import axis, written
from app.errors import plural

MOST_NAMES = 200  # more would stand on each other
NARROWEST = 10.0  # points to each side, so that small biases look small
MARGIN = 0.05  # above and below: who answers at random stands at 0 and is not to lie on the axis
SMALLEST, LARGEST = 3.0, 9.0  # radius of a dot in pixels; its area grows with the judgments


def scatter(table: ResultTable) -> Scatter | None:
    """Reliability over bias, a dot per annotator; None if nobody has both, as where annotators give no scores."""
    columns = dict(zip((column.name for column in table.columns), zip(*table.rows, strict=True), strict=True))
    if "bias" not in columns:
        return None
    judgments, bias, reliability = (numbers(columns[name]) for name in ("judgments", "bias", "reliability"))
    seen = np.flatnonzero(np.isfinite(bias) & np.isfinite(reliability))
    if not len(seen):
        return None
    furthest = max(NARROWEST, 1.08 * float(np.abs(bias[seen]).max()))
    x = axis("bias (points above the others)", -furthest, furthest)
    y = axis("reliability", 0.0, 1.0).padded(MARGIN)
    title = "Reliability and bias"
    if len(seen) > MOST_DOTS:
        counted = f"{len(table.rows)} annotators, counted in small fields: the darker, the more."
        return Scatter(title, x, y, squares=squares(x, y, bias[seen], reliability[seen]), readout=counted)
    names = [str(columns["name"][i]) for i in seen]
    radius = np.maximum(SMALLEST, LARGEST * np.sqrt(judgments[seen] / judgments[seen].max())).round(1).tolist()
    dots = [
        Dot(x.at(across), upside_down(y.at(up)), f"{name}: {in_words(across, up, int(count))}", radius=size)
        for name, across, up, count, size in zip(
            names, bias[seen], reliability[seen], judgments[seen], radius, strict=True
        )
    ]
    dots = labelled(dots, names) if len(dots) <= MOST_NAMES else dots
    return Scatter(title, x, y, dots, readout="Each dot is an annotator; the larger, the more they judged.")


def in_words(bias: float, reliability: float, judgments: int) -> str:
    return f"reliability {written(reliability, 2)}, bias {written(bias, 1)} points, {plural(judgments, 'judgment')}"
