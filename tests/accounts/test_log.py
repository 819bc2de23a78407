"""The audit log: written with the change, never rewritten, found and exported."""

import csv
import io
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from app.accounts import tokens, users
from app.campaigns import empty_campaigns, settings_edits
from app.database.audit_log import (
    ACTION_KIND_TITLES,
    ACTION_PHRASES,
    CURRENT_ACTOR,
    Actor,
    log_change,
    names_with_old_and_new_value_texts,
    old_and_new_values_that_differ,
)
from app.errors import Conflict
from tests.annotation.hits.campaigns import NOW, create_running_campaign, execute_sql, fetch_rows, fetch_value
from tests.campaigns.drafts import apply_action, create_draft

LINES = "SELECT who, way, action, about, before, after FROM audit_log ORDER BY id"


@pytest.fixture(autouse=True)
def acting():
    """Set the acting researcher, as a guard does."""
    token = CURRENT_ACTOR.set(Actor("bea", "page"))
    yield
    CURRENT_ACTOR.reset(token)


async def test_a_change_of_settings_says_who_and_from_what_to_what(engine):
    campaign = await create_draft(engine, judgments_per_item=3)
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update={"judgments_per_item": 7})
        )
    assert (await fetch_rows(engine, LINES))[-1] == (
        *("bea", "page", "settings.changed", ""),
        *({"judgments_per_item": 3}, {"judgments_per_item": 7}),
    )


async def test_what_was_saved_as_it_was_is_no_change(engine):
    campaign = await create_draft(engine)
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(connection, campaign.slug, lambda before: before)
    assert [row[2] for row in await fetch_rows(engine, LINES)] == ["campaign.created"]


async def test_a_refused_change_leaves_no_line(engine):
    campaign = await create_draft(engine)
    with pytest.raises(Conflict):
        await apply_action(engine, campaign, "launch")
    assert [row[2] for row in await fetch_rows(engine, LINES)] == ["campaign.created"]


@pytest.mark.parametrize("statement", ["UPDATE audit_log SET who = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"])
async def test_the_database_changes_no_line_and_takes_none_out_whoever_asks(engine, statement):
    await create_draft(engine)
    with pytest.raises(DBAPIError, match="neither changed nor taken out"):
        await execute_sql(engine, statement)
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log") == 1


async def test_the_name_of_a_removed_researcher_stays(engine):
    async with engine.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        bea = await users.insert_and_return_user_or_refuse(connection, "bea", now=NOW)
        await tokens.issue_token_or_refuse(connection, bea.id, "notebook", now=NOW)
        await users.delete_user_unless_self_or_last_owner(connection, bea.id, actor_id=admin.id)
    assert [row[:4] for row in await fetch_rows(engine, LINES)] == [
        ("bea", "page", "user.added", "bea"),
        ("bea", "page", "token.created", "notebook"),
        ("bea", "page", "user.removed", "bea"),
    ]


async def test_a_deleted_draft_stays_in_the_log(engine):
    campaign = await create_draft(engine)
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)
    assert (await fetch_rows(engine, LINES))[-1][2] == "campaign.deleted"
    assert await fetch_value(engine, "SELECT campaign FROM audit_log ORDER BY id DESC LIMIT 1") == campaign.slug


async def test_an_action_that_nobody_knows_is_a_mistake_of_ours(engine):
    async with engine.begin() as connection:
        with pytest.raises(KeyError):
            await log_change(connection, "campaign.exploded")


def test_every_action_is_of_a_kind_that_can_be_searched():
    assert {action.partition(".")[0] for action in ACTION_PHRASES} == set(ACTION_KIND_TITLES)


def test_only_what_differs_is_told():
    assert old_and_new_values_that_differ({"a": 1, "b": 2}, {"a": 1, "b": 3}) == ({"b": 2}, {"b": 3})


async def searched(researcher, query=""):
    return (await researcher.get(f"/admin/log.jsonl?{query}")).text.splitlines()


def test_lists_are_told_in_words():
    after = {"notes": ["Read as UTF-16.", "Ids are numbers."], "reasons": ["torn", "in Thai"], "prior": [1.0, 2.5]}
    line = SimpleNamespace(before={"reasons": []}, after=after)
    assert names_with_old_and_new_value_texts(cast("Row[Any]", line)) == [
        ("reasons", "nothing", "torn; in Thai"),
        ("notes", None, "Read as UTF-16. Ids are numbers."),
        ("prior", None, "1.0; 2.5"),
    ]


