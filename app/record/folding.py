"""Many answers at once on stored posteriors: locked, read, changed and stored together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import driver_of
from app.designs.criteria import criteria_of, number_of
from app.inference.online.law import State
from app.record import states
from app.record.known import Known
from app.record.law import hits_of, law_of, parameters_of
from app.record.states import Revision
from app.record.store import UPDATE_POSTERIORS
from app.record.stream import Response

REVISION = text("SELECT revision FROM campaigns WHERE id = :campaign")

LOCK_POSTERIORS = text("""
    SELECT subject, state FROM posteriors
    WHERE campaign_id = :campaign AND revision = :revision AND criterion = :criterion
    AND subject = ANY(CAST(:numbers AS int[])) ORDER BY subject FOR NO KEY UPDATE
""")


@dataclass(frozen=True)
class Locked:
    """Posteriors by one criterion, by item, that nobody else can change."""

    of: Revision
    posteriors: dict[int, State]


async def share(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """The right to store answers: whoever writes rows of a campaign before it locks posteriors takes it first."""
    await connection.execute(states.SHARE, {"campaign": campaign.id})


async def lock_present(connection: AsyncConnection, campaign: Row[Any], answers: Sequence[Response]) -> list[Locked]:
    """Take the locks that annotators wait for: the right to store, what the campaign's law keeps, then by each
    criterion the posteriors of the answers' items in its present revision.
    """
    await share(connection, campaign)
    revision = (await connection.execute(REVISION, {"campaign": campaign.id})).scalar_one()
    await connection.execute(states.LOCK, {"campaign": campaign.id})
    views = criteria_of(campaign)
    return [await lock(connection, Revision(campaign.id, revision, number_of(view)), answers) for view in views]


async def lock(connection: AsyncConnection, of: Revision, answers: Sequence[Response]) -> Locked:
    """The posteriors of these answers' items, those too of which they say nothing, in number order."""
    touched = sorted({number for answer in answers for number in (*answer.items, *answer.others)})
    rows = await connection.execute(LOCK_POSTERIORS, {**of.parameters, "numbers": touched})
    return Locked(of, {row.subject: row.state for row in rows})


async def fold(
    connection: AsyncConnection, campaign: Any, answers: Sequence[Response], locked: Locked
) -> dict[int, int]:
    """Apply answers to locked posteriors, by the criterion that the campaign is read by; the judgments that the
    answers' items have then.
    """
    if not answers:
        return {}
    known = Known(await driver_of(connection), locked.of, law_of(campaign), locked.posteriors)
    await known.apply(hits_of(campaign, answers), parameters_of(campaign))
    after = {row.number: row.judgments for row in await connection.execute(UPDATE_POSTERIORS, await known.keep())}
    return {item: after[item] for item in known.judged}
