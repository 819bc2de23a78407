"""Hashes of erased people's former ids, by which they are recognised without storing the ids.

An import skips these people. A file with the list is kept next to backups: a restored backup, in which they still are,
erases them again (`erasure_reapplication`).
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

ERASURE_LIST_NAME = "erasures.jsonl"  # the file next to backups

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


LIST_ERASURES_OF_SERVER = text("""
    SELECT c.slug AS campaign, e.receipt, e.rule, e.requested_by, e.requested_at, e.person_hashes
    FROM erasures e JOIN campaigns c ON c.id = e.campaign_id WHERE e.identifiers_erased_at IS NOT NULL
    ORDER BY e.requested_at, e.id
""")


class ListedErasure(BaseModel):
    """One line of the file: an erasure, with hashes of the former ids in hexadecimal digits."""

    campaign: str
    receipt: str
    rule: Literal["anonymise", "remove"]
    requested_by: str
    requested_at: datetime
    person_hashes: list[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]


async def load_erasure_list(connection: AsyncConnection) -> Sequence[ListedErasure]:
    """Return all erasures of the server, oldest first."""
    return [
        ListedErasure.model_validate({**row, "person_hashes": [part.hex() for part in row["person_hashes"]]})
        for row in (await connection.execute(LIST_ERASURES_OF_SERVER)).mappings()
    ]


def format_erasure_list(erasures: Sequence[ListedErasure]) -> str:
    return "".join(f"{erasure.model_dump_json()}\n" for erasure in erasures)
