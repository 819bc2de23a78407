"""Read a campaign's `Answers` from the database: every judgment of one snapshot, as arrays."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.result_types import Answers, AnyArray
from app.annotation.onboarding.entry_questions import parse_only_questions_with_choices
from app.annotation.onboarding.profile_answers import load_entry_answers_by_annotator
from app.database.bulk import NumberColumn, fetch_array_by_column
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.designs.several_labels import asks_yes_or_no
from app.designs.unjudged import UNJUDGED_KEY
from app.inference.ground.arrays import Array, Integers
from app.record.answer_seconds import load_answer_duration_columns
from app.record.changes import Watermark
from app.record.responses import COUNTING_RESPONSES_CONDITION, load_judgment_column_by_name

ITEM_ROWS_PER_BATCH = 5_000
ANSWERED_HITS_PER_BATCH = 50_000  # about 20 MB of numbers

COUNT_ITEMS_OF_CAMPAIGN = text("SELECT count(*) FROM items WHERE campaign_id = :campaign")

FIND_ITEMS_WITH_POSTERIORS = text("""
    SELECT i.external_id, i.shown, i.fields->>'system' AS system, i.fields->>'segment' AS segment,
           priors.state AS prior, p.state
    FROM items i JOIN priors USING (campaign_id, number) LEFT JOIN current_posteriors p
    ON p.campaign_id = i.campaign_id AND p.number = i.number AND p.criterion = :criterion
    WHERE i.campaign_id = :campaign ORDER BY i.number
""")

HAS_ITEM_WITH_COLUMNS = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign
                   AND (SELECT bool_and(fields->>name IS NOT NULL) FROM unnest(CAST(:columns AS text[])) AS name))
""")

# Items are numbered from 0 without gaps. Annotators are counted only up to the number that a page shows.

FIND_NAMED_ANNOTATORS = text("SELECT id, pseudonym, name FROM named_annotators WHERE campaign_id = :campaign")


SELECT_SEGMENTS_OF_RESPONSES = """
    SELECT seq, segment FROM responses WHERE campaign_id = $1 AND segment IS NOT NULL ORDER BY seq
"""

# Number of items that each annotator could not judge, in the answers that count.
COUNT_UNJUDGED_BY_ANNOTATOR = text(f"""
    SELECT annotator_id, CAST(count(*) AS int) AS items FROM responses, jsonb_object_keys(extra -> '{UNJUDGED_KEY}')
    WHERE campaign_id = :campaign AND extra ? '{UNJUDGED_KEY}' AND {COUNTING_RESPONSES_CONDITION} GROUP BY 1 ORDER BY 1
""")


async def has_answers(connection: AsyncConnection, campaign: Campaign) -> bool:
    statement = text("SELECT EXISTS (SELECT FROM responses WHERE campaign_id = :campaign)")
    return bool(await connection.scalar(statement, {"campaign": campaign.id}))


async def count_items_of_campaign(connection: AsyncConnection, campaign_id: int) -> int:
    return int((await connection.execute(COUNT_ITEMS_OF_CAMPAIGN, {"campaign": campaign_id})).scalar_one())


async def has_item_with_all_columns(connection: AsyncConnection, campaign: Campaign, columns: Sequence[str]) -> bool:
    """Return whether an item has all of these columns."""
    return bool(await connection.scalar(HAS_ITEM_WITH_COLUMNS, {"campaign": campaign.id, "columns": [*columns]}))


