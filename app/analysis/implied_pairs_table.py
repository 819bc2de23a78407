"""Pairs whose order follows from the same annotator's other answers: their number, and how often direct answers
differ.

No method uses them as answers: they are only in this table and its export, and are marked there.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from app.analysis.chart_axes import SHARE_AXIS
from app.analysis.consistency_tables import CONSISTENCY_SECTION
from app.analysis.method_types import DotPlotColumn, LazyTable, MethodExport, TableMethod
from app.analysis.pairwise_tables import preference_pair_columns
from app.analysis.result_types import Answers, Cell, Column, Options, ResultTable, cache_last_result
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.preferences.implied_pairs import (
    Implications,
    ImpliedCounts,
    PairOutcome,
    implications_and_implied_outcomes,
)

IMPLIED_PAIRS_COLUMNS = (
    Column("annotator", "Annotator", "text"),
    Column("answered", "Pairs answered", "count"),
    Column("not_asked", "Implied, not asked", "count"),
    Column("asked_anyway", "Implied, asked anyway", "count"),
    Column("otherwise", "Asked anyway, answered differently", "count"),
    Column("reversed", "Asked anyway, reversed", "count"),
    Column("wrong", "Share answered differently"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
)

PAIR_EXPORT_COLUMNS = ("annotator", "name", "seq", "first", "second", "preferred", "implied", "implied_before")
IMPLIED_PAIRS_TITLE = "Implied pairs"
ALL_ANNOTATORS_LABEL = "all"


class AnsweredPairs(NamedTuple):
    """The answered pairs, (P,) each, what was implied about each before, and each annotator's implications."""

    first: Integers
    second: Integers
    outcomes: Integers
    hits: Integers
    implied_before: Sequence[PairOutcome | None]
    implications_by_annotator: dict[int, Implications]


@cache_last_result
def answered_pairs_with_transitive_implications(answers: Answers, _: None) -> AnsweredPairs:
    """Return the answered pairs with their implications.

    Raises:
        Inestimable: `method_reads_other_answers`, `no_judgments`, `no_pairs`.

    """
    if not answers.compares_pairs:
        sentence = (
            f"“{IMPLIED_PAIRS_TITLE}” reads comparisons of any two items, one pair at a time; "
            "this campaign has no such answers."
        )
        raise Inestimable(sentence, code="method_reads_other_answers")
    first, second, outcomes, hits = preference_pair_columns(answers)
    columns = (first, second, outcomes, answers.annotator_index_of_each_hit[hits])
    orders, before = implications_and_implied_outcomes(*(column.tolist() for column in columns))
    return AnsweredPairs(first, second, outcomes, hits, before, orders)


def build_table_of_implied_pair_counts(answers: Answers, _options: Options) -> ResultTable:
    """Return a row for all annotators together, then one for each of them."""
    implications = answered_pairs_with_transitive_implications(answers, None).implications_by_annotator
    tallies = {answers.names[annotator]: order.tally for annotator, order in sorted(implications.items())}
    total = {ALL_ANNOTATORS_LABEL: sum(tallies.values(), ImpliedCounts())} if len(tallies) > 1 else {}
    return ResultTable(
        IMPLIED_PAIRS_COLUMNS, [implied_pairs_row(name, tally) for name, tally in (total | tallies).items()], ()
    )


def implied_pairs_row(name: str, tally: ImpliedCounts) -> tuple[Cell, ...]:
    counts = (tally.answered, tally.not_asked, tally.asked_anyway, tally.answered_otherwise, tally.answered_reversed)
    return (name, *counts, *(tally.contradicted_share_and_interval_or_none() or (None, None, None)))


def lazy_answered_and_implied_pair_table(answers: Answers, _options: Options) -> LazyTable:
    """Return the answered pairs in the order of time, then the implied pairs without an answer, by annotator."""
    rows = PairExportRows(answers, answered_pairs_with_transitive_implications(answers, None))
    return LazyTable(PAIR_EXPORT_COLUMNS, rows.count, rows.make_rows)


