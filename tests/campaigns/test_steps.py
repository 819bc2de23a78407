"""Setting a campaign up step by step: each step is saved by itself, and no one saves over what they have not seen."""

import asyncio
import re
from html import unescape

import pytest

from app.campaigns import form_sections, settings_edits, setup_rail
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SavedStep
from app.errors import Conflict
from app.record.campaign import load_campaign_for_page_or_refuse
from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows, fetch_value
from tests.campaigns.drafts import create_draft, import_items, settings_after_step

SETTINGS = CampaignSettings(name="Verbs", question="How often?")


async def post(researcher, campaign, step, **fields):
    return await researcher.post(f"/admin/campaigns/{campaign.slug}/settings/{step}", data=fields)


def version_of(page):
    (version,) = re.findall(r'name="version" value="(\d+)"', page.text)
    return version


async def rail_of(engine, campaign):
    async with engine.connect() as connection:
        rail = setup_rail.build_setup_rail(await load_campaign_for_page_or_refuse(connection, campaign.slug))
    return rail, {step.name: step.is_done for step in rail.steps}


def test_every_setting_belongs_to_one_step():
    assert form_sections.STEP_BY_SETTING.keys() == CampaignSettings.model_fields.keys()
    names = [name for group in form_sections.FORM_FIELD_GROUPS for name in group.settings]
    assert len(names) == len({*names})


async def test_a_draft_needs_a_question_alone_and_goes_on_with_the_next_step(researcher, engine):
    made = await researcher.post("/admin/campaigns/new", data={"name": " ", "question": "How often?"})
    assert made.headers["location"] == "/admin/campaigns/how-often/settings/visit?done=created"
    base = "/admin/campaigns/how-often/settings"
    for step, following in (("visit", "items"), ("items", "how-much"), ("how-much", "quality")):
        reply = await researcher.post(f"{base}/{step}", data={"go": "next"})
        assert reply.headers["location"] == f"{base}/{following}?done=saved"
    reply = await researcher.post(f"{base}/quality", data={"go": "next"})
    assert reply.headers["location"] == "/admin/campaigns/how-often/launch/confirm?done=saved"
    assert await fetch_rows(engine, "SELECT name, question FROM campaigns") == [("How often?", "How often?")]


async def test_a_template_gives_what_the_question_step_does_not_ask(researcher, engine):
    values = {"name": "Mood", "question": "How?", "design": "slider"}
    await researcher.post("/admin/campaigns/new?template=sentiment", data=values)
    assert await fetch_value(engine, "SELECT instructions <> '' FROM campaigns")
    assert await fetch_value(engine, "SELECT name FROM campaigns") == "Mood"


async def test_a_step_changes_its_own_settings_and_no_others(researcher, engine):
    campaign = await create_draft(engine, consent="Agree?", gamma=0.25, gold_feedback=True)
    fields = {"judgments_per_item": "7", "consent": "Never", "gamma": "9", "name": "Nouns"}
    assert (await post(researcher, campaign, "how-much", **fields)).status_code == 303
    stored = "SELECT judgments_per_item, gamma, name, gold_feedback, visit_settings ->> 'consent' FROM campaigns"
    assert await fetch_rows(engine, stored) == [(7, 0.25, "Verbs", True, "Agree?")]
    assert (await post(researcher, campaign, "quality")).status_code == 303  # with its switches off
    assert await fetch_rows(engine, "SELECT gold_feedback, repeat_items FROM campaigns") == [(False, False)]


async def test_two_people_save_two_steps_and_both_stay(researcher, engine):
    campaign = await create_draft(engine)
    replies = await asyncio.gather(
        post(researcher, campaign, "visit", version="0", consent="Agree?"),
        post(researcher, campaign, "quality", version="0", checks_percent="10"),
        post(researcher, campaign, "advanced", version="0", seed="7"),
    )
    assert {reply.status_code for reply in replies} == {303}
    stored = "SELECT visit_settings ->> 'consent', checks_percent, seed FROM campaigns"
    assert await fetch_rows(engine, stored) == [("Agree?", 10.0, 7)]


