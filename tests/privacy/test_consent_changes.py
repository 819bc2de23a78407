"""A consent text that was written from the settings is out of date when one of them changes; no other text ever is."""

import asyncio

import pytest
from sqlalchemy import event

from app.campaigns import settings_edits
from app.campaigns.consent_writing import load_consent_context, write_consent_again
from app.campaigns.lifecycle import create_copy_of_campaign
from app.privacy.consent_changes import load_consent_warnings, load_outdated_consent_sentence_or_empty
from app.privacy.consent_text import StudyFacts, draft_consent_text
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import NOW, requests_are_waiting_sql, wait_until
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.quality.test_reach import words

STUDY = {
    "study_controller": "the University of York",
    "study_contact": "study@example.org",
    "study_purpose": "how people judge tone",
    "people_from": "prolific",
    "pay_per_hit": 0.125,
    "hits_per_annotator": 12,
    "recruiting_minutes": 10,
    "identifiers_days": 30,
    "free_text_days": 30,
    "telemetry_days": 30,
}


async def change(engine, campaign, **values):
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update=values)
        )


async def load(engine, campaign):
    async with engine.connect() as connection:
        return await load_campaign_by_slug_or_refuse(connection, campaign.slug)


async def outdated(engine, campaign):
    async with engine.connect() as connection:
        stored = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return await load_outdated_consent_sentence_or_empty(connection, stored)


@pytest.fixture
async def campaign(engine):
    """Return a draft whose consent text was written from its settings."""
    draft = await create_draft(engine, **STUDY)
    await change(engine, draft, consent=draft_consent_text(StudyFacts.from_campaign(draft)))
    return draft


async def test_the_text_says_the_time_and_the_pay_of_one_person(engine, campaign):
    text = (await load(engine, campaign)).consent
    assert "- **Time:** about 10 minutes.\n- **Pay:** $1.50 in all.\n" in text


async def test_a_text_is_up_to_date_until_a_setting_that_it_used_changes(engine, campaign):
    assert await outdated(engine, campaign) == ""
    await change(engine, campaign, instructions="Read it.", judgments_per_item=5)
    assert await outdated(engine, campaign) == ""
    await change(engine, campaign, pay_per_hit=0.25)
    assert await outdated(engine, campaign) == "The pay changed since the consent text was written from the settings."
    await change(engine, campaign, recruiting_minutes=20, identifiers_days=60)
    said = "The time, the pay and how long data are kept changed since the consent text was written from the settings."
    assert await outdated(engine, campaign) == said


async def test_a_change_that_is_taken_back_leaves_the_text_up_to_date(engine, campaign):
    await change(engine, campaign, pay_per_hit=0.25)
    await change(engine, campaign, pay_per_hit=0.125)
    assert await outdated(engine, campaign) == ""


@pytest.mark.parametrize("text", ["We pay $1.50.", "{written}\n\nThank you!", "{edited}"])
async def test_a_text_by_hand_or_edited_is_never_out_of_date(engine, campaign, text):
    written = (await load(engine, campaign)).consent
    edited = written.replace("about 10 minutes", "about 10 to 12 minutes")
    await change(engine, campaign, consent=text.format(written=written, edited=edited))
    await change(engine, campaign, pay_per_hit=0.25, recruiting_minutes=20)
    assert await outdated(engine, campaign) == ""


async def test_an_outdated_text_has_one_warning_and_not_each_contradiction(engine, campaign):
    await change(engine, campaign, pay_per_hit=0.25, identifiers_days=60)
    async with engine.connect() as connection:
        warnings = await load_consent_warnings(connection, await load(engine, campaign))
    assert warnings == [
        "The pay and how long data are kept changed since the consent text was written from the settings."
    ]


async def test_one_press_on_the_step_saves_and_writes_the_text_again(engine, researcher, campaign):
    await change(engine, campaign, pay_per_hit=0.25)
    address = f"/admin/campaigns/{campaign.slug}/settings/visit"
    page = (await researcher.get(address)).text
    assert "The pay changed since the consent text was written from the settings. Save and write it again" in words(
        page
    )
    consent = (await load(engine, campaign)).consent
    form = {"person_reward": "4.50", "person_tasks": "12", "recruiting_minutes": "10", "people_from": "prolific"}
    reply = await researcher.post(address, data=form | {"consent": consent, "go": "write-consent"})
    assert reply.headers["location"].endswith("?done=consent-written")
    assert "- **Pay:** $4.50 in all." in (await load(engine, campaign)).consent
    assert await outdated(engine, campaign) == ""


async def test_the_launch_page_says_so_and_writes_the_text_again(engine, researcher, campaign):
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(20)))
    await change(engine, campaign, pay_per_hit=0.25)
    address = f"/admin/campaigns/{campaign.slug}"
    said = "The pay changed since the consent text was written from the settings."
    assert said in words((await researcher.get(f"{address}/launch/confirm")).text)
    assert (await researcher.post(f"{address}/write-consent")).status_code == 303
    assert said not in words((await researcher.get(f"{address}/launch/confirm")).text)
    assert "- **Pay:** $3.00 in all." in (await load(engine, campaign)).consent


async def test_a_press_writes_nothing_over_a_text_by_hand(engine, researcher, campaign):
    await change(engine, campaign, consent="Agree?")
    await researcher.post(f"/admin/campaigns/{campaign.slug}/write-consent")
    assert (await load(engine, campaign)).consent == "Agree?"


async def test_a_launched_campaign_can_write_it_again_too(engine, researcher, campaign):
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(20)))
    await apply_action(engine, campaign, "launch")
    await change(engine, campaign, pay_per_hit=0.25)
    address = f"/admin/campaigns/{campaign.slug}/settings/visit"
    assert "Save and write it again" in words((await researcher.get(address)).text)


