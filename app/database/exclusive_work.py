"""Work that one process at a time does: a row names its holder, and the deadline that the holder moves while it works.

Nothing of a session is needed, so it also holds behind a pooler that lends a session for one transaction. The row of
a killed holder is free after its deadline. A transaction of the work holds its `WorkClaim` until it ends: no other
process takes the work over meanwhile, and a holder that lost its work commits nothing.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.session import DATABASE_ERRORS

log = logging.getLogger(__name__)

CLAIM_SECONDS = 30
RENEWAL_PAUSE_SECONDS = 5.0
MIN_PAUSE_BETWEEN_ATTEMPTS_SECONDS, MAX_PAUSE_BETWEEN_ATTEMPTS_SECONDS = 0.02, 0.5
MAX_WAIT_OF_TRANSACTION_SECONDS = 120.0

# A transaction that requires its claim holds a lock on the row, which moving the deadline does not conflict with. None
# of these waits for another process that is just taking the work over.
DELETE_EXPIRED_CLAIM = text("""
    DELETE FROM exclusive_work WHERE work IN (
        SELECT work FROM exclusive_work WHERE work = :work AND deadline <= clock_timestamp() FOR UPDATE SKIP LOCKED)
""")
INSERT_CLAIM = text("""
    INSERT INTO exclusive_work (work, holder, deadline)
    VALUES (:work, :holder, clock_timestamp() + make_interval(secs => :seconds))
    ON CONFLICT (work) DO NOTHING RETURNING 1
""")
RENEW_CLAIM = text("""
    UPDATE exclusive_work SET deadline = clock_timestamp() + make_interval(secs => :seconds) WHERE work IN (
        SELECT work FROM exclusive_work WHERE work = :work AND holder = :holder FOR NO KEY UPDATE SKIP LOCKED)
""")
LOCK_CLAIM = text("SELECT 1 FROM exclusive_work WHERE work = :work AND holder = :holder FOR KEY SHARE")
DELETE_CLAIM = text("""
    DELETE FROM exclusive_work WHERE work IN (
        SELECT work FROM exclusive_work WHERE work = :work AND holder = :holder FOR UPDATE SKIP LOCKED)
""")


class WorkStillHeld(TimeoutError):
    """Another process held the work for longer than a transaction waits."""


class ClaimLost(RuntimeError):
    """The holder did not move its deadline in time, and another process has taken the work over."""


@dataclass(frozen=True)
class WorkClaim:
    """The right to do some work, as long as no other process has taken it over.

    Attributes:
        work: Name of the work.
        holder: Random name of this holder.

    """

    work: str
    holder: str

    @property
    def sql_parameters(self) -> dict[str, str]:
        return {"work": self.work, "holder": self.holder}

    async def hold_until_transaction_ends_or_raise(self, connection: AsyncConnection) -> None:
        """Let no other process take the work over until the transaction ends. Raises ClaimLost."""
        if (await connection.execute(LOCK_CLAIM, self.sql_parameters)).first() is None:
            raise ClaimLost(f"another process has taken over: {self.work}")


@asynccontextmanager
async def hold_work_during_block(engine: AsyncEngine, work: str) -> AsyncIterator[WorkClaim]:
    """Wait until the work is free, without a connection, and hold it until the block ends."""
    claim = WorkClaim(work, secrets.token_hex(8))
    attempt = 0
    while not await try_to_claim_free_work(engine, claim):
        await asyncio.sleep(seconds_before_next_attempt(attempt))
        attempt += 1
    async with renew_claim_during_block_then_release(engine, claim):
        yield claim


@asynccontextmanager
async def hold_work_during_block_if_free(engine: AsyncEngine, work: str) -> AsyncIterator[WorkClaim | None]:
    """Hold the work until the block ends; yield None if another process holds it."""
    claim = WorkClaim(work, secrets.token_hex(8))
    if not await try_to_claim_free_work(engine, claim):
        yield None
        return
    async with renew_claim_during_block_then_release(engine, claim):
        yield claim


async def claim_work_until_transaction_ends(connection: AsyncConnection, work: str) -> None:
    """Wait until the work is free, and let no other process hold it until the transaction ends.

    A transaction can claim the same work again. Raises WorkStillHeld.
    """
    claim = WorkClaim(work, secrets.token_hex(8))
    attempt = 0
    limit = asyncio.timeout(MAX_WAIT_OF_TRANSACTION_SECONDS)
    try:
        async with limit:
            # The row is seen by others once the transaction has ended, and is past its deadline then.
            while not await try_to_insert_claim_row(connection, claim, claim_seconds=0):
                await asyncio.sleep(seconds_before_next_attempt(attempt))
                attempt += 1
    except TimeoutError as problem:
        if limit.expired():
            raise WorkStillHeld(work) from problem
        raise  # the database did not answer


def seconds_before_next_attempt(attempt: int) -> float:
    """Return how long to wait after a number of attempts, in seconds."""
    return min(MIN_PAUSE_BETWEEN_ATTEMPTS_SECONDS * (1 << min(attempt, 10)), MAX_PAUSE_BETWEEN_ATTEMPTS_SECONDS)


async def try_to_claim_free_work(engine: AsyncEngine, claim: WorkClaim) -> bool:
    """Claim the work if it is free, and return whether it was."""
    async with engine.begin() as connection:
        return await try_to_insert_claim_row(connection, claim, claim_seconds=CLAIM_SECONDS)


async def try_to_insert_claim_row(connection: AsyncConnection, claim: WorkClaim, *, claim_seconds: int) -> bool:
    """Insert the row of a claim if the work is free, and return whether it was."""
    await connection.execute(DELETE_EXPIRED_CLAIM, {"work": claim.work})
    return (
        await connection.execute(INSERT_CLAIM, claim.sql_parameters | {"seconds": claim_seconds})
    ).first() is not None


@asynccontextmanager
async def renew_claim_during_block_then_release(engine: AsyncEngine, claim: WorkClaim) -> AsyncIterator[None]:
    """Move the deadline of a claim until the block ends, then delete the claim."""
    renewal = asyncio.create_task(renew_claim_until_cancelled(engine, claim))
    try:
        yield
    finally:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal
        try:
            async with engine.begin() as connection:
                await connection.execute(DELETE_CLAIM, claim.sql_parameters)
        except DATABASE_ERRORS as problem:
            log.warning("%s is free only after its deadline: %r", claim.work, problem)


async def renew_claim_until_cancelled(engine: AsyncEngine, claim: WorkClaim) -> None:
    while True:
        await asyncio.sleep(RENEWAL_PAUSE_SECONDS)
        try:
            async with engine.begin() as connection:
                await connection.execute(RENEW_CLAIM, claim.sql_parameters | {"seconds": CLAIM_SECONDS})
        except DATABASE_ERRORS as problem:  # tried again; the work checks its claim in each transaction
            log.warning("the deadline of %s could not be moved: %r", claim.work, problem)
