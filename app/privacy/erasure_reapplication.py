"""Apply erasures and withdrawals again in a restored backup that is older than they are."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.programs import API_PLATFORM
from app.errors import Conflict, NotFound, StartupProblem
from app.privacy.erasure_list import SQL_OF_ID_HASH, SQL_OF_PSEUDONYM_HASH, ListedErasure
from app.privacy.erasure_work import finish_erasures_that_are_due
from app.privacy.erasures import erase_identifiers_and_return_erasure, store_erasure_request_or_refuse
from app.privacy.invited_people import create_annotator_of_hashed_link_unless_erased
from app.privacy.listed_people import create_annotator_of_listed_hash_unless_erased
from app.privacy.withdrawal import store_withdrawal_and_return_erasure, try_to_delete_open_withdrawal
from app.record.campaign import load_campaign_by_slug_or_refuse

log = logging.getLogger(__name__)

# Annotators whose id or pseudonym has one of the hashes, then those who were erased before and had one then; no one if
# the database knows the request and what became of it.
FIND_ANNOTATORS_BY_HASH = text(f"""
    SELECT matching.id FROM (
        SELECT a.id, 1 AS place FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
        WHERE a.campaign_id = :campaign AND ({SQL_OF_ID_HASH} = ANY(:hashes) OR {SQL_OF_PSEUDONYM_HASH} = ANY(:hashes))
        UNION ALL SELECT e.annotator_id, 2 FROM erasures e
        WHERE e.campaign_id = :campaign AND e.person_hashes && CAST(:hashes AS bytea[])
    ) AS matching
    WHERE NOT EXISTS (
        SELECT FROM erasures e
        WHERE e.receipt = :receipt AND (e.identifiers_erased_at IS NOT NULL OR :state = 'open'))
    AND NOT EXISTS (SELECT FROM undone_withdrawals u WHERE u.campaign_id = :campaign AND u.receipt = :receipt)
    ORDER BY matching.place, matching.id LIMIT 1
""")

# The file of an interrupted import may have the person's answers: it is continued after the restore, and skips people
# whose hashes are known.
CREATE_ANNOTATOR_OF_UNFINISHED_IMPORT = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT campaign_id, :platform, CAST(:pseudonym AS text), CAST(:pseudonym AS text), :now FROM unfinished_imports
    WHERE campaign_id = :campaign AND NOT EXISTS (SELECT FROM erasures WHERE receipt = :receipt)
    RETURNING id
""")

# A request that was open at the time of the backup: the list has a later one, so the annotator had taken it back.
DELETE_OPEN_ERASURE = text("""
    DELETE FROM erasures
    WHERE campaign_id = :campaign AND annotator_id = :annotator AND identifiers_erased_at IS NULL
""")


async def read_erasure_list(path: Path) -> Sequence[ListedErasure]:
    """Return the erasures in a file. Raises `StartupProblem` (`erasures_unreadable`) with the line."""
    number, erasures = 1, {}
    try:
        for number, line in enumerate((await asyncio.to_thread(path.read_text, "utf-8")).splitlines(), start=1):
            erasures[number] = ListedErasure.model_validate_json(line)
    except (OSError, ValueError) as problem:
        raise StartupProblem(
            f"{path} is not a list of erasures: line {number} cannot be read. It was neither applied nor changed.",
            code="erasures_unreadable",
        ) from problem
    return [*erasures.values()]


async def reapply_erasures_and_count_by_state(
    engine: AsyncEngine, erasures: Sequence[ListedErasure], *, now: datetime
) -> Mapping[str, int]:
    """Apply the requests of a list that this database does not know, and return their numbers by state.

    People are erased, withdrawals are open again until they are due, and withdrawals that were taken back are closed.
    A campaign that the database does not have is passed over. A request that is refused, such as `anonymise` after
    `remove`, is logged with its receipt, and the next ones follow.
    """
    count_by_state: Counter[str] = Counter()
    for listed in erasures:
        try:
            async with engine.begin() as connection:
                if await reapply_erasure_returning_if_changed(connection, listed, now=now):
                    count_by_state[listed.state] += 1
        except Conflict as refusal:
            log.warning("Receipt %s was not applied to the restored backup: %s", listed.receipt, refusal)
    await finish_erasures_that_are_due(engine, now=now)
    return count_by_state


async def reapply_erasure_returning_if_changed(
    connection: AsyncConnection, listed: ListedErasure, *, now: datetime
) -> bool:
    """Apply a request of a list; return False if there is nothing to change.

    Raises:
        Conflict: `already_erased`.

    """
    try:
        campaign = await load_campaign_by_slug_or_refuse(connection, listed.campaign)
    except NotFound:
        return False
    if listed.state == "undone":
        return await try_to_delete_open_withdrawal(
            connection, campaign, listed.receipt, now=listed.requested_at, is_after_restore=True
        )
    hashes = [bytes.fromhex(part) for part in listed.person_hashes]
    parameters = {"campaign": campaign.id, "receipt": listed.receipt, "hashes": hashes, "state": listed.state}
    for make_annotator in (
        create_annotator_of_hashed_link_unless_erased,
        create_annotator_of_listed_hash_unless_erased,
    ):
        await make_annotator(connection, campaign.id, hashes, receipt=listed.receipt, now=listed.requested_at)
    annotator_id = (await connection.execute(FIND_ANNOTATORS_BY_HASH, parameters)).scalar_one_or_none()
    if annotator_id is None and listed.state == "erased":
        annotator_id = await create_annotator_of_unfinished_import_or_none(connection, campaign.id, listed)
    if annotator_id is None:
        return False
    await connection.execute(DELETE_OPEN_ERASURE, {"campaign": campaign.id, "annotator": annotator_id})
    due_at = listed.due_at or listed.requested_at
    if listed.state == "open":
        await store_withdrawal_and_return_erasure(
            connection, campaign, annotator_id, now=listed.requested_at, due_at=due_at, receipt_number=listed.receipt
        )
        return True
    erasure = await store_erasure_request_or_refuse(
        connection,
        campaign,
        annotator_id,
        listed.rule,
        requested_by=listed.requested_by,
        now=listed.requested_at,
        due_at=due_at,
        receipt_number=listed.receipt,
    )
    await erase_identifiers_and_return_erasure(connection, campaign, erasure, now=now, known_hashes=hashes)
    return True


async def create_annotator_of_unfinished_import_or_none(
    connection: AsyncConnection, campaign_id: int, listed: ListedErasure
) -> int | None:
    """Make an annotator for the hashes of a person whom the backup does not know; None without an unfinished import."""
    parameters = {
        "campaign": campaign_id,
        "platform": API_PLATFORM.name,
        "pseudonym": secrets.token_hex(5),
        "now": listed.requested_at,
        "receipt": listed.receipt,
    }
    return (await connection.execute(CREATE_ANNOTATOR_OF_UNFINISHED_IMPORT, parameters)).scalar_one_or_none()
