"""What experiments found, as figures and as a page: one folder to look at, and to give away.

How any page is written and a figure of runs is told; the rest is of experiments with items on a scale.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from app.experiments import figures
from app.experiments.arms import ARMS, AWARE, DA, EASL, EVERY, FOR_BEST, FOR_SIDES, GAMMA, LOOKS, TITLES, OnAScale
from app.experiments.runs import Courses, by_arm, judgments_for_as_much, last_scores
from app.inference.ground.arrays import Array
from app.selection.match_quality import match_quality_matrix
from app.templating import templates

AN_ITEM = "judgments an item"
ITERATIONS = 0, 3, 6, 9  # whose match quality is drawn, as in Figure 8
IN_TABLE = 10  # items, as in Table 1
SHOWN_AS = (("spearman", "Spearman with the truth"), ("pearson", "Pearson with the truth"))
ASKED_FOR = (
    ("best", "Share of the true best tenth that is found", (DA, EASL, FOR_BEST, AWARE, "best-aware")),
    ("sides", "Share of items on the right side of the median", (DA, EASL, FOR_SIDES, AWARE)),
)


@dataclass(frozen=True)
class Part:
    """One experiment of a report: under which title, with which words, and what its runs found."""

    title: str
    said: str
    of: OnAScale
    found: Courses


@dataclass(frozen=True)
class PaperGain:
    """What the paper says of its gain. needed: judgments by direct assessment, and by EASL, that are as good."""

    needed: Mapping[int, int]
    section: str


GAIN = PaperGain({3: 2, 6: 4}, "sections 5.1 and 5.2")


def write(path: Path, page: str, **told: Any) -> None:
    """A page by its template, with what made it: told, with the machine and the version."""
    made = {"version": version("easel"), "python": platform.python_version(), "numpy": np.__version__}
    words = templates.get_template(f"experiments/{page}").render(machine=platform.machine(), **made, **told)
    path.write_text(words, encoding="utf-8")


def shown_part(folder: Path, part: Part) -> dict[str, Any]:
    """What the page says of a part; its figures are written."""
    drawn = []
    for name, words in SHOWN_AS:
        file, values = f"{part.of.name}-{name}.svg", by_arm(part.found, name)
        figures.curves(
            folder / file, LOOKS, {arm.title: values[arm.name] for arm in ARMS}, x_title=AN_ITEM, y_title=words
        )
        drawn.append({"words": f"{words}: {part.title.lower()}", "file": file})
    spearman = by_arm(part.found, "spearman")
    return {
        "title": part.title,
        "said": part.said,
        "figures": drawn,
        "heads": [arm.title for arm in ARMS],
        "rows": rows_of([spearman[arm.name] for arm in ARMS]),
        "needed": [
            [saved(spearman, arm.name, judgments) for arm in ARMS[1:]] for judgments in range(2, len(LOOKS) + 1)
        ],
    }


def rows_of(values: Sequence[Array]) -> list[list[str]]:
    """After each look, of each arm's figures, (runs, looks): the mean, and between which 95 % of the runs lie."""
    return [[with_band(one[:, k]) for one in values] for k in range(len(LOOKS))]


def with_band(values: Array) -> str:
    """Of runs, (runs,)."""
    low, high = np.percentile(values, figures.BAND)
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def saved(values: Mapping[str, Array], arm: str, judgments: int) -> str:
    """With how many judgments an arm is as good as direct assessment with so many."""
    needed = judgments_for_as_much(LOOKS, values[arm], values[DA][:, judgments - 1])
    middle, low, high = (as_far(one, LOOKS[-1]) for one in needed)
    return f"{middle} ({low} to {high})"


def as_far(judgments: float, last: int, decimals: int = 1) -> str:
    """So many, in words, as far as anybody looked. last: judgments at the last look."""
    return f"{judgments:.{decimals}f}" if np.isfinite(judgments) else f"more than {last}"


def goals(folder: Path, part: Part) -> list[dict[str, Any]]:
    """What is found where a campaign is for something else than the whole scale."""
    told = []
    for name, words, arms in ASKED_FOR:
        file, values = f"{part.of.name}-{name}.svg", by_arm(part.found, name)
        figures.curves(folder / file, LOOKS, {TITLES[arm]: values[arm] for arm in arms}, x_title=AN_ITEM, y_title=words)
        told.append(
            {
                "words": words,
                "file": file,
                "heads": [TITLES[arm] for arm in arms],
                "rows": rows_of([values[arm] for arm in arms]),
                "needed": [saved(values, arm, LOOKS[-1]) for arm in arms[1:]],
            }
        )
    return told


def distributions(folder: Path, part: Part) -> dict[str, Any]:
    """Where scores lie after the last look: as histograms of the truth and of some arms, and of all arms in words."""
    scores, truth = last_scores(part.found), np.array([part.of.truth])
    file = f"{part.of.name}-histograms.svg"
    of_arms = {arm.title: scores[arm.name] for arm in ARMS if arm.name in {DA, "ra", EASL}}
    figures.histograms(folder / file, {"Truth": truth} | of_arms)
    ranges = [(arm.title, where(scores[arm.name])) for arm in EVERY if arm.name in scores]
    return {"file": file, "ranges": [("Truth", where(truth)), *ranges]}


def where(scores: Array) -> tuple[str, str, str]:
    """The lowest and the highest score of N items, and the standard deviation; in the mean of runs, (runs, N)."""
    low, high, spread = (one.mean() for one in (scores.min(axis=1), scores.max(axis=1), scores.std(axis=1)))
    return f"{100 * low:.0f}", f"{100 * high:.0f}", f"{100 * spread:.0f}"


def match_quality(folder: Path, part: Part) -> str:
    """The file of match qualities of EASL in the first run, items in the order of the truth."""
    arm = next(arm for arm in ARMS if arm.name == EASL)
    order = np.argsort(part.of.truth, kind="stable")
    states = [(mine.score[order], mine.variance[order]) for mine in part.of.rounds(arm, 0)]
    qualities = {f"iteration {k}": match_quality_matrix(*states[k], GAMMA) for k in ITERATIONS}
    file = f"{part.of.name}-match-quality.svg"
    figures.heatmaps(folder / file, qualities, max(float(one.max()) for one in qualities.values()))
    return file


def some_items(part: Part, names: Sequence[str]) -> list[list[str]]:
    """Ten items from the highest to the lowest, evenly in the order of the truth: name, truth, and the arms' scores."""
    truth, scores = np.array(part.of.truth), last_scores(part.found)
    return [
        [names[k], f"{100 * truth[k]:.1f}", *(points(scores[arm.name][:, k]) for arm in ARMS)] for k in evenly(truth)
    ]


def evenly(truth: Array) -> list[int]:
    """The numbers of so many items as a table shows, from the highest to the lowest, evenly in their order; (N,)."""
    order = np.argsort(-truth, kind="stable")
    chosen: list[int] = order[np.linspace(0, len(order) - 1, min(IN_TABLE, len(order))).round().astype(int)].tolist()
    return chosen


def points(scores: Array) -> str:
    """Of one item, (runs,)."""
    low, high = np.percentile(100 * scores, figures.BAND)
    return f"{100 * scores.mean():.1f} ({low:.0f} to {high:.0f})"


def with_context(parts: Sequence[Part]) -> list[list[str]]:
    """With how many judgments EASL is as good as direct assessment with those of the paper, by context effect."""
    cells = []
    for part in parts:
        spearman = by_arm(part.found, "spearman")
        cells.append([f"{part.of.context:.0%}", *(saved(spearman, EASL, judgments) for judgments in GAIN.needed)])
    return cells
