"""An import of answers is stored entirely, whenever it is interrupted."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.campaigns.empty_campaigns import revert_unanswered_to_draft_or_refuse
from app.database.exclusive_work import hold_work_during_block
from app.errors import Conflict
from app.imports import response_storage
from app.imports.import_continuation import InterruptedImports
from app.imports.responses_import import response_import_work_name
from app.privacy.erasure_list import person_hash
from app.record.deletion import delete_campaign_and_all_its_data_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import (
    apply_action,
    create_draft,
    create_launched_campaign,
    import_results,
    replay_is_clean,
)
from tests.imports.interruption import interrupt_import
from tests.imports.test_not_applicable import COLUMNS
from tests.imports.test_responses_import import result_file

ROWS = 60
COUNT_RESPONSES = "SELECT count(*) FROM responses"
COUNT_FILES = "SELECT count(*) FROM unfinished_imports"
ERASE_IDENTIFIERS = """
    INSERT INTO retention_runs (campaign_id, kind, ran_at, counts) VALUES (:id, 'identifiers', :at, '{}')
"""
ERASE_PEOPLE = """
    INSERT INTO erasures (campaign_id, receipt, annotator_id, rule, requested_by, requested_at, due_at, finished_at,
        identifiers_erased_at, person_hashes)
    SELECT :id, 'R', min(id), 'anonymise', 'ada', :at, :at, :at, :at, :hashes FROM annotators
