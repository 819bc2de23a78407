"""The export of HITs without an answer, and the reasons why answers do not count."""

import csv
import io
import json
from datetime import timedelta

import pytest

from app.annotation.hits import undo
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Form
from app.designs.registry import DESIGNS
from app.exports.registry import open_export_or_refuse
from app.exports.unanswered import UNANSWERED_EXPORT_COLUMNS
from app.quality import decisions
from app.record.revisions import switch_revision_if_it_misses_decisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import create_campaign_with_criteria
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.campaigns.drafts import create_launched_campaign, import_results
from tests.toys import register


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    register(monkeypatch.setitem)


async def rows_of(engine, slug, what, **how):
    file = await open_export_or_refuse(engine, slug, what, **how)
    return list(csv.DictReader(io.StringIO("".join([piece async for piece in file.chunks]))))


async def test_only_hits_without_an_answer_are_in_the_file_with_what_became_of_them(engine):
    campaign = await create_running_campaign(engine, items=30)
    people = {
        name: await create_annotator(engine, campaign, name) for name in ("answers", "leaves", "stays", "gives up")
    }
    hits = {name: await try_to_lease_hit(engine, who) for name, who in people.items()}
    await submit_scores(engine, people["answers"], hits["answers"])
    await execute_sql(engine, "UPDATE hits SET expires_at = :then WHERE id = :id", then=NOW, id=hits["leaves"].id)
    await execute_sql(engine, "UPDATE hits SET closed_at = :then WHERE id = :id", then=NOW, id=hits["gives up"].id)
    rows = await rows_of(engine, campaign.slug, "unanswered")
    assert list(rows[0]) == list(UNANSWERED_EXPORT_COLUMNS)
    told = {int(row["hit"]): row["state"] for row in rows}
    assert told == {hits["leaves"].id: "expired", hits["stays"].id: "open", hits["gives up"].id: "given_up"}
    for name in ("leaves", "stays", "gives up"):
        own = [row for row in rows if int(row["hit"]) == hits[name].id]
        assert [row["item"] for row in own] == [f"v{number}" for number in hits[name].items]
        assert [row["position"] for row in own] == [str(k + 1) for k in range(len(own))]
        assert {row["issued_at"] for row in own} == {NOW.isoformat()}
    pseudonyms = dict(await fetch_rows(engine, "SELECT worker_id, pseudonym FROM annotators"))
    assert {row["annotator"] for row in rows if row["state"] == "open"} == {pseudonyms["stays"]}
    assert {row["expires_at"] for row in rows if row["state"] == "expired"} == {NOW.isoformat()}


async def test_an_answer_that_was_entered_and_not_sent_is_told(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign))
    await execute_sql(engine, "UPDATE hits SET draft = '{}' WHERE id = :id", id=hit.id)
    assert {row["entered"] for row in await rows_of(engine, campaign.slug, "unanswered")} == {"true"}


@pytest.mark.parametrize("design", DESIGNS)
async def test_every_design_has_such_a_file(engine, design):
    campaign = await create_running_campaign(
        engine, design=design, design_settings={"baseline": "v0"} if design == "baseline" else {}, items=12
    )
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign))
    rows = await rows_of(engine, campaign.slug, "unanswered")
    assert [row["item"] for row in rows] == [f"v{number}" for number in hit.items]


async def test_of_systems_it_has_the_segment_that_was_shown(engine):
    campaign = await create_campaign_of_systems(engine)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign))
    rows = await rows_of(engine, campaign.slug, "unanswered")
    assert len(rows) == len(hit.items)
    assert all(row["segment"] and row["shown_as"] for row in rows)


async def test_imported_hits_in_which_nothing_could_be_judged_were_answered(engine):
    campaign = await create_launched_campaign(engine)
    header = "WorkerId,Input.id1,Answer.range1,Answer.na1\n"
    await import_results(engine, campaign, header + "Ann,v0,,on\n")
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 1
    assert await rows_of(engine, campaign.slug, "unanswered") == []


async def test_programs_and_pages_offer_it_to_those_who_may_see_people(researcher, engine):
    campaign = await create_running_campaign(engine)
    await try_to_lease_hit(engine, await create_annotator(engine, campaign))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export")).text
    assert "Shown, not answered" in page
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/unanswered.jsonl")
    assert {json.loads(line)["state"] for line in reply.text.splitlines()} == {"open"}


# Why an answer does not count


async def judged_by(engine, *names, **settings):
    """A campaign in which each of these people answered two HITs, and their rows' ids."""
    campaign = await create_running_campaign(engine, items=30, judgments_per_item=50, **settings)
    for name in names:
        who = await create_annotator(engine, campaign, name)
        for _ in range(2):
            await submit_scores(engine, who, await try_to_lease_hit(engine, who))
    return campaign, dict(await fetch_rows(engine, "SELECT worker_id, id FROM annotators"))


