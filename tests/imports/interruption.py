"""Imports of answers that stop as if their process were killed, or wait before their first answer is stored."""

import asyncio

import pytest

from app.imports import response_storage
from tests.campaigns.drafts import import_results


async def interrupt_import(engine, campaign, results, name="results.csv"):
    """Import answers, and stop as a killed process does, after the first transaction."""

    class Killed(BaseException):
        pass

    def stop(_rows):
        raise Killed

    with pytest.raises(Killed):
        await import_results(engine, campaign, results, name, progress=stop)


def let_imports_wait_in_their_first_transaction(monkeypatch):
    """Return two events: an import holds the right to store answers, and it may store them."""
    has_begun, may_go_on = asyncio.Event(), asyncio.Event()
    store = response_storage.ResponseStorage.store_batch_returning_hits_counts_and_seconds

    async def store_batch_when_allowed(storage, connection, batch):
        has_begun.set()
        await may_go_on.wait()
        return await store(storage, connection, batch)

    monkeypatch.setattr(
        response_storage.ResponseStorage, "store_batch_returning_hits_counts_and_seconds", store_batch_when_allowed
    )
    return has_begun, may_go_on
