"""The quality inbox: annotators by rules, decisions about several at once, and rules as sentences."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from app.database.session import borrow_driver_in_transaction
from app.errors import Invalid, NotFound
from app.quality.bulk_decisions import apply_bulk_decision_and_return_outcome
from app.quality.inbox import (
    AnnotatorWork,
    WorkLimit,
    build_inbox_cell,
    count_others_with_enough_work,
    load_page_of_quality_inbox,
)
from app.quality.registry import QUALITY_RULES
from app.quality.rule import RuleAssessment, RuleRequirement
from app.quality.rule_sentences import custom_rule_lines_of_form_or_refuse, parts_of_rule_sentence
from app.quality.settings import parse_all_rule_choices_by_name
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    fetch_rows,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.test_checks import ITEMS
from tests.campaigns.drafts import create_draft, create_launched_campaign
from tests.quality.deciding import answer_hits, decide
from tests.quality.test_reach import words

ONE_GOLD = "g1,to walk,gold,90,10\n"
STATES = "SELECT barred FROM annotators WHERE campaign_id = :id ORDER BY id"


async def press(researcher, campaign, action, *names, **fields):
    """Press a button of the matrix after choosing these annotators."""
    address = f"/admin/campaigns/{campaign.slug}/checks"
    csrf = re.findall(r'name="csrf" value="([^"]+)"', (await researcher.get(address)).text)[0]
    form = {"csrf": csrf, "action": action} | {f"annotator-{name}": "active" for name in names} | fields
    return await researcher.post(f"{address}/decisions", data=form)


async def states_of(engine, campaign):
    return [row[0] for row in await fetch_rows(engine, STATES, id=campaign.id)]


async def test_several_are_held_and_the_undo_bar_brings_them_back(engine, researcher):
    campaign, _, _ = await answer_hits(engine)
    reply = await press(researcher, campaign, "hold", "A1", "A3", reason="too fast")
    assert await states_of(engine, campaign) == ["held", None, "held"]
    page = (await researcher.get(reply.headers["location"])).text
    assert "Your decision about 2 annotators is stored: A1, A3." in words(page)
    before = dict(re.findall(r'type="hidden" name="(annotator-A\d)" value="(\w+)"', page))
    await press(researcher, campaign, "undo", reason="Undone", **before)
    assert await states_of(engine, campaign) == [None, None, None]
    log = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text)
    assert "“too fast”" in log
    assert "“Undone”" in log


async def test_undoing_an_exclusion_leads_back_to_held(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=1)
    await press(researcher, campaign, "hold:A1", reason="too fast")
    reply = await press(researcher, campaign, "exclude:A1", reason="too fast")
    assert reply.headers["location"].endswith("?before=A1.held")
    await press(researcher, campaign, "undo", reason="Undone", **{"annotator-A1": "held"})
    assert await states_of(engine, campaign) == ["held"]


async def test_a_decision_that_does_not_apply_changes_nothing(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=2)
    reply = await press(researcher, campaign, "release", "A1", reason="too fast")
    assert reply.headers["location"].endswith("?done=no-decision")
    for refused, status in (
        (await press(researcher, campaign, "hold", reason="too fast"), 422),
        (await press(researcher, campaign, "hold", "A1", "A9", reason="too fast"), 404),
        (await press(researcher, campaign, "delete", "A1", reason="too fast"), 422),
    ):
        assert refused.status_code == status
    assert await states_of(engine, campaign) == [None, None]


@pytest.mark.parametrize("action", ["hold", "exclude"])
async def test_an_annotator_who_is_erased_meanwhile_is_left_and_the_others_are_decided(engine, action):
    campaign, _, _ = await answer_hits(engine, people=2)
    async with borrow_driver_in_transaction(engine) as erasing:
        await erasing.execute("SELECT FROM annotators WHERE id = (SELECT min(id) FROM annotators) FOR UPDATE")
        deciding = asyncio.create_task(
            apply_bulk_decision_and_return_outcome(
                engine, campaign.slug, ["A1", "A2"], action, reason="too fast", now=NOW
            )
        )
        await wait_until(engine, requests_are_waiting_sql(1))
        await erasing.execute("UPDATE annotators SET barred = 'erased' WHERE id = (SELECT min(id) FROM annotators)")
    outcome = await deciding
    assert (dict(outcome.states_before), list(outcome.unchanged)) == ({"A2": "active"}, ["A1"])
    assert await states_of(engine, campaign) == ["erased", "held" if action == "hold" else "excluded"]


async def test_what_an_address_says_besides_states_of_annotators_is_ignored(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=2)
    for before, said in (
        ("A1.held,A2.active", "Your decision about 2 annotators is stored: A1, A2."),
        ("A1.held,<b>.held,A2.gone,A2", "Your decision about 1 annotator is stored: A1."),
    ):
        page = await researcher.get(f"/admin/campaigns/{campaign.slug}/checks", params={"before": before})
        assert said in words(page.text)


async def test_annotators_without_an_answer_are_only_counted(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=1)
    await create_annotator(engine, campaign, "left")
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text)
    assert "1 left before answering." in page
    assert "A2" not in page


GOLD = RuleRequirement(5, "failed gold item")
FAST = RuleRequirement(12, "task", 5, other_annotators=5)
NOTHING, UNKNOWN = RuleAssessment("fine", "All met.", figure=".9 (.8 to 1)"), RuleAssessment("unknown", "Few.")
FLAGGED = RuleAssessment("flagged", "Failed 6.")


@pytest.mark.parametrize(
    ("requirement", "finding", "assessment", "amounts", "expected"),
    [
        (GOLD, "Failed 5.", NOTHING, {"gold_items": 5}, ("flagged", "Failed 5.", ".9 (.8 to 1)")),
        (GOLD, "", UNKNOWN, {"gold_items": 1}, ("unknown", "Few. Needs 5 gold items; so far 1.", "")),
        (GOLD, "", NOTHING, {"gold_items": 1}, ("fine", "All met.", ".9 (.8 to 1)")),
        (GOLD, "", FLAGGED, {"gold_items": 6}, ("flagged", "Failed 6.", "")),
        (FAST, "", UNKNOWN, {"hits": 12}, ("unknown", "Few. Needs 5 others with 5 tasks each; so far 4.", "")),
    ],
)
def test_a_cell_says_what_a_rule_knows(requirement, finding, assessment, amounts, expected):
    cell = build_inbox_cell(requirement, finding, assessment, work=AnnotatorWork(**amounts), other_annotators=4)
    assert cell == expected


def test_a_cell_of_a_rule_that_has_enough_to_read_says_only_what_it_read():
    work = AnnotatorWork(hits=12)
    assert build_inbox_cell(FAST, "", UNKNOWN, work=work, other_annotators=5) == ("unknown", "Few.", "")


PASSED = RuleAssessment("unknown", "Failed 0.", final_state="fine", final_remark="A guesser seldom does.")


@pytest.mark.parametrize(
    ("assessment", "finding", "is_final", "expected"),
    [
        (PASSED, "", False, ("unknown", "Failed 0. Needs 5 gold items; so far 3.", "")),
        (PASSED, "", True, ("fine", "Failed 0. A guesser seldom does.", "")),
        (PASSED._replace(final_state=None), "", True, ("unknown", "Failed 0. A guesser seldom does.", "")),
        (PASSED, "Failed 5.", True, ("flagged", "Failed 5.", "")),
        (NOTHING, "", True, ("fine", "All met.", ".9 (.8 to 1)")),
    ],
)
def test_a_cell_says_what_a_rule_concludes_once_an_annotator_gets_no_more_checks(
    assessment, finding, is_final, expected
):
    work = AnnotatorWork(gold_items=3)
    assert build_inbox_cell(GOLD, finding, assessment, work=work, other_annotators=4, is_final=is_final) == expected


@pytest.mark.parametrize(
    ("is_over", "work", "is_reached"),
    [
        (False, AnnotatorWork(hits=5, gold_items=2), False),
        (False, AnnotatorWork(hits=5, gold_items=3), True),  # all gold items
        (False, AnnotatorWork(hits=12, gold_items=2), True),  # all tasks
        (True, AnnotatorWork(hits=5, gold_items=2), True),  # the campaign is over
    ],
)
def test_no_more_checks_come_after_all_checks_all_tasks_or_the_campaign(is_over, work, is_reached):
    limit = WorkLimit({"failed gold item": 3}, 12, is_over)
    assert limit.is_reached(work, "failed gold item") == is_reached
    assert not limit.is_reached(work, "judgment")


async def test_the_gold_column_shows_counts_and_a_column_of_checks_that_no_task_shows_is_left_out(engine, researcher):
    campaign = await create_launched_campaign(
        engine, ITEMS + ONE_GOLD, checks_percent=50, items_per_hit=5, hits_per_annotator=4
    )
    for name, score in (("passes", 90.0), ("fails", 5.0)):
        me = await create_annotator(engine, campaign, name)
        for _ in range(4):
            hit = await try_to_lease_hit(engine, me)
            await submit_scores(engine, me, hit, scores=[score] * len(hit.items))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    table = page.partition('class="matrix"')[2].partition("</table>")[0]
    assert "Fails gold items" in table
    assert "Fails attention items" not in table
    assert "cannot tell: 0 of 1 failedFailed 0 of 1 gold item. Someone who guesses does as well" in words(table)
    assert "cannot tell: 1 of 1 failedFailed 1 of 1 gold item." in words(table)


def test_others_with_just_enough_work_can_be_compared_with_and_an_annotator_is_no_other():
    def count(own, *hits):
        amounts: list[Any] = [SimpleNamespace(hits=number, judgments=5 * number) for number in hits]
        return count_others_with_enough_work(FAST, AnnotatorWork(hits=own), amounts)

    assert count(5, 9, 5, 5, 4) == 2
    assert count(4, 9, 5, 5, 4) == 3
    assert count(5, 9, 8, 7, 6, 5, 5) == 5


async def test_the_inbox_has_a_column_for_each_rule_that_suits_the_campaign(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=1)
    async with engine.connect() as connection:
        titles = (await load_page_of_quality_inbox(connection, campaign, item_count=30, assessments={})).rule_titles
    assert {*QUALITY_RULES} - {*titles} == {"played", "contradictions", "at_random", "gold", "attention"}


async def test_a_cell_without_an_assessment_says_why_also_if_the_work_suffices(engine):
    campaign, _, (excluded, *_) = await answer_hits(engine, people=7, hits=8, items=60)
    await decide(engine, campaign, "exclude", excluded)
    async with engine.connect() as connection:
        inbox = await load_page_of_quality_inbox(connection, campaign, item_count=60, assessments={})
    evidence = {row.name: row.cells["ends"].evidence for row in inbox.rows}
    assert evidence.pop("A1") == "Answers of excluded annotators are not compared."
    assert {*evidence.values()} == {"No answers that count have been compared yet."}


async def test_more_than_two_hundred_annotators_are_too_many_for_one_decision(engine):
    campaign, _, _ = await answer_hits(engine, people=1, hits=0)
    for names, code in (([], "nobody_chosen"), ([f"A{number}" for number in range(1, 202)], "too_many_annotators")):
        with pytest.raises(Invalid) as refusal:
            await apply_bulk_decision_and_return_outcome(engine, campaign.slug, names, "hold", reason="fast", now=NOW)
        assert refusal.value.code == code
    with pytest.raises(NotFound):  # as many as two hundred are looked up
        await apply_bulk_decision_and_return_outcome(
            engine, campaign.slug, [f"A{number}" for number in range(1, 201)], "hold", reason="fast", now=NOW
        )


def test_a_form_of_sentences_stands_for_what_differs_from_the_preset():
    assert custom_rule_lines_of_form_or_refuse("watch", {}) == []
    fields = {"gold.action": "exclude", "gold.careful_percent": "20", "ends.action": "warn", "ends.least_percent": "75"}
    lines = custom_rule_lines_of_form_or_refuse("watch", fields)
    assert lines == ["gold: exclude", "ends.least_percent: 75"]
    assert parse_all_rule_choices_by_name("watch", lines)["gold"].action == "exclude"
    for wrong in ({"gold.action": "fine"}, {"gold.careful_percent": "200"}, {"gold.careful_percent": ""}):
        with pytest.raises(Invalid, match="Nothing was changed"):
            custom_rule_lines_of_form_or_refuse("watch", wrong)


def test_every_sentence_has_a_field_for_every_threshold():
    for rule in QUALITY_RULES.values():
        parts = parts_of_rule_sentence(rule())
        assert {part.threshold for part in parts} - {""} == {*rule.model_fields}
    gold = parts_of_rule_sentence(QUALITY_RULES["gold"]())
    assert [(part.text, part.value) for part in gold] == [
        ("an annotator fails more than ", "20"),
        (" % of gold items", ""),
    ]


async def test_rules_are_saved_as_custom_rules(engine, researcher):
    campaign = await create_draft(engine)
    address = f"/admin/campaigns/{campaign.slug}/checks"
    page = (await researcher.get(address)).text
    csrf = re.findall(r'name="csrf" value="([^"]+)"', page)[0]
    form = {"csrf": csrf, "gold.action": "hold", "gold.careful_percent": "30"}
    assert (await researcher.post(f"{address}/rules", data=form)).status_code == 303
    (row,) = await fetch_rows(engine, "SELECT * FROM campaigns WHERE id = :id", id=campaign.id)
    assert "gold.careful_percent: 30" in str(row)
    assert 'name="gold.careful_percent" value="30"' in (await researcher.get(address)).text
    refused = await researcher.post(f"{address}/rules", data=form | {"gold.careful_percent": "0"})
    assert refused.status_code == 422
