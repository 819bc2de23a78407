"""Agreement of each annotator with the others, the reliability and bias estimated from it, and the rules' assessments.

It is computed when a researcher opens the page, in another process if that takes long, and kept until new answers come.
For very many judgments, a random sample of items is compared.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from cachetools import LRUCache
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.background.process import run_in_process
from app.background.tasks import KeyedTasks
from app.database.bulk import NumberColumn
from app.database.session import create_engine
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.labels.agreement_with_others import equal_label_share_of_each_annotator
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.online.law import AnnotatorDescription
from app.inference.ratings import annotator_aware
from app.inference.ratings import peer_correlations as ratings_correlations
from app.quality import inputs
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule_assessments import AssessmentsOfAnnotators, load_assessments_of_annotators
from app.quality.sequential_limits import ends_of_sequential_correlation_interval
from app.quality.settings import settings_of_rules
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.changes import Watermark, poll_changes

MAX_ANSWERS_COMPARED_INLINE = 2_000  # compared while the page waits
MAX_COMPARED_JUDGMENTS = 200_000
MAX_COMPARISON_ITERATIONS = 60  # estimates that can be learned hardly change after fewer
COMPARISON_ERROR_RATE = 0.05
MAX_CAMPAIGNS_COMPARED = 50

HAS_FEW_ANSWERS = text("""
    SELECT count(*) <= :most FROM (
        SELECT FROM responses WHERE campaign_id = :campaign LIMIT :most + 1) AS some_of_them
""")


class PeerCorrelation(NamedTuple):
    """Correlation with the others' means, and the ends of its 95 % interval. For labels, the share that another
    annotator gave too, without an interval.
    """

    value: float
    low: float | None = None
    high: float | None = None


class AnnotatorComparison(NamedTuple):
    """Comparison of an annotator with the others; None where too little is known.

    Attributes:
        peer_correlation: Agreement with the others.
        reliability: Expected correlation of their answers with the true values of items, 0 to 1.
        bias: How much higher than the crowd they score the same items, in points.

    """

    peer_correlation: PeerCorrelation | None = None
    reliability: float | None = None
    bias: float | None = None


@dataclass(frozen=True)
class CampaignComparison:
    """Comparisons of all annotators by id, from the judgments of `compared_items` of the `judged_items`, and the
    assessments of these annotators by the active rules.
    """

    by_annotator: Mapping[int, AnnotatorComparison]
    compared_items: int
    judged_items: int
    assessments: AssessmentsOfAnnotators


class NewestComparison(NamedTuple):
    """The latest comparison, None before the first, and whether newer answers are being compared."""

    comparison: CampaignComparison | None
    is_running: bool

    @property
    def is_any_reliability_known(self) -> bool:
        """Whether the reliability of any annotator is known."""
        return self.comparison is not None and any(
            comparison.reliability is not None for comparison in self.comparison.by_annotator.values()
        )

    @property
    def assessments(self) -> AssessmentsOfAnnotators:
        """Assessments by the active rules; empty before the first comparison."""
        return self.comparison.assessments if self.comparison else {}

    def comparison_of_annotator(self, annotator_id: int) -> AnnotatorComparison:
        """Return the comparison of one annotator."""
        return (
            self.comparison.by_annotator.get(annotator_id, AnnotatorComparison())
            if self.comparison
            else AnnotatorComparison()
        )


class KeptComparison(NamedTuple):
    """A comparison, and the watermark and the settings of rules that it was made with."""

    watermark: Watermark
    rule_settings: tuple[Any, ...]
    comparison: CampaignComparison


@dataclass
class AnnotatorComparisons:
    """Cache of comparisons by campaign. A child process makes the long ones, one at a time."""

    engine: AsyncEngine
    cache: LRUCache[int, KeptComparison] = field(default_factory=lambda: LRUCache(MAX_CAMPAIGNS_COMPARED))
    tasks: KeyedTasks[int] = field(default_factory=lambda: KeyedTasks("annotator comparisons"))
    process_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def load_newest_comparison(self, connection: AsyncConnection, campaign: Campaign) -> NewestComparison:
        """Return the comparison as of now if it is known or quick to compute; otherwise start it and return the last
        one.
        """
        kept, rule_settings = self.cache.get(campaign.id), settings_of_rules(campaign)
        watermark, first_new_seq, _ = await poll_changes(connection, campaign.id, kept and kept.watermark)
        if kept and first_new_seq is None and kept.rule_settings == rule_settings:
            return NewestComparison(kept.comparison, is_running=False)
        if await has_few_answers(connection, campaign.id):
            comparison = await compare_annotators(connection, campaign)
            self.cache[campaign.id] = KeptComparison(watermark, rule_settings, comparison)
            return NewestComparison(comparison, is_running=False)
        if campaign.id not in self.tasks:
            self.tasks.start(campaign.id, partial(self.compare_in_process_and_cache, campaign, watermark))
        return NewestComparison(kept.comparison if kept else None, is_running=True)

    async def compare_in_process_and_cache(self, campaign: Campaign, watermark: Watermark) -> None:
        """Compare the campaign's annotators in another process, and cache the comparison with the watermark."""
        async with self.process_lock:
            url = self.engine.url.render_as_string(hide_password=False)
            comparison = await run_in_process(compare_campaign_annotators_in_database_at_url, url, campaign.slug)
            self.cache[campaign.id] = KeptComparison(watermark, settings_of_rules(campaign), comparison)

    async def stop(self) -> None:
        """Cancel the running comparisons."""
        await self.tasks.stop()


