"""Systems ranked, with rank ranges and clusters, where the items of a campaign are systems."""

from app.analysis.coarsened import reached, read_as
from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Answers, Column, Options, ResultTable, rows_of
from app.analysis.scores import require_answers
from app.inference.ground.notes import named
from app.inference.observations.coarsening import Reads
from app.inference.systems import clusters

COLUMNS = (
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


def fit(answers: Answers, _options: Options) -> ResultTable:
    """One row per judged system, the best first."""
    require_answers(answers)
    found = clusters.fit(answers.hit, answers.item, answers.score, n_systems=answers.n_items, rng=answers.rng())
    order = [k for k in found.rank.argsort(kind="stable").tolist() if found.rank[k]]
    columns = (
        *(answers.ids, found.cluster, found.rank, found.rank_low, found.rank_high),
        *(found.score, found.low, found.high, answers.judgments),
    )
    rows = rows_of(*([column[k] for k in order] for column in columns))
    count = int(found.cluster.max())
    verdict = f"{count} clusters: systems of one cluster cannot be told apart." if count > 1 else ALL_ALIKE
    kind: Reads = "points" if reached("points", answers.yields) else "order"
    notes = (*read_as(answers, kind), *named(found.notes, {"system": answers.ids}))
    return ResultTable(COLUMNS, rows, notes, verdict)


ALL_ALIKE = "The systems are one cluster: they cannot be told apart yet."

SECTION = TableSection("systems", "Systems")

SYSTEMS = TableMethod(
    SECTION,
    "Ranks and clusters",
    "Each system’s score from differences within HITs, so that neither the segment nor the company counts, in points; "
    "of orders, the points are the share of the others in a HIT that a system beats. HITs are drawn again 1,000 times "
    "for the range of ranks; systems whose ranges overlap stand in one cluster (Koehn 2012, Bojar et al. 2013). It "
    "tells nothing of other segments than these.",
    fit,
    reads=("points", "order"),
    drawn=Drawn("score"),
    of_systems=True,
    room=lambda expected: expected.items,
)
