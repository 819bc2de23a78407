"""Items after the launch: retired ones are asked about no more, and corrected texts have versions."""

import asyncio
import csv
import io

import pytest

from app.database.session import borrow_driver_in_transaction
from app.errors import Conflict
from app.goal_monitor import release
from app.imports import item_changes, text_corrections
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.campaigns.drafts import apply_action, create_launched_campaign, replay_is_clean

VERBS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(8))


@pytest.fixture
def engine(app):
    return app.state.database


async def change(engine, campaign, action, *item_ids):
    async with engine.begin() as connection:
        return await item_changes.retire_restore_or_delete_items_and_count(
            connection, campaign.slug, action, item_ids, now=NOW
        )


async def correct(engine, campaign, item_id, new_text):
    async with engine.begin() as connection:
        return await text_corrections.store_corrected_text_returning_version(
            connection, campaign.slug, item_id, new_text, now=NOW
        )


async def settled_items(engine):
    return [
        row[0] for row in await fetch_rows(engine, "SELECT number FROM current_posteriors WHERE settled ORDER BY 1")
    ]


async def test_no_hit_asks_about_a_retired_item_until_it_is_restored(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5, judgments_per_item=50)
    assert await change(engine, campaign, "retire", "v1", "v2") == 2
    assert await change(engine, campaign, "retire", "v2") == 0
    for name in "abc":
        annotator = await create_annotator(engine, campaign, name=name)
        assert not {1, 2} & set((await try_to_lease_hit(engine, annotator)).items)
    assert await change(engine, campaign, "restore", "v1", "v2") == 2
    assert await settled_items(engine) == []


async def test_a_retired_item_keeps_its_answers_and_open_hits_can_be_answered(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=8, judgments_per_item=50)
    first, second = [await create_annotator(engine, campaign, name=name) for name in "ab"]
    await submit_scores(engine, first, await try_to_lease_hit(engine, first))
    held = await try_to_lease_hit(engine, second)
    before = await fetch_rows(engine, "SELECT subject, state FROM posteriors ORDER BY subject")
    await change(engine, campaign, "retire", "v3")
    assert await fetch_rows(engine, "SELECT subject, state FROM posteriors ORDER BY subject") == before
    await submit_scores(engine, second, held)
    assert await fetch_value(engine, "SELECT judgments FROM current_posteriors WHERE number = 3") == 2
    assert await replay_is_clean(engine, campaign.slug)


async def test_goals_new_revisions_and_reopening_keep_it_retired(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5, judgments_per_item=50)
    await change(engine, campaign, "retire", "v3")
    async with engine.connect() as connection:
        row = (await connection.exec_driver_sql("SELECT releases FROM campaigns")).scalar_one()
        found = await release.load_items_settled_or_unsettled_since_last_scan(connection, campaign, None)
    assert row == 1
    assert list(found.items) == []
    await revisions.switch_to_revision_from_same_answers(engine, campaign.id, now=NOW)
    assert await settled_items(engine) == [3]


async def test_a_campaign_is_reopened_after_an_item_is_retired_that_was_settled(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5, judgments_per_item=50)
    await execute_sql(engine, "UPDATE posteriors SET settled = true WHERE subject IN (2, 3)")
    await apply_action(engine, campaign, "finish")
    async with engine.begin() as connection:
        await connection.exec_driver_sql("SELECT FROM items WHERE number = 3 FOR UPDATE")
        retiring = asyncio.create_task(change(engine, campaign, "retire", "v3"))
        await wait_until(engine, requests_are_waiting_sql(1))
        reopening = asyncio.create_task(apply_action(engine, campaign, "reopen"))
        await wait_until(engine, requests_are_waiting_sql(2))
    assert await retiring == 1
    assert (await reopening).status == "running"
    assert await settled_items(engine) == [3]


async def test_a_retired_item_is_called_retired_and_counts_no_more_in_the_totals(engine, researcher):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5, judgments_per_item=5)
    await change(engine, campaign, "retire", "v3", "v4")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert page.count(">retired</span>") == 2
    assert ">settled</span>" not in page
    rail = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/question")).text
    assert "<dt>Items</dt><dd>6</dd>" in rail
    assert "<dt>Tasks</dt><dd>6</dd>" in rail


async def test_a_release_that_read_earlier_does_not_bring_it_back(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5, judgments_per_item=50)
    await change(engine, campaign, "retire", "v3")
    async with engine.begin() as connection:
        parameters = {"campaign": campaign.id, "items": [3, 4], "settled": [False, True]}
        await connection.execute(release.STORE_SETTLED_FLAGS, parameters)
    assert await settled_items(engine) == [3, 4]


