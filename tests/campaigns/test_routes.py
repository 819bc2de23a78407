import asyncio
import html
import json
import re

import pytest
from sqlalchemy import text

from app.campaigns import form, form_sections, form_values
from app.campaigns.needs import NEEDS
from app.campaigns.person_pay import PERSON_FIELDS
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SETTINGS_EDITABLE_AFTER_LAUNCH
from app.main import create_app
from app.selection.registry import SELECTION_RULES
from app.settings import Settings
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.conftest import http_client
from tests.media.files import png, table, zipped
from tests.toys import register

PROLIFIC = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
FORM = {"name": "Verbs & more", "question": "How often?", "low_label": "rare", "high_label": "frequent"}
CSV = "id,verb,gloss\n1,abide,stay\n2,run,move\n3,hum,sing\n4,eat,feed\n5,go,leave\n6,make,build\n"


async def create(researcher, **fields: str) -> str:
    """Create a draft by the form and return its address."""
    page = await researcher.post("/admin/campaigns/new", data=form_values.new_campaign_form_values() | FORM | fields)
    assert page.status_code == 303, page.text
    return str(page.headers["location"].removesuffix("/settings/visit?done=created"))


async def upload(
    researcher, address: str, content: str | bytes = CSV, name: str = "verbs.csv", **fields: str | list[str]
):
    data = {"shown": "verb"} | fields
    return await researcher.post(f"{address}/items", data=data, files={"file": (name, content)})


async def launched(researcher, **fields: str) -> str:
    address = await create(researcher, **fields)
    await upload(researcher, address)
    assert (await researcher.post(f"{address}/launch")).headers["location"] == f"{address}/share?done=launched"
    return address


async def save(researcher, address: str, step: str, **fields: str):
    """Save a step as a browser without scripts does: with all of its fields that have a value."""
    page = (await researcher.get(f"{address}/settings/{step}")).text
    sent = dict(re.findall(r'<input type="checkbox" id="([\w.]+)"[^>]* (checked)>', page))
    return await researcher.post(f"{address}/settings/{step}", data=dict.fromkeys(sent, "on") | fields)


def item_count(page) -> str | None:
    found = re.search(r"([\d,]+) items?</h2>", page.text)
    return found and found[1]


def error_message(page) -> str:
    """Return the text of the error that a page shows."""
    found = re.search(r'class="notice error" role="alert">(.*?)</(p|div)>', page.text, re.DOTALL)
    assert found, page.text
    return html.unescape(found[1])


async def test_the_first_page_is_the_list_and_teaches_when_it_is_empty(researcher):
    assert (await researcher.get("/")).headers["location"] == "/admin"
    assert (await researcher.get("/admin/campaigns")).headers["location"] == "/admin"
    page = await researcher.get("/admin")
    assert page.status_code == 200
    assert "Create the first campaign" in page.text


async def test_a_campaign_from_form_to_finish(researcher):
    address = await create(researcher)
    assert "Draft created. Next: upload items." in " ".join(
        (await researcher.get(f"{address}/items?done=created")).text.split()
    )
    assert (await upload(researcher, address)).headers["location"] == f"{address}/items?done=imported"
    page = (await researcher.get(f"{address}/items")).text
    assert "6 items" in page
    assert "abide" in page
    listed = (await researcher.get("/admin")).text
    assert "Verbs &amp; more" in listed
    assert "0 of 60" in listed
    assert (await researcher.post(f"{address}/launch")).headers["location"] == f"{address}/share?done=launched"
    for action, word in (("pause", "paused"), ("resume", "resumed"), ("finish", "finished")):
        assert (await researcher.post(f"{address}/{action}")).headers["location"] == f"{address}?done={word}"
    assert "finished" in (await researcher.get("/admin")).text


def test_every_setting_is_asked_once():
    asked = [
        name for group in form_sections.FORM_FIELD_GROUPS for name in (*group.basic_settings, *group.advanced_settings)
    ]
    assert sorted(asked) == sorted(CampaignSettings.model_fields)


def test_that_one_person_may_judge_an_item_again_is_asked_beside_the_judgments_wanted():
    sections = form.build_form_sections(form_values.new_campaign_form_values())
    (asked,) = [part.basic_fields for part in sections if part.title == "How many judgments?"]
    assert [question.name for question in asked][:2] == ["judgments_per_item", "repeat_items"]
    assert "judge an item again" in asked[1].description


def test_a_first_campaign_need_not_look_at_law_gamma_or_epsilon():
    away = {name for name, step in form_sections.STEP_BY_SETTING.items() if step == "advanced"}
    assert {"update_law", "gamma", "epsilon", "tie_margin_points", "prior", "rule", "selection", "seed"} <= away


