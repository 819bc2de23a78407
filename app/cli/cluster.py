"""`easel cluster`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from app.cli.command_group import CommandGroup
from app.cli.text_table import terminal_width, wrap_text_into_lines
from app.errors import pluralize

if TYPE_CHECKING:
    from app.maintenance.cluster_statements import StatementPlan

NAME_CLUSTER_TEXT = "Add cluster=citus to DATABASE_URL of all servers and commands."
# Rooms whose statements annotators wait for, and those of the exports.
ROOMS_OF_ONE_CAMPAIGN = ("annotation.", "exports.")
DRY_RUN_SCHEMA = "easel_dry_run"


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Spread campaigns over the servers of a Citus cluster."""


@cluster.command("distribute")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Change nothing; list what would go where.")
def distribute_campaigns(*, is_dry_run: bool) -> None:
    """Store each campaign on one server of a Citus cluster, so that campaigns share several. Stop all servers first.

    DATABASE_URL names the coordinator. Either all tables are distributed, or none. With --dry-run, only empty copies
    are distributed, to list the statements of Easel that would reach several servers at a time.
    """
    from app.database.server_database import open_database_in_any_state_and_yield_url
    from app.settings import read_settings

    with open_database_in_any_state_and_yield_url(read_settings()) as url:
        if not is_dry_run:
            asyncio.run(distribute_unless_done_and_print_placement(url))
        elif asyncio.run(has_citus_or_refuse_unusable_cluster(url)):
            print_table_placement()
            with open_distributed_scratch_schema(url) as dry_run_url:
                print_statements_across_servers(asyncio.run(explain_sql_constants_at_url(dry_run_url)))
        else:
            print_table_placement()
            click.echo("This database has no Citus, so the statements were not checked.")
    if is_dry_run:
        click.echo("Campaigns on a cluster cannot have payments. Nothing was changed.")


async def distribute_unless_done_and_print_placement(url: str) -> None:
    """Distribute the tables unless they are, and print where each is. Raises Conflict if that cannot be done."""
    from app.database.cluster import (
        are_tables_distributed,
        distribute_tables,
        refuse_cluster_with_payments,
        refuse_database_in_use,
        refuse_unusable_cluster,
    )
    from app.database.migrate import load_schema_revision_on_connection_or_none, require_newest_schema
    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine, engine.begin() as connection:
        require_newest_schema(await load_schema_revision_on_connection_or_none(connection))
        await refuse_unusable_cluster(connection)
        if await are_tables_distributed(connection):
            click.echo(f"The tables are distributed already. Nothing was changed. {NAME_CLUSTER_TEXT}")
            return
        await refuse_cluster_with_payments(connection)
        await refuse_database_in_use(connection)
        await distribute_tables(connection)
    print_table_placement()
    click.echo(f"The tables are distributed. {NAME_CLUSTER_TEXT}")


async def has_citus_or_refuse_unusable_cluster(url: str) -> bool:
    """Return whether the database has Citus. Raises Conflict if tables cannot be distributed there."""
    from app.database.cluster import has_citus, refuse_unusable_cluster
    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine, engine.connect() as connection:
        if not await has_citus(connection):
            return False
        await refuse_unusable_cluster(connection)
        return True


@contextmanager
def open_distributed_scratch_schema(url: str) -> Iterator[str]:
    """Yield the URL of a schema with Easel's tables, distributed and empty, which ends with this block."""
    from sqlalchemy import make_url

    from app.database.migrate import upgrade_schema

    schema_url = make_url(url).update_query_dict({"options": f"-c search_path={DRY_RUN_SCHEMA}"})
    dry_run_url = schema_url.render_as_string(hide_password=False)
    asyncio.run(
        execute_statements_at_url(
            url, f"DROP SCHEMA IF EXISTS {DRY_RUN_SCHEMA} CASCADE", f"CREATE SCHEMA {DRY_RUN_SCHEMA}"
        )
    )
    try:
        upgrade_schema(dry_run_url)
        asyncio.run(distribute_tables_at_url(dry_run_url))
        yield dry_run_url
    finally:
        asyncio.run(execute_statements_at_url(url, f"DROP SCHEMA {DRY_RUN_SCHEMA} CASCADE"))


async def execute_statements_at_url(url: str, *statements: str) -> None:
    from sqlalchemy import text

    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine, engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def distribute_tables_at_url(url: str) -> None:
    from app.database.cluster import distribute_tables
    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine, engine.begin() as connection:
        await distribute_tables(connection)


async def explain_sql_constants_at_url(url: str) -> list[StatementPlan]:
    from app.maintenance.cluster_statements import explain_sql_constants
    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine, engine.connect() as connection:
        return await explain_sql_constants(connection)


def print_table_placement() -> None:
    from app.database.cluster import placement_of_tables

    placement = placement_of_tables()
    for title, names in (
        ("By campaign", placement.by_campaign),
        ("On every server", placement.on_every_server),
        ("On the coordinator", placement.on_coordinator),
        ("Foreign keys only Easel enforces", placement.unchecked_foreign_keys),
    ):
        click.echo("\n".join(wrap_text_into_lines(f"{title}: {', '.join(names)}.", terminal_width(), indent="  ")))


def print_statements_across_servers(plans: list[StatementPlan]) -> None:
    """Print which statements run on several servers at a time, and which Citus refuses."""
    of_several = [plan for plan in plans if plan.tasks > 1]
    refused = [plan for plan in plans if plan.problem]
    click.echo(f"{pluralize(len(plans), 'statement')} checked.")
    for title, listed in (("Across servers", of_several), ("Refused by Citus", refused)):
        own = sum(plan.name.startswith(ROOMS_OF_ONE_CAMPAIGN) for plan in listed)
        click.echo(f"{title}: {len(listed)}, of these {own} of annotators' requests and exports.")
        for plan in listed:
            click.echo(f"  {plan.name}{plan.problem and ': ' + plan.problem.splitlines()[0]}")
