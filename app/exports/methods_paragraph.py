"""Methods paragraph for papers: how many people judged what, and how far they agree. Each number is that of a page.

What is not known is said to be not available, with the reason if there is one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis.agreement_table import ALPHA_MEASURE_NAMES
from app.analysis.fit_cache import FitCache
from app.analysis.load_answers import has_answers
from app.analysis.reported_interval import choose_reported_interval
from app.analysis.result_types import Answers, Cell, ResultTable
from app.analysis.view import format_interval
from app.annotation.platforms.registry import simulated_platform_names
from app.campaigns.pay import hourly_pay_by_median_time_or_none, text_of_agreed_pay
from app.campaigns.summaries import CampaignWithProgress, load_campaign_with_progress_or_refuse
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict, join_with_and, pluralize
from app.exports.participant_sentences import load_participant_sentences
from app.http.languages.catalogue import ENGLISH, format_money
from app.quality.adjudications import load_adjudicated_label_by_item
from app.quality.annotators import load_plausible_median_seconds_or_none
from app.quality.registry import QUALITY_RULES
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.text.numbers import MISSING_VALUE_DASH, format_with_places

NOT_AVAILABLE = "not available"
RULE_ACTOR_PREFIX = "rule "
# Measures of reliability by the table that has them, the first that has a value.
RELIABILITY_MEASURES = (
    ("agreement", ("split_half_stepped_up",)),
    ("reliability", ("split_half_full", "tuple_halves_full", "separation_reliability")),
)
EASEL_CITATION = "The Easel maintainers. Easel: a web server for human judgments on a scale. Version {version}."
EASL_CITATION = (
    "Keisuke Sakaguchi and Benjamin Van Durme. 2018. Efficient Online Scalar Annotation with Bounded Support. "
    "Proceedings of ACL, 208-218. https://aclanthology.org/P18-1020/"
)
KRIPPENDORFF_CITATION = "Klaus Krippendorff. 2004. Content Analysis: An Introduction to Its Methodology. 2nd ed. Sage."
SMYTH_CITATION = (
    "Gordon K. Smyth. 2004. Linear Models and Empirical Bayes Methods for Assessing Differential Expression in "
    "Microarray Experiments. Statistical Applications in Genetics and Molecular Biology 3(1), article 3."
)

LOAD_COUNTS = text(f"""
    SELECT count(*) FILTER (WHERE counts) AS tasks,
           count(*) FILTER (WHERE counts AND source = ANY(CAST(:simulated AS text[]))) AS simulated,
           count(*) FILTER (WHERE counts AND source = 'import') AS imported,
           min(received_at) FILTER (WHERE counts AND source <> 'import') AS first_at,
           max(received_at) FILTER (WHERE counts AND source <> 'import') AS last_at,
           count(DISTINCT annotator_id) AS answered, count(DISTINCT annotator_id) FILTER (WHERE counts) AS counted
    FROM (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign) AS r
""")
COUNT_EXCLUDED_ANNOTATORS = text("""
    SELECT a.barred, a.barred_by AS by, count(*) AS annotators FROM annotators a
    WHERE a.campaign_id = :campaign AND a.barred IN ('excluded', 'erased')
    AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id)
    GROUP BY 1, 2
""")
COUNT_EXCLUDED_ANSWERS = text("""
    SELECT count(*) FROM (
        SELECT DISTINCT ON (response_seq) kind FROM decisions
        WHERE campaign_id = :campaign AND response_seq IS NOT NULL ORDER BY response_seq, seq DESC
    ) AS latest WHERE kind = 'exclude'
