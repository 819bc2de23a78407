"""Forecast of a campaign's goal: simulated campaigns continue from the judgments so far until they reach the goal.

Each run draws true values and annotators as far as they are known (`crowd_model`), and asks by the campaign's rule.
Where the campaign's law measures its goal (`evidence`), that law learns and measures here too, up to
`MAX_ITEMS_MEASURED_BY_LAW` items; else scores are the means that `easl` learns, whatever the campaign's law is. Pure.

For many items a random sample is simulated, and the judgments that it needs are scaled up. Narrow intervals and halves
that agree mean the same there; the best items of a sample are a share of all best items; and a probability that holds
for all N items holds for M of them with the power M / N, as if items were settled independently. `python -m
benchmarks.forecasts_of_samples` measures how far such a forecast is from one of all items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.campaigns.summaries import CampaignWithProgress
from app.designs.campaign import Campaign
from app.goals.estimates import GoalEvidence
from app.goals.progress import goal_progress_or_none
from app.goals.settings import RELEASE_ITEMS
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.observations.tally import Tally
from app.inference.online.law import LawBeliefs, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.planning.crowd_model import (
    AnnotatorSource,
    default_priors_of_law,
    fit_crowd_or_none,
    make_source_of_annotators_by_law,
    make_source_of_identical_annotators,
    replay_earlier_judgments_with_law,
)
from app.planning.forecast_defaults import DEFAULT_ANNOTATORS_IN_TOTAL
from app.planning.participation import Participation, items_seen_by_annotator_place, participation_with_hits_left
from app.selection.pairs_rule import PairsIndex
from app.selection.registry import SELECTION_RULES
from app.selection.rule import Rule
from app.simulation.annotators import Population
from app.simulation.campaign import SimulatedCampaign

MAX_FORECAST_ITEMS = 1_000_000
DEFAULT_SAMPLE_ITEMS, MAX_SAMPLE_ITEMS = 1_000, 5_000
MAX_ITEMS_MEASURED_BY_LAW = 300  # a HIT takes such a law ten times as long
MAX_ITEMS_ASKED_BY_COMPARISONS = 300  # the joint posterior of more items makes 20 simulated campaigns take minutes
MIN_BEST_IN_SAMPLE = 2
MAX_NEW_JUDGMENTS_PER_ITEM, MAX_NEW_JUDGMENTS_PER_SYSTEM = 60, 1_000
GOAL_CHECKS_PER_RUN, GOAL_CHECKS_PER_RUN_BY_LAW = 60, 40
NEW_ANNOTATOR_OFFSET = 10**9  # keeps the numbers of new annotators apart from those who have answered
UNLIMITED_JUDGMENTS = 10**6
# With 20 runs these percentiles are the lowest and the highest run, a range that holds 19 of 21 new runs.
BAND_PERCENTILES = 2.5, 97.5
MEANS_LAW = ONLINE_LAWS["easl"]


@dataclass(frozen=True)
class GoalForecast:
    """Result of R runs.

    Attributes:
        checkpoints: Further judgments at each check of the goal, (L,).
        progress_values: Progress towards the goal, (R, L); NaN once it is reached.
        judgments_needed: Judgments from now on until the goal is reached, (R,); infinite where it was not.
        ran_out: True where annotators had answered all that they may before the goal was reached, (R,).

    """

    checkpoints: Array
    progress_values: Array
    judgments_needed: Array
    ran_out: Mask

    @property
    def median_and_band_of_judgments_needed(self) -> tuple[float, float, float]:
        """Judgments needed: the median of the runs, and the ends of the band that holds nine of ten."""
        low, middle, high = np.percentile(
            self.judgments_needed, (BAND_PERCENTILES[0], 50, BAND_PERCENTILES[1]), method="nearest"
        )
        return float(middle), float(low), float(high)

    @property
    def share_of_runs_at_goal_at_each_check(self) -> Array:
        """Share of the runs that have reached the goal at each check, (L,)."""
        share: Array = (self.judgments_needed[:, None] <= self.checkpoints).mean(axis=0)
        return share


def count_simulated_items(campaign: CampaignWithProgress) -> int:
    """Return how many items of a campaign are simulated."""
    has_best_goal = campaign.goal == "best" and campaign.best_items < campaign.item_count
    enough = -(-MIN_BEST_IN_SAMPLE * campaign.item_count // max(1, campaign.best_items)) if has_best_goal else 0
    return int(min(campaign.item_count, MAX_SAMPLE_ITEMS, max(DEFAULT_SAMPLE_ITEMS, enough)))


def campaign_settings_scaled_to_share_of_items(campaign: Campaign, share: float) -> Campaign:
    """Return the campaign's settings for this share of its items, 0 to 1, with the corresponding part of the goal."""
    goal_percent = (
        campaign.goal_percent if campaign.goal == "intervals" else 100 * (campaign.goal_percent / 100) ** share
    )
    hit_limit = campaign.hits_per_annotator
    return replace(
        campaign,
        best_items=max(1, round(campaign.best_items * share)),
        goal_percent=goal_percent,
        hits_per_annotator=hit_limit and hit_limit * share,
    )


