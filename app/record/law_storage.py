"""Storage of the state that laws keep besides posteriors: lists of floats of a campaign, its items and annotators.

Lock the campaign's row of this table before changing any, and before locking other rows: a law learns from HITs one by
one.

An item has two lists: a long tail, which most HITs leave as it is, and a short head. PostgreSQL stores a long value
out of line and rewrites it only when it changes, so a HIT costs the same however many judgments its items have.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database.session import (
    Driver,
    Record,
    execute_statement,
    fetch_first_column,
    fetch_first_row_or_none,
    fetch_rows,
)
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict
from app.inference.online.law import LawState, StateFloats

Floats = npt.NDArray[np.float64]
STORED_FLOAT = np.dtype("<f8")
ITEM_STATES_PER_WRITE = 1_000  # items

# The right to store. A transaction that stores an answer or leases a HIT shares this lock first, until it ends; a
# switch of revisions takes it exclusively. Unlike with row locks, later sharers do not overtake a waiting switch.
SHARE_STORE_LOCK = text("SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST(:campaign AS int))")
TAKE_STORE_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('campaign.switch'), CAST(:campaign AS int))")

# Lock on the law state of the present revision by the first criterion. It also guards that of all other criteria.
LOCK_LAW_STATE = text("""
    SELECT 1 FROM states WHERE campaign_id = :campaign AND kind = 'campaign' AND criterion = 0
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign) FOR NO KEY UPDATE
""")

FIND_PRESENT_CAMPAIGN_STATE = text("""
    SELECT state, layout FROM states WHERE campaign_id = :campaign AND kind = 'campaign' AND criterion = :criterion
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign)
""")

REVISION_CONDITION = "campaign_id = :campaign AND revision = :revision AND criterion = :criterion"

FIND_CAMPAIGN_STATE = text(f"SELECT state, layout FROM states WHERE {REVISION_CONDITION} AND kind = 'campaign'")

FIND_NUMBERED_STATES = text(f"""
    SELECT number, state FROM states
    WHERE {REVISION_CONDITION} AND kind = :kind AND number = ANY(CAST(:numbers AS bigint[]))
""")

# For items `since` holds the short head, and `state` the tail, which may be long: only its length is read.
FIND_ITEM_HEADS = text(f"""
    SELECT number, since, octet_length(state) AS length FROM states
    WHERE {REVISION_CONDITION} AND kind = 'item' AND number = ANY(CAST(:numbers AS bigint[]))
""")

# The items with law state, starting after number :last and wrapping around to it.
FIND_NEXT_ITEM_HEADS = text(f"""
    SELECT number, since, length FROM (
        (SELECT number, since, octet_length(state) AS length, 1 AS part FROM states
         WHERE {REVISION_CONDITION} AND kind = 'item' AND number > :last ORDER BY number LIMIT :limit)
        UNION ALL
        (SELECT number, since, octet_length(state) AS length, 2 AS part FROM states
         WHERE {REVISION_CONDITION} AND kind = 'item' AND number <= :last ORDER BY number LIMIT :limit)
    ) AS following
    ORDER BY part, number LIMIT :limit
""")

FIND_ALL_STATES = text(f"SELECT kind, number, state, since FROM states WHERE {REVISION_CONDITION}")

# Priors of :items, in that order.
FIND_ITEM_PRIORS = text("""
    SELECT state FROM priors WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))
    ORDER BY array_position(CAST(:items AS int[]), number)
""")

STORE_LAW_STATES = text(f"""
    WITH longer AS (
        UPDATE states l SET since = new.since
        FROM unnest(CAST(:longer AS bigint[]), CAST(:longer_since AS bytea[])) AS new (number, since)
        WHERE {REVISION_CONDITION} AND l.kind = 'item' AND l.number = new.number
    )
    INSERT INTO states (campaign_id, revision, criterion, layout, kind, number, state, since)
    SELECT :campaign, :revision, :criterion, :layout, *
    FROM unnest(CAST(:kinds AS text[]), CAST(:numbers AS bigint[]), CAST(:states AS bytea[]),
                                    CAST(:since AS bytea[]))
    ON CONFLICT (campaign_id, revision, criterion, kind, number) DO UPDATE
    SET state = excluded.state, since = excluded.since
