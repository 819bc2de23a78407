"""What annotators did before the work, step by step, and the texts that they agreed to."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, goes_with, metadata

visits = Table(
    "visits",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("step", Text, nullable=False),
    Column("version", Integer, nullable=False),  # of a consent the number of its text, of what is tried that of the try
    Column("outcome", Text, nullable=False),
    Column("said", JSONB, nullable=False, server_default="{}"),
    Column("taken_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "annotator_id", "step", "version"),
    goes_with("annotators", "annotator_id", in_table="visits"),
    CheckConstraint("outcome IN ('passed', 'declined', 'failed', 'taken')", name="outcome"),
)

# Who may come by a link of their own. Annotators are known by the number, so that nobody learns a link from them.
personal_links = Table(
    "personal_links",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", Text, nullable=False),  # or a mail address: for the researcher alone
    Column("link", Text, nullable=False),  # what stands in their address: as it is, since it is to be sent again
    Column("added_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "link"),
    UniqueConstraint("campaign_id", "name"),
)

# Every text that a launched campaign asked consent to, by the version of its visit that began with it.
consent_texts = Table(
    "consent_texts",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("markdown", Text, nullable=False),
    Column("sha256", Text, nullable=False),  # of the text in UTF-8, in hexadecimal digits
    Column("since", Time, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("campaign_id", "version"),
)
