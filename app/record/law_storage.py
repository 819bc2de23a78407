"""What laws keep besides posteriors, in its table: lists of floats of a campaign, its items and its annotators.

Whoever changes it holds the campaign's row here, and takes it before locks of other rows: HITs are learned from one by
one.

An item has two lists: a long one, which most HITs leave as it is, and a short one. PostgreSQL keeps a long value aside
and writes it anew only when it changes, so a HIT costs the same however many judgments its items have.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database.session import Driver, Record, execute_statement, fetch_first_row, fetch_rows
from app.designs.criteria import criterion_number
from app.errors import Conflict
from app.inference.online.law import LawState, StateFloats

Floats = npt.NDArray[np.float64]
STORED_FLOAT = np.dtype("<f8")
ITEM_STATES_PER_WRITE = 1_000  # items

# The right to store. Whoever stores an answer or leases a HIT shares this lock first, until the transaction ends, and
# whoever makes another revision the present one has it alone: who waits for it is not passed by, as who waits for a row
# would be by those who share the row.
SHARE_STORE_LOCK = text("SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST(:campaign AS int))")
TAKE_STORE_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('campaign.switch'), CAST(:campaign AS int))")

# What the present revision has learned of the campaign by the first criterion: who changes what it knows by another
# holds this.
LOCK_LAW_STATE = text("""
    SELECT 1 FROM states WHERE campaign_id = :campaign AND kind = 'campaign' AND criterion = 0
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign) FOR NO KEY UPDATE
""")

FIND_PRESENT_CAMPAIGN_STATE = text("""
    SELECT state, layout FROM states WHERE campaign_id = :campaign AND kind = 'campaign' AND criterion = :criterion
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign)
""")

REVISION_CONDITION = "campaign_id = :campaign AND revision = :revision AND criterion = :criterion"

FIND_CAMPAIGN_STATE = text(f"SELECT state, layout FROM states WHERE {REVISION_CONDITION} AND kind = 'campaign'")  # noqa: S608  (constants)

FIND_NUMBERED_STATES = text(f"""
    SELECT number, state FROM states
    WHERE {REVISION_CONDITION} AND kind = :kind AND number = ANY(CAST(:numbers AS bigint[]))
""")  # noqa: S608  (constants)

# Of items: `state` is what was looked at, perhaps long, so only its length is told; `since` is short.
FIND_ITEM_HEADS = text(f"""
    SELECT number, since, octet_length(state) AS length FROM states
    WHERE {REVISION_CONDITION} AND kind = 'item' AND number = ANY(CAST(:numbers AS bigint[]))
""")  # noqa: S608  (constants)

# The items of which something has been learned, from the one after :last on and around to it.
FIND_NEXT_ITEM_HEADS = text(f"""
    SELECT number, since, length FROM (
        (SELECT number, since, octet_length(state) AS length, 1 AS part FROM states
         WHERE {REVISION_CONDITION} AND kind = 'item' AND number > :last ORDER BY number LIMIT :limit)
        UNION ALL
        (SELECT number, since, octet_length(state) AS length, 2 AS part FROM states
         WHERE {REVISION_CONDITION} AND kind = 'item' AND number <= :last ORDER BY number LIMIT :limit)
    ) AS following
    ORDER BY part, number LIMIT :limit
""")  # noqa: S608  (constants)

FIND_ALL_STATES = text(f"SELECT kind, number, state, since FROM states WHERE {REVISION_CONDITION}")  # noqa: S608  (constants)

# What :items of :campaign began with, in that order.
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
""")  # noqa: S608  (constants)


class StateRow(Record):
    """What is kept of an annotator, or the long list of an item."""

    number: int
    state: bytes


class ItemHeadRow(Record):
    """The short list of an item, and how long the other one is."""

    number: int
    since: bytes
    length: int  # in bytes


class AnyStateRow(Record):
    """All that is kept of something; of an annotator and of the campaign `since` is empty."""

    kind: str
    number: int
    state: bytes
    since: bytes


class CampaignStateRow(Record):
    """What is kept of the whole campaign."""

    state: bytes
    layout: int


class ItemPriorRow(Record):
    """What an item's posterior begins with."""

    state: list[float]


class Revision(NamedTuple):
    """Which posteriors and states: a campaign's, of one of its revisions, by one of its criteria."""

    campaign: int
    revision: int
    criterion: int = 0

    @classmethod
    def of_present(cls, campaign: Any) -> "Revision":
        """The one that a campaign's row says, by the criterion that it is read by."""
        return cls(campaign.id, campaign.revision, criterion_number(campaign))

    @property
    def sql_parameters(self) -> dict[str, int]:
        return self._asdict()


async def load_annotator_states(
    connection: Driver, revision: Revision, numbers: Iterable[int]
) -> dict[int, StateFloats]:
    """What is kept of these annotators; without those of whom nothing is."""
    rows = await fetch_rows(
        connection,
        FIND_NUMBERED_STATES,
        {**revision.sql_parameters, "kind": "annotator", "numbers": list(numbers)},
        StateRow,
    )
    return {row.number: bytes_to_floats(row.state).tolist() for row in rows}