class PastComparisons(NamedTuple):
    """Judgments of a campaign whose rule reads which items won within each HIT, (J,) each, in order."""

    hits: Integers
    items: Integers
    scores: Array

    def select_items(self, items: Integers) -> "PastComparisons":
        """Return the judgments of some items, given by ascending numbers, and renumber them from 0."""
        kept = np.isin(self.items, items)
        return PastComparisons(self.hits[kept], np.searchsorted(items, self.items[kept]), self.scores[kept])


NO_COMPARISONS = PastComparisons(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True, eq=False)
class ForecastStart:
    """Starting point of all runs of a forecast.

    Attributes:
        campaign: Settings of the campaign.
        evidence: Its judgments.
        annotator_source: Source of the annotators of each run.
        participation: Who the annotators are; those who have answered come first.
        seen_items: Items that each of these has seen, by place.
        comparisons: Judgments that the campaign's rule reads.

    """

    campaign: Campaign
    evidence: GoalEvidence
    beliefs: LawBeliefs
    annotator_source: AnnotatorSource
    participation: Participation
    seen_items: Mapping[int, set[int]]
    comparisons: PastComparisons = NO_COMPARISONS

    def make_simulated_campaign_from_start(self, rng: np.random.Generator) -> SimulatedCampaign:
        """Return a simulated campaign that continues from the present state."""
        item_count, judgments = len(self.evidence.tally.total), self.evidence.tally.judgments
        asking = replace(self.campaign.selection_settings, judgments_per_item=UNLIMITED_JUDGMENTS)
        initial_state = self.beliefs.copy(), judgments
        repeats_items, rule = self.campaign.repeat_items, selection_rule_of_forecast(self.campaign, item_count)
        parameters = self.campaign.goal_criterion.law_parameters if rule.reads_comparisons else LawParameters()
        campaign = SimulatedCampaign(
            rule,
            self.evidence.law,
            asking,
            parameters,
            item_count,
            rng,
            initial_state,
            repeats_items,
        )
        if isinstance(campaign.index, PairsIndex):
            campaign.index.learn_comparisons_of_hits(
                *self.comparisons, tie_margin=parameters.tie_margin, ties=parameters.ties
            )
        campaign.seen |= {place: set(items) for place, items in self.seen_items.items()}
        return campaign

    def annotator_number_at_place(self, place: int) -> int:
        known_annotators = self.participation.known_annotators
        return int(known_annotators[place]) if place < len(known_annotators) else NEW_ANNOTATOR_OFFSET + place


def selection_rule_of_forecast(campaign: Campaign, item_count: int) -> Rule:
    """Return the rule that simulated campaigns ask by: the campaign's own, or `scores` if it is too slow.

    In large campaigns, rules that read comparisons are too slow; `scores` needs as many judgments or more.
    """
    return SELECTION_RULES["scores"] if is_forecast_asked_evenly(campaign, item_count) else campaign.rule


def is_forecast_asked_evenly(campaign: Campaign, item_count: int) -> bool:
    """Return whether simulated campaigns ask evenly although the campaign does not."""
    return campaign.rule.reads_comparisons and item_count > MAX_ITEMS_ASKED_BY_COMPARISONS


