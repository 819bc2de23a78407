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

from app.goals.estimates import GoalEvidence
from app.goals.progress import goal_progress
from app.goals.settings import RELEASE_ITEMS
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.observations.tally import Tally
from app.inference.online.law import LawBeliefs, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import moderate_means
from app.selection.registry import SELECTION_RULES, selection_settings
from app.simulation.annotators import Population
from app.simulation.campaign import SimulatedCampaign
from app.simulation.crowd_model import (
    AnnotatorSource,
    annotator_source_by_law,
    annotator_source_by_means,
    default_priors,
    fit_crowd,
    replay_evidence,
)
from app.simulation.participation import (
    DEFAULT_ANNOTATORS_IN_TOTAL,
    Participation,
    estimate_participation,
    items_seen_by_place,
)

MAX_PLAN_ITEMS = 1_000_000
DEFAULT_SAMPLE_ITEMS, MAX_SAMPLE_ITEMS = 1_000, 5_000  # items
MAX_ITEMS_MEASURED_BY_LAW = 300  # items: a HIT takes such a law ten times as long
MIN_BEST_IN_SAMPLE = 2  # in a sample
MAX_NEW_JUDGMENTS_PER_ITEM = 60  # an item, beyond those that are there
GOAL_CHECKS_PER_RUN, GOAL_CHECKS_PER_RUN_BY_LAW = 60, 40  # at how near the goal is, in one run
NEW_ANNOTATOR_OFFSET = 10**9  # is added to their numbers, so that they are not those who have answered
UNLIMITED_JUDGMENTS = 10**6  # judgments
BAND_PERCENTILES = 2.5, 97.5  # per cent of the runs
MEANS_LAW = ONLINE_LAWS["easl"]


@dataclass(frozen=True)
class GoalForecast:
    """Of R runs: after how many more judgments each looked, (L,), and how near its goal it was, (R, L), NaN once it was
    reached. needed: judgments from now on until it is, (R,); infinite where it was not in the time. ran_out: whether
    annotators had answered all that they may before it was, (R,).
    """

    checkpoints: Array
    progress_values: Array
    judgments_needed: Array
    ran_out: Mask

    @property
    def band(self) -> tuple[float, float, float]:
        """Judgments that are needed: the median of runs, and between which nine of ten lie."""
        low, middle, high = np.percentile(
            self.judgments_needed, (BAND_PERCENTILES[0], 50, BAND_PERCENTILES[1]), method="nearest"
        )
        return float(middle), float(low), float(high)

    @property
    def reached_shares(self) -> Array:
        """In which share of the runs the goal is reached by each look, (L,)."""
        share: Array = (self.judgments_needed[:, None] <= self.checkpoints).mean(axis=0)
        return share


