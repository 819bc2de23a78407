"""Verification: all responses, replayed from the priors, must give every stored posterior bit for bit."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import NumberColumn, fetch_array_by_column
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict
from app.inference.online.law import Law, LawBeliefs, LawState
from app.record import law_storage, responses, unjudged
from app.record.campaign_law import convert_judging_responses_to_hits_of_law
from app.record.law_storage import Revision

REPLAYED_RESPONSES_PER_BATCH = 5_000
# Differences up to these count as rounding: relative, and absolute near 0. The arithmetic of an earlier version or of
# another system's mathematics library differs by about 1e-15, and after many answers by 1e-12.
ROUNDING_RELATIVE_TOLERANCE, ROUNDING_ABSOLUTE_TOLERANCE = 1e-9, 1e-12
MAX_MISMATCHES_SHOWN = 20

# Items without a posterior give NaN.
FIND_STORED_POSTERIORS = """
    SELECT {state}, coalesce(p.score, 'NaN'), coalesce(p.variance, 'NaN'), coalesce(p.judgments, -1),
           coalesce(p.unjudged, -1)
    FROM priors LEFT JOIN current_posteriors p
         ON p.campaign_id = priors.campaign_id AND p.number = priors.number AND p.criterion = $2
    WHERE priors.campaign_id = $1 ORDER BY priors.number
"""

FIND_PRIOR_COLUMNS = "SELECT {state} FROM priors WHERE campaign_id = $1 ORDER BY number"

FIND_ITEM_EXTERNAL_IDS = text("""
    SELECT number, external_id FROM items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[])) ORDER BY number
""")


# Checks in answered HITs without an answer, and answers to checks that no answered HIT showed.
COUNT_INCONSISTENT_CHECKS = text("""
    SELECT (SELECT count(*) FROM hit_checks h
            WHERE h.campaign_id = :campaign
            AND EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.hit_id)
            AND NOT EXISTS (SELECT 1 FROM check_answers a WHERE a.campaign_id = h.campaign_id
                            AND a.hit_id = h.hit_id AND a.check_number = h.check_number))
         + (SELECT count(*) FROM check_answers a
            WHERE a.campaign_id = :campaign AND NOT EXISTS (
                SELECT 1 FROM responses r JOIN hit_checks h ON h.campaign_id = r.campaign_id AND h.hit_id = r.hit_id
                WHERE r.campaign_id = a.campaign_id AND r.hit_id = a.hit_id AND h.check_number = a.check_number))
