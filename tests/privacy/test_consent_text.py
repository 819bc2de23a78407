"""The consent text that settings give, and what warns that a text and the settings differ."""

from typing import Any

import pytest

from app.campaigns.lifecycle import campaign_of_unsaved_settings
from app.campaigns.settings import CampaignSettings
from app.privacy.consent_text import StudyFacts, consent_warnings, draft_consent_text
from tests.annotation.hits.campaigns import create_running_campaign, fetch_value

STUDY: dict[str, Any] = {
    "study_controller": "the University of York",
    "study_contact": "study@example.org",
    "study_purpose": "how people judge the tone of sentences",
    "ethics_approval": "York Ethics Board, 2026-17",
    "minutes_per_hit": 2,
    "pay": "0.40 GBP a task",
    "identifiers_days": 30,
    "free_text_days": 90,
    "telemetry_days": 90,
    "withdrawal": "self",
}


@pytest.fixture
def engine(app):
    return app.state.database


async def test_the_text_has_all_that_the_settings_say_and_no_blank(engine):
    campaign = await create_running_campaign(engine, **STUDY)
    text = draft_consent_text(StudyFacts.from_campaign(campaign))
    for said in (
        *("the University of York", "study@example.org", "the tone of sentences", "2026-17", "0.40 GBP a task"),
        *("about 2 minutes", "ids and names: 30 days", "about you: 90 days", "take that back for 24 hours"),
    ):
        assert said in text
    assert "[" not in text


async def test_what_the_settings_do_not_say_is_a_blank_and_the_limit_of_the_server_counts(engine):
    campaign = await create_running_campaign(engine, identifiers_days=90)
    text = draft_consent_text(StudyFacts.from_campaign(campaign), max_days=60)
    for said in ("[institution]", "[name and address]", "[amount]", "ids and names: 60 days", "device): 60 days"):
        assert said in text


async def test_a_text_made_from_the_settings_has_no_warning(engine):
    draft = await create_running_campaign(engine, launched=False, **STUDY)
    text = draft_consent_text(StudyFacts.from_campaign(draft))
    campaign = await create_running_campaign(engine, consent=text, **STUDY)
    assert consent_warnings(campaign) == []


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"consent": "We keep names for 60 days."}, "says 60 days, but no setting"),
        ({"consent": "We keep names for 60 days."}, "after 30 and 90 days, but the consent text does not say so"),
        ({"consent": "Write to [name and address]."}, "still has blanks: [name and address]"),
        ({"consent": "Take part!"}, "does not contain the contact of the settings"),
        ({"consent": "Take part!", "study_contact": ""}, "do not say whom to write to"),
        ({"consent": "Take part!", "identifiers_days": None}, "without a time limit"),
        ({"consent": "", "questions": ["age: How old are you?"]}, "there is no consent text"),
    ],
)
async def test_what_is_missing_or_contradicts_the_settings_is_a_warning(engine, settings, warning):
    campaign = await create_running_campaign(engine, **STUDY | settings)
    assert warning in " ".join(consent_warnings(campaign))


@pytest.mark.parametrize(
    ("purpose", "sentence"),
    [
        ("how people judge tone", "We want to find out how people judge tone."),
        ("to train a model", "We use your answers to train a model."),
        ("research on politeness.", "We use your answers for research on politeness."),
        ("How people judge tone?", "We want to find out how people judge tone."),
        ("To train GPT.", "We use your answers to train GPT."),
        ("", "We want to find out [what you want to find out]."),
    ],
)
def test_the_purpose_is_a_sentence_that_people_would_say(purpose, sentence):
    facts = StudyFacts.from_study_form({"study_controller": "a lab", "study_purpose": purpose})
    assert f"This study is run by a lab. {sentence}" in draft_consent_text(facts)


def test_data_without_a_time_limit_are_named_together():
    facts = StudyFacts.from_study_form({"identifiers_days": "30"})
    said = (
        "ids and names: 30 days after the study ends; comments and answers to questions about you and how you answered"
    )
    assert said in draft_consent_text(facts)
    assert draft_consent_text(facts).count("no fixed end") == 1


@pytest.mark.parametrize(
    ("language", "consent"),
    [
        ("de", "Namen: 30 Tage, Kommentare: 90 Tage nach Ende der Studie. Antworten löschen wir nach 10 Jahren."),
        ("de", "Namen: 30 Tage, Kommentare: nach 90 Tagen. Antworten löschen wir nach 3.650 Tagen."),
        ("en", "Names: 30 days, comments: 90 days. All answers are deleted after 3,650 days."),
        ("en", "Names: one month (30 days), comments: 3 months. Answers are deleted after 10 years."),
        ("es", "Nombres: 30 días, comentarios: 90 días. Las respuestas se borran a los 10 años."),
        ("fr", "Noms : 30 jours, commentaires : 90 jours. Les réponses sont effacées après 10 ans."),
        ("ja", "氏名は30日、コメントは90日保管します。回答は10年後に削除します。11月15日に始まりました。"),
        ("zh", "姓名保存30天，评论保存90天。回答在10年后删除。"),
        ("ar", "الأسماء: 30 يومًا، التعليقات: 90 يومًا. تُحذف الإجابات بعد 10 سنوات."),
    ],
)
async def test_numbers_of_days_are_found_in_each_language_and_in_longer_units(engine, language, consent):
    study = STUDY | {"telemetry_days": None, "everything_days": 3650, "language": language}
    about = " study@example.org. York Ethics Board, 2026-17."
    campaign = await create_running_campaign(engine, **study, consent=consent + about)
    assert consent_warnings(campaign) == []
    other = await create_running_campaign(engine, **study | {"identifiers_days": 45}, consent=consent + about)
    assert "after 45 days, but the consent text does not say so" in " ".join(consent_warnings(other))