def sample_size(campaign: Any) -> int:
    """How many of a campaign's items are simulated. campaign: with its `item_count`."""
    has_best_goal = campaign.goal == "best" and campaign.best_items < campaign.item_count
    enough = -(-MIN_BEST_IN_SAMPLE * campaign.item_count // max(1, campaign.best_items)) if has_best_goal else 0
    return int(min(campaign.item_count, MAX_SAMPLE_ITEMS, max(DEFAULT_SAMPLE_ITEMS, enough)))


def scale_campaign_to_sample(campaign: Any, share: float) -> Any:
    """The campaign as it is for this share of its items, 0 to 1: asked as ever, and with its part of the goal."""
    goal_percent = (
        campaign.goal_percent if campaign.goal == "intervals" else 100 * (campaign.goal_percent / 100) ** share
    )
    hit_limit = campaign.hits_per_annotator
    changed = {"best_items": max(1, round(campaign.best_items * share)), "goal_percent": goal_percent}
    changed |= {"hits_per_annotator": hit_limit and hit_limit * share}
    return SimpleNamespace(**{**campaign.__dict__, **changed})


@dataclass(frozen=True, eq=False)
class ForecastStart:
    """Where all runs of a plan begin. campaign: its settings. known: what its judgments say. beliefs: those of the law.
    people: draws who answers. who: they are, those who have answered first. seen: the items that each of these has
    seen, by their places.
    """

    campaign: Any
    evidence: GoalEvidence
    beliefs: LawBeliefs
    annotator_source: AnnotatorSource
    participation: Participation
    seen_items: Mapping[int, set[int]]

    def new_campaign(self, rng: np.random.Generator) -> SimulatedCampaign:
        """The campaign as it stands, to go on with."""
        item_count, judgments = len(self.evidence.tally.total), self.evidence.tally.judgments
        asking = replace(selection_settings(self.campaign), judgments_per_item=UNLIMITED_JUDGMENTS)
        initial_state = self.beliefs.copy(), judgments
        repeats_items = self.campaign.repeat_items
        campaign = SimulatedCampaign(
            SELECTION_RULES[self.campaign.rule],
            self.evidence.law,
            asking,
            LawParameters(),
            item_count,
            rng,
            initial_state,
            repeats_items,
        )
        campaign.seen |= {place: set(items) for place, items in self.seen_items.items()}
        return campaign

    def annotator_number(self, place: int) -> int:
        """That of an annotator, by their place among `people`."""
        known_annotators = self.participation.known_annotators
        return int(known_annotators[place]) if place < len(known_annotators) else NEW_ANNOTATOR_OFFSET + place


def is_plan_measured_by_law(campaign: Any, evidence: GoalEvidence) -> bool:
    """Whether a plan measures the goal by the law, where the campaign does."""
    return evidence.is_measured_by_law(campaign) and len(evidence.tally.total) <= MAX_ITEMS_MEASURED_BY_LAW


def prepare_forecast(
    campaign: Any,
    evidence: GoalEvidence,
    fallback: Population | GoalEvidence,
    annotators: int = DEFAULT_ANNOTATORS_IN_TOTAL,
    priors: Array | None = None,
) -> ForecastStart:
    """By the law or by plain means, with so many annotators in all. priors: what posteriors began with, (numbers, N);
    None for the law's own.
    """
    by_law_estimates = is_plan_measured_by_law(campaign, evidence)
    participation = estimate_participation(campaign, evidence.tally, annotators, identities_matter=by_law_estimates)
    seen_items = items_seen_by_place(participation, evidence.tally)
    if not by_law_estimates:
        annotator_source = annotator_source_by_means(evidence.tally, fallback, participation.annotator_count)
        return ForecastStart(
            campaign,
            GoalEvidence(MEANS_LAW, evidence.tally, None),
            beliefs_from_tally(evidence.tally, priors),
            annotator_source,
            participation,
            seen_items,
        )
    n = selection_settings(campaign).items_per_hit
    law_replay = replay_evidence(evidence, n, priors)
    annotator_source = annotator_source_by_law(
        evidence.tally, fit_crowd(evidence, law_replay), fallback, n, participation.annotator_count
    )
    return ForecastStart(campaign, evidence, law_replay.beliefs, annotator_source, participation, seen_items)


def beliefs_from_tally(tally: Tally, priors: Array | None) -> LawBeliefs:
    """What `easl` has learned: it adds scores to one number and what they lack to the other. priors: as in `start`."""
    high, low = default_priors(MEANS_LAW, len(tally.total)) if priors is None else priors
    return MEANS_LAW.initial_beliefs([high + tally.total, low + tally.judgments - tally.total], LawParameters())


def forecast_goal(
    campaign: Any,
    evidence: GoalEvidence,
    fallback: Population | GoalEvidence,
    *,
    runs: int,
    seed: int,
    annotators: int = DEFAULT_ANNOTATORS_IN_TOTAL,
    priors: Array | None = None,
    sample: int | None = None,
    on_run: Callable[[int], None] = lambda _runs: None,
) -> GoalForecast:
    """What the goal of a campaign will cost. campaign: its settings as attributes of a namespace. known: what its
    judgments say. like: who answers, or what is known of an earlier campaign, where its own answers tell nothing yet.
    annotators: how many there are in all. priors: as in `start`. sample: how many items are simulated, None for all.
    told: hears after each run how many there were.
    """
    item_count, items_per_hit = len(evidence.tally.total), selection_settings(campaign).items_per_hit
    share = min(1.0, (sample or item_count) / item_count)
    if share < 1:
        sampled_items = np.sort(np.random.default_rng([seed, item_count]).choice(item_count, sample, replace=False))
        campaign, evidence = (
            scale_campaign_to_sample(campaign, share),
            GoalEvidence(MEANS_LAW, evidence.tally.select_items(sampled_items), None),
        )
        priors = None if priors is None else priors[:, sampled_items]
    forecast_start = prepare_forecast(campaign, evidence, fallback, annotators, priors)
    checkpoints = goal_checkpoints(
        -(-len(evidence.tally.total) * MAX_NEW_JUDGMENTS_PER_ITEM // items_per_hit),
        is_costly=forecast_start.evidence.judgments is not None,
    )
    progress_values, ran_out = np.empty((runs, len(checkpoints))), np.zeros(runs, bool)
    for k in range(runs):
        progress_values[k], ran_out[k] = simulate_forecast_run(
            forecast_start, checkpoints, np.random.default_rng([seed, k])
        )
        on_run(k + 1)
    is_reached = np.isnan(progress_values)
    judgments_at_checkpoints = checkpoints * items_per_hit / share
    needed = np.where(is_reached.any(axis=1), judgments_at_checkpoints[is_reached.argmax(axis=1)], np.inf)
    return GoalForecast(judgments_at_checkpoints, progress_values, needed, ran_out)


def goal_checkpoints(max_hits: int, *, is_costly: bool) -> Integers:
    """After how many HITs it is looked how near the goal is, (L,), the last time after so many; where a look is costly,
    seldom later on, when it matters less.
    """
    evenly = np.linspace(0, max_hits, GOAL_CHECKS_PER_RUN + 1).astype(np.intp)
    kept = np.append(0, np.geomspace(1, GOAL_CHECKS_PER_RUN, GOAL_CHECKS_PER_RUN_BY_LAW).round().astype(np.intp))
    return np.unique(evenly[kept] if is_costly else evenly)


def simulate_forecast_run(
    forecast_start: ForecastStart, checkpoints: Integers, rng: np.random.Generator
) -> tuple[list[float], bool]:
    """How near the goal is after so many HITs, (L,), NaN once it was reached; and whether nobody was left to answer
    before it was.
    """
    evidence, progress_values, hits_left = (
        forecast_start.evidence,
        list[float](),
        forecast_start.participation.hits_left,
    )
    annotators = forecast_start.annotator_source(rng)
    campaign = forecast_start.new_campaign(rng)
    hits = campaign.generate_hits(annotators, None if hits_left is None else hits_left.tolist())
    for hit_count in np.diff(checkpoints, prepend=0).tolist():
        new_hits = list(islice(hits, hit_count))
        if new_hits:
            annotator_numbers = [forecast_start.annotator_number(hit.annotator) for hit in new_hits for _ in hit.items]
            items = [item for hit in new_hits for item in hit.items]
            evidence = evidence.add_judgments(
                items, annotator_numbers, [value for hit in new_hits for value in hit.values]
            )
        goal_estimates = evidence.goal_estimates(forecast_start.campaign, moderate_means(evidence.tally))
        progress = goal_progress(
            forecast_start.campaign, goal_estimates.estimates, campaign.score, goal_estimates.source
        )
        if progress is None or progress.is_reached:
            return progress_values + [np.nan] * (len(checkpoints) - len(progress_values)), False
        if forecast_start.campaign.when_reached == RELEASE_ITEMS:
            campaign.release_items(np.isin(np.arange(campaign.item_count), progress.settled_items))
        progress_values.append(progress.value)
        if len(new_hits) < hit_count:
            return progress_values + [progress.value] * (len(checkpoints) - len(progress_values)), True
    return progress_values, False
