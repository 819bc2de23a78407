"""Gold and attention items of campaigns that ask about several criteria."""

import re
from typing import Any

import pytest

from app.annotation.hits import gold_feedback, undo
from app.campaigns import settings_edits
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, AnswerByCriterion
from app.errors import Conflict, Invalid
from app.quality import checks
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import criteria_settings, submit_by_criterion
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, create_draft, create_launched_campaign, import_items, replay_is_clean

HEADER = "id,text,check,expected adequacy,tolerance adequacy,expected fluency\n"
ITEMS = HEADER + "".join(f"v{k},verb {k},,,,\n" for k in range(30))
GOLD = "g1,to walk,gold,80,10,20\ng2,to flummox,gold,,,5\na1,Set both to 100,attention,100,5,100\n"
ANSWERS = "SELECT value, other_values, changed_to, other_changed_to FROM check_answers"


async def with_checks(engine, content=ITEMS + GOLD, **settings):
    chosen = {"checks_percent": 50, "items_per_hit": 3, "criteria": criteria_settings(2)} | settings
    return await create_launched_campaign(engine, content, **chosen)


async def answer_until_check(engine, me, said, tries=40):
    """Answer HITs with 42 by each criterion, and a check as said, until there was one; return its HIT."""
    for _ in range(tries):
        hit = await try_to_lease_hit(engine, me)
        values = [said.get(name, (42.0, 42.0)) for name in hit.ids]
        receipt = await submit_by_criterion(engine, me, hit, values_by_name(values))
        if {*hit.ids} & {*said}:
            return hit, receipt
    pytest.fail("no check in forty HITs")


def values_by_name(values):
    return {name: [row[number] for row in values] for number, name in enumerate(("adequacy", "fluency"))}


async def outcomes(engine, campaign):
    async with engine.connect() as connection:
        loaded = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return [(one.kind, one.met) for one in await checks.load_check_outcomes(connection, loaded)]


async def test_an_answer_to_a_check_is_stored_by_each_criterion_and_never_scored(engine):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,80,10,20\n")
    me = await create_annotator(engine, campaign)
    hit, _ = await answer_until_check(engine, me, {"g1": (75.0, 90.0)})
    assert await fetch_rows(engine, ANSWERS) == [(75.0, [90.0], None, None)]
    stored = await fetch_rows(engine, "SELECT items, values FROM responses WHERE hit_id = :hit", hit=hit.id)
    assert stored == [([int(name[1:]) for name in hit.ids if name != "g1"], [42.0] * 4)]
    assert await replay_is_clean(engine, campaign.slug)


@pytest.mark.parametrize(
    ("row", "said", "met"),
    [
        ("g1,to walk,gold,80,10,20\n", (75.0, 30.0), True),
        ("g1,to walk,gold,80,10,20\n", (75.0, 90.0), False),
        ("g1,to walk,gold,80,10,20\n", (10.0, 30.0), False),
        ("g1,to walk,gold,,,20\n", (10.0, 30.0), True),
        ("g1,to walk,gold,80,10,\n", (75.0, 99.0), True),
    ],
)
async def test_a_check_is_met_if_each_criterion_that_expects_an_answer_gets_it(engine, row, said, met):
    campaign = await with_checks(engine, ITEMS + row)
    me = await create_annotator(engine, campaign)
    await answer_until_check(engine, me, {"g1": said})
    assert await outcomes(engine, campaign) == [("gold", met)]


async def test_a_changed_answer_is_kept_apart_and_shown_again(engine):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,80,10,20\n", undo=True)
    me = await create_annotator(engine, campaign)
    hit, receipt = await answer_until_check(engine, me, {"g1": (75.0, 30.0)})
    changed = [(10.0, 11.0) if name == "g1" else (42.0, 42.0) for name in hit.ids]
    answers = {
        name: Answer(dict(zip(hit.items, values, strict=True))) for name, values in values_by_name(changed).items()
    }
    async with borrow_autocommit_driver(engine) as connection:
        await undo.replace_answer_and_return_receipt_or_refuse(
            connection, me, hit.id, receipt.seq, AnswerByCriterion(answers), now=NOW
        )
        again = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
    place = hit.ids.index("g1")
    assert (again.form[f"c0-score-{place:02}"], again.form[f"c1-score-{place:02}"]) == ("10", "11")
    assert await fetch_rows(engine, ANSWERS) == [(75.0, [30.0], 10.0, [11.0])]
    assert await outcomes(engine, campaign) == [("gold", True)]