@pytest.mark.parametrize("choices", [1, 2])
async def test_the_steps_explain_every_setting_that_leaves_a_choice(researcher, monkeypatch, choices):
    criteria = {f"criteria.{k}.{part}": f"{part} {k}" for k in range(2) for part in ("name", "question")}
    address = await create(researcher, **criteria)  # of which one may decide
    if choices == 2:
        register(monkeypatch.setitem)
    else:
        for other in [name for name in SELECTION_RULES if name not in ("easl", "best", "threshold")]:
            monkeypatch.delitem(SELECTION_RULES, other)
        monkeypatch.setattr("app.campaigns.need_cards.NEEDS", NEEDS[:3])
    pages = {
        step: html.unescape((await researcher.get(f"{address}/settings/{step}")).text)
        for step in form_sections.STEPS_IN_ORDER
        if step != "review"
    }
    for name, info in CampaignSettings.model_fields.items():
        if name in (form_sections.DESIGN_SETTINGS_SETTING, form_sections.CRITERIA_SETTING):
            continue
        if form.space_separated_designs_reading_setting(
            name
        ) and "slider" not in form.space_separated_designs_reading_setting(name):
            continue  # other ways of asking have it
        found = [step for step, page in pages.items() if re.search(rf'name="(need\.\w+\.)?{name}"', page)]
        assert found == [form_sections.STEP_BY_SETTING[name]], name
        assert info.title
        assert info.title in pages[found[0]]
        assert info.description
        assert info.description in pages[found[0]]


MISTAKES = {
    "question": ({"low_label": " ", "items_per_hit": "eleven"}, ["Please fill this in.", "Enter a whole number."]),
    "visit": (
        {"prolific_completion_code": "a b"},
        ["Only letters, digits, _ and - can be in this code, 64 at most."],
    ),
    "how-much": (
        {"lease_minutes": "1.5", "hits_per_annotator": "0", "need": "best", "need.best.best_items": "0"},
        ["Enter a whole number.", "This should be greater than or equal to 1."] * 2,
    ),
    "advanced": (
        {"gamma": "0", "seed": "9" * 30, "prior": "1, x", "epsilon": "nan"},
        [
            "This should be greater than or equal to 0.0001.",
            "This should be less than 9223372036854775808.",
            *["Enter a number."] * 2,
        ],
    ),
}


@pytest.mark.parametrize("step", MISTAKES)
async def test_mistakes_are_said_beside_their_fields_and_what_was_entered_is_kept(researcher, step):
    address = await create(researcher)
    entered, expected = MISTAKES[step]
    page = await save(researcher, address, step, **entered)
    assert page.status_code == 422
    found = dict(re.findall(r'<p class="problem" id="([a-z_.]+)-error">([^<]+)</p>', page.text))
    wrong = [name for name in entered if name != "need"]
    assert sorted(found) == sorted(wrong)
    assert {html.unescape(words) for words in found.values()} == set(expected)
    for name in wrong:
        assert f'<a href="#{name}">' in page.text
        assert f'value="{entered[name]}"' in page.text
    assert "Verbs &amp; more" in (await researcher.get("/admin")).text


async def test_what_is_missing_in_a_new_campaign_is_said_and_nothing_is_created(researcher):
    page = await researcher.post("/admin/campaigns/new", data={"name": "<Verbs>", "question": " "})
    assert page.status_code == 422
    assert 'id="question-error">Please fill this in.' in page.text
    assert 'id="name-error"' not in page.text
    assert 'value="&lt;Verbs&gt;"' in page.text
    assert "No campaigns yet" in (await researcher.get("/admin")).text


@pytest.mark.parametrize("prior", ["-1, 1", "1", "1, 2, 3"])
async def test_a_prior_that_the_law_cannot_have_is_said_at_the_prior(researcher, prior):
    page = await save(researcher, await create(researcher), "advanced", prior=prior)
    assert re.findall(r'id="([a-z_]+)-error">([^<]+)<', page.text) == [
        ("prior", "This prior is not possible with the update law easl.")
    ]
    assert f'value="{prior}"' in page.text


async def test_ends_with_the_same_label_are_refused_at_the_second(researcher):
    page = await researcher.post("/admin/campaigns/new", data=FORM | {"high_label": " rare"})
    assert re.findall(r'id="([a-z_]+)-error">([^<]+)<', page.text) == [
        ("high_label", "The two ends of the scale need different labels.")
    ]


async def test_folded_settings_are_named_as_they_are_titled(researcher):
    page = (await researcher.get("/admin/campaigns/new")).text
    folded = re.findall(r'<summary class="more">More: (.*?)</summary>', page)
    titles = [re.findall(r"<span[^>]*>([^<]+)</span>", one) for one in folded]
    assert titles[0][:4] == ["Short instructions", "Label at 50", "Show the number", "Language of the pages"]


