"""The first part of the analysis page: findings, each from the same results as the part to which it leads."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis import findings
from app.analysis.findings import Finding
from app.analysis.fit_cache import FitCache
from app.analysis.item_noun import noun_of_answers
from app.analysis.methods import SCORE_METHODS
from app.analysis.result_types import Answers, Options, ResultTable
from app.analysis.score_page_part import MEAN_METHOD_NAME, names_of_two_methods_to_show_or_refuse
from app.analysis.view import AnalysisView
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.quality.adjudications import load_adjudicated_label_by_item
from app.record.campaign import load_campaign_by_slug_or_refuse

DescribeTable = Callable[[ResultTable, Answers], Finding | None]

# Tables whose results are stated as a finding, in the order of the page.
FINDINGS_OF_TABLES: dict[str, DescribeTable] = {
    "systems": lambda table, _answers: findings.finding_about_systems_or_none(table),
    "agreement": lambda table, _answers: findings.finding_about_agreement_or_none(table),
    "annotators": findings.finding_about_annotator_reliability_or_none,
    "groups": lambda table, _answers: findings.finding_about_groups_or_none(table),
}


async def load_findings_template_context(
    fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView, *, table_names: Collection[str]
) -> dict[str, Any]:
    """Return the template context of the part with findings."""
    return {"findings": await load_findings(fits, engine, slug, view, table_names=table_names)}


async def load_findings(
    fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView, *, table_names: Collection[str]
) -> list[Finding]:
    """Return what the answers show; a result that cannot be estimated yet is no finding.

    Args:
        fits: Fitted results.
        engine: The database.
        slug: The campaign.
        view: Which answers, and which methods of scores.
        table_names: Tables that the reader may see.

    """
    answers = await fits.load_answers(engine, slug, **view.answer_filter_query_fields)
    found = await load_score_findings(fits, engine, slug, view)
    available = await fits.load_available_methods(engine, slug, criterion=view.criterion)
    for name, describe in FINDINGS_OF_TABLES.items():
        if name not in table_names or name not in available.tables:
            continue
        try:
            table = await fits.load_cached_or_fit_table(
                engine, slug, name, Options(view.classes, view.baseline or None), **view.answer_filter_query_fields
            )
        except Conflict:
            continue
        found.append(await asyncio.to_thread(describe, table, answers))
    settled = await load_settled_item_numbers(engine, slug, view.criterion) if answers.value_kind == "classes" else ()
    found.append(await asyncio.to_thread(findings.finding_about_labels_or_none, answers, settled))
    found.append(await asyncio.to_thread(findings.finding_about_disputed_items_or_none, answers))
    return [finding for finding in found if finding]


async def load_settled_item_numbers(engine: AsyncEngine, slug: str, criterion_name: str) -> Collection[int]:
    """Return the numbers of the items whose label a researcher has chosen."""
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return await load_adjudicated_label_by_item(connection, campaign.find_criterion_or_refuse(criterion_name))


async def load_finding_about_annotators_or_none(
    fits: FitCache, engine: AsyncEngine, campaign: Campaign, *, may_fit: bool
) -> Finding | None:
    """Return the finding that names annotators who seem not to agree with the others, None without one.

    Args:
        fits: Fitted results.
        engine: The database.
        campaign: The campaign.
        may_fit: Whether the table of annotators may be fitted now; otherwise only a kept one is described.

    """
    kept = fits.kept_answers_and_table_or_none(campaign.id, "annotators")
    if may_fit:
        try:
            table = await fits.load_cached_or_fit_table(engine, campaign.slug, "annotators")
        except Conflict:
            return None
        kept = await fits.load_answers(engine, campaign.slug), table
    if kept is None:
        return None
    answers, table = kept
    finding = await asyncio.to_thread(findings.finding_about_annotator_reliability_or_none, table, answers)
    return finding if finding and finding.annotators else None


async def load_score_findings(
    fits: FitCache, engine: AsyncEngine, slug: str, view: AnalysisView
) -> list[Finding | None]:
    """Return the findings about the scores, and about the order by the two methods of the view.

    Means are described if there are any: their calibrated intervals say how far annotators agree.
    """
    available = await fits.load_available_methods(engine, slug, criterion=view.criterion)
    answers = await fits.load_answers(engine, slug, **view.answer_filter_query_fields)
    if not available.scores:
        return []
    names = names_of_two_methods_to_show_or_refuse(view, answers.law, available.scores, available.default_method)
    described = MEAN_METHOD_NAME if MEAN_METHOD_NAME in available.scores else names[0]
    _, scores_by_method, _ = await fits.load_answers_scores_by_method_and_notes(
        engine, slug, {described, *names}, **view.answer_filter_query_fields
    )
    scores, one, other = (scores_by_method[name] for name in (described, *names))
    titles = SCORE_METHODS[names[0]].title, SCORE_METHODS[names[1]].title
    return [
        None if scores is None else findings.finding_about_scores(SCORE_METHODS[described], scores, answers),
        None
        if one is None or other is None or one is other
        else findings.finding_about_effect_of_method_or_none(titles, (one, other), noun_of_answers(answers)),
    ]
