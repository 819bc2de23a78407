"""Inputs of rules: a campaign's annotators, read from its record."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, get_args

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import NumberColumn, fetch_array_by_column
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.inference.ground.arrays import Array, Integers, divide_or_nan
from app.inference.online.law import AnnotatorDescription
from app.inference.ratings.annotator_evidence import ScoredJudgments
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.checks import CheckKind, CheckOutcome, load_check_outcomes
from app.record import law_storage, responses
from app.record.answer_seconds import load_answer_duration_columns
from app.record.law_storage import Revision

MIN_ANSWERS_TO_DOUBT_CHECK = 5  # mostly by different people
MAX_RULE_JUDGMENTS = 3_000_000  # a longer record is read from its end

COUNTING_RESPONSES_SQL = responses.responses_that_count_condition_sql(
    "$1", responses.LAST_DECISION_SQL.format(campaign="$1")
)

# The first answer to a HIT, because a changed answer needs no new play.
LOAD_PLAYED_SHARES = f"""
    SELECT seq, annotator_id,
           CASE WHEN plays = 0 THEN 0 ELSE coalesce(heard / nullif(max(heard) OVER (PARTITION BY item), 0), 1) END
           AS played_share
    FROM (
        SELECT r.seq, r.annotator_id, shown.item, CAST(f.telemetry -> 'plays' ->> shown.place AS float8) AS plays,
               CAST(f.telemetry -> 'seconds_heard' ->> shown.place AS float8) AS heard
        FROM (SELECT * FROM responses WHERE campaign_id = $1 AND {COUNTING_RESPONSES_SQL}) AS r
        JOIN responses f ON f.campaign_id = r.campaign_id AND f.hit_id = r.hit_id AND f.replaces IS NULL
        CROSS JOIN LATERAL (
            SELECT item, CAST(place - 1 AS int) AS place FROM unnest(f.items) WITH ORDINALITY AS i (item, place)
        ) AS shown
        WHERE f.telemetry ? 'plays'
    ) AS played
    WHERE plays IS NOT NULL
"""

LIST_ANNOTATORS_SINCE = text(
    "SELECT DISTINCT annotator_id FROM responses WHERE campaign_id = :campaign AND seq >= :first"
)

FIND_LAST_SKIPPED_RESPONSE = text("""
    SELECT seq FROM responses WHERE campaign_id = :campaign ORDER BY seq DESC OFFSET :most LIMIT 1