async def test_another_update_law_brings_its_own_prior(researcher, app):
    address = await create(researcher)
    page = (await researcher.get(f"{address}/settings/advanced")).text
    assert re.search(r'id="prior"[^>]* value=""', page)
    saved = await save(researcher, address, "advanced", update_law="trueskill")
    assert saved.headers["location"] == f"{address}/settings/advanced?done=saved"
    async with app.state.database.connect() as connection:
        row = (await connection.execute(text("SELECT prior, show_numbers FROM campaigns"))).one()
    assert row == (None, True)
    await upload(researcher, address)
    await researcher.post(f"{address}/launch")
    async with app.state.database.connect() as connection:
        assert (await connection.execute(text("SELECT prior FROM campaigns"))).scalar_one() == [0.5, 1 / 12]
    page = (await researcher.get(f"{address}/settings/advanced")).text
    assert f"0.5, {1 / 12}" in page


async def test_a_switch_that_is_off_and_a_prior_of_ones_own_are_kept(researcher):
    values = {
        name: value for name, value in (form_values.new_campaign_form_values() | FORM).items() if name != "show_numbers"
    }
    address = await create(researcher)
    await researcher.post(f"{address}/settings/question", data=values)
    await save(researcher, address, "advanced", prior=" 3,2 ")
    page = (await researcher.get(f"{address}/settings/question")).text
    assert re.search(r'name="show_numbers" aria-describedby="show_numbers-hint">', page)
    page = (await researcher.get(f"{address}/settings/how-much")).text
    assert re.search(r'name="repeat_items" aria-describedby="repeat_items-hint" checked>', page)
    page = (await researcher.get(f"{address}/settings/advanced")).text
    assert re.search(r'id="prior"[^>]* value="3.0, 2.0"', page)


async def test_settings_of_a_launched_campaign_that_change_meaning_can_be_read_and_not_changed(researcher):
    address = await launched(researcher)
    asked = set[str]()
    for step in form_sections.STEPS_IN_ORDER[:-2]:
        page = (await researcher.get(f"{address}/settings/{step}")).text
        assert "Settings with a lock can no longer be changed" in page
        asked |= set(re.findall(r'<(?:input|textarea|select)[^>]* name="(\w+)"', page.partition("</nav>")[2]))
    asked |= {"alert_emails", "alert_webhook", "alert_quiet_minutes", "tags"}
    assert asked == {"csrf", "step", "version", *SETTINGS_EDITABLE_AFTER_LAUNCH, *PERSON_FIELDS}
    refused = await researcher.post(f"{address}/settings/question", data={"question": "How rarely?", "in_short": "Go!"})
    assert refused.status_code == 409
    assert "not_a_draft" in refused.text
    assert 'value="Go!"' in refused.text
    assert "<td>How often?</td><td>How rarely?</td>" in refused.text


async def test_a_campaign_called_new_does_not_hide_the_form(researcher):
    assert await create(researcher, name="New") == "/admin/campaigns/new-2"
    assert await create(researcher, name="New") == "/admin/campaigns/new-3"


async def test_an_unknown_campaign_is_not_found(researcher):
    for part in ("settings/question", "items", "share", "export", "finish/confirm"):
        assert (await researcher.get(f"/admin/campaigns/x/{part}")).status_code == 404
    assert (await researcher.post("/admin/campaigns/x/launch")).status_code == 404
    assert (await researcher.get("/admin/campaigns/%00/items")).status_code == 422


async def test_a_launch_without_items_says_what_to_do_and_changes_nothing(researcher):
    address = await create(researcher)
    page = await researcher.post(f"{address}/launch")
    assert page.status_code == 409
    assert "Upload them, then launch" in error_message(page)
    assert "state-draft" in (await researcher.get("/admin")).text


async def test_a_launch_is_asked_about_once_and_says_what_becomes_fixed(researcher):
    address = await create(researcher)
    assert "Upload items first, then launch" in (await researcher.get(f"{address}/launch/confirm")).text
    await upload(researcher, address)
    assert f'action="{address}/launch"' not in (await researcher.get(f"{address}/items")).text
    page = (await researcher.get(f"{address}/launch/confirm")).text
    assert f'action="{address}/launch"' in page
    assert "6 items with 10 judgments each need 60 judgments" in page
    assert "Can’t be changed later" in page
    assert f"{address}/try/hit" in page  # a HIT to try
    assert "the selection rule (easl);" in page
    assert page.count("/plan") == 1  # the tab


async def test_a_launch_says_what_it_fixes_for_a_goal_and_what_happens_at_its_end(researcher):
    address = await create(researcher, goal="best", best_items="3", rule="threshold", when_reached="pause")
    await upload(researcher, address)
    page = (await researcher.get(f"{address}/launch/confirm")).text
    assert "the selection rule (threshold), the number of best items (3), the threshold (50);" in page
    assert "Goal: We know the best 3 items" in page
    assert "the campaign pauses. The campaign ends at the latest once each item has 10 judgments." in page
    assert f'<a href="{address}/plan">Plan</a> estimates how many' in page
    assert "“best” suits this goal" in page


