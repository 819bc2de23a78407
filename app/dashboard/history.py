"""Posterior history of a campaign: each item's posterior now and after its first judgments.

Pure: a history follows from the priors and the responses in order, however the responses are cut into batches.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online.law import AnsweredHit, LawBeliefs

EARLY_JUDGMENTS = (1, 5, 10)  # judgments after which an item's posterior is kept


@dataclass(frozen=True)
class PosteriorHistory:
    """Posteriors of N items after `answers` responses.

    Attributes:
        beliefs: All beliefs of the campaign's law.
        judgments: Number of judgments of each item, (N,).
        early_states: Posterior parameters after `EARLY_JUDGMENTS` judgments, (3, numbers, N); NaN where there were
            fewer.
        answers: Number of responses.

    """

    beliefs: LawBeliefs
    judgments: npt.NDArray[np.intp]
    early_states: Array
    answers: int = 0

    @property
    def nbytes(self) -> int:
        """Approximate memory, in bytes."""
        return self.beliefs.nbytes + self.judgments.nbytes + self.early_states.nbytes

    @property
    def state(self) -> Array:
        """Posterior parameters now, (numbers, N)."""
        return self.beliefs.state

    def early_judgment_counts_and_states_of_item(self, item_number: int) -> list[tuple[int, list[float]]]:
        """Return (judgments, state) of an item at each of `EARLY_JUDGMENTS` that it has passed, without the present
        state.
        """
        return [
            (judgments, self.early_states[k, :, item_number].tolist())
            for k, judgments in enumerate(EARLY_JUDGMENTS)
            if judgments < self.judgments[item_number]
        ]


def initial_history(beliefs: LawBeliefs) -> PosteriorHistory:
    """Return the history before the first answer."""
    numbers, n_items = beliefs.state.shape
    return PosteriorHistory(
        beliefs, np.zeros(n_items, np.intp), np.full((len(EARLY_JUDGMENTS), numbers, n_items), np.nan)
    )


def posterior_history_after_hits(history: PosteriorHistory, hits: Sequence[AnsweredHit]) -> PosteriorHistory:
    """Return a new history after these HITs too, in their order. A HIT without items is an answer that judged nothing.

    Raises what the law raises.
    """
    # `history` must not change, so this works on copies.
    extended = PosteriorHistory(
        history.beliefs.copy(), history.judgments.copy(), history.early_states.copy(), history.answers + len(hits)
    )
    judged = [hit for hit in hits if hit.items]
    for hit, change in zip(judged, extended.beliefs.apply_hits_and_iterate_changes(judged), strict=True):
        add_judgments_to_history(extended, hit.items, zip(*change.state, strict=True))
    return extended


def add_judgments_to_history(
    history: PosteriorHistory, items: Sequence[int], states: Iterable[tuple[float, ...]]
) -> None:
    """Count a judgment of each item, and keep the state it led to if its number is one of `EARLY_JUDGMENTS`."""
    for number, state in zip(items, states, strict=False):  # a law may have changed other items too, listed last
        history.judgments[number] += 1
        if (judgments := history.judgments.item(number)) in EARLY_JUDGMENTS:
            history.early_states[EARLY_JUDGMENTS.index(judgments), :, number] = state