def is_forecast_measured_by_law(campaign: Campaign, evidence: GoalEvidence) -> bool:
    """Return whether a forecast measures the goal by the law, for campaigns that do."""
    return evidence.is_measured_by_law(campaign) and len(evidence.tally.total) <= MAX_ITEMS_MEASURED_BY_LAW


def build_forecast_start(
    campaign: Campaign,
    evidence: GoalEvidence,
    fallback_crowd: Population | GoalEvidence,
    annotator_count: int = DEFAULT_ANNOTATORS_IN_TOTAL,
    priors: Array | None = None,
) -> ForecastStart:
    """Prepare a forecast by the law or by plain means.

    Args:
        campaign: Settings of the campaign.
        evidence: Its judgments.
        fallback_crowd: A population, or the evidence of an earlier campaign.
        annotator_count: Number of annotators in all.
        priors: Priors of the posteriors, (numbers, N); None for the law's own.

    """
    by_law_estimates = is_forecast_measured_by_law(campaign, evidence)
    participation = participation_with_hits_left(
        campaign, evidence.tally, annotator_count, identities_matter=by_law_estimates
    )
    seen_items = items_seen_by_annotator_place(participation, evidence.tally)
    if not by_law_estimates:
        annotator_source = make_source_of_identical_annotators(
            evidence.tally, fallback_crowd, participation.annotator_count
        )
        return ForecastStart(
            campaign,
            GoalEvidence(MEANS_LAW, evidence.tally, None),
            easl_beliefs_from_judgment_tally(evidence.tally, priors),
            annotator_source,
            participation,
            seen_items,
        )
    n = campaign.selection_settings.items_per_hit
    law_replay = replay_earlier_judgments_with_law(evidence, n, priors)
    annotator_source = make_source_of_annotators_by_law(
        evidence.tally, fit_crowd_or_none(evidence, law_replay), fallback_crowd, n, participation.annotator_count
    )
    return ForecastStart(campaign, evidence, law_replay.beliefs, annotator_source, participation, seen_items)


def easl_beliefs_from_judgment_tally(tally: Tally, priors: Array | None) -> LawBeliefs:
    """Return the beliefs of `easl`, which adds scores to one number and their complements to the other.

    Args:
        tally: Judgments of the campaign.
        priors: Priors of the posteriors, (2, N); None for the law's own.

    """
    high, low = default_priors_of_law(MEANS_LAW, len(tally.total)) if priors is None else priors
    return MEANS_LAW.initial_beliefs([high + tally.total, low + tally.judgments - tally.total], LawParameters())