async def test_a_step_that_someone_else_changed_is_refused_and_what_was_entered_is_kept(researcher, engine):
    campaign = await create_draft(engine, judgments_per_item=3)
    opened = version_of(await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/how-much"))
    await post(researcher, campaign, "how-much", version=opened, judgments_per_item="4", need="best")
    refused = await post(researcher, campaign, "how-much", version=opened, judgments_per_item="9", need="scores")
    assert refused.status_code == 409
    assert 'data-code="step_changed"' in refused.text
    assert "Someone else changed “How much” after you opened it." in unescape(refused.text)
    assert '<th scope="row">Judgments per item</th><td>4</td><td>9</td>' in refused.text
    assert re.search(r'id="judgments_per_item"[^>]* value="9"', refused.text)
    assert await fetch_value(engine, "SELECT judgments_per_item FROM campaigns") == 4
    again = await post(
        researcher, campaign, "how-much", version=version_of(refused), judgments_per_item="9", need="scores"
    )
    assert again.status_code == 303
    assert await fetch_rows(engine, "SELECT judgments_per_item, rule FROM campaigns") == [(9, "easl")]


async def test_a_refused_form_does_not_repeat_the_notice_of_the_page_before(researcher, engine):
    campaign = await create_draft(engine)
    address = f"/admin/campaigns/{campaign.slug}/settings/visit?done=created"
    assert "Draft created." in (await researcher.get(address)).text
    refused = await researcher.post(address, data={"questions": "no question"})
    assert refused.status_code == 422
    assert "Draft created." not in refused.text


async def test_of_many_who_opened_the_same_version_one_saves(engine):
    campaign = await create_draft(engine)

    async def save(seed):
        async with engine.begin() as connection:
            await settings_edits.store_changed_settings_or_refuse(
                connection,
                campaign.slug,
                lambda before: before.model_copy(update={"seed": seed}),
                SavedStep("advanced", 0),
            )

    results = await asyncio.gather(*(save(seed) for seed in range(5)), return_exceptions=True)
    refusals = [result for result in results if result is not None]
    assert {refusal.code for refusal in refusals if isinstance(refusal, Conflict)} == {"step_changed"}
    assert len(refusals) == 4
    assert await fetch_value(engine, "SELECT step_versions FROM campaigns") == {"advanced": 1}


async def test_an_edit_by_program_counts_as_a_change_of_the_steps_that_have_its_settings(researcher, engine):
    campaign = await create_draft(engine)
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update={"rule": "best", "seed": 5})
        )
    assert await fetch_value(engine, "SELECT step_versions FROM campaigns") == {"how-much": 1, "advanced": 1}
    assert (await post(researcher, campaign, "advanced", version="0", seed="6")).status_code == 409


async def test_the_rail_marks_what_is_saved_and_adds_up_what_is_known(researcher, engine):
    campaign = await create_draft(engine, judgments_per_item=4, items_per_hit=5)
    _, done = await rail_of(engine, campaign)
    assert [name for name, is_done in done.items() if is_done] == ["question", "visit", "how-much"]  # by its settings
    plain = await create_draft(engine, name="Plain", judgments_per_item=10, welcome=True)
    _, done = await rail_of(engine, plain)
    assert [name for name, is_done in done.items() if is_done] == ["question"]
    await post(researcher, plain, "quality", quality_preset="watch")
    _, done = await rail_of(engine, plain)
    assert [name for name, is_done in done.items() if is_done] == ["question", "quality"]

    other = await create_draft(engine, name="Other", judgments_per_item=10, welcome=True)
    await post(researcher, other, "visit", people_from="prolific", person_reward="1.50", person_tasks="12")
    _, done = await rail_of(engine, other)
    assert [name for name, is_done in done.items() if is_done] == [
        "question",
        "visit",
    ]  # not where 12 tasks are set, too
    await post(researcher, other, "how-much")
    _, done = await rail_of(engine, other)
    assert [name for name, is_done in done.items() if is_done] == ["question", "visit", "how-much"]

    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/visit")).text
    assert 'class="totals"' not in page
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60)))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/visit")).text
    assert "<dt>Tasks</dt><dd>48</dd>" in page
    assert "<dt>Pay</dt>" not in page
    sent = {"minutes_per_hit": "1.5", "pay_per_hit": "0.25", "currency": "GBP", "welcome": "on", "open_link": "on"}
    await post(researcher, campaign, "visit", **sent)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/visit")).text
    assert "<dt>Hours of work</dt><dd>1.2</dd>" in page
    assert "<dt>Pay</dt><dd>£12.00</dd>" in page


