"""TrueSkill that learns about annotators: each has a discrimination a, by which they see the differences of skills.

Annotator k sees a_k (skill_i - skill_j) with the noise of TrueSkill; a_k = 1 is TrueSkill itself, and answers at random
have a_k = 0. The belief about a_k is a distribution on a grid, and that about each item is Normal. A pair changes both:

- With c^2 = 2 gamma^2 + a^2 (sigma2_i + sigma2_j) and t = a (mu_i - mu_j), each a of the grid has TrueSkill's update at
  t / c; mu_i moves by sigma2_i (a / c) v, and sigma2_i shrinks by the factor 1 - sigma2_i (a / c)^2 w. The margin
  epsilon is used for ties alone: where annotators rarely say that items tie, it makes every decided pair a surprise.
- The item's new posterior is the Normal with the mean and the variance of the mixture of these over the grid, by the
  belief about a after the pair (assumed density filtering: Minka 2001; for Bradley-Terry: Chen et al. 2013).
- The belief about a is multiplied by the chance of the winner. Ties say nothing about it.

The pairs of a HIT of n items are not independent, so the chance counts to the power 9 / (2 n + 5), which is 1 for a
pair; `observations.pair_weights` explains it. Earlier answers are not weighed again when more is known about their
annotator: `preferences.aware_bradley_terry` does that, from all answers at once.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.observations.comparisons import is_tie
from app.inference.online import normal, trueskill, truncated_normal
from app.inference.online.item_law import validated_copy_of_priors
from app.inference.online.law import (
    AnnotatorDescription,
    AnsweredHit,
    Columns,
    HitChange,
    Law,
    LawParameters,
    LawState,
    StateFloats,
    refuse_repeated_or_unknown_hit_items,
    validated_scores_of_hit_as_floats,
)
from app.inference.online.pair_updates import Posterior
from app.inference.online.state_queries import (
    Querying,
    ReadAnnotatorStates,
    ReadCampaignState,
    ReadPosteriors,
    StateQuery,
    run_law_steps,
)

DISCRIMINATIONS: Final = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
INITIAL_BELIEF: Final = (0.1019, 0.0166, 0.079, 0.202, 0.2761, 0.202, 0.1187, 0.0037)
"""One annotator in ten answers at random; careful ones have about N(1, .1)."""
INITIAL_CAMPAIGN_STATE: Final = [1.0]
"""The number of the law's edition."""
_MIN_SIGMA2: Final = 1e-12
_MIN_CHANCE: Final = 1e-12
_SQRT_HALF: Final = math.sqrt(0.5)


def grid_belief_after_winner(belief: Sequence[float], chances: Sequence[float], weight: float) -> list[float]:
    """Return the belief about a, (G,), after a winner who has these chances, (G,); `weight` is their power."""
    powers = chances if weight == 1.0 else [math.exp(weight * math.log(chance)) for chance in chances]
    products = [share * power for share, power in zip(belief, powers, strict=True)]
    total = math.fsum(products)
    return [product / total for product in products]


def winner_chance_at_each_discrimination(winner: Posterior, loser: Posterior, parameters: LawParameters) -> list[float]:
    """Return for each a how likely the winner of a decided pair is to win, (G,), above 0."""
    chances = []
    for a in DISCRIMINATIONS:
        c = _noise_of_difference(a, winner[1] + loser[1], parameters)
        chance = 0.5 * math.erfc(a * (loser[0] - winner[0]) / c * _SQRT_HALF)
        chances.append(max(chance, _MIN_CHANCE))
    return chances


def updated_pair_posteriors(
    i: Posterior, j: Posterior, belief: Sequence[float], parameters: LawParameters, *, is_tied: bool
) -> tuple[Posterior, Posterior]:
    """Return the posteriors of a pair, i the winner unless tied, as mixtures over the belief about a, (G,)."""
    parts = []
    for a in DISCRIMINATIONS:
        c = _noise_of_difference(a, i[1] + j[1], parameters)
        t = a * (i[0] - j[0]) / c
        v, w = (
            truncated_normal.v_and_w_of_tie(t, parameters.epsilon / c)
            if is_tied
            else truncated_normal.v_and_w_of_win(t, 0.0)
        )
        parts.append((a / c * v, a * a / (c * c) * w))
    return _mixture_mean_and_variance(i, belief, parts, 1.0), _mixture_mean_and_variance(j, belief, parts, -1.0)


def _noise_of_difference(a: float, variance: float, parameters: LawParameters) -> float:
    return math.sqrt(2.0 * parameters.gamma * parameters.gamma + a * a * variance)


def _mixture_mean_and_variance(
    posterior: Posterior, belief: Sequence[float], parts: Sequence[tuple[float, float]], sign: float
) -> Posterior:
    """Return the mean and the variance of the mixture of Normals; parts are (a / c v, (a / c)^2 w) for each a."""
    mu, sigma2 = posterior
    step = math.fsum(share * pull for share, (pull, _) in zip(belief, parts, strict=True))
    kept = math.fsum(share * max(1.0 - sigma2 * bend, 0.0) for share, (_, bend) in zip(belief, parts, strict=True))
    between = math.fsum(share * (pull - step) * (pull - step) for share, (pull, _) in zip(belief, parts, strict=True))
    # A variance never grows, and stays above 0.
    return mu + sign * sigma2 * step, max(min(sigma2 * (kept + sigma2 * between), sigma2), _MIN_SIGMA2)