async def test_the_file_of_responses_says_which_are_left_out_and_why(engine):
    campaign, people = await judged_by(engine, "Ann", "Ben", "Cy")
    single = await fetch_value(engine, "SELECT min(seq) FROM responses WHERE annotator_id = :id", id=people["Ben"])
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, people["Ann"], reason="=spam", now=NOW)
        await decisions.exclude_answer(connection, campaign, single, reason="a slip", now=NOW)
        await decisions.hold_annotator(connection, campaign, people["Cy"], reason="to ask", now=NOW)
    before = await rows_of(engine, campaign.slug, "responses")
    assert {(row["counts"], row["left_out"], row["revision"]) for row in before} == {("true", "", "0")}
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    rows = await rows_of(engine, campaign.slug, "responses")
    columns = ("counts", "left_out", "left_out_reason", "left_out_at", "barred", "revision")
    told = {(row["name"], row["seq"] == str(single)): tuple(row[name] for name in columns) for row in rows}
    assert told == {
        ("A1", False): ("false", "annotator_excluded", "'=spam", NOW.isoformat(), "excluded", "1"),
        ("A2", True): ("false", "answer_excluded", "a slip", NOW.isoformat(), "", "1"),
        ("A2", False): ("true", "", "", "", "", "1"),
        ("A3", False): ("true", "", "", "", "held", "1"),
    }


async def test_a_restored_annotators_answers_count_and_give_no_reason(engine):
    campaign, people = await judged_by(engine, "Ann")
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, people["Ann"], reason="spam", now=NOW)
        await decisions.restore_excluded_annotator(
            connection, campaign, people["Ann"], reason="no spam", now=NOW + timedelta(hours=1)
        )
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    rows = await rows_of(engine, campaign.slug, "responses")
    assert {(row["counts"], row["left_out"], row["barred"]) for row in rows} == {("true", "", "")}


async def test_an_answer_that_was_changed_is_replaced_once_the_new_one_counts(engine):
    campaign = await create_running_campaign(engine, items=30, judgments_per_item=50)
    who = await create_annotator(engine, campaign, "Ann")
    hit = await try_to_lease_hit(engine, who)
    await submit_scores(engine, who, hit)
    async with borrow_autocommit_driver(engine) as connection:
        last = await undo.load_last_answer_for_change_or_refuse(connection, who, now=NOW)
        await undo.replace_answer_and_return_receipt_or_refuse(
            connection, who, hit.id, last.seq, Form(last.form, source="form"), now=NOW
        )
    rows = await rows_of(engine, campaign.slug, "responses")
    first, second = (rows[: len(hit.items)], rows[len(hit.items) :])
    assert {(row["counts"], row["left_out"]) for row in first} == {("true", "")}
    assert {(row["counts"], row["left_out"]) for row in second} == {("false", "not_yet")}
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    rows = await rows_of(engine, campaign.slug, "responses")
    first, second = (rows[: len(hit.items)], rows[len(hit.items) :])
    assert {(row["counts"], row["left_out"], row["left_out_reason"]) for row in first} == {
        ("false", "replaced", undo.WITHDRAWAL_REASON)
    }
    assert {(row["counts"], row["left_out"]) for row in second} == {("true", "")}


async def test_imported_hits_without_a_score_say_it_too(engine):
    campaign = await create_launched_campaign(engine)
    header = "WorkerId,Input.id1,Answer.range1,Answer.na1\n"
    await import_results(engine, campaign, header + "Ann,v0,,on\nBen,v1,,on\n")
    ann = await fetch_value(engine, "SELECT min(id) FROM annotators WHERE worker_id = 'Ann'")
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, ann, reason="spam", now=NOW)
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    rows = await rows_of(engine, campaign.slug, "responses")
    assert {row["item"]: row["left_out"] for row in rows} == {"v0": "annotator_excluded", "v1": ""}


async def test_of_criteria_every_row_says_it(engine):
    campaign = await create_campaign_with_criteria(engine)
    header = "hit,annotator,item,value,criterion\n"
    lines = [f"h1,Ann,v{k},{10 * k},{one.name}\n" for one in campaign.criteria for k in range(3)]
    await import_results(engine, campaign, header + "".join(lines))
    ann = await fetch_value(engine, "SELECT id FROM annotators")
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, ann, reason="spam", now=NOW)
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert [row["left_out"] for row in await rows_of(engine, campaign.slug, "responses")] == ["annotator_excluded"] * 6
