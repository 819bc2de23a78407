"""A panel is a platform that a campaign describes: people arrive by its link and return by its codes or addresses."""

import re
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import text

from app.annotation.platforms.panel import verification_code
from app.annotation.platforms.panel_presets import PANEL_PRESETS
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.campaigns.settings import CampaignSettings
from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows, fetch_value, form_fields

CONNECT: dict[str, Any] = {
    "panel_title": "Connect",
    "panel_query": "participantId={{participantId}}&assignmentId={{assignmentId}}",
    "panel_submission": "assignmentId",
}
ARRIVAL = "participantId=p7&assignmentId=a9"
FORM: dict[str, Any] = {"panel_query": "who={who}", "form_origins": ["https://panel.example"]}


@pytest.fixture
def engine(app):
    return app.state.database


async def answer_one_hit(client, campaign, query):
    """Arrive by the panel's link, answer one HIT and return the last page."""
    address = f"/panel/{campaign.link_key}?{query}"
    page = (await client.get(address)).text
    return (await client.post(address, data=form_fields(page))).text


async def test_people_arrive_by_the_ids_of_the_link_and_return_with_the_code(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, return_completed="D0NE", **CONNECT)
    end = await answer_one_hit(client, campaign, ARRIVAL)
    assert ">D0NE</code>" in end
    stored = "SELECT platform, worker_id, external_id FROM annotators a JOIN assignments s ON s.annotator_id = a.id"
    assert await fetch_rows(engine, stored) == [("panel", "p7", "a9")]


async def test_without_a_parameter_of_the_submission_a_person_has_one_submission(client, engine):
    campaign = await create_running_campaign(engine, panel_title="Panel", panel_query="participant={{participant}}")
    for _ in range(2):
        assert (await client.get(f"/panel/{campaign.link_key}?participant=p1")).status_code == 200
    assert await fetch_rows(engine, "SELECT external_id FROM assignments") == [("p1",)]


async def test_an_address_gets_the_ids_encoded(client, engine):
    campaign = await create_running_campaign(
        engine, hits_per_annotator=1, return_completed="https://panel.example/end?who={id}&as={assignmentId}", **CONNECT
    )
    end = await answer_one_hit(client, campaign, "participantId=p%26x%3D1&assignmentId=a%2F9")
    assert 'href="https://panel.example/end?who=p%26x%3D1&amp;as=a%2F9"' in end


async def test_people_read_the_name_of_their_platform(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, **CONNECT)
    end = await answer_one_hit(client, campaign, ARRIVAL)
    assert "finish on Connect’s own page" in end


async def test_a_verification_code_proves_that_this_person_finished_this_campaign(client, engine):
    campaign = await create_running_campaign(
        engine, hits_per_annotator=1, panel_key="campaign-key", return_completed="mw-{verification_code}", **CONNECT
    )
    end = await answer_one_hit(client, campaign, ARRIVAL)
    assert f">mw-{verification_code('campaign-key', 'p7', campaign.slug)}</code>" in end


def test_a_verification_code_is_the_start_of_an_hmac():
    assert verification_code("campaign-key", "worker-7", "campaign-3") == "AE9510487C"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("participantId=p7", "arrival_incomplete"),
        ("participantId={{participantId}}&assignmentId=a9", "arrival_placeholder"),
        (f"{ARRIVAL}&participantId=p8", "arrival_doubled"),
        ("participantId=%ff&assignmentId=a9", "arrival_incomplete"),
    ],
)
async def test_a_link_without_usable_ids_lets_nobody_in(client, engine, query, code):
    campaign = await create_running_campaign(engine, **CONNECT)
    reply = await client.get(f"/panel/{campaign.link_key}?{query}", headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, code)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


async def test_a_campaign_without_a_panel_takes_nobody_from_one(client, engine):
    campaign = await create_running_campaign(engine)
    reply = await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}", headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "campaign_not_found")


