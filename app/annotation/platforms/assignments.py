"""Annotators, their assignments and page tokens. The first arrival creates an assignment; later ones find it."""

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cachetools import LRUCache
from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import text

from app.annotation.platforms.participant_check import refuse_person_who_may_not_take_part
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, Record, fetch_first_row_or_none, fetch_first_value_or_none, fetch_rows
from app.errors import Forbidden, Gone, Invalid, Refusal, TooManyVisits

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
TOKEN_RENEWAL_AGE = timedelta(minutes=10)
MAX_REMEMBERED_TOKENS = 4_096  # in one process
MAX_CLOCK_SKEW = timedelta(seconds=5)  # between servers, which may issue a token and create an assignment

ADMITTED_TO_EVERY_VERSION = 2**31 - 1  # higher than every version of a campaign's visit

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

# MTurk sends a person with a new assignment for every task. Such an arrival costs the answer of the one before.
SELECT_WHETHER_LATEST_ASSIGNMENT_IS_ANSWERED = text("""
    WITH latest AS MATERIALIZED (
        SELECT id FROM assignments WHERE campaign_id = :campaign AND annotator_id = (
            SELECT id FROM annotators
            WHERE campaign_id = :campaign AND platform = :platform AND worker_id = :worker_id)
        ORDER BY arrived_at DESC, id DESC LIMIT 1
    )
    SELECT coalesce((
        SELECT true FROM hits h
        WHERE h.campaign_id = :campaign AND h.assignment_id = (SELECT id FROM latest) AND (
            SELECT true FROM responses r
            WHERE r.campaign_id = :campaign AND r.hit_id = h.id AND r.replaces IS NULL)
        LIMIT 1), false)
""")

# SQL: the assignment s was created at :arrived_at. True if that is NULL: then no token named the assignment.
ARRIVED_THEN = "s.arrived_at = coalesce(CAST(:arrived_at AS timestamptz), s.arrived_at)"

SELECT_ARRIVAL_TIME = text("SELECT arrived_at FROM assignments WHERE campaign_id = :campaign AND id = :assignment")


@dataclass(frozen=True, slots=True)
class AssignmentId:
    """Ids of an assignment and its campaign.

    After a dump was restored, ids are assigned again, and a token of a lost assignment must not open a new one. So
    statements only find an assignment that was created at `arrived_at` (`ARRIVED_THEN`); None if that is not known.
    """

    campaign_id: int
    assignment_id: int
    arrived_at: datetime | None = field(default=None, compare=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"campaign": self.campaign_id, "assignment": self.assignment_id, "arrived_at": self.arrived_at}


class AssignmentRow(Record):
    """Id of an assignment and time of its creation."""

    id: int
    arrived_at: datetime


async def has_arrived_before(connection: Driver, campaign_id: int, platform: str, arrival: Arrival) -> bool:
    """Return whether this annotator has arrived from this platform before, in this or another assignment."""
    parameters = {"campaign": campaign_id, "platform": platform, "worker_id": arrival.worker_id}
    return await fetch_first_value_or_none(connection, SELECT_ANNOTATOR_ID, parameters) is not None


async def find_or_create_assignment(
    connection: Driver,
    campaign_id: int,
    platform: str,
    arrival: Arrival,
    *,
    now: datetime,
    visitor: Visitor | None = None,
    admitted_visit_version: int = 0,
) -> AssignmentId:
    """Return the assignment of an arrival, created at the first one. Concurrent arrivals get the same (ON CONFLICT).

    Args:
        connection: Connection of the request.
        campaign_id: Id of the campaign.
        platform: Name of the platform.
        arrival: The annotator by the platform's ids.
        now: Time of the arrival.
        visitor: Origin of the request, if no platform vouches for the annotator. An annotator who answered in their
            latest assignment is no new visitor.
        admitted_visit_version: Version of the campaign's visit that a new annotator is admitted to.

    Raises:
        Forbidden: `may_not_take_part`, if the person may not take part and has not arrived before.
        TooManyVisits: The first arrival exceeds the limit on new visits.

    """
    key = {
        "campaign": campaign_id,
        "platform": platform,
        "worker_id": arrival.worker_id,
        "assignment_id": arrival.assignment_id,
    }
    row = await fetch_first_row_or_none(connection, SELECT_ASSIGNMENT, key, AssignmentRow)
    if row is None:
        details = {
            "pseudonym": secrets.token_hex(5),
            "details": json.dumps(arrival.details),
            "now": now,
            "admitted": admitted_visit_version,
        }
        if visitor is not None and await has_answered_in_latest_assignment(connection, key):
            visitor = None
        # With a limit on visits in one transaction: a concurrent request that finds no room waits for this assignment.
        async with nullcontext() if visitor is None else connection.transaction():
            created = await create_assignment_or_return_refusal(connection, arrival, key, details, visitor=visitor)
        if isinstance(created, Refusal):
            raise created
        row = created
    return AssignmentId(campaign_id, row.id, row.arrived_at)


async def has_answered_in_latest_assignment(connection: Driver, key: Mapping[str, Any]) -> bool:
    parameters = {name: key[name] for name in ("campaign", "platform", "worker_id")}
    return bool(await fetch_first_value_or_none(connection, SELECT_WHETHER_LATEST_ASSIGNMENT_IS_ANSWERED, parameters))


