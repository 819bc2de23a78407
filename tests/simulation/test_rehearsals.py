"""A simulated crowd answers a copy of a campaign, from its page; the copy goes with all of its answers."""

import asyncio
import re
from typing import Any

import pytest

from app.campaigns import empty_campaigns, summaries
from app.errors import Refusal
from app.goal_monitor import monitor
from app.http.dependencies import get_now
from app.quality.rule_monitor import CampaignMonitor
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.simulation import rehearsals
from app.simulation.annotators import CARELESS_KINDS, POPULATIONS, population_with_random_bias_only
from app.simulation.rehearsals import RehearsalCrowd, RehearsalCrowds
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.campaigns.drafts import replay_is_clean
from tests.media.files import png, with_files

PAGE = "/admin/campaigns/{}"
CROWD = RehearsalCrowd(annotators=4, population=population_with_random_bias_only(0.1, 0.25), truth_column=None)
TABLES = ("items", "annotators", "assignments", "hits", "responses", "posteriors", "states")
FINISHED = "SELECT EXISTS (SELECT 1 FROM campaigns WHERE rehearsal_of IS NOT NULL AND status = 'finished')"


async def led(engine, campaign, crowd=CROWD):
    async with engine.begin() as connection:
        return await rehearsals.create_or_find_rehearsal_and_take_crowd_lead(connection, campaign.slug, crowd, now=NOW)


async def start_rehearsal(engine, campaign, crowd=CROWD):
    copy, to_lead = await led(engine, campaign, crowd)
    return copy, to_lead is not None


async def dies(engine):
    """Let the process that leads the crowds die: its lease has expired."""
    await execute_sql(engine, "UPDATE crowds SET led_until = clock_timestamp() - interval '1 second'")


async def removed(engine, slug):
    async with engine.begin() as connection:
        return await rehearsals.delete_and_return_rehearsal_or_refuse(connection, slug)


async def sizes(engine):
    return {table: await fetch_value(engine, f"SELECT count(*) FROM {table}") for table in TABLES}


async def answered(engine, copy, crowd=CROWD):
    """Return the crowds of a process after one of them has answered this copy completely."""
    crowds = RehearsalCrowds(engine, lambda: NOW, pause=0)
    crowds.start_crowd_of_rehearsal(copy, crowd)
    await wait_until(engine, FINISHED)
    return crowds


async def code_of(what):
    with pytest.raises(Refusal) as refusal:
        await what
    return refusal.value.code


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_a_crowd_answers_a_copy_to_its_end_and_one_click_removes_all_of_it(engine, law):
    campaign = await create_running_campaign(engine, launched=False, update_law=law)
    before = await sizes(engine)
    copy, new = await start_rehearsal(engine, campaign)
    assert (new, copy.name, copy.slug, copy.status) == (True, "Verbs (rehearsal)", "verbs-rehearsal", "running")
    await answered(engine, copy)
    assert set(await fetch_rows(engine, "SELECT campaign_id, source FROM responses")) == {(copy.id, "simulation")}
    assert await replay_is_clean(engine, copy.slug)
    await removed(engine, copy.slug)
    assert await sizes(engine) == before
    assert (await lifecycle_row(engine, campaign.slug)).status == "draft"


async def test_a_rehearsal_stops_by_itself_when_its_goal_is_reached(engine):
    goal: dict[str, Any] = {"goal": "intervals", "goal_width": 50, "when_reached": "finish"}
    copy, _ = await start_rehearsal(
        engine, await create_running_campaign(engine, launched=False, judgments_per_item=1_000, **goal)
    )
    looks = CampaignMonitor(engine, get_now, monitor.CAMPAIGN_SCANS, pause=0)
    crowds = RehearsalCrowds(engine, lambda: NOW, looks.request_scan, pause=0)
    crowds.start_crowd_of_rehearsal(copy, CROWD)
    await wait_until(engine, FINISHED)
    assert (await lifecycle_row(engine, copy.slug)).goal_reached
    await looks.stop()


async def test_a_rehearsal_that_was_removed_is_looked_at_no_more(engine):
    copy, _ = await start_rehearsal(engine, await create_running_campaign(engine, launched=False))
    await removed(engine, copy.slug)
    looks = CampaignMonitor(engine, get_now, monitor.CAMPAIGN_SCANS)
    await looks.stop_after_last_scan(copy.id)
    assert not looks.positions


async def lifecycle_row(engine, slug):
    async with engine.connect() as connection:
        return await load_campaign_by_slug_or_refuse(connection, slug)


async def test_of_two_clicks_at_once_one_begins_it(engine):
    campaign = await create_running_campaign(engine)
    both = await asyncio.gather(start_rehearsal(engine, campaign), start_rehearsal(engine, campaign))
    assert sorted(new for _, new in both) == [False, True]
    assert len({copy.id for copy, _ in both}) == 1


