"""Training and qualification: sets before the work, of which nothing counts as an answer."""

import re

import pytest
from pydantic import ValidationError
from sqlalchemy import text

from app.annotation.onboarding import visit_progress
from app.annotation.onboarding.practice_sets import parse_practice_sets
from app.campaigns import form_input
from app.campaigns.settings import CampaignSettings
from app.designs.registry import DESIGNS
from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_rows, fetch_value, form_fields
from tests.annotation.onboarding.visits import hidden_fields, leases_of, open_campaign_link, send_form, step_of

FETCH = {"x-easel": "fetch", "accept": "application/json"}
TABLE = """text,expected,tolerance,explanation
never,10,10,It is *rare*.
always,90,10,
"""
TWO_SETS = TABLE + "seldom,20,10,Also rare.\noften,80,10,\n"


@pytest.fixture
def engine(app):
    return app.state.database


def settings_with(**settings):
    return CampaignSettings.model_validate({"name": "A", "question": "B?", "items_per_hit": 2} | settings)


def answers(html, *scores):
    """Return the fields that the form of a set sends with these scores."""
    assert 'class="answer practice"' in html
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html.partition('class="answer')[2]))
    return fields | {f"score-{item}": str(score) for item, score in enumerate(scores)}


async def answered(client, address, html, *scores):
    """Answer a set and return the next page."""
    return await send_form(client, address, html, **answers(html, *scores))


def test_a_table_makes_sets_as_large_as_a_hit_or_as_it_says():
    settings = settings_with(training=TWO_SETS)
    assert [[item.shown for item in one] for one in parse_practice_sets(TWO_SETS,
    settings.practice_format_of_settings)] == [
        ["never", "always"], ["seldom", "often"],
    ]  # fmt: skip
    tabs = "text\tset\na\t1\nb\t1\nc\t1\nd\t2\ne\t2\n"
    assert [len(one) for one in parse_practice_sets(tabs, settings.practice_format_of_settings)] == [3, 2]


def test_of_several_criteria_each_has_its_own_expectation():
    criteria = [{"name": name, "question": f"How {name}?"} for name in ("fluent", "adequate")]
    table = "text,expected fluent,expected adequate\na,10,\nb,90,50\n"
    settings = settings_with(design="rating", criteria=criteria, training=table)
    (one,) = parse_practice_sets(table, settings.practice_format_of_settings)
    assert [[expected and expected.value for expected in item.expected] for item in one] == [[10, None], [90, 50]]


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_every_way_of_asking_takes_sets_with_what_somebody_expects(design):
    made = design()
    shares = [place / design.default_items for place in range(design.default_items)]
    expected = [made.classes[int(one)] if made.classes else f"{one:g}" for one in made.simulate_answer_values(shares)]
    table = "text\texpected\n" + "".join(f"item {k}\t{one}\n" for k, one in enumerate(expected))
    settings = CampaignSettings(name="A", question="B?", design=design.name, qualification=table)
    (one,) = parse_practice_sets(table, settings.practice_format_of_settings)
    assert all(item.expected[0] for item in one)


def test_a_table_that_cannot_be_asked_is_refused_at_its_field(subtests):
    for settings, words in (
        ({"training": "item,expected\na,1\nb,2\n"}, "lacks the column text"),
        ({"training": "text,gold\na,1\nb,2\n"}, "has gold, too"),
        ({"training": "text,expected\na,101\nb,2\n"}, "Line 2: 101 is not a possible score"),
        ({"training": "text\na\nb\nc\n"}, "Practice task 2 has 1 item;"),
        ({"qualification": "text\na\nb\n"}, "no annotator could fail"),
        ({"training": "text,expected\n"}, "no items below its header"),
    ):
        with subtests.test(settings=settings, words=words):
            with pytest.raises(ValidationError, match=words) as refusal:
                settings_with(**settings)
            assert form_input.error_message_by_setting(refusal.value).keys() == settings.keys()


