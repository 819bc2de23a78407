"""Whether criteria were judged apart: how far what is said by one moves with what is said by another."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from app.analysis.coarsened import reached
from app.analysis.contracts import Drawn, MethodExport, TableMethod, TableSection
from app.analysis.findings import Answers, Cell, Column, Options, ResultTable, cells
from app.analysis.scores import draws, require_answers
from app.analysis.view import between
from app.drawing import COEFFICIENTS, written
from app.inference.agreement import halo
from app.inference.agreement.halo import HaloFigure
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note

COLUMNS = (
    Column("one", "Criterion", "text"),
    Column("other", "and", "text"),
    Column("within", "Within items"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("judgments", "Judgments", "count"),
    Column("item_means", "Item means"),
    Column("item_means_low", "Item means, low (95 %)"),
    Column("item_means_high", "Item means, high (95 %)"),
    Column("items", "Items", "count"),
)

SAME_ITEMS = Note(
    "same_items_side_by_side",
    "An order tells of items beside others: within items, only answers about the same items side by side are compared.",
)


class TwoCriteria(NamedTuple):
    """Two criteria, how far they move together within items, and the correlation of the items' means."""

    one: str
    other: str
    within: HaloFigure
    of_means: HaloFigure

    @property
    def names(self) -> str:
        return f"“{self.one}” and “{self.other}”"

    @property
    def enough(self) -> bool:
        return self.within.judgments >= halo.LEAST_JUDGMENTS and bool(np.isfinite(self.within.value))

    @property
    def alike(self) -> bool:
        return halo.is_much(self.within.value, self.within.judgments)


def fit(answers: Answers, _options: Options) -> ResultTable:
    """One row for each two criteria. Raises `Inestimable` (`one_criterion`, `no_judgments`)."""
    require_answers(answers)
    if len(answers.criteria) < 2:
        sentence = "Annotators judge by one criterion, so there are no two to compare."
        raise Inestimable(sentence, code="one_criterion")
    kept, items = compared(answers)
    found = [pair_of(answers, two, kept, items) for two in combinations(answers.criteria, 2)]
    rows = [
        (two.one, two.other, *figures(two.within), two.within.judgments, *figures(two.of_means), two.of_means.items)
        for two in found
    ]
    notes = [] if reached("points", answers.yields) else [SAME_ITEMS]
    notes += [note for two in found for note in told(two)]
    return ResultTable(COLUMNS, rows, tuple(dict.fromkeys(notes)), verdict(found))


def pair_of(answers: Answers, names: tuple[str, str], kept: Integers, items: Integers) -> TwoCriteria:
    one, other = (answers.criteria[name] for name in names)
    times = draws(len(answers.item))
    within = halo.within(items, one[kept], other[kept], draws=times, rng=answers.rng())
    of_means = halo.of_means(answers.item, one, other, draws=times, rng=answers.rng())
    return TwoCriteria(*names, within, of_means)


def compared(answers: Answers) -> tuple[Integers, Integers]:
    """Which judgments are compared, and what those are of that differ in nothing but who gave them, (K,) each: items,
    or of orders, items beside the same others. Of a HIT's places the last follows from the others, and is left out.
    """
    if reached("points", answers.yields):
        return np.arange(len(answers.item)), answers.item
    bounds = [*answers.first_of_hit.tolist(), len(answers.item)]
    shown = [tuple(sorted(answers.item[start:end].tolist())) for start, end in pairwise(bounds)]
    numbers = {items: number for number, items in enumerate(dict.fromkeys(shown))}
    company = np.array([numbers[items] for items in shown], np.intp)[answers.hit]
    last = np.array([items[-1] for items in shown], np.intp)[answers.hit]
    kept = np.flatnonzero(answers.item != last)
    return kept, np.unique((company * answers.n_items + answers.item)[kept], return_inverse=True)[1]


def figures(found: HaloFigure) -> list[Cell]:
    return cells((found.value, found.low, found.high))


def told(two: TwoCriteria) -> list[Note]:
    """The warning, or why there can be none."""
    within = two.within
    if within.judgments < halo.LEAST_JUDGMENTS:
        sentence = (
            f"To tell halo it takes {halo.LEAST_JUDGMENTS} judgments of items that were judged twice or more; there "
            f"are {within.judgments}."
        )
        return [Note("too_few_for_halo", sentence)]
    if not two.enough:
        sentence = f"By one of {two.names} everybody says the same of an item, so nothing can move together."
        return [Note("no_halo_figure", sentence)]
    if not two.alike:
        return [*within.notes]
    ends = between(within.low, within.high, 2)
    sentence = (
        f"Halo: whoever finds an item better than others do by one of {two.names} finds it better by the other, too "
        f"(correlation {written(within.value, 2)}, 95 % interval {ends}). What these scores have in common may be one "
        "impression, and not the items."
    )
    return [Note("halo", sentence), *within.notes]


def verdict(found: Sequence[TwoCriteria]) -> str:
    """Which criteria were hardly judged apart, in a sentence; empty where it cannot be told."""
    known = [two for two in found if two.enough]
    if alike := [two.names for two in known if two.alike]:
        return f"Hardly judged apart: {'; '.join(alike)}."
    if not known:
        return ""
    return f"The criteria were judged apart: within items no two of them correlate by {written(halo.MUCH, 1)} or more."


HALO = TableMethod(
    TableSection("criteria", "Criteria"),
    "Halo",
    "How far two criteria move together. Item means correlate where items that are good by one are good by the other; "
    "that may well be so. Within items, each judgment is compared with the mean of its own item, so that what items "
    "are is taken out. What is left is that whoever finds an item better than others do by one criterion finds it "
    "better by the other, too. From .5 on, of 30 judgments or more, that is a warning: people gave one impression "
    "twice (Thorndike 1920), or some are strict by all criteria; the figure cannot tell which. Intervals are over "
    "items.",
    fit,
    reads=("points", "order"),
    of_criteria=True,
    drawn=Drawn("within", COEFFICIENTS),
    room=lambda _: 1,
    exports=(
        MethodExport(
            "halo",
            "Halo",
            "For each two criteria, how far judgments by them move together within items, and how far items' means do.",
        ),
    ),
)
