"""The part of the schema that says who reaches a campaign, beside those whose role for the whole server does."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, PrimaryKeyConstraint, Table, Text

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
