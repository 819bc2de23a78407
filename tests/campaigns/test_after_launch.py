"""Changes of settings after the launch: nothing is lost, no limit passed, and the log knows."""

import asyncio
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import form_values, lifecycle, settings_edits
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SETTINGS_EDITABLE_AFTER_LAUNCH
from app.database.session import create_engine
from app.designs.field_flags import editability_code_after_launch_or_none
from app.errors import Conflict, Invalid
from app.imports import items
from app.imports.columns import ColumnMapping
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import apply_action, replay_is_clean

NOTES = ["Item ids come from the column “id”; annotators see the column “verb”."]


async def change(engine, campaign, **settings):
    async with engine.begin() as connection:
        return await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update=settings)
        )


async def add_items(engine, campaign, content="id,verb\nw0,walk\nw1,wait\nw2,weep\n", **how):
    async with engine.begin() as connection:
        file = BytesIO(content.encode())
        how |= {"mapping": ColumnMapping(shown="verb"), "max_mb": 1}
        return (
            await items.import_items_and_return_receipt(connection, campaign.slug, file, "more.csv", **how)
        ).imported


async def answer_all(engine, assignment, cache=None):
    """Answer HITs until there are no more, and return how many there were and the reason for the end."""
    for hits in range(1000):
        work = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if work.hit is None:
            return hits, work.reason
        await submit_scores(engine, assignment, work.hit)
    return None


def test_each_setting_says_by_itself_whether_it_changes_meaning():
    open_ = {
        name for name, field in CampaignSettings.model_fields.items() if editability_code_after_launch_or_none(field)
    }
    assert set(SETTINGS_EDITABLE_AFTER_LAUNCH) == open_
    assert {"instructions", "pay", "hits_per_annotator", "lease_minutes", "judgments_per_item"} <= open_
    assert not open_ & {"question", "design", "items_per_hit", "update_law", "gamma", "seed", "rule", "low_label"}


def test_what_is_fixed_is_refused_and_the_way_out_is_named(subtests):
    for name in sorted(set(CampaignSettings.model_fields) - set(SETTINGS_EDITABLE_AFTER_LAUNCH)):
        with subtests.test(name=name):
            settings = CampaignSettings(name="Verbs", question="How often?", low_label="rare", high_label="often")
            campaign: Any = SimpleNamespace(name="Verbs", status="running")
            changed = settings.model_copy(update={name: object()})
            with pytest.raises(Conflict, match="Copy the campaign") as refused:
                settings_edits.refuse_changes_fixed_by_launch(campaign, settings, changed)
            assert refused.value.code == "not_a_draft"


async def test_instructions_are_kept_as_versions(engine):
    campaign = await create_running_campaign(engine, instructions="Reed it.")
    await change(engine, campaign, instructions="Read it.")
    versions = (
        "SELECT before ->> 'instructions', after ->> 'instructions' FROM audit_log WHERE action LIKE 'settings.%'"
    )
    assert await fetch_rows(engine, versions) == [("Reed it.", "Read it.")]


async def test_fewer_judgments_than_were_promised_are_refused(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=3)
    with pytest.raises(Conflict) as refused:
        await change(engine, campaign, judgments_per_item=2)
    assert refused.value.code == "only_more"


async def test_more_judgments_are_asked_for_at_once_also_by_a_process_that_had_counted(engine):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=1, repeat_items=True)
    assignment, cache = await create_annotator(engine, campaign), PosteriorCache()
    hit = await try_to_lease_hit(engine, assignment, cache=cache)
    await change(engine, campaign, judgments_per_item=3)
    await submit_scores(engine, assignment, hit)
    await answer_all(engine, assignment, cache)
    assert {row[0] for row in await fetch_rows(engine, "SELECT judgments FROM posteriors")} == {3}
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_finished_campaign_is_reopened_once_it_wants_something(engine):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=1)
    ann = await create_annotator(engine, campaign)
    assert (await answer_all(engine, ann))[1] == "all_done"
    with pytest.raises(Conflict) as refused:
        await apply_action(engine, campaign, "reopen")
    assert refused.value.code == "nothing_wanted"
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    await change(engine, campaign, judgments_per_item=2)
    reopened = await apply_action(engine, campaign, "reopen")
    assert (reopened.status, reopened.finished_at) == ("running", None)
    assert (await answer_all(engine, ann))[0] > 0
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await replay_is_clean(engine, campaign.slug)