def posteriors_belief_and_decided_pairs_after_hit(
    posteriors: Sequence[Posterior], scores: Sequence[float], belief: Sequence[float], parameters: LawParameters
) -> tuple[list[Posterior], list[float], int]:
    """Apply all pairs of one HIT in presentation order; return the posteriors, the belief about a, and the number of
    decided pairs.
    """
    posteriors, after, decided = list(posteriors), list(belief), 0
    weight = 1.0 if len(scores) < 3 else 9.0 / (2.0 * len(scores) + 5.0)
    for one, other in combinations(range(len(scores)), 2):
        is_tied = is_tie(scores[one], scores[other], parameters.tie_margin)
        if is_tied and not parameters.ties:
            continue
        i, j = (one, other) if is_tied or scores[one] > scores[other] else (other, one)
        of_pair = after
        if not is_tied:
            chances = winner_chance_at_each_discrimination(posteriors[i], posteriors[j], parameters)
            of_pair, after = (
                grid_belief_after_winner(after, chances, 1.0),
                grid_belief_after_winner(after, chances, weight),
            )
            decided += 1
        posteriors[i], posteriors[j] = updated_pair_posteriors(
            posteriors[i], posteriors[j], of_pair, parameters, is_tied=is_tied
        )
    return posteriors, after, decided


@dataclass(frozen=True, slots=True)
class AwarePairLaw(Law):
    """The law `trueskill-aware`. The state of an annotator is the number of decided pairs, then the belief about a."""

    def initial_beliefs(
        self,
        priors: Sequence[npt.ArrayLike],
        parameters: LawParameters,
        law_state: LawState | None = None,  # noqa: ARG002  (there is one edition)
    ) -> "AwarePairBeliefs":
        """Return the beliefs before the first HIT."""
        return AwarePairBeliefs(self, parameters, validated_copy_of_priors(self, priors), {}, [*INITIAL_CAMPAIGN_STATE])

    def hit_change_querying_state(self, hit: AnsweredHit, parameters: LawParameters) -> Querying[HitChange]:
        """Update the HIT's items and its annotator. Raises ValueError as `trueskill.update` does."""
        campaign_state: StateFloats = yield ReadCampaignState()
        columns: Columns = yield ReadPosteriors(hit.items)
        annotators: Mapping[int, StateFloats] = yield ReadAnnotatorStates([hit.annotator])
        pairs, *belief = annotators.get(hit.annotator, [0.0, *INITIAL_BELIEF])
        scores = validated_scores_of_hit_as_floats(hit.values, len(hit.items))
        mu_sigma2 = list(zip(*normal.to_normal_float_lists(*columns), strict=True))
        posteriors, after, decided = posteriors_belief_and_decided_pairs_after_hit(
            mu_sigma2, scores, belief, parameters
        )
        state = LawState(campaign_state, {hit.annotator: [pairs + decided, *after]})
        return HitChange(hit.items, ([mu for mu, _ in posteriors], [sigma2 for _, sigma2 in posteriors]), state)

    def annotator_description_by_number(
        self,
        annotator_states: Mapping[int, StateFloats],
        campaign_state: StateFloats,  # noqa: ARG002  (it is the edition alone)
    ) -> dict[int, AnnotatorDescription]:
        """Return how likely annotators answer at random, and the correlation of what they see with true values."""
        return {
            number: AnnotatorDescription(
                at_random=belief[0],
                reliability=math.fsum(
                    share * a / math.sqrt(1.0 + a * a) for a, share in zip(DISCRIMINATIONS, belief, strict=True)
                ),
                bias=math.nan,
            )
            for number, (_, *belief) in annotator_states.items()
        }


@dataclass(slots=True)
class AwarePairBeliefs:
    """A campaign's posteriors, (2, N), and the states of its annotators, changed by one HIT after another."""

    law: AwarePairLaw
    parameters: LawParameters
    state: Array
    annotators: dict[int, StateFloats]
    campaign_state: StateFloats

    @property
    def nbytes(self) -> int:
        """Memory of the posteriors and of the annotators, in bytes."""
        return self.state.nbytes + 8 * (1 + len(DISCRIMINATIONS)) * len(self.annotators)

    def copy(self) -> "AwarePairBeliefs":
        """Return an independent copy. States of annotators never change in place, so both share them."""
        return replace(self, state=self.state.copy(), annotators=dict(self.annotators))

    def law_state_besides_posteriors(self) -> LawState:
        """Return the states of the campaign and of its annotators."""
        return LawState(self.campaign_state, self.annotators)

    def apply_hits(self, hits: Sequence[AnsweredHit]) -> None:
        """Apply HITs, one after another."""
        for _ in self.apply_hits_and_iterate_changes(hits):
            pass

    def apply_hits_and_iterate_changes(self, hits: Sequence[AnsweredHit]) -> Iterator[HitChange]:
        """Apply HITs one by one, and yield what each changed. Raises ValueError for an invalid HIT."""
        for hit in hits:
            refuse_repeated_or_unknown_hit_items(hit.items, self.state.shape[1])
            change = run_law_steps(self.law.hit_change_querying_state(hit, self.parameters), self._state_for_query)
            self.state[:, change.items] = change.state
            self.annotators |= change.law_state.annotators
            yield change

    def _state_for_query(self, query: StateQuery) -> Any:
        match query:
            case ReadCampaignState():
                return self.campaign_state
            case ReadPosteriors(items):
                return tuple(self.state[:, items].tolist())
            case ReadAnnotatorStates(annotators):
                return {number: self.annotators[number] for number in annotators if number in self.annotators}
        raise TypeError(f"nothing is known of {query}")


LAW = AwarePairLaw(
    name="trueskill-aware",
    title="Annotator-aware TrueSkill: only the order counts, and annotators who contradict the others count less",
    assumes="Like TrueSkill, but annotators see differences between items more or less clearly, or answer at random.",
    family=trueskill.NORMAL,
    reads="order",
    layout=1,
    quick=False,
)
