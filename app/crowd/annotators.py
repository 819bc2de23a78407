"""Annotators and their assignments: made on the first arrival, found again on every later one."""

import json
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import text

from app.crowd.doors import Visitor
from app.crowd.platform import Arrival
from app.database.session import Driver, Id, Record, fetch, fetch_one
from app.errors import Gone, Invalid, Refusal, TooManyVisits

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CLOCKS_DIFFER = timedelta(seconds=5)  # of servers, which may issue a token and make an assignment

T = TypeVar("T")  # Python 3.11 has no other way

FOR_GOOD = 2**31 - 1  # a version of the visit that no campaign has

ARRIVE = text("""
    WITH annotator AS (
        INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at, admitted)
        VALUES (:campaign, :platform, :worker_id, :pseudonym, :now, :admitted)
        ON CONFLICT (campaign_id, platform, worker_id) DO UPDATE SET worker_id = excluded.worker_id
        RETURNING id
    )
    INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
    SELECT :campaign, id, :assignment_id, CAST(:details AS jsonb), :now FROM annotator
    ON CONFLICT (campaign_id, annotator_id, external_id) DO UPDATE SET external_id = excluded.external_id
    RETURNING id, arrived_at
""")


KNOWN = text("""
    SELECT id FROM annotators WHERE campaign_id = :campaign AND platform = :platform AND worker_id = :worker_id
""")

FIND = text("""
    SELECT s.id, s.arrived_at
    FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = :worker_id
      AND s.external_id = :assignment_id
""")


# SQL: the assignment s was made at :arrived_at. True where that is NULL: then no token named the assignment.
ARRIVED_THEN = "s.arrived_at = coalesce(CAST(:arrived_at AS timestamptz), s.arrived_at)"

ARRIVED_AT = text("SELECT arrived_at FROM assignments WHERE campaign_id = :campaign AND id = :assignment")


@dataclass(frozen=True, slots=True)
class AssignmentId:
    """An assignment and its campaign, by their rows' ids.

    arrived_at: when it was made, where that is known. After a dump was restored, ids are given out again, and tokens of
    lost assignments must not open those of others: statements find only an assignment that was made then
    (`ARRIVED_THEN`).
    """

    campaign: int
    assignment: int
    arrived_at: datetime | None = field(default=None, compare=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"campaign": self.campaign, "assignment": self.assignment, "arrived_at": self.arrived_at}


class MadeAssignment(Record):
    """A row of an assignment, and when it was made."""

    id: int
    arrived_at: datetime


class ArrivalTime(Record):
    """When an assignment was made."""

    arrived_at: datetime


async def is_known(connection: Driver, campaign_id: int, platform: str, arrival: Arrival) -> bool:
    """Whether somebody has come by this platform before, in this assignment or another one."""
    parameters = {"campaign": campaign_id, "platform": platform, "worker_id": arrival.worker_id}
    return await fetch_one(connection, KNOWN, parameters, Id) is not None


async def arrive(
    connection: Driver,
    campaign_id: int,
    platform: str,
    arrival: Arrival,
    *,
    now: datetime,
    visitor: Visitor | None = None,
    admitted: int = 0,
) -> AssignmentId:
    """The assignment of an arrival; two tabs that arrive at once get the same one (ON CONFLICT decides).

    `visitor`: from where they come, when nobody vouches for them. `admitted`: under which version of the campaign's
    visit they are let in if they are new. Raises `TooManyVisits` if it is their first arrival.
    """
    parameters = {
        "campaign": campaign_id,
        "platform": platform,
        "worker_id": arrival.worker_id,
        "pseudonym": secrets.token_hex(5),
        "assignment_id": arrival.assignment_id,
        "details": json.dumps(arrival.details),
        "now": now,
        "admitted": admitted,
    }
    found = await fetch_one(connection, FIND, parameters, MadeAssignment)
    if found is None and visitor is not None:
        try:
            await visitor.come_in(connection, campaign_id, now=now)
        except TooManyVisits:
            found = await fetch_one(connection, FIND, parameters, MadeAssignment)
            if found is None:  # nor has a concurrent request of theirs come in
                raise
    if found is None:
        (found,) = await fetch(connection, ARRIVE, parameters, MadeAssignment)
    return AssignmentId(campaign_id, found.id, found.arrived_at)


@dataclass(frozen=True)
class WorkerToken:
    """Content of a token with a good signature. Older tokens do not tell when their assignment was made:
    `assignment.arrived_at` is then None.
    """

    assignment: AssignmentId
    issued_at: datetime

    def may_be_of(self, arrived_at: datetime) -> bool:
        """Whether the token is of an assignment that was made then, not of an earlier one with the same id."""
        if self.assignment.arrived_at is not None:
            return self.assignment.arrived_at == arrived_at
        return self.issued_at + CLOCKS_DIFFER >= arrived_at


async def check_arrival(connection: Driver, token: WorkerToken) -> None:
    """Raise `Gone` (`token_expired`) for a token that is older than the assignment that now has its id."""
    row = await fetch_one(connection, ARRIVED_AT, token.assignment.parameters, ArrivalTime)
    if row is not None and not token.may_be_of(row.arrived_at):
        raise token_expired()


async def refuse_old_token(connection: Driver, token: WorkerToken, reply: Awaitable[T]) -> T:
    """Await the reply to a token, and check the token only if the reply is a refusal.

    A good token so costs no statement of its own: those of the reply find nothing for an old one (`ARRIVED_THEN`).

    Raises:
        Gone: `token_expired`, in the place of any refusal of the reply to an old token.

    """
    try:
        return await reply
    except Refusal:
        await check_arrival(connection, token)
        raise


def token_expired() -> Gone:
    return Gone(
        "This page was open for too long. Answers you submitted are safe. Open the task's link again to go on.",
        code="token_expired",
    )


class WorkerTokens:
    """Signed, expiring tokens that say whose page this is. They travel in the page: frames need no cookie.

    The signature covers the address that a token was made for, so it opens no other campaign's or platform's page.
    """

    def __init__(self, secret_key: str, *, hours: int) -> None:
        self._secret_key = secret_key
        self._max_age = timedelta(hours=hours)

    def issue(self, platform: str, link_key: str, assignment: AssignmentId) -> str:
        arrived_at = [] if assignment.arrived_at is None else [(assignment.arrived_at - EPOCH) // MICROSECOND]
        return self._at(platform, link_key).dumps([assignment.campaign, assignment.assignment, *arrived_at])

    def read(self, token: str, platform: str, link_key: str) -> WorkerToken:
        """Whose page it is. Raises `Gone` (`token_expired`) or `Invalid` (`token_invalid`)."""
        try:
            said, issued_at = self._at(platform, link_key).loads(token, return_timestamp=True)
            campaign_id, assignment_id, *arrived = map(int, said)
            # Not `max_age`: it takes a token for expired that a machine issued whose clock is ahead of this one's.
            expired = datetime.now(UTC) - issued_at > self._max_age
            arrived_at = EPOCH + arrived[0] * MICROSECOND if arrived else None
        except (BadSignature, ValueError, TypeError, OverflowError) as problem:
            raise Invalid(
                "This page's link is damaged. Answers you submitted are safe. Open the task's link again to go on.",
                code="token_invalid",
            ) from problem
        if expired:
            raise token_expired()
        return WorkerToken(AssignmentId(campaign_id, assignment_id, arrived_at), issued_at)

    def _at(self, platform: str, link_key: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret_key, salt=f"worker /{platform}/{link_key}")
