"""Tables of the quality rules' findings, of gold and attention items with their answers, and of final labels."""

from sqlalchemy import (
    ARRAY,
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
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, cascading_foreign_key, metadata

# Findings of quality rules about annotators, and their actions. Append-only.
findings = Table(
    "findings",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("rule", Text, nullable=False),
    Column("action", Text, nullable=False),  # what the rule did: warn, hold, exclude
    Column("seen", JSONB, nullable=False),  # the evidence as numbers, by name
    Column("said", Text, nullable=False),  # the evidence as a sentence
    Column("found_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "id"),
    # Unique: an annotator released after manual review is not held again for the same rule.
    UniqueConstraint("campaign_id", "annotator_id", "rule", "action"),
    cascading_foreign_key("annotators", "annotator_id", from_table="findings"),
)

# Gold and attention items, numbered separately: they are not items of the campaign.
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
    Column("segment", Integer),  # if items are systems: the segment for which this is an output
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "external_id"),
    CheckConstraint("kind IN ('gold', 'attention')", name="kind"),
)

# Positions of checks among the items of HITs as presented, and the numbers under which pages show them.
hit_checks = Table(
    "hit_checks",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("hit_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("check_number", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("campaign_id", "hit_id", "place"),
    cascading_foreign_key("hits", "hit_id", from_table="hit_checks"),
)

# Annotators who could not open the media of a check.
check_reports = Table(
    "check_reports",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("check_number", Integer, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("reported_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "check_number", "annotator_id"),
    cascading_foreign_key("annotators", "annotator_id", from_table="check_reports"),
    Index("check_reports_annotator_id_idx", "campaign_id", "annotator_id"),
)

# Annotators' answers to checks, stored with the answer to the HIT. Append-only except for `changed_to` and
# `other_changed_to`, the last change by the annotator, which never counts.
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
    Column("other_values", ARRAY(Double), nullable=False, server_default="{}"),  # by the criteria after the first
    Column("other_changed_to", ARRAY(Double)),
    PrimaryKeyConstraint("campaign_id", "hit_id", "check_number"),
    cascading_foreign_key("annotators", "annotator_id", from_table="check_answers"),
    cascading_foreign_key("hits", "hit_id", from_table="check_answers"),
    Index("check_answers_annotator_id_idx", "campaign_id", "annotator_id"),
)

# Final labels of items, chosen by researchers. Append-only: a later row names the one that it replaces. They are no
# part of the record: posteriors do not follow from them.
adjudications = Table(
    "adjudications",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("criterion", SmallInteger, nullable=False),
    Column("item", Integer, nullable=False),
    Column("label", Text),  # NULL: the label before was taken back
    Column("reason", Text, nullable=False),  # empty if none was given
    Column("decided_by", Text, nullable=False),
    Column("decided_at", Time, nullable=False),
    Column("replaces", BigInteger),  # NULL: the first of the item
    PrimaryKeyConstraint("campaign_id", "id"),
    # If two researchers have seen the same row, only one of them can replace it.
    Index("adjudications_item_idx", "campaign_id", "criterion", "item", text("coalesce(replaces, 0)"), unique=True),
)
