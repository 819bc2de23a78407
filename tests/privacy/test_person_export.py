"""A person's copy of their data has every cell about them, or says why not."""

import csv
import io
import json
import zipfile
from datetime import timedelta

import pytest

from app.errors import Conflict, Invalid, NotFound
from app.privacy.inventory import PERSONAL_TABLES
from app.privacy.person_export import build_person_zip_and_log
from app.privacy.person_search import find_people_and_log_search, load_only_person_or_refuse
from tests.annotation.hits.campaigns import NOW, create_annotator, fetch_rows, fetch_value
from tests.privacy.people import (
    SUBMISSION_ID,
    WORKER_ID,
    create_answered_campaign,
    create_person_with_link,
)

LATER = NOW + timedelta(hours=1)


async def person_zip(engine, campaign, term="A1"):
    async with engine.begin() as connection:
        person = await load_only_person_or_refuse(connection, campaign, term)
        content = await build_person_zip_and_log(connection, campaign, person, now=LATER)
    return zipfile.ZipFile(io.BytesIO(content))


async def test_every_cell_about_the_person_is_in_it_or_has_a_reason_why_not(engine):
    campaign, _ = await create_answered_campaign(engine)
    document = json.loads((await person_zip(engine, campaign)).read("person.json"))
    for table in PERSONAL_TABLES:
        stored = [name for column in table.columns for name in column.names]
        for row in document["tables"].get(table.name, []):
            left_out = [f"{table.name}.{name}" for name in stored if name not in row]
            assert [name for name in left_out if not document["not_included"].get(name)] == []
    answers = document["tables"]["responses"]
    assert len(answers) == 2
    stored_values = await fetch_rows(engine, "SELECT values FROM responses WHERE extra IS NOT NULL ORDER BY seq")
    assert [answer["values"] for answer in sorted(answers, key=lambda one: one["seq"])] == [
        values for (values,) in stored_values
    ]
    text = json.dumps(document, ensure_ascii=False)
    for told in (WORKER_ID, SUBMISSION_ID, "study-77aa", "my own comment", "my mother tongue", "1280x720", "verb 0"):
        assert told in text


async def test_it_holds_nothing_of_other_people(engine):
    campaign, _ = await create_answered_campaign(engine)
    archive = await person_zip(engine, campaign)
    other, pseudonym = await fetch_value(engine, "SELECT (id, pseudonym) FROM annotators WHERE worker_id = 'ben'")
    everything = "".join(archive.read(name).decode() for name in archive.namelist())
    assert pseudonym not in everything
    assert "another session" not in everything
    assert other not in {row["annotator_id"] for row in json.loads(archive.read("person.json"))["tables"]["hits"]}


async def test_its_tables_open_as_csv(engine):
    campaign, _ = await create_answered_campaign(engine)
    archive = await person_zip(engine, campaign)
    rows = list(csv.DictReader(io.StringIO(archive.read("tables/responses.csv").decode())))
    assert len(rows) == 2
    assert json.loads(rows[0]["extra"])["remarks"]["hit"]["comment"] == "my own comment"


@pytest.mark.parametrize("term", [WORKER_ID, SUBMISSION_ID, "A1", "a1", f"  {WORKER_ID} ", "pseudonym"])
async def test_a_person_is_found_by_what_names_them(engine, term):
    campaign, _ = await create_answered_campaign(engine)
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators WHERE worker_id = :id", id=WORKER_ID)
    async with engine.begin() as connection:
        found = await find_people_and_log_search(connection, campaign, pseudonym if term == "pseudonym" else term)
    assert [(person.name, person.answers) for person in found] == [("A1", 2)]


async def test_a_person_with_a_link_is_found_by_name_but_not_by_its_number(engine):
    campaign, _ = await create_answered_campaign(engine)
    await create_person_with_link(engine, campaign, "Ada Lovelace")
    async with engine.begin() as connection:
        assert [person.name for person in await find_people_and_log_search(connection, campaign, "ada lovelace")] == [
            "A3"
        ]
        assert await find_people_and_log_search(connection, campaign, "1") == []


async def test_the_log_says_that_someone_searched_but_not_for_whom(engine):
    campaign, _ = await create_answered_campaign(engine)
    async with engine.begin() as connection:
        await find_people_and_log_search(connection, campaign, WORKER_ID)
    (line,) = await fetch_rows(engine, "SELECT about, after FROM audit_log WHERE action = 'people.searched'")
    assert line == ("", {"found": 1})


@pytest.mark.parametrize(
    ("term", "kind", "code"),
    [
        ("unknown", NotFound, "person_not_found"),
        ("", Invalid, "person_missing"),
        ("x" * 501, Invalid, "person_too_long"),
        ("shared", Conflict, "person_ambiguous"),
    ],
)
async def test_who_is_not_found_or_not_alone_is_refused(engine, term, kind, code):
    campaign, _ = await create_answered_campaign(engine)
    for name in ("cleo", "dan"):
        await create_annotator(engine, campaign, name, "prolific", assignment="shared")
    async with engine.begin() as connection:
        with pytest.raises(kind) as refusal:
            await load_only_person_or_refuse(connection, campaign, term)
    assert refusal.value.code == code