""")


@dataclass(frozen=True)
class MethodsFacts:
    """Facts of the paragraph about a campaign, apart from its criteria.

    Attributes:
        counts: Row of `LOAD_COUNTS`.
        excluded_by_reason: Number of annotators whose answers do not count, by why.
        excluded_answers: Number of single answers that were excluded.
        hourly_pay: Pay per hour by the median time of a task, as on the overview; None if it is not known.
        participant_sentences: Sentences on the entry answers of the annotators, and on people who were not admitted.

    """

    campaign: CampaignWithProgress
    counts: Any
    excluded_by_reason: dict[str, int]
    excluded_answers: int
    hourly_pay: float | None
    participant_sentences: Sequence[str]


def reason_of_exclusion(barred: str, decided_by: str) -> str:
    """Return why annotators are excluded, in words: by a rule, by a researcher, or because their data were erased."""
    if barred == "erased":
        return "data erased on request"
    if not decided_by.startswith(RULE_ACTOR_PREFIX):
        return "decision of a researcher"
    name = decided_by.removeprefix(RULE_ACTOR_PREFIX)
    return f"rule “{QUALITY_RULES[name].title if name in QUALITY_RULES else name}”"


async def load_methods_facts(connection: AsyncConnection, slug: str) -> MethodsFacts:
    """Load the facts. Raises `NotFound` (`campaign_not_found`)."""
    campaign = await load_campaign_with_progress_or_refuse(connection, slug)
    parameters = {"campaign": campaign.id}
    counts = (await connection.execute(LOAD_COUNTS, parameters | {"simulated": simulated_platform_names()})).one()
    excluded: dict[str, int] = {}
    for row in await connection.execute(COUNT_EXCLUDED_ANNOTATORS, parameters):
        reason = reason_of_exclusion(row.barred, row.by)
        excluded[reason] = excluded.get(reason, 0) + row.annotators
    seconds = None if counts.simulated else await load_plausible_median_seconds_or_none(connection, campaign.id)
    return MethodsFacts(
        campaign,
        counts,
        excluded,
        (await connection.execute(COUNT_EXCLUDED_ANSWERS, parameters)).scalar_one(),
        hourly_pay_by_median_time_or_none(campaign, seconds, counts.tasks),
        await load_participant_sentences(connection, campaign),
    )


async def load_methods_text(engine: AsyncEngine, slug: str, fits: FitCache, *, now: datetime) -> str:
    """Return the paragraph of a campaign as Markdown, with what to cite.

    Raises `NotFound` (`campaign_not_found`).
    """
    async with engine.connect() as connection:
        facts = await load_methods_facts(connection, slug)
        answered = await has_answers(connection, facts.campaign)
    paragraphs = [paragraph_about_campaign(facts, now)]
    count_sentences: list[str] = []
    cites_krippendorff = False
    for criterion in facts.campaign.criteria:
        if not answered:
            paragraphs.append(f"Agreement and reliability: {NOT_AVAILABLE} (no answers).")
            continue
        answers = await fits.load_answers(engine, slug, criterion=criterion.name)
        settled = await load_sentence_on_adjudications_or_empty(engine, criterion, answers)
        agreement = await load_measure_text(engine, fits, criterion, (("agreement", ALPHA_MEASURE_NAMES),))
        cites_krippendorff |= not agreement.startswith(NOT_AVAILABLE)
        reliability = ""
        if criterion.design.is_ordered:
            measure_text = await load_measure_text(engine, fits, criterion, RELIABILITY_MEASURES)
            reliability = f" Reliability of the scores – {measure_text}."
        count_sentences.append(judgments_per_item_phrase(answers, judged_noun(facts.campaign)))
        paragraphs.append(f"Agreement between annotators – {agreement}.{reliability}{settled}")
    add_judgment_counts_and_criteria(paragraphs, count_sentences, facts.campaign)
    intervals = sentences_on_intervals(facts.campaign) if answered else []
    return format_methods_text(
        facts.campaign,
        [*paragraphs, *intervals],
        cites_krippendorff=cites_krippendorff,
        cites_smyth=any("Smyth" in sentence for sentence in intervals),
    )


async def load_sentence_on_adjudications_or_empty(
    engine: AsyncEngine, criterion: Criterion[Campaign], answers: Answers
) -> str:
    """Return how many items have a label that a researcher chose; empty if none has."""
    async with engine.connect() as connection:
        settled = len(await load_adjudicated_label_by_item(connection, criterion))
    if not settled:
        return ""
    verb = "was" if settled == 1 else "were"
    return f" Of {pluralize(answers.n_items, 'label')}, {settled:,} {verb} settled by a researcher."


def sentences_on_intervals(campaign: Campaign) -> list[str]:
    """Return which intervals a paper should report, once if it is the same for all criteria."""
    sentences = [choose_reported_interval(criterion).paper_sentence for criterion in campaign.criteria]
    if len(set(sentences)) == 1:
        return list(filter(None, sentences[:1]))
    named = zip(campaign.criteria, sentences, strict=True)
    return [criterion_prefix(criterion) + sentence for criterion, sentence in named if sentence]


def format_methods_text(
    campaign: Campaign, paragraphs: Iterable[str], *, cites_krippendorff: bool, cites_smyth: bool
) -> str:
    is_easl = campaign.update_law.startswith("easl")
    citations = [
        EASEL_CITATION.format(version=version("easel")),
        *([EASL_CITATION] if is_easl else []),
        *([KRIPPENDORFF_CITATION] if cites_krippendorff else []),
        *([SMYTH_CITATION] if cites_smyth else []),
    ]
    references = "\n".join(f"- {citation}" for citation in citations)
    return "\n\n".join(["# Methods", *paragraphs, "## References", references]) + "\n"


def paragraph_about_campaign(facts: MethodsFacts, now: datetime) -> str:
    """Return the sentences on items, people, exclusions and pay."""
    campaign, counts = facts.campaign, facts.counts
    design, laws = campaign.design.title.lower(), f"update law `{campaign.update_law}`; rule `{campaign.rule.name}`"
    items = pluralize(campaign.item_count, judged_noun(campaign))
    if campaign.segment_count:
        items += f" on {pluralize(campaign.segment_count, 'segment')}"
    sentences = [
        f"We collected judgments of {items} with Easel {version('easel')} ({design}; {laws}).",
        task_sentence(campaign),
        labels_sentence_or_empty(campaign),
        checks_sentence_or_empty(campaign),
        annotators_sentence(facts),
        *facts.participant_sentences,
        exclusions_sentence(facts),
        times_sentence(facts, now),
        pay_sentence(facts),
    ]
    if counts.simulated:
        sentences.append(
            f"Simulated annotators answered {counts.simulated:,} of the {pluralize(counts.tasks, 'task')}: "
            "these are not human data."
        )
    if counts.imported:
        sentences.append(f"Imported, not answered in Easel: {pluralize(counts.imported, 'task')}.")
    return " ".join(filter(None, sentences))


def judged_noun(campaign: Campaign) -> str:
    """Return the word for what gets a score."""
    return "system" if campaign.segment_count else "item"


def task_sentence(campaign: Campaign) -> str:
    """Return what a task showed and asked, with the questions of all criteria."""
    if not campaign.segment_count:
        shown = pluralize(campaign.items_per_hit, "item")
    elif campaign.items_per_hit == 1:
        shown = "1 output of a system"
    else:
        shown = f"{campaign.items_per_hit} outputs of systems for the same segment"
    asked = f"Each task showed {shown} and asked: “{campaign.question}”"
    if not campaign.has_criteria:
        return asked
    if campaign.design.ticks_criteria:
        names = join_with_and([f"“{name}”" for name in campaign.criterion_names])
        return f"{asked} Annotators ticked every label that applied, or none of them: {names}."
    questions = [f"{criterion.name} (“{criterion.question}”)" for criterion in campaign.criteria]
    judged = "Outputs" if campaign.segment_count else "Items"
    return f"{asked} {judged} were judged on {len(questions)} criteria: {join_with_and(questions)}."


def labels_sentence_or_empty(campaign: Campaign) -> str:
    """Return which labels annotators chose from; empty without labels, and if criteria have different ones."""
    labels_of_criteria = {tuple(criterion.design.classes) for criterion in campaign.criteria}
    if len(labels_of_criteria) != 1 or not campaign.design.classes or campaign.design.ticks_criteria:
        return ""
    return f"The labels were {join_with_and([f'“{label}”' for label in labels_of_criteria.pop()])}."


def checks_sentence_or_empty(campaign: CampaignWithProgress) -> str:
    """Return how many gold and attention items the tasks showed; empty if they showed none."""
    if not campaign.checks_percent or not campaign.check_count:
        return ""
    counts = {"gold item": campaign.gold_count, "attention item": campaign.check_count - campaign.gold_count}
    checks = join_with_and([pluralize(count, noun) for noun, count in counts.items() if count])
    return f"Annotators were checked with {checks} in {campaign.checks_percent:g} % of their tasks."


def annotators_sentence(facts: MethodsFacts) -> str:
    counts = facts.counts
    return f"{pluralize(counts.counted, 'annotator')} answered {pluralize(counts.tasks, 'task')} that count."


def exclusions_sentence(facts: MethodsFacts) -> str:
    """Return how many annotators and answers are excluded, and why."""
    total = sum(facts.excluded_by_reason.values())
    excluded_answers = pluralize(facts.excluded_answers, "answer")
    verb = "was" if facts.excluded_answers == 1 else "were"
    single = f" Individually, {excluded_answers} {verb} excluded." if facts.excluded_answers else ""
    if not total:
        return f"No annotator was excluded.{single}"
    reasons = "; ".join(f"{count:,}: {reason}" for reason, count in sorted(facts.excluded_by_reason.items()))
    verb = "is" if total == 1 else "are"
    answered = pluralize(facts.counts.answered, "annotator")
    return f"Of {answered} who answered, {total:,} {verb} excluded ({reasons}).{single}"


def times_sentence(facts: MethodsFacts, now: datetime) -> str:
    """Return when answers were collected; so far, if the campaign goes on."""
    if facts.counts.first_at is None:
        return f"Dates of collection: {NOT_AVAILABLE}."
    first, last = (f"{moment.astimezone(UTC):%Y-%m-%d}" for moment in (facts.counts.first_at, facts.counts.last_at))
    status = facts.campaign.status
    unfinished = "" if status == "finished" else f" The campaign was {status} on {now.astimezone(UTC):%Y-%m-%d}."
    days = f"on {first}" if first == last else f"from {first} to {last}"
    return f"Answers were collected {days} (UTC).{unfinished}"


def pay_sentence(facts: MethodsFacts) -> str:
    """Return the agreed pay, and the pay per hour by the median time of a task."""
    campaign = facts.campaign
    if not campaign.pay_per_hit:
        return f"Pay: {NOT_AVAILABLE}."
    if facts.hourly_pay is None:
        return f"Annotators were paid {text_of_agreed_pay(campaign)}; pay per hour: {NOT_AVAILABLE}."
    hourly = f"{format_money(facts.hourly_pay, campaign.currency, ENGLISH)} an hour at the median time of a task"
    return f"Annotators were paid {text_of_agreed_pay(campaign)}, which is {hourly}."


def criterion_prefix(criterion: Criterion[Campaign]) -> str:
    return f"{criterion.name}: " if criterion.name else ""


def judgments_per_item_phrase(answers: Answers, noun: str) -> str:
    """Return the mean, the least and the greatest number of judgments of an item, without those in every task."""
    counts = np.delete(answers.judgment_counts, [*answers.always_shown])
    mean = format_with_places(float(np.mean(counts)), 1)
    return (
        f"{int(counts.sum()):,}, {mean} per {noun} on average, {counts.min():,} at least and {counts.max():,} at most."
    )


def add_judgment_counts_and_criteria(paragraphs: list[str], count_phrases: Sequence[str], campaign: Campaign) -> None:
    """Begin the paragraph of each criterion, all after the first, with its name and its numbers of judgments.

    Numbers that are the same for all criteria come once, at the end of the first paragraph.
    """
    are_shared = campaign.has_criteria and len(set(count_phrases)) == 1
    if are_shared:
        paragraphs[0] += f" Judgments that count, of each criterion: {count_phrases[0]}"
    for place, criterion in enumerate(campaign.criteria):
        counts = f"Judgments that count: {count_phrases[place]} " if count_phrases and not are_shared else ""
        paragraphs[1 + place] = f"{criterion_prefix(criterion)}{counts}{paragraphs[1 + place]}"


async def load_measure_text(
    engine: AsyncEngine,
    fits: FitCache,
    criterion: Criterion[Campaign],
    measures_by_table: Sequence[tuple[str, Sequence[str]]],
) -> str:
    """Return the first measure with a value, its title and 95 % interval; else that there is none, and why."""
    slug, reason = criterion.campaign.slug, ""
    available = (await fits.load_available_methods(engine, slug, criterion=criterion.name)).tables
    for table_name, measures in measures_by_table:
        if table_name not in available:
            continue
        try:
            table = await fits.load_cached_or_fit_table(engine, slug, table_name, criterion=criterion.name)
        except Conflict as refusal:
            reason = reason or refusal.message
            continue
        for row in rows_of_measures(table, measures):
            if row["value"] is not None:
                return format_measure(row)
            reason = reason or str(row["sentence"])
    return f"{NOT_AVAILABLE} ({reason.rstrip('.')})" if reason else NOT_AVAILABLE


def rows_of_measures(table: ResultTable, measures: Sequence[str]) -> list[dict[str, Cell]]:
    """Return the rows of some measures, in the order of `measures`, by the names of the columns."""
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return [row for measure in measures for row in rows if row["measure"] == measure]


def format_measure(row: dict[str, Any]) -> str:
    """Return a measure with its interval, such as `ICC, one-way: 0.82 (95 % interval 0.73 to 0.89)`."""
    interval = format_interval(row["low"], row["high"], 2)
    value = f"{row['title']}: {format_with_places(float(row['value']), 2)}"
    is_unknown = interval == MISSING_VALUE_DASH
    return f"{value} (interval {NOT_AVAILABLE})" if is_unknown else f"{value} (95 % interval {interval})"
