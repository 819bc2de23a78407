"""Background work on calls to platforms' servers, so that a process may end at any moment.

1. Take calls that are due and mark them as `sending`, with a random attempt; commit.
2. Make each call once, unless the process slept since 1.
3. Store the result, if the call still belongs to this attempt; commit.

A process that ends between 1 and 3 may have made the call. After the deadline it becomes `unknown`; if the platform
counts a repeated call once, it is prepared again instead.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.platform import ServerCall
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.settings import CrowdSettings
from app.background.metrics import PROCESS_METRICS
from app.background.tasks import KeyedTasks
from app.database.alerts import store_alert_unless_known
from app.database.session import leads_to_citus
from app.server_calls.http_call import CallResult

log = logging.getLogger(__name__)

Clock = Callable[[], Awaitable[datetime]]

SERVER_CALLS_PAUSE_SECONDS = 5.0
MAX_TRIES = 8  # repeated after 1, 4, 16, 64, 256, 360 and 360 minutes
MAX_MINUTES_UNTIL_NEXT_TRY = 360
MAX_CALLS_IN_FLIGHT = 20
MAX_CALLS_IN_FLIGHT_PER_CAMPAIGN = 4
MAX_TIME_OF_CALL = timedelta(minutes=5)  # far longer than the call may take
MAX_TIME_UNTIL_CALL = timedelta(seconds=20)  # after it, a process that slept makes no call
SECONDS_TO_END_CALLS = 5.0  # when the server stops
SETTLED_STATES = ("sent", "failed", "cancelled")
MAX_TIME_OF_TURN = timedelta(minutes=1)
ALERT_SUBJECT_BY_STATE = {"failed": "a call failed", "unknown": "it is unclear whether a call was counted"}

# A person who was held and released may complete: the platform then hears of the completion alone.
IS_OVERTAKEN_SQL = """
    t.outcome <> 'completed' AND EXISTS (
        SELECT FROM server_calls o
        WHERE o.campaign_id = t.campaign_id AND o.assignment_id = t.assignment_id AND o.outcome = 'completed')
"""

DUE_AT_SQL = "coalesce(t.due_at, '-infinity'::timestamptz)"  # as in the index `server_calls_prepared_idx`

CANCEL_OVERTAKEN_CALLS = text(f"""
    UPDATE server_calls t SET state = 'cancelled', due_at = NULL, settled_at = :now,
        problem = 'The person completed meanwhile, and the platform is told that instead.'
    WHERE t.state = 'prepared' AND {IS_OVERTAKEN_SQL}
""")

# Jumps from campaign to campaign, and reads of each only the first calls, however many wait for a later time.
TAKE_DUE_CALLS = text(f"""
    WITH RECURSIVE waiting (campaign_id) AS (
        (SELECT campaign_id FROM server_calls WHERE state = 'prepared' ORDER BY campaign_id LIMIT 1)
        UNION ALL
        SELECT later.campaign_id FROM waiting, LATERAL (
            SELECT campaign_id FROM server_calls
            WHERE state = 'prepared' AND campaign_id > waiting.campaign_id ORDER BY campaign_id LIMIT 1
        ) AS later
    ), taken AS (
        SELECT due.* FROM waiting
        LEFT JOIN unnest(CAST(:busy AS bigint[]), CAST(:calling AS int[])) AS in_flight (campaign, number)
            ON in_flight.campaign = waiting.campaign_id
        CROSS JOIN LATERAL (
            SELECT t.campaign_id, t.id, t.assignment_id, t.annotator_id, {DUE_AT_SQL} AS due_at FROM server_calls t
            WHERE t.campaign_id = waiting.campaign_id AND t.state = 'prepared' AND {DUE_AT_SQL} <= :now
            AND NOT ({IS_OVERTAKEN_SQL})
            ORDER BY {DUE_AT_SQL}, t.id LIMIT greatest(0, :most_of_one - coalesce(in_flight.number, 0))
            FOR NO KEY UPDATE OF t SKIP LOCKED
        ) AS due
        ORDER BY due.due_at, due.id LIMIT :most
    )
    UPDATE server_calls t
    SET state = 'sending', attempt = :attempt, tries = t.tries + 1, sending_at = :now, problem = ''
    FROM taken, assignments s, annotators a, campaigns c
    WHERE t.campaign_id = taken.campaign_id AND t.id = taken.id
    AND s.campaign_id = taken.campaign_id AND s.id = taken.assignment_id
    AND a.campaign_id = taken.campaign_id AND a.id = taken.annotator_id AND c.id = taken.campaign_id
    RETURNING t.campaign_id, t.id, t.outcome, t.tries, t.attempt, s.arrival, a.platform, c.slug, c.crowd_settings
""")

# The same for Citus, of one campaign at a time: it cannot pass over rows that another process has locked.
LIST_CAMPAIGNS_WITH_DUE_CALLS = text(f"""
    SELECT campaign_id FROM server_calls t WHERE state = 'prepared' AND {DUE_AT_SQL} <= :now
    GROUP BY campaign_id ORDER BY min({DUE_AT_SQL}), campaign_id