async def test_in_comparisons_a_hit_of_checks_has_an_order_by_each_criterion(engine):
    header = "id,text,check,expected adequacy,expected fluency\n"
    rows = header + "".join(f"v{k},verb {k},,,\n" for k in range(30))
    content = rows + "g1,to walk,gold,1,2\ng2,to flummox,gold,2,1\n"
    campaign = await with_checks(engine, content, design="pairwise", items_per_hit=2, judgments_per_item=9)
    me = await create_annotator(engine, campaign)
    said = {"g1": (1.0, 2.0), "g2": (2.0, 1.0)}
    for _ in range(40):
        hit = await try_to_lease_hit(engine, me)
        values = [said.get(name, (1.0 + place, 1.0 + place)) for place, name in enumerate(hit.ids)]
        await submit_by_criterion(engine, me, hit, values_by_name(values))
        if {*hit.ids} == {"g1", "g2"}:
            break
    assert await outcomes(engine, campaign) == [("gold", True)]
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_row_that_is_no_check_is_refused_with_the_column(engine, subtests):
    for row, code, words in (
        ("g,x,gold,,,\n", "expected_missing", "one of the columns expected adequacy, expected fluency"),
        ("g,x,gold,,,400\n", "expected_impossible", "fluency: 400 is not a possible score"),
        ("g,x,gold,much,,\n", "expected_unreadable", "adequacy: “much” cannot be an expected answer"),
    ):
        with subtests.test(row=row):
            with pytest.raises(Invalid, match=words) as refused:
                await with_checks(engine, ITEMS + row)
            assert refused.value.code == code


async def test_criteria_that_were_renamed_since_are_told_at_the_launch(engine):
    campaign = await create_draft(engine, criteria=criteria_settings(2), checks_percent=20)
    await import_items(engine, campaign, ITEMS + GOLD)
    renamed = [one | {"name": f"new {one['name']}"} for one in criteria_settings(2)]

    def with_new_names(settings):
        return settings.model_copy(update={"criteria": renamed})

    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(connection, campaign.slug, with_new_names)
    with pytest.raises(Conflict, match="about the criterion “fluency”, but the campaign has the criteria new ade"):
        await apply_action(engine, campaign)