async def test_each_page_of_a_draft_has_the_steps_of_its_settings_with_the_same_marks(researcher):
    address = await create(researcher)
    for uploaded in (False, True):
        if uploaded:
            await upload(researcher, address)
        settings = (await researcher.get(f"{address}/settings/how-much")).text
        rail = settings.partition('class="rail"')[2].partition(" apart")[0]  # without the advanced settings
        titles, done = re.findall(r">([^<>]+)</(?:a|b)>", rail), rail.count("(done)")
        for part in ("", "/analysis", "/items", "/share", "/export"):
            page = (await researcher.get(f"{address}{part}")).text
            checklist = page.partition('class="checklist"')[2].partition("</ol>")[0]
            assert [title[2:] for title in re.findall(r">(\d [^<>]+)</(?:a|b)>", checklist)] == titles, part
            assert checklist.count("Done:") == done, part
    assert 'class="checklist"' not in (await researcher.get(f"{address}/preview")).text  # which has the visit's steps
    await researcher.post(f"{address}/launch")
    assert "To do: </span>" not in (await researcher.get(f"{address}/items")).text


async def test_after_each_step_the_page_says_what_is_next(researcher):
    address = await create(researcher)
    for step, what_is_next in (
        ("visit", f'It needs <a href="{address}/items">items</a> before you can launch.'),
        ("items", f'Next: <a href="{address}/items">upload items</a>.'),
    ):
        assert what_is_next in (await researcher.get(f"{address}/settings/{step}?done=saved")).text
    await upload(researcher, address)
    page = (await researcher.get(f"{address}/items?done=imported")).text
    for part in ("settings/how-much", "settings/quality", "preview", "launch/confirm"):
        assert f'<a href="{address}/{part}">' in page.partition("Next: choose")[2].partition("</p>")[0], part
    await researcher.post(f"{address}/launch")
    page = (await researcher.get(f"{address}/items?done=responses")).text
    assert f'Next: see <a href="{address}">the scores</a>' in page


async def test_finishing_and_deleting_are_asked_about_first(researcher):
    address = await launched(researcher)
    page = (await researcher.get(f"{address}/finish/confirm")).text
    assert f'action="{address}/finish"' in page
    assert (await researcher.get(f"{address}/pause/confirm")).status_code == 404
    draft = await create(researcher)
    assert f'action="{draft}/delete"' in (await researcher.get(f"{draft}/delete/confirm")).text
    assert (await researcher.post(f"{draft}/delete")).headers["location"] == "/admin?done=deleted"
    assert (await researcher.get(f"{draft}/items")).status_code == 404


async def test_a_launched_campaign_is_not_deleted(researcher):
    address = await launched(researcher)
    page = await researcher.post(f"{address}/delete")
    assert page.status_code == 409
    assert "only a draft, or a finished campaign without answers, can be deleted" in error_message(page)


async def test_an_unknown_action_is_not_found(researcher):
    address = await create(researcher)
    assert (await researcher.post(f"{address}/explode")).status_code == 404


async def test_an_unknown_page_of_a_campaign_is_not_found(researcher):
    address = await create(researcher)
    assert (await researcher.get(f"{address}/respones")).status_code == 404
    assert (await researcher.get(f"{address}/launch")).status_code == 405  # there, but for a form only


async def test_links_of_all_three_platforms_are_shown_and_work(researcher, client):
    address = await launched(researcher)
    page = html.unescape((await researcher.get(f"{address}/share")).text)
    links = re.findall(r'value="(http://easel.test/[^"]+)"', page)
    assert [re.sub(r"/[\w-]{12}", "/KEY", link) for link in links] == [
        "http://easel.test/link/KEY",
        f"http://easel.test/prolific/KEY?{PROLIFIC}",
        "http://easel.test/mturk/KEY",
    ]
    for link in links:
        assert (await client.get(re.sub(r"{{%(\w+)%}}", "1", link))).status_code == 200
    assert "Amazon closed Mechanical Turk on 2026-09-30" in page
    assert "No completion code is set" in page


async def test_the_share_page_says_where_the_campaign_stands(researcher):
    address = await create(researcher, prolific_completion_code="C123")
    page = (await researcher.get(f"{address}/share")).text
    assert "This campaign is a draft" in page
    assert '<code id="code-completed">C123</code>' in page


async def test_a_campaign_that_takes_no_answers_asks_nobody_to_share_its_link(researcher):
    address = await launched(researcher)
    assert "They click Start" in (await researcher.get(address)).text
    await researcher.post(f"{address}/pause")
    for archived in (False, True):
        for part in ("", "/share"):
            page = (await researcher.get(f"{address}{part}")).text
            assert "Its links ask people" in page or "its links ask people" in page, part
            assert "They click Start" not in page, part
            assert ("and archived" in page) == archived, part
        await researcher.post(f"{address}/archive")


