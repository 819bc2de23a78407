"""Tables of money: a campaign's connection to its platform's service, payments, the service's submissions, and calls
that tell a platform how a visit ended.
"""

from sqlalchemy import (
    ARRAY,
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
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from app.database.schema import Time, cascading_foreign_key, metadata, partial_index

# How a campaign pays: its budget, and the token of the platform's service if Easel is to send payments itself.
payment_accounts = Table(
    "payment_accounts",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), primary_key=True),
    Column("platform", Text, nullable=False),
    Column("token", LargeBinary),  # encrypted
    Column("token_variable", Text),  # name of the environment variable that has the token instead
    Column("workspace", Text, nullable=False, server_default=""),
    Column("study", Text, nullable=False, server_default=""),  # of the campaign, drafted or entered by a person
    Column("other_studies", ARRAY(Text), nullable=False, server_default="{}"),  # read, too
    Column("currency", Text, nullable=False),
    Column("budget", BigInteger, nullable=False),  # in hundredths, as all money
    Column("approves", Boolean, nullable=False, server_default=text("false")),  # submissions whose answers are all here
    Column("hook_key", Text, nullable=False, unique=True),  # of the address that gets the service's notices
    Column("hook_secret", LargeBinary),  # encrypted
    Column("send_through", BigInteger, nullable=False, server_default="0"),  # last payment that a person told to send
    Column("due_at", Time, index=True),  # next time that a process reads the service; NULL: never
    Column("held_until", Time),  # deadline of the process that works on it; NULL: none does
    Column("checked_at", Time),
    Column("problem", Text, nullable=False, server_default=""),  # of the last try
    Column("connected_by", Text, nullable=False),
    Column("connected_at", Time, nullable=False),
    Column(
        "budget_covers_rewards", Boolean, nullable=False, server_default=text("false")
    ),  # false: it was set before rewards were counted, and is for bonuses alone
    Column("hook_subscription", Text, nullable=False, server_default=""),  # the service's id of it; empty: none
    Column("hook_problem", Text, nullable=False, server_default=""),  # why notices no longer come
    CheckConstraint("token IS NULL OR token_variable IS NULL", name="one_token"),
    CheckConstraint(
        "workspace <> '' OR (token IS NULL AND token_variable IS NULL)", name="workspace"
    ),  # of its currency, and for one call that pays at a time
    CheckConstraint("budget >= 0", name="budget"),
)

PAYMENT_STATES = ("prepared", "sending", "sent", "failed", "unknown", "cancelled")

PAYMENT_KINDS = ("bonus", "reward")

