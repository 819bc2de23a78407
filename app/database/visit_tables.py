"""What annotators did before the work, step by step, and the texts that they agreed to; how many may come in."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, cascading_foreign_key, metadata

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
    cascading_foreign_key("annotators", "annotator_id", in_table="visits"),
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

# How many new visits may come by a campaign's public link, from one network address (a keyed hash) and, without one, in
# all. Kept for an hour; see `crowd.doors`.
visit_allowances = Table(
    "visit_allowances",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("address", LargeBinary, nullable=False),
    Column("full_at", Time, nullable=False, index=True),
    PrimaryKeyConstraint("campaign_id", "address"),
)

# How many visits were turned away because too many came, by day (UTC).
visit_refusals = Table(
    "visit_refusals",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("day", Date, nullable=False),
    Column("refused", Integer, nullable=False),
    PrimaryKeyConstraint("campaign_id", "day"),
)

# The simulated crowd of a rehearsal. A process leads it and says so again and again; when it has not, it is gone.
crowds = Table(
    "crowds",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), primary_key=True),
    Column("described", JSONB, nullable=False),  # how many annotators, and what they are like
    Column("led_until", Time, nullable=False),
)
