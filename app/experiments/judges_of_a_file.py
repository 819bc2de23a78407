"""Comparisons of systems that people made, from a file, some of which an experiment draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import Invalid, listed, shortened
from app.experiments.judged_pairs import JudgedPairs, graded_columns
from app.experiments.tables import columns_of
from app.inference.ground.arrays import Array, Integers
from app.inference.observations.baseline import BaselineAdvice, baseline_advice
from app.inference.preferences import bradley_terry

COLUMNS = ("first", "second", "winner", "judge", "segment")
TIE = "tie"
FEWEST = {"systems": 4, "judges": 10}  # of fewer judges there is no tenth
FEWEST_WITH_BASELINE = 100  # comparisons


@dataclass(frozen=True, eq=False)
class JudgesOfAFile:
    """names: of systems. baseline: its number. most: comparisons that a run draws, if there are as many."""

    names: list[str]
    pairs: JudgedPairs
    baseline: int
    most: int

    def told(self) -> dict[str, Any]:
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
    def with_baseline(self) -> Integers:
        """Which comparisons are with the baseline."""
        return np.flatnonzero((self.pairs.first == self.baseline) | (self.pairs.second == self.baseline))

    @property
    def judgments(self) -> int:
        """How many comparisons each method is shown in a run."""
        return min(self.most, len(self.with_baseline))

    def crowd(self, rng: np.random.Generator) -> "DrawnJudges":
        """Who is careless in one run."""
        return DrawnJudges(self, rng)

    def advice(self, system: int) -> BaselineAdvice:
        """What all comparisons say of a system as the baseline."""
        return baseline_advice(graded_columns(self.pairs, system)[3])


class DrawnJudges:
    """The judges of a file in one run."""

    def __init__(self, of: JudgesOfAFile, rng: np.random.Generator) -> None:
        self.of, self.rng = of, rng
        self.place = rng.permutation(of.judges) / of.judges

    def judged(self, baseline: int | None, share: float) -> JudgedPairs:
        """Comparisons drawn from the file, with its baseline or any; a share of the judges answers at random."""
        among = np.arange(len(self.of.pairs.first)) if baseline is None else self.of.with_baseline
        drawn = self.of.pairs.only(self.rng.choice(among, self.of.judgments, replace=False))
        return drawn.at_random(self.place, share, self.rng)


def judges_of(path: Path, baseline: str | None, most: int) -> JudgesOfAFile:
    """The comparisons of a table. Columns: first and second, two systems; winner, one of the two or `tie`; judge;
    segment. Without a baseline it is the system that is compared most, of equal ones the first by name.

    Raises as `columns_of`, and `Invalid` (`same_system`, `not_a_winner`, `too_few_systems`, `too_few_judges`,
    `no_such_system`, `too_few_comparisons`, `not_compared`).
    """
    rows = list(comparisons(path))
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    systems, number = numbered(path, "systems", columns["first"] + columns["second"])
    _, judge = numbered(path, "judges", columns["judge"])
    _, segment = numbered(path, "segments", columns["segment"])
    outcome = np.array([(row["winner"] == row["first"]) * 1 - (row["winner"] == row["second"]) for row in rows])
    first, second = number.reshape(2, -1)
    if baseline is not None and baseline not in systems:
        raise Invalid(f"{path} has no system “{baseline}”, but {listed(systems)}.", code="no_such_system")
    chosen = int(np.bincount(number).argmax()) if baseline is None else systems.index(baseline)
    found = JudgesOfAFile(systems, JudgedPairs(first, second, judge, segment, outcome), chosen, most)
    check_baseline(found)
    return found


def comparisons(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table, each of two systems of which the winner is one, or none."""
    for row in columns_of(path, COLUMNS):
        said = row.values
        first, second, winner = (shortened(said[name]) for name in ("first", "second", "winner"))
        if said["first"] == said["second"]:
            words = f"Line {row.line}: “{first}” is compared with itself."
            raise Invalid(words, code="same_system", line=row.line)
        if said["winner"] not in {said["first"], said["second"], TIE}:
            words = f"“winner” must be “{first}”, “{second}” or “{TIE}”, not “{winner}”."
            raise Invalid(f"Line {row.line}: {words}", code="not_a_winner", line=row.line)
        yield said


def numbered(path: Path, what: str, values: Sequence[str]) -> tuple[list[str], Integers]:
    """The different values in order, and the number of each."""
    names = sorted({*values})
    if len(names) < FEWEST.get(what, 1):
        words = f"{path} has {len(names)} {what}, and {FEWEST[what]} are the fewest."
        raise Invalid(words, code=f"too_few_{what}")
    number = {name: k for k, name in enumerate(names)}
    return names, np.array([number[value] for value in values], np.intp)


def check_baseline(found: JudgesOfAFile) -> None:
    """Whether every system was compared with it, and it with them often enough."""
    name, many = found.names[found.baseline], len(found.with_baseline)
    if many < FEWEST_WITH_BASELINE:
        words = f"“{shortened(name)}” is compared {many} times; of a baseline {FEWEST_WITH_BASELINE} are the fewest."
        raise Invalid(words, code="too_few_comparisons")
    met = {*found.pairs.first[found.with_baseline].tolist(), *found.pairs.second[found.with_baseline].tolist()}
    if left := [other for k, other in enumerate(found.names) if k not in met]:
        words = f"“{shortened(left[0])}” is never compared with the baseline “{shortened(name)}”"
        raise Invalid(f"{words}; leave it out, or name another with --baseline.", code="not_compared")
