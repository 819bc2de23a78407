"""A campaign without a name is called by the first words of its question, by every way of creating it."""

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from tests.annotation.hits.campaigns import fetch_value
from tests.campaigns.drafts import create_draft

LONG_QUESTION = "How likely is it that a reader who knows nothing of the matter believes this sentence?"


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How often?", "How often?"),
        (" How often\nis it  used? ", "How often is it used?"),
        (LONG_QUESTION, "How likely is it that a reader who knows nothing…"),
        (
            "How likely, in your own honest opinion, as of today, is it?",
            "How likely, in your own honest opinion, as of…",
        ),
        (
            "この文章はどのくらい自然だと思いますか。" * 5,
            "この文章はどのくらい自然だと思いますか。" * 2 + "この文章はどのくら…",
        ),
    ],
)
def test_the_name_is_made_of_the_first_words_of_the_question(question, name):
    assert CampaignSettings(question=question).name == name
    assert CampaignSettings(question=question, name=" ").name == name
    assert len(name) <= 50


def test_a_name_that_is_given_stays():
    assert CampaignSettings(question="How often?", name=" Verbs ").name == "Verbs"


def test_a_name_that_is_no_text_is_refused():
    for name in (5, None, "\u200b"):
        with pytest.raises(ValidationError) as refusal:
            CampaignSettings.model_validate({"question": "How often?", "name": name})
        assert [error["loc"] for error in refusal.value.errors()] == [("name",)]


def test_without_a_question_only_the_question_is_missing():
    for question in ({}, {"question": " "}, {"question": 5}):
        with pytest.raises(ValidationError) as refusal:
            CampaignSettings.model_validate(question)
        assert [error["loc"] for error in refusal.value.errors()] == [("question",)]


async def test_campaigns_with_the_same_question_get_names_of_their_own(engine):
    names = [(await create_draft(engine, name="")).name for _ in range(3)]
    assert names == ["How frequent?", "How frequent? (2)", "How frequent? (3)"]
    assert (await create_draft(engine, name="How frequent? (2)")).name == "How frequent? (2)"


async def test_the_name_that_was_derived_is_changed_and_taken_away_on_its_page(researcher, engine):
    campaign = await create_draft(engine, name="")
    address = f"/admin/campaigns/{campaign.slug}/settings/question"
    assert 'value="How frequent?"' in (await researcher.get(address)).text
    for entered, name in (("Verbs", "Verbs"), (" ", "How rare?")):
        reply = await researcher.post(address, data={"name": entered, "question": "How rare?", "design": "slider"})
        assert reply.status_code == 303
        assert await fetch_value(engine, "SELECT name FROM campaigns") == name
