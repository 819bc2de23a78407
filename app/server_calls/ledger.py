"""List a campaign's calls to the platform's server, and store what people decide about them."""

from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.registry import names_of_platforms_with_server_calls
from app.database.audit_log import CURRENT_ACTOR, log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound
from app.server_calls.call_decision import RepeatedState

CALLS_SHOWN = 500
# States in which each decision can be made. What may be under way is decided by its end.
STATES_OF_DECISION: dict[str, tuple[str, ...]] = {
    "sent": ("failed", "unknown"),
    "again": ("failed", "unknown", "cancelled"),
    "cancel": ("prepared", "failed", "unknown"),
}
STATE_AFTER_DECISION = {"sent": "sent", "again": "prepared", "cancel": "cancelled"}
CALL_COLUMNS = (
    *("id", "annotator", "outcome", "state", "tries", "problem"),
    *("created_at", "due_at", "sending_at", "settled_at", "decided_by"),
)

LIST_CALLS = text("""
    SELECT t.id, n.name AS annotator, t.outcome, t.state, t.tries, t.problem, t.created_at, t.due_at, t.sending_at,
        t.settled_at, t.decided_by
    FROM server_calls t JOIN named_annotators n ON n.campaign_id = t.campaign_id AND n.id = t.annotator_id
    WHERE t.campaign_id = :campaign
    ORDER BY array_position(ARRAY['unknown', 'failed', 'sending', 'prepared'], t.state) NULLS LAST, t.id DESC
    LIMIT :most
""")
COUNT_CALLS = text("SELECT state, count(*) AS number FROM server_calls WHERE campaign_id = :campaign GROUP BY state")
COUNT_CALLS_TO_DECIDE = text(
    "SELECT count(*) FROM server_calls WHERE campaign_id = :campaign AND state IN ('failed', 'unknown')"
)
# People who completed, without a stored call: the campaign had no address then.
EARLIER_PEOPLE_SQL = """
    FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE s.campaign_id = :campaign AND s.completed_at IS NOT NULL AND s.arrival <> '{}'
    AND a.platform = ANY(CAST(:calling AS text[]))
    AND NOT EXISTS (
        SELECT FROM server_calls t
        WHERE t.campaign_id = s.campaign_id AND t.assignment_id = s.id AND t.outcome = 'completed')
"""
COUNT_PEOPLE_TO_CALL_FOR = text(f"SELECT count(*) {EARLIER_PEOPLE_SQL}")
PREPARE_CALLS_FOR_EARLIER_PEOPLE = text(f"""
    INSERT INTO server_calls (campaign_id, annotator_id, assignment_id, outcome, decided_by)
    SELECT s.campaign_id, s.annotator_id, s.id, 'completed', :by {EARLIER_PEOPLE_SQL}
    ON CONFLICT (campaign_id, assignment_id, outcome) DO NOTHING RETURNING id
""")
SELECT_STATE_OF_CALL = text(
    "SELECT state FROM server_calls WHERE campaign_id = :campaign AND id = :id FOR NO KEY UPDATE"
)
SET_SQL = """state = :state, attempt = NULL, due_at = NULL, tries = 0, problem = '', decided_by = :by,
    settled_at = CASE WHEN CAST(:state AS text) <> 'prepared' THEN now() END"""
STORE_CALL_DECISION = text(f"UPDATE server_calls SET {SET_SQL} WHERE campaign_id = :campaign AND id = :id")
REPEAT_CALLS = text(f"""
    UPDATE server_calls SET {SET_SQL} WHERE campaign_id = :campaign AND state = :repeated RETURNING id
""")


async def list_server_calls(
    connection: AsyncConnection, campaign_id: int, *, limit: int | None = CALLS_SHOWN
) -> Sequence[Row[Any]]:
    """Return the calls of a campaign: unclear ones first, then failed ones, and those that are under way."""
    return (await connection.execute(LIST_CALLS, {"campaign": campaign_id, "most": limit})).all()


async def count_server_calls_by_state(connection: AsyncConnection, campaign_id: int) -> dict[str, int]:
    rows = (await connection.execute(COUNT_CALLS, {"campaign": campaign_id})).all()
    return {row.state: row.number for row in rows}


async def count_server_calls_to_decide(connection: AsyncConnection, campaign_id: int) -> int:
    """Return the number of calls that failed or are unclear: each waits for a person."""
    return await connection.scalar(COUNT_CALLS_TO_DECIDE, {"campaign": campaign_id}) or 0


async def count_people_to_call_for(connection: AsyncConnection, campaign: Campaign) -> int:
    """Return the number of people who completed before the campaign had an address to call, and lack a call."""
    if not campaign.call_completed:
        return 0
    parameters = {"campaign": campaign.id, "calling": names_of_platforms_with_server_calls()}
    return await connection.scalar(COUNT_PEOPLE_TO_CALL_FOR, parameters) or 0


async def store_and_count_calls_for_earlier_completions(connection: AsyncConnection, campaign: Campaign) -> int:
    """Store a call for each person of `count_people_to_call_for`, to be made within seconds.

    Raises:
        Conflict: `no_call_address`.

    """
    if not campaign.call_completed:
        raise Conflict(
            "The settings have no address for people who have finished, so Easel cannot make a call for them. "
            "Nothing was changed.",
            code="no_call_address",
        )
    parameters = {
        "campaign": campaign.id,
        "calling": names_of_platforms_with_server_calls(),
        "by": CURRENT_ACTOR.get().name,
    }
    number = len((await connection.execute(PREPARE_CALLS_FOR_EARLIER_PEOPLE, parameters)).all())
    if number:
        await log_change(connection, "calls.prepared", campaign, about=str(number))
    return number


async def store_decision_on_server_call_or_refuse(
    connection: AsyncConnection, campaign: Campaign, call_id: int, decision: str
) -> None:
    """Store that a call was counted (`sent`), is to be made again, or is to be dropped (`cancel`).

    Raises:
        Invalid: `invalid`.
        NotFound: `call_not_found`.
        Conflict: `call_decided`: it is under way, or was settled meanwhile.

    """
    if decision not in STATES_OF_DECISION:
        raise Invalid("The decision is sent, again or cancel.", code="invalid")
    key = {"campaign": campaign.id, "id": call_id}
    state = await connection.scalar(SELECT_STATE_OF_CALL, key)
    if state is None:
        raise NotFound(f"“{campaign.name}” has no call {call_id}.", code="call_not_found")
    if state not in STATES_OF_DECISION[decision]:
        raise Conflict(
            "This call is under way, or was settled meanwhile. Nothing was changed: reload the page.",
            code="call_decided",
        )
    new_state = STATE_AFTER_DECISION[decision]
    await connection.execute(STORE_CALL_DECISION, key | {"state": new_state, "by": CURRENT_ACTOR.get().name})
    await log_change(connection, "calls.decided", campaign, about=f"{call_id}: {decision}")


async def repeat_server_calls_and_count_them(connection: AsyncConnection, campaign: Campaign, state: str) -> int:
    """Let all failed or all unclear calls be made again. Raises `Invalid` (`invalid`) for another state."""
    if state not in get_args(RepeatedState):
        raise Invalid("Only failed or unknown calls can be repeated.", code="invalid")
    parameters = {
        "campaign": campaign.id, "repeated": state, "state": "prepared", "by": CURRENT_ACTOR.get().name,
    }  # fmt: skip
    repeated = (await connection.execute(REPEAT_CALLS, parameters)).all()
    if repeated:
        await log_change(connection, "calls.repeated", campaign, about=f"{len(repeated)} {state}")
    return len(repeated)