@pytest.mark.parametrize("law", ["easl", "ra", "easl-aware"])
@pytest.mark.parametrize("selection", ["streaming", "iterations"])
async def test_items_join_a_running_campaign_with_the_prior(engine, law, selection):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=2, update_law=law, selection=selection)
    ann, cache = await create_annotator(engine, campaign), PosteriorCache()
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann, cache=cache))
    held = await try_to_lease_hit(engine, ann, cache=cache)
    before = await fetch_rows(engine, "SELECT subject, state FROM posteriors WHERE judgments > 0 ORDER BY subject")
    assert await add_items(engine, campaign) == 3
    present = "FROM current_posteriors JOIN campaigns c ON c.id = campaign_id"
    after = dict(await fetch_rows(engine, f"SELECT number, state {present}"))
    assert [(item, after[item]) for item, _ in before] == before
    assert all(after[item] == after[8] for item in (6, 7))
    assert await replay_is_clean(engine, campaign.slug)
    await submit_scores(engine, ann, held)
    for other in ("bea", "cat"):
        await answer_all(engine, await create_annotator(engine, campaign, other), cache)
    assert set(await fetch_rows(engine, f"SELECT judgments {present}")) == {(2,)}
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await replay_is_clean(engine, campaign.slug)


async def test_items_of_a_launched_campaign_are_not_replaced_and_ids_stay_unlike(engine):
    campaign = await create_running_campaign(engine)
    with pytest.raises(Conflict) as refused:
        await add_items(engine, campaign, replace=True)
    assert refused.value.code == "not_a_draft"
    with pytest.raises(Invalid) as taken:
        await add_items(engine, campaign, "id,verb\nv3,walk\n")
    assert taken.value.code == "id_taken"
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 12


async def test_items_are_added_and_limits_changed_while_8_work_and_nothing_is_lost(database_url):
    engines = [create_engine(database_url, pool_size=6) for _ in range(2)]
    caches = [PosteriorCache(), PosteriorCache()]  # each stands for one server process
    try:
        campaign = await create_running_campaign(engines[0], items=20, judgments_per_item=3, hits_per_annotator=1)
        crowd = [await create_annotator(engines[0], campaign, f"a{k}") for k in range(8)]
        answered = []

        async def work(k):
            rng = np.random.default_rng(k)
            while True:
                found = await find_or_lease_next_hit(engines[k % 2], crowd[k], cache=caches[k % 2])
                if found.hit is not None:
                    scores = rng.integers(0, 101, len(found.hit.items)).astype(float).tolist()
                    receipt = await submit_scores(engines[k % 2], crowd[k], found.hit, scores=scores)
                    answered.append(receipt.seq)
                elif found.reason == "all_done":
                    return
                else:  # a limit may be raised yet
                    await asyncio.sleep(0.01)

        async def changes():
            most = "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM responses GROUP BY annotator_id) AS each"
            for limit, settings in (  # the limit never lets them finish before the last change
                (1, {"judgments_per_item": 5}),
                (1, {"hits_per_annotator": 2, "lease_minutes": 5}),
                (2, {"judgments_per_item": 6, "pay": "$1 per HIT", "lease_minutes": 60}),
                (2, {"hits_per_annotator": 3, "instructions": "Look twice."}),
                (3, {"hits_per_annotator": None}),
            ):
                await asyncio.sleep(0.05)
                assert await fetch_value(engines[0], most) <= limit
                await add_items(engines[1], campaign, f"id,verb\n{'-'.join(settings)},walk\n")
                await change(engines[1], campaign, **settings)

        await asyncio.gather(changes(), *(work(k) for k in range(8)))
        engine = engines[0]
        assert sorted(answered) == [
            row[0] for row in await fetch_rows(engine, "SELECT seq FROM responses ORDER BY seq")
        ]
        assert set(await fetch_rows(engine, "SELECT judgments FROM current_posteriors")) == {(6,)}
        assert await fetch_value(engine, "SELECT count(*) FROM current_posteriors") == 25
        assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE action = 'settings.changed'") == 5
        assert await replay_is_clean(engine, campaign.slug)
    finally:
        for engine in engines:
            await engine.dispose()


