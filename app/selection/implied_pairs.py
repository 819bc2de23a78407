"""Filter of pairs that one annotator is not asked: answered pairs, and pairs that their answers imply.

A fixed share of implied pairs is asked anyway, to learn how often implications are wrong. Chance decides once for each
annotator and pair, by the campaign's seed: so the share applies to pairs, however often a pair is considered, and every
server process decides alike.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from app.inference.preferences.implied_pairs import Implications

Uint64Array = npt.NDArray[np.uint64]


@dataclass
class ImpliedPairFilter:
    """One annotator's implications, and the percentage of implied pairs asked anyway; see `rule.PairFilter`.

    Attributes:
        excluded_items: Items that the annotator is not asked about at all.

    """

    implications: Implications
    seed: int
    annotator: int
    asked_percent: int
    exhausted_leaders: set[int] = field(default_factory=set)
    excluded_items: Collection[int] = ()

    def items_never_asked_together_with(self, leader: int) -> set[int]:
        """Return the items that are not asked together with this one."""
        implied = self.implications.unanswered_items_implied_with(leader)
        is_asked = mask_of_implied_pairs_asked_anyway(self.seed, self.annotator, leader, implied, self.asked_percent)
        return {
            *self.implications.items_already_compared_with(leader).tolist(),
            *implied[~is_asked].tolist(),
            *self.excluded_items,
        }


def mask_of_implied_pairs_asked_anyway(
    seed: int, annotator: int, item: int, other_items: npt.NDArray[np.int64] | Sequence[int], asked_percent: int
) -> npt.NDArray[np.bool_]:
    """Return which pairs of an item with others, (n,), this annotator is asked although they are implied."""
    pair = np.asarray(other_items, np.int64)
    low, high = np.minimum(pair, item).astype(np.uint64), np.maximum(pair, item).astype(np.uint64)
    words = _pseudorandom_splitmix64_words(
        _pseudorandom_splitmix64_words(np.array([seed], np.uint64)) ^ np.uint64(annotator)
    )
    hashes = _pseudorandom_splitmix64_words(_pseudorandom_splitmix64_words(words ^ low) ^ high)
    return hashes % np.uint64(100) < np.uint64(asked_percent)


def _pseudorandom_splitmix64_words(words: Uint64Array) -> Uint64Array:
    """Return pseudo-random whole numbers: splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
    generators"). It wraps around at 2 ** 64.
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
