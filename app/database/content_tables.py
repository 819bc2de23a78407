"""The part of the schema that keeps what annotators see of items beside their texts: outputs of systems for segments,
and the images, recordings and videos that items name, with those who could not open them.
"""

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

from app.database.schema import Time, cascading_foreign_key, metadata

# Where the items are systems: the segments that they have outputs for, and what stands above the outputs of one.
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

# What annotators see of an item in a HIT of a segment. Only added to once the campaign was launched.
outputs = Table(
    "outputs",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("segment", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("shown", Text, nullable=False),
    # Of all that it shows, files included: the same for outputs that are the same. Known from the launch on; NULL where
    # that is its text alone
    Column("digest", Text),
    PrimaryKeyConstraint("campaign_id", "segment", "item"),
)

# An address is a random number, and so a secret of those who were shown the page.
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

# Who could not open what an item shows; where items are systems, their outputs for a segment.
media_reports = Table(
    "media_reports",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("item", Integer, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("reported_at", Time, nullable=False),
    Column("segment", Integer, nullable=False, server_default="0"),  # 0 where items are shown as they are
    PrimaryKeyConstraint("campaign_id", "item", "segment", "annotator_id"),
    cascading_foreign_key("annotators", "annotator_id", in_table="media_reports"),
    Index("media_reports_annotator_id_idx", "campaign_id", "annotator_id"),
)
