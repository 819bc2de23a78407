"""Passwords: argon2id hashes, made and checked in threads of their own, since one takes tens of milliseconds."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import Invalid

SHORTEST = 10
LONGEST = 1000

HASHER = PasswordHasher()  # argon2id with the parameters of RFC 9106 for servers with little memory: 64 MiB a hash
# Two at a time: a flood of logins then waits in line here, and neither fills the memory nor the loop's own threads.
THREADS = ThreadPoolExecutor(2, thread_name_prefix="argon2")


@cache
def nobody() -> str:
    """Checked when there is no such user, so that the time of an answer does not tell which names exist."""
    return HASHER.hash("nobody has this password")


def checked(password: str) -> str:
    """`password` if it may be used. Raises `Invalid` (`password_too_short`, `password_too_long`)."""
    if len(password) < SHORTEST:
        raise Invalid(
            f"Choose a password of {SHORTEST} characters or more. Nothing was changed.", code="password_too_short"
        )
    if len(password) > LONGEST:
        raise Invalid(f"A password has at most {LONGEST} characters. Nothing was changed.", code="password_too_long")
    return password


async def hashed(password: str) -> str:
    """The argon2id hash of a new password. Raises `Invalid` as `checked` does."""
    return await asyncio.get_running_loop().run_in_executor(THREADS, HASHER.hash, checked(password))


async def matches(password_hash: str | None, password: str) -> bool:
    """Whether this is the password; without a hash the work is the same and the answer is no."""
    found = await asyncio.get_running_loop().run_in_executor(
        THREADS, _verify, password_hash or nobody(), password[:LONGEST]
    )
    return found and password_hash is not None


def _verify(password_hash: str, password: str) -> bool:
    try:
        return HASHER.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
