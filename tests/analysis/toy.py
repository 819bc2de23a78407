"""A score method and a table for tests alone, added as a contributor would: one registry entry each."""

import numpy as np

from app.analysis.chart_axes import axis_with_round_ticks
from app.analysis.method_types import DotPlotColumn, LazyTable, MethodExport, ScoreMethod, TableMethod, TableSection
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.result_types import Answers, Column, Options, ResultTable, Scores, columns_to_cell_rows


def last_score(answers: Answers) -> Scores:
    """Return the last judgment of each item, in points."""
    values = np.full(answers.n_items, np.nan)
    values[answers.item] = answers.score
    return Scores(values, answers.has_judgments)


def hits(answers: Answers, _options: Options) -> ResultTable:
    """Return a row for each HIT with its highest score."""
    highest = np.maximum.reduceat(answers.score, answers.first_judgment_index_of_each_hit)
    return ResultTable(
        (Column("hit", "HIT", "text"), Column("top", "Top")), columns_to_cell_rows(map(str, answers.seq), highest)
    )


def times(answers: Answers, _options: Options) -> LazyTable:
    """Return the number of each HIT."""
    rows = columns_to_cell_rows(answers.seq)
    return LazyTable(("seq",), len(rows), lambda start, stop: rows[start:stop])


LAST_SCORE = ScoreMethod("Last score", "The last annotator is right.", "points, 0 to 100", last_score)
HITS = TableMethod(
    TableSection("toys", "Toys of a test"),
    "Highest scores",
    "How high the highest score of each HIT is.",
    hits,
    dot_plot=DotPlotColumn("top", axis_with_round_ticks("", 0.0, 100.0)),
    exports=(
        MethodExport("hits", "HITs", "Every HIT with its highest score."),
        MethodExport("times", "Times", "Every HIT by its number.", times),
    ),
)


def register() -> None:
    SCORE_METHODS["last_score"] = LAST_SCORE
    TABLE_METHODS["hits"] = HITS
