"""A researcher walks through a whole visit as a participant, and nothing of it is stored."""

import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from sqlalchemy import text

from app.annotation.onboarding import consent
from app.annotation.onboarding.steps import VISIT_STEPS
from app.annotation.platforms.registry import platforms_with_pages
from app.campaigns.visit_preview import build_visit_pages, visit_and_answer_settings_of_campaign
from app.designs.registry import DESIGNS
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import create_running_campaign

QUESTIONS = [
    "age: How old are you? | number from 0 to 120 | screen out: under 18",
    "native: Is English your native language? | yes | no",
]
TABLE = "text,expected\nnever,10\nalways,90\n"
VISIT: dict[str, Any] = {
    "consent": "We keep **your answers**.",
    "questions": QUESTIONS,
    "training": TABLE,
    "qualification": TABLE,
    "items_per_hit": 2,
    "panel_title": "Panel",
    "panel_query": "who={{who}}",
}
PLATFORMS = pytest.mark.parametrize("platform", platforms_with_pages(), ids=lambda platform: platform.name)
FETCH = {"x-easel": "fetch", "accept": "application/json"}


class FormFieldReader(HTMLParser):
    """The fields of a page's first annotator's form, each with a choice: the first of the first, the last of others."""

    def __init__(self, page):
        super().__init__()
        self.fields, self.inside, self.first_name = {}, False, ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        control = dict(attrs)
        if tag == "form":
            self.inside = control.get("method") == "post"
        name = control.get("name")
        if not self.inside or tag != "input" or not name:
            return
        if control.get("type") == "radio":
            self.first_name = self.first_name or name
            if name not in self.fields or name != self.first_name:
                self.fields[name] = control["value"]
        elif control.get("type") == "number":
            self.fields[name] = control.get("max") or "1"
        elif control.get("type") in ("text", None):
            self.fields[name] = "7"
        elif control.get("type") == "hidden":
            self.fields[name] = control["value"]

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "form"


def fields_of(page, **more):
    return FormFieldReader(page).fields | more


def title_of(page):
    """Return the place that the bar names."""
    (place,) = re.findall(r'class="preview-place">(.*?)</p>', page)
    return html.unescape(re.sub("<[^>]+>", "", place)).removeprefix("Preview · ")


async def count_all_rows(engine):
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    async with engine.connect() as connection:
        names = (await connection.execute(text(tables))).scalars().all()
        return {name: (await connection.execute(text(f'SELECT count(*) FROM "{name}"'))).scalar_one() for name in names}


async def start_preview(researcher, campaign, **query):
    address = f"/admin/campaigns/{campaign.slug}/preview"
    reply = await researcher.get(address, params=query)
    assert reply.status_code == 200, reply.text
    return address, reply.text


async def send(researcher, address, page, **fields):
    reply = await researcher.post(address, data=fields_of(page, **fields))
    assert reply.status_code == 200, reply.text
    return reply.text


async def test_a_walk_from_welcome_to_thanks_checks_each_step_and_leaves_no_row(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, hits_per_annotator=2, **VISIT)
    address, page = await start_preview(researcher, campaign)
    before = await count_all_rows(engine)
    assert title_of(page) == "step 1 of 7: Welcome"
    assert "<strong>your answers</strong>" in page
    page = await send(researcher, address, page)
    assert "Say whether you agree" in page  # as on the page itself
    page = await send(researcher, address, page, answer="yes")
    assert title_of(page) == "step 2 of 7: Questions"
    page = await send(researcher, address, page, **{"question-age": "", "question-native": "yes"})
    assert 'role="alert"' in page
    page = await send(researcher, address, page, **{"question-age": "40", "question-native": "yes"})
    assert title_of(page) == "step 3 of 7: Training"
    assert "native" in page.partition("What Easel would keep")[2].partition("</pre>")[0]
    page = await send(researcher, address, page, **{"score-0": "50", "score-1": "50"})
    assert "Not quite" in page
    page = await send(researcher, address, page)
    page = await send(researcher, address, page, **{"score-0": "10", "score-1": "90"})
    page = await send(researcher, address, page)
    assert title_of(page) == "step 4 of 7: Qualification"
    page = await send(researcher, address, page, **{"score-0": "10", "score-1": "90"})
    assert title_of(page) == "step 5 of 7: Task 1"
    names = re.findall(r'name="(score-\w+)"', page)
    assert "must be between" in await send(researcher, address, page, **dict.fromkeys(names, "101"))
    for number in (2, 3):
        page = await send(researcher, address, page, **dict.fromkeys(names, "5"))
        assert title_of(page) == ("step 6 of 7: Task 2" if number == 2 else "step 7 of 7: Thanks")
        assert "&#34;values&#34;" in page
    assert "Thank you. You answered 2 tasks." in page
    assert await count_all_rows(engine) == before


