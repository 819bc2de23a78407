"""What a campaign's goal will cost: campaigns in memory go on from what is known, until they reach it.

Each run draws true values from what is believed of the items, asks by the campaign's rule, and answers with the noise
that its annotators have shown; before the first answer, items and annotators are as those of an earlier campaign, or of
`POPULATIONS`. Scores are the means that `easl` learns, whatever the campaign's law is. Pure.

Of many items a random sample is simulated, and what it needs is scaled up. Narrow intervals and halves that agree mean
the same there; of the best items a sample has its share; and a probability that holds for all N items holds for M of
them with the power M / N, as if items were settled independently. `python -m benchmarks.plans_of_samples` measures how
far such a plan is from one of all items.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np

from app.goals.progress import progress
from app.goals.settings import RELEASE
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.tally import Tally
from app.inference.online.law import Parameters
from app.inference.online.laws import ONLINE
from app.inference.ratings.moderated import moderated
from app.inference.ratings.settled import believed
from app.selection.registry import RULES, asking_of
from app.simulation.annotators import Answering, MadeUp, Population, on_steps
from app.simulation.in_memory import InMemory

MOST_ITEMS = 1_000_000
SAMPLE, MOST_SAMPLED = 1_000, 5_000  # items
FEWEST_BEST = 2  # in a sample
MOST_JUDGMENTS = 60  # an item, beyond those that are there
LOOKS = 60  # at how near the goal is, in one run
PEOPLE = 200  # who answer
OTHERS = 10**9  # is added to their numbers, so that they are not those who have answered
WITHOUT_END = 10**6  # judgments
BAND = 2.5, 97.5  # per cent of the runs
LAW = ONLINE["easl"]
AT_FIRST = 2.0  # both parameters of the Beta that true values are drawn from where nothing is known of them


@dataclass
class Likely:
    """Annotators who answer as those before did. truth, noise: (N,), on 0 to 1."""

    truth: Array
    noise: Array
    number: int = PEOPLE

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Scores, (n,)."""
        chosen = [*items]
        return on_steps(self.truth[chosen] + self.noise[chosen] * rng.standard_normal(len(chosen)))


@dataclass(frozen=True)
class Forecast:
    """Of R runs: after how many more judgments each looked, (L,), and how near its goal it was, (R, L), NaN once it was
    reached. needed: judgments from now on until it is, (R,); infinite where it was not in the time.
    """

    looks: Array
    near: Array
    needed: Array

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
    changed = {"best_items": max(1, round(campaign.best_items * share)), "goal_percent": sure}
    return SimpleNamespace(**{**campaign.__dict__, **changed})


def forecast(
    campaign: Any,
    known: Tally,
    like: Population | Tally,
    *,
    runs: int,
    seed: int,
    sample: int | None = None,
    told: Callable[[int], None] = lambda _runs: None,
) -> Forecast:
    """What the goal of a campaign will cost. campaign: its settings as attributes of a namespace. known: what its
    judgments add up to. like: who answers, or the judgments of an earlier campaign, where its own tell nothing yet.
    sample: how many items are simulated, None for all. told: hears after each run how many there were.
    """
    size, drawn = len(known.total), asking_of(campaign).n
    share = min(1.0, (sample or size) / size)
    if share < 1:
        some = np.random.default_rng([seed, size]).choice(size, sample, replace=False)
        campaign, known = of_sample(campaign, share), known.of(np.sort(some))
    at = np.unique(np.linspace(0, -(-len(known.total) * MOST_JUDGMENTS // drawn), LOOKS + 1).astype(np.intp))
    near = np.empty((runs, len(at)))
    for k in range(runs):
        near[k] = run(campaign, known, like, at, np.random.default_rng([seed, k]))
        told(k + 1)
    over = np.isnan(near)
    looks = at * drawn / share
    return Forecast(looks, near, np.where(over.any(axis=1), looks[over.argmax(axis=1)], np.inf))


def run(campaign: Any, known: Tally, like: Population | Tally, at: Integers, rng: np.random.Generator) -> list[float]:
    """How near the goal is after so many HITs, (L,); NaN once it was reached."""
    tally, near = known, list[float]()
    people = those_who_answer(known, like, rng)
    mine = begun(campaign, known, rng)
    hits = mine.answered_by(people)
    for more in np.diff(at, prepend=0).tolist():
        if more:
            new = list(islice(hits, more))
            who = [OTHERS + hit.annotator for hit in new for _ in hit.items]
            items = [item for hit in new for item in hit.items]
            tally = tally.after(items, who, [value for hit in new for value in hit.values])
        found = progress(campaign, moderated(tally), mine.score)
        if found is None or found.reached:
            break
        if campaign.when_reached == RELEASE:
            mine.release(np.isin(np.arange(mine.size), found.settled))
        near.append(found.now)
    return near + [np.nan] * (len(at) - len(near))


def begun(campaign: Any, known: Tally, rng: np.random.Generator) -> InMemory:
    """The campaign as it stands, to go on with: `easl` adds scores to one number and what they lack to the other."""
    size, (high, low) = len(known.total), LAW.family.default_prior
    states = [high + known.total, low + known.judgments - known.total]
    asking = replace(asking_of(campaign), wanted=WITHOUT_END)
    return InMemory(RULES[campaign.rule], LAW, asking, Parameters(), size, rng, (states, known.judgments))


def those_who_answer(known: Tally, like: Population | Tally, rng: np.random.Generator) -> Answering:
    """Annotators, and true values that may be those of the campaign."""
    size = len(known.total)
    if (own := likely(known, rng)) is not None:
        return own
    if isinstance(like, Population):
        return MadeUp(like.people(PEOPLE, rng), rng.beta(AT_FIRST, AT_FIRST, size))
    if (earlier := likely(like, rng)) is None:
        raise Inestimable("The earlier campaign tells too little of its items.", code="too_few_judgments")
    some = rng.integers(len(earlier.truth), size=size)
    return Likely(earlier.truth[some], earlier.noise[some])


def likely(known: Tally, rng: np.random.Generator) -> Likely | None:
    """As what was said tells of items and annotators; None where it tells too little."""
    found = moderated(known)
    if not believed(found):
        return None
    # How far annotators differ is known as well as so many degrees of freedom tell it; the less of the spread of means
    # is theirs, the more is of the items.
    freedom = int(np.maximum(known.annotators - 1, 0).sum())
    drawn = replace(found, standard_error=found.standard_error * np.sqrt(freedom / rng.chisquare(freedom)))
    beliefs = (believed(drawn) or believed(found))[0]
    truth = beliefs.centre + beliefs.error * rng.standard_t(beliefs.freedom)
    noise = drawn.standard_error * np.sqrt(known.judgments)
    return Likely(np.clip(truth, 0, 1), np.where(np.isfinite(noise), noise, np.nanmedian(noise)))