async def test_it_is_in_no_list_of_campaigns_and_no_person_comes_in(engine, client, researcher):
    copy, _ = await start_rehearsal(engine, await create_running_campaign(engine))
    async with engine.connect() as connection:
        assert [row.name for row in await summaries.load_campaigns_with_progress(connection)] == ["Verbs"]
        assert [row.name for row in await summaries.load_campaigns_with_progress(connection, only_rehearsals=True)] == [
            copy.name
        ]
    assert (await client.get(f"/link/{copy.link_key}")).status_code == 404
    address = PAGE.format(copy.slug)
    assert (await researcher.get(f"{address}/share")).status_code == 409
    file = {"file": ("a.csv", "hit,annotator,item,value\nh,a,v1,5\n")}
    assert "is a rehearsal" in (await researcher.post(f"{address}/responses", files=file)).text


async def test_a_long_name_leaves_room_for_what_it_is(engine):
    copy, _ = await start_rehearsal(engine, await create_running_campaign(engine, name="long " * 90))
    assert copy.name.endswith(" (rehearsal)")
    assert copy.slug.endswith("-rehearsal")
    assert len(copy.slug) <= 60


async def test_what_is_no_rehearsal_or_holds_answers_of_people_is_not_removed(engine):
    campaign = await create_running_campaign(engine)
    assert await code_of(removed(engine, campaign.slug)) == "not_a_rehearsal"
    copy, _ = await start_rehearsal(engine, campaign)
    someone = await create_annotator(engine, copy)
    await submit_scores(engine, someone, await try_to_lease_hit(engine, someone))
    assert await code_of(removed(engine, copy.slug)) == "people_have_answered"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_what_would_fill_the_disk_or_cannot_be_launched_is_refused(engine, monkeypatch):
    campaign = await create_running_campaign(engine, launched=False)
    for limit in ("MAX_REHEARSAL_ITEMS", "MAX_REHEARSAL_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(rehearsals, limit, 11)
            assert await code_of(start_rehearsal(engine, campaign)) == "too_large_to_rehearse"
    small, empty = (
        await create_running_campaign(engine, items=6),
        await create_running_campaign(engine, items=6, launched=False),
    )
    await execute_sql(engine, "DELETE FROM items WHERE campaign_id = :id", id=empty.id)
    assert await code_of(start_rehearsal(engine, empty)) == "no_items"
    unknown = RehearsalCrowd(4, population_with_random_bias_only(0.1), "oracle")
    assert await code_of(start_rehearsal(engine, small, unknown)) == "column_unknown"
    copy, _ = await start_rehearsal(engine, small)
    assert await code_of(start_rehearsal(engine, copy)) == "is_a_rehearsal"
    monkeypatch.setattr(rehearsals, "MAX_REHEARSALS", 1)
    assert (
        await code_of(start_rehearsal(engine, await create_running_campaign(engine, items=6))) == "too_many_rehearsals"
    )
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns WHERE rehearsal_of IS NOT NULL") == 1


async def test_outputs_of_systems_and_files_count_too(engine, monkeypatch):
    systems, files = (
        await create_campaign_of_systems(engine),
        await with_files(engine, {"a.png": png(), "b.png": png(grey=9)}, content="image"),
    )
    with monkeypatch.context() as patch:
        patch.setattr(rehearsals, "MAX_REHEARSAL_OUTPUTS", 23)
        assert await code_of(start_rehearsal(engine, systems)) == "too_large_to_rehearse"
    for campaign, bytes_ in ((systems, 23 * 4), (files, 2 * len(png()))):
        with monkeypatch.context() as patch:
            patch.setattr(rehearsals, "MAX_REHEARSAL_BYTES", bytes_)
            assert await code_of(start_rehearsal(engine, campaign)) == "too_large_to_rehearse"
        assert (await start_rehearsal(engine, campaign))[1]


async def test_a_process_has_few_crowds_and_sends_them_away_when_it_stops(engine, monkeypatch):
    copy, _ = await start_rehearsal(engine, await create_running_campaign(engine, judgments_per_item=1000))
    crowds = RehearsalCrowds(engine, lambda: NOW, pause=0.01)
    crowds.start_crowd_of_rehearsal(copy, CROWD)
    await wait_until(engine, "SELECT count(*) > 2 FROM responses")
    monkeypatch.setattr(rehearsals, "MAX_CROWDS_PER_PROCESS", 1)
    with pytest.raises(Refusal, match="which is the limit"):
        crowds.refuse_if_crowds_are_busy()
    await crowds.stop()
    assert (await lifecycle_row(engine, copy.slug)).status == "finished"
    crowds.refuse_if_crowds_are_busy()


async def test_when_the_process_of_a_crowd_has_died_another_leads_the_same_crowd_on(engine):
    campaign = await create_running_campaign(engine)
    crowd = RehearsalCrowd(annotators=4, population=population_with_random_bias_only(0.1, 0.25), truth_column=None)
    copy, _ = await led(engine, campaign, crowd)
    assert (await led(engine, campaign))[1] is None  # its process lives
    await dies(engine)
    other = RehearsalCrowd(annotators=9, population=population_with_random_bias_only(0.4), truth_column=None)
    both = await asyncio.gather(led(engine, campaign, other), led(engine, copy, other), return_exceptions=True)
    (again,) = [one[1] for one in both if not isinstance(one, BaseException) and one[1] is not None]
    assert (again.annotators, again.population, again.truth_column) == (4, crowd.population, None)
    await answered(engine, copy, again)
    assert await replay_is_clean(engine, copy.slug)
    await dies(engine)
    assert (await led(engine, campaign))[1] is None  # there is nothing left to answer


async def test_a_process_says_that_it_leads_a_crowd_and_goes_away_when_another_one_does(engine, monkeypatch):
    monkeypatch.setattr(rehearsals, "LEAD_RENEWAL_SECONDS", 0)
    campaign = await create_running_campaign(engine, judgments_per_item=1000)
    copy, crowd = await led(engine, campaign)
    crowds = RehearsalCrowds(engine, lambda: NOW, pause=0.001)
    crowds.start_crowd_of_rehearsal(copy, crowd)
    await wait_until(engine, f"SELECT led_until > '{crowd.led_until.isoformat()}' FROM crowds")
    await execute_sql(
        engine, "UPDATE crowds SET led_until = led_until + interval '1 minute'"
    )  # another one took the lead
    await asyncio.wait_for(crowds.tasks.wait(), 60)
    assert (await lifecycle_row(engine, copy.slug)).status == "running"


async def test_the_page_says_that_the_crowd_is_gone_and_lets_it_go_on(engine, app, researcher):
    app.state.rehearsals.pause = 0
    campaign = await create_running_campaign(engine)
    copy, _ = await led(engine, campaign)
    address = PAGE.format(copy.slug)
    assert "The simulated annotators stopped" not in (await researcher.get(address)).text
    await dies(engine)
    page = (await researcher.get(address)).text
    assert "The simulated annotators stopped" in page
    assert f'action="{address}/rehearse"' in page
    assert "simulated annotators stopped" in (await researcher.get(PAGE.format(campaign.slug))).text
    assert (await researcher.post(f"{address}/rehearse")).headers["location"] == address
    await wait_until(engine, FINISHED)
    assert "The simulated annotators stopped" not in (await researcher.get(address)).text


async def test_a_crowd_whose_campaign_another_process_removes_goes_away(engine):
    copy, _ = await start_rehearsal(engine, await create_running_campaign(engine, judgments_per_item=1000))
    crowds = RehearsalCrowds(engine, lambda: NOW, pause=0)
    crowds.start_crowd_of_rehearsal(copy, CROWD)
    await wait_until(engine, "SELECT count(*) > 2 FROM responses")
    await removed(engine, copy.slug)
    await asyncio.wait_for(crowds.tasks.wait(), 60)
    assert await fetch_value(engine, "SELECT count(*) FROM posteriors WHERE campaign_id = :id", id=copy.id) == 0


async def test_it_goes_with_the_draft_that_it_rehearses(engine):
    campaign = await create_running_campaign(engine, launched=False)
    copy, _ = await start_rehearsal(engine, campaign)
    await answered(engine, copy)
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)
    assert set((await sizes(engine)).values()) == {0}