async def test_a_text_that_a_colleague_edits_meanwhile_is_kept(engine, campaign):
    await change(engine, campaign, pay_per_hit=0.25)

    async def press() -> None:
        async with engine.begin() as connection:
            await write_consent_again(connection, campaign.slug, None)

    async with engine.begin() as colleague:
        await settings_edits.store_changed_settings_or_refuse(
            colleague, campaign.slug, lambda before: before.model_copy(update={"consent": "Agree?"})
        )
        pressed = asyncio.create_task(press())
        await wait_until(engine, requests_are_waiting_sql(1))
    await pressed
    assert (await load(engine, campaign)).consent == "Agree?"


async def test_a_page_reads_the_log_of_settings_once(engine, campaign):
    await change(engine, campaign, pay_per_hit=0.25)
    statements = []
    listener = lambda *said: statements.append(said[2])  # noqa: E731
    event.listen(engine.sync_engine, "before_cursor_execute", listener)
    async with engine.connect() as connection:
        context = await load_consent_context(connection, await load(engine, campaign), None)
    event.remove(engine.sync_engine, "before_cursor_execute", listener)
    assert sum("audit_log" in statement for statement in statements) == 1
    assert context["consent_notes"] == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"minutes_per_hit": 2 / 3}, "about 40 seconds a task."),
        ({"minutes_per_hit": 1.5}, "about 1.5 minutes a task."),
        ({"minutes_per_hit": 1}, "about 1 minute a task."),
        ({"minutes_per_hit": 1.5, "hits_per_annotator": 4}, "about 6 minutes."),
        ({"minutes_per_hit": 1.5, "hits_per_annotator": 4, "repeat_items": False}, "about 1.5 minutes a task."),
        ({"pay_per_hit": 0.15, "hits_per_annotator": 10, "repeat_items": False}, "**Pay:** $0.15 a task."),
        ({"minutes_per_hit": 1.5, "hits_per_annotator": 4, "people_from": "mturk"}, "about 1.5 minutes a task."),
        ({"pay_per_hit": 0.125}, "**Pay:** $0.125 a task."),
        ({"pay_per_hit": 1.5 / 11, "hits_per_annotator": 11}, "**Pay:** $1.50 in all."),
        ({"pay_per_hit": 0.125, "hits_per_annotator": 12, "pay": "1 credit"}, "**Pay:** 1 credit."),
        ({}, "about [number] minutes."),
    ],
)
async def test_time_and_pay_are_those_of_a_person_if_the_tasks_are_fixed(engine, settings, line):
    draft = await create_draft(engine, **settings)
    assert line in draft_consent_text(StudyFacts.from_campaign(draft))


async def test_going_on_says_that_a_text_by_hand_does_not_say_how_long_data_are_kept(engine, researcher, campaign):
    await change(engine, campaign, consent="We keep your id for 30 days.")
    address = f"/admin/campaigns/{campaign.slug}/settings/visit"
    for days, notice in (("30", "saved"), ("90", "saved-consent-differs")):
        values = {"consent": "We keep your id for 30 days.", "identifiers_days": days, "go": "next"}
        reply = await researcher.post(address, data=values)
        assert reply.headers["location"].endswith(f"/settings/items?done={notice}"), days
    assert "The consent text does not say this." in words((await researcher.get(address)).text)


async def test_the_launch_page_has_one_notice_on_all_that_the_text_lacks(engine, researcher, campaign):
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(20)))
    await change(engine, campaign, consent="Agree?", identifiers_days=90, free_text_days=3650)
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/launch/confirm")).text)
    assert "The settings erase data after 30, 90 and 3650 days, but the consent text does not say so." in page
    assert page.count("Change it") == 1


async def test_the_text_names_the_only_platform_that_people_can_come_from(engine, campaign):
    await change(engine, campaign, open_link=True)
    assert "the name of your link" in draft_consent_text(StudyFacts.from_campaign(await load(engine, campaign)))
    await change(engine, campaign, open_link=False)
    text = draft_consent_text(StudyFacts.from_campaign(await load(engine, campaign)))
    assert "and your id on Prolific." in text
    assert "give the code from the last page, or your id on Prolific; then your answers are removed." in text
    assert "link" not in text


async def copy(engine, campaign):
    async with engine.begin() as connection:
        return await create_copy_of_campaign(connection, campaign.slug, now=NOW)


async def test_a_copy_knows_that_its_text_was_out_of_date_in_the_original(engine, campaign):
    assert await outdated(engine, await copy(engine, campaign)) == ""
    await change(engine, campaign, pay_per_hit=0.25)
    copied = await copy(engine, campaign)
    said = "The pay changed since the consent text was written from the settings."
    assert await outdated(engine, copied) == said
    await change(engine, campaign, recruiting_minutes=20)  # does not concern the copy
    assert await outdated(engine, copied) == said
    again = await copy(engine, copied)
    assert await outdated(engine, again) == said
    await change(engine, again, pay_per_hit=0.125)
    assert await outdated(engine, again) == ""
    async with engine.begin() as connection:
        await write_consent_again(connection, copied.slug, None)
    assert await outdated(engine, copied) == ""
    assert "$3.00 in all" in (await load(engine, copied)).consent


async def test_the_page_that_copies_warns_of_it(engine, researcher, campaign):
    address = f"/admin/campaigns/{campaign.slug}/copy/confirm"
    assert "consent" not in words((await researcher.get(address)).text)
    await change(engine, campaign, pay_per_hit=0.25)
    page = words((await researcher.get(address)).text)
    assert "The pay changed since the consent text was written from the settings. The copy gets the old text" in page
