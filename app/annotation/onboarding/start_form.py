"""Form with the Start button of the open link, which starts only one visit if it is pressed twice.

Each welcome page has a random token in its form. The annotator is stored under its digest, so the unique key of
annotators decides which of two concurrent presses creates the row, even if different processes handle them.
"""

import re
import secrets
from datetime import datetime, timedelta
from hashlib import sha256

from app.annotation.platforms.assignments import AssignmentId, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver

FIELD = "start"  # name of the form's field
SAME_PRESS = timedelta(minutes=1)  # presses further apart come from several people at one browser
TOKEN = re.compile("[0-9a-f]{32}")


def new_token() -> str:
    return secrets.token_hex(16)


async def find_or_create_assignment_of_start_press(
    connection: Driver,
    campaign_id: int,
    platform: str,
    token: str | None,
    *,
    now: datetime,
    visitor: Visitor,
    admitted_visit_version: int,
) -> AssignmentId:
    """Return the assignment for a press on Start: the same as for a recent press on the same page, else a new one.

    Args:
        connection: The caller's transaction.
        campaign_id: The campaign of the link.
        platform: Name of the link's platform.
        token: Token from the form; other text counts as none.
        now: The time of the press.
        visitor: Origin of the press.
        admitted_visit_version: Version of the campaign's visit that a new annotator is admitted to.

    Raises:
        TooManyVisits: No more people are admitted for now.

    """

    async def find_or_create_assignment_of_worker(worker_id: str) -> AssignmentId:
        arrival = Arrival(worker_id, assignment_id="visit")
        return await find_or_create_assignment(
            connection,
            campaign_id,
            platform,
            arrival,
            now=now,
            visitor=visitor,
            admitted_visit_version=admitted_visit_version,
        )

    if token and TOKEN.fullmatch(token):
        assignment = await find_or_create_assignment_of_worker(sha256(token.encode()).hexdigest()[:32])
        if assignment.arrived_at is None or now - assignment.arrived_at <= SAME_PRESS:
            return assignment
    return await find_or_create_assignment_of_worker(new_token())
