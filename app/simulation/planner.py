"""What a campaign's goal will cost: campaigns in memory go on from what is known, until they reach it.

Each run draws true values and annotators as far as they are known (`supposed`), and asks by the campaign's rule. Where
the campaign's law measures its goal (`evidence`), that law learns and measures here too, up to `MOST_BY_LAW` items;
else scores are the means that `easl` learns, whatever the campaign's law is. Pure.

Of many items a random sample is simulated, and what it needs is scaled up. Narrow intervals and halves that agree mean
the same there; of the best items a sample has its share; and a probability that holds for all N items holds for M of
them with the power M / N, as if items were settled independently. `python -m benchmarks.plans_of_samples` measures how
far such a plan is from one of all items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np

from app.goals.evidence import GoalEvidence
from app.goals.progress import progress
from app.goals.settings import RELEASE
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.observations.tally import Tally
from app.inference.online.law import Beliefs, Parameters
from app.inference.online.laws import ONLINE
from app.inference.ratings.moderated import moderated
from app.selection.registry import RULES, asking_of
from app.simulation.annotators import Population
from app.simulation.in_memory import InMemory
from app.simulation.supposed import Supposing, acquainted, by_law, by_means, own_priors, replayed
from app.simulation.turnout import PEOPLE, Turnout, seen_by, turnout

MOST_ITEMS = 1_000_000
SAMPLE, MOST_SAMPLED = 1_000, 5_000  # items
MOST_BY_LAW = 300  # items: a HIT takes such a law ten times as long
FEWEST_BEST = 2  # in a sample
MOST_JUDGMENTS = 60  # an item, beyond those that are there
LOOKS, LOOKS_BY_LAW = 60, 40  # at how near the goal is, in one run
OTHERS = 10**9  # is added to their numbers, so that they are not those who have answered
WITHOUT_END = 10**6  # judgments
BAND = 2.5, 97.5  # per cent of the runs
LAW = ONLINE["easl"]


@dataclass(frozen=True)
class Forecast:
    """Of R runs: after how many more judgments each looked, (L,), and how near its goal it was, (R, L), NaN once it was
    reached. needed: judgments from now on until it is, (R,); infinite where it was not in the time. ran_out: whether
    annotators had answered all that they may before it was, (R,).
    """

    looks: Array
    near: Array
    needed: Array
    ran_out: Mask

    @property
    def band(self) -> tuple[float, float, float]:
        """Judgments that are needed: the median of runs, and between which nine of ten lie."""
        low, middle, high = np.percentile(self.needed, (BAND[0], 50, BAND[1]), method="nearest")
        return float(middle), float(low), float(high)

    @property
    def chances(self) -> Array:
        """In which share of the runs the goal is reached by each look, (L,)."""
        share: Array = (self.needed[:, None] <= self.looks).mean(axis=0)
        return share


def sampled(campaign: Any) -> int:
    """How many of a campaign's items are simulated. campaign: with its `item_count`."""
    best = campaign.goal == "best" and campaign.best_items < campaign.item_count
    enough = -(-FEWEST_BEST * campaign.item_count // max(1, campaign.best_items)) if best else 0
    return int(min(campaign.item_count, MOST_SAMPLED, max(SAMPLE, enough)))


def of_sample(campaign: Any, share: float) -> Any:
    """The campaign as it is for this share of its items, 0 to 1: asked as ever, and with its part of the goal."""
    sure = campaign.goal_percent if campaign.goal == "intervals" else 100 * (campaign.goal_percent / 100) ** share
    most = campaign.hits_per_annotator
    changed = {"best_items": max(1, round(campaign.best_items * share)), "goal_percent": sure}
    changed |= {"hits_per_annotator": most and most * share}
    return SimpleNamespace(**{**campaign.__dict__, **changed})


@dataclass(frozen=True, eq=False)
class Start:
    """Where all runs of a plan begin. campaign: its settings. known: what its judgments say. beliefs: those of the law.
    people: draws who answers. who: they are, those who have answered first. seen: the items that each of these has
    seen, by their places.
    """

    campaign: Any
    known: GoalEvidence
    beliefs: Beliefs
    people: Supposing
    who: Turnout
    seen: Mapping[int, set[int]]

    def begun(self, rng: np.random.Generator) -> InMemory:
        """The campaign as it stands, to go on with."""
        size, judgments = len(self.known.tally.total), self.known.tally.judgments
        asking = replace(asking_of(self.campaign), wanted=WITHOUT_END)
        begun = self.beliefs.copy(), judgments
        again = self.campaign.repeat_items
        mine = InMemory(RULES[self.campaign.rule], self.known.law, asking, Parameters(), size, rng, begun, again)
        mine.seen |= {place: set(items) for place, items in self.seen.items()}
        return mine

    def number(self, place: int) -> int:
        """That of an annotator, by their place among `people`."""
        there = self.who.there
        return int(there[place]) if place < len(there) else OTHERS + place


def law_measures(campaign: Any, known: GoalEvidence) -> bool:
    """Whether a plan measures the goal by the law, where the campaign does."""
    return known.fits(campaign) and len(known.tally.total) <= MOST_BY_LAW


def start(
    campaign: Any,
    known: GoalEvidence,
    like: Population | GoalEvidence,
    annotators: int = PEOPLE,
    priors: Array | None = None,
) -> Start:
    """By the law or by plain means, with so many annotators in all. priors: what posteriors began with, (numbers, N);
    None for the law's own.
    """
    measures = law_measures(campaign, known)
    who = turnout(campaign, known.tally, annotators, by_law=measures)
    seen = seen_by(who, known.tally)
    if not measures:
        people = by_means(known.tally, like, who.number)
        return Start(campaign, GoalEvidence(LAW, known.tally, None), means(known.tally, priors), people, who, seen)
    n = asking_of(campaign).n
    replay = replayed(known, n, priors)
    people = by_law(known.tally, acquainted(known, replay), like, n, who.number)
    return Start(campaign, known, replay.beliefs, people, who, seen)


def means(tally: Tally, priors: Array | None) -> Beliefs:
    """What `easl` has learned: it adds scores to one number and what they lack to the other. priors: as in `start`."""
    high, low = own_priors(LAW, len(tally.total)) if priors is None else priors
    return LAW.begin([high + tally.total, low + tally.judgments - tally.total], Parameters())


def forecast(
    campaign: Any,
    known: GoalEvidence,
    like: Population | GoalEvidence,
    *,
    runs: int,
    seed: int,
    annotators: int = PEOPLE,
    priors: Array | None = None,
    sample: int | None = None,
    told: Callable[[int], None] = lambda _runs: None,
) -> Forecast:
    """What the goal of a campaign will cost. campaign: its settings as attributes of a namespace. known: what its
    judgments say. like: who answers, or what is known of an earlier campaign, where its own answers tell nothing yet.
    annotators: how many there are in all. priors: as in `start`. sample: how many items are simulated, None for all.
    told: hears after each run how many there were.
    """
    size, drawn = len(known.tally.total), asking_of(campaign).n
    share = min(1.0, (sample or size) / size)
    if share < 1:
        some = np.sort(np.random.default_rng([seed, size]).choice(size, sample, replace=False))
        campaign, known = of_sample(campaign, share), GoalEvidence(LAW, known.tally.of(some), None)
        priors = None if priors is None else priors[:, some]
    begin = start(campaign, known, like, annotators, priors)
    at = looked_at(-(-len(known.tally.total) * MOST_JUDGMENTS // drawn), costly=begin.known.said is not None)
    near, ran_out = np.empty((runs, len(at))), np.zeros(runs, bool)
    for k in range(runs):
        near[k], ran_out[k] = run(begin, at, np.random.default_rng([seed, k]))
        told(k + 1)
    over = np.isnan(near)
    looks = at * drawn / share
    needed = np.where(over.any(axis=1), looks[over.argmax(axis=1)], np.inf)
    return Forecast(looks, near, needed, ran_out)


def looked_at(hits: int, *, costly: bool) -> Integers:
    """After how many HITs it is looked how near the goal is, (L,), the last time after so many; where a look is costly,
    seldom later on, when it matters less.
    """
    evenly = np.linspace(0, hits, LOOKS + 1).astype(np.intp)
    kept = np.append(0, np.geomspace(1, LOOKS, LOOKS_BY_LAW).round().astype(np.intp))
    return np.unique(evenly[kept] if costly else evenly)


def run(begin: Start, at: Integers, rng: np.random.Generator) -> tuple[list[float], bool]:
    """How near the goal is after so many HITs, (L,), NaN once it was reached; and whether nobody was left to answer
    before it was.
    """
    evidence, near, may = begin.known, list[float](), begin.who.may
    people = begin.people(rng)
    mine = begin.begun(rng)
    hits = mine.answered_by(people, None if may is None else may.tolist())
    for more in np.diff(at, prepend=0).tolist():
        new = list(islice(hits, more))
        if new:
            who = [begin.number(hit.annotator) for hit in new for _ in hit.items]
            items = [item for hit in new for item in hit.items]
            evidence = evidence.after(items, who, [value for hit in new for value in hit.values])
        measured = evidence.measured(begin.campaign, moderated(evidence.tally))
        found = progress(begin.campaign, measured.known, mine.score, measured.by)
        if found is None or found.reached:
            return near + [np.nan] * (len(at) - len(near)), False
        if begin.campaign.when_reached == RELEASE:
            mine.release(np.isin(np.arange(mine.size), found.settled))
        near.append(found.now)
        if len(new) < more:
            return near + [found.now] * (len(at) - len(near)), True
    return near, False
