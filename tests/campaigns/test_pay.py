"""One pay: an amount per task, from which annotators' words and the pay per hour follow."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.annotation.platforms.registry import PLATFORM_BY_PEOPLE_FROM
from app.campaigns.lifecycle import campaign_of_unsaved_settings
from app.campaigns.pay import HourlyPay, text_of_agreed_pay
from app.campaigns.settings import CampaignSettings
from app.designs.person_work import work_of_one_person
from app.http.languages.catalogue import format_money
from tests.annotation.hits.campaigns import create_running_campaign
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import create_draft, import_items


def hourly(**settings):
    return HourlyPay.from_campaign(
        campaign_of_unsaved_settings(CampaignSettings(name="Verbs", question="How?", **settings))
    )


@pytest.mark.parametrize(
    ("pay", "currency", "minimum", "is_met"),
    [(0.25, "GBP", 6.0, True), (0.1, "GBP", 6.0, False), (0.2, "USD", 8.0, True), (0.19, "USD", 8.0, False)],
)
def test_the_pay_per_hour_is_compared_with_what_a_platform_asks_for(pay, currency, minimum, is_met):
    (found,) = hourly(pay_per_hit=pay, currency=currency, minutes_per_hit=1.5).minimums
    assert (found.platform, found.amount, found.is_met) == ("Prolific", minimum, is_met)


def test_without_minutes_or_in_another_currency_nothing_is_compared():
    assert hourly(pay_per_hit=1) is None
    assert hourly(minutes_per_hit=1) is None
    assert hourly(pay_per_hit=1, currency="SEK", minutes_per_hit=1).minimums == []


def test_the_minutes_of_the_whole_study_count_for_the_pay_per_hour_and_else_what_they_leave_out_is_named():
    tasks = {"pay_per_hit": 0.5, "currency": "GBP", "minutes_per_hit": 3, "hits_per_annotator": 4, "consent": "Agree?"}
    left_out, whole = hourly(**tasks), hourly(**tasks, recruiting_minutes=20)
    assert (left_out.amount, left_out.uncounted_steps) == (10, ["consent"])
    assert (whole.amount, whole.uncounted_steps) == (6, [])


async def test_the_launch_says_which_steps_the_minutes_of_one_person_leave_out(engine, researcher):
    steps = {
        "consent": "Agree?",
        "questions": ["age: How old are you?"],
        "training": "text,expected\nGood,90\nBad,10\n",
    }
    for step_count, names in ((1, "consent"), (2, "consent and questions"), (3, "consent, questions and training")):
        shown = dict(list(steps.items())[:step_count])
        campaign = await create_draft(engine, minutes_per_hit=3, hits_per_annotator=4, **shown)
        await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60)))
        address = f"/admin/campaigns/{campaign.slug}/launch/confirm"
        assert f"The time for {names} is not included." in (await researcher.get(address)).text


async def test_annotators_read_the_amount_or_the_researchers_own_words(engine, client):
    campaign = await create_running_campaign(engine, pay_per_hit=0.25, currency="GBP", minutes_per_hit=1.5)
    page = (await client.get(f"/link/{campaign.link_key}")).text
    assert '<p class="effort">about 1.5 min a task · <span dir="auto">£0.25 per task</span></p>' in page
    german = (await client.get(f"/link/{campaign.link_key}?lang=de")).text
    assert "0,25\xa0£ pro Aufgabe" in german
    other = await create_running_campaign(engine, name="Nouns", pay_per_hit=0.25, pay="1 credit")
    page = (await client.get(f"/link/{other.link_key}")).text
    assert '<span dir="auto">1 credit</span>' in page
    assert "0.25" not in page


@pytest.mark.parametrize(
    ("settings", "effort"),
    [
        (
            {"pay_per_hit": 0.125, "hits_per_annotator": 12, "recruiting_minutes": 10},
            'about 10 minutes · <span dir="auto">$1.50 in all</span>',
        ),
        (
            {"pay_per_hit": 1.5 / 11, "hits_per_annotator": 11, "minutes_per_hit": 10 / 11},
            'about 10 minutes · <span dir="auto">$1.50 in all</span>',
        ),
        ({"pay_per_hit": 0.125, "minutes_per_hit": 2}, 'about 2 min a task · <span dir="auto">$0.125 per task</span>'),
        ({"minutes_per_hit": 2 / 3}, "about 40 s a task"),
        ({"minutes_per_hit": 0.02}, "about 5 s a task"),
        ({"minutes_per_hit": 1, "hits_per_annotator": 1}, "about 1 minute"),
        ({"minutes_per_hit": 4 / 3}, "about 1.3 min a task"),
        (
            {"pay_per_hit": 0.125, "hits_per_annotator": 12, "pay": "1 credit", "minutes_per_hit": 1},
            'about 12 minutes · <span dir="auto">1 credit</span>',
        ),
    ],
)
async def test_annotators_read_totals_if_the_tasks_are_fixed_and_else_plain_parts(engine, client, settings, effort):
    campaign = await create_running_campaign(engine, **settings)
    assert f'<p class="effort">{effort}</p>' in (await client.get(f"/link/{campaign.link_key}")).text


TEN_MINUTES: dict[str, Any] = {"pay_per_hit": 0.15, "hits_per_annotator": 10, "minutes_per_hit": 1}
PARTS = 'about 1 min a task · <span dir="auto">$0.15 per task</span>'


async def test_people_who_may_run_out_of_items_are_promised_no_totals_unless_the_platform_pays_them_anyway(
    engine, client
):
    campaign = await create_running_campaign(engine, items=12, repeat_items=False, **TEN_MINUTES)
    assert f'<p class="effort">{PARTS}</p>' in (await client.get(f"/link/{campaign.link_key}")).text
    assert text_of_agreed_pay(campaign) == "$0.15 a task"
    on_prolific: dict[str, Any] = {"people_from": "prolific", "repeat_items": False, **TEN_MINUTES}
    paid_at_once = await create_running_campaign(engine, name="Nouns", items=12, **on_prolific)
    assert text_of_agreed_pay(paid_at_once) == "$1.50 for 10 tasks"


async def test_one_task_is_always_reached_and_systems_are_judged_once_a_segment(engine):
    one = await create_draft(engine, **TEN_MINUTES | {"hits_per_annotator": 1, "repeat_items": False})
    assert work_of_one_person(one, PLATFORM_BY_PEOPLE_FROM["link"]).tasks == 1
    systems = SimpleNamespace(**TEN_MINUTES, repeat_items=False, segment_count=4, recruiting_minutes=None)
    work = work_of_one_person(systems, PLATFORM_BY_PEOPLE_FROM["link"])
    assert (work.tasks, work.minutes_in_all, work.pay_in_all) == (4, 4, 0.6)
    assert work_of_one_person(systems, PLATFORM_BY_PEOPLE_FROM["mturk"]).tasks is None


def test_an_exact_amount_has_as_many_decimals_as_it_has():
    amounts = [0.125, 1.5, 1.5 / 11, 12 * 0.125, 11 * round(1.55 / 11, 8)]
    assert [format_money(amount, "USD", "en", exact=True) for amount in amounts] == [
        *("$0.125", "$1.50", "$0.14", "$1.50", "$1.55")
    ]
    thirds = [count * 0.33333333 for count in (1, 2, 3)]
    assert [format_money(amount, "USD", "en", exact=True) for amount in thirds] == ["$0.33", "$0.67", "$1.00"]
    assert format_money(0.01 / 3, "USD", "en", exact=True) == "$0.0033"
    assert format_money(0.125, "EUR", "de", exact=True) == "0,125\xa0€"
    assert format_money(50, "JPY", "en", exact=True) == "¥50"


async def test_the_step_and_the_launch_say_what_an_hour_pays(engine, researcher):
    campaign = await create_draft(engine, pay_per_hit=0.1, currency="GBP", minutes_per_hit=1.5)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(6)))
    page = f"/admin/campaigns/{campaign.slug}"
    step = (await researcher.get(f"{page}/settings/visit")).text
    assert "<b>£4.00 an hour</b>" in step
    assert "Below Prolific’s minimum of £6.00 an hour." in step
    launch = (await researcher.get(f"{page}/launch/confirm")).text
    assert "The pay is £4.00 an hour, below Prolific’s minimum of £6.00." in launch


async def test_programs_read_what_a_campaign_will_take_and_pay(engine, api_client):  # noqa: F811  (the fixture)
    campaign = await create_draft(engine, pay_per_hit=0.25, minutes_per_hit=1.5, judgments_per_item=5)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(6)))
    found = (await api_client.get(f"{API}/campaigns/{campaign.slug}")).json()
    work = {"tasks": 6, "check_places": 0, "hours": 0.15, "pay": 1.5, "pay_at_most": 1.5, "pay_per_hour": 10.0}
    people = dict.fromkeys(["people", "people_at_most", "minutes_per_person", "pay_per_person"])
    assert found["totals"] == work | people
