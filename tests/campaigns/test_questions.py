"""The questions that come with Easel: each makes a campaign whose HIT can be seen."""

import html
import re

import pytest

from app.campaigns import lifecycle
from app.campaigns.question_names import QUESTION_NAMES
from app.campaigns.starter_questions import (
    QUESTION_FILES_FOLDER,
    load_starter_question_or_refuse,
    load_starter_questions,
    starter_questions_by_activity,
)
from app.designs.registry import DESIGNS
from app.errors import NotFound
from tests.annotation.hits.campaigns import NOW
from tests.campaigns.drafts import import_items

ITEMS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(12))
CHOOSE = "/admin/campaigns/new/question"
FORM = "/admin/campaigns/new"


def test_every_file_is_offered():
    assert sorted(path.stem for path in QUESTION_FILES_FOLDER.iterdir()) == sorted(QUESTION_NAMES)


def test_every_way_of_asking_has_a_question():
    assert {one.settings.design for one in load_starter_questions()} == set(DESIGNS)


def test_every_question_says_what_it_is_and_where_it_is_from(subtests):
    for name in QUESTION_NAMES:
        with subtests.test(name=name):
            about = load_starter_question_or_refuse(name).about
            assert about.title
            assert about.description.endswith(".")
            assert about.source


def test_a_question_that_is_not_there_is_refused():
    with pytest.raises(NotFound):
        load_starter_question_or_refuse("../demo")


@pytest.mark.parametrize("name", QUESTION_NAMES)
async def test_a_campaign_begins_with_the_question_and_shows_its_hit(engine, researcher, name):
    address = f"{FORM}?template={name}"
    form = html.unescape((await researcher.get(address)).text)
    settings = load_starter_question_or_refuse(name).settings
    assert settings.question in form
    assert load_starter_question_or_refuse(name).about.title in form
    async with engine.begin() as connection:
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=NOW)
    await import_items(engine, campaign, ITEMS)
    page = html.unescape((await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit")).text)
    assert settings.question in page
    assert sum(f"verb {k}" in page for k in range(12)) >= (settings.items_per_hit or 1)


def test_questions_are_grouped_by_what_annotators_do():
    groups = starter_questions_by_activity()
    assert [name for name, questions in groups.items() if questions] == ["Rate", "Compare", "Rank", "Label"]
    assert sorted(one.name for questions in groups.values() for one in questions) == sorted(QUESTION_NAMES)
    assert {one.settings.design for one in groups["Compare"]} == {"pairwise", "baseline"}
    assert {one.settings.design for one in groups["Rank"]} == {"ranking", "best_worst"}


async def test_the_page_offers_all_of_them_in_their_groups_and_then_none_and_a_file(researcher):
    page = (await researcher.get(CHOOSE)).text.partition("<main")[2].partition("</main>")[0]
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    assert headings == ["Rate", "Compare", "Rank", "Label", "Start from scratch", "From a campaign file"]
    assert page.count('<svg viewBox="0 0 72 44"') == len(QUESTION_NAMES)
    assert f'href="{FORM}"' in page
    for name in QUESTION_NAMES:
        assert f'href="{FORM}?template={name}"' in page


async def test_what_was_chosen_is_told_again_beside_what_is_wrong(researcher):
    page = await researcher.post(f"{FORM}?template=sentiment", data={"question": "", "design": "slider"})
    assert page.status_code == 422
    assert "<b>Sentiment</b>" in page.text


async def test_a_form_of_an_unknown_question_is_not_found(researcher):
    assert (await researcher.get(f"{FORM}?template=none")).status_code == 404


async def test_a_campaign_is_made_from_a_file_that_another_gave(researcher, engine):
    async with engine.begin() as connection:
        campaign = await lifecycle.create_draft_campaign_or_refuse(
            connection, load_starter_question_or_refuse("sentiment").settings, now=NOW
        )
    await import_items(engine, campaign, ITEMS)
    page = (await researcher.get("/admin/campaigns/sentiment/export")).text
    for address in ("/admin/campaigns/sentiment/campaign.yaml", "/admin/campaigns/sentiment/campaign.yaml?items=true"):
        assert f'href="{address}"' in page
    download = await researcher.get(address)
    assert download.headers["content-disposition"].startswith('attachment; filename="sentiment-campaign-20')
    sent = {"file": ("sentiment.yaml", download.content, "application/yaml")}
    made = await researcher.post(f"{FORM}/file", files=sent)
    assert made.headers["location"] == "/admin/campaigns/sentiment-2/items?done=created"
    again = (await researcher.get("/admin/campaigns/sentiment-2/campaign.yaml?items=true")).text
    assert again == download.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name: A\nquesion: B\n", "Line 2, <code>quesion</code>: There is no setting with this name."),
        ("name: A\nquestion: B\nitems: {file: /etc/passwd}\n", "did not come with this file"),
        ("", "This file is empty"),
    ],
)
async def test_a_file_that_is_wrong_is_told_on_the_page(researcher, content, words):
    reply = await researcher.post(f"{FORM}/file", files={"file": ("a.yaml", content, "application/yaml")})
    assert reply.status_code == 422
    assert words in reply.text
    assert "No campaigns yet" in (await researcher.get("/admin")).text


async def test_without_a_file_the_page_asks_for_one(researcher):
    assert "Choose a file first" in (await researcher.post(f"{FORM}/file")).text
