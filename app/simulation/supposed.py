"""Whom simulated campaigns ask: annotators, and true values of items, as what was said tells of both.

By plain means annotators are alike, and differ on an item as far as real ones did. Where a law that learns of
annotators measures the goal, those who have answered go on, among others like them: as strict as the law takes them
for, some of them at random (`ratings.who_looks`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.goals.evidence import GoalEvidence
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.said import Said
from app.inference.observations.tally import Tally
from app.inference.online.law import Beliefs, Hit, Law, Parameters
from app.inference.ratings import who_looks
from app.inference.ratings.annotator_evidence import Judged
from app.inference.ratings.moderated import Moderated, moderated
from app.inference.ratings.settled import believed
from app.inference.ratings.who_looks import MADE_UP
from app.simulation.annotators import Answering, Habits, MadeUp, Population, on_steps

AT_FIRST = 2.0  # both parameters of the Beta that true values are drawn from where nothing is known of them

Supposing = Callable[[np.random.Generator], Answering]


@dataclass
class Likely:
    """Annotators who answer as those before did. truth, noise: (N,), on 0 to 1."""

    truth: Array
    noise: Array
    number: int

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Scores, (n,)."""
        chosen = [*items]
        return on_steps(self.truth[chosen] + self.noise[chosen] * rng.standard_normal(len(chosen)))


@dataclass(frozen=True, eq=False)
class Acquainted:
    """What a law has learned. known: of the N items. at_random, bias: of the J annotators who have answered, (J,) each,
    the probability that they do not look, and how much higher they score. noise: standard deviation of answers of who
    looks.
    """

    known: Moderated
    at_random: Array
    bias: Array
    noise: float

    def people(self, rng: np.random.Generator, truth: Array, factor: float, strangers: int, *, go_on: bool) -> MadeUp:
        """So many others like those who have answered; first these, by their places, if they `go_on`. factor: by what
        their noise is multiplied.
        """
        known = len(self.bias)
        there = known if go_on else 0
        who = np.append(np.arange(there), rng.integers(known, size=strangers))
        share = rng.beta(*(np.array([self.at_random.sum(), (1 - self.at_random).sum()]) + MADE_UP))
        chances = np.where(np.arange(len(who)) < there, self.at_random[who], share)
        without_looking = rng.random(len(who)) < chances
        habits = [
            Habits(bias=bias, noise=factor * self.noise, careless="random" if careless else None)
            for bias, careless in zip(self.bias[who].tolist(), without_looking.tolist(), strict=True)
        ]
        return MadeUp(habits, truth)


def own_priors(law: Law, size: int) -> Array:
    """What a law's posteriors of N items begin with where nobody chose another prior, (numbers, N)."""
    return np.repeat(np.array(law.family.default_prior)[:, None], size, axis=1)


@dataclass(frozen=True, eq=False)
class Replay:
    """What a law learned from HITs as they may have been. there: the numbers of annotators who have answered, (J,),
    whose places in it are theirs in `hits` and `beliefs`.
    """

    hits: Sequence[Hit]
    beliefs: Beliefs
    there: Integers


def replayed(known: GoalEvidence, n: int, priors: Array | None = None) -> Replay:
    """By the law for which something is known. n: items of a HIT. priors: what its posteriors began with, (numbers, N);
    None for its own.
    """
    size = len(known.tally.total)
    said = known.said or Said.nothing(size)
    there, who = np.unique(said.annotators, return_inverse=True)
    hits = hits_of(replace(said, annotators=who), n)
    beliefs = known.law.begin([*(own_priors(known.law, size) if priors is None else priors)], Parameters())
    beliefs.take(hits)
    return Replay(hits, beliefs, there)


def hits_of(said: Said, n: int) -> list[Hit]:
    """Judgments in a row by one annotator, of no item twice, and of n at most, as HITs."""
    hits: list[Hit] = []
    for item, who, value in zip(said.items.tolist(), said.annotators.tolist(), said.scores.tolist(), strict=True):
        last = hits[-1] if hits else None
        if last and last.annotator == who and len(last.items) < n and item not in last.items:
            hits[-1] = Hit(who, [*last.items, item], [*last.values, value])
        else:
            hits.append(Hit(who, [item], [value]))
    return hits


def acquainted(known: GoalEvidence, replay: Replay) -> Acquainted | None:
    """None where too little was said."""
    said, fitted, learned = known.said, known.fitted, replay.beliefs.kept()
    if said is None or fitted is None or learned.campaign is None or not believed(fitted):
        return None
    told = known.law.described(learned.annotators, learned.campaign)
    bias = np.nan_to_num([told[place].bias for place in range(len(told))])
    who = np.searchsorted(replay.there, said.annotators)
    # Biases stay in the noise: what is known of each is too little to take it out.
    found = who_looks.fit(Judged.of(said.items, who, said.scores, said.n_items, len(bias)))
    return Acquainted(fitted, found.at_random, bias, found.noise)


def by_law(known: Tally, own: Acquainted | None, like: Population | GoalEvidence, n: int, people: int) -> Supposing:
    """So many `people` who answer, drawn anew for each run: a campaign's own annotators, and others like them; where it
    tells too little, people like those of an earlier one or as is said. n: items of a HIT.
    """
    if own is not None:
        more = people - len(own.bias)
        return lambda rng: own.people(rng, *truths(own.known, rng), more, go_on=True)
    earlier = None if isinstance(like, Population) else acquainted(like, replayed(like, n))
    if earlier is None:
        return by_means(known, like, people)

    def like_earlier(rng: np.random.Generator) -> Answering:
        truth, factor = truths(earlier.known, rng)
        return earlier.people(rng, rng.choice(truth, len(known.total)), factor, people, go_on=False)

    return like_earlier


def by_means(known: Tally, like: Population | GoalEvidence, people: int) -> Supposing:
    """The same, of annotators who are alike, or as is said. What it returns raises `Inestimable`
    (`too_few_judgments`).
    """
    size = len(known.total)

    def those_who_answer(rng: np.random.Generator) -> Answering:
        if (own := likely(known, rng, people)) is not None:
            return own
        if isinstance(like, Population):
            return MadeUp(like.people(people, rng), rng.beta(AT_FIRST, AT_FIRST, size))
        if (earlier := likely(like.tally, rng, people)) is None:
            raise Inestimable("The earlier campaign tells too little of its items.", code="too_few_judgments")
        some = rng.integers(len(earlier.truth), size=size)
        return Likely(earlier.truth[some], earlier.noise[some], people)

    return those_who_answer


def likely(known: Tally, rng: np.random.Generator, people: int) -> Likely | None:
    """So many people, as what was said tells of items and annotators; None where it tells too little."""
    found = moderated(known)
    if not believed(found):
        return None
    truth, factor = truths(found, rng)
    noise = found.standard_error * factor * np.sqrt(known.judgments)
    return Likely(truth, np.where(np.isfinite(noise), noise, np.nanmedian(noise)), people)


def truths(known: Moderated, rng: np.random.Generator) -> tuple[Array, float]:
    """True values that may be those of the items, (N,), and how many times as large errors may be as they seem: how far
    annotators differ is known as well as so many degrees of freedom tell it, and the less of the spread of scores is
    theirs, the more is of the items. known: of which something is `believed`.
    """
    factor = float(np.sqrt(known.together / rng.chisquare(known.together)))
    drawn = replace(known, standard_error=known.standard_error * factor)
    beliefs = (believed(drawn) or believed(known))[0]
    truth = beliefs.centre + beliefs.error * rng.standard_t(beliefs.freedom)
    return np.clip(truth, 0, 1), factor
