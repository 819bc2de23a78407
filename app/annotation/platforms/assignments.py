"""Annotators and their assignments: made on the first arrival, found again on every later one."""

import json
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import text

from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, IdRow, Record, fetch_first_row, fetch_rows
from app.errors import Gone, Invalid, Refusal, TooManyVisits

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_CLOCK_SKEW = timedelta(seconds=5)  # of servers, which may issue a token and make an assignment

T = TypeVar("T")  # Python 3.11 has no other way

ADMITTED_TO_EVERY_VERSION = 2**31 - 1  # a version of the visit that no campaign has

UPSERT_ASSIGNMENT = text("""
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


SELECT_ANNOTATOR_ID = text("""
    SELECT id FROM annotators WHERE campaign_id = :campaign AND platform = :platform AND worker_id = :worker_id
""")

SELECT_ASSIGNMENT = text("""
    SELECT s.id, s.arrived_at
    FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = :worker_id
      AND s.external_id = :assignment_id
""")


# SQL: the assignment s was made at :arrived_at. True where that is NULL: then no token named the assignment.
ARRIVED_THEN = "s.arrived_at = coalesce(CAST(:arrived_at AS timestamptz), s.arrived_at)"

SELECT_ARRIVAL_TIME = text("SELECT arrived_at FROM assignments WHERE campaign_id = :campaign AND id = :assignment")


@dataclass(frozen=True, slots=True)
class AssignmentId:
    """An assignment and its campaign, by their rows' ids.

    arrived_at: when it was made, where that is known. After a dump was restored, ids are given out again, and tokens of
    lost assignments must not open those of others: statements find only an assignment that was made then
    (`ARRIVED_THEN`).
    """

    campaign_id: int
    assignment_id: int
    arrived_at: datetime | None = field(default=None, compare=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"campaign": self.campaign_id, "assignment": self.assignment_id, "arrived_at": self.arrived_at}


class AssignmentRow(Record):
    """A row of an assignment, and when it was made."""

    id: int
    arrived_at: datetime


class ArrivalTime(Record):
    """When an assignment was made."""

    arrived_at: datetime


async def has_arrived_before(connection: Driver, campaign_id: int, platform: str, arrival: Arrival) -> bool:
    """Whether somebody has come by this platform before, in this assignment or another one."""
    parameters = {"campaign": campaign_id, "platform": platform, "worker_id": arrival.worker_id}
    return await fetch_first_row(connection, SELECT_ANNOTATOR_ID, parameters, IdRow) is not None


async def find_or_create_assignment(
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
    row = await fetch_first_row(connection, SELECT_ASSIGNMENT, parameters, AssignmentRow)
    if row is None and visitor is not None:
        try:
            await visitor.charge_visit(connection, campaign_id, now=now)
        except TooManyVisits:
            row = await fetch_first_row(connection, SELECT_ASSIGNMENT, parameters, AssignmentRow)
            if row is None:  # nor has a concurrent request of theirs come in
                raise
    if row is None:
        (row,) = await fetch_rows(connection, UPSERT_ASSIGNMENT, parameters, AssignmentRow)
    return AssignmentId(campaign_id, row.id, row.arrived_at)


@dataclass(frozen=True)
class WorkerToken:
    """Content of a token with a good signature. Older tokens do not tell when their assignment was made:
    `assignment.arrived_at` is then None.
    """

    assignment: AssignmentId
    issued_at: datetime

    def matches_arrival(self, arrived_at: datetime) -> bool:
        """Whether the token is of an assignment that was made then, not of an earlier one with the same id."""
        if self.assignment.arrived_at is not None:
            return self.assignment.arrived_at == arrived_at
        return self.issued_at + MAX_CLOCK_SKEW >= arrived_at


async def check_token_age(connection: Driver, token: WorkerToken) -> None:
    """Raise `Gone` (`token_expired`) for a token that is older than the assignment that now has its id."""
    row = await fetch_first_row(connection, SELECT_ARRIVAL_TIME, token.assignment.parameters, ArrivalTime)
    if row is not None and not token.matches_arrival(row.arrived_at):
        raise token_expired_error()


async def refuse_old_token(connection: Driver, token: WorkerToken, reply: Awaitable[T]) -> T:
    """Await the reply to a token, and check the token only if the reply is a refusal.

    A good token so costs no statement of its own: those of the reply find nothing for an old one (`ARRIVED_THEN`).

    Raises:
        Gone: `token_expired`, in the place of any refusal of the reply to an old token.

    """
    try:
        return await reply
    except Refusal:
        await check_token_age(connection, token)
        raise


def token_expired_error() -> Gone:
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

    def issue_token(self, platform: str, link_key: str, assignment: AssignmentId) -> str:
        arrived_at = [] if assignment.arrived_at is None else [(assignment.arrived_at - UNIX_EPOCH) // MICROSECOND]
        return self._serializer(platform, link_key).dumps(
            [assignment.campaign_id, assignment.assignment_id, *arrived_at]
        )

    def read_token(self, token: str, platform: str, link_key: str) -> WorkerToken:
        """Whose page it is. Raises `Gone` (`token_expired`) or `Invalid` (`token_invalid`)."""
        try:
            numbers, issued_at = self._serializer(platform, link_key).loads(token, return_timestamp=True)
            campaign_id, assignment_id, *arrival_microseconds = map(int, numbers)
            # Not `max_age`: it takes a token for expired that a machine issued whose clock is ahead of this one's.
            expired = datetime.now(UTC) - issued_at > self._max_age
            arrived_at = UNIX_EPOCH + arrival_microseconds[0] * MICROSECOND if arrival_microseconds else None
        except (BadSignature, ValueError, TypeError, OverflowError) as problem:
            raise Invalid(
                "This page's link is damaged. Answers you submitted are safe. Open the task's link again to go on.",
                code="token_invalid",
            ) from problem
        if expired:
            raise token_expired_error()
        return WorkerToken(AssignmentId(campaign_id, assignment_id, arrived_at), issued_at)

    def _serializer(self, platform: str, link_key: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret_key, salt=f"worker /{platform}/{link_key}")
