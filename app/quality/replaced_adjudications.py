"""The decision that an adjudication replaced, which Undo restores."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign

FIND_REPLACED_LABEL = text("""
    SELECT former.label, former.reason FROM adjudications undone
    JOIN adjudications former ON former.id = undone.replaces AND former.campaign_id = undone.campaign_id
    WHERE undone.campaign_id = :campaign AND undone.id = :adjudication
""")


async def load_replaced_label_and_reason(
    connection: AsyncConnection, campaign: Campaign, adjudication_id: int
) -> tuple[str | None, str]:
    """Return the label and the reason of the decision that an adjudication replaced.

    Returns:
        None and an empty reason if it replaced none; None, too, if the item was reopened before it.

    """
    parameters = {"campaign": campaign.id, "adjudication": adjudication_id}
    row = (await connection.execute(FIND_REPLACED_LABEL, parameters)).one_or_none()
    return (row.label, row.reason) if row else (None, "")