async def test_of_many_leases_at_once_none_that_comes_later_has_the_item(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5, judgments_per_item=500)
    annotators = [await create_annotator(engine, campaign, name=f"w{k}") for k in range(12)]
    leases = [asyncio.create_task(try_to_lease_hit(engine, annotator)) for annotator in annotators]
    await change(engine, campaign, "retire", "v3")
    newest = await fetch_value(engine, "SELECT coalesce(max(id), 0) FROM hits WHERE 3 = ANY(items)")
    await asyncio.gather(*leases)
    assert newest == await fetch_value(engine, "SELECT coalesce(max(id), 0) FROM hits WHERE 3 = ANY(items)")


async def test_an_item_is_retired_once_every_lease_that_came_first_is_committed(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=8, judgments_per_item=50)
    annotator = await create_annotator(engine, campaign)
    async with borrow_driver_in_transaction(engine) as holding:  # the lease has counted the room, and waits to insert
        await holding.execute("LOCK TABLE hits IN SHARE MODE")
        leasing = asyncio.create_task(try_to_lease_hit(engine, annotator))
        await wait_until(engine, requests_are_waiting_sql(1))
        retiring = asyncio.create_task(change(engine, campaign, "retire", "v1"))
        await wait_until(engine, requests_are_waiting_sql(2))
        assert not retiring.done()
    assert 1 in (await leasing).items
    assert await retiring == 1


async def test_a_late_answer_whose_law_updates_other_items_and_their_retirement_wait_for_each_other(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=4, update_law="easl-aware")
    for name in "abc":
        annotator = await create_annotator(engine, campaign, name=name)
        await submit_scores(engine, annotator, await try_to_lease_hit(engine, annotator))
    late = await create_annotator(engine, campaign, name="late")
    hit = await try_to_lease_hit(engine, late)
    await expire_leases(engine)
    others = [f"v{number}" for number in range(8) if number not in hit.items]
    async with borrow_driver_in_transaction(engine) as holding:  # the answer has all its locks, and waits to be stored
        await holding.execute("LOCK TABLE responses IN SHARE MODE")
        answering = asyncio.create_task(submit_scores(engine, late, hit))
        await wait_until(engine, requests_are_waiting_sql(1))
        retiring = asyncio.create_task(change(engine, campaign, "retire", *others))
        await wait_until(engine, requests_are_waiting_sql(2))
    assert not (await answering).repeated
    assert await retiring == 4


async def test_a_corrected_text_is_shown_to_new_hits_and_open_ones_keep_the_former(engine, researcher):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=8, judgments_per_item=50)
    first, second = [await create_annotator(engine, campaign, name=name) for name in "ab"]
    held = await try_to_lease_hit(engine, first)
    assert await correct(engine, campaign, "v3", "verb three") == 2
    resumed = await try_to_lease_hit(engine, first)
    assert resumed.id == held.id
    assert resumed.texts == held.texts
    new_hit = await try_to_lease_hit(engine, second)
    assert "verb three" in new_hit.texts
    await submit_scores(engine, first, resumed)
    await submit_scores(engine, second, new_hit)
    exported = await researcher.get(f"/api/v1/campaigns/{campaign.slug}/export/responses")
    if exported.status_code != 200:
        exported = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/responses.csv")
    rows = [row for row in csv.DictReader(io.StringIO(exported.text)) if row["item"] == "v3"]
    assert [row["item_version"] for row in rows] == ["1", "2"]
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items/text?item=v3")).text
    assert "verb 3</div>" in page
    log = (await researcher.get(f"/admin/campaigns/{campaign.slug}/log")).text
    assert "corrected the text of the item" in log


async def test_a_lease_that_waits_for_a_correction_shows_the_corrected_text(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=8, judgments_per_item=50)
    annotator = await create_annotator(engine, campaign)
    async with engine.begin() as connection:
        await text_corrections.store_corrected_text_returning_version(
            connection, campaign.slug, "v3", "verb three", now=NOW
        )
        lease = asyncio.create_task(try_to_lease_hit(engine, annotator))
        await wait_until(engine, requests_are_waiting_sql(1))
    shown = await lease
    assert "verb three" in shown.texts
    assert (await try_to_lease_hit(engine, annotator)).texts == shown.texts


async def test_an_unsuitable_text_is_refused_and_kept_in_the_field(engine, researcher):
    campaign = await create_launched_campaign(engine, VERBS)
    address = f"/admin/campaigns/{campaign.slug}/items/text"
    for new_text, words in (("  ", "nothing to show"), ("verb 3", "The new text is the same as the current one")):
        reply = await researcher.post(address, data={"item": "v3", "text": new_text})
        assert reply.status_code == 422
        assert words in reply.text
    assert (await researcher.post(address, data={"item": "v9", "text": "x"})).status_code == 404


async def test_an_item_that_every_hit_shows_is_not_retired(engine):
    campaign = await create_launched_campaign(engine, VERBS, items_per_hit=5)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE campaigns SET always_shown = '{3}'")
    with pytest.raises(Conflict) as refused:
        await change(engine, campaign, "retire", "v3")
    assert refused.value.code == "item_always_shown"
