"""Exceptions are logged without the values that their messages quote."""

import asyncio
import logging
import subprocess
import sys
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.background.process import run_in_process
from app.errors import NotFound
from app.text import redaction

SECRET = "planted secret"


class Person(BaseModel):
    age: int


anything: Any = SECRET


def raised(work):
    with pytest.raises(Exception) as problem:  # noqa: PT011  (any)
        work()
    return problem.value


def test_an_error_is_described_without_what_it_quotes(subtests):
    for error, described in (
        (
            ValueError(f"could not convert string to float: {SECRET!r}"),
            "ValueError: could not convert string to float: …",
        ),
        (KeyError(SECRET), "KeyError: …"),
        (RuntimeError(f"cannot read “{SECRET}” as a name"), "RuntimeError: cannot read …"),
        (RuntimeError((535, SECRET.encode())), "RuntimeError: (535, …"),
        (RuntimeError(f"can't find '{SECRET}"), "RuntimeError: can't find …"),
        (RuntimeError(f"two lines\n{SECRET}"), "RuntimeError: two lines"),
        (asyncpg.DataError(f"invalid input for query argument $1: '{SECRET} (expected int)"), None),
        (raised(lambda: Person(age=anything)), "ValidationError: 1 validation error for Person"),
        (raised(lambda: 1 + anything), "TypeError: unsupported operand type(s) for +: 'int' and 'str'"),
        (raised(lambda: getattr(None, "go")), "AttributeError: 'NoneType' object has no attribute 'go'"),  # noqa: B009
        (NotFound("There is no campaign “verbs”."), "There is no campaign “verbs”."),
    ):
        with subtests.test(error=error, described=described):
            found = redaction.describe_exception_without_values(error)
            assert SECRET not in found
            assert found == (described or "DataError (22000): invalid input for query argument $1: …")


async def test_a_key_that_is_there_already_is_described_by_its_constraint(engine):
    statement = text("INSERT INTO users (name, created_at, role) VALUES (:name, now(), 'guest')")
    async with engine.connect() as connection:
        await connection.execute(statement, {"name": SECRET})
        with pytest.raises(DBAPIError) as problem:
            await connection.execute(statement, {"name": SECRET})
    assert redaction.describe_exception_without_values(problem.value) == (
        'UniqueViolationError (23505, users_name_key): duplicate key value violates unique constraint "users_name_key"'
    )
    assert SECRET not in redaction.format_redacted_traceback(problem.value)


def test_a_traceback_says_where_and_not_with_what(caplog):
    redaction.install_log_redaction()
    try:
        try:
            int(SECRET)
        except ValueError as problem:
            raise ExceptionGroup(f"failed for '{SECRET}'", [KeyError(SECRET)]) from problem
    except ExceptionGroup:
        logging.getLogger("anything").exception("it broke: %s", ValueError(f"'{SECRET}'"))
    assert SECRET not in caplog.text
    assert "it broke: ValueError: …" in caplog.text
    assert "int(SECRET)" in caplog.text  # the line of the source
    assert "1 of 1" in caplog.text
    assert "direct cause" in caplog.text


async def test_a_task_whose_error_nobody_asks_for_is_logged_without_values(caplog):
    redaction.install_log_redaction()

    async def fail():
        raise ValueError(f"'{SECRET}'")

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    del task
    assert "Task exception was never retrieved" in caplog.text
    assert "ValueError(…)" in caplog.text
    assert SECRET not in caplog.text


async def fail_apart():
    raise ValueError(f"'{SECRET}'")


@pytest.mark.slow
async def test_work_in_another_process_fails_with_its_traceback_but_no_values():
    with pytest.raises(RuntimeError, match=r"(?s)in fail_apart.*ValueError: …") as problem:
        await run_in_process(fail_apart)
    assert SECRET not in redaction.describe_exception_without_values(problem.value)
    assert "in fail_apart" in redaction.describe_exception_without_values(problem.value)


@pytest.mark.slow
@pytest.mark.parametrize("thread", [False, True])
def test_a_command_that_crashes_prints_no_values(thread):
    work = "threading.Thread(target=int, args=['planted secret']).start()" if thread else "int('planted ' 'secret')"
    script = f"import threading; from app.text import redaction; redaction.install_log_redaction(); {work}"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert "ValueError: invalid literal for int() with base 10: …" in done.stderr
    assert SECRET not in done.stderr
