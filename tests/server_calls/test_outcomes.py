"""Each outcome of a visit has its call, and the person reads what happens."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.designs.campaign import Campaign
from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_rows, form_fields
from tests.annotation.onboarding.visits import send_form
from tests.server_calls.fake_platform import FakePlatform
from tests.server_calls.visits import make_work

TOLD = "We tell Lab pool that your visit has ended."
BASE: dict[str, Any] = {
    "panel_title": "Lab pool",
    "panel_query": "who={{who}}",
    "hits_per_annotator": 1,
    "judgments_per_item": 500,
}


@pytest.fixture
def engine(app):
    return app.state.database


async def outcomes(engine):
    return await fetch_rows(engine, "SELECT outcome, state FROM server_calls ORDER BY id")


async def create_calling_campaign(engine, platform: FakePlatform, *names: str, **settings: Any) -> Campaign:
    calls = {f"call_{name}": platform.address.replace("/credit", f"/{name}") for name in names}
    return await create_running_campaign(engine, **BASE | calls | settings)


async def answer(client, campaign, person="p1"):
    address = f"/panel/{campaign.link_key}?who={person}"
    return (await client.post(address, data=form_fields((await client.get(address)).text))).text


async def test_a_person_who_finished_reads_that_the_platform_is_told(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed")
    end = await answer(client, campaign)
    assert TOLD in end
    assert "You can close this page." in end
    assert "finish on Lab pool’s own page" not in end
    assert "s3cr3t" not in end
    for _ in range(2):  # a reload tells nothing again
        await client.get(f"/panel/{campaign.link_key}?who=p1")
    assert await outcomes(engine) == [("completed", "prepared")]


async def test_a_code_stays_beside_the_call(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed", return_completed="D0NE")
    end = await answer(client, campaign)
    assert TOLD in end
    assert ">D0NE</code>" in end


async def test_a_person_who_leaves_early_after_a_set_has_completed(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed", hits_per_annotator=5, leave_early=True)
    page = await answer(client, campaign)
    token = form_fields(page)["token"]
    end = (await client.post(f"/panel/{campaign.link_key}?who=p1", data={"token": token, "finish": "1"})).text
    assert TOLD in end
    assert await outcomes(engine) == [("completed", "prepared")]


async def test_a_held_person_failed_checks_and_can_still_complete_when_released(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed", "failed_checks", hits_per_annotator=2)
    await answer(client, campaign)
    await execute_sql(engine, "UPDATE annotators SET barred = 'held'")
    assert TOLD in (await client.get(f"/panel/{campaign.link_key}?who=p1")).text
    assert await outcomes(engine) == [("failed_checks", "prepared")]
    await execute_sql(engine, "UPDATE annotators SET barred = NULL")
    await answer(client, campaign)
    assert await outcomes(engine) == [("failed_checks", "prepared"), ("completed", "prepared")]


async def test_after_completion_the_platform_hears_nothing_else(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed", "failed_checks")
    await answer(client, campaign)
    await execute_sql(engine, "UPDATE annotators SET barred = 'held'")
    await client.get(f"/panel/{campaign.link_key}?who=p1")
    assert await outcomes(engine) == [("completed", "prepared")]


async def test_a_person_who_finds_no_work_has_the_call_of_that(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed", "nothing_left")
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished', finished_at = now()")
    end = (await client.get(f"/panel/{campaign.link_key}?who=p1")).text
    assert TOLD in end
    assert await outcomes(engine) == [("nothing_left", "prepared")]


@pytest.mark.parametrize(
    ("names", "expected"), [(("screened_out",), [("screened_out", "prepared")]), (("completed",), [])]
)
async def test_a_person_who_is_screened_out_has_the_call_of_that(client, engine, platform, names, expected):
    questions = ["age?: Are you 18? | yes | screen out: no"]
    campaign = await create_calling_campaign(engine, platform, *names, questions=questions)
    address = f"/panel/{campaign.link_key}?who=p1"
    page = (await client.get(address)).text
    end = await send_form(client, address, page, **{"question-age": "no"})
    assert "it ends here for you" in end
    assert (TOLD in end) == bool(expected)
    assert await outcomes(engine) == expected


async def test_a_full_quota_has_the_call_of_people_screened_out_unless_it_has_its_own(app, client, engine, platform):
    settings = {"questions": ["age?: Old? | yes | no"], "quotas": ["age = yes: 1"], "hits_per_annotator": 2}
    campaign = await create_calling_campaign(engine, platform, "screened_out", **settings)
    end = ""
    for person in ("p1", "p2"):
        address = f"/panel/{campaign.link_key}?who={person}"
        end = await send_form(client, address, (await client.get(address)).text, **{"question-age": "yes"})
    assert TOLD in end
    assert await outcomes(engine) == [("quota_full", "prepared")]
    await make_work(engine, app.state.outbox.clock).make_due_calls()
    assert [path for _, path, _, _ in platform.calls] == ["/screened_out?token=s3cr3t&who=p2"]


async def test_a_person_who_may_not_take_part_is_not_told_of(client, engine, platform):
    other = await create_running_campaign(engine, name="Other")
    campaign = await create_calling_campaign(engine, platform, "screened_out", only_campaigns=[other.slug])
    end = await client.get(f"/panel/{campaign.link_key}?who=p1")
    assert end.status_code == 403
    assert TOLD not in end.text
    assert await outcomes(engine) == []


async def test_people_of_the_open_link_read_nothing_of_a_call(client, engine, platform):
    campaign = await create_calling_campaign(engine, platform, "completed")
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert "We tell" not in end
    assert await outcomes(engine) == []


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"call_completed": "https://panel.example/credit?who={id}", "panel_query": ""}, "call_completed"),
        ({"call_completed": "ftp://panel.example/credit?who={id}"}, "call_completed"),
        ({"call_completed": "https://panel.example/credit"}, "call_completed"),
        ({"call_completed": "https://panel.example/credit?who={other}"}, "call_completed"),
        ({"call_completed": "https://{who}.example/credit"}, "call_completed"),
        ({"call_completed": "http://{who}.example/credit"}, "call_completed"),
        ({"call_completed": "https://name:word@panel.example/{id}"}, "call_completed"),
        ({"call_completed": "https://YOUR-SITE.example/{id}"}, "call_completed"),
        ({"call_failed_checks": "https://panel.example/{verification_code}"}, "call_failed_checks"),
        ({"call_headers": ["Host: other.example"]}, "call_headers"),
        ({"call_headers": ["no colon"]}, "call_headers"),
        ({"call_headers": ["X-Key: a\r\nHost: b"]}, "call_headers"),
        ({"call_headers": ["X-Key: a", "x-key: b"]}, "call_headers"),
        ({"call_method": "PUT"}, "call_method"),
    ],
)
def test_a_call_that_cannot_work_is_refused_at_its_setting(settings, field):
    with pytest.raises(ValidationError) as refusal:
        CampaignSettings.model_validate({"name": "N", "question": "Q?"} | BASE | settings)
    assert {error["loc"][0] for error in refusal.value.errors()} == {field}
