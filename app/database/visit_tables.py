"""Tables of onboarding: annotators' steps before the work, personal links, consent texts, and limits on visits."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import Time, cascading_foreign_key, metadata, partial_index

# Results of the steps before the work, for each annotator.
visits = Table(
    "visits",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("step", Text, nullable=False),
    Column("version", Integer, nullable=False),  # number of the consent text, or of the attempt at training and tests
    Column("outcome", Text, nullable=False),
    Column("said", JSONB, nullable=False, server_default="{}"),
    Column("taken_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "annotator_id", "step", "version"),
    cascading_foreign_key("annotators", "annotator_id", from_table="visits"),
    CheckConstraint("outcome IN ('passed', 'declined', 'failed', 'taken', 'full', 'lapsed')", name="outcome"),
    # Places in quotas.
    partial_index("step = 'questions' AND outcome = 'passed'", "visits_passed_questions_idx", "campaign_id"),
)

# People with personal links. Annotators are identified by the number, so that no data about them reveal a link.
personal_links = Table(
    "personal_links",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", Text, nullable=False),  # or a mail address: for the researcher alone
    Column("link", Text, nullable=False),  # the secret part of the URL, in plain text, so that it can be sent again
    Column("added_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "link"),
    UniqueConstraint("campaign_id", "name"),
)

# The people who may take part, or may not, and groups of people, by the ids of their platforms. An erased person's id
# is NULL. The hash of a block stays, so that it still holds. On the allow list a random hash is left, because an empty
# list would let everyone take part.
participant_lists = Table(
    "participant_lists",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("list", Text, nullable=False),  # allow, block, or the name of a group
    Column("person_hash", LargeBinary, nullable=False),  # of the id, with the campaign's key
    Column("worker_id", Text),
    Column("added_at", Time, nullable=False),
    Column("number", BigInteger, Identity(always=True), nullable=False),
    PrimaryKeyConstraint("campaign_id", "list", "person_hash"),
    CheckConstraint("list <> ''", name="list"),
    Index("participant_lists_person_idx", "campaign_id", "person_hash"),  # the groups of a person
)

# Every consent text of a launched campaign, by the visit version that introduced it.
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

# Rate limits for new visits through a campaign's public link: per network address (a keyed hash), and in total (empty
# address). Kept for an hour; see `annotation.platforms.visit_limit`.
visit_allowances = Table(
    "visit_allowances",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("address", LargeBinary, nullable=False),
    Column("full_at", Time, nullable=False, index=True),
    Column("share", Interval),  # of the hour, that the latest use took
    PrimaryKeyConstraint("campaign_id", "address"),
)

# Number of visits turned away by the rate limits, by day (UTC).
visit_refusals = Table(
    "visit_refusals",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("day", Date, nullable=False),
    Column("refused", Integer, nullable=False),
    PrimaryKeyConstraint("campaign_id", "day"),
)

# The simulated crowd of a rehearsal. The process that runs it extends `led_until`; after that time the process
# counts as dead.
crowds = Table(
    "crowds",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), primary_key=True),
    Column("described", JSONB, nullable=False),  # number and parameters of the annotators
    Column("led_until", Time, nullable=False),
)
