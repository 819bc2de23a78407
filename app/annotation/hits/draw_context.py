"""Inputs of a draw besides scores, for rules that need them: label counts, comparisons, and pairs that own answers
imply.

Only new data is read: items that were answered since, and new answers of this annotator. Like the copy of the
posteriors, these inputs only decide what to ask: they may be stale, never wrong.
"""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np
from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex, OwnAnswerHistory
from app.database.bulk import NumberColumn, fetch_array_by_column_on_driver
from app.database.session import Driver, Record, fetch_rows
from app.designs.design import Design
from app.designs.scale import MAX_POINTS
from app.inference.preferences.implied_pairs import Implications
from app.record.changes import responses_since_sql
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.record.responses import COUNTING_RESPONSES_CONDITION, Response, columns_sorted_by_seq, judgments_sql
from app.selection.implied_pairs import ImpliedPairFilter
from app.selection.label_rules import LabelIndex
from app.selection.pairs_rule import ComparisonLog, PairsIndex

log = logging.getLogger(__name__)

MAX_ANSWERS_ON_EVENT_LOOP = 200  # more answers are processed in a thread

SELECT_ITEM_LABELS = text(f"""
    SELECT p.subject AS number, p.state AS labels FROM posteriors p
    WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:numbers AS int[]))
""")

SELECT_OWN_ANSWERS = text(f"""
    SELECT seq, r.items AS hit_items, r.values AS hit_values, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses r
    WHERE campaign_id = :campaign AND annotator_id = :annotator AND seq > :after ORDER BY seq
""")


FIND_NEW_JUDGMENTS = judgments_sql(f"""
    ($4::text IS NULL OR seq = ANY (ARRAY(
        WITH recent AS MATERIALIZED ({responses_since_sql("$1", "$4")}) SELECT seq FROM recent
    )))
""")


class ItemLabels(Record):
    """Label counts of an item, which are its posterior."""

    number: int
    labels: list[float]


class OwnAnswer(Record):
    """An answer of the annotator, and whether it counts (no decision leaves it out)."""

    seq: int
    hit_items: list[int]
    hit_values: list[float]
    counts: bool


async def update_label_counts_if_rule_reads_them(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> None:
    """Update the index with the present label counts, if the rule reads them."""
    index = campaign_index.index
    if isinstance(index, LabelIndex) and index.items_with_unread_labels:
        rows = await fetch_rows(
            connection,
            SELECT_ITEM_LABELS,
            {"campaign": assignment.campaign_id, "numbers": [*index.items_with_unread_labels]},
            ItemLabels,
        )
        index.update_label_posteriors([row.number for row in rows], [row.labels for row in rows])


async def update_comparisons_if_rule_reads_them(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> None:
    """Update the index with all comparisons up to its posteriors, if the rule reads them."""
    comparison_log = campaign_index.index.log if isinstance(campaign_index.index, PairsIndex) else None
    if comparison_log is None:
        return
    since, until = campaign_index.comparisons_watermark, campaign_index.watermark
    if since != until:
        judgments = await load_campaign_judgments_between_watermarks(connection, assignment, since, until)
        add_comparisons_of_hits_to_log(comparison_log, assignment, judgments)
        campaign_index.comparisons_watermark = until
    await fit_comparisons_if_due(comparison_log)


async def fit_comparisons_if_due(comparison_log: ComparisonLog) -> None:
    """Fit the posterior of the comparisons in a thread if that is due.

    After a failure the HIT is drawn from what was known before, and the next request tries again.
    """
    if (fit := comparison_log.begin_due_fit_and_return_function_or_none()) is None:
        return
    try:
        fitted = await asyncio.to_thread(fit)
    except BaseException as error:  # also when the request is given up
        comparison_log.forget_begun_fit()
        if not isinstance(error, Exception):
            raise
        log.exception("The posterior of comparisons could not be fitted; the next request tries again")
    else:
        comparison_log.replace_posterior_by_fitted_one(*fitted)


async def load_campaign_judgments_between_watermarks(
    connection: Driver, assignment: AssignmentState, since: str | None, until: str
) -> dict[str, NumberColumn]:
    """Return the judgments written between two watermarks, or all until the second one, in order."""
    arguments = assignment.campaign_id, 0, None, since, until, None, 0
    return columns_sorted_by_seq(
        await fetch_array_by_column_on_driver(
            connection, FIND_NEW_JUDGMENTS, arguments, seq="i8", annotator="i8", item="i4", value="f8"
        )
    )


def add_comparisons_of_hits_to_log(
    comparison_log: ComparisonLog, campaign: AssignmentState, judgments: dict[str, NumberColumn]
) -> None:
    """Add the comparisons of every two items that were judged in one HIT; another request may have added some."""
    if not len(judgments["seq"]):
        return
    hits = np.unique(judgments["seq"], return_inverse=True)[1]
    (criterion,) = campaign.criteria  # the rule refuses several
    shares = criterion.design.values_to_points(judgments["value"], hits) / MAX_POINTS
    ties = criterion.design.equal_means == "tie"
    comparison_log.add_hits(judgments["seq"], judgments["item"], shares, tie_margin=criterion.tie_margin, ties=ties)


async def load_implied_pair_filter_or_none(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> ImpliedPairFilter | None:
    """Return the filter of pairs that this annotator's answers imply; None if implied pairs are asked as well."""
    if assignment.implied_asked_percent is None:
        return None
    own_answers = campaign_index.own_answers.pop(assignment.annotator_id, None) or make_empty_own_history(assignment)
    if not await try_to_read_all_new_own_answers(connection, assignment, own_answers):
        own_answers = make_empty_own_history(assignment)
        await try_to_read_all_new_own_answers(connection, assignment, own_answers)
    own_answers.implied_pairs.excluded_items = assignment.not_judged or ()
    campaign_index.own_answers[assignment.annotator_id] = own_answers
    return own_answers.implied_pairs


def make_empty_own_history(assignment: AssignmentState) -> OwnAnswerHistory:
    return OwnAnswerHistory(
        ImpliedPairFilter(
            Implications(), assignment.seed, assignment.annotator_id, assignment.implied_asked_percent or 0
        )
    )


async def try_to_read_all_new_own_answers(
    connection: Driver, assignment: AssignmentState, own_answers: OwnAnswerHistory
) -> bool:
    """Read new answers into the history. Return False if one was missed.

    An annotator who answers in two places at once may store an answer after one with a higher number.
    """
    parameters = {
        "campaign": assignment.campaign_id,
        "annotator": assignment.annotator_id,
        "after": own_answers.last_seq,
    }
    rows = await fetch_rows(connection, SELECT_OWN_ANSWERS, parameters, OwnAnswer)
    if len(rows) > MAX_ANSWERS_ON_EVENT_LOOP:
        await asyncio.to_thread(add_new_own_answers, own_answers, rows, assignment.design)
    else:
        add_new_own_answers(own_answers, rows, assignment.design)
    return own_answers.answer_count >= assignment.hits_answered


def add_new_own_answers(own_answers: OwnAnswerHistory, rows: Sequence[OwnAnswer], design: Design) -> None:
    """Add answers to the history, except those that a concurrent request has already added."""
    for row in rows:
        if row.seq > own_answers.last_seq:
            own_answers.last_seq, own_answers.answer_count = row.seq, own_answers.answer_count + 1
            if row.counts:
                response = Response.from_stored(
                    row.seq, own_answers.implied_pairs.annotator, row.hit_items, row.hit_values
                )
                own_answers.implied_pairs.implications.add_answer(
                    response.items, design.values_to_scale_shares(response.values)
                )
