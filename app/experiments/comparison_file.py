"""Comparisons of systems that people made, from a file, some of which an experiment draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import Invalid, join_names, shorten_echo
from app.experiments.input_tables import read_table_columns
from app.experiments.judged_pairs import JudgedPairs, graded_response_columns
from app.inference.ground.arrays import Array, Integers
from app.inference.observations.baseline import BaselineAdvice, baseline_advice
from app.inference.preferences import bradley_terry

COMPARISON_COLUMNS = ("first", "second", "winner", "judge", "segment")
TIE_WINNER = "tie"
MIN_COUNTS = {"systems": 4, "judges": 10}  # of fewer judges there is no tenth
MIN_BASELINE_COMPARISONS = 100  # comparisons


@dataclass(frozen=True, eq=False)
class ComparisonFile:
    """names: of systems. baseline: its number. most: comparisons that a run draws, if there are as many."""

    names: list[str]
    pairs: JudgedPairs
    baseline: int
    max_judgments: int

    def result_settings(self) -> dict[str, Any]:
        """What decides the results of a run."""
        columns = self.pairs.first, self.pairs.second, self.pairs.judge, self.pairs.segment, self.pairs.outcome
        digest = sha256(np.ascontiguousarray(np.stack(columns)).tobytes()).hexdigest()
        return {"comparisons": digest, "baseline": self.names[self.baseline], "judgments": self.judgments}

    @property
    def systems(self) -> int:
        """How many there are."""
        return len(self.names)

    @property
    def judges(self) -> int:
        """How many there are."""
        return int(self.pairs.judge.max()) + 1

    @cached_property
    def truth(self) -> Array:
        """What comes nearest to it: Bradley-Terry scores by all comparisons as they are, (systems,)."""
        pairs = self.pairs
        return bradley_terry.fit(pairs.first, pairs.second, pairs.outcome, n_items=self.systems).score

    @cached_property
    def baseline_rows(self) -> Integers:
        """Which comparisons are with the baseline."""
        return np.flatnonzero((self.pairs.first == self.baseline) | (self.pairs.second == self.baseline))

    @property
    def judgments(self) -> int:
        """How many comparisons each method is shown in a run."""
        return min(self.max_judgments, len(self.baseline_rows))

    def draw_judges(self, rng: np.random.Generator) -> "FileJudges":
        """Who is careless in one run."""
        return FileJudges(self, rng)

    def advice_for(self, system: int) -> BaselineAdvice:
        """What all comparisons say of a system as the baseline."""
        return baseline_advice(graded_response_columns(self.pairs, system)[3])


class FileJudges:
    """The judges of a file in one run."""

    def __init__(self, source: ComparisonFile, rng: np.random.Generator) -> None:
        self.of, self.rng = source, rng
        self.place = rng.permutation(source.judges) / source.judges

    def draw_comparisons(self, baseline: int | None, share: float) -> JudgedPairs:
        """Comparisons drawn from the file, with its baseline or any; a share of the judges answers at random."""
        rows = np.arange(len(self.of.pairs.first)) if baseline is None else self.of.baseline_rows
        drawn = self.of.pairs.select_rows(self.rng.choice(rows, self.of.judgments, replace=False))
        return drawn.randomise_judges(self.place, share, self.rng)


def load_comparison_file(path: Path, baseline: str | None, max_judgments: int) -> ComparisonFile:
    """The comparisons of a table. Columns: first and second, two systems; winner, one of the two or `tie`; judge;
    segment. Without a baseline it is the system that is compared most, of equal ones the first by name.

    Raises as `columns_of`, and `Invalid` (`same_system`, `not_a_winner`, `too_few_systems`, `too_few_judges`,
    `no_such_system`, `too_few_comparisons`, `not_compared`).
    """
    rows = list(read_comparisons(path))
    columns = {name: [row[name] for row in rows] for name in COMPARISON_COLUMNS}
    systems, number = number_names(path, "systems", columns["first"] + columns["second"])
    _, judge = number_names(path, "judges", columns["judge"])
    _, segment = number_names(path, "segments", columns["segment"])
    outcome = np.array([(row["winner"] == row["first"]) * 1 - (row["winner"] == row["second"]) for row in rows])
    first, second = number.reshape(2, -1)
    if baseline is not None and baseline not in systems:
        raise Invalid(f"{path} has no system “{baseline}”, but {join_names(systems)}.", code="no_such_system")
    chosen = int(np.bincount(number).argmax()) if baseline is None else systems.index(baseline)
    source = ComparisonFile(systems, JudgedPairs(first, second, judge, segment, outcome), chosen, max_judgments)
    refuse_poor_baseline(source)
    return source


def read_comparisons(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table, each of two systems of which the winner is one, or none."""
    for row in read_table_columns(path, COMPARISON_COLUMNS):
        values = row.values
        first, second, winner = (shorten_echo(values[name]) for name in ("first", "second", "winner"))
        if values["first"] == values["second"]:
            problem = f"Line {row.line}: “{first}” is compared with itself."
            raise Invalid(problem, code="same_system", line=row.line)
        if values["winner"] not in {values["first"], values["second"], TIE_WINNER}:
            problem = f"“winner” must be “{first}”, “{second}” or “{TIE_WINNER}”, not “{winner}”."
            raise Invalid(f"Line {row.line}: {problem}", code="not_a_winner", line=row.line)
        yield values


def number_names(path: Path, kind: str, values: Sequence[str]) -> tuple[list[str], Integers]:
    """The different values in order, and the number of each."""
    names = sorted({*values})
    if len(names) < MIN_COUNTS.get(kind, 1):
        words = f"{path} has {len(names)} {kind}, and {MIN_COUNTS[kind]} are the fewest."
        raise Invalid(words, code=f"too_few_{kind}")
    number = {name: k for k, name in enumerate(names)}
    return names, np.array([number[value] for value in values], np.intp)


def refuse_poor_baseline(source: ComparisonFile) -> None:
    """Whether every system was compared with it, and it with them often enough."""
    name, count = source.names[source.baseline], len(source.baseline_rows)
    if count < MIN_BASELINE_COMPARISONS:
        words = f"“{shorten_echo(name)}” is compared {count} times; of a baseline {MIN_BASELINE_COMPARISONS} are the fewest."
        raise Invalid(words, code="too_few_comparisons")
    opponents = {
        *source.pairs.first[source.baseline_rows].tolist(),
        *source.pairs.second[source.baseline_rows].tolist(),
    }
    if missing := [other for k, other in enumerate(source.names) if k not in opponents]:
        words = f"“{shorten_echo(missing[0])}” is never compared with the baseline “{shorten_echo(name)}”"
        raise Invalid(f"{words}; leave it out, or name another with --baseline.", code="not_compared")