async def test_a_crowd_that_ends_late_leaves_alone_what_stands_in_its_place(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=1000)
    first, _ = await start_rehearsal(engine, campaign)
    crowds = RehearsalCrowds(engine, lambda: NOW, pause=0)
    crowds.start_crowd_of_rehearsal(first, CROWD)
    await wait_until(engine, "SELECT count(*) > 2 FROM responses")
    async with engine.begin() as connection:
        await rehearsals.delete_and_return_rehearsal_or_refuse(connection, first.slug)
        second, to_lead = await rehearsals.create_or_find_rehearsal_and_take_crowd_lead(
            connection, campaign.slug, CROWD, now=NOW
        )
    await asyncio.wait_for(crowds.tasks.wait(), 60)
    assert to_lead is not None
    assert second.slug == first.slug
    assert (await lifecycle_row(engine, second.slug)).status == "running"


async def test_careless_annotators_do_not_look(engine):
    async def spread(careless):
        campaign = await create_running_campaign(engine, items=20, judgments_per_item=8)
        copy, _ = await start_rehearsal(engine, campaign)
        await answered(engine, copy, RehearsalCrowd(4, population_with_random_bias_only(0.0, careless), None))
        agreement = await fetch_value(
            engine,
            """SELECT avg(spread) FROM (SELECT stddev(value) AS spread FROM responses r,
               unnest(r.items, r.values) AS answer (item, value) WHERE campaign_id = :id GROUP BY item) AS items""",
            id=copy.id,
        )
        await removed(engine, copy.slug)
        return agreement

    assert await spread(0.0) < 1
    assert await spread(1.0) > 20