def forecast_goal(
    campaign: Campaign,
    evidence: GoalEvidence,
    fallback_crowd: Population | GoalEvidence,
    *,
    runs: int,
    seed: int,
    annotator_count: int = DEFAULT_ANNOTATORS_IN_TOTAL,
    priors: Array | None = None,
    sample: int | None = None,
    comparisons: PastComparisons = NO_COMPARISONS,
    on_run: Callable[[int], None] = lambda _runs: None,
) -> GoalForecast:
    """Forecast what the goal of a campaign will cost.

    Args:
        campaign: The campaign.
        evidence: Judgments of the campaign.
        fallback_crowd: A population, or the evidence of an earlier campaign, for a campaign with too few answers of
            its own.
        runs: Number of runs.
        seed: Seed of the runs.
        annotator_count: Number of annotators in all.
        priors: Priors of the posteriors, (numbers, N); None for the law's own.
        sample: How many items are simulated; None for all.
        comparisons: The judgments again, with their HITs, for a rule that reads comparisons.
        on_run: Called with the number of runs after each run.

    """
    item_count, items_per_hit = len(evidence.tally.total), campaign.selection_settings.items_per_hit
    share = min(1.0, (sample or item_count) / item_count)
    if share < 1:
        sampled_items = np.sort(np.random.default_rng([seed, item_count]).choice(item_count, sample, replace=False))
        campaign, evidence = (
            campaign_settings_scaled_to_share_of_items(campaign, share),
            GoalEvidence(MEANS_LAW, evidence.tally.select_items(sampled_items), None),
        )
        priors = None if priors is None else priors[:, sampled_items]
        comparisons = comparisons.select_items(sampled_items)
    forecast_start = replace(
        build_forecast_start(campaign, evidence, fallback_crowd, annotator_count, priors), comparisons=comparisons
    )
    checkpoints = hit_count_before_each_goal_check(
        -(-len(evidence.tally.total) * most_new_judgments_per_item(campaign) // items_per_hit),
        is_costly=forecast_start.evidence.judgments is not None,
    )
    progress_values, ran_out = np.empty((runs, len(checkpoints))), np.zeros(runs, bool)
    for k in range(runs):
        progress_values[k], ran_out[k] = simulate_goal_progress_and_exhaustion(
            forecast_start, checkpoints, np.random.default_rng([seed, k])
        )
        on_run(k + 1)
    is_reached = np.isnan(progress_values)
    judgments_at_checkpoints = checkpoints * items_per_hit / share
    needed = np.where(is_reached.any(axis=1), judgments_at_checkpoints[is_reached.argmax(axis=1)], np.inf)
    return GoalForecast(judgments_at_checkpoints, progress_values, needed, ran_out)


def most_new_judgments_per_item(campaign: Campaign) -> int:
    """Return after how many further judgments of each item a run ends, the goal reached or not.

    Systems are few and judged on many segments: their runs go on to twice the judgments that the campaign asks for.
    """
    if not campaign.segment_count:
        return MAX_NEW_JUDGMENTS_PER_ITEM
    return max(MAX_NEW_JUDGMENTS_PER_ITEM, min(2 * campaign.judgments_per_item, MAX_NEW_JUDGMENTS_PER_SYSTEM))


def hit_count_before_each_goal_check(max_hits: int, *, is_costly: bool) -> Integers:
    """Return after how many HITs the goal is checked, (L,), the last time after `max_hits`.

    If checks are costly, they get rarer later, when they matter less.
    """
    evenly = np.linspace(0, max_hits, GOAL_CHECKS_PER_RUN + 1).astype(np.intp)
    kept = np.append(0, np.geomspace(1, GOAL_CHECKS_PER_RUN, GOAL_CHECKS_PER_RUN_BY_LAW).round().astype(np.intp))
    return np.unique(evenly[kept] if is_costly else evenly)


def simulate_goal_progress_and_exhaustion(
    forecast_start: ForecastStart, checkpoints: Integers, rng: np.random.Generator
) -> tuple[list[float], bool]:
    """Return the progress at each checkpoint, (L,), NaN once the goal is reached, and whether annotators ran out
    before.
    """
    evidence, progress_values, hits_left = (
        forecast_start.evidence,
        list[float](),
        forecast_start.participation.hits_left,
    )
    annotators = forecast_start.annotator_source(rng)
    campaign = forecast_start.make_simulated_campaign_from_start(rng)
    hits = campaign.iterate_hits_while_answering_them(annotators, None if hits_left is None else hits_left.tolist())
    for hit_count in np.diff(checkpoints, prepend=0).tolist():
        new_hits = list(islice(hits, hit_count))
        if new_hits:
            annotator_numbers = [
                forecast_start.annotator_number_at_place(hit.annotator) for hit in new_hits for _ in hit.items
            ]
            items = [item for hit in new_hits for item in hit.items]
            evidence = evidence.with_judgments_added(
                items, annotator_numbers, [value for hit in new_hits for value in hit.values]
            )
        goal_estimates = evidence.goal_estimates(forecast_start.campaign, moderated_means_of_tally(evidence.tally))
        progress = goal_progress_or_none(
            forecast_start.campaign, goal_estimates.estimates, campaign.score, goal_estimates.source
        )
        if progress is None or progress.is_reached:
            return progress_values + [np.nan] * (len(checkpoints) - len(progress_values)), False
        if forecast_start.campaign.when_reached == RELEASE_ITEMS:
            campaign.release_settled_items(np.isin(np.arange(campaign.item_count), progress.settled_items))
        progress_values.append(progress.value)
        if len(new_hits) < hit_count:
            return progress_values + [progress.value] * (len(checkpoints) - len(progress_values)), True
    return progress_values, False
