"""Tables of access to single campaigns: members, invitations, links. `users.role` gives access to all campaigns."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from app.database.schema import Time, metadata

# Researchers and their roles in campaigns: see `accounts/roles.py`. A rehearsal has no members of its own.
campaign_members = Table(
    "campaign_members",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("role", Text, nullable=False),
    Column("added_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "user_id"),
    CheckConstraint("role IN ('viewer', 'manager', 'owner')", name="role"),
)

# Open invitations to a campaign, or to the server if `campaign_id` is NULL. A used invitation is deleted.
invitations = Table(
    "invitations",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), index=True),
    Column("role", Text, nullable=False),
    Column("words", Text, nullable=False),  # who it is for
    # NULL: made on the command line
    Column("invited_by", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), index=True),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
)

# Links that show a campaign to people without an account.
campaign_links = Table(
    "campaign_links",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("words", Text, nullable=False),  # who it is for
    Column("made_by", Text, nullable=False),  # a login name
    Column("made_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "id"),
)

# Campaigns that are arms of an experiment with people.
experiment_arms = Table(
    "experiment_arms",
    metadata,
    Column("experiment", Text, nullable=False),  # for researchers: what commands call it
    Column("arm", Text, nullable=False),
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("link_key", Text, nullable=False, index=True),  # for annotators: the same in all arms of an experiment
    PrimaryKeyConstraint("experiment", "arm"),
    UniqueConstraint("campaign_id"),
)