async def test_the_completion_code_can_be_set_after_the_launch(researcher):
    address = await launched(researcher)
    share = (await researcher.get(f"{address}/share")).text
    assert "No completion code is set" in share
    assert f"{address}/settings?setting=prolific_completion_code" in share
    saved = await researcher.post(f"{address}/settings/visit", data={"prolific_completion_code": " C123 "})
    assert saved.headers["location"] == f"{address}/settings/visit?done=saved"
    assert '<code id="code-completed">C123</code>' in (await researcher.get(f"{address}/share")).text
    await researcher.post(
        f"{address}/settings/visit", data={"prolific_completion_code": "", "return_screened_out": "S1"}
    )
    share = (await researcher.get(f"{address}/share")).text
    assert '<th scope="row">do not qualify</th><td><code id="code-screened_out">S1</code>' in share
    assert "No completion code is set" in (await researcher.get(f"{address}/share")).text


async def test_a_completion_code_that_cannot_be_one_is_refused_beside_its_field(researcher):
    address = await launched(researcher, prolific_completion_code="C123")
    page = await researcher.post(f"{address}/settings/visit", data={"prolific_completion_code": "a b"})
    assert page.status_code == 422
    assert 'id="prolific_completion_code-error">Only letters, digits' in page.text
    assert 'value="a b"' in page.text
    assert '<code id="code-completed">C123</code>' in (await researcher.get(f"{address}/share")).text


async def test_after_the_launch_too_it_is_said_above_the_form_what_is_wrong_also_with_what_it_does_not_ask(researcher):
    address = await launched(researcher)
    page = await researcher.post(f"{address}/settings/how-much", data={"goal": "nope", "best_items": "nope"})
    assert page.status_code == 422
    said = page.text.partition("Nothing has been saved. Please correct these fields")[2].partition("</ul>")[0]
    assert re.findall("#([a-z_]+)", said) == ["goal", "best_items"]
    assert [page.text.count(f' id="{name}"') for name in ("goal", "best_items")] == [1, 1]
    assert '<p class="value">nope' not in page.text


async def test_every_setting_of_a_launched_campaign_can_be_linked_to(researcher):
    address = await launched(researcher)
    for setting in ("rule", "best_items", "question", "goal"):
        link = (await researcher.get(f"{address}/settings?setting={setting}")).headers["location"]
        page, _, place = link.partition("#")
        places = re.findall(r' id="([^"]+)"', (await researcher.get(page)).text)
        assert place in places
        assert len(places) == len({*places})
    assert (await researcher.get(f"{address}/settings?setting=nothing")).headers["location"].endswith("/question")
    assert (await researcher.get(f"{address}/edit")).headers["location"] == f"{address}/settings/question?moved=1"


async def test_a_launch_warns_of_what_prolific_needs_and_the_campaign_lacks(researcher):
    for code, limit in (("", ""), ("C123", ""), ("", "20"), ("C123", "20")):
        settings = {"people_from": "prolific", "prolific_completion_code": code, "hits_per_annotator": limit}
        address = await create(researcher, **settings)
        await upload(researcher, address)
        page = (await researcher.get(f"{address}/launch/confirm")).text
        assert ("no completion code" in page) == (not code)
        assert ("no limit on tasks per annotator" in page) == (not limit)
        assert ("come from Prolific" in page) == (not code or not limit)


async def test_the_limit_that_prolific_needs_can_be_set_after_the_launch_as_the_pages_say(researcher):
    address = await create(researcher, people_from="prolific")
    await upload(researcher, address)
    assert "before people arrive" in (await researcher.get(f"{address}/launch/confirm")).text
    await researcher.post(f"{address}/launch")
    assert "settings?setting=hits_per_annotator" in (await researcher.get(f"{address}/share")).text
    assert 'id="hits_per_annotator"' in (await researcher.get(f"{address}/settings/how-much")).text
    await researcher.post(f"{address}/settings/how-much", data={"hits_per_annotator": "20"})
    assert "no limit on tasks per annotator" not in (await researcher.get(f"{address}/share")).text


async def test_lines_of_a_text_end_in_one_way_although_browsers_send_another(engine, researcher):
    await create(researcher, instructions="Think.\r\n\r\n- twice\r\n- again")
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT instructions FROM campaigns")) == "Think.\n\n- twice\n- again"


async def test_the_items_page_lists_the_items_before_it_asks_for_more(researcher):
    address = await create(researcher)
    assert "items-title" not in (await researcher.get(f"{address}/items")).text
    await upload(researcher, address)
    page = (await researcher.get(f"{address}/items")).text
    assert '<h2 id="items-title">6 items</h2>' in page.partition('<form class="upload"')[0]


async def test_sharing_on_prolific_without_a_limit_per_annotator_is_warned_against(researcher):
    for limit, warned in (("", True), ("20", False)):
        address = await create(researcher, hits_per_annotator=limit)
        page = (await researcher.get(f"{address}/share")).text
        assert ("no limit on tasks per annotator" in page) == warned
        assert ("settings?setting=hits_per_annotator" in page) == warned


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000"])
async def test_links_that_work_on_this_machine_only_say_so(app, researcher, base):
    address = await create(researcher)
    assert "on this machine only" not in (await researcher.get(f"{address}/share")).text
    page = (await researcher.get(f"{base}{address}/share", headers={"cookie": cookie_of(researcher)})).text
    assert f"These links begin with {base}, so they work on this machine only." in page
    assert "EASEL_PUBLIC_URL" in page