async def has_few_answers(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether annotators can be compared while a page waits."""
    parameters = {"campaign": campaign_id, "most": MAX_ANSWERS_COMPARED_INLINE}
    return bool((await connection.execute(HAS_FEW_ANSWERS, parameters)).scalar_one())


async def compare_campaign_annotators_in_database_at_url(database_url: str, slug: str) -> CampaignComparison:
    """Run `compare_annotators` in a process that has no engine."""
    engine = create_engine(database_url, pool_size=1)
    try:
        async with engine.connect() as connection:
            return await compare_annotators(connection, await load_campaign_by_slug_or_refuse(connection, slug))
    finally:
        await engine.dispose()


async def compare_annotators(connection: AsyncConnection, campaign: Campaign) -> CampaignComparison:
    """Compare all annotators by the first criterion and the answers that count, and assess them by the rules.

    Annotators without judgments are left out.
    """
    first = campaign.criteria[0]
    rule_inputs = await inputs.load_rule_inputs(connection, first)
    sampled_columns, sampled_count, item_count = sample_judgments_and_count_their_items(
        rule_inputs.judgments, np.random.default_rng(campaign.seed)
    )
    estimates_by_annotator = await inputs.load_learned_annotator_descriptions_by_id(
        connection, first, np.unique(sampled_columns["annotator"]).tolist()
    )
    comparison_by_annotator = await asyncio.to_thread(
        annotator_comparison_by_id_from_judgments, first.design, sampled_columns, estimates_by_annotator
    )
    assessments = await load_assessments_of_annotators(connection, campaign, rule_inputs)
    return CampaignComparison(comparison_by_annotator, sampled_count, item_count, assessments)


def sample_judgments_and_count_their_items(
    columns: Mapping[str, NumberColumn], rng: np.random.Generator
) -> tuple[Mapping[str, NumberColumn], int, int]:
    """Return the judgments of randomly drawn items with at most `MAX_COMPARED_JUDGMENTS` together, the number of these
    items, and the number of all items.
    """
    items, item_index, counts = np.unique(columns["item"], return_inverse=True, return_counts=True)
    if len(item_index) <= MAX_COMPARED_JUDGMENTS:
        return columns, len(items), len(items)
    order = rng.permutation(len(items))
    sampled_items = order[np.cumsum(counts[order]) <= MAX_COMPARED_JUDGMENTS]
    is_sampled = np.isin(item_index, sampled_items)
    return {name: column[is_sampled] for name, column in columns.items()}, len(sampled_items), len(items)


def annotator_comparison_by_id_from_judgments(
    design: Design, columns: Mapping[str, NumberColumn], estimates_by_annotator: Mapping[int, AnnotatorDescription]
) -> dict[int, AnnotatorComparison]:
    """Return the comparison by annotator id. If the campaign's law has learned nothing of annotators, estimate
    reliability and bias from all judgments at once.
    """
    behaviours = inputs.build_behaviours_by_annotator(design, inputs.RuleInputs(columns, inputs.NO_SECONDS, {}))
    estimates = {
        number: (estimate.reliability, estimate.bias) for number, estimate in estimates_by_annotator.items()
    } or fit_reliability_and_bias_by_annotator(behaviours)
    correlations = peer_correlation_or_none_by_annotator(behaviours)
    comparisons = {}
    for number in behaviours:
        reliability, bias = estimates.get(number, (math.nan, math.nan))
        comparisons[number] = AnnotatorComparison(
            peer_correlation=correlations[number],
            reliability=None if math.isnan(reliability) else reliability,
            bias=None if math.isnan(reliability) or math.isnan(bias) else 100.0 * bias,
        )
    return comparisons


def fit_reliability_and_bias_by_annotator(
    behaviours: Mapping[int, AnnotatorBehaviour],
) -> dict[int, tuple[float, float]]:
    """Return reliability and bias of annotators who give scores, fitted as in the analysis."""
    if answer_kind_of_behaviours_or_none(behaviours) != "points":
        return {}
    try:
        fitted = annotator_aware.fit(
            *item_annotator_and_scale_share_columns(behaviours), max_iterations=MAX_COMPARISON_ITERATIONS
        )
    except Inestimable:
        return {}
    return dict(zip(behaviours, zip(fitted.reliability.tolist(), fitted.bias.tolist(), strict=True), strict=True))


def peer_correlation_or_none_by_annotator(
    behaviours: Mapping[int, AnnotatorBehaviour],
) -> dict[int, PeerCorrelation | None]:
    """Return each annotator's correlation with the means of the others, as in the analysis, with its interval. For
    labels, return the share of labels that another annotator gave too, also as in the analysis.
    """
    if not behaviours:
        return {}
    items, annotator_index, shares = item_annotator_and_scale_share_columns(behaviours)
    if answer_kind_of_behaviours_or_none(behaviours) == "classes":
        labels = shares.astype(np.intp)
        equal = equal_label_share_of_each_annotator(
            items, annotator_index, labels, n_annotators=len(behaviours), n_labels=int(labels.max(initial=0)) + 1
        )
        return {
            number: None if math.isnan(share) else PeerCorrelation(share)
            for number, share in zip(behaviours, equal.tolist(), strict=True)
        }
    fitted = ratings_correlations.fit(
        items, annotator_index, shares, n_items=int(items.max(initial=-1)) + 1, n_annotators=len(behaviours)
    )
    rows = zip(behaviours, fitted.correlation.tolist(), fitted.shared.tolist(), strict=True)
    return {
        number: None if math.isnan(value) else peer_correlation_with_interval(value, shared)
        for number, value, shared in rows
    }


def peer_correlation_with_interval(correlation: float, shared_judgments: int) -> PeerCorrelation:
    return PeerCorrelation(
        correlation, *ends_of_sequential_correlation_interval(correlation, shared_judgments, COMPARISON_ERROR_RATE)
    )


def answer_kind_of_behaviours_or_none(behaviours: Mapping[int, AnnotatorBehaviour]) -> JudgmentKind | None:
    """Return the kind of these annotators' answers, None without annotators."""
    return next((behaviour.answer_kind for behaviour in behaviours.values()), None)


def item_annotator_and_scale_share_columns(
    behaviours: Mapping[int, AnnotatorBehaviour],
) -> tuple[Integers, Integers, Array]:
    """Return item, annotator and share of each judgment, (J,); items and annotators are numbered from 0."""
    ordered_behaviours = [*behaviours.values()]
    item_index = np.unique(np.concatenate([each.item for each in ordered_behaviours]), return_inverse=True)[1]
    annotator_index = np.repeat(np.arange(len(ordered_behaviours)), [len(each.item) for each in ordered_behaviours])
    return item_index, annotator_index, np.concatenate([each.share for each in ordered_behaviours])