async def create_assignment_or_return_refusal(
    connection: Driver, arrival: Arrival, key: Mapping[str, Any], details: Mapping[str, Any], *, visitor: Visitor | None
) -> AssignmentRow | Refusal:
    """Count a new visit and create its assignment, or return why not. A refusal is not raised: its counts are kept.

    Args:
        connection: Connection of the request, in a transaction.
        arrival: The annotator by the platform's ids.
        key: Values of `SELECT_ASSIGNMENT`.
        details: What else `UPSERT_ASSIGNMENT` stores.
        visitor: Origin of the request, if no platform vouches for the annotator.

    """
    try:
        if visitor is not None:
            await visitor.charge_visit_or_refuse(connection, key["campaign"], now=details["now"])
        # After the visit was counted: the limit on visits also limits how many ids a visitor can try out.
        await refuse_person_who_may_not_take_part(connection, key["campaign"], key["platform"], arrival)
    except (TooManyVisits, Forbidden) as refusal:
        # A concurrent request may have created it.
        return await fetch_first_row_or_none(connection, SELECT_ASSIGNMENT, key, AssignmentRow) or refusal
    (row,) = await fetch_rows(connection, UPSERT_ASSIGNMENT, {**key, **details}, AssignmentRow)
    return row


@dataclass(frozen=True)
class WorkerToken:
    """Content of a token with a valid signature. In tokens of earlier versions `assignment.arrived_at` is None."""

    assignment: AssignmentId
    issued_at: datetime

    def matches_arrival(self, arrived_at: datetime) -> bool:
        """Return whether the token's assignment was created at this time, and is not an earlier one with its id."""
        if self.assignment.arrived_at is not None:
            return self.assignment.arrived_at == arrived_at
        return self.issued_at + MAX_CLOCK_SKEW >= arrived_at


async def refuse_outdated_token(connection: Driver, token: WorkerToken) -> None:
    """Raise `Gone` (`token_expired`) for a token that is older than the assignment with its id."""
    key = {"campaign": token.assignment.campaign_id, "assignment": token.assignment.assignment_id}
    arrived_at: datetime | None = await fetch_first_value_or_none(connection, SELECT_ARRIVAL_TIME, key)
    if arrived_at is not None and not token.matches_arrival(arrived_at):
        raise token_expired_error()


def token_expired_error() -> Gone:
    return Gone(
        "This page was open for too long. Answers you submitted are safe. Open the study's link again to go on.",
        code="token_expired",
    )


class WorkerTokens:
    """Signed, expiring tokens that identify the annotator of a page. The page carries them, so frames need no cookie.

    The signature covers the address, so a token does not open the page of another campaign or platform. The latest
    tokens are remembered: signing one takes longer than a query. An annotator's page keeps its token for
    `TOKEN_RENEWAL_AGE`.
    """

    def __init__(self, secret_key: str, *, hours: int) -> None:
        self._secret_key = secret_key
        self._max_age = timedelta(hours=hours)
        self._issued: LRUCache[tuple[str, str, AssignmentId, datetime | None], tuple[str, datetime]] = LRUCache(
            MAX_REMEMBERED_TOKENS
        )
        self._read: LRUCache[tuple[str, str, str], WorkerToken] = LRUCache(MAX_REMEMBERED_TOKENS)

    def issue_or_reuse_token(self, platform: str, link_key: str, assignment: AssignmentId) -> str:
        key = platform, link_key, assignment, assignment.arrived_at
        now = datetime.fromtimestamp(time.time(), UTC)  # the clock of the signature
        token, issued_at = self._issued.get(key, ("", now))
        if not token or not timedelta(0) <= now - issued_at < TOKEN_RENEWAL_AGE:
            arrived_at = [] if assignment.arrived_at is None else [(assignment.arrived_at - UNIX_EPOCH) // MICROSECOND]
            token = self._serializer(platform, link_key).dumps(
                [assignment.campaign_id, assignment.assignment_id, *arrived_at]
            )
            self._issued[key] = token, now
        return token

    def read_token_or_refuse(self, token: str, platform: str, link_key: str) -> WorkerToken:
        """Return the content of a token. Raises `Gone` (`token_expired`) or `Invalid` (`token_invalid`)."""
        if (worker_token := self._read.get((token, platform, link_key))) is None:
            worker_token = self._worker_token_or_refuse_wrong(token, platform, link_key)
            self._read[token, platform, link_key] = worker_token
        # Not `max_age`: it would treat a token as expired if the issuing machine's clock is ahead of this one's.
        if datetime.now(UTC) - worker_token.issued_at > self._max_age:
            raise token_expired_error()
        return worker_token

    def _worker_token_or_refuse_wrong(self, token: str, platform: str, link_key: str) -> WorkerToken:
        """Return the content of a token, whatever its age. Raises `Invalid` (`token_invalid`)."""
        try:
            numbers, issued_at = self._serializer(platform, link_key).loads(token, return_timestamp=True)
            campaign_id, assignment_id, *arrival_microseconds = map(int, numbers)
            arrived_at = UNIX_EPOCH + arrival_microseconds[0] * MICROSECOND if arrival_microseconds else None
        except (BadSignature, ValueError, TypeError, OverflowError) as problem:
            raise Invalid(
                "This page's link is damaged. Answers you submitted are safe. Open the study's link again to go on.",
                code="token_invalid",
            ) from problem
        return WorkerToken(AssignmentId(campaign_id, assignment_id, arrived_at), issued_at)

    def _serializer(self, platform: str, link_key: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret_key, salt=f"worker /{platform}/{link_key}")
