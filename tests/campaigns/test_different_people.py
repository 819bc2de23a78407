"""By default the judgments of an item come from different people; designs that compare items show them again."""

import pytest

from app.campaigns.settings import CampaignSettings
from app.campaigns.totals import CampaignTotals
from app.cli.settings_options import validated_settings_after_overrides
from app.designs.registry import DESIGNS
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse
from app.simulation.rehearsal_offer import load_rehearsal_offer_or_none_for_rehearsal
from tests.annotation.hits.campaigns import (
    create_annotator,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
)
from tests.annotation.hits.systems import outputs_table
from tests.campaigns.drafts import VERBS, apply_action, create_draft, import_items, settings_after_step
from tests.quality.test_reach import page_of

QUESTION = {"name": "Verbs", "question": "How frequent?"}


@pytest.mark.parametrize("design", DESIGNS)
def test_only_designs_that_compare_items_with_each_other_show_them_again_by_default(design):
    settings = CampaignSettings.model_validate(QUESTION | {"design": design})
    assert settings.repeat_items == (design in {"pairwise", "best_worst", "ranking"})


def test_a_choice_overrides_the_default_of_the_design():
    assert CampaignSettings.model_validate(QUESTION | {"repeat_items": True}).repeat_items
    assert not CampaignSettings.model_validate(QUESTION | {"design": "ranking", "repeat_items": False}).repeat_items


def test_choosing_another_design_in_the_form_follows_its_default_unless_a_researcher_chose_otherwise():
    usual = CampaignSettings.model_validate(QUESTION)
    chosen = CampaignSettings.model_validate(QUESTION | {"repeat_items": True})
    for before, after in ((usual, "pairwise"), (chosen, "ordinal")):
        changed = settings_after_step(before, "question", QUESTION | {"design": after})
        assert changed.repeat_items
    pairs = CampaignSettings.model_validate(QUESTION | {"design": "pairwise"})
    changed = settings_after_step(pairs, "question", QUESTION | {"design": "slider"})
    assert not changed.repeat_items


def test_choosing_another_design_by_command_follows_its_default_unless_a_researcher_chose_otherwise():
    pairs = {"design": "pairwise", "update_law": "trueskill", "items_per_hit": "2"}
    usual = CampaignSettings.model_validate(QUESTION)
    changed = validated_settings_after_overrides(usual.model_dump(), None, pairs)
    assert changed.repeat_items
    once = validated_settings_after_overrides(usual.model_dump(), None, pairs | {"repeat_items": False})
    assert not once.repeat_items
    back = {"design": "slider", "design_settings": "{}", "update_law": "easl"}
    assert not validated_settings_after_overrides(changed.model_dump(), None, back).repeat_items
    chosen = CampaignSettings.model_validate(QUESTION | {"repeat_items": True})
    assert validated_settings_after_overrides(chosen.model_dump(), None, {"design": "ordinal"}).repeat_items


async def test_one_visitor_of_a_new_campaign_judges_each_item_once_and_does_not_finish_it_alone(engine, researcher):
    form = QUESTION | {"design": "slider", "items_per_hit": "2", "low_label": "rare", "high_label": "frequent"}
    reply = await researcher.post("/admin/campaigns/new", data=form)
    assert reply.status_code == 303
    async with engine.begin() as connection:
        draft = await load_campaign_by_slug_or_refuse(connection, "verbs")
    await import_items(engine, draft, VERBS)
    visitor = await create_annotator(engine, await apply_action(engine, draft))
    while (work := await find_or_lease_next_hit(engine, visitor)).hit:
        await submit_scores(engine, visitor, work.hit)
    assert work.reason == "seen_all"
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM posteriors") == [(1,)]
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "running"


async def test_before_the_launch_the_pages_say_how_many_different_people_a_new_campaign_needs(engine, researcher):
    draft = await create_draft(engine, judgments_per_item=7, repeat_items=False)
    await import_items(engine, draft, VERBS)
    launch = await page_of(researcher, draft, "launch/confirm")
    assert "You need at least 7 different people: each item gets 7 judgments, and no one judges an" in launch
    assert "If you have fewer, ask for fewer judgments per item or show items again." in launch
    assert "People7 or more" in launch


async def test_a_campaign_that_shows_items_again_names_no_fewest_people(engine, researcher):
    draft = await create_draft(engine, judgments_per_item=7, repeat_items=True)
    await import_items(engine, draft, VERBS)
    assert "different people" not in await page_of(researcher, draft, "launch/confirm")


async def test_the_launch_says_how_many_people_a_campaign_with_few_segments_needs(engine, researcher):
    draft = await create_draft(engine, judgments_per_item=10, items_per_hit=2, repeat_items=False)
    await import_items(engine, draft, outputs_table(segments=4))
    launch = await page_of(researcher, draft, "launch/confirm")
    # 4 systems with 10 judgments each are 20 tasks of 2 outputs, and one person does at most 4.
    assert "You need at least 5 different people: all judgments take 20 tasks, and no one does more than one" in launch
    assert "ask for fewer judgments per system or show segments again" in launch
    assert "People5 or more" in launch


async def test_people_who_score_one_output_at_a_time_do_no_more_tasks_than_there_are_segments(engine):
    draft = await create_draft(engine, design="rating", judgments_per_item=12, items_per_hit=1, repeat_items=False)
    await import_items(engine, draft, outputs_table(segments=4))
    async with engine.begin() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, draft.slug)
    assert CampaignTotals.from_campaign(campaign).different_people == 12  # 4 systems: 48 tasks


async def test_people_who_judge_each_segment_once_do_no_more_tasks_than_there_are_segments(engine, researcher):
    limited = {"judgments_per_item": 10, "items_per_hit": 2, "hits_per_annotator": 5, "repeat_items": False}
    draft = await create_draft(engine, **limited)
    await import_items(engine, draft, outputs_table(segments=4))
    launch = await page_of(researcher, draft, "launch/confirm")
    assert "Each person does 4 tasks." in launch  # 4 systems, 10 judgments each: 20 tasks
    assert "People5" in launch


async def test_segments_that_are_shown_again_name_no_fewest_people(engine, researcher):
    draft = await create_draft(engine, judgments_per_item=10, items_per_hit=2, repeat_items=True)
    await import_items(engine, draft, outputs_table(segments=4))
    assert "different people" not in await page_of(researcher, draft, "launch/confirm")


async def test_a_rehearsal_with_few_segments_takes_as_many_annotators_as_the_launch_asks_for(engine):
    draft = await create_draft(engine, judgments_per_item=10, items_per_hit=2, repeat_items=False)
    await import_items(engine, draft, outputs_table(segments=4))
    async with engine.begin() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, draft.slug)
        offer = await load_rehearsal_offer_or_none_for_rehearsal(connection, campaign)
    assert offer is not None
    assert offer.min_annotators == 5
    assert "all judgments take 20 tasks, and no one does more than one task for a segment" in offer.reason_for_minimum


async def test_rules_for_annotators_expect_no_more_tasks_than_there_are_segments(engine, researcher):
    draft = await create_draft(engine, judgments_per_item=10, items_per_hit=2, repeat_items=False)
    await import_items(engine, draft, outputs_table(segments=4))
    launch = await page_of(researcher, draft, "launch/confirm")
    assert "With 4 tasks per person this rule cannot find anyone: it needs 12 tasks." in launch