async def test_people_who_started_can_go_on_after_the_link_was_changed(client, engine):
    campaign = await create_running_campaign(engine, return_completed="D0NE-{participantId}", **CONNECT)
    address = f"/panel/{campaign.link_key}?{ARRIVAL}"
    page = (await client.get(address)).text
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE campaigns SET crowd_settings = crowd_settings || CAST(:changed AS jsonb)"),
            {"changed": '{"panel_query": "", "panel_submission": null, "return_completed": "OTHER"}'},
        )
    answered = await client.post(address, data=form_fields(page))
    assert answered.status_code == 200
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_other_platforms_show_no_code_with_placeholders(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, return_completed="D0NE-{id}", **CONNECT)
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    end = (await client.post(address, data=form_fields((await client.get(address)).text))).text
    assert "D0NE" not in end


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"panel_query": "parti cipant"}, "panel_query"),
        ({"panel_query": "a={a}&"}, "panel_query"),
        ({"panel_query": "a={a}&a={b}"}, "panel_query"),
        ({"panel_query": "t={t}"}, "panel_query"),
        ({"panel_query": "who={who}&id={id}"}, "panel_query"),
        ({"panel_query": "&".join(f"a{n}={{a}}" for n in range(11))}, "panel_query"),
        ({"panel_query": "who={who}", "panel_submission": "visit"}, "panel_submission"),
        ({"return_completed": "D0NE-{id}"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https://panel.example/{other}"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https://{who}.example/"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "{verification_code}"}, "return_completed"),
        ({"panel_title": "", "panel_query": "who={who}"}, "panel_query"),
        ({"return_completed": "https://panel.example/{id}"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https:///{who}"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https://?{who}"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https://;example.org/{who}"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https://{who}"}, "return_completed"),
        ({"return_completed": "https://a.example,b.example/"}, "return_completed"),
        ({"panel_query": "who={who}", "return_completed": "https://YOUR-SITE.example/"}, "return_completed"),
        ({"frame_origins": ["http://survey.example"]}, "frame_origins"),
        ({"frame_origins": ["https://survey.example/path"]}, "frame_origins"),
        ({"frame_origins": ["https://survey.example; script-src *"]}, "frame_origins"),
        ({"frame_origins": ["https://*"]}, "frame_origins"),
        ({"frame_origins": ["https://survey.example:99999"]}, "frame_origins"),
        ({"frame_origins": ["https://survey.example:0"]}, "frame_origins"),
        ({"return_completed": "https://survey.example:65536/done"}, "return_completed"),
        ({"form_origins": ["https://*.panel.example"]}, "form_origins"),
        ({"form_origins": ["https://panel.example"]}, "form_origins"),
        (FORM | {"return_completed": "https://panel.example/end"}, "return_completed"),
        (FORM | {"return_completed": "https://panel.example/end?who={who}&who=2"}, "return_completed"),
    ],
)
def test_a_description_that_cannot_work_is_refused_at_its_setting(settings, field):
    with pytest.raises(ValidationError) as refusal:
        CampaignSettings.model_validate({"name": "N", "question": "Q?", "panel_title": "Panel"} | settings)
    assert {error["loc"][0] for error in refusal.value.errors()} == {field}


def test_braces_in_an_address_stay_as_they_are_without_a_panel():
    address = "https://example.com/{x}"
    settings = CampaignSettings.model_validate({"name": "N", "question": "Q?", "return_completed": address})
    assert settings.return_completed == address


async def test_the_share_page_has_the_link_of_a_panel(researcher, engine):
    campaign = await create_running_campaign(engine, **CONNECT)
    link = f"/panel/{campaign.link_key}?{CONNECT['panel_query']}"
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    assert '<h2 id="by-panel">Connect</h2>' in page
    assert link.replace("&", "&amp;") in page


async def test_parameters_that_the_platform_adds_itself_are_not_in_the_link(researcher, client, engine):
    campaign = await create_running_campaign(engine, panel_title="Panel", panel_query="participantId&assignmentId")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    assert f'value="http://easel.test/panel/{campaign.link_key}"' in page
    assert (await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}")).status_code == 200


@pytest.mark.parametrize("preset", PANEL_PRESETS.values(), ids=PANEL_PRESETS)
def test_a_preset_is_a_description_that_works(preset):
    key = {"panel_key": "k"} if "verification_code" in preset.get("return_completed", "") else {}
    own = {
        name: value.replace("YOUR-SITE", "lab").replace("EXPERIMENT", "12").replace("TOKEN", "0a")
        for name, value in preset.items()
    }
    settings = CampaignSettings.model_validate({"name": "N", "question": "Q?", "panel_title": "Panel"} | key | own)
    assert settings.panel_query == preset["panel_query"]


@pytest.mark.parametrize(
    ("outcome", "status"), [("completed", 10), ("screened_out", 20), ("failed_checks", 30), ("quota_full", 40)]
)
async def test_people_from_cint_return_with_the_status_of_their_outcome(engine, outcome, status):
    settings: dict[str, Any] = {**PANEL_PRESETS["Cint"], "panel_title": "Cint"}
    campaign = await create_running_campaign(engine, **settings)
    way_back = PLATFORMS["panel"].build_completion(
        {"id": "r/1", "rid": "r/1"}, crowd_setting_by_name_with_slug_of_campaign(campaign), outcome
    )
    assert way_back.url == f"https://samplicio.us/s/ClientCallBack.aspx?RIS={status}&RID=r%2F1"


async def test_the_form_offers_the_presets(researcher, engine):
    campaign = await create_running_campaign(engine, launched=False)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/visit")).text
    assert re.findall(r'data-preset="[^"]+">([^<]+)<', page) == [*PANEL_PRESETS]


async def test_without_a_panel_the_share_page_tells_where_to_describe_one(researcher, engine):
    campaign = await create_running_campaign(engine)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    assert "Describe its link" in page
    assert 'id="by-panel"' not in page


async def test_only_the_sites_that_a_campaign_names_may_frame_its_pages(client, engine):
    framed = await create_running_campaign(engine, frame_origins=["https://survey.example"], **CONNECT)
    other = await create_running_campaign(engine, name="Other", **CONNECT)
    for address in (f"/panel/{framed.link_key}?{ARRIVAL}", f"/link/{framed.link_key}"):
        headers = (await client.get(address)).headers
        assert re.search(r"frame-ancestors https://survey\.example(;|$)", headers["content-security-policy"])
        assert "x-frame-options" not in headers
    headers = (await client.get(f"/panel/{other.link_key}?{ARRIVAL}")).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"


async def test_the_page_for_people_who_may_not_take_part_can_be_in_the_same_frame(client, engine):
    other = await create_running_campaign(engine, name="Other")
    campaign = await create_running_campaign(
        engine, frame_origins=["https://survey.example"], only_campaigns=[other.slug], **CONNECT
    )
    refused = await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}")
    assert refused.status_code == 403
    assert "frame-ancestors https://survey.example" in refused.headers["content-security-policy"]
    assert "x-frame-options" not in refused.headers


async def test_an_address_of_a_named_site_is_posted_as_a_form_with_the_ids(client, engine):
    campaign = await create_running_campaign(
        engine,
        hits_per_annotator=1,
        form_origins=["https://panel.example"],
        return_completed="https://panel.example/submit?assignment={assignmentId}&worker={id}&done=yes#end",
        **CONNECT,
    )
    end = await answer_one_hit(client, campaign, "participantId=p%26x%3D1&assignmentId=a%2F9")
    form = end.partition('<form method="post" action="https://panel.example/submit">')[2].partition("</form>")[0]
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form)
    assert fields == [("assignment", "a/9"), ("worker", "p&amp;x=1"), ("done", "yes")]