def cookie_of(researcher) -> str:
    """Return the session as a header, because a client sends its cookies to one host only."""
    return "; ".join(f"{name}={value}" for name, value in researcher.cookies.items())


async def test_sharing_a_rehearsed_campaign_is_warned_against(engine, researcher):
    campaign = await create_running_campaign(engine)
    share = f"/admin/campaigns/{campaign.slug}/share"
    assert "easel simulate" not in (await researcher.get(share)).text
    simulated = await create_annotator(engine, campaign, platform="simulation")
    await submit_scores(engine, simulated, await try_to_lease_hit(engine, simulated))
    assert "1 task of this campaign was answered by <code>easel simulate</code>" in (await researcher.get(share)).text


async def test_a_file_with_a_mistake_imports_nothing_and_names_the_line(researcher):
    address = await create(researcher)
    page = await upload(researcher, address, "id,verb\n1,abide\n1,run\n")
    assert page.status_code == 422
    assert "Line 3" in error_message(page)
    assert item_count(page) is None


async def test_no_file_at_all_is_said_kindly(researcher):
    address = await create(researcher)
    assert (
        error_message(await researcher.post(f"{address}/items", data={}))
        == "Choose a file first. Nothing was imported."
    )
    page = await researcher.post(f"{address}/items/preview", headers={"accept": "application/json"})
    assert page.json()["error"]["code"] == "file_missing"


async def test_what_annotators_see_can_be_a_template(researcher):
    address = await create(researcher)
    await upload(researcher, address, show_by="template", template="{verb} ({gloss})")
    assert "abide (stay)" in (await researcher.get(f"{address}/items")).text


async def test_more_items_are_added_or_put_in_their_place(researcher):
    address = await create(researcher)
    await upload(researcher, address)
    more = "id,verb\n7,hop\n"
    await upload(researcher, address, more)
    assert "7 items" in (await researcher.get(f"{address}/items")).text
    await upload(researcher, address, more, replace="on")
    assert "1 item</h2>" in (await researcher.get(f"{address}/items")).text


async def test_items_are_shown_a_page_at_a_time(researcher):
    address = await create(researcher)
    await upload(researcher, address, "id,verb\n" + "".join(f"{k},verb number {k}.\n" for k in range(1, 121)))
    first = (await researcher.get(f"{address}/items")).text
    assert "verb number 50." in first
    assert "verb number 51." not in first
    assert 'href="?page=2#items-title" rel="next"' in first
    assert '<a href="?page=3#items-title" >Last</a>' in first
    last = (await researcher.get(f"{address}/items?page=3")).text
    assert "verb number 120." in last
    assert "101 to 120 of 120 items" in last
    assert 'rel="next"' not in last
    assert 'href="?page=2#items-title" rel="prev"' in last
    assert "101 to 120" in (await researcher.get(f"{address}/items?page=9")).text


async def test_a_preview_shows_columns_rows_and_a_guess_and_stores_nothing(researcher):
    address = await create(researcher)
    content = "id,sent,note\n" + "".join(f"{k},<b>{k}</b>,\n" for k in range(8))
    page = await researcher.post(f"{address}/items/preview", files={"file": ("a.csv", content)})
    assert "<b>8 rows</b>, in 9 lines of CSV" in page.text
    assert "&lt;b&gt;0&lt;/b&gt;" in page.text
    assert "<option selected>sent</option>" in page.text
    assert item_count(await researcher.get(f"{address}/items")) is None


async def test_our_script_is_told_of_the_progress_line_by_line(researcher):
    address = await create(researcher)
    content = "id,verb\n" + "".join(f"{k},verb {k}\n" for k in range(12_000))
    reply = await researcher.post(
        f"{address}/items", files={"file": ("a.csv", content)}, data={"shown": "verb"}, headers={"x-easel": "fetch"}
    )
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert [line["rows"] for line in lines[:-1]] == [5000, 10000, 12000, 12000]
    assert lines[-1] == {"done": f"{address}/items?done=imported"}


async def test_our_script_is_told_of_a_mistake_and_nothing_is_imported(researcher):
    address = await create(researcher)
    content = "id,verb\n" + "".join(f"{k},verb {k}\n" for k in range(6_000)) + "0,again\n"
    reply = await researcher.post(
        f"{address}/items", files={"file": ("a.csv", content)}, data={"shown": "verb"}, headers={"x-easel": "fetch"}
    )
    last = json.loads(reply.text.splitlines()[-1])
    assert last["error"]["code"] == "id_twice"
    assert "6002" in last["error"]["message"]
    assert item_count(await researcher.get(f"{address}/items")) is None


