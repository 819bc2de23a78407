"""The part of the schema that says who reaches a campaign, beside those whose role for the whole server does."""

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
)

from app.database.schema import Time, metadata

# Researchers and their roles in campaigns: `auth/roles.py`. A rehearsal has none of its own.
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

# Open invitations: to a campaign, or where there is none, to the server. One that is used goes.
invitations = Table(
    "invitations",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), index=True),
    Column("role", Text, nullable=False),
    Column("words", Text, nullable=False),  # for whom it is
    # NULL: it was made on the command line
    Column("invited_by", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), index=True),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
)

# Links by which a campaign can be looked at without an account.
campaign_links = Table(
    "campaign_links",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("words", Text, nullable=False),  # for whom it is
    Column("made_by", Text, nullable=False),  # a login name
    Column("made_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "id"),
)
