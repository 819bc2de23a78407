"""Hashes of erased people's former ids, by which they are recognised without storing the ids.

An import skips these people, and links no longer admit them to the campaign (`participant_check`). A file next to
backups lists erasures, open withdrawals, and withdrawals that were taken back: a restored backup applies again those
that are later than it (`erasure_reapplication`).
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.participant_check import ERASED_PERSON_HASH

BY_ANNOTATOR_NAME = "the annotator"

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


# Where the row a is an annotator and c their campaign.
SQL_OF_ID_HASH = ERASED_PERSON_HASH.format(platform="a.platform", worker_id="a.worker_id")
SQL_OF_PSEUDONYM_HASH = "sha256(convert_to(concat(c.link_key, E'\\n\\n', a.pseudonym), 'UTF8'))"

# An open withdrawal has no hashes yet: those of the present ids, and of erasures before it.
LIST_ERASURES_OF_SERVER = text(f"""
    SELECT c.slug AS campaign, 'erased' AS state, e.receipt, e.rule, e.requested_by, e.requested_at, e.due_at,
        e.person_hashes, e.requested_at AS asked_at, e.id
    FROM erasures e JOIN campaigns c ON c.id = e.campaign_id WHERE e.identifiers_erased_at IS NOT NULL
    UNION ALL
    SELECT c.slug, 'open', e.receipt, e.rule, e.requested_by, e.requested_at, e.due_at,
        ARRAY[{SQL_OF_ID_HASH}, {SQL_OF_PSEUDONYM_HASH}] || coalesce(earlier.person_hashes, '{{}}'),
        e.requested_at, e.id
    FROM erasures e JOIN campaigns c ON c.id = e.campaign_id
    JOIN annotators a ON a.campaign_id = e.campaign_id AND a.id = e.annotator_id
    LEFT JOIN (
        SELECT former.campaign_id, former.annotator_id, array_agg(DISTINCT hash) AS person_hashes
        FROM erasures former, unnest(former.person_hashes) AS hash GROUP BY 1, 2
    ) AS earlier ON earlier.campaign_id = e.campaign_id AND earlier.annotator_id = e.annotator_id
    WHERE e.identifiers_erased_at IS NULL
    UNION ALL
    SELECT c.slug, 'undone', u.receipt, 'remove', '{BY_ANNOTATOR_NAME}', u.undone_at, u.undone_at, '{{}}',
        u.undone_at, 0
    FROM undone_withdrawals u JOIN campaigns c ON c.id = u.campaign_id
    ORDER BY asked_at, id
""")


class ListedErasure(BaseModel):
    """One line of the file: a request to erase a person, with hashes of their former ids in hexadecimal digits.

    `state` is `erased`; `open` for a withdrawal that the annotator can take back until `due_at`; or `undone` for one
    that was taken back at `requested_at`, which has no hashes.
    """

    campaign: str
    state: Literal["erased", "open", "undone"] = "erased"  # lists of earlier versions know no other
    receipt: str
    rule: Literal["anonymise", "remove"]
    requested_by: str
    requested_at: datetime
    due_at: datetime | None = None
    person_hashes: list[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]


async def load_erasure_list(connection: AsyncConnection) -> Sequence[ListedErasure]:
    """Return all erasures, open withdrawals and withdrawals taken back of the server, in the order of the requests."""
    return [
        ListedErasure.model_validate({**row, "person_hashes": [part.hex() for part in row["person_hashes"]]})
        for row in (await connection.execute(LIST_ERASURES_OF_SERVER)).mappings()
    ]


def format_erasure_list(erasures: Sequence[ListedErasure]) -> str:
    return "".join(f"{erasure.model_dump_json()}\n" for erasure in erasures)


def with_erasures_of_older_list(
    erasures: Sequence[ListedErasure], older: Sequence[ListedErasure]
) -> Sequence[ListedErasure]:
    """Return a list with what an older one knows better, in the order of the requests: requests that are missing, and
    the end of withdrawals that are open.
    """
    states = {erasure.receipt: erasure.state for erasure in erasures}
    kept = [
        erasure
        for erasure in older
        if states.get(erasure.receipt, "open") == "open" and (erasure.receipt not in states or erasure.state != "open")
    ]
    replaced = {erasure.receipt for erasure in kept}
    others = [erasure for erasure in erasures if erasure.receipt not in replaced]
    return sorted([*kept, *others], key=lambda erasure: erasure.requested_at)