class PairExportRows:
    """Rows of the export. Rows of implied pairs are made while the file is written, by annotator and better item."""

    def __init__(self, answers: Answers, answered_pairs: AnsweredPairs) -> None:
        self.answers, self.answered_pairs = answers, answered_pairs
        self.better = [
            (who, item)
            for who, order in sorted(answered_pairs.implications_by_annotator.items())
            for item in order.items_in_order_of_arrival()
        ]
        counts = [
            len(answered_pairs.implications_by_annotator[who].implied_items_below(item)) for who, item in self.better
        ]
        self.starts = [*accumulate(counts, initial=len(answered_pairs.first))]

    @property
    def count(self) -> int:
        return self.starts[-1]

    def make_rows(self, start: int, stop: int) -> list[tuple[Cell, ...]]:
        """Return the rows from `start` to before `stop`."""
        answered = [self.answered_row(place) for place in range(start, min(stop, len(self.answered_pairs.first)))]
        return [*answered, *self.iterate_implied_rows(start, stop)]

    def iterate_implied_rows(self, start: int, stop: int) -> Iterator[tuple[Cell, ...]]:
        """Yield the implied pairs without an answer at these places; the first item is the better one."""
        ids = self.answers.ids
        earliest = max(bisect_right(self.starts, start) - 1, 0)
        for first, (annotator, item) in zip(self.starts[earliest:], self.better[earliest:], strict=False):
            if first >= stop:
                return
            worse_items = self.answered_pairs.implications_by_annotator[annotator].implied_items_below(item)[
                max(start - first, 0) : stop - first
            ]
            for other in worse_items.tolist():
                yield *self.name_and_pseudonym_cells(annotator), None, ids[item], ids[other], ids[item], True, None

    def answered_row(self, place: int) -> tuple[Cell, ...]:
        answers, answered_pairs = self.answers, self.answered_pairs
        hit, outcome = int(answered_pairs.hits[place]), int(answered_pairs.outcomes[place])
        pair = int(answered_pairs.first[place]), int(answered_pairs.second[place])
        implied_before = self.preferred_item_id_or_tie(pair, answered_pairs.implied_before[place])
        return (
            *self.name_and_pseudonym_cells(int(answers.annotator_index_of_each_hit[hit])),
            int(answers.seq[hit]),
            *(answers.ids[item] for item in pair),
            self.preferred_item_id_or_tie(pair, outcome),
            False,
            implied_before,
        )

    def name_and_pseudonym_cells(self, annotator: int) -> tuple[str, str]:
        return self.answers.annotators[annotator], self.answers.names[annotator]

    def preferred_item_id_or_tie(self, pair: tuple[int, int], outcome: int | None) -> str | None:
        """Return the id of the better item, "tie", or None if the order is unknown."""
        if not outcome:
            return None if outcome is None else "tie"
        return self.answers.ids[pair[0] if outcome > 0 else pair[1]]


IMPLIED_PAIRS_TABLE = TableMethod(
    CONSISTENCY_SECTION,
    IMPLIED_PAIRS_TITLE,
    "If an annotator prefers a to b and b to c, it follows that they prefer a to c. The table counts pairs that "
    "follow from an annotator’s own answers and were not asked, and of those asked anyway, how many were answered "
    "differently. They appear only here: no score uses them as answers. Ties imply nothing. The interval is "
    "Wilson’s; as pairs share items, it is somewhat too narrow.",
    build_table_of_implied_pair_counts,
    reads=("order",),
    shows_annotators=True,
    needs_free_pairs=True,
    dot_plot=DotPlotColumn("wrong", SHARE_AXIS),
    exports=(
        MethodExport(
            "pairs",
            "Pairs, answered and implied",
            "Every answered pair, with what the same annotator’s earlier answers implied, and every implied pair "
            "that was not asked, marked as such. This file can be very large.",
            lazy_answered_and_implied_pair_table,
        ),
    ),
)
