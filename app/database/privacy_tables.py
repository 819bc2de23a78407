"""Tables of people's data: erasures of annotators, and the codes by which annotators can be found."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, cascading_foreign_key, metadata, partial_index

# Erasures of annotators, with their receipts. A row is stored before anything is erased, so an interrupted erasure is
# continued. It holds hashes of the former ids, so that an import or a restored backup does not bring them back.
erasures = Table(
    "erasures",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("receipt", Text, nullable=False),  # its number, such as E-7K2MQ4TD
    Column("annotator_id", BigInteger, nullable=False),
    Column("rule", Text, nullable=False),
    Column("requested_by", Text, nullable=False),  # a login name, or 'the annotator'
    Column("requested_at", Time, nullable=False),
    Column("due_at", Time, nullable=False),  # until then the annotator can take the request back
    Column("identifiers_erased_at", Time),  # ids, names and free text are gone
    Column("finished_at", Time),  # the answers are gone, too, if the rule is 'remove'
    Column("counts", JSONB, nullable=False, server_default="{}"),  # of changed rows, by table
    Column("person_hashes", ARRAY(LargeBinary), nullable=False, server_default="{}"),  # of the former ids
    PrimaryKeyConstraint("campaign_id", "id"),
    UniqueConstraint("receipt"),
    UniqueConstraint("campaign_id", "annotator_id", "rule"),
    cascading_foreign_key("annotators", "annotator_id", from_table="erasures"),
    CheckConstraint("rule IN ('anonymise', 'remove')", name="rule"),
    partial_index("finished_at IS NULL", "erasures_open_idx", "due_at"),
)

# Withdrawals that annotators took back, so that no restored backup carries them out. They name no person.
undone_withdrawals = Table(
    "undone_withdrawals",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("receipt", Text, nullable=False),
    Column("undone_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "receipt"),
)

# Hashes of the codes that annotators see at the end, by which they can be found without an id.
withdrawal_codes = Table(
    "withdrawal_codes",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("code_hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("campaign_id", "annotator_id"),
    cascading_foreign_key("annotators", "annotator_id", from_table="withdrawal_codes"),
    Index("withdrawal_codes_code_hash_idx", "campaign_id", "code_hash"),
)

# Data that a campaign's retention has erased, one row per kind and day.
retention_runs = Table(
    "retention_runs",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("ran_at", Time, nullable=False),
    Column("finished_at", Time),  # all was erased then, and looked through
    Column("counts", JSONB, nullable=False),
    PrimaryKeyConstraint("campaign_id", "kind", "ran_at"),
)
