"""Annotators of a campaign as researchers see them: their work, and whether they are held or excluded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from cachetools import LRUCache
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import fetch_array_by_column
from app.designs.campaign import Campaign
from app.quality.checks import CheckOutcome, load_check_outcomes
from app.quality.inputs import load_ids_of_annotators_answering_since
from app.quality.listing_options import AnnotatorSort
from app.quality.value_histograms import histogram_bin_count_or_zero, histogram_bin_of_each_value
from app.quality.work_time import (
    MIN_TASKS_FOR_HOURLY_PAY,
    MIN_USUAL_SECONDS,
    is_faster_than_reading,
    total_work_seconds,
)
from app.record.changes import Watermark, poll_changes
from app.record.responses import COUNTING_RESPONSES_CONDITION, LAST_DECISION_SQL, criterion_values_sql

MAX_CAMPAIGNS_WITH_MEDIANS = 50

# Counted to the first answer only: a later change of it takes no HIT time.
SECONDS_TO_ANSWER = "CASE WHEN r.replaces IS NULL THEN extract(epoch FROM r.received_at - h.issued_at)::float8 END"

# Only answers given in Easel: the time of imported answers is unknown.
JOIN_LEASED_HITS = "JOIN hits h ON h.campaign_id = r.campaign_id AND h.id = r.hit_id AND h.leader IS NOT NULL"

FROM_OWN_RESPONSES = "FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id"

HAS_ANSWERED_OR_IS_BLOCKED = f"(a.barred IS NOT NULL OR EXISTS (SELECT {FROM_OWN_RESPONSES}))"

# Sort keys, the largest first. Each reads as little as possible of all annotators. Sorting by seconds would read every
# answer, so `MedianSecondsCache` keeps the medians.
ANNOTATOR_SORT_SQL: dict[AnnotatorSort, str] = {
    "name": "-a.number",
    "answers": f"(SELECT count(*) {FROM_OWN_RESPONSES} AND r.replaces IS NULL)",
    "last": f"(SELECT max(r.received_at) {FROM_OWN_RESPONSES})",
    "standing": "a.barred_at",
}

LIST_ANNOTATORS_TEMPLATE = """
    SELECT a.id, 'A' || a.number AS name, a.pseudonym, a.platform, a.created_at, a.barred, a.barred_reason,
           a.barred_by, a.barred_at, a.place
    FROM (
        SELECT a.*, row_number() OVER (ORDER BY {key} {way} NULLS LAST, a.id) AS place
        FROM (SELECT *, row_number() OVER (ORDER BY id) AS number FROM annotators WHERE campaign_id = :campaign) AS a
    ) AS a
    WHERE (CAST(:only AS bigint[]) IS NULL OR a.id = ANY(:only)) AND (:with_early_leavers OR {answered})
    ORDER BY a.place LIMIT :limit OFFSET :offset
"""

LIST_ANNOTATORS_BY_SORT = {
    (sorting, rising): text(
        LIST_ANNOTATORS_TEMPLATE.format(key=key, way="ASC" if rising else "DESC", answered=HAS_ANSWERED_OR_IS_BLOCKED)
    )
    for sorting, key in ANNOTATOR_SORT_SQL.items()
    for rising in (False, True)
}

LOAD_MEDIAN_SECONDS = text(f"""
    SELECT r.annotator_id AS id, percentile_cont(0.5) WITHIN GROUP (ORDER BY {SECONDS_TO_ANSWER}) AS seconds
    FROM responses r {JOIN_LEASED_HITS}
    WHERE r.campaign_id = :campaign AND r.replaces IS NULL
    AND (CAST(:those AS bigint[]) IS NULL OR r.annotator_id = ANY(:those)) GROUP BY 1
""")

SUMMARIZE_ANSWERS = text(f"""
    SELECT a.id, count(*) FILTER (WHERE a.first) AS answers, count(*) FILTER (WHERE a.counts) AS counted,
           max(a.received_at) AS last_at,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY a.seconds) AS seconds,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY a.seconds / a.items)
               FILTER (WHERE a.source IN ('page', 'form')) AS seconds_per_item,
           array_agg(a.seconds) FILTER (WHERE a.seconds IS NOT NULL) AS times, avg(a.changes) AS changes
    FROM (
        SELECT r.annotator_id AS id, r.received_at, r.counts, r.source, r.replaces IS NULL AS first,
               {SECONDS_TO_ANSWER} AS seconds, greatest(cardinality(r.items) - :always_shown, 1) AS items,
               (SELECT avg(CAST(c AS float8)) FROM jsonb_array_elements_text(r.telemetry -> 'changes') AS c) AS changes
        FROM (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses
              WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[]))) AS r
        LEFT JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id AND h.leader IS NOT NULL
    ) AS a
    GROUP BY a.id
