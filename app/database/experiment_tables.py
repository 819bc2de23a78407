"""Table of the campaigns that are arms of an experiment."""

from sqlalchemy import BigInteger, Column, ForeignKey, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from app.database.schema import metadata

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
