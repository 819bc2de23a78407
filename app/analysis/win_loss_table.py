"""Wins, ties and losses of each system, or item, against each other one."""

import numpy as np

from app.analysis.answer_kinds import notes_on_reading_as_kind
from app.analysis.method_types import LazyTable, MethodExport, TableMethod, TableSection
from app.analysis.pairwise_tables import preference_pair_columns
from app.analysis.result_types import Answers, Cell, Column, Options, ResultTable
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable

MAX_MATRIX_SIZE = 30  # systems or items; a larger matrix cannot be read
MAX_NAME_CHARACTERS = 30
SHADE_COUNT = 10
RECORD_SEPARATOR = "–"


def win_and_tie_count_matrices(answers: Answers) -> tuple[Integers, Integers]:
    """Return how often each item was preferred to each other one, and how often they tied, (N, N) each.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`.

    """
    first, second, outcomes, _ = preference_pair_columns(answers)
    wins, ties = np.zeros((2, answers.n_items, answers.n_items), np.intp)
    winners, losers = np.where(outcomes > 0, first, second), np.where(outcomes > 0, second, first)
    is_tie = outcomes == 0
    np.add.at(wins, (winners[~is_tie], losers[~is_tie]), 1)
    for one, other in ((first, second), (second, first)):
        np.add.at(ties, (one[is_tie], other[is_tie]), 1)
    return wins, ties


def build_win_loss_table(answers: Answers, _options: Options) -> ResultTable:
    """Return a row and a column for each compared item, the one with the highest share of wins first.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`, `too_many_for_matrix`.

    """
    wins, ties = win_and_tie_count_matrices(answers)
    compared = np.flatnonzero((wins + wins.T + ties).any(axis=1))
    if len(compared) > MAX_MATRIX_SIZE:
        raise Inestimable(
            f"A matrix of {len(compared):,} items is too large to read. Download the file of all pairs instead.",
            code="too_many_for_matrix",
        )
    won, played = (wins + ties / 2.0).sum(axis=1), (wins + wins.T + ties).sum(axis=1)
    order = sorted(compared.tolist(), key=lambda item: -won[item] / played[item])
    columns = [Column("name", "", "text")]
    columns += [
        Column(f"against_{answers.ids[item]}", short_system_or_item_name(answers, item), "text") for item in order
    ]
    rows: list[tuple[Cell, ...]] = [
        (
            short_system_or_item_name(answers, item),
            *(
                format_wins_ties_and_losses_or_none(wins[item, other], ties[item, other], wins[other, item])
                for other in order
            ),
        )
        for item in order
    ]
    return ResultTable(tuple(columns), rows, notes_on_reading_as_kind(answers, "order"))


def short_system_or_item_name(answers: Answers, item: int) -> str:
    """Return a system's name, or the beginning of an item's text."""
    text = answers.shown[item] if answers.systems[item] is None else answers.ids[item]
    return text if len(text) <= MAX_NAME_CHARACTERS else text[: MAX_NAME_CHARACTERS - 1] + "…"


def format_wins_ties_and_losses_or_none(wins: int, ties: int, losses: int) -> str | None:
    """Return wins, ties and losses as text; None without a comparison."""
    return RECORD_SEPARATOR.join(f"{count:,}" for count in (wins, ties, losses)) if wins + ties + losses else None


def win_share_shade_or_none(cell: Cell) -> int | None:
    """Return the shade of a cell, from 0 for losses alone to `SHADE_COUNT` for wins alone; None without a record."""
    if not isinstance(cell, str) or cell.count(RECORD_SEPARATOR) != 2:
        return None
    counts = cell.replace(",", "").split(RECORD_SEPARATOR)
    if not all(count.isdigit() for count in counts):
        return None
    wins, ties, losses = map(int, counts)
    return round(SHADE_COUNT * (wins + ties / 2) / (wins + ties + losses))


def lazy_table_of_compared_pairs(answers: Answers, _options: Options) -> LazyTable:
    """Return a row for each compared pair."""
    wins, ties = win_and_tie_count_matrices(answers)
    first, second = np.nonzero(np.triu(wins + wins.T + ties, 1))
    columns = ("first", "second", "wins", "ties", "losses", "share_won")
    rows: list[tuple[Cell, ...]] = []
    for one, other in zip(first.tolist(), second.tolist(), strict=True):
        won, tied, lost = int(wins[one, other]), int(ties[one, other]), int(wins[other, one])
        share = (won + tied / 2) / (won + tied + lost)
        rows.append((answers.ids[one], answers.ids[other], won, tied, lost, share))
    return LazyTable(columns, len(rows), lambda start, stop: rows[start:stop])


WIN_LOSS_TABLE = TableMethod(
    TableSection("wins", "Wins and losses"),
    "Wins and losses",
    "Each row’s wins, ties and losses against each column. Darker cells won more. Scores of the same task that are no "
    "further apart than the tie margin are a tie.",
    build_win_loss_table,
    reads=("order",),
    compares_systems_or_pairs=True,
    shade_of_cell=win_share_shade_or_none,
    exports=(
        MethodExport(
            "win_loss",
            "Compared pairs",
            "Every compared pair of systems or items with wins, ties and losses of the first, and its share of wins.",
            lazy_table_of_compared_pairs,
        ),
    ),
)
