"""Gold items that can flag no one: what helps is offered where the rules are chosen, and before the launch."""

import pytest

from app.quality.check_remedies import unfit_check_rules
from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.drafts import apply_action
from tests.quality.test_reach import GOLD, ITEMS, page_of, with_gold
from tests.unsaved import unsaved

THREE_GOLD = ITEMS + GOLD[: GOLD.index("g3")]


def remedies_of(gold=3, **settings):
    [unfit] = unfit_check_rules(unsaved(**{"items_per_hit": 5} | settings), 60, {"gold": gold})
    return unfit, {remedy.name: remedy for remedy in unfit.remedies}


def test_three_gold_items_need_two_more_or_a_rule_that_three_failures_satisfy():
    unfit, remedies = remedies_of(checks_percent=50)
    assert unfit.problem == (
        "“Fails gold items” flags no one: one person can see all 3 gold items; the rule needs 5 failures."
    )
    assert unfit.missing_count == 2
    assert remedies.keys() == {"strict"}
    assert remedies["strict"].title == "Flag people who fail 3 gold items"
    assert remedies["strict"].settings == {"quality_rules": ["gold.careful_percent: 5"], "checks_percent": 50}


def test_adding_gold_items_says_how_many_people_who_guess_are_then_caught_and_how_often_tasks_must_show_one():
    settings = {"checks_percent": 25, "hits_per_annotator": 12, "items_per_hit": 5}
    (unfit,) = unfit_check_rules(unsaved(**settings), 60, {"gold": 3}, {"gold": 1 / 3})
    assert unfit.adding_consequence == (
        "The rule then stays as it is. Someone who guesses is caught in about 1 of 8 cases if 45 % of tasks show one."
    )  # (2 / 3) ** 5
    (unknown,) = unfit_check_rules(unsaved(**settings), 60, {"gold": 3})
    assert unknown.adding_consequence == "The rule then stays as it is."


@pytest.mark.parametrize(
    ("gold", "settings"),
    [
        (1, {}),
        (3, {}),
        (4, {"checks_percent": 50}),
        (6, {}),
        (6, {"checks_percent": 5, "hits_per_annotator": 10}),
        (10, {"hits_per_annotator": 4}),
        (10, {"checks_percent": 5, "hits_per_annotator": 8}),
    ],
)
def test_a_stricter_rule_can_flag_someone_and_showing_checks_is_enough_unless_it_names_a_need(gold, settings):
    remedies = remedies_of(gold, **settings)[1]
    assert remedies
    for name, remedy in remedies.items():
        campaign = unsaved(**{"items_per_hit": 5} | settings | dict(remedy.settings))
        is_enough = name == "strict" or "needs" not in remedy.consequence
        assert (unfit_check_rules(campaign, 60, {"gold": gold}) == []) == is_enough


def test_a_stricter_rule_that_also_needs_a_larger_share_of_tasks_is_offered():
    for share in (None, 5):
        strict = remedies_of(10, checks_percent=share, hits_per_annotator=8)[1]["strict"]
        assert strict.title == "Flag people who fail 4 gold items, shown in 50 % of tasks"
        assert strict.settings == {"quality_rules": ["gold.careful_percent: 10"], "checks_percent": 50}


def test_a_stricter_rule_keeps_the_share_of_tasks_if_it_can_flag_someone_with_it():
    strict = remedies_of(4, checks_percent=30)[1]["strict"]
    assert (strict.title, strict.settings["checks_percent"]) == ("Flag people who fail 4 gold items", 30)


def test_two_checks_are_called_both():
    campaign = unsaved(items_per_hit=5, hits_per_annotator=12)
    [unfit] = unfit_check_rules(campaign, 60, {"gold": 2}, {"gold": 0.4})
    remedies = {remedy.name: remedy for remedy in unfit.remedies}
    assert remedies["show"].title == "Show everyone both checks, at random places"
    assert remedies["show"].consequence == (
        "Then you see who fails them, but the rule still flags no one: everyone sees both gold items; the rule needs 5 "
        "failures."
    )


