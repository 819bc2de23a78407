"""Storage of posteriors: COPY for a whole new revision, then one UPDATE for the posteriors that answers change."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import NumberColumn, insert_number_arrays_as_rows_by_copy
from app.database.session import driver_of
from app.database.tables import posteriors
from app.designs.criteria_settings import MAX_CRITERIA
from app.inference.ground.arrays import Array, distinct_row_positions_with_codes
from app.inference.online.law import Columns, Law, LawBeliefs
from app.record import law_storage
from app.record.law_storage import Revision

POSTERIORS_PER_COPY = 50_000
MIN_ITEMS_IN_ARRAYS = 200  # scores of fewer are computed faster in plain floats, to the same bits
ALL_CRITERIA_ARRAY = f"{{{','.join(map(str, range(MAX_CRITERIA)))}}}"  # literal of a PostgreSQL array


def present_posteriors_condition_sql(campaign: str) -> str:
    """Return SQL for the posteriors `p` of a campaign's present revision, by its first criterion, without a join.

    All of the key but the item is known before the search, so the index is used whatever the statistics say.
    """
    return f"""
    p.campaign_id = {campaign} AND p.revision = (SELECT revision FROM campaigns WHERE id = {campaign})
    AND p.criterion = 0"""


PRESENT_POSTERIORS_CONDITION = present_posteriors_condition_sql(":campaign")


def deciding_score_and_variance_sql(campaign: str, deciding_criterion: str) -> str:
    """Return SQL for the score and variance that selection uses, for posteriors `p` by the first criterion.

    Args:
        campaign: SQL for the campaign's id.
        deciding_criterion: SQL for the number of the criterion that decides; where it is NULL, the variances of all
            criteria are added.

    """
    criteria_source = f"""
        FROM posteriors o WHERE o.campaign_id = {campaign} AND o.subject = p.subject AND o.revision = p.revision
        AND o.criterion = ANY(CASE WHEN {deciding_criterion} IS NULL THEN '{ALL_CRITERIA_ARRAY}'::smallint[]
                              ELSE ARRAY[{deciding_criterion}] END)"""
    return f"""
    SELECT CASE WHEN {deciding_criterion} > 0 THEN (SELECT o.score {criteria_source}) ELSE p.score END AS score,
           CASE WHEN {deciding_criterion} = 0 THEN p.variance
                ELSE (SELECT sum(o.variance ORDER BY o.criterion) {criteria_source}) END AS variance"""


# Set the values of :numbers, which ascend, and add judgments. :states holds their states one after another, :width
# floats each. The caller has locked the rows. The place of an item is looked up in the array: a join with the array
# compared each item with each other one, whatever the statistics said. `coalesce` around values of an array: Citus
# 13.2.2 crashes if such an expression alone is assigned in an UPDATE.
PLACE_SQL = "width_bucket(p.subject, CAST(:numbers AS int[]))"
UPDATE_POSTERIORS_SQL = f"""
    UPDATE posteriors p
    SET state = coalesce(
            (CAST(:states AS float8[]))[({PLACE_SQL} - 1) * CAST(:width AS int) + 1 : {PLACE_SQL} * :width]),
        score = coalesce((CAST(:score AS float8[]))[{PLACE_SQL}]),
        variance = coalesce((CAST(:variance AS float8[]))[{PLACE_SQL}]),
        judgments = p.judgments + (CAST(:more AS int[]))[{PLACE_SQL}]
    WHERE p.campaign_id = :campaign AND p.revision = :revision AND p.criterion = :criterion
    AND p.subject = ANY(CAST(:numbers AS int[]))
    RETURNING p.subject AS number, p.judgments"""

UPDATE_POSTERIORS = text(UPDATE_POSTERIORS_SQL)


def query_parameters_of_posterior_update(
    law: Law, numbers: Sequence[int], state: Columns, added_judgments: Sequence[int]
) -> dict[str, Any]:
    """Return the parameters of `UPDATE_POSTERIORS`; `numbers` ascend."""
    if len(numbers) >= MIN_ITEMS_IN_ARRAYS:
        columns = np.array(state)
        score, variance = law.family.score(*columns).tolist(), law.family.variance(*columns).tolist()
    else:
        score, variance = law.family.scores_and_variances(*state) if numbers else ([], [])
    rows = zip(*state, strict=True)
    return {
        "numbers": numbers,
        "states": list(chain.from_iterable(rows)),
        "width": len(state),
        "score": score,
        "variance": variance,
        "more": added_judgments,
    }


async def store_revision_with_posteriors_and_law_state(
    connection: AsyncConnection,
    revision: Revision,
    law: Law,
    beliefs: LawBeliefs,
    judgments: NumberColumn | None = None,
) -> None:
    """Store a revision: its posteriors and its law state. `judgments` counts those of each item, (N,); None is 0."""
    score, variance = await asyncio.to_thread(scores_and_variances, law, beliefs)
    columns = {"state": np.ascontiguousarray(beliefs.state.T), "score": score, "variance": variance}
    await insert_posteriors_in_pieces(
        connection, revision, columns if judgments is None else columns | {"judgments": judgments}
    )
    if law.layout:
        law_state = await asyncio.to_thread(beliefs.law_state_besides_posteriors)
        for piece in law_storage.iterate_law_state_in_item_batches(law_state):
            await law_storage.store_law_states(await driver_of(connection), revision, piece, layout=law.layout)


def scores_and_variances(law: Law, beliefs: LawBeliefs) -> tuple[Array, Array]:
    """Return score and variance of every item, (N,) each. Equal states are computed once: at launch most are equal."""
    first, distinct_index = distinct_row_positions_with_codes([*beliefs.state])
    state = beliefs.state[:, first]
    return law.family.score(*state)[distinct_index], law.family.variance(*state)[distinct_index]


async def insert_posteriors_in_pieces(
    connection: AsyncConnection, revision: Revision, columns: Mapping[str, NumberColumn]
) -> None:
    """Insert the posteriors of items 0 to N - 1, in pieces so that other requests do not wait."""
    count = len(columns["score"])
    for start in range(0, count, POSTERIORS_PER_COPY):
        piece = {name: column[start : start + POSTERIORS_PER_COPY] for name, column in columns.items()}
        subject = np.arange(start, min(start + POSTERIORS_PER_COPY, count), dtype=np.int32)
        keys: dict[str, NumberColumn] = {
            "campaign_id": np.full(len(subject), revision.campaign, np.int64),
            "revision": np.full(len(subject), revision.revision, np.int32),
            "criterion": np.full(len(subject), revision.criterion, np.int16),
            "subject": subject,
        }
        await insert_number_arrays_as_rows_by_copy(connection, posteriors, keys | piece)