""")


class StateRow(Record):
    """State of an annotator, or the tail of an item."""

    number: int
    state: bytes


class ItemHeadRow(Record):
    """Head of an item, and the length of its tail."""

    number: int
    since: bytes
    length: int  # in bytes


class AnyStateRow(Record):
    """State of the campaign, an item or an annotator; `since` is empty except for items."""

    kind: str
    number: int
    state: bytes
    since: bytes


class CampaignStateRow(Record):
    state: bytes
    layout: int


class Revision(NamedTuple):
    """Key of posteriors and law states: a campaign, one of its revisions, one of its criteria."""

    campaign: int
    revision: int
    criterion: int = 0

    @classmethod
    def present_revision_of_criterion(cls, criterion: Criterion[Campaign]) -> "Revision":
        """Return the present revision of a criterion."""
        return cls(criterion.campaign.id, criterion.campaign.revision, criterion.number)

    @property
    def sql_parameters(self) -> dict[str, int]:
        return self._asdict()


async def load_annotator_state_by_number(
    connection: Driver, revision: Revision, numbers: Iterable[int]
) -> dict[int, StateFloats]:
    """Return the states of these annotators, without annotators that have none."""
    rows = await fetch_rows(
        connection,
        FIND_NUMBERED_STATES,
        {**revision.sql_parameters, "kind": "annotator", "numbers": list(numbers)},
        StateRow,
    )
    return {row.number: decode_floats_from_bytes(row.state).tolist() for row in rows}


async def load_item_heads_and_tail_lengths_by_number(
    connection: Driver, revision: Revision, numbers: Iterable[int]
) -> dict[int, tuple[StateFloats, int]]:
    """Return the heads of these items and the number of floats in their tails, without items that have none."""
    rows = await fetch_rows(
        connection, FIND_ITEM_HEADS, {**revision.sql_parameters, "numbers": list(numbers)}, ItemHeadRow
    )
    return {
        row.number: (decode_floats_from_bytes(row.since).tolist(), row.length // STORED_FLOAT.itemsize) for row in rows
    }


async def load_item_tail_by_number(connection: Driver, revision: Revision, numbers: Iterable[int]) -> dict[int, Floats]:
    """Return the tails of these items, without items that have none."""
    parameters = {**revision.sql_parameters, "kind": "item", "numbers": list(numbers)}
    return {
        row.number: decode_floats_from_bytes(row.state)
        for row in await fetch_rows(connection, FIND_NUMBERED_STATES, parameters, StateRow)
    }


async def load_next_item_numbers_heads_tail_lengths(
    connection: Driver, revision: Revision, last_number: int, limit: int
) -> list[tuple[int, StateFloats, int]]:
    """Return the next items after `last_number`, wrapping around: number, head, number of floats in the tail."""
    parameters = {**revision.sql_parameters, "last": last_number, "limit": limit}
    rows = await fetch_rows(connection, FIND_NEXT_ITEM_HEADS, parameters, ItemHeadRow)
    return [
        (row.number, decode_floats_from_bytes(row.since).tolist(), row.length // STORED_FLOAT.itemsize) for row in rows
    ]


async def load_item_priors(connection: Driver, campaign_id: int, items: Sequence[int]) -> list[tuple[float, ...]]:
    """Return the parameters of each item's prior, in the order of `items`."""
    states = await fetch_first_column(connection, FIND_ITEM_PRIORS, {"campaign": campaign_id, "items": items})
    return list(map(tuple, states))


