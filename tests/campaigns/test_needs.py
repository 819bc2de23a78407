"""“What do you need?”: each card stands for a goal and a selection rule."""

import pytest

from app.campaigns import needs
from app.campaigns.need_cards import NeedForm
from app.campaigns.needs import name_of_need_of_settings
from app.campaigns.settings import CampaignSettings
from app.errors import Invalid
from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows
from tests.campaigns.drafts import VERBS, create_draft, import_items, settings_after_step


def settings(**changes):
    return CampaignSettings(name="Verbs", question="How often?", repeat_items=True, **changes)


def choose(before, need, **numbers):
    entered = {"need": need, "repeat_items": "on"} | {f"need.{need}.{name}": value for name, value in numbers.items()}
    return settings_after_step(before, "how-much", entered)


@pytest.mark.parametrize(
    ("chosen", "need"),
    [
        ({}, "scores"),
        ({"goal": "intervals"}, "scores"),
        ({"goal": "best", "rule": "best"}, "best"),
        ({"goal": "threshold", "rule": "threshold"}, "threshold"),
        ({"goal": "order", "rule": "systems"}, "ranking"),
        ({"design": "pairwise", "rule": "systems"}, "ranking"),
        ({"design": "pairwise", "rule": "pairs"}, "scores"),
        ({"design": "categories"}, "labels"),
        ({"design": "categories", "rule": "information"}, "labels"),
        ({"goal": "best"}, "custom"),
        ({"goal": "best", "rule": "threshold"}, "custom"),
        ({"rule": "best"}, "custom"),
    ],
)
def test_a_goal_and_a_rule_stand_for_a_need(chosen, need):
    assert name_of_need_of_settings(settings(**chosen)) == need


def test_a_card_sets_the_goal_the_rule_and_its_numbers():
    after = choose(settings(), "best", best_items="7", goal_percent="90", goal_within="2")
    assert (after.goal, after.rule, after.best_items, after.goal_percent, after.goal_within) == (
        "best",
        "best",
        7,
        90,
        2,
    )
    back = choose(after, "scores", goal="intervals", goal_width="8")
    assert (back.goal, back.rule, back.goal_width, back.best_items) == ("intervals", "easl", 8, 7)


@pytest.mark.parametrize(
    ("chosen", "rule"),
    [
        ({"design": "pairwise", "judgments_per_item": 8}, "pairs"),
        ({"design": "pairwise", "judgments_per_item": 7}, "easl"),
        ({"design": "pairwise", "judgments_per_item": 8, "selection": "iterations"}, "easl"),
        ({"design": "ranking", "judgments_per_item": 8}, "easl"),
        ({"judgments_per_item": 8}, "easl"),
    ],
)
def test_the_card_of_all_scores_asks_for_informative_pairs_where_pairs_are_compared_often_enough(chosen, rule):
    after = choose(settings(rule="systems", **chosen), "scores", judgments_per_item=chosen["judgments_per_item"])
    assert after.rule == rule


def test_a_card_that_is_chosen_already_changes_neither_goal_nor_rule():
    before = settings(design="categories", rule="entropy")
    assert choose(before, "labels") == before


def test_a_combination_of_ones_own_stays_and_its_numbers_can_be_changed():
    before = settings(goal="best", rule="threshold")
    after = choose(before, "custom", goal="best", best_items="3", threshold="60")
    assert (after.goal, after.rule, after.best_items, after.threshold) == ("best", "threshold", 3, 60)
    assert settings_after_step(before, "how-much", {"repeat_items": "on"}) == before


def test_a_need_without_a_goal_collects_all_judgments():
    after = choose(settings(design="pairwise"), "ranking")
    assert (after.goal, after.rule) == ("none", "systems")


def test_an_unknown_need_is_refused():
    with pytest.raises(Invalid) as refused:
        choose(settings(), "everything")
    assert refused.value.code == "need_unknown"


def test_cards_say_what_they_cannot_do():
    def missing(has_plain_items=False, **chosen):
        cards = NeedForm(settings(**chosen), {}, {}, has_plain_items).build_cards()
        return {card.name for card in cards if card.reason_need_is_impossible_or_empty}

    assert missing() == {"labels"}
    assert missing(has_plain_items=True) == {"labels", "ranking"}
    assert missing(design="categories") == {"scores", "best", "threshold", "ranking"}
    assert needs.NEED_BY_NAME.keys() == {"scores", "best", "threshold", "ranking", "labels"}