async def load_campaign_answers(
    connection: AsyncConnection, criterion: Criterion[Campaign], same_by_other_criterion: Answers | None = None
) -> Answers:
    """Return all answers by a criterion; `connection` is a snapshot.

    What does not depend on the criterion is shared with the same answers by another one, if these are given. Memory: 32
    bytes per judgment, 8 more for each of several criteria, and the items' texts.
    """
    parameters = {"campaign": criterion.campaign.id}
    items: list[Row[Any]] = []
    item_stream = await connection.stream(FIND_ITEMS_WITH_POSTERIORS, parameters | {"criterion": criterion.number})
    async for rows in item_stream.partitions(ITEM_ROWS_PER_BATCH):
        items += rows
    annotators = {row.id: row for row in await connection.execute(FIND_NAMED_ANNOTATORS, parameters)}
    unjudged = None
    if criterion.campaign.cannot_be_judged:
        unjudged = {
            row.annotator_id: row.items for row in await connection.execute(COUNT_UNJUDGED_BY_ANNOTATOR, parameters)
        }
    pieces = [piece async for piece in stream_judgment_batches(connection, criterion)]
    answers = await asyncio.to_thread(build_answers_from_rows, criterion, items, annotators, pieces, unjudged)
    profile_answers = (
        await load_entry_answers_by_annotator(connection, criterion.campaign.id) if criterion.campaign.questions else {}
    )
    profile_by_pseudonym = {annotators[number].pseudonym: given for number, given in profile_answers.items()}
    answers_by_question = {
        question.name: [profile_by_pseudonym.get(pseudonym, {}).get(question.name) for pseudonym in answers.annotators]
        for question in parse_only_questions_with_choices(criterion.campaign.questions)
    }
    return replace(
        answers,
        hit_segments=await load_segment_of_each_hit_or_none(connection, criterion, answers),
        seconds=await load_seconds_of_hits_or_none(connection, criterion, answers),
        scores_by_criterion=same_by_other_criterion.scores_by_criterion
        if same_by_other_criterion
        else await load_scores_by_criterion(connection, criterion, answers),
        yes_or_no_criteria=[one.name for one in criterion.campaign.criteria if asks_yes_or_no(one.design)],
        profile_answers=answers_by_question,
    )


async def load_segment_of_each_hit_or_none(
    connection: AsyncConnection, criterion: Criterion[Campaign], answers: Answers
) -> Integers | None:
    """Return the segment of each HIT, (H,), if the items are systems; else None."""
    if not criterion.campaign.segment_count:
        return None
    rows = await fetch_array_by_column(
        connection, SELECT_SEGMENTS_OF_RESPONSES, (criterion.campaign.id,), seq="i8", segment="i4"
    )
    segments: Integers = rows["segment"][np.searchsorted(rows["seq"], answers.seq)].astype(np.intp)
    return segments


async def load_seconds_of_hits_or_none(
    connection: AsyncConnection, criterion: Criterion[Campaign], answers: Answers
) -> Array | None:
    """Return how long each answer took, (H,), NaN where it is unknown; None for designs that do not compare items."""
    if criterion.design.value_kind != "order":
        return None
    answer_seconds = await load_answer_duration_columns(connection, criterion.campaign.id)
    return seconds_of_responses_or_nan(answers.seq, answer_seconds["seq"], answer_seconds["seconds"])


def seconds_of_responses_or_nan(seq: Integers, known_seq: NumberColumn, known_seconds: NumberColumn) -> Array:
    """Return the seconds of the responses `seq`, (H,), in ascending order; NaN where they are not among the known."""
    seconds = np.full(len(seq), np.nan)
    places = np.searchsorted(seq, known_seq)
    is_match = places < len(seq)
    is_match[is_match] = seq[places[is_match]] == known_seq[is_match]
    seconds[places[is_match]] = known_seconds[is_match]
    return seconds


async def load_scores_by_criterion(
    connection: AsyncConnection, criterion: Criterion[Campaign], answers: Answers
) -> dict[str, Array]:
    """Return the scores of the same judgments by each criterion, by name.

    An annotator who cannot judge an item gives no score by any criterion.
    """
    scores: dict[str, Array] = {}
    for other in criterion.campaign.criteria if criterion.campaign.has_criteria else ():
        if other.number == criterion.number:
            scores[other.name] = answers.score
            continue
        values = [piece["value"] async for piece in stream_judgment_batches(connection, other)]
        scores[other.name] = await asyncio.to_thread(criterion_points_of_each_judgment, other.design, values, answers)
    return scores