async def test_the_passphrase_comes_first_and_is_checked(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, passphrase="open sesame")
    address, page = await start_preview(researcher, campaign)
    assert title_of(page).endswith(": Passphrase")
    assert "open sesame" not in page
    page = await send(researcher, address, page, passphrase="sesame", enter="1")
    assert "This is not the passphrase." in page
    assert title_of(page).endswith(": Passphrase")
    page = await send(researcher, address, page, passphrase="open sesame", enter="1")
    assert title_of(page).endswith(": Welcome")


async def test_viewers_cannot_find_out_the_passphrase_by_trying(app, client, engine):
    campaign = await create_running_campaign(engine, launched=False, passphrase="open sesame")
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    address, page = await start_preview(client, campaign)
    for tried in ("sesame", "open sesame"):
        assert title_of(await send(client, address, page, passphrase=tried, enter="1")).endswith(": Welcome")


async def test_a_closed_link_is_another_outcome(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, open_link=False)
    _, page = await start_preview(researcher, campaign, at="link-closed")
    assert "By invitation only" in page


@PLATFORMS
async def test_people_who_look_before_they_accept_have_a_page_for_it(engine, researcher, platform):
    campaign = await create_running_campaign(engine, launched=False)
    _, page = await start_preview(researcher, campaign, platform=platform.name)
    assert ("Accept the HIT to answer it." in page) == platform.has_preview_page


async def test_viewers_find_the_preview(app, client, engine):
    campaign = await create_running_campaign(engine)
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    overview = await client.get(f"/admin/campaigns/{campaign.slug}")
    address, _ = await start_preview(client, campaign)
    assert f'href="{address}"' in overview.text


@pytest.mark.parametrize("design", DESIGNS)
async def test_each_design_can_be_answered_and_leads_to_thanks(engine, researcher, design):
    campaign = await create_running_campaign(
        engine,
        launched=False,
        design=design,
        items_per_hit=DESIGNS[design]().default_items,
        hits_per_annotator=1,
    )
    address, page = await start_preview(researcher, campaign, at="hit-1")
    assert title_of(await send(researcher, address, page)).endswith("Thanks")


@PLATFORMS
async def test_every_page_and_every_outcome_can_be_seen_as_from_each_platform(engine, researcher, platform):
    campaign = await create_running_campaign(
        engine, return_completed="DONE", return_failed_checks="https://a.example/x", **VISIT
    )
    before = await count_all_rows(engine)
    pages = build_visit_pages(campaign, platform)
    assert len({page.key for page in pages}) == len(pages)
    for page in pages:
        _, shown = await start_preview(researcher, campaign, at=page.key, platform=platform.name)
        assert title_of(shown).endswith(page.title)
        for target in re.findall(r'<(?:form[^>]*action|a[^>]*href)="(https?:[^"]*)"', shown):
            pytest.fail(f"{page.key} leads away to {target}")
    assert await count_all_rows(engine) == before


async def test_an_answer_that_screens_people_out_leads_to_their_end(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, **VISIT)
    address, page = await start_preview(researcher, campaign, at="questions")
    page = await send(researcher, address, page, **{"question-age": "17", "question-native": "yes"})
    assert "Thank you for your interest" in page
    assert "Screened out by a question" in page  # among the other outcomes
    without_screening = await create_running_campaign(engine, launched=False, questions=["job: What do you do?"])
    _, page = await start_preview(researcher, without_screening)
    assert "Screened out by a question" not in page


@PLATFORMS
async def test_every_onboarding_step_that_is_required_has_a_page(engine, platform):
    campaign = await create_running_campaign(engine, **VISIT | {"welcome": True})
    steps = [page.step for page in build_visit_pages(campaign, platform) if page.step and not page.is_outcome]
    required = [
        step for step in VISIT_STEPS if step.is_required(visit_and_answer_settings_of_campaign(campaign), platform)
    ]
    on_start_page = [consent.STEP] if platform.has_start_button else []
    assert steps == [step for step in required if step not in on_start_page]


