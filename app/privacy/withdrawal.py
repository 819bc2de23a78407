"""Withdrawal by the annotator: their answers are removed after a day, in which they can take it back."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.withdrawal_code import STORE_CODE_HASH, withdrawal_code_hash
from app.database.audit_log import Actor, log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Forbidden, NotFound
from app.privacy.erasure_list import BY_ANNOTATOR_NAME
from app.privacy.erasures import FIND_EARLIER_ERASURE, Erasure, store_erasure_request_or_refuse
from app.quality.decisions import RELEASE_LEASES_OF_ANNOTATOR

UNDO_HOURS = 24
ANNOTATOR_ACTOR = Actor(BY_ANNOTATOR_NAME, "page")
WITHDRAWN_REASON = "withdrawn"

# While the annotator can take it back, they get no HITs. An annotator whom a researcher blocked stays blocked.
BLOCK_WITHDRAWN_ANNOTATOR = text("""
    UPDATE annotators SET barred = 'erased', barred_reason = :reason, barred_by = :by, barred_at = :now
    WHERE campaign_id = :campaign AND id = :annotator AND barred IS NULL
""")
UNBLOCK_WITHDRAWN_ANNOTATOR = text("""
    UPDATE annotators SET barred = NULL, barred_reason = NULL, barred_by = NULL, barred_at = NULL
    WHERE campaign_id = :campaign AND id = :annotator AND barred = 'erased' AND barred_reason = :reason
""")

DELETE_OPEN_WITHDRAWAL = text("""
    DELETE FROM erasures WHERE campaign_id = :campaign AND receipt = :receipt AND rule = 'remove'
    AND requested_by = :by AND identifiers_erased_at IS NULL AND (due_at > :now OR :is_after_restore)
    RETURNING annotator_id
""")
NOTE_UNDONE_WITHDRAWAL = text("""
    INSERT INTO undone_withdrawals (campaign_id, receipt, undone_at) VALUES (:campaign, :receipt, :now)
    ON CONFLICT DO NOTHING
""")

FIND_ANNOTATOR_OF_ASSIGNMENT = text("""
    SELECT annotator_id FROM assignments WHERE campaign_id = :campaign AND id = :assignment
