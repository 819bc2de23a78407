"""Tables of the installation's secret, claims and counts, researchers' accounts, the audit log and alerts."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from app.database.schema import Time, cascading_foreign_key, metadata, partial_index

# One row: values that all processes of the installation share.
installation = Table(
    "installation",
    metadata,
    Column("single", Boolean, primary_key=True, server_default=text("true")),
    Column("secret_key", Text, nullable=False),
    CheckConstraint("single", name="one_row"),
)

# Work that one process at a time does; see `exclusive_work`.
exclusive_work = Table(
    "exclusive_work",
    metadata,
    Column("work", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("deadline", Time, nullable=False),  # moved while the holder works; then another process may take it over
)

# Number of judgments of drawn items that a campaign had at a watermark: a list of campaigns counts only later ones.
# A new revision, a decision or a restart of the server makes the count invalid.
counted_judgments = Table(
    "counted_judgments",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("decided", BigInteger, nullable=False),
    Column("always_shown", ARRAY(Integer), nullable=False),
    Column("server_started", Time, nullable=False),
    Column("watermark", Text, nullable=False),
    Column("judgments", BigInteger, nullable=False),
)

# Researchers.
users = Table(
    "users",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("password_hash", Text),  # argon2id; NULL: this user can only log in with a one-time link
    Column("created_at", Time, nullable=False),
    Column("role", Text, nullable=False, server_default="guest"),  # see `accounts/roles.py`
    CheckConstraint("role IN ('guest', 'member', 'viewer', 'manager', 'owner')", name="role"),
)

# Sessions of browsers. Secrets are stored as SHA-256 only, so a reader of the table cannot log in with them.
logins = Table(
    "logins",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("idle_at", Time, nullable=False),  # it also ends then unless it is used before
    Column("by_link_at", Time),  # time of a login by link; such a user may have forgotten the password
)

# A researcher's identity at a login provider (OpenID Connect).
identities = Table(
    "identities",
    metadata,
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("connected_at", Time, nullable=False),
    PrimaryKeyConstraint("issuer", "subject"),
    UniqueConstraint("issuer", "user_id"),
)

# Login links that work once.
one_time_logins = Table(
    "one_time_logins",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("expires_at", Time, nullable=False),
)

# Failed logins, which limit further attempts.
login_failures = Table(
    "login_failures",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("failed_at", Time, nullable=False, index=True),
    Column("browser", Text),  # one that had logged in under this name before
)

# Tokens of programs, with their scopes.
api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", Time, nullable=False),
    Column("last_used_at", Time),
    Column("last_used_from", Text),  # an IPv4 address or IPv6 network; empty if unknown
    Column("scopes", ARRAY(Text), nullable=False),  # what it may be used for: see `accounts/roles.py`
    # The one campaign that it is for; NULL: all campaigns of its owner.
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), index=True),
)

AUDIT_WAYS = ("page", "api", "command", "server")  # how a change was made

# Who changed what. No foreign key: a line stays when its campaign or its researcher is deleted. A trigger refuses to
# change or delete a line.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("noted_at", Time, nullable=False, server_default=func.now(), index=True),
    Column("who", Text, nullable=False),
    Column("way", Text, nullable=False),
    Column("campaign_id", BigInteger),
    Column("campaign", Text),  # its slug
    Column("action", Text, nullable=False),
    Column("about", Text, nullable=False, server_default=""),
    Column("before", JSONB),
    Column("after", JSONB),
    Column("answers", BigInteger),  # of the campaign at that time, for changes of the campaign, its settings or items
    Index("audit_log_campaign_id_idx", "campaign_id", "id"),
    CheckConstraint(f"way IN {AUDIT_WAYS}", name="way"),
)

# Notifications for campaign owners, one for each event.
alerts = Table(
    "alerts",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("occasion", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("because", Text, nullable=False, server_default=""),
    Column("raised_at", Time, nullable=False, server_default=func.now()),
    Column("seen_at", Time),
    Column("seen_by", Text),  # a login name
    PrimaryKeyConstraint("campaign_id", "id"),
    UniqueConstraint("campaign_id", "kind", "occasion"),
)

# Alerts to send, one row for each receiver. A failed message is tried again, a limited number of times.
alert_messages = Table(
    "alert_messages",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("alert_id", BigInteger, nullable=False),
    Column("way", Text, nullable=False),
    Column("receiver", Text, nullable=False, server_default=""),  # an e-mail address; the webhook is the campaign's own
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("next_try_at", Time, nullable=False, server_default=func.now()),
    Column("sent_at", Time),
    Column("problem", Text),  # of the last try
    PrimaryKeyConstraint("campaign_id", "alert_id", "way", "receiver"),
    cascading_foreign_key("alerts", "alert_id", from_table="alert_messages"),
    partial_index("sent_at IS NULL", "alert_messages_due_idx", "next_try_at"),
    CheckConstraint("way IN ('email', 'webhook')", name="way"),
)
