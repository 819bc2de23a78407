"""What rules found of annotators, and the check items among those of a HIT, with what was said of them."""

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, cascading_foreign_key, metadata

# What rules saw of annotators, and did. It only grows, too.
findings = Table(
    "findings",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("rule", Text, nullable=False),
    Column("action", Text, nullable=False),  # what the rule did: warn, hold, exclude
    Column("seen", JSONB, nullable=False),  # what it saw, in numbers by name
    Column("said", Text, nullable=False),  # and in a sentence
    Column("found_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "id"),
    # Once: whoever was let go on after a look by a person is not held again for the same.
    UniqueConstraint("campaign_id", "annotator_id", "rule", "action"),
    cascading_foreign_key("annotators", "annotator_id", in_table="findings"),
)

# Gold and attention items, numbered by themselves: none is ever an item of the campaign.
check_items = Table(
    "check_items",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("expected", JSONB, nullable=False),
    Column("fields", JSON, nullable=False),  # as of an item
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "external_id"),
    CheckConstraint("kind IN ('gold', 'attention')", name="kind"),
)

# Where they stand in HITs, beside the items: at which place as presented, and under which number.
hit_checks = Table(
    "hit_checks",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("hit_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("check_number", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("campaign_id", "hit_id", "place"),
    cascading_foreign_key("hits", "hit_id", in_table="hit_checks"),
)

# Who could not open what a check shows.
check_reports = Table(
    "check_reports",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("check_number", Integer, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("reported_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "check_number", "annotator_id"),
    cascading_foreign_key("annotators", "annotator_id", in_table="check_reports"),
    Index("check_reports_annotator_id_idx", "campaign_id", "annotator_id"),
)

# What annotators said of them, written with the answer to the HIT; append-only, too, but for what they last changed it
# to, which counts for nothing.
check_answers = Table(
    "check_answers",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("hit_id", BigInteger, nullable=False),
    Column("check_number", Integer, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("value", Double, nullable=False),
    Column("answered_at", Time, nullable=False),
    Column("changed_to", Double),
    PrimaryKeyConstraint("campaign_id", "hit_id", "check_number"),
    cascading_foreign_key("annotators", "annotator_id", in_table="check_answers"),
    cascading_foreign_key("hits", "hit_id", in_table="check_answers"),
    Index("check_answers_annotator_id_idx", "campaign_id", "annotator_id"),
)
