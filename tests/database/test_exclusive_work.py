"""Work that one process at a time does, whatever becomes of its holder."""

import asyncio

import pytest
from sqlalchemy import text

from app.database import exclusive_work
from app.database.exclusive_work import (
    ClaimLost,
    WorkStillHeld,
    claim_work_until_transaction_ends,
    hold_work_during_block,
    hold_work_during_block_if_free,
)
from app.database.session import create_engine
from tests.annotation.hits.campaigns import fetch_value, requests_are_waiting_sql, wait_until

HOLDER = "SELECT holder FROM exclusive_work WHERE work = 'tidying'"


async def end_deadline(engine):
    """Let time pass, as after the holder was killed."""
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE exclusive_work SET deadline = clock_timestamp() - interval '1 s'"))


async def test_the_second_holder_waits_for_the_first(engine):
    async with hold_work_during_block(engine, "tidying"):
        second = asyncio.create_task(hold_once(engine))
        async with hold_work_during_block_if_free(engine, "tidying") as claim:
            assert claim is None
        async with hold_work_during_block_if_free(engine, "something else") as claim:
            assert claim is not None
        assert not second.done()
    await second
    assert await fetch_value(engine, "SELECT count(*) FROM exclusive_work") == 0


async def hold_once(engine):
    async with hold_work_during_block(engine, "tidying") as claim:
        return claim


async def test_waiting_takes_no_connection(database_url):
    small = create_engine(database_url, pool_size=1)
    async with hold_work_during_block(small, "tidying"):
        waiting = [asyncio.create_task(hold_once(small)) for _ in range(5)]
        assert await fetch_value(small, "SELECT 1") == 1
    await asyncio.gather(*waiting)
    await small.dispose()


async def test_work_of_a_killed_holder_is_free_after_its_deadline(engine):
    async with hold_work_during_block(engine, "tidying") as killed:
        await end_deadline(engine)
        async with hold_work_during_block(engine, "tidying") as claim:
            assert claim.holder != killed.holder
        assert await fetch_value(engine, "SELECT count(*) FROM exclusive_work") == 0


async def test_a_holder_whose_work_was_taken_over_commits_nothing(engine):
    async with hold_work_during_block(engine, "tidying") as killed:
        await end_deadline(engine)
        async with hold_work_during_block(engine, "tidying") as claim:
            async with engine.begin() as connection:
                await claim.hold_until_transaction_ends_or_raise(connection)
            with pytest.raises(ClaimLost, match="another process"):
                async with engine.begin() as connection:
                    await killed.hold_until_transaction_ends_or_raise(connection)


async def test_a_late_holder_goes_on_if_its_work_was_not_taken_over(engine):
    async with hold_work_during_block(engine, "tidying") as late:
        await end_deadline(engine)
        async with engine.begin() as connection:
            await late.hold_until_transaction_ends_or_raise(connection)


async def test_nothing_is_taken_over_while_its_holder_commits(engine):
    async with hold_work_during_block(engine, "tidying") as late:
        await end_deadline(engine)
        async with engine.begin() as connection:
            await late.hold_until_transaction_ends_or_raise(connection)
            async with hold_work_during_block_if_free(engine, "tidying") as claim:
                assert claim is None
        async with hold_work_during_block_if_free(engine, "tidying") as claim:
            assert claim is not None


async def test_the_deadline_moves_while_the_holder_works_even_in_a_transaction(engine, monkeypatch):
    monkeypatch.setattr(exclusive_work, "RENEWAL_PAUSE_SECONDS", 0.01)
    async with hold_work_during_block(engine, "tidying") as claim, engine.begin() as connection:
        await claim.hold_until_transaction_ends_or_raise(connection)
        first = await fetch_value(engine, "SELECT deadline FROM exclusive_work")
        await wait_until(engine, f"SELECT deadline > '{first}' FROM exclusive_work")


@pytest.mark.own_database  # all of its connections break
async def test_a_renewal_that_fails_is_tried_again(engine, monkeypatch):
    monkeypatch.setattr(exclusive_work, "RENEWAL_PAUSE_SECONDS", 0.01)
    async with hold_work_during_block(engine, "tidying"):
        first = await fetch_value(engine, "SELECT deadline FROM exclusive_work")
        async with engine.begin() as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            await connection.execute(text(f"{others} AND datname = current_database()"))
        await wait_until(engine, f"SELECT deadline > '{first}' FROM exclusive_work")


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_claim_of_a_transaction_ends_with_it(engine, ending):
    async with engine.connect() as connection:
        for _ in range(2):  # it may be claimed again
            await claim_work_until_transaction_ends(connection, "tidying")
        waiting = asyncio.create_task(hold_once(engine))
        await wait_until(engine, requests_are_waiting_sql(1))
        await getattr(connection, ending)()
        await waiting


async def test_a_transaction_waits_for_the_holder_and_takes_over_from_a_killed_one(engine):
    async with engine.connect() as connection:
        async with hold_work_during_block(engine, "tidying"):
            claiming = asyncio.create_task(claim_work_until_transaction_ends(connection, "tidying"))
            assert await fetch_value(engine, HOLDER) is not None
            assert not claiming.done()
        await claiming
        await connection.rollback()
        async with hold_work_during_block(engine, "tidying"):
            await end_deadline(engine)
            await claim_work_until_transaction_ends(connection, "tidying")


async def test_a_transaction_that_waits_too_long_is_told_to_try_again(engine, monkeypatch):
    monkeypatch.setattr(exclusive_work, "MAX_WAIT_OF_TRANSACTION_SECONDS", 0.01)
    async with hold_work_during_block(engine, "tidying"), engine.connect() as connection:
        with pytest.raises(WorkStillHeld):
            await claim_work_until_transaction_ends(connection, "tidying")