""")

# The usual time of a HIT, by the last 1,000 answers.
LOAD_USUAL_SECONDS = text(f"""
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a.seconds) FROM (
        SELECT {SECONDS_TO_ANSWER} AS seconds FROM responses r {JOIN_LEASED_HITS}
        WHERE r.campaign_id = :campaign AND r.replaces IS NULL ORDER BY r.seq DESC LIMIT 1000
    ) AS a
""")

# As arrays, because a page of annotators may have given a million values.
LOAD_ANNOTATOR_VALUES = f"""
    SELECT r.seq, r.annotator_id, given.value FROM responses r
    CROSS JOIN LATERAL unnest({criterion_values_sql("0", "r")}) AS given (value)
    WHERE r.campaign_id = $1 AND r.annotator_id = ANY(CAST($2 AS bigint[])) AND given.value <> 'NaN'
"""

LOAD_FINDING_TEXTS = text("""
    SELECT annotator_id AS id, array_agg(said ORDER BY id) AS said FROM findings
    WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[])) GROUP BY 1
""")

# Annotators who declined or failed an onboarding step at their last try.
LOAD_FAILED_VISITS = text("""
    SELECT id, min(outcome) AS outcome FROM (
        SELECT DISTINCT ON (annotator_id, step) annotator_id AS id, outcome FROM visits
        WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[]))
        ORDER BY annotator_id, step, version DESC
    ) AS last WHERE outcome IN ('declined', 'failed', 'full') GROUP BY 1
""")

LIST_ANNOTATOR_IDS = text(f"""
    SELECT a.id FROM annotators a WHERE a.campaign_id = :campaign
    AND (:with_early_leavers OR {HAS_ANSWERED_OR_IS_BLOCKED})
""")
COUNT_ANNOTATORS = text("SELECT count(*) FROM annotators WHERE campaign_id = :campaign")
COUNT_ANNOTATORS_WITHOUT_ANSWER = text(
    f"SELECT count(*) FROM annotators a WHERE a.campaign_id = :campaign AND NOT {HAS_ANSWERED_OR_IS_BLOCKED}"
)

FIND_UNAPPLIED_DECISIONS = text(f"""
    SELECT EXISTS (SELECT FROM decisions WHERE campaign_id = :campaign
                   AND seq > {LAST_DECISION_SQL.format(campaign=":campaign")})
