"""How a visit ends: each outcome has its own words, and its own code or address."""

from typing import Any

import pytest
from sqlalchemy import text

from app.campaigns.settings import CampaignSettings
from tests.annotation.hits.campaigns import create_running_campaign, form_fields

WAYS: dict[str, Any] = {
    "prolific_completion_code": "D0NE",
    "return_completed": "C0MPLETED",
    "return_failed_checks": "FAILED",
    "return_nothing_left": "N0THING",
}
PROLIFIC = "PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x"


@pytest.fixture
def engine(app):
    return app.state.database


async def by_link(client, campaign):
    return (await client.post(f"/link/{campaign.link_key}")).headers["location"]


async def change(engine, assignments):
    async with engine.begin() as connection:
        await connection.execute(text(f"UPDATE {assignments}"))


async def test_who_has_done_all_sees_what_was_done_and_earned_and_the_code(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, pay_per_hit=1.25, currency="EUR", **WAYS)
    address = await by_link(client, campaign)
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert "You answered 1 task." in end
    assert "You have earned €1.25." in end
    assert '<code class="code" dir="ltr">C0MPLETED</code>' in end


async def test_an_address_is_gone_to_instead(client, engine):
    campaign = await create_running_campaign(
        engine, hits_per_annotator=1, return_completed="https://panel.example/done?id=7"
    )
    address = await by_link(client, campaign)
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert 'href="https://panel.example/done?id=7"' in end
    assert "Your code" not in end


async def test_on_prolific_the_code_is_a_link_and_a_text(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, **WAYS)
    address = f"/prolific/{campaign.link_key}?{PROLIFIC}"
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert "https://app.prolific.com/submissions/complete?cc=D0NE" in end
    assert ">D0NE</code>" in end


@pytest.mark.parametrize(("way", "shown"), [("FAILED", True), (None, False)])
async def test_who_is_held_back_gets_the_code_for_that_or_none(client, engine, way, shown):
    campaign = await create_running_campaign(engine, **WAYS | {"return_failed_checks": way})
    address = f"/prolific/{campaign.link_key}?{PROLIFIC}"
    await client.post(address, data=form_fields((await client.get(address)).text))
    await change(engine, "hits SET closed_at = now() WHERE closed_at IS NULL")
    await change(engine, "annotators SET barred = 'held'")
    end = (await client.get(address)).text
    assert ("complete?cc=FAILED" in end) is shown
    assert ("Please return the study on Prolific" in end) is not shown
    assert "D0NE" not in end


async def test_who_comes_when_nothing_is_left_gets_the_code_for_that(client, engine):
    campaign = await create_running_campaign(engine, **WAYS)
    await change(engine, "campaigns SET status = 'finished'")
    end = (await client.get(f"/prolific/{campaign.link_key}?{PROLIFIC}")).text
    assert "complete?cc=N0THING" in end
    assert "D0NE" not in end


async def test_where_people_may_leave_early_they_finish_after_any_set(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=5, leave_early=True, **WAYS)
    address = await by_link(client, campaign)
    arrived = (await client.get(address)).text
    assert "Finish here" not in arrived
    answered = (await client.post(address, data=form_fields(arrived))).text
    assert "Finish here" in answered
    end = (await client.post(address, data={"token": form_fields(answered)["token"], "finish": "1"})).text
    assert "C0MPLETED" in end
    assert 'name="hit"' in (await client.get(address)).text  # they may change their mind


async def test_the_work_says_in_short_what_it_is_and_how_far_it_is(client, engine):
    campaign = await create_running_campaign(
        engine, hits_per_annotator=4, minutes_per_hit=1.5, pay_per_hit=0.35, in_short="Judge the verb, not its sound."
    )
    address = await by_link(client, campaign)
    page = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert '<p class="in-short" dir="auto">Judge the verb, not its sound.</p>' in page
    assert "1 of 4 tasks done · about 5 min left · <b>$0.35 earned</b>" in page


async def test_where_a_platform_pays_each_person_no_part_of_the_reward_is_earned(client, engine):
    campaign = await create_running_campaign(
        engine, hits_per_annotator=2, minutes_per_hit=1.5, pay_per_hit=0.125, **WAYS
    )
    address = f"/prolific/{campaign.link_key}?{PROLIFIC}"
    page = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert "1 of 2 tasks done · about 2 min left" in page
    assert "earned" not in page
    end = (await client.post(address, data=form_fields(page))).text
    assert "You have earned $0.25." in end


