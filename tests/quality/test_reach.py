"""Whether rules for annotators can find anybody with the work that one person may do."""

import re

import pytest

from app.quality.checks import number_of_checks_per_hit
from app.quality.guesser_reach import share_of_guessers_flagged_by
from app.quality.registry import QUALITY_RULES
from app.quality.rule_reach import (
    hint_on_failed_checks_needed_or_empty,
    propose_checks_percent_or_none,
    reason_one_person_meets_too_few_checks_or_empty,
    rule_reach_in_campaign,
    sentences_on_check_counts_and_failures_needed,
)
from app.quality.settings import parse_all_rule_choices_by_name, parse_quality_preset
from app.quality.workload import (
    AnnotatorWorkload,
    expected_check_count_or_none,
    sentence_on_checks_met_by_one_person_or_empty,
)
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.annotation.hits.systems import outputs_table
from tests.campaigns.drafts import create_draft, import_items
from tests.unsaved import unsaved

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
    "With 6 tasks per person, each person sees about 0.9 gold items; this rule needs 5 failures, so it cannot find "
    "anyone."
)


def test_a_single_check_is_one_item():
    requirement = QUALITY_RULES["gold"]().least_work_requirement("points", 0.002)
    workload = AnnotatorWorkload(4, 5, {"gold": 10}, 25.0)
    reason = reason_one_person_meets_too_few_checks_or_empty(requirement, "gold", workload)
    assert reason.startswith("With 4 tasks per person, each person sees about 1 gold item; this rule needs 5 failures")


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
    assert "6 gold items; with 6 tasks per person an annotator sees about 0.9." in form
    assert "about 1 gold item" not in form


async def test_the_share_of_tasks_with_checks_is_a_maximum_once_a_person_can_meet_all_checks(engine, researcher):
    few_tasks, many_tasks = await with_gold(engine), await with_gold(engine, hits_per_annotator=7)
    assert "15 % of tasks contain one." in await page_of(researcher, few_tasks, "checks")
    page = await page_of(researcher, many_tasks, "checks")
    assert "At most 15 % of tasks contain one, because no one gets the same one twice." in page


async def test_rules_for_other_campaigns_stand_apart(engine, researcher):
    campaign = await with_gold(engine)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    before, others = html.split("rules that do not apply here")
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
    running = await create_running_campaign(engine, quality_preset="off")
    assert "Rules that compare annotators" not in await page_of(researcher, running, "checks")


async def test_a_draft_is_not_said_to_have_too_few_annotators(engine, researcher):
    assert "Rules that compare annotators" not in await page_of(researcher, await with_gold(engine), "checks")


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
    assert expected_check_count_or_none(workload(20, 6, 14), "attention") == pytest.approx(2.1)  # 70 % of 3
    assert expected_check_count_or_none(workload(100, 6, 0), "gold") == pytest.approx(6, abs=0.01)  # not twice
    # At most 1 in two tasks: none in 1/4 of the visits. At most 3 in 12 tasks at 25 %: below 3, as many meet fewer.
    assert expected_check_count_or_none(workload(2, 1, 0, 50.0), "gold") == pytest.approx(0.75)
    assert expected_check_count_or_none(workload(12, 3, 0, 25.0), "gold") == pytest.approx(2.42, abs=0.005)
    assert expected_check_count_or_none(workload(None, 6, 0), "gold") is None
    assert expected_check_count_or_none(AnnotatorWorkload(20, 5, {"gold": 6}, 15.0), "attention") == 0
    assert expected_check_count_or_none(AnnotatorWorkload(20, 5, {}, 15.0), "gold") == 0
    assert sentence_on_checks_met_by_one_person_or_empty(workload(6, 0, 0)) == ""
    assert sentence_on_checks_met_by_one_person_or_empty(workload(20, 6, 2)) == (
        "With 20 tasks per person, one person sees 2.2 gold items and 0.7 attention items on average."
    )


def test_the_list_of_items_says_how_many_checks_there_are_and_how_many_one_person_meets(subtests):
    rule = " The rule “Fails gold items” flags no one before 5 failures."
    for settings, counts, sentences in (
        ({}, {}, f"0 gold items.{rule}"),
        ({}, {"gold": 6}, f"6 gold items; no task shows them until you set “Tasks with a check (%)”.{rule}"),
        ({"checks_percent": 15.0}, {"gold": 6}, f"6 gold items; an annotator sees each at most once.{rule}"),
        (
            {"checks_percent": 15.0, "hits_per_annotator": 6},
            {"gold": 6},
            f"6 gold items; with 6 tasks per person an annotator sees about 0.9.{rule}",
        ),
        (
            {"quality_preset": "off", "checks_percent": 15.0, "hits_per_annotator": 6},
            {"gold": 3, "attention": 1},
            (
                "3 gold items; with 6 tasks per person an annotator sees about 0.7. "
                "1 attention item; with 6 tasks per person an annotator sees about 0.2."
            ),
        ),
    ):
        with subtests.test(settings=settings, counts=counts):
            assert sentences_on_check_counts_and_failures_needed(unsaved(**settings), 60, counts) == sentences


