"""How often someone may try a password: counted per name and per address within a window.

An attempt is written down before the password is looked at and struck out when it was right. So a thousand attempts at
once are not checked at once: the lock lets them count one after another.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, func, insert, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import login_failures
from app.errors import TooManyAttempts
from app.settings import easel_command

WINDOW_MINUTES = 15
ATTEMPTS_PER_NAME = 10
ATTEMPTS_PER_ADDRESS = 50  # a laboratory often shares one address


async def attempt(connection: AsyncConnection, name: str, address: str, *, now: datetime) -> None:
    """Write an attempt down. The caller commits before it looks at the password.

    Raises `TooManyAttempts` (`too_many_attempts`, details `retry_after_seconds`) when there were too many already.
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('login_failures'))"))
    window = timedelta(minutes=WINDOW_MINUTES)
    await connection.execute(delete(login_failures).where(login_failures.c.failed_at <= now - window))
    by_name = login_failures.c.name == name
    by_address = login_failures.c.address == address
    counts = select(
        func.count().filter(by_name), func.count().filter(by_address), func.min(login_failures.c.failed_at)
    ).where(or_(by_name, by_address))
    names, addresses, oldest = (await connection.execute(counts)).one()
    if names >= ATTEMPTS_PER_NAME or addresses >= ATTEMPTS_PER_ADDRESS:
        seconds = max(1, round((oldest + window - now).total_seconds()))
        raise TooManyAttempts(
            f"There were too many attempts to log in. Please try again in {-(-seconds // 60)} min, "
            f"or make a login link on the server with `{easel_command()} login`.",
            retry_after_seconds=seconds,
        )
    await connection.execute(insert(login_failures).values(name=name, address=address, failed_at=now))


async def forgive(connection: AsyncConnection, name: str, address: str) -> None:
    """Strike out the attempts of whoever has now shown the right password."""
    await connection.execute(
        delete(login_failures).where(login_failures.c.name == name, login_failures.c.address == address)
    )
