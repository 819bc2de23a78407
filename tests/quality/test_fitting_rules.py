"""Rules that can flag no one with so little work per person, and settings that fit."""

import asyncio

from app.campaigns.rule_fitting import turn_off_or_relax_rules_that_can_flag_no_one
from app.campaigns.settings_edits import store_changed_settings_or_refuse
from app.quality.check_remedies import unfit_check_rules
from app.quality.fitting_rules import UnfitRules, propose_fitting_rules_or_none
from tests.annotation.hits.campaigns import fetch_rows, requests_are_waiting_sql, wait_until
from tests.quality.test_reach import page_of, with_gold
from tests.unsaved import unsaved

RARE = ["too_fast", "ends", "middle", "agreement"]


def test_rules_that_can_flag_no_one_are_turned_off_and_thresholds_and_other_rules_stay():
    campaign = unsaved(
        hits_per_annotator=2,
        items_per_hit=5,
        checks_percent=50,
        quality_rules=["too_fast: exclude", "too_fast.share_percent: 25", "attention: hold"],
    )
    proposal = propose_fitting_rules_or_none(campaign, 60, {})
    assert proposal
    assert proposal.quality_rules[:2] == ["too_fast.share_percent: 25", "attention: hold"]
    assert {f"{name}: nothing" for name in RARE} <= {*proposal.quality_rules}
    assert "signs: nothing" not in proposal.quality_rules
    assert proposal.false_alarms == campaign.false_alarms
    assert "“Signs of carelessness” can: after " in " ".join(proposal.useful_rules)


def test_rules_about_gold_stay_while_the_campaign_has_gold_and_have_a_notice_of_their_own():
    few_tasks = unsaved(hits_per_annotator=4, items_per_hit=5, checks_percent=50)
    unfit = UnfitRules.unfit_rules_or_none(few_tasks, 60, {"gold": 3})
    assert unfit
    assert unfit.proposal
    assert "gold: nothing" not in unfit.proposal.quality_rules
    assert "Fails gold items" not in unfit.titles
    [check_rule] = unfit_check_rules(few_tasks, 60, {"gold": 3})
    assert check_rule.kind == "gold"


def test_with_gold_that_no_one_meets_often_enough_and_all_else_fitting_nothing_is_proposed():
    campaign = unsaved(hits_per_annotator=100, items_per_hit=5, checks_percent=50)
    assert UnfitRules.unfit_rules_or_none(campaign, 600, {"gold": 3}) is None


def test_false_alarms_rise_as_little_as_a_rule_needs_to_flag_anyone():
    campaign = unsaved(hits_per_annotator=2, items_per_hit=5, false_alarms=1)
    proposal = propose_fitting_rules_or_none(campaign, 60, {})
    assert proposal
    assert proposal.false_alarms == 5
    assert proposal.false_alarms_sentence == "False alarms rise from 1 to 5 per 1,000 careful people."


def test_with_one_small_task_no_rule_fits_and_with_much_work_none_is_unfit():
    campaign = unsaved(hits_per_annotator=1, items_per_hit=2)
    unfit = UnfitRules.unfit_rules_or_none(campaign, 60, {})
    assert unfit
    assert unfit.proposal is None
    assert "Signs of carelessness" in unfit.titles
    assert UnfitRules.unfit_rules_or_none(unsaved(hits_per_annotator=None), 60, {}) is None
    assert UnfitRules.unfit_rules_or_none(unsaved(hits_per_annotator=1, quality_preset="off"), 60, {}) is None


async def test_how_much_and_quality_name_such_rules_and_one_press_sets_what_fits(engine, researcher):
    campaign = await with_gold(engine, hits_per_annotator=2)
    for step in ("how-much", "quality"):
        page = await page_of(researcher, campaign, f"settings/{step}")
        assert "5 rules for annotators cannot flag anyone with 2 tasks per person." in page
        assert "Turn off the 5 rules that cannot flag anyone" in page
        assert (
            "“Fails gold items” flags no one: one person sees about 0.3 of 6 gold items; the rule needs 5 failures."
            in page
        )
    assert "cannot flag anyone in this campaign" in await page_of(researcher, campaign, "launch/confirm")

    address = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    fields = {"hits_per_annotator": "3", "judgments_per_item": "4", "go": "fitting-rules"}
    reply = await researcher.post(address, data=fields)
    assert reply.headers["location"] == f"{address}?done=fitting-rules"
    [(hits, lines)] = await fetch_rows(
        engine, "SELECT hits_per_annotator, quality_settings -> 'quality_rules' FROM campaigns"
    )
    assert hits == 3  # what was entered is saved, too
    assert "too_fast: nothing" in lines
    assert "gold: nothing" not in lines
    for part in ("settings/how-much", "settings/quality"):
        page = await page_of(researcher, campaign, part)
        assert "for annotators cannot flag anyone with 3 tasks per person" not in page
        assert "“Fails gold items” flags no one" in page
        assert "Turn off" not in page
        assert "No other rule can flag anyone either" not in page
    assert "Signs of carelessness: After" in await page_of(researcher, campaign, "launch/confirm")


async def test_a_press_on_a_step_that_cannot_be_saved_changes_no_rule(engine, researcher):
    campaign = await with_gold(engine, hits_per_annotator=2)
    address = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    reply = await researcher.post(address, data={"judgments_per_item": "-1", "go": "fitting-rules"})
    assert reply.status_code == 422
    assert await fetch_rows(engine, "SELECT quality_settings -> 'quality_rules' FROM campaigns") == [([],)]


async def test_a_press_keeps_a_rule_that_someone_else_stores_at_the_same_time(engine):
    campaign = await with_gold(engine, hits_per_annotator=2)

    async def press() -> None:
        async with engine.begin() as connection:
            await turn_off_or_relax_rules_that_can_flag_no_one(connection, campaign.slug)

    async with engine.begin() as other:
        custom = {"quality_rules": ["attention: hold"]}
        await store_changed_settings_or_refuse(other, campaign.slug, lambda before: before.model_copy(update=custom))
        pressing = asyncio.create_task(press())
        await wait_until(engine, requests_are_waiting_sql(1))
    await pressing
    [(lines,)] = await fetch_rows(engine, "SELECT quality_settings -> 'quality_rules' FROM campaigns")
    assert lines[0] == "attention: hold"
    assert "too_fast: nothing" in lines