async def test_a_text_in_english_on_pages_in_another_language_is_a_warning_until_it_is_translated(engine):
    draft = await create_running_campaign(engine, launched=False, language="de", **STUDY)
    text = draft_consent_text(StudyFacts.from_campaign(draft))
    warning = "Annotators’ pages are in Deutsch, but the consent text is the English one"
    campaign = await create_running_campaign(engine, language="de", consent=text, **STUDY)
    assert warning in " ".join(consent_warnings(campaign))
    changed = await create_running_campaign(engine, language="de", consent=text.replace("2026-17", "2026-17!"), **STUDY)
    assert warning in " ".join(consent_warnings(changed))
    for language in ("en", "browser"):
        english = await create_running_campaign(engine, language=language, consent=text, **STUDY)
        assert warning not in " ".join(consent_warnings(english)), language


async def test_links_are_no_blanks(engine):
    campaign = await create_running_campaign(engine, consent="See [our page](https://example.org).", **STUDY)
    assert "blanks" not in " ".join(consent_warnings(campaign))


async def test_the_launch_page_warns_and_the_step_writes_a_text_from_what_is_entered(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, consent="Write to [contact].", **STUDY)
    address = f"/admin/campaigns/{campaign.slug}"
    assert "still has blanks" in (await researcher.get(f"{address}/launch/confirm")).text
    step = (await researcher.get(f"{address}/settings/visit")).text
    assert "still has blanks" in step.partition('id="consent-notes"')[2].partition("</div>")[0]
    form = {"study_controller": "the University of Kyiv", "identifiers_days": "14", "telemetry_days": "soon"}
    text = (await researcher.post(f"{address}/try/consent-text", data=form)).text
    assert "run by the University of Kyiv" in text
    assert "ids and names: 14 days" in text
    assert "device): no fixed end" in text
    consent = await fetch_value(engine, "SELECT visit_settings ->> 'consent' FROM campaigns")
    assert consent == "Write to [contact]."


def test_a_pay_that_changed_since_the_text_was_written_is_named():
    study = {"name": "Verbs", "question": "How?", "currency": "GBP", "pay_per_hit": 0.5}
    written = draft_consent_text(
        StudyFacts.from_campaign(campaign_of_unsaved_settings(CampaignSettings.model_validate(study)))
    )

    def warnings_with_pay(amount: float) -> str:
        settings = CampaignSettings.model_validate(study | {"pay_per_hit": amount, "consent": written})
        return " ".join(consent_warnings(campaign_of_unsaved_settings(settings)))

    changed = "The consent text says “£0.50 a task”, but the settings pay £0.75 a task."
    assert changed in warnings_with_pay(0.75)
    assert "the settings pay" not in warnings_with_pay(0.5)


@pytest.mark.parametrize("typed", ["0.5", "0.50", ".5", " 0.500 "])
def test_a_text_states_the_saved_pay_however_it_was_typed(typed):
    written = draft_consent_text(StudyFacts.from_study_form({"pay_per_hit": typed, "currency": "GBP"}))
    assert "- **Pay:** £0.50 a task." in written
    assert warnings_on_pay(written, pay_per_hit=0.5) == []


def test_a_pay_that_is_no_number_is_a_blank():
    for typed in ("half", "nan", "-1", "0"):
        facts = StudyFacts.from_study_form({"pay_per_hit": typed, "currency": "GBP"})
        assert "- **Pay:** [amount]." in draft_consent_text(facts)


@pytest.mark.parametrize(
    ("line", "settings", "is_warned"),
    [
        ("0.50 GBP a task", {"pay_per_hit": 0.5}, False),
        ("0.5 GBP for each task, about 9 GBP an hour", {"pay_per_hit": 0.5}, False),
        ("10.5 GBP a task", {"pay_per_hit": 0.5}, True),
        ("0.55 GBP a task", {"pay_per_hit": 0.5}, True),
        ("£1,250.00 a task", {"pay_per_hit": 1250}, False),
        ("$0.50 a task", {"pay_per_hit": 0.5}, True),
        ("£0.50 a task", {"pay_per_hit": 0.5, "currency": "USD"}, True),
        ("£0.14 a task", {"pay_per_hit": 1.5 / 11}, False),
        ("£1.50 in all", {"pay_per_hit": 0.15, "hits_per_annotator": 10, "repeat_items": True}, False),
        ("£1.50 in all", {"pay_per_hit": 0.15, "hits_per_annotator": 10, "repeat_items": False}, True),
        ("0.40 GBP a task", {"pay": "0.4 GBP a task"}, False),
        ("10.40 GBP a task", {"pay": "0.40 GBP a task"}, True),
        ("0.40 GBP a task, paid within a week", {"pay": "0.40 GBP a task"}, False),
        ("a book token", {"pay": "a book"}, False),
        ("a bookshelf", {"pay": "a book"}, True),
    ],
)
def test_amounts_are_compared_as_numbers(line, settings, is_warned):
    assert bool(warnings_on_pay(f"- **Pay:** {line}.", **settings)) == is_warned


def warnings_on_pay(consent: str, **settings: Any) -> list[str]:
    study = {"name": "Verbs", "question": "How?", "currency": "GBP", "consent": consent} | settings
    campaign = campaign_of_unsaved_settings(CampaignSettings.model_validate(study))
    return [warning for warning in consent_warnings(campaign) if "the settings pay" in warning]