async def load_law_state_of_campaign_or_none(
    connection: Driver, revision: Revision, *, layout: int
) -> StateFloats | None:
    """Return the state of the whole campaign, if any. Raises as `load_present_campaign_law_state_or_refuse` does."""
    return decoded_law_state_of_campaign_or_none(
        await fetch_first_row_or_none(connection, FIND_CAMPAIGN_STATE, revision.sql_parameters, CampaignStateRow),
        layout,
    )


async def load_present_campaign_law_state_or_refuse(
    connection: Driver, criterion: Criterion[Campaign], *, layout: int
) -> LawState:
    """Return the campaign's state in its present revision. Raises `Conflict` (`states_of_another_version`)."""
    parameters = {"campaign": criterion.campaign.id, "criterion": criterion.number}
    return LawState(
        decoded_law_state_of_campaign_or_none(
            await fetch_first_row_or_none(connection, FIND_PRESENT_CAMPAIGN_STATE, parameters, CampaignStateRow), layout
        )
    )


def decoded_law_state_of_campaign_or_none(row: CampaignStateRow | None, layout: int) -> StateFloats | None:
    if row is not None and row.layout != layout:
        raise Conflict(
            f"The estimates of annotators are stored as version {row.layout}, but this Easel reads version {layout}. "
            "Nothing was changed.",
            code="states_of_another_version",
        )
    return None if row is None else decode_floats_from_bytes(row.state).tolist()


async def load_whole_law_state(connection: Driver, revision: Revision) -> LawState:
    """Return all law state of a revision."""
    rows = await fetch_rows(connection, FIND_ALL_STATES, revision.sql_parameters, AnyStateRow)
    campaign = [decode_floats_from_bytes(row.state).tolist() for row in rows if row.kind == "campaign"]
    return LawState(
        campaign[0] if campaign else None,
        {row.number: decode_floats_from_bytes(row.state).tolist() for row in rows if row.kind == "annotator"},
        {
            row.number: (decode_floats_from_bytes(row.since).tolist(), decode_floats_from_bytes(row.state))
            for row in rows
            if row.kind == "item"
        },
    )


def iterate_law_state_in_item_batches(law_state: LawState) -> Iterator[LawState]:
    """Split law state into parts small enough for one statement each; the campaign's is in the first."""
    numbers = list(law_state.items)
    yield LawState(
        law_state.campaign,
        law_state.annotators,
        {number: law_state.items[number] for number in numbers[:ITEM_STATES_PER_WRITE]},
    )
    for start in range(ITEM_STATES_PER_WRITE, len(numbers), ITEM_STATES_PER_WRITE):
        yield LawState(
            None, {}, {number: law_state.items[number] for number in numbers[start : start + ITEM_STATES_PER_WRITE]}
        )


async def store_law_states(connection: Driver, revision: Revision, law_state: LawState, *, layout: int) -> None:
    """Store changed law state; an item without a tail keeps its stored one."""
    rows = [("campaign", 0, encode_floats_as_bytes(law_state.campaign), b"")] if law_state.campaign is not None else []
    rows += [
        ("annotator", number, encode_floats_as_bytes(state), b"") for number, state in law_state.annotators.items()
    ]
    rows += [
        ("item", number, encode_floats_as_bytes(long), encode_floats_as_bytes(short))
        for number, (short, long) in law_state.items.items()
        if long is not None
    ]
    kinds, numbers, values, since = zip(*rows, strict=True) if rows else ((), (), (), ())
    heads_without_tail = {
        number: encode_floats_as_bytes(short) for number, (short, long) in law_state.items.items() if long is None
    }
    parameters = {**revision.sql_parameters, "layout": layout, "kinds": kinds, "numbers": numbers, "states": values}
    parameters |= {"since": since, "longer": [*heads_without_tail], "longer_since": [*heads_without_tail.values()]}
    await execute_statement(connection, STORE_LAW_STATES, parameters)


def decode_floats_from_bytes(stored: bytes) -> Floats:
    return np.frombuffer(stored, STORED_FLOAT)


def encode_floats_as_bytes(state: npt.ArrayLike) -> bytes:
    return np.asarray(state, STORED_FLOAT).tobytes()