""")


@dataclass(frozen=True)
class AnnotatorLine:
    """An annotator with a summary of their work. Values are None where they are unknown.

    Attributes:
        barred: How the annotator is blocked, `held` or `excluded`, with the reason, the person and the time.
        answers: Number of HITs answered.
        counted: Number of answered HITs that no decision leaves out.
        seconds: Median time from getting a HIT to its first answer.
        hours: Time at work, as `total_work_seconds` counts it.
        pay_per_hour: Pay for these hours, in the campaign's currency; None for fewer than `MIN_TASKS_FOR_HOURLY_PAY`
            tasks.
        is_faster_than_reading: Whether these times are shorter than anyone needs to read and answer.
        changes: Mean number of changes of an item's value after it was first given.
        histogram: Number of values in each tenth of the scale, or of each class; empty where values are ranks.
        checks: Number of gold and attention items answered.
        checks_met: Number of these that were answered as expected.
        findings: Findings of rules, as sentences.
        left: `declined` if the annotator did not consent, `failed` if they did not pass the test.

    """

    id: int
    name: str
    pseudonym: str
    platform: str
    arrived_at: datetime
    barred: str | None
    barred_reason: str | None
    barred_by: str | None
    barred_at: datetime | None
    answers: int = 0
    counted: int = 0
    last_at: datetime | None = None
    seconds: float | None = None
    hours: float | None = None
    pay_per_hour: float | None = None
    is_faster_than_reading: bool = False
    changes: float | None = None
    histogram: Sequence[int] = ()
    checks: int = 0
    checks_met: int = 0
    findings: Sequence[str] = ()
    left: str | None = None


@dataclass
class MedianSecondsCache:
    """Median seconds of all annotators, kept for the campaigns whose annotators were last sorted by them. After new
    answers, only the annotators who gave them are read again.
    """

    cache: LRUCache[int, tuple[Watermark, dict[int, float]]] = field(
        default_factory=lambda: LRUCache(MAX_CAMPAIGNS_WITH_MEDIANS)
    )

    async def load_median_seconds_by_annotator(
        self, connection: AsyncConnection, campaign_id: int
    ) -> Mapping[int, float]:
        """Return the median seconds by annotator id, as of now."""
        old_watermark, medians = self.cache.get(campaign_id, (None, {}))
        watermark, first_new_seq, since = await poll_changes(connection, campaign_id, old_watermark)
        if first_new_seq is not None:
            annotator_ids = (
                None
                if since is None
                else [*await load_ids_of_annotators_answering_since(connection, campaign_id, first_new_seq)]
            )
            rows = await connection.execute(LOAD_MEDIAN_SECONDS, {"campaign": campaign_id, "those": annotator_ids})
            medians = ({} if since is None else medians) | {row.id: row.seconds for row in rows}
        self.cache[campaign_id] = watermark, medians
        return medians


async def load_plausible_median_seconds_or_none(connection: AsyncConnection, campaign_id: int) -> float | None:
    """Load the median time of an answered HIT in seconds; None if it is unknown, or faster than people are."""
    seconds = (await connection.execute(LOAD_USUAL_SECONDS, {"campaign": campaign_id})).scalar()
    return seconds if seconds and seconds >= MIN_USUAL_SECONDS else None


async def count_annotators(connection: AsyncConnection, campaign_id: int) -> int:
    return int((await connection.execute(COUNT_ANNOTATORS, {"campaign": campaign_id})).scalar_one())


async def count_annotators_without_answer(connection: AsyncConnection, campaign_id: int) -> int:
    """Return the number of annotators who left before their first answer, and about whom nothing was decided."""
    return int((await connection.execute(COUNT_ANNOTATORS_WITHOUT_ANSWER, {"campaign": campaign_id})).scalar_one())


async def are_decisions_missing_in_posteriors(connection: AsyncConnection, campaign_id: int) -> bool:
    """Return whether there are decisions that the posteriors do not include yet."""
    return bool((await connection.execute(FIND_UNAPPLIED_DECISIONS, {"campaign": campaign_id})).scalar_one())


async def load_annotator_lines(
    connection: AsyncConnection,
    campaign: Campaign,
    *,
    sorting: AnnotatorSort = "name",
    rising: bool = False,
    limit: int,
    offset: int = 0,
    annotator_id: int | None = None,
    median_seconds: MedianSecondsCache | None = None,
    with_early_leavers: bool = True,
) -> list[AnnotatorLine]:
    """Return a page of annotators.

    Args:
        connection: The connection to read with.
        campaign: The campaign's row.
        sorting: The sort key. Sorted by name, A1 comes first; otherwise the largest value does.
        rising: Reverse the order.
        limit: Lines per page.
        offset: Lines before this page.
        annotator_id: Return only this annotator.
        median_seconds: Cache of median seconds, used for sorting by them.
        with_early_leavers: Include annotators who left before their first answer.

    """
    annotator_ids = None if annotator_id is None else [annotator_id]
    if sorting == "seconds":
        order = await load_annotator_ids_sorted_by_median_seconds(
            connection,
            campaign.id,
            median_seconds or MedianSecondsCache(),
            is_ascending=rising,
            with_early_leavers=with_early_leavers,
        )
        annotator_ids, offset, sorting = order[offset : offset + limit], 0, "name"
    page_parameters = {
        "campaign": campaign.id,
        "limit": limit,
        "offset": offset,
        "only": annotator_ids,
        "with_early_leavers": with_early_leavers,
    }
    lines = [
        annotator_line_from_row(row)
        for row in await connection.execute(LIST_ANNOTATORS_BY_SORT[sorting, rising], page_parameters)
    ]
    if annotator_ids is not None:
        lines.sort(key=lambda line: annotator_ids.index(line.id))
    line_ids = [line.id for line in lines]
    parameters = {"campaign": campaign.id, "those": line_ids}
    summary_parameters = {**parameters, "always_shown": len(campaign.design.always_shown)}
    answer_summaries = {row.id: row for row in await connection.execute(SUMMARIZE_ANSWERS, summary_parameters)}
    finding_texts = {row.id: row.said for row in await connection.execute(LOAD_FINDING_TEXTS, parameters)}
    failed_visits = {row.id: row.outcome for row in await connection.execute(LOAD_FAILED_VISITS, parameters)}
    histograms_by_annotator = await load_bin_counts_of_first_criterion_by_annotator(connection, campaign, line_ids)
    usual_seconds = (await connection.execute(LOAD_USUAL_SECONDS, parameters)).scalar()
    complete_lines = [
        replace(
            annotator_line_with_statistics(
                campaign, line, answer_summaries, finding_texts, histograms_by_annotator, usual_seconds=usual_seconds
            ),
            left=failed_visits.get(line.id),
        )
        for line in lines
    ]
    return annotator_lines_with_check_counts(complete_lines, await load_check_outcomes(connection, campaign, line_ids))


async def load_annotator_ids_sorted_by_median_seconds(
    connection: AsyncConnection,
    campaign_id: int,
    median_seconds: MedianSecondsCache,
    *,
    is_ascending: bool,
    with_early_leavers: bool,
) -> list[int]:
    """Return the ids of all annotators, the slowest first unless `is_ascending`; annotators without a known time come
    last.
    """
    seconds_by_annotator, direction = (
        await median_seconds.load_median_seconds_by_annotator(connection, campaign_id),
        1 if is_ascending else -1,
    )
    parameters = {"campaign": campaign_id, "with_early_leavers": with_early_leavers}
    annotator_ids = (await connection.execute(LIST_ANNOTATOR_IDS, parameters)).scalars()
    return sorted(
        annotator_ids,
        key=lambda number: (
            number not in seconds_by_annotator,
            direction * seconds_by_annotator.get(number, 0.0),
            number,
        ),
    )


def annotator_line_from_row(row: Row[Any]) -> AnnotatorLine:
    names = ("id", "name", "pseudonym", "platform", "barred", "barred_reason", "barred_by", "barred_at")
    return AnnotatorLine(arrived_at=row.created_at, **{name: getattr(row, name) for name in names})


def annotator_line_with_statistics(
    campaign: Campaign,
    line: AnnotatorLine,
    answer_summaries: Mapping[int, Row[Any]],
    finding_texts: Mapping[int, Sequence[str]],
    histograms_by_annotator: Mapping[int, Sequence[int]],
    *,
    usual_seconds: float | None,
) -> AnnotatorLine:
    names = ("answers", "counted", "last_at", "seconds", "changes")
    summary = answer_summaries.get(line.id)
    known_fields = {name: getattr(summary, name) for name in names} if summary else {}
    if campaign.rehearsal_of is not None:  # simulated annotators take no time
        known_fields.pop("seconds", None)
    elif summary and summary.times:
        known_fields["hours"] = total_work_seconds(summary.times, usual_seconds) / 3600
        known_fields["is_faster_than_reading"] = is_faster_than_reading(
            summary.seconds, summary.seconds_per_item, len(summary.times)
        )
        has_enough_tasks = len(summary.times) >= MIN_TASKS_FOR_HOURLY_PAY
        if known_fields["hours"] and has_enough_tasks and campaign.pay_per_hit:
            known_fields["pay_per_hour"] = campaign.pay_per_hit * len(summary.times) / known_fields["hours"]
    return replace(
        line,
        **known_fields,
        findings=finding_texts.get(line.id, ()),
        histogram=histograms_by_annotator.get(line.id, ()),
    )


def annotator_lines_with_check_counts(
    lines: Sequence[AnnotatorLine], outcomes: Sequence[CheckOutcome]
) -> list[AnnotatorLine]:
    """Return the lines with the number of checks answered and of checks met."""
    check_counts, met_counts = (
        Counter(outcome.annotator_id for outcome in outcomes),
        Counter(outcome.annotator_id for outcome in outcomes if outcome.met),
    )
    return [replace(line, checks=check_counts[line.id], checks_met=met_counts[line.id]) for line in lines]


async def load_bin_counts_of_first_criterion_by_annotator(
    connection: AsyncConnection, campaign: Campaign, annotator_ids: Sequence[int]
) -> dict[int, list[int]]:
    """Return by annotator id how many of their values for the first criterion are in each tenth of the scale, or of
    each class.
    """
    design = campaign.criteria[0].design
    if design.value_kind == "order" or not annotator_ids:
        return {}
    arguments = (campaign.id, [*annotator_ids])
    given = await fetch_array_by_column(
        connection, LOAD_ANNOTATOR_VALUES, arguments, seq="i8", annotator="i8", value="f8"
    )
    hit_index = np.unique(given["seq"], return_inverse=True)[1]
    bin_count, bin_index = (
        histogram_bin_count_or_zero(design),
        histogram_bin_of_each_value(design, given["value"], hit_index),
    )
    return {
        int(number): np.bincount(bin_index[given["annotator"] == number], minlength=bin_count).tolist()
        for number in np.unique(given["annotator"])
    }