async def test_a_body_that_is_too_large_is_refused_with_413(app, researcher):
    address = await create(researcher)
    for name in ("content-length", "transfer-encoding"):
        content = b"x" * 1_100_000

        async def pieces(whole=content):
            for start in range(0, len(whole), 100_000):
                yield whole[start : start + 100_000]

        body = content if name == "content-length" else pieces()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        response = await researcher.post(f"{address}/settings/question", content=body, headers=kind)
        assert response.status_code == 413
        assert "Nothing was stored" in response.text


async def test_an_upload_may_be_larger_than_other_bodies_but_not_without_limit(researcher, database_url):
    address = await create(researcher)
    content = "id,verb\n" + "".join(f"{k},{'long ' * 500}\n" for k in range(1000))
    assert (await upload(researcher, address, content)).status_code == 303
    strict = create_app(Settings(database_url=database_url, max_upload_mb=1, max_media_mb=1))
    async with strict.router.lifespan_context(strict), http_client(strict) as client:
        client.cookies, client.headers = researcher.cookies, researcher.headers
        response = await upload(client, address, content)
    assert response.status_code == 413
    assert "more than the 2 MB allowed here" in response.text


async def test_a_zip_of_images_is_uploaded_beside_the_items(researcher):
    address = await create(researcher, content="image")
    page = await researcher.get(f"{address}/items")
    assert 'name="media"' in page.text
    content = {"file": ("photos.csv", table("a.png")), "media": ("photos.zip", zipped({"a.png": png()}))}
    reply = await researcher.post(f"{address}/items", files=content)
    assert reply.headers["location"].endswith("/items?done=imported")
    assert '<img src="/media/' in (await researcher.get(f"{address}/items")).text
    refused = await researcher.post(f"{address}/items", files=content | {"media": ("photos.zip", b"no zip")})
    assert (refused.status_code, "already" in refused.text) == (422, True)


async def test_results_of_mechanical_turk_become_responses(researcher):
    address = await launched(researcher, items_per_hit="2")
    results = (
        "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nA1,W1,1,2,10,90\nA2,W2,2,3,70,20\n"
    )
    reply = await researcher.post(f"{address}/responses", files={"file": ("r.csv", results)})
    assert reply.headers["location"].startswith(f"{address}/items?done=responses&"), reply.text
    page = (await researcher.get(reply.headers["location"])).text
    assert "Imported 2 responses on 3 items." in page
    assert "N/A" not in page
    assert "4 of 60" in (await researcher.get("/admin")).text
    again = await researcher.post(f"{address}/responses", files={"file": ("r.csv", results)})
    assert again.status_code == 409
    assert "All rows of this file" in error_message(again)
    assert "4 of 60" in (await researcher.get("/admin")).text


async def test_the_page_shows_a_file_that_can_be_imported_as_it_stands(researcher):
    address = await launched(researcher, items_per_hit="2")
    page = (await researcher.get(f"{address}/items")).text
    assert "<code>value</code>: between 0 and 100" in page
    (shown,) = re.findall(r'<pre class="example">(.+?)</pre>', page, re.DOTALL)
    assert shown == "hit,annotator,item,value\nh1,Ann,1,67\nh1,Ann,2,33\n"
    reply = await researcher.post(f"{address}/responses", files={"file": ("r.csv", shown)})
    page = (await researcher.get(reply.headers["location"])).text
    assert "Imported 1 response on 2 items." in page


async def test_the_items_page_leads_to_the_guide_whether_responses_can_be_imported_yet_or_not(researcher):
    address = await launched(researcher, items_per_hit="2")
    for campaign in (address, await create(researcher)):
        page = (await researcher.get(f"{campaign}/items")).text
        assert 'href="/admin/help/researchers/importing-responses"' in page


async def test_a_field_that_a_form_holds_twice_is_refused(researcher):
    body = "name=One&name=Two&question=Q"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = await researcher.post("/admin/campaigns/new", content=body, headers=form)
    assert reply.status_code == 422
    assert "contains the field “name” twice" in reply.text


async def test_the_page_says_how_many_scores_of_the_results_were_na(researcher):
    address = await launched(researcher, items_per_hit="2")
    results = "Input.id1,Input.id2,Answer.range1,Answer.range2,Answer.na2\n1,2,10,90,on\n2,3,70,20,\n"
    reply = await researcher.post(f"{address}/responses", files={"file": ("r.csv", results)})
    page = (await researcher.get(reply.headers["location"])).text
    assert "Scores left out because their item was marked N/A: 1." in page
    assert (await researcher.get(f"{address}/items?done=responses&responses=many")).status_code == 200


async def test_beside_the_import_a_finished_campaign_warns_that_its_scores_will_move(researcher):
    address = await launched(researcher)
    assert "still change its scores" not in (await researcher.get(f"{address}/items")).text
    await researcher.post(f"{address}/finish")
    assert "still change its scores" in (await researcher.get(f"{address}/items")).text


