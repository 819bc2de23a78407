"""Which pairs one annotator is not asked: those that they answered, and those that their answers imply.

Of the latter a set share is asked anyway, to learn how often what is implied is wrong. Which ones, chance decides once
for each annotator and pair, by the campaign's seed: so the share is that of pairs, however often a pair is thought of,
and every process that serves has the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from app.inference.preferences.implied import Implications

Words = npt.NDArray[np.uint64]


@dataclass
class NotAsked:
    """Of one annotator: what is known, and how many of a hundred implied pairs are asked anyway; see `rule.Apart`.

    left_out: items that they are not asked about at all.
    """

    known: Implications
    seed: int
    annotator: int
    percent: int
    spent: set[int] = field(default_factory=set)
    left_out: Collection[int] = ()

    def beside(self, leader: int) -> set[int]:
        """The items that are not asked beside this one."""
        implied = self.known.implied_beside(leader)
        anyway = asked_anyway(self.seed, self.annotator, leader, implied, self.percent)
        return {*self.known.answered_beside(leader).tolist(), *implied[~anyway].tolist(), *self.left_out}


def asked_anyway(
    seed: int, annotator: int, item: int, others: npt.NDArray[np.int64] | Sequence[int], percent: int
) -> npt.NDArray[np.bool_]:
    """Of the pairs of an item with others, (n,), which this annotator is asked although they are implied."""
    pair = np.asarray(others, np.int64)
    low, high = np.minimum(pair, item).astype(np.uint64), np.maximum(pair, item).astype(np.uint64)
    words = _mixed(_mixed(np.array([seed], np.uint64)) ^ np.uint64(annotator))
    luck = _mixed(_mixed(words ^ low) ^ high)
    return luck % np.uint64(100) < np.uint64(percent)


def _mixed(words: Words) -> Words:
    """Whole numbers that look like chance: splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
    generators"). It wraps around at 2 ** 64.
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
