"""A campaign in memory: the same rule draws, the same law learns, and no database stands between.

What it does to posteriors is what a campaign does, to the bit; what it leaves out is whatever happens when many work at
once. For planning and experiments, which need thousands of campaigns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.inference.ground.arrays import Array, Mask
from app.inference.online.law import Beliefs, Hit, Law, Parameters
from app.selection.rule import SETTLED, Asking, Counts, Draw, Index, Rule
from app.simulation.annotators import Answering


@dataclass
class InMemory:
    """A campaign of N items. begun: what its law believes at first, and how many judgments are in that, (N,); None
    before the first. again: whether it shows somebody an item again. beliefs: those of its law. index: of its rule.
    hits: those that were answered since. seen: the items that annotators have seen. reopened: how often items that had
    settled were asked about again.
    """

    rule: Rule
    law: Law
    asking: Asking
    parameters: Parameters
    size: int
    rng: np.random.Generator
    begun: tuple[Beliefs, Counts] | None = None
    again: bool = True
    beliefs: Beliefs = field(init=False)
    index: Index = field(init=False)
    hits: list[Hit] = field(default_factory=list)
    seen: dict[int, set[int]] = field(default_factory=dict)
    reopened: int = 0

    def __post_init__(self) -> None:
        self.beliefs, judgments = self.begun or (self.nothing(), np.zeros(self.size, np.int64))
        self.index = self.rule.index(self.score, self.variance, judgments, self.asking)

    def nothing(self) -> Beliefs:
        """What the law believes before the first HIT."""
        priors: Sequence[Array] = [np.full(self.size, number) for number in self.law.family.default_prior]
        return self.law.begin(priors, self.parameters)

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
            self.asking.n, seen=seen, full=nobody, leading=nobody, allow_seen=self.again, rng=self.rng
        )

    def submit(self, hit: Hit) -> None:
        """Learn of an answer."""
        self.hits.append(hit)
        self.seen.setdefault(hit.annotator, set()).update(hit.items)
        (change,) = self.beliefs.steps([hit])
        score, variance = self.law.family.estimates(*change.state)
        judgments = self.judgments[[*change.items]]
        judgments[: len(hit.items)] += 1
        self.index.update(change.items, score, variance, judgments.tolist())

    def release(self, settled: Mask) -> None:
        """Ask about these items no more, (N,), and about all others as long as they want judgments."""
        changed = np.flatnonzero(settled != (self.judgments >= SETTLED))
        self.reopened += not settled[changed].all()
        judgments = self.judgments[changed] % SETTLED + SETTLED * settled[changed]
        self.index.update(changed.tolist(), self.score[changed], self.variance[changed], judgments.tolist())

    def round_by(self, people: Answering) -> None:
        """One judgment of each item, whatever is known of it: HITs of items at random, each by any of these people."""
        shown = self.rng.permutation(self.size)
        for items in np.array_split(shown, -(-self.size // self.asking.n)):
            who = int(self.rng.integers(people.number))
            self.submit(Hit(who, items.tolist(), people.answer(who, items.tolist(), self.rng).tolist()))

    def answered_by(self, people: Answering, may: Sequence[int] | None = None) -> Iterator[Hit]:
        """HITs one after another, each by any of them, as they are answered; until nothing is wanted, or nobody may
        answer. may: how many HITs each may, (number,); None without a limit.
        """
        most = [*may] if may is not None else [-1] * people.number
        there = [place for place, hits in enumerate(most) if hits]
        finished: list[int] = []  # who had seen all that was asked, and come again when more is
        reopened = self.reopened
        while there:
            place = int(self.rng.integers(len(there)))
            who = there[place]
            draw = self.draw(who)
            if draw is None and self.again:  # there is nothing for anybody
                return
            most[who] -= draw is not None
            if draw is None or not most[who]:
                there[place] = there[-1]
                there.pop()
            if draw is None:
                finished.append(who)
                continue
            hit = Hit(who, draw.items, people.answer(who, draw.items, self.rng).tolist())
            self.submit(hit)
            yield hit
            if reopened != self.reopened:
                reopened, there, finished = self.reopened, [*there, *finished], []
