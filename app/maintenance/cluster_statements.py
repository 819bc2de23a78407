"""On how many servers of a Citus cluster each SQL constant of Easel runs, by PostgreSQL's plan for it."""

import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import asyncpg
from sqlalchemy import TextClause
from sqlalchemy.ext.asyncio import AsyncConnection

import app
from app.database.bulk import begin_transaction_returning_driver
from app.database.session import Driver, sql_and_parameter_names_of_statement

# A value of each type of parameter; PostgreSQL's numbers of transactions begin at 3.
EXAMPLE_VALUES = {
    "bigint": "1",
    "boolean": "true",
    "bytea": r"\x00",
    "date": "2026-01-01",
    "double precision": "1",
    "integer": "1",
    "interval": "1 s",
    "json": "{}",
    "jsonb": "{}",
    "numeric": "1",
    "pg_snapshot": "3:4:",
    "smallint": "1",
    "text": "{x}",  # also an array, which some statements pass as a text
    "timestamp with time zone": "2026-01-01",
    "uuid": "00000000-0000-0000-0000-000000000001",
}
# `database.session.leads_to_citus` chooses others in their place, or none.
REPLACED_ON_CITUS = {
    "alerts.silence.LIST_LAST_ANSWER_TIMES",
    "annotation.hits.answer_leases.LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS",
    "annotation.hits.answer_leases.STORE_ANSWERS_AND_LEASE",
    "annotation.hits.answer_storage.STORE_ANSWERS",
    "database.server_database.RESET_RESTORED_TRANSACTION_IDS",
    "record.answer_rates.COUNT_HITS_PER_MINUTE_OF_CAMPAIGNS",
    "record.answer_rates.FIND_ANSWER_TIMES_OF_CAMPAIGNS",
    "record.changes.POLL_CHANGES_OF_CAMPAIGNS",
    "record.judgment_count.COUNT_JUDGMENTS",
    "server_calls.call_work.TAKE_DUE_CALLS",
}
QUERY_PATTERN = re.compile(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b")


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """On how many servers a statement reads or changes campaigns at a time, or why Citus refuses it.

    Attributes:
        name: Its constant in the code of Easel.
        tasks: The most shards that one step of it runs on; 0 if all of it runs on the coordinator.
        problem: What Citus says against it; empty if it can run.

    """

    name: str
    tasks: int
    problem: str


def iterate_sql_constants() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the name, the SQL and the names of the parameters of each statement that a module of Easel holds."""
    seen: set[str] = set()
    for module_info in pkgutil.walk_packages(app.__path__, "app."):
        if module_info.name.endswith("__main__"):
            continue
        for name, value in sorted(vars(import_module(module_info.name)).items()):
            values = {name: value}
            if isinstance(value, tuple):
                values = {f"{name}[{place}]": member for place, member in enumerate(value)}
            elif isinstance(value, dict) and not name.startswith("__"):
                values = {f"{name}[{key}]": member for key, member in value.items()}
            for full_name, statement in values.items():
                if isinstance(statement, TextClause) and statement.text not in seen:
                    seen.add(statement.text)
                    yield f"{module_info.name[4:]}.{full_name}", *sql_and_parameter_names_of_statement(statement)


async def explain_sql_constants(connection: AsyncConnection) -> list[StatementPlan]:
    """Return the plans of all statements that Easel sends to Citus, for a campaign that need not exist."""
    driver = await begin_transaction_returning_driver(connection)
    await connection.rollback()  # a statement that cannot be planned must not end the transaction of the next
    plans = []
    for name, sql, parameter_names in iterate_sql_constants():
        if QUERY_PATTERN.match(sql) and name not in REPLACED_ON_CITUS:
            try:
                tasks, problem = (
                    highest_task_count_of_plan(await explain_with_example_values(driver, sql, parameter_names)),
                    "",
                )
            except asyncpg.PostgresError as error:
                tasks, problem = 0, str(error)
            plans.append(StatementPlan(name, tasks, problem))
    return plans


async def explain_with_example_values(driver: Driver, sql: str, parameter_names: tuple[str, ...]) -> dict[str, Any]:
    """Return PostgreSQL's plan for a statement. Raises asyncpg.PostgresError if it cannot be planned."""
    await driver.execute(f"PREPARE explained AS {sql}")
    types: list[str] = await driver.fetchval(
        "SELECT CAST(parameter_types AS text[]) FROM pg_prepared_statements WHERE name = 'explained'"
    )
    await driver.execute("DEALLOCATE explained")
    values = [example_value_sql(name, kind) for name, kind in zip(parameter_names, types, strict=True)]
    literal_sql = re.sub(r"\$(\d+)", lambda place: values[int(place[1]) - 1], sql)
    explained = await driver.fetchval(f"EXPLAIN (FORMAT JSON) {literal_sql}")
    plan: dict[str, Any] = explained[0]["Plan"]
    return plan


def example_value_sql(parameter: str, kind: str) -> str:
    """Return SQL for a value that a parameter of this name and type may have; NULL for a type without an example."""
    value = "3:4:" if "watermark" in parameter or (parameter, kind) == ("since", "text") else None
    value = value or EXAMPLE_VALUES.get(kind.removesuffix("[]"))
    if value is None:
        return f"CAST(NULL AS {kind})"
    literal = f"'{{\"{value}\"}}'" if kind.endswith("[]") else f"'{value}'"
    return f"CAST({literal} AS {kind})"


def highest_task_count_of_plan(plan: Any) -> int:
    """Return the most tasks of one step of a plan; Citus runs a task on one shard of each table."""
    if isinstance(plan, dict):
        own: int = plan.get("Task Count", 0)
        return max([own, *map(highest_task_count_of_plan, plan.values())])
    return max(map(highest_task_count_of_plan, plan), default=0) if isinstance(plan, list) else 0
