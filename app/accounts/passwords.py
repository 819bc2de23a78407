"""Passwords: argon2id hashes, made and checked in threads of their own, since one takes tens of milliseconds."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import Invalid

MIN_PASSWORD_CHARACTERS = 10
MAX_PASSWORD_CHARACTERS = 1000

PASSWORD_HASHER = (
    PasswordHasher()
)  # argon2id with the parameters of RFC 9106 for servers with little memory: 64 MiB a hash
# Two at a time: a flood of logins then waits in line here, and neither fills the memory nor the loop's own threads.
HASHING_THREADS = ThreadPoolExecutor(2, thread_name_prefix="argon2")


@cache
def decoy_password_hash() -> str:
    """Checked when there is no such user, so that the time of an answer does not tell which names exist."""
    return PASSWORD_HASHER.hash("nobody has this password")


def validate_password(password: str) -> str:
    """`password` if it may be used. Raises `Invalid` (`password_too_short`, `password_too_long`)."""
    if len(password) < MIN_PASSWORD_CHARACTERS:
        raise Invalid(
            f"Choose a password of {MIN_PASSWORD_CHARACTERS} characters or more. Nothing was changed.",
            code="password_too_short",
        )
    if len(password) > MAX_PASSWORD_CHARACTERS:
        raise Invalid(
            f"A password has at most {MAX_PASSWORD_CHARACTERS} characters. Nothing was changed.",
            code="password_too_long",
        )
    return password


async def hash_password(password: str) -> str:
    """The argon2id hash of a new password. Raises `Invalid` as `checked` does."""
    return await asyncio.get_running_loop().run_in_executor(
        HASHING_THREADS, PASSWORD_HASHER.hash, validate_password(password)
    )


async def is_password_correct(password_hash: str | None, password: str) -> bool:
    """Whether this is the password; without a hash the work is the same and the answer is no."""
    is_match = await asyncio.get_running_loop().run_in_executor(
        HASHING_THREADS, _matches_hash, password_hash or decoy_password_hash(), password[:MAX_PASSWORD_CHARACTERS]
    )
    return is_match and password_hash is not None


def _matches_hash(password_hash: str, password: str) -> bool:
    try:
        return PASSWORD_HASHER.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
