"""Figures of experiments as SVG, drawn by Matplotlib: the same values give the same picture, to the byte."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.inference.ground.arrays import Array

RUN_BAND_PERCENTILES = 2.5, 97.5
HISTOGRAM_BINS = 5  # as in the paper
SMALL_FIGURE_INCHES, WIDE_FIGURE_INCHES = (6.4, 4.0), (9.6, 2.8)
# The dashes distinguish the lines without colours, too.
LINE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#5b6166", "linestyle": (0, (2, 2))},
    {"color": "#86510a", "linestyle": (0, (6, 2))},
    {"color": "#6b4ea0", "linestyle": (0, (9, 2, 2, 2))},
    {"color": "#0b5d66", "linestyle": "-"},
    {"color": "#a3195b", "linestyle": (0, (1, 1))},
)
FIGURE_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text as text, not as paths
    "svg.hashsalt": "easel",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e2de",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


@contextmanager
def open_figure_with_axes_and_save_at_end(
    path: Path, panel_count: int = 1, size: tuple[float, float] = SMALL_FIGURE_INCHES
) -> Iterator[tuple[Any, Any]]:
    """Open a figure with axes side by side, and write it at the end."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(FIGURE_STYLE):
        figure = Figure(size, layout="constrained")
        yield figure, figure.subplots(1, panel_count, sharey=True)
        figure.savefig(path, metadata={"Date": None})


class Band(NamedTuple):
    """A figure at L checkpoints with the ends of its band, (L,) each; ends are NaN where they are unknown."""

    middle: Array
    low: Array
    high: Array


def plot_run_means_with_bands(
    path: Path, checkpoints: Sequence[int], runs_by_title: Mapping[str, Array], *, x_title: str, y_title: str
) -> None:
    """Plot for each arm, by title, the mean of its runs, (runs, L), with a band that holds 95 % of them."""
    band_by_title = {
        title: Band(by_run.mean(axis=0), *np.percentile(by_run, RUN_BAND_PERCENTILES, axis=0))
        for title, by_run in runs_by_title.items()
    }
    plot_bands(path, checkpoints, band_by_title, x_title=x_title, y_title=y_title)


def plot_bands(
    path: Path,
    checkpoints: Sequence[float],
    bands_by_title: Mapping[str, Band],
    *,
    x_title: str,
    y_title: str,
    legend_place: str = "lower right",
) -> None:
    """Plot for each arm, by title, a figure with its band."""
    with open_figure_with_axes_and_save_at_end(path) as (_, axes):
        for (title, band), style in zip(bands_by_title.items(), LINE_STYLES, strict=False):
            axes.fill_between(checkpoints, band.low, band.high, color=style["color"], alpha=0.12, linewidth=0)
            axes.plot(checkpoints, band.middle, label=title, **style)
        axes.set(xlabel=x_title, ylabel=y_title, xlim=(checkpoints[0], checkpoints[-1]))
        axes.legend(loc=legend_place)


def plot_score_histograms(path: Path, scores: Mapping[str, Array]) -> None:
    """Plot how many items lie in each fifth of the scale, averaged over runs, (runs, N), by title."""
    ends = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    with open_figure_with_axes_and_save_at_end(path, len(scores), WIDE_FIGURE_INCHES) as (_, axes):
        for panel, (title, values) in zip(axes, scores.items(), strict=True):
            counts = np.array([np.histogram(np.clip(run, 0, 1), ends)[0] for run in values]).mean(axis=0)
            panel.bar(
                100 * ends[:-1], counts, width=100 / HISTOGRAM_BINS, align="edge", color="#0b5d66", edgecolor="#ffffff"
            )
            panel.set(title=title, xlim=(0, 100), xlabel="score")
            panel.grid(visible=False, axis="x")
        axes[0].set_ylabel("items")


def plot_class_share_bars(path: Path, shares: Mapping[str, Array], *, x_title: str, y_title: str) -> None:
    """Plot the shares of classes 1 to K by several ways of counting, (K,) each, side by side by title."""
    width = 0.8 / len(shares)
    with open_figure_with_axes_and_save_at_end(path) as (_, axes):
        for k, ((title, values), style) in enumerate(zip(shares.items(), reversed(LINE_STYLES[:4]), strict=False)):
            places = np.arange(1, len(values) + 1) + (k - (len(shares) - 1) / 2) * width
            axes.bar(places, values, width, label=title, color=style["color"])
        axes.set(xlabel=x_title, ylabel=y_title, xticks=range(1, len(values) + 1))
        axes.grid(visible=False, axis="x")
        axes.legend()


def plot_match_quality_heatmaps(path: Path, qualities: Mapping[str, Array], top: float) -> None:
    """Plot the match quality of all pairs of items, ordered by the truth, (N, N), by title; colours end at `top`."""
    with open_figure_with_axes_and_save_at_end(path, len(qualities), WIDE_FIGURE_INCHES) as (figure, axes):
        for panel, (title, quality) in zip(axes, qualities.items(), strict=True):
            panel.imshow(quality, cmap="viridis", vmin=0, vmax=top, origin="lower", interpolation="none")
            panel.set(title=title, xticks=[], yticks=[], xlabel="items, the highest last")
            panel.grid(visible=False)
        axes[0].set_ylabel("items, the highest on top")
        figure.colorbar(axes[0].images[0], ax=axes, label="match quality")


def plot_label_probability_heatmaps(path: Path, responses_by_title: Mapping[str, Array]) -> None:
    """Plot the probability of each label by class for several annotators, (K, K) by title; rows of NaN stay empty."""
    with open_figure_with_axes_and_save_at_end(path, len(responses_by_title), WIDE_FIGURE_INCHES) as (figure, axes):
        for panel, (title, response) in zip(axes, responses_by_title.items(), strict=True):
            ends = 0.5, len(response) + 0.5
            classes = range(1, len(response) + 1)
            panel.imshow(response, cmap="Greys", vmin=0, vmax=1, extent=(*ends, *reversed(ends)), interpolation="none")
            panel.set(title=title, xticks=classes, yticks=classes, xlabel="label")
            panel.grid(visible=False)
        axes[0].set_ylabel("class by the model")
        figure.colorbar(axes[0].images[0], ax=axes, label="probability")


def plot_annotator_histograms(
    path: Path, values_by_title: Mapping[str, Array], bin_width: float, *, x_title: str
) -> None:
    """Plot how many annotators have each value, (A,) by title, in bins from 0."""
    most = max(float(values.max()) for values in values_by_title.values())
    edges = np.arange(0.0, most + 2 * bin_width, bin_width)
    with open_figure_with_axes_and_save_at_end(path, len(values_by_title), WIDE_FIGURE_INCHES) as (_, axes):
        for panel, (title, values) in zip(axes, values_by_title.items(), strict=True):
            panel.hist(values, bins=edges, color="#0b5d66", edgecolor="#ffffff")
            panel.set(title=title, xlabel=x_title)
            panel.grid(visible=False, axis="x")
        axes[0].set_ylabel("annotators")