def criterion_points_of_each_judgment(design: Design, value_batches: Sequence[Array], answers: Answers) -> Array:
    return design.values_to_points(np.concatenate([answers.score[:0], *value_batches]), answers.hit)


async def stream_judgment_batches(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    *,
    after_seq: int = 0,
    since_watermark: Watermark | None = None,
) -> AsyncIterator[dict[str, NumberColumn]]:
    """Stream the judgments of responses by a criterion.

    Args:
        connection: A snapshot.
        criterion: The criterion.
        after_seq: Number of the response after which to start.
        since_watermark: Watermark after which responses were written; None for all.

    """
    query: dict[str, Any] = {
        "since": since_watermark,
        "limit": ANSWERED_HITS_PER_BATCH,
        "criterion": criterion.number,
    }
    while len(
        (batch := await load_judgment_column_by_name(connection, criterion.campaign.id, after_seq=after_seq, **query))[
            "seq"
        ]
    ):
        yield batch
        after_seq = int(batch["seq"][-1])


def build_answers_from_rows(
    criterion: Criterion[Campaign],
    items: Sequence[Row[Any]],
    annotators: Mapping[int, Row[Any]],
    judgment_batches: Sequence[Mapping[str, AnyArray]],
    unjudged_counts: Mapping[int, int] | None = None,
) -> Answers:
    """Return `Answers` from rows of items and judgments in long form.

    Args:
        criterion: The criterion.
        items: Rows of all items.
        annotators: Names and pseudonyms by row id.
        judgment_batches: Columns of judgments, batch by batch.
        unjudged_counts: Number of items that each annotator could not judge, by row id; None if it was not offered.

    """
    empty_columns: dict[str, AnyArray] = {
        name: np.zeros(0, np.float64 if name == "value" else np.intp) for name in ("seq", "annotator", "item", "value")
    }
    columns = {
        name: np.concatenate([none, *(piece[name] for piece in judgment_batches)])
        for name, none in empty_columns.items()
    }
    seq, hit = np.unique(columns["seq"], return_inverse=True)
    annotator_ids, annotator = np.unique(columns["annotator"], return_inverse=True)
    design = criterion.design
    family, launched = criterion.law.family, bool(items) and items[0].state is not None
    return Answers(
        seq=seq,
        hit=hit,
        item=columns["item"].astype(np.intp),
        annotator=annotator,
        score=design.values_to_points(columns["value"], hit),
        value=columns["value"],
        value_kind=design.value_kind,
        classes=design.classes,
        always_shown=criterion.campaign.items_in_every_hit,
        fixed_items=criterion.campaign.always_shown if criterion.campaign.has_fixed_set else (),
        compares_pairs=design.compares_pairs,
        matches_by_score=criterion.campaign.rule.matches_by_score,
        ids=[row.external_id for row in items],
        shown=[row.shown for row in items],
        systems=[row.system for row in items],
        segments=[row.segment for row in items],
        annotators=[annotators[number].pseudonym for number in annotator_ids.tolist()],
        names=[annotators[number].name for number in annotator_ids.tolist()],
        law=criterion.campaign.update_law,
        prior=family.columns_of_item_states([row.prior or family.default_prior for row in items]),
        state=family.columns_of_item_states([row.state for row in items]) if launched else None,
        parameters=criterion.law_parameters,
        seed=criterion.campaign.seed,
        unjudged_counts=None
        if unjudged_counts is None
        else np.array([unjudged_counts.get(id_, 0) for id_ in annotator_ids.tolist()], np.intp),
        names_without_judgment=[annotators[id_].name for id_ in unjudged_counts or () if id_ not in annotator_ids],
    )
