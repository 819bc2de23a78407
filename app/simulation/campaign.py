"""A campaign in memory: the same rule selects items and the same law learns, without a database.

Posteriors are the same as in a real campaign, to the bit; concurrent answers are not simulated. For plans and
experiments, which need thousands of campaigns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.inference.ground.arrays import Array, Mask
from app.inference.online.law import AnsweredHit, Law, LawBeliefs, LawParameters
from app.selection.pairs_rule import PairsIndex
from app.selection.rule import Counts, Draw, Index, ItemStatus, ItemValues, Rule, SelectionSettings
from app.simulation.annotators import SimulatedAnnotators


@dataclass
class SimulatedCampaign:
    """A campaign of N items in memory.

    Attributes:
        rule: Rule that selects items.
        law: Law that learns.
        item_count: N.
        rng: Source of randomness.
        initial_state: Beliefs at first, and the number of judgments in them, (N,); None before the first judgment.
        repeats_items: True if an annotator may see an item again.
        index: Index of the rule.
        hits: HITs answered since.
        seen: Items that each annotator has seen.
        reopenings: How often settled items were asked about again.

    """

    rule: Rule
    law: Law
    asking: SelectionSettings
    parameters: LawParameters
    item_count: int
    rng: np.random.Generator
    initial_state: tuple[LawBeliefs, Counts] | None = None
    repeats_items: bool = True
    beliefs: LawBeliefs = field(init=False)
    index: Index = field(init=False)
    hits: list[AnsweredHit] = field(default_factory=list)
    seen: dict[int, set[int]] = field(default_factory=dict)
    reopenings: int = 0

    def __post_init__(self) -> None:
        self.beliefs, judgments = self.initial_state or (self.initial_beliefs(), np.zeros(self.item_count, np.int64))
        self.index = self.rule.make_selection_index(ItemValues(self.score, self.variance, judgments), self.asking)

    def initial_beliefs(self) -> LawBeliefs:
        """Return the law's beliefs before the first HIT."""
        priors: Sequence[Array] = [np.full(self.item_count, number) for number in self.law.family.default_prior]
        return self.law.initial_beliefs(priors, self.parameters)

    @property
    def score(self) -> Array:
        """Score of each item, (N,)."""
        return self.law.family.score(*self.beliefs.state)

    @property
    def variance(self) -> Array:
        """Variance of each item, (N,)."""
        return self.law.family.variance(*self.beliefs.state)

    @property
    def judgments(self) -> Counts:
        """Number of judgments of each item, (N,)."""
        return self.index.judgments

    def draw_next_hit_or_none(self, annotator: int) -> Draw | None:
        """Draw the next HIT of items new to the annotator or, if there are none and items may repeat, of items seen
        before.
        """
        no_items: set[int] = set()
        return self.index.draw_hit_or_none(
            self.asking.items_per_hit,
            seen=self.seen.setdefault(annotator, set()),
            full=no_items,
            leaders_to_avoid=no_items,
            seen_as_last_resort=self.repeats_items,
            rng=self.rng,
        )

    def update_campaign_by_answer(self, hit: AnsweredHit) -> None:
        """Update beliefs, index and counts by an answer."""
        self.hits.append(hit)
        self.seen.setdefault(hit.annotator, set()).update(hit.items)
        (change,) = self.beliefs.apply_hits_and_iterate_changes([hit])
        score, variance = self.law.family.scores_and_variances(*change.state)
        judgments = self.judgments[[*change.items]]
        judgments[: len(hit.items)] += 1
        self.index.update(change.items, score, variance, judgments.tolist())
        if isinstance(self.index, PairsIndex):
            self.index.learn_comparisons_of_hit(
                hit.items, hit.values, tie_margin=self.parameters.tie_margin, ties=self.parameters.ties
            )

    def release_settled_items(self, is_settled: Mask) -> None:
        """Stop asking about the settled items, (N,), and ask about all others as long as they want judgments."""
        status = is_settled * ItemStatus.SETTLED
        changed = np.flatnonzero(status != self.index.status)
        self.reopenings += not is_settled[changed].all()
        columns = self.score, self.variance, self.judgments, status
        self.index.update(changed.tolist(), *(column[changed].tolist() for column in columns))

    def judge_each_item_once(self, annotators: SimulatedAnnotators) -> None:
        """Collect one judgment of each item in HITs of random items, each answered by a random annotator."""
        shown = self.rng.permutation(self.item_count)
        for items in np.array_split(shown, -(-self.item_count // self.asking.items_per_hit)):
            annotator = int(self.rng.integers(annotators.number))
            self.update_campaign_by_answer(
                AnsweredHit(
                    annotator,
                    items.tolist(),
                    annotators.draw_scores_of_annotator(annotator, items.tolist(), self.rng).tolist(),
                )
            )

    def iterate_hits_while_answering_them(
        self, annotators: SimulatedAnnotators, hits_left: Sequence[int] | None = None
    ) -> Iterator[AnsweredHit]:
        """Yield HITs as random annotators answer them, until no judgment is wanted or no annotator may answer.

        Args:
            annotators: The annotators who answer.
            hits_left: How many HITs each annotator may answer, (number,); None without a limit.

        """
        remaining_hits = [*hits_left] if hits_left is not None else [-1] * annotators.number
        active = [place for place, hits in enumerate(remaining_hits) if hits]
        finished: list[int] = []  # annotators who have seen all open items; they return when items reopen
        reopenings = self.reopenings
        while active:
            place = int(self.rng.integers(len(active)))
            annotator = active[place]
            draw = self.draw_next_hit_or_none(annotator)
            if draw is None and self.repeats_items:  # no annotator gets a HIT any more
                return
            remaining_hits[annotator] -= draw is not None
            if draw is None or not remaining_hits[annotator]:
                active[place] = active[-1]
                active.pop()
            if draw is None:
                finished.append(annotator)
                continue
            hit = AnsweredHit(
                annotator, draw.items, annotators.draw_scores_of_annotator(annotator, draw.items, self.rng).tolist()
            )
            self.update_campaign_by_answer(hit)
            yield hit
            if reopenings != self.reopenings:
                reopenings, active, finished = self.reopenings, [*active, *finished], []