async def test_training_explains_and_is_repeated_until_it_is_understood(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TWO_SETS)
    page, address = await open_campaign_link(client, campaign)
    assert "Training, task 1 of 2" in page
    page = await answered(client, address, page, 70, 90)
    assert "Not quite – take another look" in page
    assert "Expected: 0 to 20" in page
    assert "Yours: 70" in page
    assert "<em>rare</em>" in page
    page = await send_form(client, address, page, seen="1")
    assert "Training, task 1 of 2" in page
    page = await send_form(client, address, await answered(client, address, page, 10, 90), seen="1")
    assert "Training, task 2 of 2" in page
    page = await answered(client, address, page, 20, 80)
    assert "Correct" in page
    assert await leases_of(engine) == 0
    page = await send_form(client, address, page, seen="1")
    assert form_fields(page)["hit"]


async def test_instructions_can_be_opened_in_training_and_in_the_test_as_in_tasks(client, engine):
    campaign = await create_running_campaign(
        engine, training=TABLE, qualification=TABLE, items_per_hit=2, instructions="Think of *all* texts."
    )
    first_set, address = await open_campaign_link(client, campaign)
    assert '<details class="instructions" open>' in first_set  # which no page before has shown
    feedback = await answered(client, address, first_set, 10, 90)
    assert folded_instructions_of(feedback) == ["Think of <em>all</em> texts."]
    test = await send_form(client, address, feedback, seen="1")
    assert "A short test" in test
    assert folded_instructions_of(test) == ["Think of <em>all</em> texts."]


async def test_people_who_read_the_instructions_on_the_welcome_page_find_them_folded_in_the_training(client, engine):
    campaign = await create_running_campaign(
        engine, training=TABLE, items_per_hit=2, welcome=True, instructions="Think of *all* texts."
    )
    welcome, address = await open_campaign_link(client, campaign)
    first_set = await send_form(client, address, welcome)
    assert folded_instructions_of(first_set) == ["Think of <em>all</em> texts."]


def folded_instructions_of(html):
    return re.findall(
        r'<details class="instructions">\s*<summary>Instructions</summary>\s*<div[^>]*><p>(.*?)</p>', html
    )


async def test_nothing_of_it_is_an_answer(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TABLE, qualification=TABLE)
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, await answered(client, address, page, 10, 90), seen="1")
    page = await answered(client, address, page, 10, 90)
    assert form_fields(page)["hit"]
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 1
    assert await fetch_value(engine, "SELECT max(judgments) FROM posteriors") == 0


async def test_an_old_page_sent_again_counts_once(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TWO_SETS)
    page, address = await open_campaign_link(client, campaign)
    told = [await answered(client, address, page, 10, 90) for _ in range(3)]
    assert all("Correct" in one for one in told)
    following = [await send_form(client, address, told[0], seen="1") for _ in range(2)]
    assert all("Training, task 2 of 2" in one for one in following)
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 2


async def test_what_is_missing_is_said_and_what_was_entered_stays(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TABLE)
    page, address = await open_campaign_link(client, campaign)
    reply = await client.post(address, data=answers(page, 37, ""))
    assert "Not all items have a score yet" in reply.text
    assert 'value="37"' in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 0
    reply = await client.post(address, data=answers(page, 37, ""), headers=FETCH)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "scores_missing")


async def test_scripts_get_the_next_page_in_the_same_reply(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TABLE)
    page, address = await open_campaign_link(client, campaign)
    reply = await client.post(address, data=answers(page, 10, 90), headers=FETCH)
    assert "Correct" in reply.text
    assert "<html" not in reply.text


async def test_an_order_is_expected_and_told_by_what_stands_where(client, engine):
    table = "text,expected\nworse,2\nbetter,1\n"
    campaign = await create_running_campaign(engine, design="pairwise", training=table)
    page, address = await open_campaign_link(client, campaign)
    fields = answers(page) | {"preferred": "0"}
    page = await send_form(client, address, page, **fields)
    assert "Expected, the best first: B, A" in page
    assert "Yours: A, B" in page