""")


@dataclass(frozen=True)
class Mismatch:
    """One stored number that differs from its replay. `criterion` is None in a campaign with one criterion."""

    number: int
    external_id: str
    column: str
    stored: float
    replayed: float
    criterion: str | None = None


@dataclass(frozen=True)
class Verification:
    """Result of a verification.

    Args:
        responses: Number of replayed responses.
        items: Number of compared items.
        mismatch_count: Number of all mismatches.
        mismatches: The first 20 of them.
        checks_amiss: Number of checks in answered HITs without an answer, and of answers without such a check.
        beyond_rounding: Number of mismatches larger than rounding.

    """

    responses: int
    items: int
    mismatch_count: int
    mismatches: list[Mismatch]
    checks_amiss: int = 0
    beyond_rounding: int = 0

    @property
    def has_no_mismatches(self) -> bool:
        return self.mismatch_count == 0 and self.checks_amiss == 0

    @property
    def has_only_rounding_mismatches(self) -> bool:
        """Return whether all mismatches are within rounding."""
        return self.mismatch_count > 0 and self.beyond_rounding == 0 and self.checks_amiss == 0


async def verify_by_replay_or_refuse(connection: AsyncConnection, campaign: Campaign) -> Verification:
    """Replay a launched campaign and compare. Pass a connection of `open_snapshot`: answers may come in meanwhile.

    Raises `Conflict`: `not_launched`, and `not_replayable` if stored responses cannot be applied at all.
    """
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: there is nothing to verify yet.", code="not_launched")
    verifications = [await verify_criterion_by_replay(connection, criterion) for criterion in campaign.criteria]
    count = sum(verification.mismatch_count for verification in verifications)
    mismatches = [mismatch for verification in verifications for mismatch in verification.mismatches]
    inconsistent_checks = (await connection.execute(COUNT_INCONSISTENT_CHECKS, {"campaign": campaign.id})).scalar_one()
    beyond_rounding_count = sum(verification.beyond_rounding for verification in verifications)
    return Verification(
        verifications[0].responses,
        verifications[0].items,
        count,
        mismatches[:MAX_MISMATCHES_SHOWN],
        inconsistent_checks,
        beyond_rounding_count,
    )


async def verify_criterion_by_replay(connection: AsyncConnection, criterion: Criterion[Campaign]) -> Verification:
    """Verify the posteriors and law states of one criterion."""
    law, criterion_name = criterion.law, criterion.name or None
    parameter_names = law.family.parameter_names
    column_types = dict.fromkeys((*parameter_names, "score", "variance"), "f8") | dict.fromkeys(
        ("judgments", "unjudged"), "i4"
    )
    query_arguments = criterion.campaign.id, criterion.number
    stored = await fetch_array_by_column(
        connection,
        FIND_STORED_POSTERIORS.format(state=state_columns_sql(law, "p.state")),
        query_arguments,
        **column_types,
    )
    beliefs, judgments, response_count = await replay_to_beliefs_counts_and_last_number(connection, criterion)
    unjudged_counts = (
        await unjudged.load_count_of_unable_people_by_item(connection, criterion.campaign)
        if criterion.number == 0
        else {}
    )
    replayed_columns = await asyncio.to_thread(
        replayed_posterior_column_by_name, law, beliefs, judgments, unjudged_counts
    )
    count, beyond_rounding_count, column_mismatches = await asyncio.to_thread(
        count_differing_posteriors_and_list_first, stored, replayed_columns
    )
    ids = await load_external_id_by_item_number(
        connection, criterion.campaign.id, [number for number, *_ in column_mismatches]
    )
    mismatches = [
        Mismatch(number, ids[number], column, kept, replayed, criterion_name)
        for number, column, kept, replayed in column_mismatches
    ]
    if law.layout:
        state_mismatches = await load_mismatches_of_stored_law_states(
            connection,
            Revision.present_revision_of_criterion(criterion),
            beliefs.law_state_besides_posteriors(),
            criterion_name,
        )
        count, mismatches = count + len(state_mismatches), mismatches + state_mismatches
        beyond_rounding_count += sum(
            not mask_of_floats_equal_up_to_rounding(mismatch.stored, mismatch.replayed) for mismatch in state_mismatches
        )
    return Verification(
        response_count, len(judgments), count, mismatches[:MAX_MISMATCHES_SHOWN], beyond_rounding=beyond_rounding_count
    )


def state_columns_sql(law: Law, state: str) -> str:
    """Return SQL for each number of a state; NaN for a missing one."""
    return ", ".join(f"coalesce({state}[{k}], 'NaN')" for k, _ in enumerate(law.family.parameter_names, start=1))


def replayed_posterior_column_by_name(
    law: Law, beliefs: LawBeliefs, judgments: NumberColumn, unjudged_counts: Mapping[int, int]
) -> dict[str, NumberColumn]:
    """Return the expected columns of the posteriors; `unjudged_counts` counts annotators unable to judge each item."""
    unjudged = np.zeros_like(judgments)
    unjudged[[*unjudged_counts]] = [*unjudged_counts.values()]
    state = dict(zip(law.family.parameter_names, beliefs.state, strict=True))
    score, variance = law.family.score(*beliefs.state), law.family.variance(*beliefs.state)
    return {**state, "score": score, "variance": variance, "judgments": judgments, "unjudged": unjudged}


async def load_external_id_by_item_number(
    connection: AsyncConnection, campaign_id: int, items: Sequence[int]
) -> dict[int, str]:
    rows = await connection.execute(FIND_ITEM_EXTERNAL_IDS, {"campaign": campaign_id, "numbers": items})
    return {row.number: row.external_id for row in rows}


async def load_prior_columns(connection: AsyncConnection, criterion: Criterion[Campaign]) -> list[NumberColumn]:
    """Return the items' priors as columns, (N,) each."""
    law = criterion.law
    column_types = dict.fromkeys(law.family.parameter_names, "f8")
    return [
        *(
            await fetch_array_by_column(
                connection,
                FIND_PRIOR_COLUMNS.format(state=state_columns_sql(law, "state")),
                (criterion.campaign.id,),
                **column_types,
            )
        ).values()
    ]


