"""Annotators' pages speak the language of the campaign or of the browser; researchers and programs read English."""

import json
import re
from typing import Any

import pytest

from app.designs.registry import DESIGNS
from app.http.languages.catalogue import read_messages_of_language
from app.http.templating import script_translations_json_or_empty
from tests.annotation.hits.campaigns import create_running_campaign, form_fields

GERMAN = {"accept-language": "de-DE,de;q=0.9,en;q=0.5"}
SCRIPT = {"x-easel": "fetch", "accept": "application/json"}


@pytest.fixture
def engine(app):
    return app.state.database


def read_by_people(page):
    """The text of a page and of its labels, without the words for scripts."""
    page = re.sub(r"<script.*?</script>|<style.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    labels = re.findall(r'(?:aria-label|title|placeholder|data-again|data-announce)="([^"]*)"', page)
    return " ".join((re.sub(r"<[^>]*>", " ", page), *labels))


# Of three words or more: a shorter one may be the same in both languages, or part of another word.
ENGLISH = [
    m.id
    for m in read_messages_of_language("de")
    if isinstance(m.id, str) and m.id.count(" ") > 1 and "%" not in m.id and "{" not in m.id
]


def of_english(page):
    return [words for words in ENGLISH if words in read_by_people(page)]


async def test_a_campaign_speaks_to_each_as_their_browser_asks(client, engine):
    campaign = await create_running_campaign(engine)
    link = f"/link/{campaign.link_key}"
    german = await client.get(link, headers=GERMAN)
    assert '<html lang="de" dir="ltr">' in german.text
    assert ">Beginnen<" in german.text
    assert of_english(german.text) == []
    english = await client.get(link, headers={"accept-language": "nl"})
    assert '<html lang="en" dir="ltr">' in english.text
    assert ">Start<" in english.text


async def test_a_campaign_with_a_language_speaks_it_to_all(client, engine):
    campaign = await create_running_campaign(engine, language="de")
    assert '<html lang="de"' in (await client.get(f"/link/{campaign.link_key}", headers={"accept-language": "fr"})).text


@pytest.mark.parametrize("design", DESIGNS)
async def test_nothing_on_a_hit_is_left_in_english(client, engine, design):
    settings = {"baseline": {"baseline": "v0"}, "magnitude": {"reference": "x"}}.get(design, {})
    asked: dict[str, Any] = {
        "cannot_be_judged": True,
        "comment_on": "both",
        "flag_on": "both",
        "flag_reasons": ["Kaputt"],
    }
    campaign = await create_running_campaign(engine, design=design, design_settings=settings, language="de", **asked)
    page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
    assert 'name="hit"' in page
    assert of_english(page) == []


async def test_numbers_of_sets_are_counted_in_the_language(client, engine):
    campaign = await create_running_campaign(engine, language="de", hits_per_annotator=1500)
    page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
    assert "0 von 1.500 Aufgaben erledigt" in page


async def test_refusals_are_translated_by_their_code_for_people_and_for_scripts(client, engine):
    campaign = await create_running_campaign(engine, language="de")
    link = f"/link/{campaign.link_key}"
    page = await client.get(link + "?t=broken", headers=GERMAN)
    assert page.status_code == 422
    assert "Der Link dieser Seite ist beschädigt." in page.text
    reply = await client.post(link, data={"token": "broken"}, headers=SCRIPT | GERMAN)
    assert reply.json()["error"]["code"] == "token_invalid"
    assert reply.json()["error"]["message"].startswith("Der Link dieser Seite ist beschädigt.")


async def test_a_refused_answer_speaks_the_language_of_the_campaign(client, engine):
    campaign = await create_running_campaign(engine, language="de")
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    fields = form_fields((await client.get(address)).text)
    score = next(name for name in fields if name.startswith("score-"))
    page = await client.post(f"/link/{campaign.link_key}", data=fields | {score: "many"})
    assert "Einer der Werte ist keine Zahl. Ihre Eingaben bleiben erhalten." in page.text


async def test_who_may_choose_a_language_keeps_it_while_they_begin_and_work(client, engine):
    link = f"/link/{(await create_running_campaign(engine)).link_key}"
    page = (await client.get(f"{link}?lang=fr", headers=GERMAN)).text
    assert '<html lang="fr"' in page
    assert '<a href="?lang=ja" lang="ja" hreflang="ja">日本語</a>' in page
    begun = await client.post(f"{link}?lang=fr", headers=GERMAN)
    assert begun.headers["location"].endswith("&lang=fr")
    work = (await client.get(begun.headers["location"], headers=GERMAN)).text
    assert '<html lang="fr"' in work
    assert "&amp;lang=en" in work


async def test_there_is_no_choice_where_the_campaign_has_a_language_and_none_that_is_not_spoken(client, engine):
    link = f"/link/{(await create_running_campaign(engine, language='de')).link_key}"
    page = (await client.get(f"{link}?lang=fr")).text
    assert '<html lang="de"' in page
    assert 'class="languages' not in page
    link = f"/link/{(await create_running_campaign(engine, name='Another')).link_key}"
    assert '<html lang="en"' in (await client.get(f"{link}?lang=xx%22%3E")).text


def test_a_page_brings_the_words_of_its_own_scripts_alone():
    slider, ranking = (json.loads(script_translations_json_or_empty("de", design)) for design in ("slider", "ranking"))
    assert "Order, highest first: %(order)s." in slider.keys() - ranking.keys()
    assert "%(name)s, no place" in ranking.keys() - slider.keys()
    assert "Nothing yet." in slider.keys() & ranking.keys()
    assert script_translations_json_or_empty("en", "slider") == ""


async def test_scripts_get_their_words_with_the_page_and_none_in_english(client, engine):
    campaign = await create_running_campaign(engine)
    german = (await client.get(f"/link/{campaign.link_key}", headers=GERMAN)).text
    assert '<script type="application/json" id="words">' in german
    assert "Wird gesendet …" in german.encode().decode("unicode-escape", "ignore") or "Wird gesendet \\u2026" in german
    assert 'id="words"' not in (await client.get(f"/link/{campaign.link_key}")).text


async def test_researchers_and_programs_are_answered_in_english(researcher, client):
    page = await researcher.get("/admin", headers=GERMAN)
    assert '<html lang="en"' in page.text
    reply = await client.get("/api/v1/campaigns", headers=GERMAN)
    assert re.match(r"[A-Z][a-z]+ ", reply.json()["error"]["message"])
    assert "Sie" not in reply.text
