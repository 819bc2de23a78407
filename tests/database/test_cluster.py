"""`easel cluster distribute` on a PostgreSQL without Citus, and what says that a database is not one server's."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import pytest
from sqlalchemy import Table, make_url, text

from app.database.cluster import (
    distributed_tables,
    placement_of_tables,
    refuse_cluster_with_payments,
    refuse_database_in_use,
    refuse_unusable_cluster,
)
from app.database.schema import metadata
from app.errors import Conflict
from app.maintenance.cluster_statements import highest_task_count_of_plan, iterate_sql_constants
from app.payments.connections import ConnectionSettings, check_and_store_payment_settings_or_refuse
from tests.annotation.hits.campaigns import NOW, create_running_campaign
from tests.database.test_embedded import run_sql
from tests.payments.studies import connector_to
from tests.test_cli import easel, files, running  # noqa: F401  (fixtures)

NO_SERVICE = "http://127.0.0.1:1"
NO_PAYMENTS = "Campaigns on a cluster cannot have payments."


def test_every_table_has_one_place():
    placement = placement_of_tables()
    placed = [*placement.by_campaign, *placement.on_every_server, *placement.on_coordinator]
    assert sorted(placed) == sorted(metadata.tables)


def test_a_table_with_the_rows_of_a_campaign_is_distributed_after_those_its_foreign_keys_lead_to():
    seen: set[Table] = set()
    for table in distributed_tables():
        referred = {key.referred_table for key in table.foreign_key_constraints} - {metadata.tables["campaigns"], table}
        assert referred <= seen, table.name
        seen.add(table)


def test_the_database_deletes_with_a_campaign_what_is_stored_with_it():
    by_campaign = {table.name for table in distributed_tables()}
    unchecked = placement_of_tables().unchecked_foreign_keys
    assert [name for name in unchecked for table in by_campaign if name == f"{table}_campaign_id_fkey"] == []


@pytest.mark.own_database
def test_a_dry_run_without_citus_lists_the_places_and_changes_nothing(easel, database_url):
    result = easel("cluster", "distribute", "--dry-run")
    assert result.exit_code == 0
    assert "By campaign: adjudications, annotators, assignments, " in result.output
    assert "On every server: campaigns, experiment_arms." in result.output
    assert result.output.endswith(f"so the statements were not checked.\n{NO_PAYMENTS} Nothing was changed.\n")
    run_sql(database_url, "ALTER TABLE campaigns ENABLE TRIGGER campaigns_delete_record")  # an error if it is gone
    assert easel("campaign", "list").exit_code == 0


def test_a_database_without_citus_is_not_distributed(easel):
    result = easel("cluster", "distribute")
    assert result.exit_code == 1
    assert "This database has no Citus." in result.stderr
    assert result.stderr.endswith("Nothing was changed. (citus_missing)\n")


@pytest.mark.own_database
def test_an_old_schema_is_not_distributed(easel, database_url):
    run_sql(database_url, "UPDATE alembic_version SET version_num = '0061'")
    result = easel("cluster", "distribute")
    assert result.exit_code == 1
    assert result.stderr.endswith("(schema_not_migrated)\n")


@pytest.mark.parametrize(
    ("version", "workers", "code"),
    [("11.0-1", 2, "citus_too_old"), ("13.2-1", 0, "citus_without_workers"), ("13.2-1", 2, None), ("14.0-1", 1, None)],
)
async def test_an_old_citus_or_one_without_workers_is_refused(engine, version, workers, code):
    """The catalogue says what Citus would say."""
    async with engine.connect() as connection:
        await connection.execute(text("SET LOCAL allow_system_table_mods = on"))
        await connection.execute(
            text("""
                INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
                VALUES (999999, 'citus', 10, 11, false, :version)
            """),
            {"version": version},
        )
        await connection.execute(
            text("CREATE TEMPORARY TABLE pg_dist_node AS SELECT true AS isactive, true AS shouldhaveshards WHERE false")
        )
        await connection.execute(
            text("INSERT INTO pg_dist_node SELECT true, true FROM generate_series(1, :workers)"), {"workers": workers}
        )
        if code is None:
            await refuse_unusable_cluster(connection)
        else:
            with pytest.raises(Conflict) as refusal:
                await refuse_unusable_cluster(connection)
            assert refusal.value.code == code
        await connection.rollback()


@pytest.mark.own_database
async def test_a_database_that_others_use_is_refused(engine):
    async with engine.connect() as connection, engine.connect() as other:
        await other.execute(text("SELECT 1"))
        with pytest.raises(Conflict, match=r"^1 other session of this database is open\. ") as refusal:
            await refuse_database_in_use(connection)
        assert refusal.value.code == "database_in_use"
        await other.rollback()


async def test_a_database_with_payments_is_refused(engine):
    campaign = await create_running_campaign(engine)
    await check_and_store_payment_settings_or_refuse(
        engine, connector_to(NO_SERVICE), campaign, ConnectionSettings(budget=500), now=NOW
    )
    async with engine.connect() as connection:
        with pytest.raises(Conflict) as refusal:
            await refuse_cluster_with_payments(connection)
        assert refusal.value.code == "cluster_without_payments"


@pytest.mark.own_database
def test_an_address_that_does_not_name_the_cluster_is_refused(easel, database_url):
    """The trigger is what `easel cluster distribute` leaves."""
    run_sql(
        database_url,
        "CREATE FUNCTION easel_set_transaction_id() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER responses_transaction_id BEFORE INSERT ON responses "
        "FOR EACH ROW EXECUTE FUNCTION easel_set_transaction_id()",
    )
    for arguments in (("serve", "--port", "0"), ("campaign", "list")):
        result = easel(*arguments)
        assert result.exit_code == 1
        assert result.stderr.endswith("Add cluster=citus to DATABASE_URL. (cluster_not_named)\n")


def test_an_address_that_names_a_cluster_is_refused_while_the_tables_are_on_one_server(
    easel, database_url, monkeypatch
):
    url = make_url(database_url).update_query_dict({"cluster": "citus"})
    monkeypatch.setenv("DATABASE_URL", url.render_as_string(hide_password=False))
    for arguments in (("serve", "--port", "0"), ("migrate",), ("campaign", "list")):
        result = easel(*arguments)
        assert result.exit_code == 1
        assert "are not distributed" in result.stderr
        assert result.stderr.endswith("(cluster_not_distributed)\n")
    assert "(citus_missing)" in easel("cluster", "distribute").stderr


def test_statements_of_serving_are_among_those_that_are_checked():
    names = {name for name, _, _ in iterate_sql_constants()}
    assert {"annotation.hits.assignment_sql.SELECT_ASSIGNMENTS", "annotation.hits.undo.SELECT_LAST_ANSWER"} <= names


def test_the_most_tasks_of_a_plan_are_those_of_its_largest_step():
    one, several = {"Job": {"Task Count": 1}}, {"Job": {"Task Count": 8}}
    plan = {"Plans": [{"Distributed Query": {**one, "Subplans": [{"PlannedStmt": [{"Plan": several}]}]}}]}
    assert highest_task_count_of_plan(plan) == 8
    assert highest_task_count_of_plan({"Node Type": "Result", "Plans": []}) == 0