""")

NO_SECONDS: Mapping[str, NumberColumn] = {name: np.zeros(0) for name in ("seq", "annotator", "seconds")}
NO_PLAYED_SHARES: Mapping[str, NumberColumn] = {name: np.zeros(0) for name in ("seq", "annotator", "played_share")}


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """Judgments and other facts of a campaign for one criterion.

    Attributes:
        judgments: Columns of the judgments that count, (J,) each.
        answer_seconds: Columns of the times of answers, (H,) each; empty except for the first criterion.
        random_answer_probabilities: Probability of answering at random, by annotator id, as the update law learned it,
            or a fit to all comparisons.
        check_outcomes: Outcomes of answered checks; empty except for the first criterion.
        played_shares: Columns of judged recordings and videos with a report, (P,) each; empty except for the first
            criterion.

    """

    judgments: Mapping[str, NumberColumn]
    answer_seconds: Mapping[str, NumberColumn]
    random_answer_probabilities: Mapping[int, float]
    check_outcomes: Sequence[CheckOutcome] = ()
    played_shares: Mapping[str, NumberColumn] = field(default_factory=lambda: NO_PLAYED_SHARES)


async def load_ids_of_annotators_answering_since(
    connection: AsyncConnection, campaign_id: int, first_seq: int
) -> set[int]:
    """Return the ids of annotators with an answer numbered `first_seq` or higher."""
    annotator_ids = await connection.scalars(LIST_ANNOTATORS_SINCE, {"campaign": campaign_id, "first": first_seq})
    return set(annotator_ids)


async def load_rule_inputs(connection: AsyncConnection, criterion: Criterion[Campaign]) -> RuleInputs:
    """Read all inputs of rules for one criterion. The reads see one state of the record, or
    nearly so.
    """
    campaign, max_answers = criterion.campaign, MAX_RULE_JUDGMENTS // max(1, criterion.campaign.items_per_hit)
    last_skipped_seq = (
        await connection.execute(FIND_LAST_SKIPPED_RESPONSE, {"campaign": campaign.id, "most": max_answers})
    ).scalar()
    judgments = await responses.load_judgment_column_by_name(
        connection, campaign.id, after_seq=last_skipped_seq or 0, limit=2 * max_answers, criterion=criterion.number
    )
    annotator_ids = np.unique(judgments["annotator"]).tolist()
    estimates_by_annotator = await load_learned_annotator_descriptions_by_id(connection, criterion, annotator_ids)
    random_answer_probabilities = {number: estimate.at_random for number, estimate in estimates_by_annotator.items()}
    if criterion.number:
        return RuleInputs(judgments, NO_SECONDS, random_answer_probabilities)
    arguments = (campaign.id,)
    seconds = await load_answer_duration_columns(connection, campaign.id)
    checks = await load_check_outcomes(connection, campaign)
    if not campaign.are_playbacks_reported:
        return RuleInputs(judgments, seconds, random_answer_probabilities, checks)
    played = await fetch_array_by_column(
        connection, LOAD_PLAYED_SHARES, arguments, seq="i8", annotator="i8", played_share="f8"
    )
    return RuleInputs(judgments, seconds, random_answer_probabilities, checks, played)


async def load_learned_annotator_descriptions_by_id(
    connection: AsyncConnection, criterion: Criterion[Campaign], annotator_ids: Sequence[int]
) -> dict[int, AnnotatorDescription]:
    """Return what the campaign's law has learned of annotators, by id. Most laws learn nothing of them."""
    law = criterion.law
    if not law.layout:
        return {}
    driver, revision = await driver_of(connection), Revision.present_revision_of_criterion(criterion)
    campaign_state = await law_storage.load_law_state_of_campaign_or_none(driver, revision, layout=law.layout)
    return await asyncio.to_thread(
        law.annotator_description_by_number,
        await law_storage.load_annotator_state_by_number(driver, revision, annotator_ids),
        campaign_state or [],
    )


def build_behaviours_by_annotator(design: Design, inputs: RuleInputs) -> dict[int, AnnotatorBehaviour]:
    annotator_ids, annotator_index = np.unique(inputs.judgments["annotator"], return_inverse=True)
    order = np.argsort(annotator_index, kind="stable")
    ends = np.searchsorted(annotator_index[order], np.arange(len(annotator_ids) + 1))
    columns = behaviour_column_by_name(design, inputs.judgments, annotator_index, len(annotator_ids))
    sorted_columns = {name: column[order] for name, column in columns.items()}
    seconds = split_column_by_annotator(inputs.answer_seconds, "seconds")
    played_shares = split_column_by_annotator(inputs.played_shares, "played_share")
    checks_by_annotator: dict[int, list[CheckOutcome]] = {}
    for outcome in outcomes_without_probably_wrong_checks(inputs.check_outcomes):
        checks_by_annotator.setdefault(outcome.annotator_id, []).append(outcome)
    behaviours = {}
    for place, number in enumerate(annotator_ids.tolist()):
        own_rows = slice(ends[place], ends[place + 1])
        own_columns = {name: column[own_rows] for name, column in sorted_columns.items()}
        own_columns["hit"] = np.unique(own_columns["hit"], return_inverse=True)[1]
        behaviours[number] = AnnotatorBehaviour(
            answer_kind=design.value_kind,
            class_count=len(design.classes),
            ties=design.equal_means == "tie",
            seconds=seconds.get(number, np.zeros(0)),
            played_share=played_shares.get(number, np.zeros(0)),
            random_answer_probability=inputs.random_answer_probabilities.get(number, nan),
            **check_columns_of_annotator(checks_by_annotator.get(number, ())),
            **own_columns,
        )
    return behaviours


