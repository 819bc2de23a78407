"""A campaign keeps the edition of its update law with which it began, until somebody moves it to the newest one."""

import asyncio

import pytest
from sqlalchemy import make_url, text

from app.database.bulk import open_snapshot
from app.database.session import create_engine
from app.errors import Conflict
from app.inference.online.annotator_aware_editions import (
    FIRST_EDITION_INITIAL_STATE,
    NEWEST_EDITION,
    SECOND_EDITION_INITIAL_STATE,
)
from app.inference.online.law import StateFloats
from app.record import law_editions, replay
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.law_storage import encode_floats_as_bytes
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import create_draft

OLDER_EDITIONS = [(1, FIRST_EDITION_INITIAL_STATE), (2, SECOND_EDITION_INITIAL_STATE)]


async def answer_some_hits(engine, campaign) -> None:
    for k in range(6):
        assignment = await create_annotator(engine, campaign, f"ann {k}")
        for _ in range(2):
            await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))


async def create_older_campaign(engine, initial_state: StateFloats, **settings):
    """Create a campaign with answers that began with an older edition."""
    campaign = await create_running_campaign(
        engine, update_law="easl-aware", items=8, items_per_hit=4, judgments_per_item=50, **settings
    )
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE states SET state = :state WHERE campaign_id = :id AND kind = 'campaign'"),
            {"state": encode_floats_as_bytes(initial_state), "id": campaign.id},
        )
    await answer_some_hits(engine, campaign)
    return campaign


async def edition_and_mismatches(engine, slug):
    async with open_snapshot(engine) as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        edition = await law_editions.load_law_edition(connection, campaign)
        return edition.edition, (await replay.verify_by_replay_or_refuse(connection, campaign)).mismatches


@pytest.mark.parametrize(("number", "initial_state"), OLDER_EDITIONS)
async def test_a_campaign_keeps_the_edition_with_which_it_began(engine, number, initial_state):
    campaign = await create_older_campaign(engine, initial_state)
    assert await edition_and_mismatches(engine, campaign.slug) == (number, [])


@pytest.mark.parametrize(("number", "initial_state"), OLDER_EDITIONS)
async def test_a_campaign_that_is_moved_has_the_bits_of_one_that_began_with_the_newest_edition(
    engine, number, initial_state
):
    older = await create_older_campaign(engine, initial_state, seed=5)
    before = await law_editions.move_to_newest_edition_and_return_former(engine, older.slug, now=NOW)
    assert (before.edition, before.newest) == (number, NEWEST_EDITION)
    assert await edition_and_mismatches(engine, older.slug) == (NEWEST_EDITION, [])
    await answer_some_hits(engine, older)
    assert await edition_and_mismatches(engine, older.slug) == (NEWEST_EDITION, [])


async def test_a_move_counts_every_answer_once_and_is_logged(engine):
    campaign = await create_older_campaign(engine, SECOND_EDITION_INITIAL_STATE)
    judgments = "SELECT number, judgments FROM current_posteriors WHERE campaign_id = :id ORDER BY number"
    before = await fetch_rows(engine, judgments, id=campaign.id)
    await law_editions.move_to_newest_edition_and_return_former(engine, campaign.slug, now=NOW)
    assert await fetch_rows(engine, judgments, id=campaign.id) == before
    logged = "SELECT before::text || ' -> ' || after::text FROM audit_log WHERE action = 'answers.recomputed'"
    assert await fetch_value(engine, logged) == '{"edition": 2} -> {"edition": 3}'


async def test_a_campaign_of_the_newest_edition_and_a_draft_cannot_be_moved(engine):
    campaign = await create_running_campaign(engine, update_law="easl-aware")
    with pytest.raises(Conflict) as refused:
        await law_editions.move_to_newest_edition_and_return_former(engine, campaign.slug, now=NOW)
    assert refused.value.code == "newest_edition"
    draft = await create_draft(engine, update_law="easl-aware")
    with pytest.raises(Conflict) as refused:
        await law_editions.move_to_newest_edition_and_return_former(engine, draft.slug, now=NOW)
    assert refused.value.code == "not_launched"


async def test_the_page_offers_the_newest_edition_and_moves_the_campaign(engine, researcher):
    campaign = await create_older_campaign(engine, SECOND_EDITION_INITIAL_STATE)
    settings = f"/admin/campaigns/{campaign.slug}/settings/advanced"
    assert "Recompute under edition 3" in (await researcher.get(settings)).text
    moved = await researcher.post(f"/admin/campaigns/{campaign.slug}/law-edition/newest")
    assert moved.status_code == 303
    page = await researcher.get(moved.headers["location"])
    assert "All scores follow the newest edition of the update law." in page.text
    assert "Recompute under edition" not in page.text


async def test_of_two_moves_at_once_one_is_made_and_logged(engine):
    campaign = await create_older_campaign(engine, SECOND_EDITION_INITIAL_STATE)
    moves = [law_editions.move_to_newest_edition_and_return_former(engine, campaign.slug, now=NOW) for _ in range(2)]
    results = await asyncio.gather(*moves, return_exceptions=True)
    (refusal,) = (result for result in results if isinstance(result, Conflict))
    assert refusal.code == "newest_edition"
    logged = "SELECT count(*) FROM audit_log WHERE action = 'answers.recomputed' AND campaign_id = :id"
    assert await fetch_value(engine, logged, id=campaign.id) == 1


async def test_another_process_can_move_a_long_campaign(engine):
    campaign = await create_older_campaign(engine, FIRST_EDITION_INITIAL_STATE)
    await law_editions.recompute_under_newest_edition(engine, campaign.id, in_other_process=True, now=NOW)
    assert await edition_and_mismatches(engine, campaign.slug) == (NEWEST_EDITION, [])


async def test_a_campaign_can_be_moved_at_an_address(engine, database_url):
    campaign = await create_older_campaign(engine, FIRST_EDITION_INITIAL_STATE)
    await law_editions.switch_to_newest_edition_revision_at_url(database_url, campaign.id, NOW)
    assert await edition_and_mismatches(engine, campaign.slug) == (NEWEST_EDITION, [])


async def test_the_process_that_moves_a_campaign_gets_the_password_of_the_database(database_url, monkeypatch):
    urls = []

    async def note_url(_work, url, *_arguments):
        urls.append(make_url(url))

    monkeypatch.setattr(law_editions, "run_in_process", note_url)
    with_password = make_url(database_url).set(password="open sesame").render_as_string(hide_password=False)
    engine = create_engine(with_password, pool_size=1)
    await law_editions.recompute_under_newest_edition(engine, 7, in_other_process=True, now=NOW)
    await engine.dispose()
    assert [url.password for url in urls] == ["open sesame"]