""")


@dataclass(frozen=True)
class WithdrawalState:
    """An annotator, and the latest request to erase them; None if there is none."""

    annotator_id: int
    erasure: Erasure | None

    @property
    def can_be_undone(self) -> bool:
        """Return whether the annotator withdrew, and nothing is erased yet."""
        erasure = self.erasure
        return (
            erasure is not None and erasure.identifiers_erased_at is None and erasure.requested_by == BY_ANNOTATOR_NAME
        )


async def load_withdrawal_state_or_refuse(
    connection: AsyncConnection, campaign: Campaign, assignment_id: int
) -> WithdrawalState:
    """Return whether an annotator has withdrawn. Raises `NotFound` (`assignment_not_found`)."""
    key = {"campaign": campaign.id, "assignment": assignment_id}
    annotator_id = (await connection.execute(FIND_ANNOTATOR_OF_ASSIGNMENT, key)).scalar_one_or_none()
    if annotator_id is None:
        raise NotFound("This study no longer exists.", code="assignment_not_found")
    parameters = {"campaign": campaign.id, "annotator": annotator_id, "rules": ["anonymise", "remove"]}
    row = (await connection.execute(FIND_EARLIER_ERASURE, parameters)).one_or_none()
    return WithdrawalState(annotator_id, None if row is None else Erasure.from_erasure_row(row))


async def store_withdrawal_code_hash(
    connection: AsyncConnection, campaign_id: int, annotator_id: int, code: str
) -> None:
    """Store the hash of a code that an annotator is shown."""
    key = {"campaign": campaign_id, "annotator": annotator_id}
    await connection.execute(STORE_CODE_HASH, key | {"code_hash": withdrawal_code_hash(code)})


async def withdraw_annotator_and_return_erasure(
    connection: AsyncConnection, campaign: Campaign, assignment_id: int, *, now: datetime
) -> Erasure:
    """Stop giving HITs to the annotator of an assignment, and remove their answers after `UNDO_HOURS`.

    Raises:
        Forbidden: `withdrawal_not_offered`, if the campaign's setting `withdrawal` is not `self`.
        NotFound: `assignment_not_found`.
        Conflict: `already_erased`.

    """
    if campaign.withdrawal != "self":
        raise Forbidden(
            "Here only the researcher can remove answers. Nothing was changed.", code="withdrawal_not_offered"
        )
    state = await load_withdrawal_state_or_refuse(connection, campaign, assignment_id)
    return await store_withdrawal_and_return_erasure(
        connection, campaign, state.annotator_id, now=now, due_at=now + timedelta(hours=UNDO_HOURS)
    )


async def store_withdrawal_and_return_erasure(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    now: datetime,
    due_at: datetime,
    receipt_number: str | None = None,
) -> Erasure:
    """Stop giving HITs to an annotator, and remove their answers when that is due. `receipt_number` is the number of
    the withdrawal, if it has one already. Raises `Conflict` as `store_erasure_request_or_refuse`.
    """
    key = {"campaign": campaign.id, "annotator": annotator_id}
    # In the order of all erasures: the request, HITs, the annotator.
    erasure = await store_erasure_request_or_refuse(
        connection,
        campaign,
        annotator_id,
        "remove",
        requested_by=BY_ANNOTATOR_NAME,
        now=now,
        due_at=due_at,
        receipt_number=receipt_number,
    )
    await connection.execute(RELEASE_LEASES_OF_ANNOTATOR, key)
    block = {"reason": WITHDRAWN_REASON, "by": BY_ANNOTATOR_NAME, "now": now}
    await connection.execute(BLOCK_WITHDRAWN_ANNOTATOR, key | block)
    await log_change(connection, "people.withdrew", campaign, about=erasure.receipt, actor=ANNOTATOR_ACTOR)
    return erasure


async def undo_withdrawal_or_refuse(
    connection: AsyncConnection, campaign: Campaign, assignment_id: int, *, now: datetime
) -> None:
    """Let the annotator of an assignment continue, and keep their answers.

    Raises:
        NotFound: `assignment_not_found`.
        Conflict: `not_withdrawn`; `withdrawal_final`, if the answers are being removed.

    """
    state = await load_withdrawal_state_or_refuse(connection, campaign, assignment_id)
    if state.erasure is None:
        raise Conflict("Nothing is withdrawn. Your answers are kept.", code="not_withdrawn")
    if not await try_to_delete_open_withdrawal(connection, campaign, state.erasure.receipt, now=now):
        raise Conflict("This can no longer be taken back. Nothing was changed.", code="withdrawal_final")


async def try_to_delete_open_withdrawal(
    connection: AsyncConnection,
    campaign: Campaign,
    receipt_number: str,
    *,
    now: datetime,
    is_after_restore: bool = False,
) -> bool:
    """Take back a withdrawal, and return False if it is not open.

    A restored backup may have it open though its time is over: with `is_after_restore` it is taken back all the same.
    """
    key = {"campaign": campaign.id, "receipt": receipt_number, "now": now}
    parameters = {**key, "by": BY_ANNOTATOR_NAME, "is_after_restore": is_after_restore}
    annotator_id = (await connection.execute(DELETE_OPEN_WITHDRAWAL, parameters)).scalar_one_or_none()
    if annotator_id is not None or is_after_restore:
        await connection.execute(NOTE_UNDONE_WITHDRAWAL, key)
    if annotator_id is None:
        return False
    unblocked = {"campaign": campaign.id, "annotator": annotator_id, "reason": WITHDRAWN_REASON}
    await connection.execute(UNBLOCK_WITHDRAWN_ANNOTATOR, unblocked)
    await log_change(connection, "people.withdrawal_undone", campaign, about=receipt_number, actor=ANNOTATOR_ACTOR)
    return True