async def test_a_label_is_expected(client, engine):
    table = "text,expected,explanation\nriver,yes,Water.\n"
    campaign = await create_running_campaign(engine, design="categories", training=table)
    page, address = await open_campaign_link(client, campaign)
    page = await answered(client, address, page, 1)
    assert "Yours: no" in page
    assert "Expected: yes" in page


async def test_who_is_good_enough_may_work(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, qualification=TWO_SETS, pass_percent=75)
    page, address = await open_campaign_link(client, campaign)
    assert "A short test, task 1 of 2" in page
    page = await answered(client, address, page, 10, 90)
    assert "A short test, task 2 of 2" in page
    assert form_fields(await answered(client, address, page, 20, 0))["hit"]
    assert await fetch_rows(engine, "SELECT outcome FROM visits ORDER BY version") == [("taken",), ("passed",)]


async def test_who_is_not_may_try_again_so_often_and_then_it_ends_kindly(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, qualification=TABLE, qualification_tries=2)
    page, address = await open_campaign_link(client, campaign)
    page = await answered(client, address, page, 10, 0)
    assert "1 of 2 were as expected. You can try again." in page
    page = await send_form(client, address, page, again="1")
    page = await answered(client, address, page, 10, 0)
    assert "Thank you for trying" in page
    assert "Please return the study on Prolific" in page
    assert hidden_fields(page) == {}
    later, _ = await open_campaign_link(client, campaign, SESSION_ID="s2")
    assert "Thank you for trying" in later
    assert await leases_of(engine) == 0
    assert await fetch_rows(engine, "SELECT outcome FROM visits ORDER BY version") == [
        ("failed",), ("taken",), ("failed",),
    ]  # fmt: skip


async def test_a_test_that_is_over_cannot_be_tried_by_an_old_page(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, qualification=TABLE)
    page, address = await open_campaign_link(client, campaign)
    failed = await answered(client, address, page, 10, 0)
    assert "Thank you for trying" in failed
    assert "Thank you for trying" in await answered(client, address, page, 10, 90)
    token = hidden_fields(page.replace('class="answer practice"', 'class="step"'))["token"]
    await client.post(address, data={"token": token, "step": "qualification", "hit": "1", "again": "1"})
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 1


async def test_learning_comes_before_being_tested_and_both_after_consent(client, engine):
    campaign = await create_running_campaign(
        engine, items_per_hit=2, consent="We keep it.", training=TABLE, qualification=TABLE
    )
    page, address = await open_campaign_link(client, campaign)
    seen = [step_of(page)]
    page = await send_form(client, address, page, answer="yes")
    assert "Training" in page
    page = await send_form(client, address, await answered(client, address, page, 10, 90), seen="1")
    assert "A short test" in page
    assert seen == ["consent"]


async def test_who_is_not_good_enough_returns_by_the_code_for_that(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, qualification=TABLE, return_screened_out="N0T")
    page, address = await open_campaign_link(client, campaign)
    page = await answered(client, address, page, 10, 0)
    assert 'href="https://app.prolific.com/submissions/complete?cc=N0T"' in page
    assert "Return to Prolific" in page


FIND_STEPS = (
    visit_progress.SELECT_VISIT.text.replace(":campaign", "{c}")
    .replace(":assignment", "{a}")
    .replace(":arrived_at", "NULL")
)
READ_BY_STEPS = f"EXPLAIN (ANALYZE, FORMAT JSON) {FIND_STEPS}"


def rows_of(plan, table):
    """Return the number of rows of a table that a plan read."""
    own = plan["Actual Rows"] * plan["Actual Loops"] if plan.get("Relation Name") == table else 0
    return own + sum(rows_of(part, table) for part in plan.get("Plans", []))


