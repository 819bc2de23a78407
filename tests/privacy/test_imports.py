"""An import never brings erased people back."""

import asyncio
import io
from datetime import timedelta

import pytest

from app.errors import Conflict
from app.imports import response_storage
from app.imports.import_continuation import InterruptedImports
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from app.privacy.erasure_work import finish_erasures_that_are_due
from app.privacy.inventory import PERSONAL_TABLES
from app.privacy.retention import erase_outdated_data
from tests.annotation.hits.campaigns import (
    NOW,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    store_settings,
    wait_until,
)
from tests.campaigns.drafts import apply_action
from tests.imports.interruption import interrupt_import, let_imports_wait_in_their_first_transaction
from tests.privacy.people import erase_found, verification_is_clean

COUNT_FILES = "SELECT count(*) FROM unfinished_imports"
COUNT_FINISHED = "SELECT count(*) FROM erasures WHERE finished_at IS NOT NULL"
LATER = NOW + timedelta(hours=1)


def answers_file(*workers):
    rows = [f"h{worker},{worker},v{item},{10 * item}" for worker in workers for item in range(5)]
    return io.BytesIO("\n".join(["hit,annotator,item,value", *rows]).encode())


async def import_answers(engine, campaign, *workers):
    return await import_responses_of_file_and_return_receipt(
        engine, campaign.slug, answers_file(*workers), "answers.csv", now=LATER, max_mb=1
    )


@pytest.fixture
async def campaign(engine):
    found = await create_running_campaign(engine, judgments_per_item=9)
    await import_answers(engine, found, "Ann", "Ben")
    return found


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_the_same_file_is_refused_after_its_people_were_erased(engine, campaign, rule):
    await erase_found(engine, campaign, "Ann", rule, now=LATER)
    await finish_erasures_that_are_due(engine, now=LATER)
    with pytest.raises(Conflict) as refusal:
        await import_answers(engine, campaign, "Ann", "Ben")
    assert refusal.value.code == "assignment_known"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


async def test_others_in_the_file_are_imported_and_the_receipt_counts_the_erased(engine, campaign):
    await erase_found(engine, campaign, "Ann", "anonymise", now=LATER)
    receipt = await import_answers(engine, campaign, "Ann", "Ben", "Cleo")
    assert (receipt.erased, receipt.known, receipt.responses) == (1, 1, 1)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE worker_id = 'Ann'") == 0
    assert await verification_is_clean(engine, campaign)


async def test_an_earlier_export_does_not_bring_a_person_back_under_the_pseudonym(engine, campaign):
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators WHERE worker_id = 'Ann'")
    await erase_found(engine, campaign, "Ann", "remove", now=LATER)
    receipt = await import_answers(engine, campaign, pseudonym, "Cleo")
    assert (receipt.erased, receipt.responses) == (1, 1)


async def interrupt_import_of(engine, campaign, *workers):
    await interrupt_import(engine, campaign, answers_file(*workers).read().decode(), "answers.csv")
    assert await fetch_value(engine, COUNT_FILES) == 1


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_an_erasure_is_finished_when_the_file_of_an_interrupted_import_is_gone(
    engine, campaign, monkeypatch, rule
):
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 5)
    await interrupt_import_of(engine, campaign, *(f"W{k}" for k in range(12)), "Ann")
    await erase_found(engine, campaign, "Ann", rule, now=LATER)
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 0
    await InterruptedImports(engine, lambda _campaign_id: None).continue_imports()
    assert await fetch_value(engine, COUNT_FILES) == 0
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 1
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE starts_with(worker_id, 'W')") == 12
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE worker_id = 'Ann'") == 0
    assert await verification_is_clean(engine, campaign)


async def test_an_erasure_while_an_import_reads_its_file_is_finished_when_the_file_is_gone(
    engine, campaign, monkeypatch
):
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 5)
    await erase_found(engine, campaign, "Ann", "anonymise", now=LATER)
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 1
    await interrupt_import_of(engine, campaign, *(f"W{k}" for k in range(12)), "Ann")  # which began before
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 0
    await InterruptedImports(engine, lambda _campaign_id: None).continue_imports()
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 1


async def test_an_erasure_during_the_first_transaction_of_an_import_is_finished_when_the_file_is_gone(
    engine, campaign, monkeypatch
):
    """Both steps of the erasure come while the file is stored, but not committed."""
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 5)
    is_stored, may_go_on = let_imports_wait_in_their_first_transaction(monkeypatch)
    importing = asyncio.create_task(interrupt_import_of(engine, campaign, *(f"W{k}" for k in range(12)), "Ann"))
    await is_stored.wait()
    await erase_found(engine, campaign, "Ann", "anonymise", now=LATER)
    finishing = asyncio.create_task(finish_erasures_that_are_due(engine, now=LATER))
    waiting = asyncio.create_task(wait_until(engine, requests_are_waiting_sql(1)))
    await asyncio.wait({finishing, waiting}, return_when=asyncio.FIRST_COMPLETED)
    may_go_on.set()
    await asyncio.gather(importing, finishing)
    waiting.cancel()
    assert await fetch_value(engine, COUNT_FINISHED) == 0
    await InterruptedImports(engine, lambda _campaign_id: None).continue_imports()
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 1


async def test_an_import_that_began_after_an_erasure_does_not_hold_it_open(engine, campaign, monkeypatch):
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 5)
    await erase_found(engine, campaign, "Ben", "anonymise", now=NOW - timedelta(hours=1))
    await interrupt_import_of(engine, campaign, *(f"W{k}" for k in range(12)))
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_value(engine, COUNT_FINISHED) == 1


async def test_retention_of_ids_deletes_the_file_of_an_interrupted_import_and_tells_the_owner(
    engine, campaign, monkeypatch
):
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 5)
    await interrupt_import_of(engine, campaign, *(f"W{k}" for k in range(12)))
    await apply_action(engine, campaign, "finish")
    await store_settings(engine, identifiers_days=30)
    await erase_outdated_data(engine, now=NOW + timedelta(days=29))
    assert await fetch_value(engine, COUNT_FILES) == 1
    await erase_outdated_data(engine, now=NOW + timedelta(days=31))
    assert await fetch_value(engine, COUNT_FILES) == 0
    ((about, because),) = await fetch_rows(engine, "SELECT about, because FROM alerts WHERE kind = 'import'")
    assert about == "answers.csv"
    assert "erased" in because
    assert await verification_is_clean(engine, campaign)


def test_the_inventory_names_the_file_among_what_may_hold_ids():
    (table,) = [table for table in PERSONAL_TABLES if table.name == "unfinished_imports"]
    (column,) = [column for column in table.columns if "file" in column.names]
    assert (column.kind, column.retention, bool(column.withheld)) == ("identifier", "identifiers", True)
