"""Rule for comparisons: ask for the comparison that is expected to tell the most about all scores.

The information of a comparison (`pair_information`) follows from the joint posterior of all scores given every answer
(`inference.preferences.joint_thurstone`), whatever the campaign's update law is. Until each item has
`MIN_COMPARISONS_PER_ITEM` comparisons the rule is `scores`: so few comparisons do not tell which pairs tell more.

Above `MAX_JOINT_ITEMS` items their covariances would not fit in memory. There the item with the fewest judgments leads,
and its companions are the most informative ones of a few that match it well, as if scores were independent, with the
means and variances of the campaign's law.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.inference.observations.comparisons import pair_outcome_columns_from_hits
from app.selection.buckets import Pick
from app.selection.even_rule import (
    FEWEST_JUDGMENTS,
    EvenRule,
    LeastJudgedCompanions,
    LeastJudgedLeaders,
    make_least_judged_leaders_and_companions,
)
from app.selection.index import ItemNumbers, SelectionIndex
from app.selection.item_sets import ItemSet
from app.selection.open_items import OpenItems
from app.selection.pair_information import (
    Floats,
    comparison_information,
    items_that_add_most_information,
    most_informative_pair_of_items,
)
from app.selection.rule import ItemValues, SelectionSettings

if TYPE_CHECKING:  # its module is slow to import, and most processes rank no pairs
    from app.inference.preferences.joint_thurstone import JointScores

MOST_INFORMATIVE = "most_informative"
MIN_COMPARISONS_PER_ITEM = 5
MAX_JOINT_ITEMS = 1_000
MAX_LEARNED_AT_ONCE = 100  # comparisons, a millisecond each; after more, the posterior is fitted again in a thread
REFIT_GROWTH = 1.25  # times as many comparisons as at the last fit, until the next one
CANDIDATES_OF_LARGE_CAMPAIGNS = 16


Comparison = tuple[int, int, int]
"""First item, second item and outcome, as in `JointScores.learn_comparison`."""


class ComparisonLog:
    """All comparisons of a campaign of N items, in order, and the joint posterior that follows from them.

    The posterior is fitted to the first comparisons, as many as a fixed series of numbers says, and updated by each
    later one. So it depends on the comparisons alone, not on when a process has read them.

    Attributes:
        joint: The posterior; None while there are too few comparisons, and before the first fit.
        hits: Numbers of the HITs whose comparisons were added.

    """

    def __init__(self, item_count: int) -> None:
        self.item_count = item_count
        self.joint: JointScores | None = None
        self.hits: set[int] = set()
        self._comparisons: list[Comparison] = []
        self._fits_begun_to = 0

    def add_hits(
        self, hits: npt.ArrayLike, items: npt.ArrayLike, scores: npt.ArrayLike, *, tie_margin: float, ties: bool
    ) -> None:
        """Add the comparisons of every two items of each HIT, unless that HIT was added before.

        Arguments as `pair_outcome_columns_from_hits` has them.
        """
        numbers, items, scores = np.asarray(hits), np.asarray(items), np.asarray(scores)
        is_new = np.array([number not in self.hits for number in numbers.tolist()], np.bool_)
        self.hits.update(numbers[is_new].tolist())
        first, second, outcomes, _ = pair_outcome_columns_from_hits(
            numbers[is_new], items[is_new], scores[is_new], tie_margin=tie_margin, ties=ties
        )
        comparisons = [*zip(first.tolist(), second.tolist(), outcomes.tolist(), strict=True)]
        self._comparisons += comparisons
        if len(comparisons) > MAX_LEARNED_AT_ONCE:
            self._fits_begun_to = 0
        elif self.joint is not None:
            for comparison in comparisons:
                self.joint.learn_comparison(*comparison)

    def begin_due_fit_and_return_function_or_none(self) -> "Callable[[], tuple[JointScores, int]] | None":
        """Return the fit that is due, or None. It may run in a thread; pass its result to
        `replace_posterior_by_fitted_one`, or call `forget_begun_fit` if there is none.
        """
        size = self._comparison_count_of_due_fit()
        if size == self._fits_begun_to:
            return None
        self._fits_begun_to = size
        return partial(fit_posterior_and_learn_later_comparisons, self._comparisons.copy(), size, self.item_count)

    def forget_begun_fit(self) -> None:
        """Let the fit that has begun become due again, since it failed or its result was lost."""
        self._fits_begun_to = 0

    def replace_posterior_by_fitted_one(self, joint: "JointScores", learned_count: int) -> None:
        """Take a fitted posterior that has learned the first `learned_count` comparisons."""
        for comparison in self._comparisons[learned_count:]:
            joint.learn_comparison(*comparison)
        self.joint = joint

    def _comparison_count_of_due_fit(self) -> int:
        """Return the number of comparisons that the posterior is fitted to; 0 while there are too few."""
        size, due = self.item_count * MIN_COMPARISONS_PER_ITEM / 2, 0
        while size <= len(self._comparisons):
            size, due = size * REFIT_GROWTH, int(size)
        return due


def fit_posterior_and_learn_later_comparisons(
    comparisons: Sequence[Comparison], size: int, item_count: int
) -> "tuple[JointScores, int]":
    """Return the posterior fitted to the first `size` comparisons and updated by the others, and their number."""
    from app.inference.preferences.joint_thurstone import fit_joint_scores

    joint = fit_joint_scores(*np.array(comparisons[:size], np.intp).T, item_count=item_count)
    for comparison in comparisons[size:]:
        joint.learn_comparison(*comparison)
    return joint, len(comparisons)


class MostInformativeLeaders(LeastJudgedLeaders):
    """Pool in which one of the two items whose comparison tells the most leads; without a posterior as in `scores`.

    If every HIT shows certain items, such as a baseline, the item leads whose comparisons with them tell the most.

    Attributes:
        always_shown: Numbers of the items that every HIT shows.
        planned_companion: The other item of the last pair, by its leader.

    """

    def __init__(
        self, items: ItemNumbers, open_items: OpenItems, log: ComparisonLog, always_shown: tuple[int, ...]
    ) -> None:
        super().__init__(items, open_items.judgments)
        self._log, self._open, self.always_shown = log, {*items.tolist()}, always_shown
        self.planned_companion: dict[int, int] = {}

    def add(self, item: int) -> None:
        """Allow an item to lead."""
        super().add(item)
        self._open.add(item)

    def remove(self, item: int) -> None:
        """Stop an item from leading."""
        super().remove(item)
        self._open.remove(item)

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return an item of the most informative pair that is not barred, None if all are barred."""
        self.planned_companion.clear()
        joint = self._log.joint
        if joint is None:
            return super().draw_leader_or_none(barred, rng)
        free = np.array(sorted(self._open - barred), np.intp)
        if len(free) < 2 or self.always_shown:
            information_with = partial(comparison_information_from_joint_posterior, joint, free)
            first = items_that_add_most_information(information_with, self.always_shown, free, 1)
            return Pick(first[0], 1.0) if first else None
        leader, companion = most_informative_pair_of_items(joint, free)
        self.planned_companion[leader] = companion
        return Pick(leader, 1.0)

    def iterate_free_leaders_by_gain(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """
        while (pick := self.draw_leader_or_none(barred, rng)) is not None:
            yield pick.item


class MostInformativeCompanions(LeastJudgedCompanions):
    """Pool of companions whose comparisons with the other items of the HIT tell the most; at first as in `scores`."""

    def __init__(
        self,
        items: ItemNumbers,
        open_items: OpenItems,
        gamma: float,
        leaders: MostInformativeLeaders,
        log: ComparisonLog,
    ) -> None:
        super().__init__(items, open_items, gamma)
        self._leaders, self._log, self._open = leaders, log, {*items.tolist()}

    def add(self, item: int) -> None:
        """Allow an item to be drawn."""
        super().add(item)
        self._open.add(item)

    def remove(self, item: int) -> None:
        """Stop an item from being drawn."""
        super().remove(item)
        self._open.remove(item)

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]:
        """Draw the planned companion of the leader, then the most informative others."""
        joint = self._log.joint
        if joint is None:
            return super().draw_companions(leader, count, barred, rng, chosen_items=chosen_items)
        before = [*dict.fromkeys((*self._leaders.always_shown, leader, *chosen_items))]
        free = self._open - barred - {*before}
        planned = self._leaders.planned_companion.pop(leader, leader)
        drawn = [planned] if planned in free and count else []
        candidates = np.array(sorted(free.difference(drawn)), np.intp)
        information_with = partial(comparison_information_from_joint_posterior, joint, candidates)
        return drawn + items_that_add_most_information(
            information_with, [*before, *drawn], candidates, count - len(drawn)
        )


class InformativeCompanionsOfLargeCampaigns(LeastJudgedCompanions):
    """Pool of companions that tell the most about their leader, of a few that match it well."""

    def __init__(self, items: ItemNumbers, open_items: OpenItems, settings: SelectionSettings) -> None:
        super().__init__(items, open_items, settings.gamma)
        self._comparisons_per_judgment = settings.items_per_hit - 1

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]:
        """Draw companions as in `scores`, and keep the most informative ones."""
        comparisons = self._known.judgments.item(leader) * self._comparisons_per_judgment
        if comparisons < MIN_COMPARISONS_PER_ITEM:
            return super().draw_companions(leader, count, barred, rng, chosen_items=chosen_items)
        candidates = super().draw_companions(
            leader, max(count, CANDIDATES_OF_LARGE_CAMPAIGNS), barred, rng, chosen_items=chosen_items
        )
        numbers = np.array(candidates, np.intp)
        information_with = partial(comparison_information_of_independent_scores, self._known, self._gamma, numbers)
        return items_that_add_most_information(
            information_with, [*dict.fromkeys((leader, *chosen_items))], numbers, count
        )


def comparison_information_from_joint_posterior(joint: "JointScores", items: ItemNumbers, other_item: int) -> Floats:
    """Return the information of comparing each item, (n,), with another one."""
    return comparison_information(
        joint.mean[items] - joint.mean[other_item], joint.difference_variance[other_item, items]
    )


def comparison_information_of_independent_scores(
    values: ItemValues, gamma: float, items: ItemNumbers, other_item: int
) -> Floats:
    """Return the information of comparing each item, (n,), with another one, as if scores were independent."""
    noise = 2 * gamma * gamma
    distance = (values.score[items] - values.score[other_item]) / np.sqrt(noise)
    return comparison_information(distance, (values.variance[items] + values.variance[other_item]) / noise)


class PairsIndex(SelectionIndex):
    """Index that also learns comparisons.

    Attributes:
        log: The comparisons; None in a large campaign, which does not need them.

    """

    def __init__(self, values: ItemValues, settings: SelectionSettings) -> None:
        count = len(values.score)
        self.log = ComparisonLog(count) if count <= MAX_JOINT_ITEMS else None
        super().__init__(values, settings, make_pools=partial(make_informative_leaders_and_companions, self.log))

    def learn_comparisons_of_hit(
        self, items: Sequence[int], scores: Sequence[float], *, tie_margin: float, ties: bool
    ) -> None:
        """Add the comparisons of a HIT, and fit the posterior at once if that is due."""
        if self.log is not None:
            self.learn_comparisons_of_hits(
                [len(self.log.hits)] * len(items), items, scores, tie_margin=tie_margin, ties=ties
            )

    def learn_comparisons_of_hits(
        self, hits: npt.ArrayLike, items: npt.ArrayLike, scores: npt.ArrayLike, *, tie_margin: float, ties: bool
    ) -> None:
        """Add the comparisons of several HITs, numbered from 0, and fit the posterior at once if that is due."""
        if self.log is not None:
            self.log.add_hits(hits, items, scores, tie_margin=tie_margin, ties=ties)
            if (fit := self.log.begin_due_fit_and_return_function_or_none()) is not None:
                self.log.replace_posterior_by_fitted_one(*fit())

    @property
    def reason(self) -> str:
        """Reason why leaders lead: few judgments, until there is a posterior."""
        return FEWEST_JUDGMENTS if self.log is None or self.log.joint is None else MOST_INFORMATIVE


def make_informative_leaders_and_companions(
    log: ComparisonLog | None, settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[LeastJudgedLeaders, LeastJudgedCompanions]:
    """Make the pools of a campaign with this log of comparisons; without one those of a large campaign."""
    if log is None:
        leaders, _ = make_least_judged_leaders_and_companions(settings, items, open_items)
        return leaders, InformativeCompanionsOfLargeCampaigns(items, open_items, settings)
    informative = MostInformativeLeaders(items, open_items, log, settings.never_drawn)
    return informative, MostInformativeCompanions(items, open_items, settings.gamma, informative, log)


@dataclass(frozen=True, slots=True)
class PairsRule(EvenRule):
    """A rule that reads comparisons, one HIT at a time."""

    reads_comparisons: bool = True

    def make_selection_index(self, values: ItemValues, settings: SelectionSettings) -> PairsIndex:
        """Return the index for drawing one HIT at a time; it has no comparisons yet."""
        return PairsIndex(values, settings)


PAIRS_RULE = PairsRule(
    "pairs",
    "Pairs: ask for the comparisons that are expected to be most informative",
    needs_ordered_scores=True,
    reason=FEWEST_JUDGMENTS,
    make_pools=make_least_judged_leaders_and_companions,
)
