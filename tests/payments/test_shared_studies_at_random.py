"""Two campaigns read one study while people are erased, workspaces, studies and tokens change, and processes end."""

import asyncio
import os
import random

import httpx
import pytest

from app.annotation.platforms.prolific.service import ProlificService
from app.payments.connections import ServiceConnector
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import execute_sql, fetch_rows
from tests.payments.fake_prolific import TOKEN, create_fake
from tests.payments.test_interrupted_sending import MOST_STEPS, choose_trouble, make_due, process_that_ends
from tests.payments.test_shared_studies import create_two_studies

PEOPLE = 3
SCHEDULES = int(os.environ.get("SHARED_STUDY_SCHEDULES", "6"))

# A reward of an erased person is found by its hash, as the product does.
LIVE_REWARDS_BY_HASH = """
    SELECT encode(submission_hash, 'hex') AS hash, count(*) FROM payments
    WHERE kind = 'reward' AND state IN ('prepared', 'sending', 'sent', 'unknown') GROUP BY 1
"""
SENT_REWARDS = "SELECT count(*) FROM payments WHERE kind = 'reward' AND state = 'sent'"
NAME_OF_PERSON = """
    SELECT n.name FROM named_annotators n JOIN annotators a ON a.campaign_id = n.campaign_id AND a.id = n.id
    WHERE a.campaign_id = :campaign AND a.worker_id = :person
"""
CHANGES = (
    "UPDATE payment_accounts SET workspace = 'workspace' || (1 + campaign_id % 2) WHERE campaign_id = :campaign",
    "UPDATE payment_accounts SET study = '' WHERE campaign_id = :campaign",
    "UPDATE payment_accounts SET study = 'study-1' WHERE campaign_id = :campaign",
    "UPDATE payment_accounts SET approves = NOT approves WHERE campaign_id = :campaign",
    "DELETE FROM submissions WHERE campaign_id = :campaign AND problem = ''",
    "UPDATE submissions SET submission_hash = NULL WHERE campaign_id = :campaign",
)


async def erase_someone(studies, chance):
    study, person = chance.choice(studies), f"p{chance.randint(1, PEOPLE)}"
    rows = await fetch_rows(study.engine, NAME_OF_PERSON, campaign=study.campaign.id, person=person)
    if rows:
        ((name,),) = rows
        await erase_person_and_return_erasure(
            study.engine, study.campaign.slug, name, "anonymise", now=study.clock.now, requested_by="Ann"
        )


async def take_turns(studies, service, chance):
    """Let both campaigns work at once, with processes that end anywhere."""
    await make_due(studies[0])
    accounts = [account for account in [await studies[0].work.claim_due_account_or_none() for _ in studies] if account]
    processes = [
        process_that_ends(studies[0], service, chance.choice([None, *range(MOST_STEPS)])).pay_and_reconcile_account(
            account
        )
        for account in accounts
    ]
    await asyncio.gather(*processes, return_exceptions=True)


async def run_shared_schedule(studies, service, chance):
    first, books = studies[0], studies[0].books
    for _ in range(chance.randint(3, 8)):
        choose_trouble(chance, books)
        step = chance.random()
        if step < 0.2:
            await erase_someone(studies, chance)
        elif step < 0.5:
            await execute_sql(first.engine, chance.choice(CHANGES), campaign=chance.choice(studies).campaign.id)
        elif step < 0.7:
            books.submissions[f"s{chance.randint(1, PEOPLE)}"]["status"] = "APPROVED"
        await take_turns(studies, service, chance)
        first.clock.advance(minutes=chance.choice([0, 6, 11]))
        assert max([count for _, count in await fetch_rows(first.engine, LIVE_REWARDS_BY_HASH)], default=0) <= 1


async def end_with_all_approved(studies):
    first, books = studies[0], studies[0].books
    books.trouble = books.after = lambda _call: None
    books.is_slow = False
    for submission in books.submissions.values():
        submission["status"] = "APPROVED"
    await execute_sql(first.engine, "UPDATE payment_accounts SET study = 'study-1', held_until = NULL")
    for _ in range(4):
        await first.work_again(minutes=31)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(SCHEDULES))
async def test_a_reward_counts_once_whatever_becomes_of_its_campaigns_and_people(engine, prolific, place):
    seed = int(os.environ.get("PAYMENT_SEED", random.SystemRandom().randrange(10**9))) + place
    print(f"seed {seed}")  # noqa: T201  (pytest shows it with a failure)
    chance = random.Random(seed)
    prolific.currency_by_workspace["workspace2"] = "GBP"
    studies = await create_two_studies(engine, prolific, people=PEOPLE, budget=1_000_000)
    service = ProlificService("http://prolific.test/api/v1", TOKEN, httpx.ASGITransport(create_fake(prolific)))
    for study in studies:
        study.connector = ServiceConnector(study.connector.settings, study.connector.cipher, lambda *_: service)
    await run_shared_schedule(studies, service, chance)
    known = {
        submission
        for (submission,) in await fetch_rows(engine, "SELECT external_id FROM assignments")
        if not submission.startswith("erased:")
    }
    await end_with_all_approved(studies)
    for _ in range(PEOPLE):  # whose rewards are sent now, in one of the campaigns
        await erase_someone(studies, chance)
    await end_with_all_approved(studies)
    rewards = await fetch_rows(engine, LIVE_REWARDS_BY_HASH)
    assert all(count == 1 for _, count in rewards)
    hashes = {study.connector.cipher.submission_hash("prolific", submission).hex() for submission in known}
    assert hashes <= {found for found, _ in rewards}
    assert await fetch_rows(engine, SENT_REWARDS) == [(len(rewards),)]
    assert len(rewards) <= PEOPLE
