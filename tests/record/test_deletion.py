"""Deleting people by hand: refused while their answers count in scores; campaigns still go with all they have."""

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from app.database.bulk import open_snapshot
from app.database.cluster import placement_of_tables
from app.database.schema import metadata
from app.errors import Conflict
from app.imports.text_corrections import store_corrected_text_returning_version
from app.record.deletion import delete_campaign_and_all_its_data_or_refuse
from app.record.replay import verify_by_replay_or_refuse
from app.record.revisions import store_decision_and_return_number
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

RECORD = ("annotators", "assignments", "hits", "responses", "decisions")


async def answered(engine, *names):
    """Create a campaign in which these people answered a HIT each."""
    campaign = await create_running_campaign(engine)
    for name in names:
        assignment = await create_annotator(engine, campaign, name)
        await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    return campaign


async def is_verified(engine, campaign):
    async with open_snapshot(engine) as connection:
        return (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def counts(engine):
    return {table: await fetch_value(engine, f"SELECT count(*) FROM {table}") for table in RECORD}


@pytest.mark.parametrize("table", ["annotators", "assignments", "hits"])
async def test_people_with_answers_cannot_be_deleted_so_the_scores_stay_those_of_the_record(engine, table):
    campaign = await answered(engine, "Ann", "Ben")
    before = await counts(engine)
    with pytest.raises(IntegrityError, match="responses_"):
        await execute_sql(engine, f"DELETE FROM {table} WHERE campaign_id = :campaign", campaign=campaign.id)
    assert await counts(engine) == before
    assert await is_verified(engine, campaign)


async def test_a_person_about_whom_a_decision_is_on_record_cannot_be_deleted(engine):
    campaign = await create_running_campaign(engine)
    await create_annotator(engine, campaign, "Ann")
    ann = await fetch_value(engine, "SELECT id FROM annotators")
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", ann, reason="too fast", actor="ada", now=NOW
        )
    with pytest.raises(IntegrityError, match="decisions_annotator_id_fkey"):
        await execute_sql(engine, "DELETE FROM annotators")


async def test_a_person_without_answers_can_be_deleted_with_the_open_hit(engine):
    campaign = await answered(engine, "Ann")
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "Ben"))
    await execute_sql(engine, "DELETE FROM annotators WHERE worker_id = 'Ben'")
    assert await fetch_rows(engine, "SELECT worker_id FROM annotators") == [("Ann",)]
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 1
    assert await is_verified(engine, campaign)


async def test_a_campaign_is_deleted_with_its_answers_and_decisions_and_others_stay(engine):
    campaign, other = [await answered(engine, "Ann", "Ben") for _ in range(2)]
    rows = await fetch_rows(engine, "SELECT annotator_id, seq FROM responses WHERE campaign_id = :id", id=campaign.id)
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", rows[0][0], reason="too fast", actor="ada", now=NOW
        )
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "withdraw", "response", rows[1][1], reason="a slip", actor="ada", now=NOW
        )
    await execute_sql(engine, "DELETE FROM campaigns WHERE id = :campaign", campaign=campaign.id)
    assert await counts(engine) == {"annotators": 2, "assignments": 2, "hits": 2, "responses": 2, "decisions": 0}
    assert await fetch_rows(engine, "SELECT DISTINCT campaign_id FROM posteriors") == [(other.id,)]
    assert await is_verified(engine, other)


async def test_a_campaign_leaves_no_row_where_a_cluster_has_no_foreign_keys_to_delete_them(engine):
    campaign = await answered(engine, "Ann", "Ben")
    async with engine.connect() as connection:
        await store_corrected_text_returning_version(connection, campaign.slug, "v1", "to stroll", now=NOW)
        await connection.execute(text("DROP TRIGGER campaigns_delete_record ON campaigns"))
        for table in metadata.sorted_tables:
            for key in table.foreign_key_constraints:
                if key.name in placement_of_tables().unchecked_foreign_keys:
                    await connection.execute(text(f"ALTER TABLE {table.name} DROP CONSTRAINT {key.name}"))
        await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
        tables = [table for table in metadata.sorted_tables if "campaign_id" in table.c and table.name != "audit_log"]
        counts = {t.name: await connection.scalar(select(func.count()).select_from(t)) for t in tables}
        await connection.rollback()
    assert [name for name, count in counts.items() if count] == []


@pytest.mark.parametrize("state", ["prepared", "sending", "unknown"])
async def test_a_campaign_that_owes_money_is_not_deleted_and_one_that_has_paid_is(engine, state):
    campaign = await answered(engine, "Ann")
    await execute_sql(
        engine,
        "INSERT INTO payment_accounts (campaign_id, platform, currency, budget, hook_key, send_through, connected_by, "
        "connected_at) SELECT id, 'prolific', 'GBP', 1000, 'key', 1, 'ada', now() FROM campaigns",
    )
    await execute_sql(
        engine,
        "INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason, request_key, "
        "line, created_by, created_at, state) "
        "SELECT campaign_id, id, 's1', 'study', 425, 'GBP', '', 'list', 1, 'ada', now(), :state FROM annotators",
        state=state,
    )
    async with engine.begin() as connection:
        with pytest.raises(Conflict) as refused:
            await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
    assert refused.value.code == "payments_unsettled"
    await execute_sql(engine, "UPDATE payments SET state = 'sent'")
    async with engine.begin() as connection:
        await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 0
