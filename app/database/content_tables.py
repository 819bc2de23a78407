"""Tables of item content: former texts, outputs of systems, media files, and reports of media that did not open."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, cascading_foreign_key, metadata

# If items are systems: the segments that they have outputs for, with the texts shown above the outputs.
segments = Table(
    "segments",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("source", Text),
    Column("reference", Text),
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "external_id"),
)

# Former texts of items that were corrected after the launch. Append-only.
item_versions = Table(
    "item_versions",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("item", Integer, nullable=False),
    Column("version", Integer, nullable=False),  # 1 for the first text
    Column("shown", Text, nullable=False),
    # The last HIT of the campaign that was leased before the correction: HITs up to it show this text or an earlier one
    Column("last_hit", BigInteger, nullable=False),
    Column("replaced_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "item", "version"),
    ForeignKeyConstraint(
        ["campaign_id", "item"], ["items.campaign_id", "items.number"], ondelete="CASCADE", onupdate="CASCADE",
        name="item_versions_item_fkey",
    ),
)  # fmt: skip

# The text of a system's output for a segment. After the launch, rows are only added, and texts are corrected.
outputs = Table(
    "outputs",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("segment", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("shown", Text, nullable=False),
    # Digest of the text and its files, equal for identical outputs. Set at the launch; NULL if there is only text.
    Column("digest", Text),
    PrimaryKeyConstraint("campaign_id", "segment", "item"),
)

# Former texts of outputs that were corrected after the launch, as in `item_versions`. Append-only.
output_versions = Table(
    "output_versions",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("segment", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("shown", Text, nullable=False),
    Column("last_hit", BigInteger, nullable=False),
    Column("replaced_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "segment", "item", "version"),
    ForeignKeyConstraint(
        ["campaign_id", "segment", "item"], ["outputs.campaign_id", "outputs.segment", "outputs.item"],
        ondelete="CASCADE", name="output_versions_output_fkey",
    ),
)  # fmt: skip

# Files of answers whose import has begun. A row is deleted with the last answers, so an interrupted import continues.
unfinished_imports = Table(
    "unfinished_imports",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, nullable=False),
    Column("file", LargeBinary, nullable=False),  # EXTERNAL: it is packed already
    Column("options", JSONB, nullable=False),
    Column("started_at", Time, nullable=False),
    Column("hits", Integer, nullable=False),
)

# Files of items. `address` is random, so only people who were shown a page with the file know it.
media = Table(
    "media",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("address", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    Column("content_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "name"),
)

# The bytes of the files, in pieces.
media_pieces = Table(
    "media_pieces",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),  # EXTERNAL: it is packed already
    PrimaryKeyConstraint("campaign_id", "number", "place"),
    ForeignKeyConstraint(
        ["campaign_id", "number"], ["media.campaign_id", "media.number"], ondelete="CASCADE",
        name="media_pieces_number_fkey",
    ),
)  # fmt: skip

# Annotators who could not open an item's media, or that of an output for a segment.
media_reports = Table(
    "media_reports",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("item", Integer, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("reported_at", Time, nullable=False),
    Column("segment", Integer, nullable=False, server_default="0"),  # 0 where items are shown as they are
    PrimaryKeyConstraint("campaign_id", "item", "segment", "annotator_id"),
    cascading_foreign_key("annotators", "annotator_id", from_table="media_reports"),
    Index("media_reports_annotator_id_idx", "campaign_id", "annotator_id"),
)