async def test_totals_follow_the_numbers_of_a_form_that_is_not_saved(researcher, engine):
    campaign = await create_draft(engine, judgments_per_item=4, items_per_hit=5)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60)))
    settings = f"/admin/campaigns/{campaign.slug}/settings"
    part = await researcher.get(f"{settings}/how-much/totals", params={"judgments_per_item": "10", "need": "scores"})
    assert "<dt>Tasks</dt><dd>120</dd>" in part.text
    entered = {"minutes_per_hit": "1.5", "pay_per_hit": "0.25", "currency": "GBP", "open_link": "on"}
    part = await researcher.get(f"{settings}/visit/totals", params=entered)
    assert "<dt>Pay</dt><dd>£12.00</dd>" in part.text
    wrong = await researcher.get(f"{settings}/how-much/totals", params={"judgments_per_item": "many"})
    assert wrong.status_code == 422
    assert 'data-field="judgments_per_item"' in wrong.text
    assert await fetch_value(engine, "SELECT judgments_per_item FROM campaigns") == 4


async def test_texts_about_checks_and_rules_follow_the_numbers_of_a_form_that_is_not_saved(researcher, engine):
    campaign = await create_draft(engine, judgments_per_item=4, items_per_hit=5, hits_per_annotator=4)
    items = "".join(f"{k},verb {k},,\n" for k in range(60)) + "".join(f"g{k},gold,gold,80\n" for k in range(3))
    await import_items(engine, campaign, "id,text,check,expected\n" + items)
    address = f"/admin/campaigns/{campaign.slug}/settings/quality/totals"
    entered = {"checks_percent": "50", "quality_preset": "watch", "false_alarms": "2"}
    part = (await researcher.get(address, params=entered)).text
    assert "3 gold items; with 4 tasks per person an annotator sees 2." in part
    assert "one person sees 2 of 3 gold items; the rule needs 5 failures." in part
    refused = await researcher.get(address, params=entered | {"checks_percent": "75"})
    assert refused.status_code == 422
    assert 'data-field="checks_percent"' in refused.text
    assert "50" in refused.text


@pytest.mark.parametrize(
    ("old", "design", "expected"),
    [
        ({}, "pairwise", ("trueskill", 2, "easl")),
        ({"update_law": "easl-aware", "items_per_hit": 3}, "rating", ("easl-aware", 3, "easl")),
        ({"rule": "best", "goal": "none"}, "categories", ("dirichlet", 1, "easl")),
    ],
)
def test_another_way_of_asking_brings_its_usual_law_and_a_rule_that_can_work(old, design, expected):
    before = SETTINGS.model_validate(SETTINGS.model_dump() | old)
    entered = {"name": "Verbs", "question": "Which?", "design": design, "items_per_hit": str(before.items_per_hit)}
    after = settings_after_step(before, "question", entered)
    assert (after.update_law, after.items_per_hit, after.rule) == expected


def test_a_number_of_items_that_was_entered_for_the_new_way_of_asking_stays():
    entered = {"name": "Verbs", "question": "Which?", "design": "rating", "items_per_hit": "5"}
    assert settings_after_step(SETTINGS, "question", entered).items_per_hit == 1
    entered["items_per_hit_of"] = "rating"
    assert settings_after_step(SETTINGS, "question", entered).items_per_hit == 5
    entered |= {"design": "best_worst", "items_per_hit": ""}
    assert settings_after_step(SETTINGS, "question", entered).items_per_hit == 4


