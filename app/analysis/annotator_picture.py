"""Picture of the annotators: reliability over bias."""

import numpy as np

from app.analysis.chart_axes import axis_with_round_ticks
from app.analysis.result_types import ResultTable
from app.analysis.scatter import (
    MAX_SCATTER_DOTS,
    Dot,
    Scatter,
    cells_to_array,
    label_dots_where_room,
    squares_shaded_by_dot_count,
    to_percent_from_top,
)
from app.errors import pluralize
from app.text.numbers import format_with_places

MAX_LABELLED_ANNOTATORS = 200  # more would overlap
MIN_BIAS_RANGE_POINTS = 10.0  # points to each side, so that small biases look small
RELIABILITY_AXIS_MARGIN = (
    0.05  # above and below, so that the dot of an annotator who answers at random (0) is not on the axis
)
MIN_RADIUS_PIXELS, MAX_RADIUS_PIXELS = 3.0, 9.0  # radius of a dot in pixels; its area grows with the judgments


def reliability_over_bias_picture_or_none(table: ResultTable) -> Scatter | None:
    """Draw a dot per annotator; None if no annotator has both figures, as in campaigns without scores."""
    columns = dict(zip((column.name for column in table.columns), zip(*table.rows, strict=True), strict=True))
    if "bias" not in columns:
        return None
    judgments, bias, reliability = (cells_to_array(columns[name]) for name in ("judgments", "bias", "reliability"))
    drawn_rows = np.flatnonzero(np.isfinite(bias) & np.isfinite(reliability))
    if not len(drawn_rows):
        return None
    bias_range = max(MIN_BIAS_RANGE_POINTS, 1.08 * float(np.abs(bias[drawn_rows]).max()))
    x = axis_with_round_ticks("bias (points above the crowd)", -bias_range, bias_range)
    y = axis_with_round_ticks("reliability", 0.0, 1.0).with_padding(RELIABILITY_AXIS_MARGIN)
    title = "Reliability and bias"
    if len(drawn_rows) > MAX_SCATTER_DOTS:
        readout = f"{len(table.rows)} annotators. Darker squares contain more annotators."
        return Scatter(
            title,
            x,
            y,
            squares=squares_shaded_by_dot_count(x, y, bias[drawn_rows], reliability[drawn_rows]),
            readout=readout,
        )
    names = [str(columns["name"][i]) for i in drawn_rows]
    radius = (
        np.maximum(MIN_RADIUS_PIXELS, MAX_RADIUS_PIXELS * np.sqrt(judgments[drawn_rows] / judgments[drawn_rows].max()))
        .round(1)
        .tolist()
    )
    dots = [
        Dot(
            x.percent_of(across),
            to_percent_from_top(y.percent_of(up)),
            f"{name}: {describe_annotator_dot(across, up, int(count))}",
            radius=size,
        )
        for name, across, up, count, size in zip(
            names, bias[drawn_rows], reliability[drawn_rows], judgments[drawn_rows], radius, strict=True
        )
    ]
    dots = label_dots_where_room(dots, names) if len(dots) <= MAX_LABELLED_ANNOTATORS else dots
    return Scatter(title, x, y, dots, readout="Each dot is an annotator. Larger dots have more judgments.")


def describe_annotator_dot(bias: float, reliability: float, judgment_count: int) -> str:
    figures = f"reliability {format_with_places(reliability, 2)}, bias {format_with_places(bias, 1)} points"
    return f"{figures}, {pluralize(judgment_count, 'judgment')}"
