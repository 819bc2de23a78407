"""Figures of experiments as SVG, drawn by Matplotlib: the same picture for the same values, to the byte."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.inference.ground.arrays import Array

BAND = 2.5, 97.5  # per cent of the runs
BINS = 5  # as in the paper
SMALL, WIDE = (6.4, 4.0), (9.6, 2.8)  # inches
# Told from each other without colours, too.
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#5b6166", "linestyle": (0, (2, 2))},
    {"color": "#86510a", "linestyle": (0, (6, 2))},
    {"color": "#6b4ea0", "linestyle": (0, (9, 2, 2, 2))},
    {"color": "#0b5d66", "linestyle": "-"},
    {"color": "#a3195b", "linestyle": (0, (1, 1))},
)
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # words stay words
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
def drawn(path: Path, panels: int = 1, size: tuple[float, float] = SMALL) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes side by side; it is written at the end."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(size, layout="constrained")
        yield figure, figure.subplots(1, panels, sharey=True)
        figure.savefig(path, metadata={"Date": None})


class Band(NamedTuple):
    """A figure after each look and the ends of its band, (looks,) each; ends of NaN where nobody can tell."""

    middle: Array
    low: Array
    high: Array


def curves(path: Path, looks: Sequence[int], values: Mapping[str, Array], *, x_title: str, y_title: str) -> None:
    """Of each arm, by its title, the mean of runs, (runs, looks), with the band in which most of them lie."""
    of_runs = {title: Band(those.mean(axis=0), *np.percentile(those, BAND, axis=0)) for title, those in values.items()}
    bands(path, looks, of_runs, x_title=x_title, y_title=y_title)


def bands(path: Path, looks: Sequence[int], values: Mapping[str, Band], *, x_title: str, y_title: str) -> None:
    """Of each arm, by its title, a figure with its band."""
    with drawn(path) as (_, axes):
        for (title, band), look in zip(values.items(), LINES, strict=False):
            axes.fill_between(looks, band.low, band.high, color=look["color"], alpha=0.12, linewidth=0)
            axes.plot(looks, band.middle, label=title, **look)
        axes.set(xlabel=x_title, ylabel=y_title, xlim=(looks[0], looks[-1]))
        axes.legend(loc="lower right")


def histograms(path: Path, scores: Mapping[str, Array]) -> None:
    """How many items lie in each fifth of the scale, in the mean of runs: by title, (runs, N) each."""
    ends = np.linspace(0, 1, BINS + 1)
    with drawn(path, len(scores), WIDE) as (_, axes):
        for panel, (title, those) in zip(axes, scores.items(), strict=True):
            counts = np.array([np.histogram(np.clip(one, 0, 1), ends)[0] for one in those]).mean(axis=0)
            panel.bar(100 * ends[:-1], counts, width=100 / BINS, align="edge", color="#0b5d66", edgecolor="#ffffff")
            panel.set(title=title, xlim=(0, 100), xlabel="score")
            panel.grid(visible=False, axis="x")
        axes[0].set_ylabel("items")


def bars(path: Path, shares: Mapping[str, Array], *, x_title: str, y_title: str) -> None:
    """Of classes 1 to K the shares by several ways of counting, side by side: by title, (K,) each."""
    width = 0.8 / len(shares)
    with drawn(path) as (_, axes):
        for k, ((title, those), look) in enumerate(zip(shares.items(), reversed(LINES[:4]), strict=False)):
            places = np.arange(1, len(those) + 1) + (k - (len(shares) - 1) / 2) * width
            axes.bar(places, those, width, label=title, color=look["color"])
        axes.set(xlabel=x_title, ylabel=y_title, xticks=range(1, len(those) + 1))
        axes.grid(visible=False, axis="x")
        axes.legend()


def heatmaps(path: Path, qualities: Mapping[str, Array], top: float) -> None:
    """The match quality of all pairs of items in the order of the truth, (N, N), by title; colours end at `top`."""
    with drawn(path, len(qualities), WIDE) as (figure, axes):
        for panel, (title, quality) in zip(axes, qualities.items(), strict=True):
            panel.imshow(quality, cmap="viridis", vmin=0, vmax=top, origin="lower", interpolation="none")
            panel.set(title=title, xticks=[], yticks=[], xlabel="items, the highest last")
            panel.grid(visible=False)
        axes[0].set_ylabel("items, the highest on top")
        figure.colorbar(axes[0].images[0], ax=axes, label="match quality")
