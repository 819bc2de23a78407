"""Throttling of password attempts.

Failures are counted per name, per network address and in total, and each makes the next attempt wait longer, at most a
few minutes. So no one guesses fast, not even over many names or from made-up addresses, and no one is locked out for
good by others. A browser that has logged in under a name before is counted separately and never waits for others.

An attempt is stored before the password is checked, and deleted if the password was right. So a thousand concurrent
attempts are not checked at once: a lock makes them count one after another.
"""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, insert, select, text, true
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.account_tables import login_failures
from app.errors import TooManyAttempts
from app.settings import easel_command_to_type

FAILURE_WINDOW_MINUTES = 60
FREE_FAILURES_PER_NAME = 5  # also per known browser
FREE_FAILURES_PER_ADDRESS = 30  # a laboratory often shares one address
FREE_FAILURES_OF_SERVER = 100
MAX_DELAY_SECONDS = 300


def pause_duration_after_failures(failure_count: int, free_failures: int) -> timedelta:
    """Return the pause after the last of this many failures."""
    doublings = min(failure_count - free_failures, MAX_DELAY_SECONDS.bit_length())
    return timedelta(seconds=min(2**doublings, MAX_DELAY_SECONDS) if doublings >= 0 else 0)


async def store_login_attempt_or_refuse(
    connection: AsyncConnection, name: str, address: str, known_browser_id: str | None, *, now: datetime
) -> None:
    """Store an attempt. The caller commits before it checks the password.

    Args:
        connection: The connection, in a transaction.
        name: The login name.
        address: The client's network address.
        known_browser_id: Mark of a browser that has logged in under this name before; None for other browsers.
        now: The present time.

    Raises:
        TooManyAttempts: `too_many_attempts`, with `retry_after_seconds`.

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
    if known_browser_id is not None:
        limits = [(FREE_FAILURES_PER_NAME, failure.browser == known_browser_id)]
    columns = [
        column
        for _, condition in limits
        for column in (func.count().filter(condition), func.max(failure.failed_at).filter(condition))
    ]
    is_counted = failure.browser.is_(None) if known_browser_id is None else failure.browser == known_browser_id
    row = (await connection.execute(select(*columns).where(is_counted))).one()
    delay_ends = [
        last + pause_duration_after_failures(failures, free)
        for (free, _), failures, last in zip(limits, row[::2], row[1::2], strict=True)
        if last is not None
    ]
    if (wait := max([now, *delay_ends]) - now) > timedelta(0):
        raise too_many_attempts_error(max(1, round(wait.total_seconds())))
    await connection.execute(
        insert(login_failures).values(name=name, address=address, browser=known_browser_id, failed_at=now)
    )


def too_many_attempts_error(seconds: int) -> TooManyAttempts:
    delay_text = f"{seconds} s" if seconds < 60 else f"{-(-seconds // 60)} min"
    return TooManyAttempts(
        f"Too many login attempts. Try again in {delay_text}, "
        f"or create a login link on the server with `{easel_command_to_type()} login`.",
        retry_after_seconds=seconds,
    )


async def delete_login_failures(
    connection: AsyncConnection, name: str, address: str, known_browser_id: str | None
) -> None:
    """Delete the attempts of the researcher who has now given the right password."""
    same_origin = (
        login_failures.c.address == address
        if known_browser_id is None
        else login_failures.c.browser == known_browser_id
    )
    await connection.execute(delete(login_failures).where(login_failures.c.name == name, same_origin))