async def test_an_error_of_a_number_is_in_its_card(researcher, engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\n1,a\n2,b\n3,c\n")
    page = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    refused = await researcher.post(page, data={"need": "best", "need.best.best_items": "0", "judgments_per_item": "5"})
    assert refused.status_code == 422
    assert 'href="#need.best.best_items">Best items</a>' in refused.text
    assert 'id="need.best.best_items-error"' in refused.text
    assert 'value="best" id="need-best" checked' in refused.text
    assert await fetch_rows(engine, "SELECT goal_settings ->> 'goal', rule FROM campaigns") == [("none", "easl")]


async def test_after_the_launch_the_need_is_shown_with_the_reason_why_it_stays(researcher, engine):
    campaign = await create_running_campaign(engine, goal="best", rule="best", best_items=2)
    address = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    page = (await researcher.get(address)).text
    assert '<p class="value">The best items</p>' in page
    assert "The launch fixed the selection rule “best”" in page
    assert 'name="need"' not in page
    form = {"goal": "best", "goal_percent": "90", "when_reached": "tell", "judgments_per_item": "10"}
    assert (await researcher.post(address, data=form)).status_code == 303
    assert await fetch_rows(engine, "SELECT goal_settings->>'goal_percent', rule FROM campaigns") == [("90", "best")]


CRITERIA = [{"name": name, "question": f"How {name}?"} for name in ("fluent", "adequate")]


def test_the_deciding_criterion_and_the_goal_are_chosen_in_one_step():
    before = settings(criteria=CRITERIA)
    entered = {"need": "best", "need.best.best_items": "5", "asked_by": "fluent"}
    after = settings_after_step(before, "how-much", entered)
    assert (after.goal, after.rule, after.best_items, after.asked_by) == ("best", "best", 5, "fluent")
    without = settings_after_step(after, "how-much", {"need": "best", "asked_by": ""})
    assert (without.goal, without.rule, without.asked_by) == ("none", "best", "")


async def test_the_step_how_much_offers_the_criteria_that_can_decide(engine, researcher):
    campaign = await create_draft(engine, criteria=CRITERIA)
    address = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    page = (await researcher.get(address)).text
    choices = page.partition('id="asked_by"')[2].partition("</select>")[0]
    assert [part in choices for part in ("All criteria together", "fluent", "adequate")] == [True] * 3
    plain = await create_draft(engine, name="Plain")
    assert 'id="asked_by"' not in (await researcher.get(f"/admin/campaigns/{plain.slug}/settings/how-much")).text


@pytest.mark.parametrize(("design", "has_goal"), [("categories", False), ("ranking", False), ("ordinal", True)])
async def test_what_happens_at_the_goal_is_asked_only_where_a_goal_is_possible(engine, researcher, design, has_goal):
    campaign = await create_draft(engine, design=design)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/how-much")).text
    assert ('name="when_reached"' in page) == has_goal
    assert ("does not give any. It ends when every item has the judgments wanted." in page) != has_goal
    saved = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/settings/how-much", data={"judgments_per_item": "4", "go": "stay"}
    )
    assert saved.status_code == 303
    assert await fetch_rows(engine, "SELECT judgments_per_item FROM campaigns") == [(4,)]


async def test_the_deciding_criterion_is_above_the_cards_whose_goals_depend_on_it(engine, researcher):
    campaign = await create_draft(engine, criteria=CRITERIA)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/how-much")).text
    assert page.count('name="asked_by"') == 1
    assert page.index('name="asked_by"') < page.index('id="need-scores"')


def test_cards_have_the_fields_of_their_goals_before_a_deciding_criterion_is_stored():
    cards = {card.name: card for card in NeedForm(settings(criteria=CRITERIA), {}, {}, False).build_cards()}
    best = cards["best"]
    assert best.needs_deciding_criterion
    assert "cannot have a goal" in best.note
    assert [field.name for field in best.fields if best.is_about_goal(field)] == [
        "need.best.goal_percent",
        "need.best.goal_within",
    ]
    assert cards["scores"].needs_deciding_criterion
    assert not any(card.needs_deciding_criterion for card in NeedForm(settings(), {}, {}, False).build_cards())


async def test_the_launch_page_offers_the_rule_that_needs_fewer_judgments(engine, researcher):
    campaign = await create_draft(engine, design="pairwise", items_per_hit=2, judgments_per_item=8)
    await import_items(engine, campaign, VERBS)
    launch = f"/admin/campaigns/{campaign.slug}/launch/confirm"
    page = (await researcher.get(launch)).text
    assert "Use “pairs”</button>" in page
    done = await researcher.post(f"/admin/campaigns/{campaign.slug}/better-rule")
    assert done.headers["location"] == f"{launch}?done=saved"
    lines = await fetch_rows(engine, "SELECT after ->> 'rule' FROM audit_log WHERE action = 'settings.changed'")
    assert lines == [("pairs",)]
    page = (await researcher.get(launch)).text
    assert "the selection rule (pairs)" in page
    assert "Use “pairs”" not in page