""")
FIND_DUE_CALLS_OF_CAMPAIGN = text(f"""
    SELECT t.id FROM server_calls t
    WHERE t.campaign_id = :campaign AND t.state = 'prepared' AND {DUE_AT_SQL} <= :now AND NOT (t.outcome <> 'completed'
        AND t.assignment_id IN (
            SELECT o.assignment_id FROM server_calls o WHERE o.campaign_id = :campaign AND o.outcome = 'completed'))
    ORDER BY {DUE_AT_SQL}, t.id LIMIT :most
""")
TAKE_CALLS_OF_CAMPAIGN = text("""
    UPDATE server_calls t
    SET state = 'sending', attempt = :attempt, tries = t.tries + 1, sending_at = :now, problem = ''
    FROM assignments s, annotators a, campaigns c
    WHERE t.campaign_id = :campaign AND t.id = ANY(CAST(:ids AS bigint[])) AND t.state = 'prepared'
    AND s.campaign_id = :campaign AND s.id = t.assignment_id AND a.campaign_id = :campaign AND a.id = t.annotator_id
    AND c.id = :campaign
    RETURNING t.campaign_id, t.id, t.outcome, t.tries, t.attempt, s.arrival, a.platform, c.slug, c.crowd_settings
""")

# Also for a call that another process has already taken for unclear; not for one that a person decided about.
SETTLE_CALL = text("""
    UPDATE server_calls SET state = :state, problem = :problem, due_at = :due_at, settled_at = :settled_at
    WHERE campaign_id = :campaign AND id = :id AND attempt = :attempt AND state IN ('sending', 'unknown')
""")

SETTLE_INTERRUPTED_CALLS = text("""
    UPDATE server_calls t SET problem = 'Easel was interrupted while it made this call.', due_at = NULL,
        state = CASE WHEN c.crowd_settings ->> 'call_repeatable' = 'true' AND t.tries < :most_tries
            THEN 'prepared' ELSE 'unknown' END
    FROM campaigns c
    WHERE c.id = t.campaign_id AND t.state = 'sending' AND t.sending_at <= CAST(:began_before AS timestamptz)
    RETURNING t.campaign_id, t.state, t.problem
""")


class ServerCallWork:
    """Makes the calls that are due; call `resolve_interrupted_and_start_due_calls` repeatedly."""

    def __init__(
        self, database: AsyncEngine, clock: Clock, make_call: Callable[[ServerCall], Awaitable[CallResult]]
    ) -> None:
        self.database = database
        self.clock = clock
        self.make_call = make_call
        self.calling = KeyedTasks[tuple[int, int]]("calls to platforms")

    async def resolve_interrupted_and_start_due_calls(self) -> None:
        """Settle what ended processes left, and make all calls that are due, as fast as the platforms reply.

        Ends when all are started, or after `MAX_TIME_OF_TURN`: calls that ended processes left are then settled.
        """
        async with self.database.begin() as connection:
            now = await self.clock()
            parameters = {"began_before": now - MAX_TIME_OF_CALL, "most_tries": MAX_TRIES}
            for row in (await connection.execute(SETTLE_INTERRUPTED_CALLS, parameters)).all():
                await store_alert_if_call_needs_a_person(connection, row.campaign_id, row.state, row.problem, now=now)
            await connection.execute(CANCEL_OVERTAKEN_CALLS, {"now": now})
        turn_ends_at = now + MAX_TIME_OF_TURN
        while (await self.start_due_calls_and_count_them() or self.calling) and await self.clock() < turn_ends_at:
            await self.calling.wait(first_only=True, most_seconds=SERVER_CALLS_PAUSE_SECONDS)

    async def make_due_calls(self) -> None:
        """Make all calls that are due now, and wait for their end."""
        await self.resolve_interrupted_and_start_due_calls()
        await self.calling.wait()

    async def stop(self) -> None:
        """Give running calls a moment to end: one that is cancelled may have been counted."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.calling.wait(), SECONDS_TO_END_CALLS)
        await self.calling.stop()

    async def start_due_calls_and_count_them(self) -> int:
        """Take calls that are due, as many as there is room for, and make them concurrently. Return their number."""
        busy = Counter(campaign for campaign, _ in self.calling)
        now = await self.clock()
        attempt, most = {"now": now, "attempt": secrets.token_hex(8)}, MAX_CALLS_IN_FLIGHT - len(self.calling)
        async with self.database.begin() as connection:
            if leads_to_citus(connection):
                due = await claim_due_calls_of_each_campaign(connection, busy, attempt, most)
            else:
                parameters = {
                    **attempt,
                    "busy": [*busy.keys()],
                    "calling": [*busy.values()],
                    "most_of_one": MAX_CALLS_IN_FLIGHT_PER_CAMPAIGN,
                    "most": most,
                }
                due = (await connection.execute(TAKE_DUE_CALLS, parameters)).all()
        for row in due:
            key = row.campaign_id, row.id
            if key not in self.calling:  # else its last try is still running
                self.calling.start(key, partial(self.make_call_unless_overdue_and_store_result, row, taken_at=now))
        return len(due)

    async def make_call_unless_overdue_and_store_result(self, row: Row[Any], *, taken_at: datetime) -> None:
        """Make a call outside any transaction, and store its result."""
        call = server_call_of_row_or_none(row)
        if call is None:
            state, problem, due_at = call_state_without_address(row), call_problem_without_address(row), None
        elif await self.clock() - taken_at > MAX_TIME_UNTIL_CALL:
            state, problem, due_at = "prepared", "Easel was interrupted before it made this call.", None
        else:
            result = await self.make_call(call)
            state, wait = call_state_and_retry_wait_or_none(result, row.tries, is_repeatable=call.is_repeatable)
            problem, due_at = result.problem, await self.clock() + wait if wait else None
        if state != "sent":
            log.warning("a call for campaign %s is %s: %s", row.slug, state, problem)
            PROCESS_METRICS.count("easel_server_calls_failed_total", state)
        parameters = {
            "campaign": row.campaign_id,
            "id": row.id,
            "attempt": row.attempt,
            "state": state,
            "problem": problem,
            "due_at": due_at,
            "settled_at": await self.clock() if state in SETTLED_STATES else None,
        }
        async with self.database.begin() as connection:
            if (await connection.execute(SETTLE_CALL, parameters)).rowcount:
                now = await self.clock()
                await store_alert_if_call_needs_a_person(connection, row.campaign_id, state, problem, now=now)


