"""How often someone may try a password.

Failures are counted per name, per network address and in all, and each makes the next attempt wait longer, a few
minutes at most. So nobody guesses fast, also not over many names or under made-up addresses, and nobody is locked out
for good by what others do. A browser that has logged in under a name before is counted by itself, and waits for nobody.

An attempt is written down before the password is looked at and struck out when it was right. So a thousand attempts at
once are not checked at once: the lock lets them count one after another.
"""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, insert, select, text, true
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.account_tables import login_failures
from app.errors import TooManyAttempts
from app.settings import easel_command_line

FAILURE_WINDOW_MINUTES = 60
FREE_FAILURES_PER_NAME = 5  # of one name, or of one browser that is known
FREE_FAILURES_PER_ADDRESS = 30  # a laboratory often shares one address
FREE_FAILURES_OF_SERVER = 100
MAX_DELAY_SECONDS = 300


def delay_after_failures(failures: int, free_failures: int) -> timedelta:
    """How long after the last of so many failures another attempt is looked at."""
    doublings = min(failures - free_failures, MAX_DELAY_SECONDS.bit_length())
    return timedelta(seconds=min(2**doublings, MAX_DELAY_SECONDS) if doublings >= 0 else 0)


async def record_login_attempt(
    connection: AsyncConnection, name: str, address: str, browser: str | None, *, now: datetime
) -> None:
    """Write an attempt down. The caller commits before it looks at the password.

    `browser`: one that has logged in under this name before. Raises `TooManyAttempts` (`too_many_attempts`, details
    `retry_after_seconds`).
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('login_failures'))"))
    failure = login_failures.c
    await connection.execute(
        delete(login_failures).where(failure.failed_at <= now - timedelta(minutes=FAILURE_WINDOW_MINUTES))
    )
    limits: list[tuple[int, ColumnElement[bool]]] = [
        (FREE_FAILURES_PER_NAME, failure.name == name),
        (FREE_FAILURES_PER_ADDRESS, failure.address == address),
        (FREE_FAILURES_OF_SERVER, true()),
    ]
    if browser is not None:
        limits = [(FREE_FAILURES_PER_NAME, failure.browser == browser)]
    columns = [
        column
        for _, which in limits
        for column in (func.count().filter(which), func.max(failure.failed_at).filter(which))
    ]
    is_counted = failure.browser.is_(None) if browser is None else failure.browser == browser
    row = (await connection.execute(select(*columns).where(is_counted))).one()
    delay_ends = [
        last + delay_after_failures(failures, free)
        for (free, _), failures, last in zip(limits, row[::2], row[1::2], strict=True)
        if last is not None
    ]
    if (wait := max([now, *delay_ends]) - now) > timedelta(0):
        raise too_many_attempts_error(max(1, round(wait.total_seconds())))
    await connection.execute(insert(login_failures).values(name=name, address=address, browser=browser, failed_at=now))


def too_many_attempts_error(seconds: int) -> TooManyAttempts:
    when = f"{seconds} s" if seconds < 60 else f"{-(-seconds // 60)} min"
    return TooManyAttempts(
        f"There were too many attempts to log in. Please try again in {when}, "
        f"or make a login link on the server with `{easel_command_line()} login`.",
        retry_after_seconds=seconds,
    )


async def delete_login_failures(connection: AsyncConnection, name: str, address: str, browser: str | None) -> None:
    """Strike out the attempts of whoever has now shown the right password."""
    same_origin = login_failures.c.address == address if browser is None else login_failures.c.browser == browser
    await connection.execute(delete(login_failures).where(login_failures.c.name == name, same_origin))
