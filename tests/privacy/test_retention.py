"""Finished campaigns lose what their retention names, when its time is over and not before."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.annotation.onboarding.participant_lists import change_participant_list_and_count_changes
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.errors import Conflict
from app.privacy.retention import erase_outdated_data
from app.privacy.withdrawal import store_withdrawal_code_hash
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    store_settings,
    wait_until,
)
from tests.imports.interruption import let_imports_wait_in_their_first_transaction
from tests.privacy.people import (
    TRACES,
    WORKER_ID,
    create_answered_campaign,
    create_person_with_link,
    dump_database,
    posterior_rows,
    verification_is_clean,
)
from tests.privacy.test_imports import import_answers

DAY = timedelta(days=1)
ALL_KINDS = {"identifiers_days": 30, "free_text_days": 30, "telemetry_days": 30}
OF_IDENTIFIERS = {WORKER_ID, "session-6e1f", "study-77aa", "Ada Lovelace"}


async def create_finished_campaign(engine, **settings):
    campaign, _ = await create_answered_campaign(engine)
    await create_person_with_link(engine, campaign, "Ada Lovelace")
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    await store_settings(engine, **settings)
    return campaign


async def traces_left(engine, folder):
    dump = await dump_database(engine, folder)
    return {trace for trace in TRACES if trace in dump}


async def test_nothing_goes_before_its_time_and_all_of_it_afterwards(engine, tmp_path):
    campaign = await create_finished_campaign(engine, **ALL_KINDS)
    before = await posterior_rows(engine)
    await erase_outdated_data(engine, now=NOW + 30 * DAY - timedelta(seconds=1))
    assert await traces_left(engine, tmp_path) == set(TRACES)
    await erase_outdated_data(engine, now=NOW + 30 * DAY)
    assert await traces_left(engine, tmp_path) == set()
    assert await posterior_rows(engine) == before
    assert await verification_is_clean(engine, campaign)


async def test_each_kind_of_data_has_a_time_of_its_own(engine, tmp_path):
    await create_finished_campaign(engine, identifiers_days=10, telemetry_days=20)
    await erase_outdated_data(engine, now=NOW + 10 * DAY)
    assert await traces_left(engine, tmp_path) == set(TRACES) - OF_IDENTIFIERS
    await erase_outdated_data(engine, now=NOW + 20 * DAY)
    assert await traces_left(engine, tmp_path) == set(TRACES) - OF_IDENTIFIERS - {"1280x720"}


async def test_the_limit_of_the_server_holds_where_the_campaign_says_more_or_nothing(engine, tmp_path):
    await create_finished_campaign(engine, identifiers_days=90)
    await erase_outdated_data(engine, now=NOW + 30 * DAY, max_days=30)
    assert await traces_left(engine, tmp_path) == set()


@pytest.mark.parametrize("action", ["running", "paused"])
async def test_campaigns_that_are_not_finished_keep_all(engine, tmp_path, action):
    await create_finished_campaign(engine, everything_days=1, **ALL_KINDS)
    await execute_sql(engine, "UPDATE campaigns SET status = :status", status=action)
    await erase_outdated_data(engine, now=NOW + 400 * DAY, max_days=1)
    assert await traces_left(engine, tmp_path) == set(TRACES)


async def test_more_rows_than_a_batch_are_all_erased_and_counted(engine):
    campaign = await create_finished_campaign(engine, identifiers_days=1)
    await execute_sql(
        engine,
        """INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
           SELECT :campaign, 'prolific', 'worker ' || n, 'name ' || n, :now FROM generate_series(1, 2500) AS n""",
        campaign=campaign.id,
        now=NOW,
    )
    await erase_outdated_data(engine, now=NOW + DAY)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE NOT starts_with(worker_id, 'erased:')") == 0
    (counts,) = await fetch_rows(engine, "SELECT counts -> 'annotators', kind FROM retention_runs")
    assert counts == (2503, "identifiers")
    await erase_outdated_data(engine, now=NOW + 2 * DAY)
    assert await fetch_value(engine, "SELECT count(*) FROM retention_runs") == 1
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE action = 'people.retention'") == 1


async def test_an_alert_comes_a_week_before_and_once(engine):
    await create_finished_campaign(engine, identifiers_days=30)
    for hours in (0, 1, 2):
        await erase_outdated_data(engine, now=NOW + 23 * DAY + timedelta(hours=hours))
    alerts = await fetch_rows(engine, "SELECT about FROM alerts WHERE kind = 'retention'")
    assert alerts == [("ids and names of annotators",)]


async def warn_of_deletion(engine, *, warned_at):
    """Let the server look once, and set back its alert to this time."""
    await erase_outdated_data(engine, now=warned_at)
    await execute_sql(engine, "UPDATE alerts SET raised_at = :at WHERE kind = 'retention'", at=warned_at)


async def test_no_campaign_is_deleted_before_its_alert_is_a_week_old(engine):
    await create_finished_campaign(engine, everything_days=30)
    await warn_of_deletion(engine, warned_at=NOW + 90 * DAY)
    await erase_outdated_data(engine, now=NOW + 97 * DAY - timedelta(seconds=1))
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 1
    await erase_outdated_data(engine, now=NOW + 97 * DAY)
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0


async def test_the_whole_campaign_is_deleted_and_the_log_keeps_a_line(engine):
    await create_finished_campaign(engine, everything_days=365)
    await warn_of_deletion(engine, warned_at=NOW + 358 * DAY)
    await erase_outdated_data(engine, now=NOW + 365 * DAY)
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0
    assert await fetch_value(engine, "SELECT who FROM audit_log WHERE action = 'campaign.deleted'") == "Easel"


async def test_two_processes_at_once_delete_and_log_once(engine):
    await create_finished_campaign(engine, everything_days=365)
    await warn_of_deletion(engine, warned_at=NOW + 358 * DAY)
    await asyncio.gather(*(erase_outdated_data(engine, now=NOW + 365 * DAY) for _ in range(3)))
    assert await fetch_value(engine, "SELECT count(*) FROM audit_log WHERE action = 'campaign.deleted'") == 1


async def test_a_campaign_whose_time_is_over_is_deleted_after_an_import_into_it(engine, monkeypatch, caplog):
    campaign = await create_finished_campaign(engine, everything_days=30)
    await warn_of_deletion(engine, warned_at=NOW + 23 * DAY)
    has_begun, may_go_on = let_imports_wait_in_their_first_transaction(monkeypatch)
    importing = asyncio.create_task(import_answers(engine, campaign, "Ann"))
    await has_begun.wait()
    erasing = asyncio.create_task(erase_outdated_data(engine, now=NOW + 30 * DAY))
    await wait_until(engine, requests_are_waiting_sql(1))
    may_go_on.set()
    receipt, _ = await asyncio.gather(importing, erasing)
    assert (receipt.responses, caplog.messages) == (1, [])
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0


async def test_days_are_24_hours_also_when_the_clocks_change(engine, tmp_path):
    await create_finished_campaign(engine, telemetry_days=1)
    finished = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    await execute_sql(engine, "UPDATE campaigns SET finished_at = :at", at=finished.astimezone(UTC))
    due = finished.astimezone(UTC) + DAY
    await erase_outdated_data(engine, now=due - timedelta(seconds=1))
    assert "1280x720" in await traces_left(engine, tmp_path)
    await erase_outdated_data(engine, now=due)
    assert "1280x720" not in await traces_left(engine, tmp_path)


async def test_an_import_that_could_store_answers_twice_is_refused(engine):
    campaign = await create_finished_campaign(engine, identifiers_days=1)
    await erase_outdated_data(engine, now=NOW + DAY)
    with pytest.raises(Conflict) as refusal:
        await import_answers(engine, campaign, "Ann")
    assert refusal.value.code == "identifiers_erased"


@pytest.mark.own_database
async def test_an_interrupted_run_already_refuses_imports_and_is_continued(engine):
    campaign = await create_finished_campaign(engine, identifiers_days=1)
    await execute_sql(
        engine, "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'killed'; END $$"
    )
    await execute_sql(
        engine, "CREATE TRIGGER killed BEFORE UPDATE ON annotators FOR EACH STATEMENT EXECUTE FUNCTION fail()"
    )
    await erase_outdated_data(engine, now=NOW + DAY)
    with pytest.raises(Conflict) as refusal:
        await import_answers(engine, campaign, "Ann")
    assert refusal.value.code == "identifiers_erased"
    await execute_sql(engine, "DROP TRIGGER killed ON annotators")
    await erase_outdated_data(engine, now=NOW + DAY + timedelta(minutes=10))
    (run,) = await fetch_rows(
        engine, "SELECT counts ? 'assignments', counts ? 'annotators', ran_at FROM retention_runs"
    )
    assert run == (True, True, NOW + DAY)


@pytest.mark.own_database
async def test_a_campaign_that_fails_stops_no_other(engine, caplog):
    failing = await create_finished_campaign(engine, identifiers_days=1)
    other = await create_running_campaign(engine, identifiers_days=1)
    await create_annotator(engine, other, "cleo", "prolific")
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, other.slug, "finish", now=NOW)
    await execute_sql(
        engine, "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk full'; END $$"
    )
    await execute_sql(
        engine,
        f"""CREATE TRIGGER fails BEFORE UPDATE ON annotators FOR EACH ROW WHEN (NEW.campaign_id = {failing.id})
            EXECUTE FUNCTION fail()""",
    )
    await erase_outdated_data(engine, now=NOW + DAY)
    assert failing.slug in caplog.text
    left = "SELECT DISTINCT campaign_id FROM annotators WHERE NOT starts_with(worker_id, 'erased:')"
    assert await fetch_rows(engine, left) == [(failing.id,)]


async def test_no_code_is_stored_after_the_ids_are_erased(engine):
    campaign = await create_finished_campaign(engine, identifiers_days=1)
    await erase_outdated_data(engine, now=NOW + DAY)
    annotator = await fetch_value(engine, "SELECT min(id) FROM annotators")
    async with engine.begin() as connection:
        await store_withdrawal_code_hash(connection, campaign.id, annotator, "ABCDE-FGHIJ")
    assert await fetch_value(engine, "SELECT count(*) FROM withdrawal_codes") == 0
    await execute_sql(engine, "UPDATE campaigns SET status = 'running'")
    async with engine.begin() as connection:
        await store_withdrawal_code_hash(connection, campaign.id, annotator, "ABCDE-FGHIJ")
    assert await fetch_value(engine, "SELECT count(*) FROM withdrawal_codes") == 1


@pytest.mark.parametrize("days", [0, -1, 36_501, 1.5, "soon"])
def test_a_time_that_is_no_number_of_days_is_refused(days):
    with pytest.raises(ValueError, match="identifiers_days"):
        CampaignSettings(name="Verbs", question="How?", identifiers_days=days)


async def test_lists_keep_blocks_by_hash_and_the_allow_list_closed_but_nothing_else_of_people(engine):
    campaign = await create_finished_campaign(engine, identifiers_days=10)
    lists = "SELECT list, worker_id, person_hash FROM participant_lists ORDER BY list"
    async with engine.begin() as connection:
        for list_name in ("allow", "block", "experts"):
            await change_participant_list_and_count_changes(connection, campaign, list_name, ["ada"], "add", now=NOW)
    before = {name: person_hash for name, _, person_hash in await fetch_rows(engine, lists)}
    await erase_outdated_data(engine, now=NOW + 10 * DAY)
    rows = await fetch_rows(engine, lists)
    assert [(name, worker_id) for name, worker_id, _ in rows] == [("allow", None), ("block", None)]
    assert [person_hash == before[name] for name, _, person_hash in rows] == [False, True]
    await erase_outdated_data(engine, now=NOW + 20 * DAY)
    assert await fetch_rows(engine, lists) == rows