async def claim_due_calls_of_each_campaign(
    connection: AsyncConnection, busy: Mapping[int, int], attempt: Mapping[str, Any], most: int
) -> Sequence[Row[Any]]:
    """Take calls that are due on a Citus cluster, and return their rows.

    Args:
        connection: A connection in a transaction.
        busy: Number of calls that this process is making, by campaign.
        attempt: Parameters `now` and `attempt` of the statements.
        most: How many calls to take.

    """
    taken: list[Row[Any]] = []
    for campaign_id in list(await connection.scalars(LIST_CAMPAIGNS_WITH_DUE_CALLS, {"now": attempt["now"]})):
        room = min(most - len(taken), MAX_CALLS_IN_FLIGHT_PER_CAMPAIGN - busy.get(campaign_id, 0))
        if room <= 0:
            continue
        of_campaign = {"campaign": campaign_id, "now": attempt["now"], "most": room}
        if ids := list(await connection.scalars(FIND_DUE_CALLS_OF_CAMPAIGN, of_campaign)):
            parameters = {**attempt, "campaign": campaign_id, "ids": ids}
            taken += (await connection.execute(TAKE_CALLS_OF_CAMPAIGN, parameters)).all()
    return taken


async def store_alert_if_call_needs_a_person(
    connection: AsyncConnection, campaign_id: int, state: str, problem: str, *, now: datetime
) -> None:
    """Raise an alert for a failed or unclear call, at most one a day for each of both."""
    if about := ALERT_SUBJECT_BY_STATE.get(state):
        occasion = f"{state} {now:%Y-%m-%d}"
        await store_alert_unless_known(connection, campaign_id, "calls", occasion, about=about, because=problem)


def server_call_of_row_or_none(row: Row[Any]) -> ServerCall | None:
    """Return the call by the campaign's present settings; None without an address, or if its ids were erased."""
    settings = dict(CrowdSettings.model_construct(**row.crowd_settings)) | {"slug": row.slug}
    return PLATFORMS[row.platform].build_server_call_or_none(row.arrival, settings, row.outcome)


def call_state_without_address(row: Row[Any]) -> str:
    return "failed" if row.arrival else "cancelled"


def call_problem_without_address(row: Row[Any]) -> str:
    if not row.arrival:
        return "The ids of this person were erased."
    return "The settings have no address for this outcome any more."


def call_state_and_retry_wait_or_none(
    result: CallResult, tries: int, *, is_repeatable: bool
) -> tuple[str, timedelta | None]:
    """Return the state of a call after its result, and the time until it is repeated, if it is."""
    if result.kind == "accepted":
        return "sent", None
    if result.kind == "refused":
        return "failed", None
    if result.kind == "unclear" and not is_repeatable:
        return "unknown", None
    if tries >= MAX_TRIES:
        return ("failed" if result.kind == "not_made" else "unknown"), None
    wait = timedelta(minutes=min(4 ** (tries - 1), MAX_MINUTES_UNTIL_NEXT_TRY))
    asked = timedelta(seconds=result.retry_after_seconds)
    return "prepared", max(wait, min(asked, timedelta(minutes=MAX_MINUTES_UNTIL_NEXT_TRY)))
