"""Pairs whose order follows from the same annotator's answers: how many, and how often that was wrong where asked.

No method takes them for answers: they stand in this table and its export alone, and are marked there.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from app.analysis.consistency import SECTION
from app.analysis.contracts import Drawn, LongTable, MethodExport, TableMethod
from app.analysis.findings import Answers, Cell, Column, Options, ResultTable, once
from app.analysis.pairwise import pairs_of
from app.drawing import SHARES
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.preferences.implied import Implications, ImpliedCounts, Outcome, followed

COLUMNS = (
    Column("annotator", "Annotator", "text"),
    Column("answered", "Pairs answered", "count"),
    Column("not_asked", "Implied, not asked", "count"),
    Column("asked_anyway", "Implied, asked anyway", "count"),
    Column("otherwise", "of these answered otherwise", "count"),
    Column("reversed", "the other way round", "count"),
    Column("wrong", "Share answered otherwise"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
)

PAIR_COLUMNS = ("annotator", "name", "seq", "first", "second", "preferred", "implied", "implied_before")
TITLE = "Implied pairs"
EVERYBODY = "all"


class FollowedPairs(NamedTuple):
    """The pairs that were answered, (P,) each, what was implied of them before, and what follows, by annotator."""

    first: Integers
    second: Integers
    outcomes: Integers
    hits: Integers
    before: Sequence[Outcome | None]
    orders: dict[int, Implications]


@once
def known(answers: Answers, _: None) -> FollowedPairs:
    """Raises `Inestimable` (`method_reads_other_answers`, `no_judgments`, `no_pairs`)."""
    if not answers.compares_pairs:
        sentence = (
            f"“{TITLE}” reads comparisons of any two items, one pair at a time; this campaign has no such answers."
        )
        raise Inestimable(sentence, code="method_reads_other_answers")
    first, second, outcomes, hits = pairs_of(answers)
    columns = (first, second, outcomes, answers.annotator_of_hit[hits])
    orders, before = followed(*(column.tolist() for column in columns))
    return FollowedPairs(first, second, outcomes, hits, before, orders)


def fit(answers: Answers, _options: Options) -> ResultTable:
    """A row for everybody, then one for each annotator."""
    orders = known(answers, None).orders
    tallies = {answers.names[annotator]: order.tally for annotator, order in sorted(orders.items())}
    everybody = {EVERYBODY: sum(tallies.values(), ImpliedCounts())} if len(tallies) > 1 else {}
    return ResultTable(COLUMNS, [row(name, tally) for name, tally in (everybody | tallies).items()], ())


def row(name: str, tally: ImpliedCounts) -> tuple[Cell, ...]:
    counts = (tally.answered, tally.not_asked, tally.asked_anyway, tally.otherwise, tally.reversed)
    return (name, *counts, *(tally.wrong() or (None, None, None)))


def pairs(answers: Answers, _options: Options) -> LongTable:
    """Those that were answered in the order of time, then those that are implied and were not, by annotator."""
    rows = Rows(answers, known(answers, None))
    return LongTable(PAIR_COLUMNS, rows.count, rows.some)


class Rows:
    """The rows of the export. Those of implied pairs are made as a file is written: by annotator and better item."""

    def __init__(self, answers: Answers, found: FollowedPairs) -> None:
        self.answers, self.found = answers, found
        self.better = [(who, item) for who, order in sorted(found.orders.items()) for item in order.items()]
        counts = [len(found.orders[who].not_asked_below(item)) for who, item in self.better]
        self.starts = [*accumulate(counts, initial=len(found.first))]

    @property
    def count(self) -> int:
        return self.starts[-1]

    def some(self, start: int, stop: int) -> list[tuple[Cell, ...]]:
        """From a place to before another."""
        answered = [self.answer(place) for place in range(start, min(stop, len(self.found.first)))]
        return [*answered, *self.not_asked(start, stop)]

    def not_asked(self, start: int, stop: int) -> Iterator[tuple[Cell, ...]]:
        """Of the pairs that are implied and were not answered, those at these places; the first is the better one."""
        ids = self.answers.ids
        earliest = max(bisect_right(self.starts, start) - 1, 0)
        for first, (annotator, item) in zip(self.starts[earliest:], self.better[earliest:], strict=False):
            if first >= stop:
                return
            below = self.found.orders[annotator].not_asked_below(item)[max(start - first, 0) : stop - first]
            for other in below.tolist():
                yield *self.who(annotator), None, ids[item], ids[other], ids[item], True, None

    def answer(self, place: int) -> tuple[Cell, ...]:
        """A pair that was answered."""
        answers, found = self.answers, self.found
        hit, outcome = int(found.hits[place]), int(found.outcomes[place])
        pair = int(found.first[place]), int(found.second[place])
        before = self.preferred(pair, found.before[place])
        return (
            *self.who(int(answers.annotator_of_hit[hit])),
            int(answers.seq[hit]),
            *(answers.ids[item] for item in pair),
            self.preferred(pair, outcome),
            False,
            before,
        )

    def who(self, annotator: int) -> tuple[str, str]:
        return self.answers.annotators[annotator], self.answers.names[annotator]

    def preferred(self, pair: tuple[int, int], outcome: int | None) -> str | None:
        """The id of the better item, or that it is a tie; None if nothing tells."""
        if not outcome:
            return None if outcome is None else "tie"
        return self.answers.ids[pair[0] if outcome > 0 else pair[1]]


IMPLIED = TableMethod(
    SECTION,
    TITLE,
    "Whoever prefers a to b and b to c is taken to prefer a to c. How many pairs follow so from an annotator’s own "
    "answers and were not asked, and of those asked anyway, how many were answered otherwise. They stand here "
    "alone: no score takes them for answers. Ties carry nothing over. The interval is Wilson’s; as pairs share items, "
    "it is rather too narrow.",
    fit,
    reads=("order",),
    of_people=True,
    of_pairs=True,
    drawn=Drawn("wrong", SHARES),
    room=lambda expected: expected.annotators + 1,
    exports=(
        MethodExport(
            "pairs",
            "Pairs, answered and implied",
            "Every pair that was answered, with what earlier answers of the same annotator implied, and every pair "
            "that is implied and was not asked, marked as such. There may be very many.",
            pairs,
        ),
    ),
)