def outcomes_without_probably_wrong_checks(outcomes: Sequence[CheckOutcome]) -> list[CheckOutcome]:
    """Return the outcomes without checks that most people fail, which are probably wrong themselves."""
    wrong_checks = probably_wrong_check_numbers(outcomes)
    return [outcome for outcome in outcomes if wrong_checks.isdisjoint(outcome.check_numbers)]


def probably_wrong_check_numbers(outcomes: Sequence[CheckOutcome]) -> set[int]:
    """Return the numbers of checks failed by more than half of at least `MIN_ANSWERS_TO_DOUBT_CHECK` answers."""
    failed: Counter[int] = Counter()
    shown: Counter[int] = Counter()
    for outcome in outcomes:
        shown.update(outcome.check_numbers)
        failed.update(() if outcome.met else outcome.check_numbers)
    return {
        number for number in shown if shown[number] >= MIN_ANSWERS_TO_DOUBT_CHECK and 2 * failed[number] > shown[number]
    }


def check_columns_of_annotator(outcomes: Sequence[CheckOutcome]) -> dict[str, Any]:
    """Return the columns of `AnnotatorBehaviour` about one annotator's checks, in the order of their answers."""
    columns: dict[str, Any] = {}
    for kind in get_args(CheckKind):
        own = [outcome for outcome in outcomes if outcome.kind == kind]
        columns[f"{kind}_met"] = np.array([outcome.met for outcome in own], np.bool_)
        columns[f"{kind}_guess_chances"] = np.array([outcome.guess_chance for outcome in own], np.float64)
    return columns


def split_column_by_annotator(columns: Mapping[str, NumberColumn], name: str) -> dict[int, Array]:
    """Return the values of the column `name` by annotator, in the order of their answers."""
    annotator_ids, annotator_index = np.unique(columns["annotator"], return_inverse=True)
    order = np.lexsort((columns["seq"], annotator_index))
    parts = np.split(
        columns[name][order],
        np.searchsorted(annotator_index[order], np.arange(1, len(annotator_ids))),
    )
    return dict(zip(annotator_ids.tolist(), parts, strict=False))


def behaviour_column_by_name(
    design: Design, judgments: Mapping[str, NumberColumn], annotator_index: Integers, annotator_count: int
) -> dict[str, Any]:
    """Return the columns of `AnnotatorBehaviour` for all J judgments, (J,) each."""
    items, values = judgments["item"].astype(np.intp), judgments["value"]
    hit = np.unique(judgments["seq"], return_inverse=True)[1]
    share = values if design.value_kind == "classes" else design.values_to_points(values, hit) / 100.0
    peer_scores = ScoredJudgments.from_arrays(
        items, annotator_index, share, int(items.max(initial=-1)) + 1, annotator_count
    )
    other_judge_counts = np.rint(peer_scores.sum_of_others_on_item_of_each_judgment(np.ones(len(share)))).astype(
        np.intp
    )
    others_share = (
        class_of_most_others_for_each_judgment(peer_scores, len(design.classes))
        if design.value_kind == "classes"
        else divide_or_nan(
            peer_scores.sum_of_others_on_item_of_each_judgment(share), other_judge_counts.astype(np.float64)
        )
    )
    return {
        "hit": hit,
        "item": items,
        "share": share,
        "others_share": others_share,
        "other_judge_counts": other_judge_counts,
    }


def class_of_most_others_for_each_judgment(peer_scores: ScoredJudgments, class_count: int) -> Array:
    """Return for each judgment the class that most others chose for its item, (J,); among equals the first."""
    counts = np.column_stack(
        [
            peer_scores.sum_of_others_on_item_of_each_judgment((peer_scores.scores == number) * 1.0)
            for number in range(class_count)
        ]
    )
    return np.asarray(counts.argmax(axis=1), np.float64)