async def test_the_ends_of_steps_are_those_that_annotators_see(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, return_screened_out="SORRY", **VISIT)
    address, page = await start_preview(researcher, campaign, at="consent-ends-1")
    assert "You did not agree" in page
    assert title_of(await send(researcher, address, page, answer="yes")).endswith("Questions")
    assert "SORRY" in (await start_preview(researcher, campaign, at="qualification-ends-1"))[1]
    assert "Paused" in (await start_preview(researcher, campaign, at="arrives-paused"))[1]


async def test_our_script_gets_the_part_that_changes_or_the_refusal(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, items_per_hit=2)
    address, page = await start_preview(researcher, campaign, at="hit-1")
    refused = await researcher.post(address, data={"token": fields_of(page)["token"], "hit": "0"}, headers=FETCH)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "scores_missing")
    part = await researcher.post(address, data=fields_of(page), headers=FETCH)
    assert title_of(part.text).endswith("Task 2")
    assert "<html" not in part.text
    assert (await researcher.put(address, json={})).status_code == 204


@pytest.mark.parametrize("token", ["x", "{}" * 40_000, '{"forms": 3}'])
async def test_a_state_that_cannot_be_read_is_refused(engine, researcher, token):
    campaign = await create_running_campaign(engine, launched=False)
    address, _ = await start_preview(researcher, campaign)
    reply = await researcher.post(address, data={"token": token})
    assert reply.status_code == 422
    assert "Start the preview again" in reply.text


async def test_the_phone_shows_it_in_a_frame_of_ours_alone(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False)
    address = f"/admin/campaigns/{campaign.slug}/preview"
    page = (await researcher.get(f"{address}/phone?at=hit-1&platform=link&width=phone")).text
    assert f'src="{address}?at=hit-1&amp;platform=link&amp;width=phone"' in page
    framed = await researcher.get(address)
    assert "frame-ancestors 'self'" in framed.headers["content-security-policy"]


async def test_viewers_may_preview_without_codes_and_strangers_may_not(app, client, engine):
    campaign = await create_running_campaign(engine, launched=False, return_completed="SECRET7")
    other = await create_running_campaign(engine, name="Nouns", launched=False)
    address = f"/admin/campaigns/{campaign.slug}/preview"
    assert (await client.get(address)).status_code == 303
    await log_in_with_role(app, client, "guest", "viewer", campaign)
    page = await client.get(address)
    assert page.status_code == 200
    assert (await client.post(address, data=fields_of(page.text))).status_code == 200
    thanks = (await client.get(address, params={"at": "thanks"})).text
    assert "EXAMPLE" in thanks
    assert "SECRET7" not in thanks
    assert (await client.get(f"/admin/campaigns/{other.slug}/preview")).status_code == 404


async def test_the_last_page_shows_an_example_of_the_code_that_finds_answers_later(app, researcher):
    campaign = await create_running_campaign(app.state.database, hits_per_annotator=1, withdrawal="self")
    address = f"/admin/campaigns/{campaign.slug}/preview"
    thanks = (await researcher.get(address, params={"at": "thanks", "platform": "link"})).text
    assert "Keep this code." in thanks
    assert ">EXAMPLE</code>" in thanks
    (link,) = re.findall(r'href="([^"]+)">Stop and have my answers removed', thanks)
    assert (await researcher.get(address + html.unescape(link))).text == thanks


async def test_closing_the_preview_returns_to_the_page_from_which_it_was_opened(engine, researcher):
    campaign = await create_running_campaign(engine, **VISIT)
    page = f"/admin/campaigns/{campaign.slug}"

    def closing(reply):
        return re.findall(r'href="([^"]*)">Close<', reply.text)[0]

    opened = await researcher.get(f"{page}/preview?from=settings/visit")
    assert closing(opened) == f"{page}/settings/visit"
    ahead = html.unescape(re.findall(r'href="([^"]*)" rel="next"', opened.text)[0])
    assert closing(await researcher.get(ahead)) == f"{page}/settings/visit"
    for query in ("", "?from=//elsewhere.example", "?from=../../login", "?from=https://elsewhere.example"):
        assert closing(await researcher.get(f"{page}/preview{query}")) == page


async def test_the_pages_that_open_the_preview_name_themselves(engine, researcher):
    campaign = await create_running_campaign(engine, **VISIT)
    page = f"/admin/campaigns/{campaign.slug}"
    for part in ("settings/visit", "settings/how-much", "share"):
        assert f"from={part}" in (await researcher.get(f"{page}/{part}")).text
