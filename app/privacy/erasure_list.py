"""Hashes of erased people's former ids, by which they are recognised without storing the ids."""

import hashlib

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

LIST_PERSON_HASHES = text("SELECT DISTINCT unnest(person_hashes) FROM erasures WHERE campaign_id = :campaign")


def person_hash(link_key: str, platform: str, worker_id: str) -> bytes:
    """Return the hash of a person's id in the campaign with this link key.

    Args:
        link_key: The campaign's key, so that the hashes of two campaigns cannot be joined.
        platform: Name of the platform; empty if `worker_id` is a pseudonym.
        worker_id: The platform's id of the person.

    """
    return hashlib.sha256(f"{link_key}\n{platform}\n{worker_id}".encode()).digest()


async def load_person_hashes(connection: AsyncConnection, campaign_id: int) -> frozenset[bytes]:
    """Return the hashes of all people who were erased from a campaign."""
    return frozenset(await connection.scalars(LIST_PERSON_HASHES, {"campaign": campaign_id}))
