"""Campaigns that are deleted while another request reads them or imports items into them."""

import asyncio

import pytest

from app.campaigns import empty_campaigns, summaries
from app.campaigns.conditions_check import refuse_added_items_that_break_conditions
from app.errors import NotFound
from app.imports import items
from app.record.judgment_count import count_judgments_by_campaign
from tests.annotation.hits.campaigns import create_running_campaign, fetch_value, wait_until
from tests.campaigns.drafts import VERBS, apply_action, create_launched_campaign, import_items, import_results

RESULTS = """HITId,AssignmentId,WorkerId,AcceptTime,SubmitTime,Input.id1,Input.id2,Answer.range1,Answer.range2
H1,A1,W1,Tue Apr 10 12:04:05 PDT 2018,Tue Apr 10 12:05:05 PDT 2018,v0,v1,70,30
"""
STATEMENT_WAITS_FOR_LOCK = """
    SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def delete(engine, campaign):
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)


@pytest.fixture
async def drafts(engine):
    return [await create_running_campaign(engine, name=name, launched=False) for name in ("Verbs", "Nouns")]


@pytest.fixture
def deletes_before_counting(engine, monkeypatch):
    """Return a function that lets a campaign be deleted after its row is read and before its judgments are counted."""

    def deletes_before(campaign):
        async def delete_and_count(connection, campaign_ids):
            monkeypatch.setattr(f"{summaries.__name__}.count_judgments_by_campaign", count_judgments_by_campaign)
            await delete(engine, campaign)
            return await count_judgments_by_campaign(connection, campaign_ids)

        monkeypatch.setattr(f"{summaries.__name__}.count_judgments_by_campaign", delete_and_count)

    return deletes_before


async def test_the_list_is_without_a_campaign_that_is_deleted_while_it_is_read(
    drafts, deletes_before_counting, researcher
):
    gone, other = drafts
    deletes_before_counting(gone)
    page = await researcher.get("/admin")
    assert (page.status_code, other.slug in page.text, gone.slug in page.text) == (200, True, False)


async def test_a_campaign_that_is_deleted_while_it_is_read_is_not_found(engine, drafts, deletes_before_counting):
    deletes_before_counting(drafts[0])
    async with engine.begin() as connection:
        with pytest.raises(NotFound) as refused:
            await summaries.load_campaign_with_progress_or_refuse(connection, drafts[0].slug)
    assert refused.value.code == "campaign_not_found"


async def test_the_list_of_a_cluster_is_without_a_campaign_that_is_deleted_while_it_is_read(
    engine, drafts, monkeypatch
):
    """A cluster reads one campaign after the other."""
    gone, other = drafts
    query = summaries.select_campaigns_with_progress_statement
    monkeypatch.setattr(summaries, "leads_to_citus", lambda _connection: True)
    monkeypatch.setattr(
        summaries,
        "select_campaigns_with_progress_statement",
        lambda campaign_id: query(-1 if campaign_id == gone.id else campaign_id),
    )
    async with engine.begin() as connection:
        listed = await summaries.load_campaigns_with_progress(connection)
    assert [campaign.id for campaign in listed] == [other.id]


async def test_an_import_of_items_and_a_deletion_at_once_do_not_wait_for_each_other(engine, monkeypatch):
    campaign = await create_launched_campaign(engine, VERBS)
    await apply_action(engine, campaign, "finish")
    deletions = []

    async def begin_deletion_and_check_conditions(*arguments):
        deletions.append(asyncio.create_task(delete(engine, campaign)))
        await wait_until(engine, STATEMENT_WAITS_FOR_LOCK)
        await refuse_added_items_that_break_conditions(*arguments)

    monkeypatch.setattr(
        f"{items.__name__}.refuse_added_items_that_break_conditions", begin_deletion_and_check_conditions
    )
    assert await import_items(engine, campaign, "id,text\nx,walk\n") == 1
    await deletions[0]
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0


async def test_an_import_that_waited_for_a_deletion_finds_no_campaign(engine):
    campaign = await create_launched_campaign(engine, VERBS)
    await apply_action(engine, campaign, "finish")
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)
        importing = asyncio.create_task(import_items(engine, campaign, "id,text\nx,walk\n"))
        await wait_until(engine, STATEMENT_WAITS_FOR_LOCK)
    with pytest.raises(NotFound) as refused:
        await importing
    assert refused.value.code == "campaign_not_found"


async def test_an_import_of_answers_that_waited_for_a_deletion_finds_no_campaign(engine):
    campaign = await create_launched_campaign(engine)
    await apply_action(engine, campaign, "finish")
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)
        importing = asyncio.create_task(import_results(engine, campaign, RESULTS))
        await wait_until(engine, STATEMENT_WAITS_FOR_LOCK)
    with pytest.raises(NotFound) as refused:
        await importing
    assert refused.value.code == "campaign_not_found"