async def test_our_script_is_told_how_far_the_import_of_results_is(researcher):
    address = await launched(researcher, items_per_hit="2", judgments_per_item="10000")
    header = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n"
    results = header + "".join(f"A{k},W1,1,2,10,90\n" for k in range(60))
    how = {"headers": {"x-easel": "fetch"}, "files": {"file": ("r.csv", results)}}
    lines = [json.loads(line) for line in (await researcher.post(f"{address}/responses", **how)).text.splitlines()]
    *rows, last = lines
    assert [line["rows"] for line in rows] == sorted({line["rows"] for line in rows})
    assert rows[-1] == {"rows": 60}
    assert len(rows) > 1
    assert last["done"].startswith(f"{address}/items?done=responses&responses=60&")
    again = json.loads((await researcher.post(f"{address}/responses", **how)).text)
    assert again["error"]["code"] == "assignment_known"
    assert "120 of 60,000" in (await researcher.get("/admin")).text


@pytest.mark.parametrize(("status", "offered"), [("draft", 17), ("running", 24), ("answered", 33)])
async def test_downloads_are_offered_and_arrive(researcher, status, offered):
    address = await (create if status == "draft" else launched)(researcher, items_per_hit="2")
    if status == "answered":
        header = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2"
        results = f"{header}\nA1,W1,1,2,10,90\nA2,W2,2,1,70,20\n"
        await researcher.post(f"{address}/responses", files={"file": ("r.csv", results)})
    page = (await researcher.get(f"{address}/export")).text
    links = re.findall(r'href="([^"]+)" download', page)
    assert len(links) == offered
    for link in links:
        response = await researcher.get(link)
        assert response.status_code == 200
        assert response.headers["content-disposition"].startswith('attachment; filename="verbs-more-')
        names = ("responses", "unanswered", "assignments", "visits", "annotators", "decisions")
        assert response.text or link.endswith(tuple(f"{name}.jsonl" for name in names))  # nobody has come yet
    for missing in ("items.json", "settings.csv", "items", "items.exe"):
        assert (await researcher.get(f"{address}/export/{missing}")).status_code == 404


@pytest.mark.parametrize("address", ["/admin/campaigns/new", "/admin/campaigns/none/settings/question"])
async def test_forms_that_come_in_slowly_keep_nobody_from_the_database(app, researcher, client, address):
    many = app.state.database.pool.size()
    begun, go_on = asyncio.Barrier(many + 1), asyncio.Event()

    async def slowly():
        yield b"name="
        await begun.wait()
        await go_on.wait()

    kind = {"content-type": "application/x-www-form-urlencoded"}
    slow = [asyncio.create_task(researcher.post(address, content=slowly(), headers=kind)) for _ in range(many)]
    async with asyncio.timeout(10):
        await begun.wait()
        assert (await researcher.get("/admin")).status_code == 200
    go_on.set()
    assert {reply.status_code for reply in await asyncio.gather(*slow)} <= {404, 422}


async def test_an_archived_campaign_leaves_the_list_and_can_be_brought_back(researcher):
    address = await launched(researcher)
    refused = await researcher.post(f"{address}/archive")
    assert refused.status_code == 409
    assert "running, so it cannot be archived; pause or finish it first" in error_message(refused)
    await researcher.post(f"{address}/pause")
    assert (await researcher.post(f"{address}/archive")).headers["location"] == f"{address}?done=archived"
    assert "All campaigns are archived" in (page := (await researcher.get("/admin")).text)
    assert "Archived campaigns (1)" in page
    assert "Verbs &amp; more" in (await researcher.get("/admin?archived=true")).text
    assert "paused, archived" in (await researcher.get(f"{address}/share")).text
    assert (await researcher.post(f"{address}/restore")).headers["location"] == f"{address}?done=restored"
    assert "Verbs &amp; more" in (await researcher.get("/admin")).text


async def test_whatever_runs_is_in_the_list(researcher):
    address = await create(researcher)
    await upload(researcher, address)
    await researcher.post(f"{address}/archive")
    await researcher.post(f"{address}/launch")
    assert "Verbs &amp; more" in (await researcher.get("/admin")).text


async def test_the_list_says_how_campaigns_go(engine, researcher):
    campaign = await create_running_campaign(engine, items=5)
    assert "– " not in (await researcher.get("/admin")).text
    for name in ("a", "b"):
        me = await create_annotator(engine, campaign, name)
        await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[10.0, 30.0, 50.0, 70.0, 90.0])
    page = (await researcher.get("/admin")).text
    assert re.search(r'<td( data-head="Precision">± [\d.]+ points|>)</td>', page)
    assert '<time datetime="2026-01-05T09:00:00+00:00" data-ago' in page
    assert "not known yet" not in page
    assert "tasks/h" not in page  # both came long ago
