"""What easl-aware knows of an item in two parts, so that an answer need not write all judgments of its items anew."""

import math
import struct
from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Bytes: of an item's posterior, of one judgment, and of who gave it and its score. The rest is NaN until it is looked
# at; campaigns of the first rule, whose states had other lengths, look at once.
POSTERIOR, JUDGMENT, NEW = 16, 80, 16
UNSEEN = struct.pack("<8d", *[math.nan] * 8)
ITEMS = sa.text("""
    SELECT item.campaign_id, item.number, item.state, item.since FROM learned item
    JOIN learned campaign ON campaign.campaign_id = item.campaign_id AND campaign.kind = 'campaign'
    WHERE item.kind = 'item' AND octet_length(campaign.state) IN (24, 240)
      AND (item.campaign_id, item.number) > (:campaign, :number)
    ORDER BY item.campaign_id, item.number LIMIT 100
""")
KEEP = sa.text("""
    UPDATE learned SET state = :state, since = :since
    WHERE campaign_id = :campaign AND kind = 'item' AND number = :number
""")


def upgrade() -> None:
    op.add_column("learned", sa.Column("since", sa.LargeBinary(), server_default="", nullable=False))
    # Floats hardly get smaller by compression, which takes longer than to write them.
    op.execute("ALTER TABLE learned ALTER COLUMN state SET STORAGE EXTERNAL")
    change_items(in_two_parts)


def downgrade() -> None:
    change_items(in_one_part)
    op.execute("ALTER TABLE learned ALTER COLUMN state SET STORAGE EXTENDED")
    op.drop_column("learned", "since")


def change_items(change: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> None:
    connection, last = op.get_bind(), {"campaign": 0, "number": -1}
    while rows := connection.execute(ITEMS, last).all():
        last = {"campaign": rows[-1].campaign_id, "number": rows[-1].number}
        values = []
        for row in rows:
            state, since = change(row.state, row.since)
            values.append({"campaign": row.campaign_id, "number": row.number, "state": state, "since": since})
        connection.execute(KEEP, values)


def in_two_parts(state: bytes, _since: bytes) -> tuple[bytes, bytes]:
    judgments = [state[start : start + JUDGMENT] for start in range(POSTERIOR, len(state), JUDGMENT)]
    seen = len(judgments)
    while seen and math.isnan(struct.unpack("<d", judgments[seen - 1][-8:])[0]):
        seen -= 1
    since = state[:POSTERIOR] + b"".join(judgment[:NEW] for judgment in judgments[seen:])
    return b"".join(judgments[:seen]), since


def in_one_part(state: bytes, since: bytes) -> tuple[bytes, bytes]:
    new = [since[start : start + NEW] + UNSEEN for start in range(POSTERIOR, len(since), NEW)]
    return since[:POSTERIOR] + state + b"".join(new), b""
