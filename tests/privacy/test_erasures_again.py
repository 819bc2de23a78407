"""A list of erasures erases the same people in a database as it was before."""

from datetime import timedelta

import pytest

from app.imports.import_continuation import InterruptedImports
from app.privacy.erasure_list import ListedErasure, load_erasure_list, person_hash
from app.privacy.erasure_reapplication import reapply_erasures_and_count_by_state
from app.privacy.erasure_work import finish_erasures_that_are_due
from app.privacy.erasures import erase_person_and_return_erasure
from app.privacy.retention import erase_outdated_data
from app.privacy.withdrawal import withdraw_annotator_and_return_erasure
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    store_settings,
)
from tests.campaigns.drafts import create_launched_campaign
from tests.imports.interruption import interrupt_import
from tests.privacy.people import answer_hits, create_answered_campaign

LATER = NOW + timedelta(hours=1)

# As a backup from before brings it back, as far as the list can tell.
BRING_BACK = """
    UPDATE annotators SET worker_id = :worker, pseudonym = :pseudonym, barred = NULL, barred_reason = NULL
    WHERE id = (SELECT min(id) FROM annotators)
"""


RARE_PEOPLE = [f"W{k}" for k in range(40)]


async def fetch_workers(engine):
    return [worker for (worker,) in await fetch_rows(engine, "SELECT worker_id FROM annotators ORDER BY id")]


def result_file_of_people(workers):
    lines = [f"A-{worker},{worker},v0,v1,40,60\n" for worker in workers]
    return "".join(["AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n", *lines])


def listed_erasure(campaign, hashes):
    return ListedErasure(
        campaign=campaign.slug,
        receipt="E-LATER",
        rule="anonymise",
        requested_by="ada",
        requested_at=LATER,
        person_hashes=hashes,
    )


async def load_first_person(engine):
    worker, pseudonym = (await fetch_rows(engine, "SELECT worker_id, pseudonym FROM annotators ORDER BY id LIMIT 1"))[0]
    return {"worker": worker, "pseudonym": pseudonym}


async def list_and_bring_back(engine, person):
    async with engine.connect() as connection:
        erasures = await load_erasure_list(connection)
    await execute_sql(engine, "DELETE FROM erasures")
    await execute_sql(engine, BRING_BACK, **person)
    return erasures


async def test_removal_after_anonymising_is_applied_again_and_the_list_stays_complete(engine):
    campaign, _ = await create_answered_campaign(engine)
    person = await load_first_person(engine)
    for rule in ("anonymise", "remove"):
        await erase_person_and_return_erasure(engine, campaign.slug, "A1", rule, now=LATER)
    erasures = await list_and_bring_back(engine, person)
    for _ in range(2):
        assert await reapply_erasures_and_count_by_state(engine, erasures, now=LATER) == {"erased": 2}
        assert await fetch_rows(engine, "SELECT rule FROM erasures ORDER BY id") == [("anonymise",), ("remove",)]
        assert await reapply_erasures_and_count_by_state(engine, erasures, now=LATER) == {}
        erasures = await list_and_bring_back(engine, person)


async def test_an_import_that_a_backup_interrupted_brings_no_erased_person_back(engine):
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    answers = result_file_of_people(RARE_PEOPLE)
    await interrupt_import(engine, campaign, answers)
    stored = set(await fetch_workers(engine))
    unstored = next(worker for worker in RARE_PEOPLE if worker not in stored)
    erasure = listed_erasure(campaign, [person_hash(campaign.link_key, "mturk", unstored).hex()])
    assert await reapply_erasures_and_count_by_state(engine, [erasure], now=LATER) == {"erased": 1}
    assert await reapply_erasures_and_count_by_state(engine, [erasure], now=LATER) == {}
    await InterruptedImports(engine, lambda _campaign_id: None).continue_imports()
    workers = await fetch_workers(engine)
    assert unstored not in workers
    assert {*RARE_PEOPLE} - {unstored} <= set(workers)


async def test_a_person_whom_the_backup_does_not_know_is_passed_over(engine):
    campaign = await create_launched_campaign(engine)
    hashes = [person_hash(campaign.link_key, "mturk", "W").hex()]
    erasure = listed_erasure(campaign, hashes)
    assert await reapply_erasures_and_count_by_state(engine, [erasure], now=LATER) == {}
    assert await fetch_workers(engine) == []


async def test_people_who_were_erased_after_retention_are_found_by_their_pseudonym(engine):
    campaign, _ = await create_answered_campaign(engine)
    person = await load_first_person(engine)
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished', finished_at = :now", now=NOW)
    await store_settings(engine, identifiers_days=1)
    await erase_outdated_data(engine, now=NOW + timedelta(days=1))
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=NOW + timedelta(days=2))
    erasures = await list_and_bring_back(engine, person)
    assert await reapply_erasures_and_count_by_state(engine, erasures, now=NOW + timedelta(days=3)) == {"erased": 1}


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_a_withdrawal_that_was_open_in_the_backup_gives_way_to_the_listed_erasure(engine, rule):
    campaign = await create_running_campaign(engine, withdrawal="self")
    person = await create_annotator(engine, campaign, "ann", "prolific")
    await create_annotator(engine, campaign, "ben", "prolific")
    await answer_hits(engine, person, 1)
    first = await load_first_person(engine)
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", rule, now=LATER)
    await erase_person_and_return_erasure(engine, campaign.slug, "A2", "anonymise", now=LATER)
    second_hashes = "SELECT count(*) FROM erasures WHERE annotator_id = (SELECT max(id) FROM annotators)"
    ben = (await list_and_bring_back(engine, first))[1]
    await execute_sql(
        engine, "UPDATE annotators SET worker_id = 'ben', barred = NULL WHERE id > 1 AND worker_id <> 'ann'"
    )
    await execute_sql(engine, "DELETE FROM erasures")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", rule, now=LATER)
    ann = (await list_and_bring_back(engine, first))[0]
    async with engine.begin() as connection:
        await withdraw_annotator_and_return_erasure(connection, campaign, person.assignment_id, now=NOW)
    assert await reapply_erasures_and_count_by_state(engine, [ann, ben], now=LATER) == {"erased": 2}
    assert await fetch_value(engine, second_hashes) == 1
    receipts = await fetch_rows(engine, "SELECT receipt, rule FROM erasures ORDER BY id")
    assert receipts == [(ann.receipt, rule), (ben.receipt, "anonymise")]


async def test_an_erasure_that_is_refused_stops_none_after_it(engine, caplog):
    campaign, _ = await create_answered_campaign(engine)
    first = await load_first_person(engine)
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=LATER)
    await erase_person_and_return_erasure(engine, campaign.slug, "A2", "anonymise", now=LATER)
    anonymised, other = await list_and_bring_back(engine, first)
    await execute_sql(engine, "UPDATE annotators SET worker_id = 'ben' WHERE id = (SELECT max(id) FROM annotators)")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=LATER)
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await reapply_erasures_and_count_by_state(engine, [anonymised, other], now=LATER) == {"erased": 1}
    assert anonymised.receipt in caplog.text