async def load_item_heads(
    connection: Driver, revision: Revision, numbers: Iterable[int]
) -> dict[int, tuple[StateFloats, int]]:
    """The short lists of these items, and how many floats are in the long ones; without those nothing is kept of."""
    rows = await fetch_rows(
        connection, FIND_ITEM_HEADS, {**revision.sql_parameters, "numbers": list(numbers)}, ItemHeadRow
    )
    return {row.number: (bytes_to_floats(row.since).tolist(), row.length // STORED_FLOAT.itemsize) for row in rows}


async def load_item_tails(connection: Driver, revision: Revision, numbers: Iterable[int]) -> dict[int, Floats]:
    """The long lists of these items; without those nothing is kept of."""
    parameters = {**revision.sql_parameters, "kind": "item", "numbers": list(numbers)}
    return {
        row.number: bytes_to_floats(row.state)
        for row in await fetch_rows(connection, FIND_NUMBERED_STATES, parameters, StateRow)
    }


async def load_next_item_heads(
    connection: Driver, revision: Revision, last_number: int, limit: int
) -> list[tuple[int, StateFloats, int]]:
    """The next `limit` items after number `last`, and then from the first on: number, short list, length of long."""
    parameters = {**revision.sql_parameters, "last": last_number, "limit": limit}
    rows = await fetch_rows(connection, FIND_NEXT_ITEM_HEADS, parameters, ItemHeadRow)
    return [(row.number, bytes_to_floats(row.since).tolist(), row.length // STORED_FLOAT.itemsize) for row in rows]


async def load_item_priors(connection: Driver, campaign_id: int, items: Sequence[int]) -> list[tuple[float, ...]]:
    """The numbers that each item began with."""
    rows = await fetch_rows(connection, FIND_ITEM_PRIORS, {"campaign": campaign_id, "items": items}, ItemPriorRow)
    return [tuple(row.state) for row in rows]


async def load_campaign_state(connection: Driver, revision: Revision, *, layout: int) -> StateFloats | None:
    """What is kept of the whole campaign. Raises what `present` raises."""
    return decode_campaign_state(
        await fetch_first_row(connection, FIND_CAMPAIGN_STATE, revision.sql_parameters, CampaignStateRow), layout
    )


async def load_present_campaign_state(connection: Driver, campaign: Any, *, layout: int) -> LawState:
    """What the present revision keeps of the whole campaign. Raises `Conflict` (`states_of_another_version`)."""
    parameters = {"campaign": campaign.id, "criterion": criterion_number(campaign)}
    return LawState(
        decode_campaign_state(
            await fetch_first_row(connection, FIND_PRESENT_CAMPAIGN_STATE, parameters, CampaignStateRow), layout
        )
    )


def decode_campaign_state(row: CampaignStateRow | None, layout: int) -> StateFloats | None:
    if row is not None and row.layout != layout:
        raise Conflict(
            f"What was learned of annotators is stored as version {row.layout}, and this Easel reads version {layout}. "
            "Nothing was changed.",
            code="states_of_another_version",
        )
    return None if row is None else bytes_to_floats(row.state).tolist()


async def load_all_law_states(connection: Driver, revision: Revision) -> LawState:
    """All of it."""
    rows = await fetch_rows(connection, FIND_ALL_STATES, revision.sql_parameters, AnyStateRow)
    campaign = [bytes_to_floats(row.state).tolist() for row in rows if row.kind == "campaign"]
    return LawState(
        campaign[0] if campaign else None,
        {row.number: bytes_to_floats(row.state).tolist() for row in rows if row.kind == "annotator"},
        {
            row.number: (bytes_to_floats(row.since).tolist(), bytes_to_floats(row.state))
            for row in rows
            if row.kind == "item"
        },
    )


def split_law_state(law_state: LawState) -> Iterator[LawState]:
    """What is kept in parts that can each be sent at once, the campaign's in the first."""
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
    """Store what is new."""
    rows = [("campaign", 0, floats_to_bytes(law_state.campaign), b"")] if law_state.campaign is not None else []
    rows += [("annotator", number, floats_to_bytes(state), b"") for number, state in law_state.annotators.items()]
    rows += [
        ("item", k, floats_to_bytes(long), floats_to_bytes(short))
        for k, (short, long) in law_state.items.items()
        if long is not None
    ]
    kinds, numbers, values, since = zip(*rows, strict=True) if rows else ((), (), (), ())
    heads_without_tail = {
        number: floats_to_bytes(short) for number, (short, long) in law_state.items.items() if long is None
    }
    parameters = {**revision.sql_parameters, "layout": layout, "kinds": kinds, "numbers": numbers, "states": values}
    parameters |= {"since": since, "longer": [*heads_without_tail], "longer_since": [*heads_without_tail.values()]}
    await execute_statement(connection, STORE_LAW_STATES, parameters)


def bytes_to_floats(stored: bytes) -> Floats:
    return np.frombuffer(stored, STORED_FLOAT)


def floats_to_bytes(state: npt.ArrayLike) -> bytes:
    return np.asarray(state, STORED_FLOAT).tobytes()
