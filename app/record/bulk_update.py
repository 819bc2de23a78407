"""Apply many answers to stored posteriors at once: lock them, read them, apply the law, store them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Record, driver_of, fetch_rows
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.inference.online.law import StateFloats
from app.record import law_storage
from app.record.campaign_law import convert_judging_responses_to_hits_of_law
from app.record.law_runner import LawRunner
from app.record.law_storage import Revision
from app.record.posterior_storage import UPDATE_POSTERIORS_SQL
from app.record.responses import Response

MIN_ANSWERS_IN_THREAD = 100  # fewer take less time than to start a thread
FIND_REVISION = text("SELECT revision FROM campaigns WHERE id = :campaign")

LOCK_ITEM_POSTERIORS = text("""
    SELECT subject, state FROM posteriors
    WHERE campaign_id = :campaign AND revision = :revision AND criterion = :criterion
    AND subject = ANY(CAST(:numbers AS int[])) ORDER BY subject FOR NO KEY UPDATE
""")


# As two arrays: a row for each of thousands of items takes longer to read than to update.
UPDATE_POSTERIORS_RETURNING_ARRAYS = text(f"""
    WITH updated AS ({UPDATE_POSTERIORS_SQL})
    SELECT array_agg(number) AS numbers, array_agg(judgments) AS judgments FROM updated
""")


class LockedPosterior(Record):
    subject: int
    state: list[float]


class JudgmentCountArrays(Record):
    numbers: list[int]
    judgments: list[int]


@dataclass(frozen=True)
class LockedPosteriors:
    """Posteriors by one criterion, by item, which this transaction has locked."""

    revision: Revision
    posteriors: dict[int, StateFloats]


async def take_shared_lock_to_store_answers(connection: AsyncConnection, campaign: Campaign) -> None:
    """Take the shared right to store answers. Take it before writing rows of a campaign and locking posteriors."""
    await connection.execute(law_storage.SHARE_STORE_LOCK, {"campaign": campaign.id})


async def lock_and_load_posteriors_of_each_criterion(
    connection: AsyncConnection, campaign: Campaign, answers: Sequence[Response]
) -> list[LockedPosteriors]:
    """Take the locks that annotators wait for, and return the locked posteriors, one entry per criterion.

    The order is: the right to store, the state of the campaign's law, then for each criterion the posteriors of the
    answers' items in the present revision.
    """
    await take_shared_lock_to_store_answers(connection, campaign)
    revision = (await connection.execute(FIND_REVISION, {"campaign": campaign.id})).scalar_one()
    await connection.execute(law_storage.LOCK_LAW_STATE, {"campaign": campaign.id})
    return [
        await lock_and_load_posteriors_of_items(connection, Revision(campaign.id, revision, criterion.number), answers)
        for criterion in campaign.criteria
    ]


async def lock_and_load_posteriors_of_items(
    connection: AsyncConnection, revision: Revision, answers: Sequence[Response]
) -> LockedPosteriors:
    """Lock and return the posteriors of these answers' items, in number order, unjudged items included."""
    item_numbers = sorted({number for answer in answers for number in (*answer.items, *answer.unjudged_items)})
    parameters = {**revision.sql_parameters, "numbers": item_numbers}
    rows = await fetch_rows(await driver_of(connection), LOCK_ITEM_POSTERIORS, parameters, LockedPosterior)
    return LockedPosteriors(revision, {row.subject: row.state for row in rows})


async def apply_answers_and_count_by_item(
    connection: AsyncConnection, criterion: Criterion[Campaign], answers: Sequence[Response], locked: LockedPosteriors
) -> dict[int, int]:
    """Apply answers to locked posteriors, by a criterion.

    Returns:
        The number of judgments that each item of the answers has afterwards, by item.

    """
    if not answers:
        return {}
    runner = LawRunner(await driver_of(connection), locked.revision, criterion.law, locked.posteriors)
    await apply_answers(runner, criterion, answers)
    return await store_posteriors_and_count_by_item(runner)


async def apply_answers(runner: LawRunner, criterion: Criterion[Campaign], answers: Sequence[Response]) -> None:
    """Apply answers to posteriors in memory."""
    if len(answers) < MIN_ANSWERS_IN_THREAD:
        hits = convert_judging_responses_to_hits_of_law(criterion, answers)
    else:
        hits = await asyncio.to_thread(convert_judging_responses_to_hits_of_law, criterion, answers)
    await runner.apply_hits(hits, criterion.law_parameters)


async def store_posteriors_and_count_by_item(runner: LawRunner) -> dict[int, int]:
    """Store what changed, and return the number of judgments that each item of the HITs has then, by item."""
    if not runner.changed_items:
        return {}
    parameters = await runner.store_law_state_and_return_posterior_parameters()
    (counts,) = await fetch_rows(runner.driver, UPDATE_POSTERIORS_RETURNING_ARRAYS, parameters, JudgmentCountArrays)
    judgments_by_item = dict(zip(counts.numbers, counts.judgments, strict=True))
    return {item: judgments_by_item[item] for item in runner.judgment_counts}
