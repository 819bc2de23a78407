"""What an experiment found, as figures and as a page: one folder to look at, and to give away."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from app.drawing import Scale, Tick, round_step
from app.inference.ground.arrays import Array
from app.simulation.experiments import ARMS, ROUNDS, AfterRound, as_good_as, judgments_for_as_much, table
from app.templating import templates

LEFT, RIGHT, TOP, BOTTOM = 64, 616, 40, 352  # of the axes; the template is 640 wide
BAND = 2.5, 97.5  # per cent of the runs
AS_IN_THE_PAPER = {3: 2, 6: 4}  # judgments by direct assessment, and by EASL, with the same Spearman
LOOKS = (("#5b6166", "2 3"), ("#86510a", "6 3"), ("#6b4ea0", "9 3"), ("#0b5d66", ""), ("#a3195b", ""))  # of the arms


@dataclass(frozen=True)
class BandedCurve:
    """A line and the outline of its band, in SVG units; its words in the key, and how it looks."""

    points: list[tuple[float, float]]
    band: list[tuple[float, float]]
    words: str
    colour: str
    dash: str


@dataclass(frozen=True)
class Curves:
    """A drawing of curves: ticks at their places with their words."""

    title: str
    y_title: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    curves: list[BandedCurve]
    x_title: str = "judgments an item"
    left: float = LEFT
    right: float = RIGHT
    bottom: float = BOTTOM


@dataclass(frozen=True)
class Part:
    """One experiment of a report: under which title, with which words, and what its runs found. truth: (N,)."""

    title: str
    said: str
    name: str
    found: Sequence[Sequence[AfterRound]]
    truth: Array


@dataclass(frozen=True)
class OfContext:
    """What runs of `da` and `easl` found with a context effect."""

    effect: float
    found: Sequence[Sequence[AfterRound]]

    @property
    def cells(self) -> list[str]:
        """With how many judgments EASL is as good as direct assessment with each of `AS_IN_THE_PAPER`."""
        spearman = table(self.found, "spearman")
        cells = [judgments_for_as_much(spearman["easl"], spearman["da"], judgments) for judgments in AS_IN_THE_PAPER]
        return ["{:.1f} ({:.1f} to {:.1f})".format(*cell) for cell in cells]


def correlations(title: str, y_title: str, values: dict[str, Array]) -> Curves:
    """Of each arm the mean of runs after each round, with the band in which most of them lie; values (runs, rounds)."""
    low = min(float(np.percentile(those, BAND[0], axis=0).min()) for those in values.values())
    step = round_step(1.0 - low)
    lowest = np.floor(low / step) * step
    x, y = Scale(1, ROUNDS, LEFT, RIGHT), Scale(float(lowest), 1.0, BOTTOM, TOP)
    y_ticks = [(y(at), f"{at:.2f}") for at in np.arange(lowest, 1.0 + step / 2, step).tolist()]
    curves = [curve(x, y, values[arm.name], arm.title, *look) for arm, look in zip(ARMS, LOOKS, strict=True)]
    return Curves(title, y_title, [(x(k), str(k)) for k in range(1, ROUNDS + 1)], y_ticks, curves)


def curve(x: Scale, y: Scale, values: Array, words: str, colour: str, dash: str) -> BandedCurve:  # noqa: PLR0917
    """Of values (runs, rounds)."""
    low, high = np.percentile(values, BAND, axis=0)
    at = [x(k) for k in range(1, ROUNDS + 1)]
    ends = [*zip(at, map(y, high.tolist()), strict=True)], [*zip(at, map(y, low.tolist()), strict=True)]
    mean = [*zip(at, map(y, values.mean(axis=0).tolist()), strict=True)]
    return BandedCurve(mean, ends[0] + ends[1][::-1], words, colour, dash)


def write(
    path: Path, title: str, said: str, parts: Sequence[Part], *, contexts: Sequence[OfContext], command: str, seed: int
) -> None:
    """The report, with its figures beside it."""
    shown = [shown_part(path.parent, part) for part in parts]
    made = {"command": command, "seed": seed, "runs": len(parts[0].found), "version": version("easel")}
    machine = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
    page = templates.get_template("experiments/report.md").render(
        title=title, said=said, parts=shown, arms=ARMS, contexts=contexts, needed=AS_IN_THE_PAPER, **made, **machine
    )
    path.write_text(page, encoding="utf-8")


def shown_part(folder: Path, part: Part) -> dict[str, Any]:
    """What the page says of a part; its figures are written."""
    by_figure = {name: table(part.found, name) for name in ("spearman", "pearson", "lowest", "highest", "spread")}
    figures = []
    for name, words in (("spearman", "Spearman with the truth"), ("pearson", "Pearson with the truth")):
        drawing = correlations(f"{words}: {part.title.lower()}", words, by_figure[name])
        file = f"{part.name}-{name}.svg"
        svg = templates.get_template("experiments/curves.xml").render(drawing=drawing)
        (folder / file).write_text(svg.strip() + "\n", encoding="utf-8")
        figures.append({"words": drawing.title, "file": file})
    spearman = by_figure["spearman"]
    needed = [as_good_as(spearman[arm.name], spearman["da"]) for arm in ARMS[1:]]
    return {
        "title": part.title,
        "said": part.said,
        "figures": figures,
        "rows": [[with_band(spearman[arm.name][:, k]) for arm in ARMS] for k in range(ROUNDS)],
        "needed": [["never" if one is None else one for one in row] for row in zip(*needed, strict=True)],
        "ranges": [where(*(by_figure[name][arm.name] for name in ("lowest", "highest", "spread"))) for arm in ARMS],
        "truth": f"{part.truth.min():.2f} to {part.truth.max():.2f}, {part.truth.std():.2f}",
    }


def with_band(values: Array) -> str:
    """Of runs, (runs,)."""
    low, high = np.percentile(values, BAND)
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def where(lowest: Array, highest: Array, spread: Array) -> str:
    """Of scores after the last round, in the mean of runs, (runs, rounds) each."""
    low, high, sd = (values[:, -1].mean() for values in (lowest, highest, spread))
    return f"{low:.2f} to {high:.2f}, {sd:.2f}"