async def test_an_error_in_another_step_is_named_with_a_link_to_its_field(researcher, engine):
    campaign = await create_draft(engine, goal="best", rule="best")
    refused = await post(researcher, campaign, "question", name="Verbs", question="Which?", design="pairwise")
    assert refused.status_code == 422
    link = f'<a href="/admin/campaigns/{campaign.slug}/settings/how-much#goal">How much, Goal</a>'
    assert link in refused.text


async def test_a_step_that_is_none_is_not_found(researcher, engine):
    campaign = await create_draft(engine)
    assert (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/none")).status_code == 404
    for step in ("none", "review"):
        assert (await post(researcher, campaign, step)).status_code == 404
    review = await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/review")
    assert review.headers["location"] == f"/admin/campaigns/{campaign.slug}/launch/confirm"


async def test_after_a_launch_a_step_saves_what_can_change_and_refuses_a_stale_form(researcher, engine):
    campaign = await create_running_campaign(engine, judgments_per_item=4)
    assert (await post(researcher, campaign, "how-much", version="0", judgments_per_item="6")).status_code == 303
    stale = await post(researcher, campaign, "how-much", version="0", judgments_per_item="7", lease_minutes="45")
    assert stale.status_code == 409
    assert re.search(r'id="lease_minutes"[^>]* value="45"', stale.text)
    assert await fetch_rows(engine, "SELECT judgments_per_item, lease_minutes FROM campaigns") == [(6, 30)]


async def test_how_much_says_that_fewer_people_may_give_all_judgments_of_an_item_if_it_is_shown_again(
    researcher, engine, subtests
):
    sentence = "10 judgments of an item may come from fewer than 10 people."
    for design, says_it in (("slider", True), ("rating", True), ("categories", True), ("pairwise", False)):
        with subtests.test(design=design):
            labels = {"design_settings": {"labels": ["yes", "no"]}} if design == "categories" else {}
            campaign = await create_draft(engine, name=design, design=design, items_per_hit=None, **labels)
            html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/how-much")).text
            hint = html.partition('id="repeat_items-hint"')[2].partition("</p>")[0]
            shown = "".join(re.findall(r"<span(?! [^>]*hidden)[^>]*>(.*?)</span>", hint))
            assert (sentence in shown) == says_it


async def test_quality_is_not_done_while_the_step_names_a_rule_that_can_flag_no_one(researcher, engine):
    campaign = await create_draft(engine, items_per_hit=5, hits_per_annotator=12, judgments_per_item=10)
    rows = "".join(f"v{k},verb {k},,\n" for k in range(60)) + "".join(f"g{k},gold {k},gold,80\n" for k in range(3))
    await import_items(engine, campaign, f"id,text,check,expected\n{rows}")
    await post(researcher, campaign, "quality", quality_preset="watch", go="remedy-gold-show")
    assert not (await rail_of(engine, campaign))[1]["quality"]  # three gold items are shown, and the rule needs five
    await post(researcher, campaign, "quality", quality_preset="watch", checks_percent="25", go="remedy-gold-strict")
    assert (await rail_of(engine, campaign))[1]["quality"]


async def test_a_saved_step_on_quality_without_its_tick_says_why(researcher, engine):
    campaign = await create_draft(engine, judgments_per_item=4, items_per_hit=5, hits_per_annotator=1)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60)))
    words = "Saved, but a rule can flag no one"
    address = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    assert words not in (await researcher.get(address)).text
    assert (await post(researcher, campaign, "quality", quality_preset="watch")).status_code == 303
    assert words in (await researcher.get(address)).text
    await post(researcher, campaign, "quality", quality_preset="off")
    assert words not in (await researcher.get(address)).text
    assert (await rail_of(engine, campaign))[1]["quality"]