def test_the_proposed_share_of_tasks_promises_no_more_tasks_than_exist_and_lets_a_person_meet_all_checks_if_possible(
    subtests,
):
    enough = "as many as a rule needs to flag someone who fails them all."
    ceiling = "a share above 50 % is not possible."
    for hits, items, gold, percent, reason in (
        (None, 60, 3, 25, "In about 12 tasks, a person then sees about 2.4 of 3 checks."),
        (None, 6000, 3, 10, "In about 30 tasks, a person then sees about 2.4 of 3 checks."),
        (4, 60, 3, 50, f"With 4 tasks per person, a person then sees about 2 of 3 checks; {ceiling}"),
        (20, 600, 8, 40, "With 20 tasks per person, a person then sees all 8 checks."),
        (20, 600, 40, 25, f"With 20 tasks per person, a person then sees about 5 of 40 checks: {enough}"),
    ):  # fmt: skip
        with subtests.test(hits=hits, items=items, gold=gold):
            campaign = unsaved(hits_per_annotator=hits, items_per_hit=5, repeat_items=True)
            assert propose_checks_percent_or_none(campaign, items, {"gold": gold}) == (percent, reason)


def test_a_check_fills_a_task_of_two_items_and_takes_the_place_of_one_of_three():
    sizes = [number_of_checks_per_hit(unsaved(items_per_hit=size)) for size in (2, 3, 5)]
    assert sizes == [2, 1, 1]
    assert number_of_checks_per_hit(unsaved(design="ranking", items_per_hit=4)) == 4


def test_enough_work_for_a_rule_leaves_no_reason_against_it():
    gold, judgments = (QUALITY_RULES[name]() for name in ("gold", "straight_lining"))
    campaign = unsaved(checks_percent=50.0)
    enough = AnnotatorWorkload(40, 5, {"gold": 20, "attention": 0}, 50.0)
    assert rule_reach_in_campaign(gold, campaign, enough, 0.002).never_reason == ""
    unlimited = rule_reach_in_campaign(judgments, campaign, AnnotatorWorkload(None, 5, {}, 0.0), 0.002)
    assert unlimited.never_reason == ""
    needed = judgments.least_work_requirement("points", 0.002).count
    for hits, reason in ((needed, ""), (needed - 1, f"With {needed - 1} tasks per person ({needed - 1} judgments)")):
        reach = rule_reach_in_campaign(judgments, campaign, AnnotatorWorkload(hits, 1, {}, 0.0), 0.002)
        assert (reach.never_reason[: len(reason)], bool(reach.never_reason)) == (reason, bool(reason))
    without_checks = rule_reach_in_campaign(gold, campaign, AnnotatorWorkload(40, 5, {"gold": 20}, 0.0), 0.002)
    assert (without_checks.never_reason, without_checks.needs_more_work) == ("No task shows a gold item.", False)


def test_the_hint_in_the_form_names_the_failures_that_rules_need_and_nothing_if_no_rule_is_about_checks():
    rules = parse_all_rule_choices_by_name("watch", [])
    sentence = "Rules flag a person after 5 failed gold items or 3 failed attention items at the earliest."
    assert hint_on_failed_checks_needed_or_empty(rules, 2.0) == sentence
    assert hint_on_failed_checks_needed_or_empty({}, 2.0) == ""


def test_agreement_on_labels_finds_anyone_who_differs_and_on_scores_who_answers_at_random():
    rule = QUALITY_RULES["agreement"]()
    targets = {
        kind: rule.least_work_requirement(kind, 0.002).target for kind in ("classes", "ordered_classes", "points")
    }
    assert targets == {
        "classes": "anyone",
        "ordered_classes": "even 1 of 10 people who answer at random",
        "points": "even 1 of 10 people who answer at random",
    }


def test_a_rule_that_flags_1_of_10_guessers_is_not_said_to_find_no_one():
    requirement = QUALITY_RULES["agreement"]().least_work_requirement("points", 0.002)
    flagged = share_of_guessers_flagged_by(unsaved(false_alarms=2), 0.5, requirement.count)
    assert flagged == pytest.approx(0.1, abs=0.01)


async def test_the_launch_advises_only_what_the_campaign_can_have(engine, researcher):
    systems = await create_draft(engine, design="rating", items_per_hit=1, repeat_items=False)
    await import_items(engine, systems, outputs_table(segments=4))
    launch = await page_of(researcher, systems, "launch/confirm")
    assert "Showing segments again, more gold items or custom rules would let them flag someone." in launch
    settings = {"design": "baseline", "design_settings": {"baseline": "ape"}, "repeat_items": False}
    without_checks = await create_draft(engine, **settings)
    await import_items(engine, without_checks, outputs_table(segments=4))
    launch = await page_of(researcher, without_checks, "launch/confirm")
    assert "Showing segments again or custom rules would let them flag someone." in launch
    items = await with_gold(engine)
    launch = await page_of(researcher, items, "launch/confirm")
    assert "More tasks per annotator, more gold items or custom rules would let them flag someone." in launch


def test_only_three_presets_exist():
    assert [parse_quality_preset(name) for name in ("watch", "strict", "off")] == ["watch", "strict", "off"]
    with pytest.raises(ValueError, match="“Strict” is not a preset; choose watch, strict, off"):
        parse_quality_preset("Strict")