def test_settings_within_a_setting_are_told_in_words():
    before, after = (
        {"design": {"baseline": "", "ties_allowed": True}},
        {"design": {"baseline": "v0"}, "asked": [{"a": 1}]},
    )
    line = SimpleNamespace(before=before, after=after)
    assert names_with_old_and_new_value_texts(cast("Row[Any]", line)) == [
        ("design", "baseline: nothing; ties allowed: yes", "baseline: v0"),
        ("asked", None, "a: 1"),
    ]


async def test_the_log_is_searched_by_person_kind_words_and_day(engine, researcher):
    campaign = await create_running_campaign(engine, name="Verbs")
    await apply_action(engine, campaign, "pause")
    CURRENT_ACTOR.set(Actor("cat", "command"))
    await create_draft(engine, name="100% nouns")
    assert [json.loads(line)["who"] for line in await searched(researcher, "kind=campaign")] == [*["bea"] * 3, "cat"]
    (of_cat,) = await searched(researcher, "who=cat")
    assert json.loads(of_cat)["after"] == {"name": "100% nouns"}
    assert len(await searched(researcher, "words=0%25+NOUNS")) == 1
    assert len(await searched(researcher, "words=verbs&kind=campaign")) == 3
    assert await searched(researcher, "kind=token") == []
    assert await searched(researcher, "until=2020-01-01") == []
    assert len(await searched(researcher, "since=2020-01-01&kind=campaign")) == 4
    assert len(await searched(researcher, "since=0001-01-01&until=9999-12-31&kind=campaign")) == 4


async def test_words_that_postgresql_cannot_read_are_refused_by_page_and_download(researcher):
    for address in ("/admin/log", "/admin/log.csv", "/admin/log.jsonl"):
        assert (await researcher.get(f"{address}?words=%00")).status_code == 422


async def test_the_log_of_a_campaign_has_no_line_of_others(engine, researcher):
    campaign = await create_running_campaign(engine)
    await create_draft(engine, name="Nouns")
    rows = csv.DictReader(io.StringIO((await researcher.get(f"/admin/campaigns/{campaign.slug}/log.csv")).text))
    assert [(row["campaign"], row["action"]) for row in rows] == [
        (campaign.slug, "campaign.created"),
        (campaign.slug, "campaign.launch"),
    ]


async def test_the_page_says_what_was_changed_and_is_paged(engine, researcher):
    campaign = await create_draft(engine)
    seeds = iter(range(60))
    for _ in range(60):
        async with engine.begin() as connection:
            await settings_edits.store_changed_settings_or_refuse(
                connection, campaign.slug, lambda before: before.model_copy(update={"seed": next(seeds)})
            )
    first = (await researcher.get(f"/admin/campaigns/{campaign.slug}/log")).text
    assert "<dt>seed</dt><dd><del>58</del>" in first
    assert "1 to 50 of 61 lines" in first
    last = (await researcher.get(f"/admin/campaigns/{campaign.slug}/log?page=2")).text
    assert "created the campaign" in last
    assert "created the campaign" not in first


async def test_programs_read_the_log(engine, app, client):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "notebook", now=NOW)
    client.headers["authorization"] = f"Bearer {token}"
    found = (await client.get(f"/api/v1/campaigns/{campaign.slug}/log?size=1")).json()
    assert found["total"] == 2
    assert found["lines"][0]["action"] == "campaign.launch"
    await client.post(f"/api/v1/campaigns/{campaign.slug}/transitions", json={"action": "pause"})
    (newest,) = (await client.get("/api/v1/log?size=1")).json()["lines"]
    assert (newest["who"], newest["way"], newest["action"]) == ("admin", "api", "campaign.pause")
    assert (await client.get("/api/v1/log?kind=nothing")).status_code == 422


async def test_who_fails_to_log_in_is_noted_without_what_they_typed(engine, client):
    async with engine.begin() as connection:
        await users.find_oldest_user_or_create_admin(connection, now=NOW)
    await client.post("/login", data={"name": "admin", "password": "hunter2hunter2"})
    await client.post("/login", data={"name": "correct horse battery", "password": ""})
    failed = [(row[0], row[2], row[3]) for row in await fetch_rows(engine, LINES)]
    assert failed == [("somebody", "login.failed", "admin"), ("somebody", "login.failed", "an unknown name")]
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE audit_log::text ~ 'hunter2|horse'") == 0
