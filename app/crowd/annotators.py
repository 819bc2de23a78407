"""Annotators and their assignments: made on the first arrival, found again on every later one."""

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import text

from app.crowd.doors import Visitor
from app.crowd.platform import Arrival
from app.database.session import Driver, Id, fetch, fetch_one
from app.errors import Gone, Invalid

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
    RETURNING id
""")


KNOWN = text("""
    SELECT id FROM annotators WHERE campaign_id = :campaign AND platform = :platform AND worker_id = :worker_id
""")

FIND = text("""
    SELECT s.id FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = :worker_id
      AND s.external_id = :assignment_id
""")


@dataclass(frozen=True, slots=True)
class AssignmentId:
    """Which assignment of which campaign, by their rows' ids."""

    campaign: int
    assignment: int

    @property
    def parameters(self) -> dict[str, int]:
        return {"campaign": self.campaign, "assignment": self.assignment}


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
    found = await fetch_one(connection, FIND, parameters, Id)
    if found is None:
        if visitor is not None:
            await visitor.come_in(connection, campaign_id, now=now)
        (found,) = await fetch(connection, ARRIVE, parameters, Id)
    return AssignmentId(campaign_id, found.id)


class WorkerTokens:
    """Signed, expiring tokens that say whose page this is. They travel in the page: frames need no cookie.

    The signature covers the address that a token was made for, so it opens no other campaign's or platform's page.
    """

    def __init__(self, secret_key: str, *, hours: int) -> None:
        self._secret_key = secret_key
        self._max_age = timedelta(hours=hours)

    def issue(self, platform: str, link_key: str, assignment: AssignmentId) -> str:
        return self._at(platform, link_key).dumps([assignment.campaign, assignment.assignment])

    def read(self, token: str, platform: str, link_key: str) -> AssignmentId:
        """Whose page it is. Raises `Gone` (`token_expired`) or `Invalid` (`token_invalid`)."""
        try:
            (campaign_id, assignment_id), issued_at = self._at(platform, link_key).loads(token, return_timestamp=True)
            # Not `max_age`: it takes a token for expired that a machine issued whose clock is ahead of this one's.
            expired = datetime.now(UTC) - issued_at > self._max_age
            assignment = AssignmentId(int(campaign_id), int(assignment_id))
        except (BadSignature, ValueError, TypeError) as problem:
            raise Invalid(
                "This page's link is damaged. Answers you submitted are safe. Open the task's link again to go on.",
                code="token_invalid",
            ) from problem
        if expired:
            raise Gone(
                "This page was open for too long. Answers you submitted are safe. Open the task's link again to go on.",
                code="token_expired",
            )
        return assignment

    def _at(self, platform: str, link_key: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret_key, salt=f"worker /{platform}/{link_key}")