# Payments to annotators: bonuses, and the rewards of approved submissions. `sending` is committed before the call that
# pays.
payments = Table(
    "payments",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("submission", Text, nullable=False),  # the platform's id of the submission that is paid
    Column("study", Text, nullable=False),
    Column("amount", Integer, nullable=False),  # in hundredths
    Column("currency", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="prepared"),
    Column("request_key", Text, nullable=False),  # of the request that added it, which counts once
    Column("line", Integer, nullable=False),  # in that request
    Column("batch", Text),  # of the last call
    Column("bulk_id", Text),  # the service's id of that call, stored before it is paid
    Column("paid_before", Integer),  # payments of this amount that the submission had by others; NULL: never read
    Column("sending_at", Time),
    Column("settled_at", Time),
    Column("problem", Text, nullable=False, server_default=""),
    Column("looked_at", Time),  # last time that the service was asked about an unclear payment
    Column("amounts_seen", ARRAY(Integer)),  # all bonuses of the submission at that time
    Column("created_by", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("decided_by", Text),  # who decided what became of it
    Column("kind", Text, nullable=False, server_default="bonus"),
    Column("submission_hash", LargeBinary),  # of a reward: by it, no other campaign books it after an erasure
    PrimaryKeyConstraint("campaign_id", "id"),
    UniqueConstraint("campaign_id", "request_key", "line"),
    cascading_foreign_key("annotators", "annotator_id", from_table="payments"),
    Index("payments_annotator_id_idx", "campaign_id", "annotator_id"),
    Index("payments_submission_idx", "campaign_id", "submission", "amount"),
    partial_index("state IN ('prepared', 'sending', 'unknown')", "payments_open_idx", "campaign_id", "state", "id"),
    partial_index("kind = 'reward'", "payments_one_reward_idx", "campaign_id", "submission", unique=True),
    # Rewards of a submission are looked up in all campaigns.
    partial_index("kind = 'reward'", "payments_reward_submission_idx", "submission"),
    partial_index("kind = 'reward'", "payments_reward_hash_idx", "submission_hash"),
    partial_index("kind = 'reward' AND state = 'unknown'", "payments_unclear_reward_idx", "study"),
    CheckConstraint(f"state IN {PAYMENT_STATES}", name="state"),
    CheckConstraint(f"kind IN {PAYMENT_KINDS}", name="kind"),
    CheckConstraint("amount > 0", name="amount"),
)

# The paying call of each workspace: one at a time. If its process ends early, the row blocks others until the deadline.
payment_calls = Table(
    "payment_calls",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("batch", Text, nullable=False),
    Column("held_until", Time, nullable=False),
)

# Submissions as the service had them when Easel last read them.
submissions = Table(
    "submissions",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("external_id", Text, nullable=False),
    Column("annotator_id", BigInteger),  # NULL: no such person came to Easel
    Column("study", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("seen_at", Time, nullable=False),
    Column("problem", Text, nullable=False, server_default=""),  # of the last try to approve it
    Column("reward", Integer),  # what its approval pays or paid, in hundredths; NULL: the service did not say
    Column("return_requested_at", Time),  # when a person asked the annotator here to return it; NULL: never
    Column("decision_pending_since", Time),  # since when a rejection or request to return it has no reply; NULL: none
    Column("submission_hash", LargeBinary),  # keyed hash of its id; NULL: not read since the column exists, or erased
    PrimaryKeyConstraint("campaign_id", "external_id"),
    cascading_foreign_key("annotators", "annotator_id", from_table="submissions"),
    Index("submissions_annotator_id_idx", "campaign_id", "annotator_id"),
)

# Notices that Easel has acted on, so that it ignores a repeated one.
service_notices = Table(
    "service_notices",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Text, nullable=False),
    Column("received_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "event_id"),
)

SERVER_CALL_STATES = ("prepared", "sending", "sent", "failed", "unknown", "cancelled")

# Calls that tell the annotators' platform how a visit ended. `sending` is committed before the call. The address is in
# the campaign's settings, and the ids that it contains are in the assignment, so no row has either.
server_calls = Table(
    "server_calls",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("assignment_id", BigInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="prepared"),
    Column("tries", SmallInteger, nullable=False, server_default="0"),
    Column("due_at", Time),  # next try; NULL: at once
    Column("attempt", Text),  # of the last call
    Column("sending_at", Time),
    Column("settled_at", Time),
    Column("problem", Text, nullable=False, server_default=""),
    Column("created_at", Time, nullable=False, server_default=text("now()")),
    Column("decided_by", Text),  # who decided what became of it, or that it is to be made again
    PrimaryKeyConstraint("campaign_id", "id"),
    UniqueConstraint("campaign_id", "assignment_id", "outcome"),
    cascading_foreign_key("assignments", "assignment_id", from_table="server_calls"),
    cascading_foreign_key("annotators", "annotator_id", from_table="server_calls"),
    Index("server_calls_annotator_id_idx", "campaign_id", "annotator_id"),
    partial_index(
        "state = 'prepared'",
        "server_calls_prepared_idx",
        "campaign_id",
        text("coalesce(due_at, '-infinity'::timestamptz)"),
        "id",
    ),
    partial_index("state = 'sending'", "server_calls_sending_idx", "campaign_id", "sending_at"),
    partial_index("state IN ('failed', 'unknown')", "server_calls_to_decide_idx", "campaign_id", "state"),
    CheckConstraint(f"state IN {SERVER_CALL_STATES}", name="state"),
)