async def test_it_begins_and_ends_on_the_campaigns_page(engine, app, researcher):
    app.state.rehearsals.pause = 0
    campaign = await create_running_campaign(engine)
    address = PAGE.format(campaign.slug)
    assert "/rehearse" in (await researcher.get(address)).text
    reply = await researcher.post(address + "/rehearse", data={"annotators": "3", "noise": "5", "careless": "0"})
    assert reply.headers["location"] == PAGE.format("verbs-rehearsal")
    await wait_until(engine, FINISHED)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 3
    page = (await researcher.get(reply.headers["location"])).text
    assert "All answers here are simulated" in page
    assert "/share" not in page
    export = await researcher.get(reply.headers["location"] + "/export/responses.csv")
    assert "verbs-rehearsal" in export.headers["content-disposition"]
    assert "Verbs (rehearsal)" in (await researcher.get("/admin")).text
    assert "Open rehearsal" in (await researcher.get(address)).text
    again = await researcher.post(address + "/rehearse")
    assert again.headers["location"] == reply.headers["location"]
    back = await researcher.post(reply.headers["location"] + "/remove-rehearsal", follow_redirects=True)
    assert "Rehearsal removed" in back.text
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 1


async def test_who_may_not_is_refused(engine, researcher, client):
    campaign = await create_running_campaign(engine)
    address = PAGE.format(campaign.slug) + "/rehearse"
    assert (await client.post(address)).headers["location"].startswith("/login")
    del researcher.headers["X-CSRF-Token"]
    refused = await researcher.post(address, headers={"accept": "application/json"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_failed")
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 1


async def test_the_form_offers_all_that_annotators_can_be_like(engine, researcher):
    campaign = await create_running_campaign(engine)
    page = (await researcher.get(PAGE.format(campaign.slug))).text
    for offered in ("", *POPULATIONS, *CARELESS_KINDS):
        assert f'<option value="{offered}">' in page


async def test_a_crowd_is_like_real_people_if_asked_for(engine, researcher):
    campaign = await create_running_campaign(engine)
    address = PAGE.format(campaign.slug) + "/rehearse"
    said = {"annotators": "3", "careless": "100", "careless_how": "straight_line", "like": "mlqe-ro-en"}
    unknown = await researcher.post(address, data=said | {"like": "nobody"})
    assert unknown.status_code == 422
    assert "There are no simulated annotators “nobody”" in unknown.text
    assert (await researcher.post(address, data=said)).status_code == 303


@pytest.mark.parametrize(
    ("settings", "fewest", "why"),
    [
        ({}, 1, ""),
        ({"repeat_items": False}, 30, "each item needs 30 judgments by different people. Choose more."),
        ({"goal": "halves"}, 30, "hardly helps its goal"),
        ({"hits_per_annotator": 2}, 36, "asks for 72 tasks, and each annotator may answer 2."),
        ({"hits_per_annotator": 2, "repeat_items": False, "judgments_per_item": 9}, 11, "each annotator may answer 2"),
        ({"repeat_items": False, "judgments_per_item": 101}, 101, "A rehearsal can have at most 100."),
    ],
)
async def test_the_form_says_how_many_annotators_the_campaign_needs(engine, researcher, settings, fewest, why):
    campaign = await create_running_campaign(engine, launched=False, **({"judgments_per_item": 30} | settings))
    page = (await researcher.get(PAGE.format(campaign.slug))).text
    said = re.findall(r'data-fewest="(\d+)"( hidden)?>(.*?)</p>', page)
    assert [(int(number), bool(hidden)) for number, hidden, _ in said] == [(fewest, fewest <= 100)] * (fewest > 1)
    usual = max(12, fewest) if fewest <= 100 else 12
    assert f'name="annotators" value="{usual}"' in page
    assert f"{usual} simulated annotators" in page
    assert all(why in words for *_, words in said)


async def test_the_column_that_is_plainly_meant_is_proposed(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False)
    await execute_sql(engine, """UPDATE items SET fields = '{"id": 7, "verb": "run", "length": 3, "oracle": "0.5"}'""")
    page = (await researcher.get(PAGE.format(campaign.slug))).text
    (believed,) = re.findall(r'<select id="crowd-truth".*?</select>', page, re.DOTALL)
    options = re.findall(r'<option value="(\w*)"( selected)?>', believed)
    assert options == [("", ""), ("length", ""), ("oracle", " selected")]
