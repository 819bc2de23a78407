"""The overview over HTTP: its table with columns of the items, its timeline, and what each role sees of them."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import update

from app.campaigns import settings_edits
from app.dashboard.timeline import rule_line_in_words
from app.database import tables
from app.database.alerts import store_alert_unless_known
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import apply_action, create_draft, import_items

pytestmark = pytest.mark.usefixtures("app")


@pytest.fixture
async def campaign(engine):
    """Create a campaign with twelve items, a column `source`, one answer and a goal."""
    campaign = await create_running_campaign(engine, goal="best", best_items=3)
    async with engine.begin() as connection:
        for number in range(12):
            fields = {
                "id": f"v{number}",
                "verb": f"verb {number}",
                "source": ("hotel", "shop")[number % 2],
                "rank": number,
            }
            is_item = (tables.items.c.campaign_id == campaign.id) & (tables.items.c.number == number)
            await connection.execute(update(tables.items).where(is_item).values(fields=fields))
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[0.0, 25.0, 50.0, 75.0, 100.0])
    return campaign


async def page_of(client, campaign, query=""):
    reply = await client.get(f"/admin/campaigns/{campaign.slug}{query}")
    assert reply.status_code == 200
    return reply.text


async def test_own_columns_are_offered_without_those_that_repeat_id_and_text(researcher, campaign):
    menu = (await page_of(researcher, campaign)).partition("Your columns")[2].partition("</fieldset>")[0]
    assert re.findall(r'name="own" value="(\w+)"', menu) == ["source", "rank"]


async def test_columns_about_checks_are_no_columns_of_the_items(researcher, engine):
    campaign = await create_draft(engine)
    table = "id,text,source,check,expected,tolerance\n1,go,web,,,\n2,run,,,,\ng1,gold,,gold,80,5\n"
    await import_items(engine, campaign, table)
    await apply_action(engine, campaign)
    menu = (await page_of(researcher, campaign)).partition("Your columns")[2].partition("</fieldset>")[0]
    assert re.findall(r'name="own" value="(\w+)"', menu) == ["source"]


async def test_chosen_columns_are_in_the_address_and_in_every_link_of_the_table(researcher, campaign):
    page = await page_of(researcher, campaign, "?columns=sd&columns=variance&own=source")
    head = page.partition('aria-label="Items with their scores"')[2].partition("</thead>")[0]
    assert [name in head for name in ("source", "SD", "Variance", "Calibrated")] == [True, True, True, False]
    assert "?sort=name&amp;order=up&amp;columns=sd&amp;columns=variance&amp;own=source#scores" in page
    assert "1 to 12" not in page
    none = await page_of(researcher, campaign, "?columns=none")
    assert "Calibrated" not in none.partition('aria-label="Items with their scores"')[2].partition("</thead>")[0]


async def test_items_are_filtered_by_the_value_of_a_column(researcher, campaign):
    page = await page_of(researcher, campaign, "?by=source&value=shop")
    assert page.count('<th scope="row"><a') == 6
    assert "<option selected>shop</option>" in page
    assert 'class="cut"' not in page
    assert "has “inn” as source" in await page_of(researcher, campaign, "?by=source&value=inn")


async def test_items_without_judgments_have_no_score_and_no_place(researcher, campaign):
    for query in ("?columns=sd&columns=variance", "?columns=sd&order=up"):
        rows = re.findall(r"<tr data-key.*?</tr>", await page_of(researcher, campaign, query), re.DOTALL)
        cells = [re.findall(r'class="figure[^>]*>([^<]*)</td>', row) for row in rows]
        judged, others = cells[:5], cells[5:]
        assert [row[0] for row in judged] == ["1", "2", "3", "4", "5"]
        assert all(all(row) for row in judged)
        assert len(others) == 7
        assert all(row[-1] == "0" and not any(row[:-1]) for row in others)


async def test_terms_of_statistics_explain_plain_column_heads(researcher, campaign):
    page = await page_of(researcher, campaign, "?columns=posterior&columns=sd&columns=variance")
    table = page.partition('id="scores"')[2].partition("<summary>What is this?")[0]
    words = re.sub("<[^>]*>", " ", table)
    assert [term in words for term in ("osterior", "(mode)")] == [False, False]
    for head in ("Score", "Interval of the score", "SD", "Variance"):
        (explanation,) = re.findall(rf'<th[^>]*title="([^"]*)"[^>]*>(?:<a[^>]*>)?{head}<', table)
        assert "posterior" in explanation, head


async def test_pay_per_hour_waits_for_some_tasks(engine, researcher):
    campaign = await create_running_campaign(engine, items=40, pay_per_hit=0.5, currency="GBP", repeat_items=True)
    me = await create_annotator(engine, campaign)
    for task in range(10):
        assert "an hour" not in (await page_of(researcher, campaign)).partition("Money")[2].partition("</div>")[0], task
        when = NOW + timedelta(minutes=task)
        hit = await try_to_lease_hit(engine, me, now=when)
        await submit_scores(engine, me, hit, now=when + timedelta(seconds=30))
    assert "£60.00 an hour at the median time of a task" in await page_of(researcher, campaign)


async def test_simulated_annotators_cost_nothing_even_if_they_are_excluded(engine, researcher):
    campaign = await create_running_campaign(engine, pay_per_hit=0.5, currency="GBP", judgments_per_item=9)
    simulated = await create_annotator(engine, campaign, name="made up", platform="simulation")
    person = await create_annotator(engine, campaign, name="a person")
    for one in (simulated, simulated, person):
        await submit_scores(engine, one, await try_to_lease_hit(engine, one))
    for excluded in (False, True):
        if excluded:
            data = {"reason": "not a person"}
            await researcher.post(f"/admin/campaigns/{campaign.slug}/annotators/A1/exclude", data=data)
        money = (await page_of(researcher, campaign)).partition(">Money<")[2].partition("</article>")[0]
        assert "£0.50" in money.partition("of about")[0], excluded


async def test_a_line_is_drawn_after_the_best(researcher, campaign):
    page = await page_of(researcher, campaign)
    before, _, _ = page.partition('<tr class="cut">')
    assert before.count('<th scope="row"><a') == 3
    assert "cut after 3: 12 items may still cross" in page
    assert 'class="cut"' not in await page_of(researcher, campaign, "?sort=name")


async def test_viewers_see_neither_own_columns_nor_single_answers_nor_the_timeline(app, client, engine, campaign):
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    page = await page_of(client, campaign, "?by=source&value=shop&own=source&item=v1")
    assert page.count('<th scope="row"><a') == 12
    assert [text in page for text in ("Your columns", "hotel", 'class="dots"', 'id="timeline"', "/annotators")] == [
        False
    ] * 5


async def test_the_timeline_tells_edits_decisions_and_the_goal_newest_first(engine, researcher, campaign):
    async with engine.begin() as connection:
        edits = {"judgments_per_item": 5, "checks_percent": 50.0, "consent": "## About\n" + "this study " * 40}
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update=edits)
        )
        await store_alert_unless_known(connection, campaign.id, "goal", "once", about="we know the best 3 items")
    await researcher.post(f"/admin/campaigns/{campaign.slug}/annotators/A1/exclude", data={"reason": "all at once"})
    timeline = (await page_of(researcher, campaign)).partition('id="timeline"')[2].partition("</section>")[0]
    texts = [
        " ".join(re.sub("<[^>]*>", " ", line).split()) for line in re.findall(r"<li>(.*?)</li>", timeline, re.DOTALL)
    ]
    said = " | ".join(texts)
    assert "Judgments per item 3 → 5" in said
    assert "Tasks with a check (%) nothing → 50" in said
    assert "Consent nothing → ## About this study this study this stu…" in said
    assert "The goal is reached: we know the best 3 items." in said
    assert said.index("excluded A1") < said.index("changed settings") < said.index("launched the campaign")
    assert f'href="/admin/campaigns/{campaign.slug}/log"' in timeline


async def test_the_timeline_has_titles_in_place_of_raw_names_and_numbers_of_imported_items(engine, researcher):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\n1,one\n2,two\n")
    await import_items(engine, campaign, "id,text,check,expected\n3,three,gold,80\n4,four,attention,9\n")
    await import_items(engine, campaign, "id,text,check,expected\n5,five,,\n6,six,gold,80\n7,seven,gold,80\n")
    await apply_action(engine, campaign, "launch")
    lines = ["gold.careful_percent: 5", "too_fast: hold", "gone.rule: 1"]
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection,
            campaign.slug,
            lambda before: before.model_copy(update={"quality_rules": lines, "people_from": "prolific"}),
        )
    page = await page_of(researcher, campaign)
    timeline = " ".join(re.sub("<[^>]*>", " ", page.partition('id="timeline"')[2].partition("</section>")[0]).split())
    assert "imported 2 items" in timeline
    assert "imported 1 gold item and 1 attention item" in timeline
    assert "imported 1 item and 2 gold items" in timeline
    assert "A link that I share → Prolific" in timeline
    assert "gold.careful_percent" not in timeline
    assert (
        "nothing → Fails gold items, A careful person may fail (%): 5; Answers too fast: hold; gone.rule: 1" in timeline
    )


def test_a_custom_rule_in_words_names_the_rule_and_its_threshold():
    lines = ["gold.careful_percent: 5", "too_fast: hold", "gone.rule: 1"]
    assert [rule_line_in_words(line) for line in lines] == [
        "Fails gold items, A careful person may fail (%): 5",
        "Answers too fast: hold",
        "gone.rule: 1",
    ]


async def test_an_address_with_impossible_columns_is_refused(researcher, campaign, subtests):
    for query in ("columns=password", "own=" + "x" * 201, "&".join(["own=a"] * 7), "chart=pie"):
        with subtests.test(query=query):
            assert (await researcher.get(f"/admin/campaigns/{campaign.slug}?{query}")).status_code == 422
