"""Questions that are asked once before the start: stored, exported, and groups of annotators."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.analysis import load_answers as stored
from app.analysis.annotator_table import ANNOTATOR_TABLE
from app.analysis.result_types import Options
from app.annotation.onboarding.entry_questions import (
    AskingCondition,
    EntryQuestion,
    NumberLimits,
    error_by_wrong_question_line,
    format_question_line,
    parse_question_line,
)
from app.annotation.onboarding.profile_answers import load_entry_answers_by_annotator
from app.annotation.platforms.easel_results import is_export_refusing_unread_columns
from app.campaigns.settings import CampaignSettings
from app.database.bulk import open_snapshot
from app.exports.registry import open_export_or_refuse
from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_rows, form_fields
from tests.annotation.onboarding.visits import leases_of, open_campaign_link, send_form, step_of

LINES = ["language: What is your native language? | English | German | another", "job?: What do you do?"]


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine, questions=LINES)


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("age: How old are you?", EntryQuestion("age", "How old are you?", (), False)),
        (" age?:  Under 30? | yes | no ", EntryQuestion("age", "Under 30?", ("yes", "no"), True)),
        (
            "from: Where? | here | screen out: there",
            EntryQuestion("from", "Where?", ("here", "there"), False, screening_choices=("there",)),
        ),
        ("age: How old? | number", EntryQuestion("age", "How old?", (), False, number=NumberLimits())),
        (
            "age: How old? | number from 0 to 120.5 | screen out: over 65 | screen out: under 18",
            EntryQuestion("age", "How old?", (), False, number=NumberLimits(0, 120.5, 18, 65)),
        ),
        ("kind: What is x? | number | letter", EntryQuestion("kind", "What is x?", ("number", "letter"), False)),
        (
            "dialect: Which? | only if: language = German",
            EntryQuestion("dialect", "Which?", (), False, only_if=AskingCondition("language", ("German",))),
        ),
        (
            "a?: Which? | only if: b = 1 = 2 | x | y | only if: b=3",
            EntryQuestion("a", "Which?", ("x", "y"), True, only_if=AskingCondition("b", ("1 = 2", "3"))),
        ),
        ("a: At what time: now?", EntryQuestion("a", "At what time: now?", (), False)),
    ],
)
def test_a_question_is_a_line(line, question):
    assert parse_question_line(line) == question


PARTS = st.text(st.characters(categories=("L", "N", "P", "Zs"), exclude_characters="|"), max_size=30).map(
    lambda text: "a" + " ".join(text.split())
)
ANSWERS = st.lists(PARTS, min_size=1, max_size=3).map(tuple)
QUESTIONS = st.builds(
    EntryQuestion,
    name=st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,39}", fullmatch=True),
    question=PARTS,
    choices=st.just(()) | st.lists(PARTS, min_size=2, max_size=9, unique=True).map(tuple),
    optional=st.booleans(),
    screening_choices=st.just(()),
    number=st.none(),
    only_if=st.none() | st.builds(AskingCondition, st.just("before"), ANSWERS),
)


@st.composite
def screening_questions(draw):
    """Draw a question that may screen people out, by a choice or by a number."""
    question = draw(QUESTIONS)
    if question.choices:
        return question._replace(screening_choices=tuple(draw(st.sets(st.sampled_from(question.choices[1:])))))
    minimum, under, over, maximum = sorted(draw(st.lists(st.integers(-99, 99), min_size=4, max_size=4)))
    drawn = [draw(st.sampled_from((None, limit / 4))) for limit in (minimum, maximum, under, over)]
    return question._replace(number=NumberLimits(*drawn))


@given(QUESTIONS | screening_questions())
def test_a_question_is_read_back_from_its_line(question):
    read_back = parse_question_line(format_question_line(question))
    assert read_back._replace(screening_choices=()) == question._replace(screening_choices=())
    assert {*read_back.screening_choices} == {*question.screening_choices}


@given(screening_questions(), st.integers(-200, 200))
def test_a_number_screens_out_those_beyond_its_limits_and_no_others(question, quarters):
    number = quarters / 4
    limits = question.number or NumberLimits()
    expected = (limits.screened_under is not None and number < limits.screened_under) or (
        limits.screened_over is not None and number > limits.screened_over
    )
    assert limits.screens_out(number) is expected
    assert not question.screens_out("")


def test_each_wrong_line_has_its_own_error():
    unknown = "why: Why? | only if: job = a"
    errors = error_by_wrong_question_line(f"age: How old?\n\njob: Which? | a | a\nAge: Really?\n Where?\n{unknown}\n")
    assert errors.keys() == {"job: Which? | a | a", "Age: Really?", "Where?", unknown}
    assert "only once" in errors["job: Which? | a | a"]
    assert "another question has this name" in errors["Age: Really?"]


def test_what_is_no_question_is_refused_with_the_reason(subtests):
    for lines, words in (
        (["How old are you?"], "must be a name"),
        (["my age: How old?"], "must be a name"),
        (["age: How old? | 30"], "give 2 to 50 choices"),
        (["age: How old? | 30 |"], "give 2 to 50 choices"),
        (["age: How old? | 30 | 30"], "only once"),
        (["age: How old?", "Age: Really?"], "different name"),
        (["age: How old? | number from a"], "“a” is no number"),
        (["age: How old? | number to 1e10"], "is no number from -1e9 to 1e9"),
        (["age: How old? | number from 9 to 8"], "at least one number must"),
        (["age: How old? | number from 9 | screen out: over 8"], "at least one number must"),
        (["age: How old? | number | screen out: 8"], "write “screen out: under 18”"),
        (["age: How old? | number | screen out: under 8 | screen out: under 9"], "each once at most"),
        (["from: Where? | screen out: here | screen out: there"], "at least one choice must"),
        (["from: Where? | here | screen out:"], "give 2 to 50 choices"),
        (["a: Which? | x | y", "b: Why? | only if: a"], "write “only if: language = German”"),
        (["a: Which? | x | y", "b: Where? | x | y", "c: Why? | only if: a = x | only if: b = x"], "same earlier"),
        (["a: Which? | x | y", "b: Why? | only if: a = z"], "a has no choice “z”"),
        (["b: Why? | only if: a = x", "a: Which? | x | y"], "no question with choices before it has the name “a”"),
        (["a: Which? | x | y | only if: a = x"], "no question with choices before it"),
        (["a: Which?", "b: Why? | only if: a = x"], "no question with choices before it"),
    ):
        with subtests.test(lines=lines, words=words), pytest.raises(ValidationError, match=words):
            CampaignSettings(name="A", question="B?", questions=lines)


def test_a_form_sends_them_as_lines():
    sent = {"name": "A", "question": "B?", "questions": "\n".join([*LINES, "", " "])}
    settings = CampaignSettings.model_validate(sent)
    assert settings.questions == LINES


async def test_they_are_asked_before_the_first_hit_and_never_again(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    assert step_of(page) == "questions"
    assert await leases_of(engine) == 0
    page = await send_form(client, address, page, **{"question-language": "German", "question-job": " nurse "})
    assert form_fields(page)["hit"]
    page, _ = await open_campaign_link(client, campaign, SESSION_ID="s2")
    assert form_fields(page)["hit"]
    assert await fetch_rows(engine, "SELECT said FROM visits") == [({"language": "German", "job": "nurse"},)]


async def test_what_is_missing_is_named_and_what_was_entered_stays(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, page, **{"question-job": "nurse"})
    assert "Please answer “What is your native language?” too" in page
    assert 'value="nurse"' in page
    page = await send_form(client, address, page, **{"question-language": "Klingon"})
    assert "must be one of English, German, another" in page
    page = await send_form(client, address, page, **{"question-language": "German", "question-job": "x" * 501})
    assert "must have 500 characters at most" in page
    assert await leases_of(engine) == 0


SCREENING = [
    "age: How old are you? | number from 0 to 120 | screen out: under 18",
    "sight: Do you see colours? | yes | screen out: no",
    "years?: For how many years have you worked? | number from 0",
]


@pytest.mark.parametrize(
    ("answers", "stored", "is_screened_out"),
    [
        (("18", "yes", "2,5"), {"age": "18", "sight": "yes", "years": "2.5"}, False),
        (("٤٠", "yes", ""), {"age": "40", "sight": "yes"}, False),
        (("17.5", "yes", ""), {"age": "17.5", "sight": "yes"}, True),
        (("40", "no", ""), {"age": "40", "sight": "no"}, True),
    ],
)
async def test_answers_that_screen_people_out_end_the_visit_kindly(client, engine, answers, stored, is_screened_out):
    campaign = await create_running_campaign(engine, questions=SCREENING, return_screened_out="OUT1")
    page, address = await open_campaign_link(client, campaign)
    sent = dict(zip(("question-age", "question-sight", "question-years"), answers, strict=True))
    page = await send_form(client, address, page, **sent)
    assert ("Thank you for your interest" in page) is is_screened_out
    assert ("OUT1" in page) is is_screened_out
    assert await leases_of(engine) == (not is_screened_out)
    outcome = "failed" if is_screened_out else "passed"
    assert await fetch_rows(engine, "SELECT outcome, said FROM visits") == [(outcome, stored)]


PETS = [
    "pet: Do you have a pet? | no | a dog | a cat",
    "walks: How often is it out? | number | screen out: over 9 | only if: pet = a dog | only if: pet = a cat",
    "leash: Is it on a leash? | yes | no | only if: pet = a dog",
    "metal: Is the leash of metal? | yes | no | only if: leash = yes",
]


@pytest.mark.parametrize(
    ("answers", "stored"),
    [
        ({"pet": "no"}, {"pet": "no"}),
        ({"pet": "no", "walks": "99", "leash": "perhaps", "metal": "yes"}, {"pet": "no"}),
        ({"pet": "a cat", "walks": "0", "leash": "yes", "metal": "yes"}, {"pet": "a cat", "walks": "0"}),
        ({"pet": "a dog", "walks": "3", "leash": "no"}, {"pet": "a dog", "walks": "3", "leash": "no"}),
    ],
)
async def test_a_question_that_depends_on_another_answer_is_asked_after_it_alone(client, engine, answers, stored):
    campaign = await create_running_campaign(engine, questions=PETS)
    page, address = await open_campaign_link(client, campaign)
    await send_form(client, address, page, **{f"question-{name}": answer for name, answer in answers.items()})
    ((said, outcome),) = await fetch_rows(engine, "SELECT said, outcome FROM visits WHERE step = 'questions'")
    assert (said, outcome) == (stored, "passed")


async def test_after_the_answer_that_it_depends_on_a_question_must_be_answered(client, engine):
    campaign = await create_running_campaign(engine, questions=PETS)
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, page, **{"question-pet": "a dog", "question-walks": "1"})
    assert "Please answer “Is it on a leash?” too." in page
    assert "Answer this only if your answer to “Do you have a pet?” is: a dog / a cat" in page
    assert await fetch_rows(engine, "SELECT said FROM visits WHERE step = 'questions'") == []


async def test_who_was_screened_out_cannot_answer_again(client, engine):
    campaign = await create_running_campaign(engine, questions=SCREENING)
    first, address = await open_campaign_link(client, campaign)
    answers = {"question-age": "17", "question-sight": "yes"}
    await send_form(client, address, first, **answers)
    page = await send_form(client, address, first, **answers | {"question-age": "18"})
    assert "Thank you for your interest" in page
    page, _ = await open_campaign_link(client, campaign, SESSION_ID="s2")
    assert "Please return the study on Prolific" in page
    assert await leases_of(engine) == 0


async def test_what_is_no_possible_number_is_refused_and_what_was_entered_stays(client, engine, subtests):
    campaign = await create_running_campaign(engine, questions=SCREENING)
    page, address = await open_campaign_link(client, campaign)
    for age, words in (
        ("forty", "must be a number"),
        ("1,000", "must be a number"),
        ("121", "must be from 0 to 120"),
        ("-1", "must be from 0 to 120"),
        ("1e999", "must be from 0 to 120"),
        ("", "Please answer “How old are you?” too"),
    ):
        with subtests.test(age=age):
            page = await send_form(client, address, page, **{"question-age": age, "question-sight": "yes"})
            assert words in page
            assert f'value="{age}"' in page
    assert await leases_of(engine) == 0


async def two_who_answer(client, engine, campaign):
    """Let two people answer a HIT: one speaks German and names a job, the other speaks English and names none."""
    for person, said in (("p1", ("German", "=nurse")), ("p2", ("English", ""))):
        page, address = await open_campaign_link(client, campaign, PROLIFIC_PID=person)
        sent = dict(zip(("question-language", "question-job"), said, strict=True))
        page = await send_form(client, address, page, **sent)
        assert (await client.post(address, data=form_fields(page))).status_code == 200


async def test_what_annotators_answered_is_kept_and_what_they_left_open_is_not_there(client, engine, campaign):
    await two_who_answer(client, engine, campaign)
    async with engine.connect() as connection:
        said = await load_entry_answers_by_annotator(connection, campaign.id)
    assert said == {1: {"language": "German", "job": "=nurse"}, 2: {"language": "English"}}


async def test_other_steps_and_people_who_were_screened_out_add_no_answers(client, engine):
    lines = ["age: How old are you? | number | screen out: under 18"]
    campaign = await create_running_campaign(engine, questions=lines)
    for person, age in (("p1", "40"), ("p2", "17")):
        page, address = await open_campaign_link(client, campaign, PROLIFIC_PID=person)
        await send_form(client, address, page, **{"question-age": age})
    await execute_sql(
        engine,
        "INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, taken_at) "
        "VALUES (:campaign, 1, 'training', 1, 'passed', now())",
        campaign=campaign.id,
    )
    async with engine.connect() as connection:
        said = await load_entry_answers_by_annotator(connection, campaign.id)
    assert said == {1: {"age": "40"}}


async def test_what_they_chose_is_in_the_table_of_annotators(client, engine, campaign):
    await two_who_answer(client, engine, campaign)
    async with open_snapshot(engine) as connection:
        table = ANNOTATOR_TABLE.fit(await stored.load_campaign_answers(connection, campaign.criteria[0]), Options())
    rows = [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]
    assert [(row["name"], row["asked_language"]) for row in rows] == [("A1", "German"), ("A2", "English")]
    assert "asked_job" not in rows[0]  # their own words may say who they are


async def test_the_answers_are_in_the_export_of_responses_which_can_be_imported(client, engine, campaign):
    await two_who_answer(client, engine, campaign)
    file = await open_export_or_refuse(engine, campaign.slug, "responses")
    rows = list(csv.DictReader(io.StringIO("".join([piece async for piece in file.chunks]))))
    assert {(row["name"], row["asked_language"], row["asked_job"]) for row in rows} == {
        ("A1", "German", "'=nurse"), ("A2", "English", ""),
    }  # fmt: skip
    assert is_export_refusing_unread_columns(1, list(rows[0]))


async def test_the_range_of_a_number_is_said_before_it_is_entered_and_no_browser_refuses_it_in_its_words(
    client, engine
):
    campaign = await create_running_campaign(engine, questions=["age: How old are you? | number from 18 to 99"])
    page, _ = await open_campaign_link(client, campaign)
    assert "A number from 18 to 99." in page
    (field,) = re.findall(r"<input type=\"number\"[^>]*>", page)
    assert 'aria-describedby="question-age-range"' in field
    assert "min=" not in field
    assert "max=" not in field
