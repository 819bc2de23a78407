"""Comparisons of systems by people, read from a file; runs of an experiment draw from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import Invalid, join_names, shorten_echo
from app.experiments.input_tables import iterate_table_rows_with_columns
from app.experiments.judged_pairs import JudgedPairs, system_judge_segment_and_outcome_arrays
from app.inference.ground.arrays import Array, Integers
from app.inference.observations.baseline import BaselineAdvice, baseline_advice
from app.inference.preferences import bradley_terry

COMPARISON_COLUMNS = ("first", "second", "winner", "judge", "segment")
TIE_WINNER = "tie"
MIN_COUNTS = {"systems": 4, "judges": 10}  # a tenth of the judges answers at random
MIN_BASELINE_COMPARISONS = 100


@dataclass(frozen=True, eq=False)
class ComparisonFile:
    """Comparisons of systems from a file.

    Attributes:
        names: Names of the systems.
        baseline: Number of the baseline.
        max_judgments: Most comparisons that a run draws.

    """

    names: list[str]
    pairs: JudgedPairs
    baseline: int
    max_judgments: int

    def result_settings(self) -> dict[str, Any]:
        """Return the settings on which the results of a run depend."""
        columns = self.pairs.first, self.pairs.second, self.pairs.judge, self.pairs.segment, self.pairs.outcome
        digest = sha256(np.ascontiguousarray(np.stack(columns)).tobytes()).hexdigest()
        return {"comparisons": digest, "baseline": self.names[self.baseline], "judgments": self.judgments}

    @property
    def systems(self) -> int:
        """Number of systems."""
        return len(self.names)

    @property
    def judges(self) -> int:
        """Number of judges."""
        return int(self.pairs.judge.max()) + 1

    @cached_property
    def truth(self) -> Array:
        """Best estimate of the truth: Bradley-Terry scores from all comparisons as they are, (systems,)."""
        pairs = self.pairs
        return bradley_terry.fit(pairs.first, pairs.second, pairs.outcome, n_items=self.systems).score

    @cached_property
    def baseline_rows(self) -> Integers:
        """Rows of the comparisons with the baseline."""
        return np.flatnonzero((self.pairs.first == self.baseline) | (self.pairs.second == self.baseline))

    @property
    def judgments(self) -> int:
        """Number of comparisons that each method gets in a run."""
        return min(self.max_judgments, len(self.baseline_rows))

    def draw_judges(self, rng: np.random.Generator) -> "FileJudges":
        """Draw for one run which judges are careless."""
        return FileJudges(self, rng)

    def advice_on_system(self, system: int) -> BaselineAdvice:
        """Return advice on a system as the baseline, from all comparisons."""
        return baseline_advice(system_judge_segment_and_outcome_arrays(self.pairs, system)[3])


class FileJudges:
    """The judges of a file in one run."""

    def __init__(self, source: ComparisonFile, rng: np.random.Generator) -> None:
        self.source, self.rng = source, rng
        self.place = rng.permutation(source.judges) / source.judges

    def draw_comparisons(self, baseline: int | None, random_judge_share: float) -> JudgedPairs:
        """Draw comparisons from the file, with the baseline or any; a share of the judges answers at random."""
        rows = np.arange(len(self.source.pairs.first)) if baseline is None else self.source.baseline_rows
        drawn = self.source.pairs.select_rows(self.rng.choice(rows, self.source.judgments, replace=False))
        return drawn.with_random_answers_of_judges(self.place, random_judge_share, self.rng)


def load_comparison_file(path: Path, baseline: str | None, max_judgments: int) -> ComparisonFile:
    """Load the comparisons of a table.

    Columns: first and second, two systems; winner, one of the two or `tie`; judge; segment. Without a given baseline it
    is the system that is compared most often, among equals the first by name.

    Raises as `iterate_table_rows_with_columns`, and `Invalid` (`same_system`, `not_a_winner`, `too_few_systems`,
    `too_few_judges`, `no_such_system`, `too_few_comparisons`, `not_compared`).
    """
    rows = list(iterate_valid_comparisons_or_refuse(path))
    columns = {name: [row[name] for row in rows] for name in COMPARISON_COLUMNS}
    systems, number = distinct_values_and_indices_or_refuse(path, "systems", columns["first"] + columns["second"])
    _, judge = distinct_values_and_indices_or_refuse(path, "judges", columns["judge"])
    _, segment = distinct_values_and_indices_or_refuse(path, "segments", columns["segment"])
    outcome = np.array([(row["winner"] == row["first"]) * 1 - (row["winner"] == row["second"]) for row in rows])
    first, second = number.reshape(2, -1)
    if baseline is not None and baseline not in systems:
        raise Invalid(
            f"{path} has no system “{baseline}”. Choose one of {join_names(systems)}.",
            code="no_such_system",
        )
    chosen = int(np.bincount(number).argmax()) if baseline is None else systems.index(baseline)
    source = ComparisonFile(systems, JudgedPairs(first, second, judge, segment, outcome), chosen, max_judgments)
    refuse_rarely_compared_baseline(source)
    return source


def iterate_valid_comparisons_or_refuse(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table, each with two systems and the winner or `tie`."""
    for row in iterate_table_rows_with_columns(path, COMPARISON_COLUMNS):
        values = row.values
        first, second, winner = (shorten_echo(values[name]) for name in ("first", "second", "winner"))
        if values["first"] == values["second"]:
            problem = f"Line {row.line}: “{first}” is compared with itself."
            raise Invalid(problem, code="same_system", line=row.line)
        if values["winner"] not in {values["first"], values["second"], TIE_WINNER}:
            problem = f"“winner” must be “{first}”, “{second}” or “{TIE_WINNER}”, not “{winner}”."
            raise Invalid(f"Line {row.line}: {problem}", code="not_a_winner", line=row.line)
        yield values


def distinct_values_and_indices_or_refuse(path: Path, kind: str, values: Sequence[str]) -> tuple[list[str], Integers]:
    """Return the different values in order, and the number of each."""
    names = sorted({*values})
    if len(names) < MIN_COUNTS.get(kind, 1):
        problem = f"{path} has {len(names)} {kind}; at least {MIN_COUNTS[kind]} are needed."
        raise Invalid(problem, code=f"too_few_{kind}")
    number = {name: k for k, name in enumerate(names)}
    return names, np.array([number[value] for value in values], np.intp)


def refuse_rarely_compared_baseline(source: ComparisonFile) -> None:
    """Raise `Invalid` unless every system was compared with the baseline, and it was compared often enough."""
    name, count = source.names[source.baseline], len(source.baseline_rows)
    if count < MIN_BASELINE_COMPARISONS:
        raise Invalid(
            f"“{shorten_echo(name)}” is compared {count} times; a baseline needs at least {MIN_BASELINE_COMPARISONS} "
            "comparisons.",
            code="too_few_comparisons",
        )
    opponents = {
        *source.pairs.first[source.baseline_rows].tolist(),
        *source.pairs.second[source.baseline_rows].tolist(),
    }
    if missing := [other for k, other in enumerate(source.names) if k not in opponents]:
        raise Invalid(
            f"“{shorten_echo(missing[0])}” is never compared with the baseline “{shorten_echo(name)}”. Leave it "
            "out, or choose another baseline with --baseline.",
            code="not_compared",
        )