"""
MARKED_ALL = COLUMNS + "".join(f"A{k},W{k},v0,v1,,,on,on\n" for k in range(ROWS - 10))
SCORED = "".join(f"B{k},W{k},v0,v1,50,60,,\n" for k in range(10))


@pytest.fixture
def results():
    return result_file(random.Random(5), [f"v{k}" for k in range(6)], 2, ROWS, 0)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 20)


def continuation(engine, scanned=None):
    return InterruptedImports(engine, [].append if scanned is None else scanned.append)


async def test_an_interrupted_import_is_continued_with_all_its_answers(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    scanned: list[int] = []
    await interrupt_import(engine, campaign, results)
    assert 0 < await fetch_value(engine, COUNT_RESPONSES) < ROWS
    await continuation(engine, scanned).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == ROWS
    assert await fetch_value(engine, COUNT_FILES) == 0
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE action = 'answers.imported'") == 1
    assert scanned == [campaign.id]
    assert await replay_is_clean(engine, campaign.slug)


async def test_continued_answers_are_those_of_an_import_without_interruption(engine, results):
    posteriors = "SELECT subject, state, judgments FROM posteriors WHERE campaign_id = :id ORDER BY subject"
    at_once, interrupted = [
        await create_launched_campaign(engine, name=name, judgments_per_item=1000) for name in ("A", "B")
    ]
    await import_results(engine, at_once, results)
    await interrupt_import(engine, interrupted, results)
    await continuation(engine).continue_imports()
    of_each = [await fetch_rows(engine, posteriors, id=campaign.id) for campaign in (at_once, interrupted)]
    assert of_each[0] == of_each[1]


async def test_the_next_import_finishes_an_interrupted_one_first(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    more = result_file(random.Random(6), [f"v{k}" for k in range(6)], 2, 10, 1)
    assert (await import_results(engine, campaign, more)).responses == 10
    assert await fetch_value(engine, COUNT_RESPONSES) == ROWS + 10
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_the_same_file_again_stores_the_rest_and_says_what_was_known(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    stored = await fetch_value(engine, COUNT_RESPONSES)
    again = await import_results(engine, campaign, results)
    assert (again.known, again.responses) == (stored, ROWS - stored)
    assert await fetch_value(engine, COUNT_FILES) == 0
    with pytest.raises(Conflict) as refused:
        await import_results(engine, campaign, results)
    assert refused.value.code == "assignment_known"


async def test_an_import_that_another_process_is_storing_is_left_to_it(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    before = await fetch_value(engine, COUNT_RESPONSES)
    async with hold_work_during_block(engine, response_import_work_name(campaign.id)):
        await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == before


async def test_an_answer_that_an_annotator_gave_meanwhile_stays(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    assignment = await create_annotator(engine, campaign)
    await interrupt_import(engine, campaign, results)
    await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == ROWS + 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_an_import_ends_if_the_ids_of_its_annotators_were_erased_meanwhile(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    before = await fetch_value(engine, COUNT_RESPONSES)
    await execute_sql(engine, ERASE_IDENTIFIERS, id=campaign.id, at=NOW + timedelta(days=1))
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == before
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_an_import_ends_if_its_campaign_became_a_draft_again_meanwhile(engine):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000, items_per_hit=2)
    unjudged = "".join(f"A{k},W{k},v0,v1,,,on,on\n" for k in range(5))  # the first transaction: tasks without an answer
    await interrupt_import(engine, campaign, COLUMNS + unjudged + "A5,W5,v0,v1,70,30,,\n")
    async with engine.begin() as connection:
        await revert_unanswered_to_draft_or_refuse(connection, campaign.slug)
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == 0
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_an_import_that_would_fail_again_and_again_ends_and_lets_others_through(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    await execute_sql(engine, "UPDATE unfinished_imports SET file = substring(file FOR octet_length(file) - 9)")
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_FILES) == 0
    assert "Import the file again" in await fetch_value(engine, "SELECT because FROM alerts WHERE kind = 'import'")
    await import_results(engine, campaign, results)
    assert await fetch_value(engine, COUNT_RESPONSES) == ROWS
    assert await replay_is_clean(engine, campaign.slug)


async def test_the_file_goes_with_its_campaign(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    async with engine.begin() as connection:
        await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_no_file_is_kept_of_an_import_that_is_refused_or_stored_at_once(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    with pytest.raises(Conflict):
        await import_results(engine, await create_draft(engine), results)
    await import_results(engine, campaign, result_file(random.Random(6), ["v0", "v1"], 2, 3, 1))
    assert await fetch_value(engine, COUNT_FILES) == 0


@pytest.mark.parametrize("name", ["results\0.csv", "results\udcff.csv", f"{'r' * 100_000}.csv"])
async def test_a_file_with_any_name_is_imported(engine, results, name):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results, name)
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == ROWS
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_nothing_is_stored_in_a_campaign_that_was_launched_again_meanwhile(engine):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, MARKED_ALL + SCORED)
    async with engine.begin() as connection:
        await revert_unanswered_to_draft_or_refuse(connection, campaign.slug)
    await apply_action(engine, campaign)
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_an_import_under_way_ends_when_its_campaign_becomes_a_draft_again(engine, database_url):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)

    async def revert():
        other_process = create_async_engine(database_url, poolclass=NullPool)
        async with other_process.begin() as connection:
            if not await connection.scalar(text("SELECT launched_at IS NULL FROM campaigns")):
                await revert_unanswered_to_draft_or_refuse(connection, campaign.slug)

    def revert_after_first_batch(_rows: int) -> None:
        with ThreadPoolExecutor() as pool:
            pool.submit(asyncio.run, revert()).result()

    with pytest.raises(Conflict) as refused:
        await import_results(engine, campaign, MARKED_ALL + SCORED, progress=revert_after_first_batch)
    assert refused.value.code == "not_launched"
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0
    assert await fetch_value(engine, COUNT_FILES) == 0


async def test_the_owner_is_told_why_a_continued_import_ended(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    await execute_sql(engine, ERASE_IDENTIFIERS, id=campaign.id, at=NOW + timedelta(days=1))
    await continuation(engine).continue_imports()
    ((kind, about, because),) = await fetch_rows(engine, "SELECT kind, about, because FROM alerts")
    assert (kind, about) == ("import", "results.csv")
    assert "were erased" in because


async def test_an_import_ends_if_all_who_are_left_in_the_file_were_erased(engine, results):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    await interrupt_import(engine, campaign, results)
    before = await fetch_value(engine, COUNT_RESPONSES)
    hashes = [person_hash(campaign.link_key, "mturk", f"W{k}") for k in range(4)]
    await execute_sql(engine, ERASE_PEOPLE, id=campaign.id, at=NOW, hashes=hashes)
    await continuation(engine).continue_imports()
    assert await fetch_value(engine, COUNT_RESPONSES) == before
    assert await fetch_value(engine, COUNT_FILES) == 0