async def test_items_become_checks_by_criterion_on_the_page_and_by_a_program(researcher, api_client, engine):  # noqa: F811
    campaign = await create_draft(engine, criteria=criteria_settings(2))
    await import_items(engine, campaign, "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6)))
    address = f"/admin/campaigns/{campaign.slug}/items"
    asked = await researcher.post(f"{address}/chosen", data={"item": ["v1", "v2"], "action": "gold"})
    assert 'aria-label="Expected answer of v1 by fluency"' in asked.text
    said = {"item": ["v1", "v2"], "action": "gold", "expected adequacy": ["80", ""], "tolerance adequacy": ["5", ""]}
    done = await researcher.post(f"{address}/checks", data=said | {"expected fluency": ["", "30"]})
    assert done.status_code == 303, done.text
    request: dict[str, Any] = {"kind": "gold", "checks": [{"id": "v3", "criteria": {"fluency": {"expected": "10"}}}]}
    reply = await api_client.post(f"/api/v1/campaigns/{campaign.slug}/items/checks", json=request)
    assert reply.status_code == 200, reply.text
    assert await fetch_rows(engine, "SELECT external_id, expected FROM check_items ORDER BY number") == [
        ("v1", {"criteria": {"adequacy": {"value": 80.0, "tolerance": 5.0}}}),
        ("v2", {"criteria": {"fluency": {"value": 30.0}}}),
        ("v3", {"criteria": {"fluency": {"value": 10.0}}}),
    ]
    request["checks"][0]["criteria"]["fluency"]["expected"] = "12"
    reply = await api_client.post(f"/api/v1/campaigns/{campaign.slug}/items/checks", json=request)
    assert reply.status_code == 200, reply.text
    assert await fetch_rows(engine, "SELECT external_id, expected FROM check_items ORDER BY number DESC") == [
        ("v3", {"criteria": {"fluency": {"value": 12.0}}}),
        ("v2", {"criteria": {"fluency": {"value": 30.0}}}),
        ("v1", {"criteria": {"adequacy": {"value": 80.0, "tolerance": 5.0}}}),
    ]
    by_criterion = {"fluency": {"expected": "10"}}
    strays: list[dict[str, object]] = [
        {"expected": "20", "criteria": by_criterion},
        {"tolerance": "3", "criteria": by_criterion},
        {"criteria": by_criterion | {"grace": {"expected": "1"}}},
    ]
    for stray in strays:
        check = {"id": "v4", **stray}
        address_of_api = f"/api/v1/campaigns/{campaign.slug}/items/checks"
        refused = await api_client.post(address_of_api, json={"kind": "gold", "checks": [check]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "expected_misplaced")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    assert "adequacy: 75 to 85" in page
    await researcher.post(f"{address}/unmark", data={"item": "v1"})
    assert await fetch_value(engine, "SELECT fields FROM items WHERE external_id = 'v1'") == {
        "id": "v1",
        "text": "verb 1",
    }


async def test_a_table_with_an_expected_answer_that_no_criterion_reads_is_refused(engine):
    campaign = await create_draft(engine, criteria=criteria_settings(2))
    table = "id,text,check,expected,expected fluency\nv1,one,,,\ng1,gold one,gold,50,40\n"
    with pytest.raises(Invalid, match="does not use “expected”") as refusal:
        await import_items(engine, campaign, table)
    assert refusal.value.code == "expected_misplaced"


async def test_a_campaign_file_keeps_expected_answers_by_criterion(api_client, engine):  # noqa: F811
    campaign = await create_draft(engine, criteria=criteria_settings(2))
    await import_items(engine, campaign, ITEMS + GOLD)
    sent = await api_client.get(f"/api/v1/campaigns/{campaign.slug}/file?items=true")
    reply = await api_client.post("/api/v1/campaigns/files", files={"file": ("copy.yaml", sent.content)})
    assert reply.status_code == 201, reply.text
    expected = await fetch_rows(engine, "SELECT campaign_id, expected FROM check_items ORDER BY 1, number")
    assert [one for _, one in expected[:3]] == [one for _, one in expected[3:]]


async def test_after_a_gold_item_annotators_read_what_was_expected_by_each_criterion(engine, client):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,80,10,20\n", gold_feedback=True)
    page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
    for _ in range(40):
        ((token, hit),) = re.findall(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', page, re.DOTALL)
        fields = dict.fromkeys(re.findall(r'name="(c\d-score-\d+)"', page), "42") | {"token": token, "hit": hit}
        page = (await client.post(f"/link/{campaign.link_key}", data=fields)).text
        if "From your last task" in page:
            break
    told = page.partition('<section class="notice told"')[2].partition("</section>")[0]
    words = " ".join(re.sub(r"<[^>]*>", " ", told).split())
    assert "adequacy : Yours: 42 Expected: 70 to 90" in words
    assert "fluency : Yours: 42 Expected: 5 to 35" in words


async def test_the_page_of_checks_counts_the_given_answers_by_each_criterion(researcher, engine):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,80,10,20\n")
    me = await create_annotator(engine, campaign)
    await answer_until_check(engine, me, {"g1": (75.0, 90.0)})
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    row = page.partition("<tr><td>g1</td>")[2].partition("</tr>")[0]
    assert row.count("<svg") == 2
    assert re.findall(r'<span class="aside">(\w+)</span>', row) == ["adequacy", "fluency"]
    shown = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text
    assert "adequacy: 75; fluency: 90" in shown


async def test_feedback_is_on_the_criteria_that_expect_an_answer(engine):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,,,20\n", gold_feedback=True)
    me = await create_annotator(engine, campaign)
    hit, _ = await answer_until_check(engine, me, {"g1": (10.0, 90.0)})
    assignment = (await find_or_lease_next_hit(engine, me)).assignment
    async with borrow_autocommit_driver(engine) as connection:
        found = await gold_feedback.load_gold_feedback_or_none(connection, assignment, hit.id)
    assert found is not None
    assert [criterion.name for criterion in found.by_criterion] == ["fluency"]
    assert not found.is_as_expected


async def test_no_feedback_is_on_a_criterion_by_which_gold_items_may_have_any_order(engine):
    rows = "id,text,check,expected adequacy,expected fluency\n" + "".join(f"v{k},verb {k},,,\n" for k in range(30))
    campaign = await with_checks(
        engine,
        rows + "g1,to walk,gold,1,1\ng2,to flummox,gold,2,1\n",
        design="pairwise",
        items_per_hit=2,
        judgments_per_item=9,
        gold_feedback=True,
    )
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while {*hit.ids} != {"g1", "g2"}:
        await submit_by_criterion(engine, me, hit, values_by_name([(1.0, 1.0), (2.0, 2.0)]))
        hit = await try_to_lease_hit(engine, me)
    values = {"g1": (2.0, 2.0), "g2": (1.0, 1.0)}
    await submit_by_criterion(engine, me, hit, values_by_name([values[name] for name in hit.ids]))
    assignment = (await find_or_lease_next_hit(engine, me)).assignment
    async with borrow_autocommit_driver(engine) as connection:
        found = await gold_feedback.load_gold_feedback_or_none(connection, assignment, hit.id)
    assert found is not None
    assert [(criterion.name, len(criterion.answered_order)) for criterion in found.by_criterion] == [("adequacy", 2)]
    assert not found.is_as_expected
