"""A campaign in memory: the same rule draws, the same law learns, and no database stands between.

What it does to posteriors is what a campaign does, to the bit; what it leaves out is whatever happens when many work at
once. For planning and experiments, which need thousands of campaigns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.inference.ground.arrays import Array, Mask
from app.inference.online.law import AnsweredHit, Law, LawBeliefs, LawParameters
from app.selection.rule import SETTLED_OFFSET, Counts, Draw, Index, Rule, SelectionSettings
from app.simulation.annotators import SimulatedAnnotators


@dataclass
class SimulatedCampaign:
    """A campaign of N items. begun: what its law believes at first, and how many judgments are in that, (N,); None
    before the first. again: whether it shows somebody an item again. beliefs: those of its law. index: of its rule.
    hits: those that were answered since. seen: the items that annotators have seen. reopened: how often items that had
    settled were asked about again.
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
        self.index = self.rule.make_index(self.score, self.variance, judgments, self.asking)

    def initial_beliefs(self) -> LawBeliefs:
        """What the law believes before the first HIT."""
        priors: Sequence[Array] = [np.full(self.item_count, number) for number in self.law.family.default_prior]
        return self.law.initial_beliefs(priors, self.parameters)

    @property
    def score(self) -> Array:
        """(N,)."""
        return self.law.family.score(*self.beliefs.state)

    @property
    def variance(self) -> Array:
        """(N,)."""
        return self.law.family.variance(*self.beliefs.state)

    @property
    def judgments(self) -> Counts:
        """(N,)."""
        return self.index.judgments

    def draw(self, annotator: int) -> Draw | None:
        """The next HIT of somebody who has not seen its items, or, if there are no others, may see them again."""
        seen = self.seen.setdefault(annotator, set())
        nobody: set[int] = set()
        return self.index.draw(
            self.asking.items_per_hit,
            seen=seen,
            full=nobody,
            leading=nobody,
            allow_seen=self.repeats_items,
            rng=self.rng,
        )

    def learn_answer(self, hit: AnsweredHit) -> None:
        """Learn of an answer."""
        self.hits.append(hit)
        self.seen.setdefault(hit.annotator, set()).update(hit.items)
        (change,) = self.beliefs.iterate_changes([hit])
        score, variance = self.law.family.scores_and_variances(*change.state)
        judgments = self.judgments[[*change.items]]
        judgments[: len(hit.items)] += 1
        self.index.update(change.items, score, variance, judgments.tolist())

    def release_items(self, is_settled: Mask) -> None:
        """Ask about these items no more, (N,), and about all others as long as they want judgments."""
        changed = np.flatnonzero(is_settled != (self.judgments >= SETTLED_OFFSET))
        self.reopenings += not is_settled[changed].all()
        judgments = self.judgments[changed] % SETTLED_OFFSET + SETTLED_OFFSET * is_settled[changed]
        self.index.update(changed.tolist(), self.score[changed], self.variance[changed], judgments.tolist())

    def judge_each_item_once(self, annotators: SimulatedAnnotators) -> None:
        """One judgment of each item, whatever is known of it: HITs of items at random, each by any of these people."""
        shown = self.rng.permutation(self.item_count)
        for items in np.array_split(shown, -(-self.item_count // self.asking.items_per_hit)):
            annotator = int(self.rng.integers(annotators.number))
            self.learn_answer(
                AnsweredHit(annotator, items.tolist(), annotators.answer(annotator, items.tolist(), self.rng).tolist())
            )

    def generate_hits(
        self, annotators: SimulatedAnnotators, hits_left: Sequence[int] | None = None
    ) -> Iterator[AnsweredHit]:
        """HITs one after another, each by any of them, as they are answered; until nothing is wanted, or nobody may
        answer. may: how many HITs each may, (number,); None without a limit.
        """
        remaining_hits = [*hits_left] if hits_left is not None else [-1] * annotators.number
        active = [place for place, hits in enumerate(remaining_hits) if hits]
        finished: list[int] = []  # who had seen all that was asked, and come again when more is
        reopened = self.reopenings
        while active:
            place = int(self.rng.integers(len(active)))
            annotator = active[place]
            draw = self.draw(annotator)
            if draw is None and self.repeats_items:  # there is nothing for anybody
                return
            remaining_hits[annotator] -= draw is not None
            if draw is None or not remaining_hits[annotator]:
                active[place] = active[-1]
                active.pop()
            if draw is None:
                finished.append(annotator)
                continue
            hit = AnsweredHit(annotator, draw.items, annotators.answer(annotator, draw.items, self.rng).tolist())
            self.learn_answer(hit)
            yield hit
            if reopened != self.reopenings:
                reopened, active, finished = self.reopenings, [*active, *finished], []