def test_in_a_visit_of_twelve_tasks_everyone_can_be_shown_all_three_and_the_page_says_whom_that_catches():
    campaign = unsaved(items_per_hit=5, hits_per_annotator=12)
    [unfit] = unfit_check_rules(campaign, 60, {"gold": 3}, {"gold": 0.4})
    remedies = {remedy.name: remedy for remedy in unfit.remedies}
    assert remedies["show"].title == "Show everyone all 3 checks, at random places"
    assert remedies["show"].settings == {"checks_percent": 25}
    assert remedies["show"].consequence == (
        "Then you see who fails them, but the rule still flags no one: everyone sees all 3 gold items; the rule needs "
        "5 failures."
    )
    assert [*remedies] == ["strict", "show"]  # first what ends the warning
    assert remedies["strict"].title == "Flag people who fail 3 gold items, shown to everyone"
    assert remedies["strict"].consequence.endswith("Someone who guesses is caught in about 1 of 5 cases.")  # .6 ** 3


def test_a_single_gold_item_is_named_as_one():
    consequence = remedies_of(1)[1]["show"].consequence
    assert consequence == (
        "Then you see who fails them, but the rule still flags no one: one person can see the only gold item; the rule "
        "needs 5 failures."
    )


def test_gold_pairs_are_counted_as_pairs():
    unfit, _ = remedies_of(6, design="pairwise", items_per_hit=2, checks_percent=50)
    assert unfit.problem.endswith("one person can see all 3 gold sets; the rule needs 5 failures.")


def test_a_rule_stays_as_mild_as_the_number_of_gold_items_allows():
    assert remedies_of(4, checks_percent=50)[1]["strict"].settings["quality_rules"] == ["gold.careful_percent: 10"]
    assert remedies_of(2, checks_percent=50)[1] == {}


def test_a_larger_share_of_tasks_is_offered_if_it_is_enough():
    unfit, remedies = remedies_of(6, checks_percent=5, hits_per_annotator=10)
    assert unfit.missing_count == 0
    assert remedies.keys() == {"show"}
    assert remedies["show"].title == "Show checks in 50 % of tasks"
    assert remedies["show"].consequence == "Then one person sees 5 of 6 gold items."


def test_gold_items_that_no_task_shows_are_offered_to_be_shown():
    unfit, remedies = remedies_of(6)
    assert unfit.problem == "No task shows your 6 gold items, so “Fails gold items” flags no one."
    assert remedies.keys() == {"show"}


def test_custom_rules_stay_and_the_share_of_failures_is_replaced():
    lines = ["too_fast: exclude", "gold.careful_percent: 15"]
    strict = remedies_of(checks_percent=50, quality_rules=lines)[1]["strict"]
    assert strict.settings["quality_rules"] == ["too_fast: exclude", "gold.careful_percent: 5"]
    assert "instead of 15 %" in strict.consequence


@pytest.mark.parametrize("settings", [{"quality_preset": "off"}, {"quality_rules": ["gold: nothing"]}])
def test_a_rule_that_is_off_needs_no_remedy(settings):
    assert unfit_check_rules(unsaved(checks_percent=50, **settings), 60, {"gold": 3}) == []


def test_the_rule_that_pools_signs_is_named_while_it_can_flag_someone():
    assert "Failed gold items also count in “Signs of carelessness”" in remedies_of()[0].pooled_sentence
    assert remedies_of(quality_rules=["signs: nothing"])[0].pooled_sentence == ""


