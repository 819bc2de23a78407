"""Launched campaigns without answers go back to draft or are deleted; an answer that comes first wins."""

import asyncio

import pytest

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import empty_campaigns
from app.errors import Conflict, Refusal
from app.imports import item_changes
from app.imports.text_corrections import store_corrected_text_returning_version
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, import_items, replay_is_clean


async def revert(engine, campaign):
    async with engine.begin() as connection:
        return await empty_campaigns.revert_unanswered_to_draft_or_refuse(connection, campaign.slug)


async def delete(engine, campaign):
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)


@pytest.mark.parametrize("action", [None, "pause", "finish"])
async def test_a_launch_without_answers_goes_back_to_draft_and_can_be_repeated_with_other_items(engine, action):
    campaign = await create_running_campaign(engine, items=12, judgments_per_item=1)
    cache = PosteriorCache()
    await try_to_lease_hit(engine, await create_annotator(engine, campaign), cache=cache)
    if action:
        await apply_action(engine, campaign, action)
    draft = await revert(engine, campaign)
    assert (draft.status, draft.launched_at, draft.prior, draft.iteration) == ("draft", None, None, -1)
    for table in ("hits", "posteriors", "states", "planned_hits"):
        assert await fetch_value(engine, f"SELECT count(*) FROM {table}") == 0
    await import_items(engine, campaign, "id,text\na,walk\nb,wait\nc,weep\nd,wonder\ne,wake\n", replace=True)
    await apply_action(engine, campaign)
    ann = await create_annotator(engine, campaign, "bea")
    hit = await try_to_lease_hit(engine, ann, cache=cache)
    assert set(hit.items) <= set(range(5))
    await submit_scores(engine, ann, hit)
    assert await replay_is_clean(engine, campaign.slug)
    logged = "SELECT action FROM audit_log WHERE action IN ('campaign.revert', 'campaign.launch') ORDER BY id"
    assert [row[0] for row in await fetch_rows(engine, logged)][-2:] == ["campaign.revert", "campaign.launch"]


async def test_a_draft_again_has_no_former_texts_of_corrected_items(engine):
    """Nobody saw them with an answer, and the numbers of items change in a draft."""
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await store_corrected_text_returning_version(connection, campaign.slug, "v3", "verb three", now=NOW)
    await revert(engine, campaign)
    assert await fetch_value(engine, "SELECT count(*) FROM item_versions") == 0
    async with engine.begin() as connection:
        await item_changes.retire_restore_or_delete_items_and_count(
            connection, campaign.slug, "delete", ["v0"], now=NOW
        )
    texts = await fetch_rows(engine, "SELECT number, shown FROM items ORDER BY number LIMIT 3")
    assert texts == [(0, "verb 1"), (1, "verb 2"), (2, "verb three")]


async def test_a_prior_of_ones_own_stays(engine):
    campaign = await create_running_campaign(engine, prior=[2.0, 3.0])
    assert (await revert(engine, campaign)).prior == [2.0, 3.0]


async def test_a_campaign_with_answers_stays_as_it_is(engine, researcher):
    campaign = await create_running_campaign(engine)
    ann = await create_annotator(engine, campaign)
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann))
    page = f"/admin/campaigns/{campaign.slug}"
    refused = await researcher.post(f"{page}/revert")
    assert refused.status_code == 409
    assert "has answers, so it cannot become a draft again" in refused.text
    assert "revert/confirm" not in (await researcher.get(f"{page}/settings/question")).text
    await apply_action(engine, campaign, "finish")
    with pytest.raises(Conflict) as kept:
        await delete(engine, campaign)
    assert kept.value.code == "has_answers"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_a_draft_cannot_go_back_and_a_running_campaign_cannot_be_deleted(engine):
    campaign = await create_running_campaign(engine)
    with pytest.raises(Conflict) as running:
        await delete(engine, campaign)
    assert running.value.code == "not_a_draft"
    await revert(engine, campaign)
    with pytest.raises(Conflict) as twice:
        await revert(engine, campaign)
    assert twice.value.code == "wrong_status"


async def test_of_an_answer_and_the_way_back_the_first_wins(engine):
    for _ in range(4):
        campaign = await create_running_campaign(engine, items=12)
        ann = await create_annotator(engine, campaign)
        hit = await try_to_lease_hit(engine, ann)
        both = submit_scores(engine, ann, hit), revert(engine, campaign)
        answered, reverted = [
            isinstance(outcome, Refusal) for outcome in await asyncio.gather(*both, return_exceptions=True)
        ]
        assert answered != reverted
        status = await fetch_value(engine, "SELECT status FROM campaigns WHERE id = :campaign", campaign=campaign.id)
        count = "SELECT count(*) FROM responses WHERE campaign_id = :campaign"
        answers = await fetch_value(engine, count, campaign=campaign.id)
        assert (status, answers) == (("running", 1) if reverted else ("draft", 0))


async def test_pages_and_programs_do_both(engine, researcher, api_client):  # noqa: F811  (the fixture)
    campaign = await create_running_campaign(engine)
    page = f"/admin/campaigns/{campaign.slug}"
    assert f'href="{page}/revert/confirm"' in (await researcher.get(f"{page}/settings/question")).text
    assert f'href="{page}/revert/confirm"' in (await researcher.get(page)).text
    assert f'action="{page}/revert"' in (await researcher.get(f"{page}/revert/confirm")).text
    reply = await researcher.post(f"{page}/revert")
    assert reply.headers["location"] == f"{page}/settings/question?done=reverted"
    for action, status in (("launch", "running"), ("revert", "draft"), ("launch", "running"), ("finish", "finished")):
        made = await api_client.post(f"{API}/campaigns/{campaign.slug}/transitions", json={"action": action})
        assert made.json()["status"] == status
    assert "Delete campaign" in (await researcher.get(f"{page}/delete/confirm")).text
    assert (await api_client.delete(f"{API}/campaigns/{campaign.slug}")).status_code == 204
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE action = 'campaign.deleted'") == 1


async def test_the_pages_that_ask_first_tell_what_is_so(engine, researcher):
    campaign = await create_running_campaign(engine)
    page = f"/admin/campaigns/{campaign.slug}"
    running = (await researcher.get(f"{page}/delete/confirm")).text
    assert "only a draft, or a finished campaign without answers, can be deleted" in running
    ann = await create_annotator(engine, campaign)
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann))
    await apply_action(engine, campaign, "finish")
    for action in ("revert", "delete"):
        asked = await researcher.get(f"{page}/{action}/confirm")
        assert asked.status_code == 200
        assert f"“{campaign.name}” has answers" in asked.text
        assert "no answers" not in asked.text
        assert f'action="{page}/{action}"' not in asked.text


async def test_a_draft_is_told_that_it_is_one(engine, researcher):
    campaign = await create_running_campaign(engine)
    await revert(engine, campaign)
    page = f"/admin/campaigns/{campaign.slug}"
    asked = (await researcher.get(f"{page}/revert/confirm")).text
    assert "is a draft already" in asked
    assert f'action="{page}/revert"' not in asked
    assert f'action="{page}/delete"' in (await researcher.get(f"{page}/delete/confirm")).text