@pytest.mark.parametrize("way", ["link", "prolific"])
async def test_pay_in_own_words_stands_for_all_amounts(client, engine, way):
    campaign = await create_running_campaign(engine, hits_per_annotator=2, pay_per_hit=0.125, pay="1 credit")
    address = await by_link(client, campaign) if way == "link" else f"/prolific/{campaign.link_key}?{PROLIFIC}"
    page = (await client.get(address)).text
    assert '<span dir="auto">1 credit</span>' in page
    for _ in range(2):
        page = (await client.post(address, data=form_fields(page))).text
        assert "$" not in page
        assert "earned" not in page


async def test_what_is_earned_has_all_its_decimals(client, engine):
    campaign = await create_running_campaign(engine, pay_per_hit=0.125)
    address = await by_link(client, campaign)
    page = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert "<b>$0.125 earned</b>" in page


async def test_the_code_of_the_platform_is_named_for_it_and_comes_before_the_code_to_keep(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, **WAYS)
    address = f"/prolific/{campaign.link_key}?{PROLIFIC}"
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    named = 'Completion code for Prolific, in case you are asked for it: <code class="code" dir="ltr">D0NE</code>'
    assert end.index(named) < end.index("Return to Prolific") < end.index("Keep this code.")


async def test_the_last_page_says_whom_to_write_to_with_the_code(client, engine):
    contact = "study@example.org"
    campaign = await create_running_campaign(engine, hits_per_annotator=1, study_contact=contact)
    address = f"/prolific/{campaign.link_key}?{PROLIFIC}"
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert end.index("Keep this code.") < end.index(f"Write to {contact} for that, or with questions.")


@pytest.mark.parametrize(
    ("way", "is_said"),
    [("link/{}", True), (f"prolific/{{}}?{PROLIFIC}", True), ("mturk/{}?assignmentId=a&hitId=h&workerId=w", False)],
)
async def test_the_first_page_says_that_people_may_close_it_and_come_back(client, engine, way, is_said):
    campaign = await create_running_campaign(engine, welcome=True)
    page = (await client.get(f"/{way.format(campaign.link_key)}")).text
    assert "Start</button>" in page
    assert ("You can close the page at any time and go on later with the same link." in page) == is_said


def test_a_way_back_is_a_code_or_a_safe_address(subtests):
    for way in ("two words", "http://plain.example", "https://a b", "javascript:alert(1)", "x" * 65):
        with subtests.test(way=way), pytest.raises(ValueError, match="a code of letters"):
            CampaignSettings(name="A", question="B?", return_completed=way)


@pytest.mark.parametrize(
    ("platform", "chosen"), [("prolific", {"hits_per_annotator": 5}), ("link", {"hits_per_annotator": 5}), ("link", {})]
)
async def test_whoever_asks_to_finish_where_it_is_not_offered_gets_no_code_and_keeps_their_set(
    client, engine, platform, chosen
):
    campaign = await create_running_campaign(engine, **chosen, **WAYS)
    by = {"link": by_link(client, campaign)} if platform == "link" else {}
    address = await by["link"] if by else f"/prolific/{campaign.link_key}?{PROLIFIC}"
    held = form_fields((await client.post(address, data=form_fields((await client.get(address)).text))).text)
    reply = (await client.post(address, data={"token": held["token"], "finish": "1"})).text
    assert form_fields(reply)["hit"] == held["hit"]
    assert "D0NE" not in reply
    assert "C0MPLETED" not in reply


async def test_whoever_is_held_does_not_get_the_code_of_the_others_by_finishing(client, engine):
    campaign = await create_running_campaign(engine, leave_early=True, **WAYS)
    address = f"/prolific/{campaign.link_key}?{PROLIFIC}"
    held = form_fields((await client.post(address, data=form_fields((await client.get(address)).text))).text)
    await change(engine, "annotators SET barred = 'held'")
    end = (await client.post(address, data={"token": held["token"], "finish": "1"})).text
    assert "complete?cc=FAILED" in end
    assert "D0NE" not in end