async def load_initial_beliefs(
    connection: AsyncConnection, criterion: Criterion[Campaign], *, by_newest_edition: bool = False
) -> LawBeliefs:
    """Return the law's beliefs before the first answer, by a criterion.

    The law keeps the campaign's edition, unless `by_newest_edition`.
    """
    law, stored_state = criterion.law, None
    if not by_newest_edition:
        stored_state = await law_storage.load_present_campaign_law_state_or_refuse(
            await driver_of(connection), criterion, layout=law.layout
        )
    return law.initial_beliefs(await load_prior_columns(connection, criterion), criterion.law_parameters, stored_state)


async def replay_to_beliefs_counts_and_last_number(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    *,
    last_decision: int | None = None,
    by_newest_edition: bool = False,
) -> tuple[LawBeliefs, NumberColumn, int]:
    """Apply all responses that count to the priors, by a criterion.

    Args:
        connection: A connection in a transaction.
        criterion: The criterion.
        last_decision: Number of the last decision to apply; by default that of the present revision.
        by_newest_edition: Whether to replay under the newest edition of the law.

    Returns:
        The beliefs, the number of judgments of each item, (N,), and the number of responses.

    """
    beliefs, count = (
        await load_initial_beliefs(connection, criterion, by_newest_edition=by_newest_edition),
        0,
    )
    judgments = np.zeros(beliefs.state.shape[1], np.int32)
    batches = responses.iterate_batches_of_responses(
        connection,
        criterion.campaign.id,
        REPLAYED_RESPONSES_PER_BATCH,
        last_decision=last_decision,
        criterion=criterion.number,
    )
    async for chunk in batches:
        hits = convert_judging_responses_to_hits_of_law(criterion, chunk)
        try:
            await asyncio.to_thread(beliefs.apply_hits, hits)
        except ValueError as problem:
            raise Conflict(
                f"Responses {chunk[0].seq} to {chunk[-1].seq} of “{criterion.campaign.name}” cannot be replayed: "
                f"{problem}.",
                code="not_replayable",
            ) from problem
        np.add.at(judgments, [item for hit in hits for item in hit.items], 1)
        count += len(chunk)
    return beliefs, judgments, count


def count_differing_posteriors_and_list_first(
    stored: Mapping[str, NumberColumn], replayed: Mapping[str, NumberColumn]
) -> tuple[int, int, list[tuple[int, str, float, float]]]:
    """Compare every stored number with the replayed one, bit by bit.

    Returns:
        The number of differences, the number of those beyond rounding, and the first ones by item, as
        (item number, column, stored, replayed).

    """
    count, beyond_rounding_count, mismatches = 0, 0, []
    for column, values in replayed.items():
        different = np.flatnonzero(bit_patterns_of_numbers(stored[column]) != bit_patterns_of_numbers(values))
        count += len(different)
        beyond_rounding_count += int(
            np.count_nonzero(~mask_of_floats_equal_up_to_rounding(stored[column][different], values[different]))
        )
        mismatches += [
            (int(item), column, stored[column][item].item(), values[item].item())
            for item in different[:MAX_MISMATCHES_SHOWN]
        ]
    return count, beyond_rounding_count, sorted(mismatches, key=lambda mismatch: mismatch[0])[:MAX_MISMATCHES_SHOWN]