async def test_nobody_answers_more_than_a_limit_that_was_lowered_while_they_held_a_hit(engine):
    campaign = await create_running_campaign(engine, items=12, judgments_per_item=10, hits_per_annotator=5)
    ann = await create_annotator(engine, campaign)
    for _ in range(2):
        await submit_scores(engine, ann, await try_to_lease_hit(engine, ann))
    held = await try_to_lease_hit(engine, ann)
    await change(engine, campaign, hits_per_annotator=2)
    await submit_scores(engine, ann, held)  # what somebody holds is still taken
    assert (await find_or_lease_next_hit(engine, ann)).reason == "limit"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 3


async def test_the_page_asks_for_what_is_open_alone_and_offers_a_copy(engine, researcher):
    campaign = await create_running_campaign(engine, instructions="Reed it.")
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.get(f"{address}/settings/question")).text
    assert f'href="{address}/copy/confirm"' in page
    stored = form_values.form_values_of_settings(lifecycle.unchecked_settings_with_deliverable_emails(campaign)).items()
    sent = {name: entered for name, entered in stored if name in SETTINGS_EDITABLE_AFTER_LAUNCH and entered}
    for step, edits in (("question", {"instructions": "Read it."}), ("visit", {"pay": "$1"})):
        saved = await researcher.post(f"{address}/settings/{step}", data=sent | edits)
        assert saved.headers["location"] == f"{address}/settings/{step}?done=saved"
    assert await fetch_rows(engine, "SELECT instructions, pay FROM campaigns") == [("Read it.", "$1")]
    changed = "SELECT after FROM audit_log WHERE action = 'settings.changed' ORDER BY id"
    assert await fetch_rows(engine, changed) == [({"instructions": "Read it."},), ({"pay": "$1"},)]


async def test_changes_since_the_launch_stand_on_the_course_and_in_the_export(engine, researcher):
    campaign = await create_running_campaign(engine, items=12, judgments_per_item=10, pay="$1")
    ann = await create_annotator(engine, campaign)
    for _ in range(2):
        await submit_scores(engine, ann, await try_to_lease_hit(engine, ann))
    await change(engine, campaign, pay="$2")
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann))
    await add_items(engine, campaign)
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.get(address)).text
    assert "changed settings: Pay in your own words <del>$1</del>" in page
    assert '"changes":[2,3]' in page.replace(" ", "")
    assert (await researcher.get(f"{address}/figures/uncertainty.svg")).text.count('fill="#86510a"') == 2
    exported = (await researcher.get(f"{address}/export/settings.json")).json()["changes"]
    assert [(one["answers"], one["action"], one["after"]) for one in exported] == [
        (2, "settings.changed", {"pay": "$2"}),
        (
            3,
            "items.imported",
            {"items": 3, "replaced": False, "rows": 3, "lines": 4, "notes": NOTES},
        ),
    ]
    assert "who" not in exported[0]


async def test_a_campaign_that_was_only_launched_has_no_edits_in_its_timeline(engine, researcher):
    campaign = await create_running_campaign(engine)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    assert ("launched the campaign" in page, "changed settings" in page) == (True, False)


async def test_the_settings_page_of_a_launched_campaign_has_no_empty_part(engine, researcher):
    campaign = await create_running_campaign(engine)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/question")).text
    assert "Notifications" not in page
    assert '<option value="de"' in page


async def test_a_setting_is_shown_by_its_value_also_if_python_calls_a_method_so(engine, researcher):
    campaign = await create_running_campaign(engine, low_label="clear", high_label="items")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/question")).text
    assert '<p class="value">clear</p>' in page
    assert '<p class="value">items</p>' in page
    assert "built-in method" not in page