async def rows_read(engine):
    async with engine.connect() as connection:
        ids = (await connection.execute(text("SELECT campaign_id, id FROM assignments"))).one()
        found = await connection.execute(text(READ_BY_STEPS.format(c=ids[0], a=ids[1])))
        return rows_of(found.scalar_one()[0]["Plan"], "visits")


async def pretend_tries(engine, rounds):
    """Store the tries of an annotator who answered the first set wrong this often, and went on each time."""
    said = """CASE WHEN n % 2 = 0 THEN '{"seen": true}' ELSE '{"set": 0, "try": ' || (n + 1) / 2 || ',
              "values": [[70, 90]], "met": 1, "of": 2}' END"""
    statement = f"""
        INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at)
        SELECT campaign_id, id, 'training', n, 'taken', CAST({said} AS jsonb), now()
        FROM annotators, generate_series(3, :rows) AS n
    """
    async with engine.begin() as connection:
        await connection.execute(text(statement), {"rows": 2 * rounds})


async def test_a_training_set_is_tried_a_hundred_times_and_then_it_ends_kindly(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TWO_SETS)
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, await answered(client, address, page, 70, 90), seen="1")
    await pretend_tries(engine, 99)
    page, _ = await open_campaign_link(client, campaign)
    assert "Training, task 1 of 2" in page
    token = hidden_fields(page.replace('class="answer practice"', 'class="step"'))["token"]
    page = await answered(client, address, page, 70, 90)
    assert "Thank you for trying" in page
    assert "Please return the study on Prolific" in page
    assert hidden_fields(page) == {}
    stale = {"token": token, "step": "training", "hit": "199", "seen": "1"}
    reply = await client.post(address, data=stale, headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "training_over")
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 199
    assert "Thank you for trying" in (await open_campaign_link(client, campaign, SESSION_ID="s2"))[0]
    assert await leases_of(engine) == 0


async def test_the_hundredth_try_may_be_right(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TWO_SETS)
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, await answered(client, address, page, 70, 90), seen="1")
    await pretend_tries(engine, 99)
    page = await answered(client, address, (await open_campaign_link(client, campaign))[0], 10, 90)
    page = await send_form(client, address, page, seen="1")
    assert "Training, task 2 of 2" in page
    page = await send_form(client, address, await answered(client, address, page, 90, 10), seen="1")
    assert "Training, task 2 of 2" in page  # its tries are counted from the first on


async def test_a_round_reads_as_much_whatever_was_tried_before(client, engine):
    campaign = await create_running_campaign(engine, items_per_hit=2, training=TWO_SETS)
    page, address = await open_campaign_link(client, campaign)
    await send_form(client, address, await answered(client, address, page, 70, 90), seen="1")
    read = []
    for rounds in (40, 400, 4000):
        await execute_sql(engine, "DELETE FROM visits WHERE version > 2")
        await pretend_tries(engine, rounds)
        read.append(await rows_read(engine))
    assert read[0] == read[1] == read[2] > 0


async def test_tries_from_before_they_were_counted_go_on(client, engine):
    campaign = await create_running_campaign(
        engine, items_per_hit=2, training=TWO_SETS, qualification=TABLE, qualification_tries=2
    )
    page, address = await open_campaign_link(client, campaign)
    page = await answered(client, address, page, 70, 90)
    await execute_sql(engine, "UPDATE visits SET said = said - 'try'")
    page = await send_form(client, address, page, seen="1")
    page = await send_form(client, address, await answered(client, address, page, 10, 90), seen="1")
    assert "Training, task 2 of 2" in page
    page = await send_form(client, address, await answered(client, address, page, 20, 80), seen="1")
    page = await answered(client, address, page, 10, 0)
    await execute_sql(engine, "UPDATE visits SET said = said - 'try'")
    page = await send_form(client, address, page, again="1")
    assert "Thank you for trying" in await answered(client, address, page, 10, 0)