async def test_quality_and_the_launch_offer_presses_that_mend_it(engine, researcher):
    campaign = await with_gold(engine, THREE_GOLD, hits_per_annotator=None, checks_percent=50)
    for part in ("settings/quality", "launch/confirm"):
        page = await page_of(researcher, campaign, part)
        assert "one person can see all 3 gold items; the rule needs 5 failures." in page
        assert "Add 2 more gold items" in page
        assert "Flag people who fail 3 gold items" in page
    address = f"/admin/campaigns/{campaign.slug}"
    reply = await researcher.post(f"{address}/check-remedy", data={"kind": "gold", "remedy": "strict"})
    assert reply.headers["location"] == f"{address}/launch/confirm?done=remedy-strict"
    assert await fetch_rows(engine, "SELECT quality_settings -> 'quality_rules' FROM campaigns") == [
        (["gold.careful_percent: 5"],)
    ]
    page = await page_of(researcher, campaign, "launch/confirm?done=remedy-strict")
    assert "Saved. The rule about these items can now flag someone." in page
    assert "Flag people who fail" not in page
    assert "Add 2 more gold items" not in page


async def test_a_press_in_the_quality_step_saves_the_step_too(engine, researcher):
    campaign = await with_gold(engine, THREE_GOLD, hits_per_annotator=None, checks_percent=None)
    address = f"/admin/campaigns/{campaign.slug}/settings/quality"
    fields = {"quality_preset": "strict", "go": "remedy-gold-strict"}
    reply = await researcher.post(address, data=fields)
    assert reply.headers["location"] == f"{address}?done=remedy-strict"
    [(preset, lines, percent)] = await fetch_rows(
        engine,
        "SELECT quality_settings ->> 'quality_preset', quality_settings -> 'quality_rules', checks_percent "
        "FROM campaigns",
    )
    assert (preset, lines) == ("strict", ["gold.careful_percent: 5"])
    assert percent


async def test_after_the_launch_a_rule_can_still_be_made_stricter_but_no_gold_added(engine, researcher):
    campaign = await with_gold(engine, THREE_GOLD, hits_per_annotator=None, checks_percent=50)
    await apply_action(engine, campaign)
    page = await page_of(researcher, campaign, "settings/quality")
    assert "Flag people who fail 3 gold items" in page
    assert "Add 2 more gold items" not in page


async def test_checks_that_are_shown_but_too_few_are_not_said_to_let_the_rule_flag_someone(engine, researcher):
    campaign = await with_gold(engine, THREE_GOLD, hits_per_annotator=None, checks_percent=None)
    address = f"/admin/campaigns/{campaign.slug}"
    reply = await researcher.post(f"{address}/check-remedy", data={"kind": "gold", "remedy": "show"})
    page = await page_of(researcher, campaign, reply.headers["location"].removeprefix(f"{address}/"))
    assert "Saved. Tasks now show your checks." in page
    assert "can now flag someone" not in page
    assert "one person can see all 3 gold items; the rule needs 5 failures." in page


async def test_a_remedy_that_no_longer_helps_changes_nothing_and_claims_nothing(engine, researcher):
    campaign = await with_gold(engine, THREE_GOLD, hits_per_annotator=None, checks_percent=50)
    address = f"/admin/campaigns/{campaign.slug}"
    for fields in ({"kind": "gold", "remedy": "show"}, {"kind": "bronze", "remedy": "strict"}, {}):
        reply = await researcher.post(f"{address}/check-remedy", data=fields)
        assert reply.headers["location"] == f"{address}/launch/confirm"
    reply = await researcher.post(f"{address}/settings/quality", data={"go": "remedy-gold-show"})
    assert reply.headers["location"] == f"{address}/settings/quality?done=saved"
    assert await fetch_rows(engine, "SELECT quality_settings -> 'quality_rules' FROM campaigns") == [([],)]


async def test_the_launch_names_a_rule_with_remedies_in_one_notice(engine, researcher):
    campaign = await with_gold(engine, THREE_GOLD, hits_per_annotator=None, checks_percent=50)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/launch/confirm")).text
    assert "flags no one: one person can see all 3 gold items" in page
    assert "for annotators cannot flag anyone in this campaign" not in page