def mask_of_floats_equal_up_to_rounding(stored: Any, replayed: Any) -> Any:
    """Return, elementwise, whether stored and replayed numbers are equal up to rounding; always False for counts."""
    if np.asarray(replayed).dtype.kind != "f":
        return np.zeros(np.shape(replayed), bool)
    return np.isclose(
        stored, replayed, rtol=ROUNDING_RELATIVE_TOLERANCE, atol=ROUNDING_ABSOLUTE_TOLERANCE, equal_nan=False
    )


async def load_mismatches_of_stored_law_states(
    connection: AsyncConnection, revision: Revision, replayed: LawState, criterion_name: str | None = None
) -> list[Mismatch]:
    """Return where stored law states differ from the replay, each at its first differing number."""
    stored = await law_storage.load_whole_law_state(await driver_of(connection), revision)
    differences = await asyncio.to_thread(
        lambda: [*iterate_law_state_differences(law_states_by_kind(stored), law_states_by_kind(replayed))]
    )
    ids = await load_external_id_by_item_number(
        connection, revision.campaign, [number for kind, number, _ in differences if kind == "item"]
    )
    names: dict[str, Callable[[int], str]] = {
        "campaign": lambda _: "the campaign",
        "item": ids.__getitem__,
        "annotator": "annotator {}".format,
    }
    return [
        Mismatch(number, names[kind](number), "learned", kept, replayed_number, criterion_name)
        for kind, number, (kept, replayed_number) in differences
    ]


def law_states_by_kind(law_state: LawState) -> dict[str, Mapping[int, Sequence[Any]]]:
    """Return law states by kind and number: a list of floats, or for an item two lists."""
    campaign = {} if law_state.campaign is None else {0: law_state.campaign}
    return {"campaign": campaign, "item": law_state.items, "annotator": law_state.annotators}


def iterate_law_state_differences(
    stored: Mapping[str, Mapping[int, Sequence[Any]]], replayed: Mapping[str, Mapping[int, Sequence[Any]]]
) -> Iterator[tuple[str, int, tuple[float, float]]]:
    """Yield the differing law states: kind, number, and the first differing pair of stored and replayed floats."""
    for kind, replayed_of_kind in replayed.items():
        for number in sorted(stored[kind].keys() | replayed_of_kind.keys()):
            if pair := first_differing_pair_or_none(stored[kind].get(number, ()), replayed_of_kind.get(number, ())):
                yield kind, number, pair


def first_differing_pair_or_none(stored: Any, replayed: Any) -> tuple[float, float] | None:
    """Return the first pair that differs in two lists of floats, or of lists: beyond rounding, if any pair does.
    Missing values of the shorter list are NaN, and NaN equals NaN.
    """
    stored_values, replayed_values = np.hstack([(), *stored]), np.hstack([(), *replayed])
    pairs = np.full((2, max(len(stored_values), len(replayed_values))), np.nan)
    pairs[0, : len(stored_values)], pairs[1, : len(replayed_values)] = stored_values, replayed_values
    differs = (pairs[0] != pairs[1]) & ~np.isnan(pairs).all(axis=0)
    is_beyond_rounding = differs & ~mask_of_floats_equal_up_to_rounding(*pairs)
    different = np.flatnonzero(is_beyond_rounding if is_beyond_rounding.any() else differs)
    return (float(pairs[0, different[0]]), float(pairs[1, different[0]])) if len(different) else None


def bit_patterns_of_numbers(values: NumberColumn) -> NumberColumn:
    """Return the bits of numbers as integers, so that comparisons are exact and a NaN equals an identical NaN."""
    return np.ascontiguousarray(values).view(f"i{values.itemsize}")
