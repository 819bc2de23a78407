"""Table of systems by rank, with rank ranges and clusters, if the items of a campaign are outputs of systems."""

from app.analysis.answer_kinds import can_read_answers_as, notes_on_reading_as_kind
from app.analysis.method_types import DotPlotColumn, TableMethod, TableSection
from app.analysis.result_types import Answers, Column, Options, ResultTable, columns_to_cell_rows
from app.analysis.scores import refuse_without_answers
from app.inference.ground.notes import notes_with_names
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.systems import system_clusters

SYSTEM_RANK_COLUMNS = (
    Column("system", "System", "text"),
    Column("cluster", "Cluster", "count"),
    Column("rank", "Rank", "count"),
    Column("rank_low", "Best rank (95 %)", "count"),
    Column("rank_high", "Worst rank (95 %)", "count"),
    Column("score", "Score"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("judgments", "Judgments", "count"),
)


def build_system_rank_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per judged system, the best first."""
    refuse_without_answers(answers)
    ranking = system_clusters.fit(
        answers.hit, answers.item, answers.score, n_systems=answers.n_items, rng=answers.seeded_rng()
    )
    order = [k for k in ranking.rank.argsort(kind="stable").tolist() if ranking.rank[k]]
    columns = (
        *(answers.ids, ranking.cluster, ranking.rank, ranking.rank_low, ranking.rank_high),
        *(ranking.score, ranking.low, ranking.high, answers.judgment_counts),
    )
    rows = columns_to_cell_rows(*([column[k] for k in order] for column in columns))
    count = int(ranking.cluster.max())
    verdict = (
        f"{count} clusters: systems in the same cluster cannot be distinguished." if count > 1 else ONE_CLUSTER_TEXT
    )
    kind: JudgmentKind = "points" if can_read_answers_as("points", answers.value_kind) else "order"
    notes = (*notes_on_reading_as_kind(answers, kind), *notes_with_names(ranking.notes, {"system": answers.ids}))
    return ResultTable(SYSTEM_RANK_COLUMNS, rows, notes, verdict)


ONE_CLUSTER_TEXT = "The systems are one cluster: they cannot be distinguished yet."

SYSTEMS_SECTION = TableSection("systems", "Systems")

SYSTEM_RANK_TABLE = TableMethod(
    SYSTEMS_SECTION,
    "Ranks and clusters",
    "Each system’s score, in points, from differences within tasks, so neither the segment nor the other systems in "
    "the task matter. If each task shows one output, the score is the mean. For orders, the points are the share of "
    "the others in a task that a system beats. The range of ranks comes from comparing every two systems, with errors "
    "from resampling tasks 1,000 times, and allows for the number of pairs (Holm 1979). Systems whose ranges overlap "
    "are in one cluster. They say nothing about other segments.",
    build_system_rank_table,
    reads=("points", "order"),
    dot_plot=DotPlotColumn("score"),
    needs_systems=True,
)
