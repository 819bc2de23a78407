"""Passwords: argon2id hashes, made and checked in threads of their own, since one takes tens of milliseconds."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import Invalid

MIN_PASSWORD_CHARACTERS = 10
MAX_PASSWORD_CHARACTERS = 1000

# argon2id with the parameters of RFC 9106 for servers with little memory: 64 MiB per hash.
PASSWORD_HASHER = PasswordHasher()
# Two at a time: a flood of logins queues here, and fills neither the memory nor the event loop's own threads.
HASHING_THREADS = ThreadPoolExecutor(2, thread_name_prefix="argon2")


@cache
def decoy_password_hash() -> str:
    """Return a hash to check for unknown users, so that the time of a reply does not reveal which names exist."""
    return PASSWORD_HASHER.hash("nobody has this password")


def allowed_password_or_refuse(password: str) -> str:
    """Return the password if it may be used. Raises `Invalid` (`password_too_short`, `password_too_long`)."""
    if len(password) < MIN_PASSWORD_CHARACTERS:
        raise Invalid(
            f"Choose a password of {MIN_PASSWORD_CHARACTERS} characters or more. Nothing was changed.",
            code="password_too_short",
        )
    if len(password) > MAX_PASSWORD_CHARACTERS:
        raise Invalid(
            f"A password may have at most {MAX_PASSWORD_CHARACTERS} characters. Nothing was changed.",
            code="password_too_long",
        )
    return password


async def hash_allowed_password_or_refuse(password: str) -> str:
    """Return the argon2id hash of a new password. Raises `Invalid` as `allowed_password_or_refuse` does."""
    return await asyncio.get_running_loop().run_in_executor(
        HASHING_THREADS, PASSWORD_HASHER.hash, allowed_password_or_refuse(password)
    )


async def is_password_correct(password_hash: str | None, password: str) -> bool:
    """Return whether this is the password. Without a hash the work is the same and the result False."""
    is_match = await asyncio.get_running_loop().run_in_executor(
        HASHING_THREADS, _matches_hash, password_hash or decoy_password_hash(), password[:MAX_PASSWORD_CHARACTERS]
    )
    return is_match and password_hash is not None


def _matches_hash(password_hash: str, password: str) -> bool:
    try:
        return PASSWORD_HASHER.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
