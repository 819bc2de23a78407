"""Holding annotators: they get no further HIT until somebody lets them go on. Their answers stay as they are."""

from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import Actor, note
from app.errors import Conflict, NotFound

HOLD = text("""
    UPDATE annotators SET held_at = :now WHERE campaign_id = :campaign AND id = :annotator AND held_at IS NULL
""")

RELEASE = text("""
    UPDATE annotators SET held_at = NULL WHERE campaign_id = :campaign AND id = :annotator AND held_at IS NOT NULL
""")

NAME = text("SELECT name FROM named_annotators WHERE campaign_id = :campaign AND id = :annotator")

BY_NAME = text("""
    SELECT id FROM named_annotators WHERE campaign_id = :campaign AND :name IN (name, pseudonym)
""")


async def hold(
    connection: AsyncConnection,
    campaign: Any,
    annotator: int,
    *,
    because: str,
    now: datetime,
    by: Actor | None = None,
) -> bool:
    """Give an annotator, by their row's id, no further HIT; whether they got some before. Of two at once one does.

    by: who does it, if the request or the command does not say so.
    """
    parameters = {"campaign": campaign.id, "annotator": annotator, "now": now}
    held = (await connection.execute(HOLD, parameters)).rowcount == 1
    if held:
        await note(
            connection,
            "answers.hold",
            campaign,
            about=await name_of(connection, campaign.id, annotator),
            after={"reason": because},
            by=by,
        )
    return held


async def release(connection: AsyncConnection, campaign: Any, annotator: int, *, because: str) -> None:
    """Let an annotator go on. Raises `Conflict` (`not_held`)."""
    name = await name_of(connection, campaign.id, annotator)
    parameters = {"campaign": campaign.id, "annotator": annotator}
    if (await connection.execute(RELEASE, parameters)).rowcount != 1:
        raise Conflict(f"{name} is not held. Nothing was changed.", code="not_held")
    await note(connection, "answers.release", campaign, about=name, after={"reason": because})


async def name_of(connection: AsyncConnection, campaign: int, annotator: int) -> str:
    """A1, A2, ..., as pages call them."""
    found = await connection.execute(NAME, {"campaign": campaign, "annotator": annotator})
    name: str = found.scalar_one()
    return name


async def annotator_called(connection: AsyncConnection, campaign: Any, name: str) -> int:
    """The row's id of the annotator whom pages call A7, or who has a pseudonym. Raises `NotFound`
    (`annotator_not_found`).
    """
    found = (await connection.execute(BY_NAME, {"campaign": campaign.id, "name": name})).scalar_one_or_none()
    if found is None:
        raise NotFound(f"“{campaign.name}” has no annotator of this name.", code="annotator_not_found")
    return int(found)
