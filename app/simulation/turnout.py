"""How many annotators a simulated campaign has in all, and how many HITs each of them may still answer.

A campaign may limit the HITs of one person, and may show no item to anybody twice. Then its people can give so many
judgments and no more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.errors import Invalid, plural
from app.inference.ground.arrays import Integers
from app.inference.observations.tally import Tally
from app.selection.registry import asking_of

PEOPLE = 200  # in all, while nobody has answered twice
FEWEST_PEOPLE = 20  # once somebody has
MOST_PEOPLE = 5_000  # beside those who have answered: hardly anybody of more would answer twice
MOST_SAID = 100_000


@dataclass(frozen=True, eq=False)
class Turnout:
    """Who may answer. number: how many they are. there: the numbers of those who have answered before, (J,), who come
    first. may: how many HITs each of all may answer from now on, (number,); None without a limit.
    """

    number: int
    there: Integers
    may: Integers | None

    @property
    def places(self) -> dict[int, int]:
        """Of those who have answered before, by their numbers."""
        return {number: place for place, number in enumerate(self.there.tolist())}


def who_answered(tally: Tally, n: int) -> tuple[Integers, Integers]:
    """The numbers of the annotators who have answered, (J,) in order, and about how many HITs of n items each, (J,)."""
    pairs = tally.pairs
    there, who = np.unique(pairs.numbers // len(tally.judgments), return_inverse=True)
    return there, -(-np.bincount(who, pairs.counts, len(there)).astype(np.intp) // n)


def turnout(campaign: Any, tally: Tally, number: int, *, by_law: bool) -> Turnout:
    """Who may answer a campaign, of so many annotators in all. by_law: whether it matters who they are; else they are
    strangers, unless who has answered may answer less than others.
    """
    there, done = who_answered(tally, asking_of(campaign).n)
    most = campaign.hits_per_annotator
    if not (by_law or most or not campaign.repeat_items):
        there = there[:0]
    number = max(number, len(there))
    if most is None:
        return Turnout(number, there, None)
    left = np.full(number, float(most))
    left[: len(there)] = np.maximum(0.0, most - done)
    # Of a sample of the items, a person's part of the HITs may be less than one: so many people have one.
    may = np.diff(np.floor(left.cumsum() + 1e-6), prepend=0.0).astype(np.intp)
    if by_law:
        return Turnout(number, there, may)
    some = np.flatnonzero(may)
    return Turnout(len(some), there[some[some < len(there)]], may[some])


def seen_by(who: Turnout, tally: Tally) -> dict[int, set[int]]:
    """The items that each of those who have answered has seen, by their places."""
    places, seen = who.places, dict[int, set[int]]()
    annotators, items = np.divmod(tally.pairs.numbers, len(tally.judgments)) if places else (who.there, who.there)
    for annotator, item in zip(annotators.tolist(), items.tolist(), strict=True):
        if annotator in places:
            seen.setdefault(places[annotator], set()).add(item)
    return seen


def in_all(campaign: Any, tally: Tally, said: int | None) -> int:
    """How many annotators a campaign has: as is `said`, or as many as are likely, and enough for its judgments.

    Raises `Invalid` (`too_few_annotators`) where so many cannot give the judgments that it wants.
    """
    done = who_answered(tally, asking_of(campaign).n)[1]
    least, why = fewest(campaign, tally)
    if said is None:
        return max(least, people_in_all(done) if (done > 1).any() else max(PEOPLE, people_in_all(done)))
    if said < least:
        words = f"Too few annotators: {why}. Say {least:,} or more in all, or nothing."
        raise Invalid(words, code="too_few_annotators")
    return said


def whence(campaign: Any, tally: Tally, number: int, said: int | None) -> str:
    """Where the number of annotators in all comes from, as a sentence."""
    there = len(who_answered(tally, asking_of(campaign).n)[0])
    if said is not None:
        return f"This is for {plural(number, 'annotator')} in all."
    so_far = f"{there:,} {'has' if there == 1 else 'have'} answered so far" if there else "nobody has answered yet"
    return f"{plural(number, 'annotator')} in all are supposed; {so_far}. If you know how many come, say it."


def fewest(campaign: Any, tally: Tally) -> tuple[int, str]:
    """The fewest annotators who can give every item the judgments that it wants, and why no fewer, in words."""
    asking = asking_of(campaign)
    there, done = who_answered(tally, asking.n)
    missing = np.maximum(0, asking.wanted - tally.judgments)
    found = [(max(1, len(there)), f"{len(there):,} have answered")]
    if not campaign.repeat_items:
        apart = int((tally.annotators + missing).max())
        found.append((apart, f"of an item {plural(apart, 'judgment')} by different people are wanted"))
    if most := campaign.hits_per_annotator:
        hits = -(-int(missing.sum()) // asking.n)
        more = max(0, hits - int(np.maximum(0, most - done).sum()))
        wanted = f"{plural(hits, 'HIT')} are wanted, and each of them may answer {most:,}"
        found.append((len(there) + -(-more // most), wanted))
    return max(found)


def people_in_all(often: Integers) -> int:
    """How many people answer, if those who did answered so many HITs, (J,), by how many did so once and twice (Chao
    1984, "Nonparametric estimation of the number of classes in a population", in the form without bias): the fewest
    that are likely, but `FEWEST_PEOPLE` or more. Where each answered once that grows with the square of their number,
    so `MOST_PEOPLE` more at most.
    """
    once, twice = np.count_nonzero(often == 1), np.count_nonzero(often == 2)
    return max(FEWEST_PEOPLE, len(often) + min(MOST_PEOPLE, round(once * (once - 1) / (2 * (twice + 1)))))