async def test_pages_may_post_only_to_the_sites_that_their_campaign_names(client, engine):
    posting = await create_running_campaign(engine, form_origins=["https://panel.example"], **CONNECT)
    other = await create_running_campaign(engine, name="Other", **CONNECT)
    policies = [
        (await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}")).headers["content-security-policy"]
        for campaign in (posting, other)
    ]
    assert [bool(re.search(r"form-action 'self' [^;]*https://panel\.example[ ;]", policy)) for policy in policies] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://panel.example:443", "panel.example"),
        ("https://panel.example", "PANEL.example:443"),
        ("https://xn--bcher-kva.example", "bücher.example"),
    ],
)
async def test_another_spelling_of_a_named_site_is_posted_as_a_form(client, engine, origin, host):
    campaign = await create_running_campaign(
        engine,
        hits_per_annotator=1,
        form_origins=[origin],
        return_completed=f"https://{host}/submit?worker={{id}}",
        **CONNECT,
    )
    assert f'<form method="post" action="https://{host}/submit">' in await answer_one_hit(client, campaign, ARRIVAL)


async def test_addresses_of_other_sites_stay_links(client, engine):
    campaign = await create_running_campaign(
        engine,
        hits_per_annotator=1,
        form_origins=["https://panel.example"],
        return_completed="https://panel.example.org/end?who={id}",
        **CONNECT,
    )
    assert 'href="https://panel.example.org/end?who=p7"' in await answer_one_hit(client, campaign, ARRIVAL)
