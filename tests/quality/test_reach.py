"""Whether rules for annotators can find anybody with the work that one person may do."""

import re

import pytest

from app.quality.rule_reach import (
    AnnotatorWorkload,
    expected_check_count_or_none,
    sentence_on_checks_met_by_one_person_or_empty,
)
from app.quality.settings import parse_all_rule_choices_by_name
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.campaigns.drafts import create_draft, import_items

ITEMS = "id,text,check,expected\n" + "".join(f"v{k},verb {k},,\n" for k in range(60))
GOLD = "".join(f"g{k},gold {k},gold,80\n" for k in range(6))


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


async def with_gold(engine, content=ITEMS + GOLD, **settings):
    usual = {"checks_percent": 15, "hits_per_annotator": 6, "judgments_per_item": 4}
    campaign = await create_draft(engine, **usual | settings)
    await import_items(engine, campaign, content)
    return campaign


async def page_of(researcher, campaign, part):
    return words((await researcher.get(f"/admin/campaigns/{campaign.slug}/{part}")).text)


GOLD_CANNOT = (
    "With 6 tasks per person, each person sees about 1 gold item; this rule needs 5 failures, so it cannot find anyone."
)


async def test_a_launch_warns_of_a_rule_that_cannot_find_anybody(engine, researcher):
    campaign = await with_gold(engine)
    html = await page_of(researcher, campaign, "launch/confirm")
    assert f"Fails gold items: {GOLD_CANNOT}" in html
    assert "Answers too fast: With 6 tasks per person this rule cannot find anyone: it needs 12 tasks." in html


async def test_checks_and_the_form_say_it_too(engine, researcher):
    campaign = await with_gold(engine)
    assert GOLD_CANNOT in await page_of(researcher, campaign, "checks")
    form = await page_of(researcher, campaign, "settings/quality")
    assert "Rules flag a person after 5 failed gold items or 3 failed attention items at the earliest." in form
    assert GOLD_CANNOT in form


async def test_rules_for_other_campaigns_stand_apart(engine, researcher):
    campaign = await with_gold(engine)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    before, others = html.split("rules for other campaigns")
    assert 'name="too_fast.action"' in before
    assert 'name="played.action"' in others
    assert 'name="at_random.action"' in others


async def test_with_more_work_a_person_each_rule_says_from_when_it_can_speak(engine, researcher):
    campaign = await with_gold(engine, hits_per_annotator=60, checks_percent=50)
    html = await page_of(researcher, campaign, "checks")
    assert "After 5 failed gold items by one person." in html
    assert "After 12 tasks by one person, if 5 others have 5 or more each." in html
    assert "cannot find" not in html
    assert "cannot find" not in await page_of(researcher, campaign, "launch/confirm")


async def test_items_that_nobody_sees_twice_limit_what_one_person_does(engine, researcher):
    campaign = await with_gold(engine, hits_per_annotator=None, repeat_items=False, items_per_hit=10)
    assert "With 6 tasks per person" in await page_of(researcher, campaign, "checks")


async def test_too_few_gold_items_are_too_few_however_many_hits_one_person_does(engine, researcher):
    campaign = await with_gold(engine, ITEMS + GOLD[: GOLD.index("g3")], hits_per_annotator=None, checks_percent=50)
    html = await page_of(researcher, campaign, "checks")
    assert "One person sees at most 3 gold items; this rule needs 5 failures, so it cannot find anyone." in html


async def test_rules_that_are_off_warn_of_nothing(engine, researcher):
    campaign = await with_gold(engine, quality_preset="off")
    assert "cannot find" not in await page_of(researcher, campaign, "launch/confirm")
    assert "Rules flag a person" not in await page_of(researcher, campaign, "settings/quality")


async def test_while_few_have_answered_the_page_says_that_nobody_is_compared_yet(engine, researcher):
    campaign = await create_running_campaign(engine)
    said = "Rules that compare annotators need 6 of them; {} answered so far."
    assert "no one has answered yet" in await page_of(researcher, campaign, "checks")
    for person in range(6):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
        html = await page_of(researcher, campaign, "checks")
        assert (said.format("1 has" if person == 0 else f"{person + 1} have") in html) == (person < 5)


def test_every_rule_says_what_it_needs_and_more_false_alarms_need_less(subtests):
    for yields in ("points", "order", "classes", "ordered_classes", "ratio"):
        with subtests.test(yields=yields):
            for name, chosen in parse_all_rule_choices_by_name("watch", []).items():
                careful, bold = (chosen.rule.least_work_requirement(yields, alarm) for alarm in (0.001, 0.1))
                assert 1 <= bold.count <= careful.count, name


def test_how_many_checks_one_person_meets():
    def workload(hits, gold, attention, percent=15.0):
        return AnnotatorWorkload(hits, 5, {"gold": gold, "attention": attention}, percent)

    assert expected_check_count_or_none(workload(6, 6, 0), "gold") == pytest.approx(0.9)  # 15 % of 6
    assert expected_check_count_or_none(workload(20, 6, 2), "attention") == pytest.approx(0.75)  # a quarter of 3
    assert expected_check_count_or_none(workload(100, 6, 0), "gold") == 6  # not twice
    assert expected_check_count_or_none(workload(None, 6, 0), "gold") is None
    assert sentence_on_checks_met_by_one_person_or_empty(workload(6, 0, 0)) == ""
    assert sentence_on_checks_met_by_one_person_or_empty(workload(20, 6, 2)) == (
        "With 20 tasks per person, one person meets 2.2 gold items and 0.8 attention items on average."
    )
