"""Campaigns and their record; the rest is in `content_tables`, `visit_tables`, `quality_tables` and `account_tables`.

Responses are append-only; posteriors follow from them and can be rebuilt bit for bit by replaying them by `seq`. Items
are numbered 0 to N-1 within their campaign, so arrays in memory and in rows (`hits.items`) need no translation.

Every key of a table that grows with answers leads with the campaign, and every statement of the serving path names it.
"""

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.database.schema import (
    GIN_INDEX_OPTIONS,
    OPEN_HIT_CONDITION,
    Time,
    TransactionId,
    cascading_foreign_key,
    metadata,
    partial_index,
    restricting_foreign_key,
)

# One question about one table of items, with all settings. Those that SQL reads have columns of their own.
campaigns = Table(
    "campaigns",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("slug", Text, nullable=False, unique=True),  # for researchers: URLs of the dashboard, the API, the CLI
    Column("link_key", Text, nullable=False, unique=True),  # for annotators: cannot be guessed from the name
    Column("status", Text, nullable=False, server_default="draft"),
    Column("design", Text, nullable=False, server_default="slider"),  # the way of asking
    Column("design_settings", JSONB, nullable=False, server_default="{}"),
    Column("fewest_items", Integer, nullable=False, server_default="1"),  # must be drawn for an answer to say something
    Column("always_shown", ARRAY(Integer), nullable=False, server_default="{}"),  # in every HIT, from the launch on
    # Segments that the systems have outputs for; 0 if the campaign's items are no systems
    Column("segment_count", Integer, nullable=False, server_default="0"),
    # What annotators see
    Column("name", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("instructions", Text, nullable=False),
    Column("low_label", Text, nullable=False),
    Column("middle_label", Text),
    Column("high_label", Text, nullable=False),
    Column("language", Text, nullable=False, server_default="browser"),  # of annotators' pages
    Column("criteria", JSONB, nullable=False, server_default="[]"),  # what is asked by each
    Column("criteria_shown", Text, nullable=False, server_default="in turn"),
    Column("items_per_hit", Integer, nullable=False),
    Column("show_numbers", Boolean, nullable=False),
    Column("content", Text, nullable=False, server_default="text"),  # what an item is
    Column("source_column", Text),
    Column("reference_column", Text),
    Column("differences", Text, nullable=False, server_default="none"),
    Column("https_media", Boolean, nullable=False, server_default="false"),
    Column("latex", Boolean, nullable=False, server_default="false"),
    Column("minutes_per_hit", Double),
    Column("pay", Text),
    Column("pay_per_hit", Double),
    Column("currency", Text, nullable=False, server_default="USD"),
    Column("in_short", Text, nullable=False, server_default=""),  # the instructions in one line
    Column("leave_early", Boolean, nullable=False, server_default="false"),
    Column("undo", Boolean, nullable=False, server_default="true"),
    Column("break_minutes", Integer),  # after which a line reminds of a break
    # How answers become posteriors
    Column("update_law", Text, nullable=False),
    Column("prior", ARRAY(Double)),  # what an item's posterior begins with; NULL in a draft: the law's own
    Column("gamma", Double, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("tie_margin_points", Integer, nullable=False),
    # What is asked next: by which rule, and whether a HIT at a time or an iteration at once
    Column("rule", Text, nullable=False, server_default="easl"),
    Column("asked_criterion", SmallInteger, server_default="0"),  # its number; NULL: all together
    Column("selection", Text, nullable=False),
    Column("hits_per_iteration", Integer),
    Column("leaders_as_companions", Boolean, nullable=False),
    Column("best_items", Integer, nullable=False, server_default="10"),  # for the rule `best`
    Column("threshold", Double, nullable=False, server_default="50"),  # for the rule `threshold`, in 0..100
    Column("seed", BigInteger, nullable=False),
    # The goal that was reached last, in words
    Column("goal_reached", Text),
    Column("releases", Integer, nullable=False, server_default="0"),  # how often items were settled, or no longer
    # How much is asked, and which annotators are asked
    Column("judgments_per_item", Integer, nullable=False),
    Column("hits_per_annotator", Integer),
    Column("repeat_items", Boolean, nullable=False),
    Column("implied_asked_percent", Integer),  # of pairs that an annotator's answers imply; NULL: nothing is implied
    Column("lease_minutes", Integer, nullable=False),
    # Whether annotators may say that they cannot judge an item, why, and how many who do take it out of the pool
    Column("cannot_be_judged", Boolean, nullable=False, server_default="false"),
    Column("unjudged_reasons", ARRAY(Text), nullable=False, server_default="{}"),
    Column("unjudged_people", Integer, nullable=False, server_default="2"),
    # What annotators may comment on, and flag, as what, and how many who do are an alert
    Column("comment_on", Text, nullable=False, server_default="none"),
    Column("flag_on", Text, nullable=False, server_default="none"),
    Column("flag_reasons", ARRAY(Text), nullable=False, server_default="{}"),
    Column("flag_people", Integer, nullable=False, server_default="2"),
    # The way to the work; `visit_version` is 0 where everybody is let in, and a change of its texts raises it
    Column("open_link", Boolean, nullable=False, server_default="true"),
    Column("open_platforms", Boolean),  # NULL: as long as the open link is open and has no passphrase
    Column("passphrase", Text, nullable=False, server_default=""),
    Column("people_per_address", Integer),  # new ones by the open link, in an hour; NULL: as the server allows
    Column("visit_version", Integer, nullable=False, server_default="0"),
    # Gold and attention items
    Column("checks_percent", Double),  # of HITs that show a check; NULL: none does
    Column("gold_feedback", Boolean, nullable=False, server_default="false"),  # whether people are told of gold items
    Column("has_checks", Boolean, nullable=False, server_default="false"),  # so that some HITs may show one
    # Where alerts go, and how long a silence is one; NULL: none is
    Column("alert_emails", ARRAY(Text), nullable=False, server_default="{}"),
    Column("alert_webhook", Text),
    Column("alert_quiet_minutes", Integer),
    # All other settings, by section and name. What is missing has its default, so a new setting needs no migration:
    # see `app.designs.campaign`
    Column("general_settings", JSONB, nullable=False, server_default="{}"),
    Column("crowd_settings", JSONB, nullable=False, server_default="{}"),
    Column("visit_settings", JSONB, nullable=False, server_default="{}"),
    Column("quality_settings", JSONB, nullable=False, server_default="{}"),
    Column("goal_settings", JSONB, nullable=False, server_default="{}"),
    # Its record: the posteriors of this revision count, which know the decisions up to this number
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("decided", BigInteger, nullable=False, server_default="0"),
    # Its life
    Column("iteration", Integer, nullable=False, server_default="-1"),  # the newest planned one; selection 'iterations'
    Column("created_at", Time, nullable=False),
    Column("launched_at", Time),
    Column("finished_at", Time),
    Column("archived_at", Time),  # left out of lists until it is brought back
    # How often each step of the settings form was changed, by its name; steps that were never saved are missing
    Column("step_versions", JSONB, nullable=False, server_default="{}"),
    Column("newest_plan", JSONB),  # what the last plan found of the draft, with the settings that it has
    # The campaign that this rehearsal copies; each has at most one rehearsal
    Column("rehearsal_of", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), unique=True),
    CheckConstraint("status IN ('draft', 'running', 'paused', 'finished')", name="status"),
    CheckConstraint("people_per_address >= 1", name="people_per_address"),
    CheckConstraint("archived_at IS NULL OR status <> 'running'", name="archived"),
    CheckConstraint("items_per_hit BETWEEN 1 AND 10", name="items_per_hit"),
    CheckConstraint("fewest_items BETWEEN 1 AND items_per_hit", name="fewest_items"),
    CheckConstraint("judgments_per_item > 0 AND lease_minutes > 0", name="positive"),
)

# The items of a campaign, as uploaded.
items = Table(
    "items",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("fields", JSON, nullable=False),  # the uploaded row as it came; JSONB would forget the order
    Column("prior", ARRAY(Double)),  # NULL: the campaign's. The view `priors` says what an item begins with
    # Since when no HIT asks about it; its posterior is marked as settled, too, which is what leases read
    Column("retired_at", Time),
    PrimaryKeyConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "external_id"),
    partial_index("retired_at IS NOT NULL", "items_retired_idx", "campaign_id", "number"),
)

# Posterior of each item, for each criterion and revision.
posteriors = Table(
    "posteriors",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("criterion", SmallInteger, nullable=False, server_default="0"),
    Column("subject", Integer, nullable=False),  # what is scored: an item, by its number
    # What the update law keeps: (alpha, beta) of a Beta, (mu, sigma2) of a Gaussian
    Column("state", ARRAY(Double), nullable=False),
    Column("score", Double, nullable=False),  # mode or mean: follows from the state; stored so that SQL can sort
    Column("variance", Double, nullable=False),
    Column("judgments", Integer, nullable=False, server_default="0"),
    Column("unjudged", Integer, nullable=False, server_default="0"),  # people who could not judge it
    # A decision on what to ask, of a look in the background: it does not follow from the record.
    Column("settled", Boolean, nullable=False, server_default=text("false")),
    # No foreign key: it would slow the launch of a large campaign. A trigger deletes the rows with their campaign.
    # The revision last: the index then finds the rows of a few items whatever PostgreSQL's planner assumes about it.
    PrimaryKeyConstraint("campaign_id", "criterion", "subject", "revision"),
    postgresql_with={"fillfactor": "70"},  # room for the new row version on the same page: updates touch no index
)

# A view: the posteriors of each campaign's current revision, with the column names of pages and exports.
current_posteriors = Table(
    "current_posteriors",
    MetaData(),
    Column("campaign_id", BigInteger),
    Column("revision", Integer),
    Column("criterion", SmallInteger),
    Column("number", Integer),
    Column("state", ARRAY(Double)),
    Column("score", Double),
    Column("variance", Double),
    Column("judgments", Integer),
    Column("unjudged", Integer),
    Column("settled", Boolean),
)

# State of a law besides the posteriors, such as the bias of annotators. Like them, it follows from the responses.
states = Table(
    "states",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("criterion", SmallInteger, nullable=False, server_default="0"),
    Column("kind", Text, nullable=False),  # campaign, item, annotator
    Column("number", BigInteger, nullable=False),  # 0, the item's number, the annotator's id
    Column("layout", SmallInteger, nullable=False),  # the version of what its floats mean
    Column("state", LargeBinary, nullable=False),  # float64, little-endian: see `annotator_aware_online`
    Column("since", LargeBinary, nullable=False, server_default=""),  # of an item, likewise
    PrimaryKeyConstraint("campaign_id", "revision", "criterion", "kind", "number"),
)

# Annotators. The view `named_annotators` adds their names on pages: A1, A2, ... in the order of their first arrival.
annotators = Table(
    "annotators",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("platform", Text, nullable=False),
    Column("worker_id", Text, nullable=False),  # the platform's id of the person: for payment, never in an export
    Column("pseudonym", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    # To work, under this version of the visit. 0 or less: not, and so many times a place in a quota was lost.
    Column("admitted", Integer, nullable=False, server_default="0"),
    # From further HITs: 'held'; 'excluded', then no answer counts; 'erased' at their request; NULL: from none. Why, by
    # whom and when.
    Column("barred", Text),
    Column("barred_reason", Text),
    Column("barred_by", Text),
    Column("barred_at", Time),
    # The row of the square of conditions that they have, and since when; NULL: none yet, or the campaign has no square.
    Column("square_row", SmallInteger),
    Column("square_row_at", Time),
    Column("square_done", Boolean),  # they have done all that the campaign asks of them
    PrimaryKeyConstraint("campaign_id", "id"),
    UniqueConstraint("campaign_id", "platform", "worker_id"),
    UniqueConstraint("campaign_id", "pseudonym"),
    CheckConstraint("barred IN ('held', 'excluded', 'erased')", name="barred"),
)

# One arrival of an annotator. A platform can give an assignment id to a second worker, so only the pair of annotator
# and `external_id` is unique.
assignments = Table(
    "assignments",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("arrival", JSONB, nullable=False),  # the platform's other parameters, kept for its completion
    Column("arrived_at", Time, nullable=False),
    Column("completed_at", Time),
    PrimaryKeyConstraint("campaign_id", "id"),
    UniqueConstraint("campaign_id", "annotator_id", "external_id"),
    cascading_foreign_key("annotators", "annotator_id", from_table="assignments"),
    Index("assignments_external_id_idx", "campaign_id", "external_id"),
)

# HITs of the current iteration that are not leased yet.
planned_hits = Table(
    "planned_hits",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("iteration", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("leader", Integer, nullable=False),
    Column("items", ARRAY(Integer), nullable=False),
    Column("drawn_because", Text),
    Column("leader_probability", Double),
    PrimaryKeyConstraint("campaign_id", "iteration", "ordinal"),
)

# HITs, leased until `expires_at` and then ignored by all queries. `items` has item numbers in the order shown.
hits = Table(
    "hits",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("assignment_id", BigInteger, nullable=False),
    Column("leader", Integer),  # NULL: nobody knows, as of a HIT that was answered elsewhere
    Column("items", ARRAY(Integer), nullable=False),
    Column("iteration", Integer),
    Column("ordinal", Integer),
    Column("issued_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("closed_at", Time),  # answered (a response exists) or given up for a newer one
    Column("draft", JSONB),  # what was entered so far, so that a reload shows it again
    # Items of an answered HIT that were marked N/A; its response has the others, and there is none if all were.
    Column("not_applicable", ARRAY(Integer)),
    # For systems: the segment, and for each item the one shown for it because their outputs are equal; NULL if none are
    Column("segment", Integer),
    Column("shown_as", ARRAY(Integer)),
    # Address of a visitor who has not touched it yet; see `annotation.platforms.visit_limit`
    Column("untouched_by", LargeBinary),
    # Reason of the selection rule, and the probability with which it drew this leader; NULL if unknown
    Column("drawn_because", Text),
    Column("leader_probability", Double),
    PrimaryKeyConstraint("campaign_id", "id"),
    cascading_foreign_key("annotators", "annotator_id", from_table="hits"),
    cascading_foreign_key("assignments", "assignment_id", from_table="hits"),
    # Two tabs may ask at once: one gets the new HIT, and the other finds it. Each index of open HITs has a condition
    # that only the statements meant for it contain, so no statement about one HIT, annotator or item scans all others.
    partial_index(
        f"{OPEN_HIT_CONDITION} assignment_id IS NOT NULL",
        "hits_one_open_idx",
        "campaign_id",
        "assignment_id",
        unique=True,
    ),
    # The condition keeps statements that name no assignment from taking this index: a plan made while the table was
    # small would go through all HITs of the campaign. It is always true, which PostgreSQL 15 to 18 do not notice.
    partial_index("assignment_id IS NOT NULL", "hits_assignment_id_idx", "campaign_id", "assignment_id"),
    Index("hits_id_idx", "id"),  # for programs that name a HIT without its campaign
    # For queries of all open HITs: every open HIT has a leader.
    partial_index(f"{OPEN_HIT_CONDITION} leader IS NOT NULL", "hits_open_idx", "campaign_id", "expires_at"),
    # HITs that hold an item. Without `fastupdate`, because every lease would scan the pending list.
    partial_index(
        "num_nonnulls(closed_at) = 0", "hits_held_idx", text("(ARRAY[campaign_id])"), "items", **GIN_INDEX_OPTIONS
    ),
    partial_index("iteration IS NOT NULL", "hits_planned_idx", "campaign_id", "iteration", "ordinal"),
    Index("hits_annotator_id_idx", "campaign_id", "annotator_id"),
    partial_index("not_applicable IS NOT NULL", "hits_not_applicable_idx", "campaign_id"),
    partial_index(
        f"{OPEN_HIT_CONDITION} untouched_by IS NOT NULL",
        "hits_untouched_idx",
        "campaign_id",
        "expires_at",
        "untouched_by",
    ),
)

# Responses and decisions are numbered together, as they came to count.
record_seq = Sequence("record_seq", metadata=metadata)

# Answered HITs. Append-only.
responses = Table(
    "responses",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    # Taken after the posterior rows are locked: of two responses that share an item, the lower was applied first.
    Column("seq", BigInteger, nullable=False, server_default=record_seq.next_value()),
    Column("hit_id", BigInteger, nullable=False),
    Column("annotator_id", BigInteger, nullable=False),
    Column("source", Text, nullable=False),  # page, form (no JavaScript), api, import, simulation
    Column("items", ARRAY(Integer), nullable=False),  # as presented; with the values all that a replay needs
    # By each criterion one per item, in that order; the design says what they mean. NaN: nothing is said of that item
    Column("values", ARRAY(Double), nullable=False),
    Column("segment", Integer),  # of its HIT; not for replays, but to count judgments of a segment
    Column("extra", JSONB),  # what no law reads: reasons, comments, flags
    Column("telemetry", JSONB),  # how the answer came about; what the page could not know is left out
    Column("received_at", Time, nullable=False),
    Column("transaction_id", TransactionId, nullable=False, server_default=func.pg_current_xact_id()),
    # Earlier answer of the annotator to the same HIT that this one replaces, from the decision that withdraws it on
    Column("replaces", BigInteger),
    PrimaryKeyConstraint("campaign_id", "seq"),
    # Each HIT has one first answer, and each answer at most one that replaces it; a concurrent second one is refused.
    Index("responses_hit_id_idx", "campaign_id", "hit_id", text("coalesce(replaces, 0)"), unique=True),
    partial_index("replaces IS NOT NULL", "responses_replaces_idx", "campaign_id", "replaces", unique=True),
    # Scores follow from all responses, so annotators and HITs with responses are deleted only with their campaign.
    restricting_foreign_key("annotators", "annotator_id", from_table="responses"),
    restricting_foreign_key("hits", "hit_id", from_table="responses"),
    Index("responses_annotator_id_idx", "campaign_id", "annotator_id"),
    Index("responses_changes_idx", "campaign_id", "transaction_id"),
    partial_index("extra ? 'cannot_be_judged'", "responses_unjudged_idx", "campaign_id", "seq"),
    partial_index("extra ? 'remarks'", "responses_remarks_idx", "campaign_id", "seq"),
    partial_index("segment IS NOT NULL", "responses_segment_idx", "campaign_id", "segment"),
)

# Decisions to exclude answers or to include them again. Append-only; the function `exclusions` returns those in force.
decisions = Table(
    "decisions",
    metadata,
    Column("campaign_id", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False, server_default=record_seq.next_value()),
    Column("kind", Text, nullable=False),
    Column("annotator_id", BigInteger),
    Column("response_seq", BigInteger),
    Column("reason", Text, nullable=False),
    Column("decided_by", Text, nullable=False),
    Column("decided_at", Time, nullable=False),
    PrimaryKeyConstraint("campaign_id", "seq"),
    restricting_foreign_key("annotators", "annotator_id", from_table="decisions"),
    ForeignKeyConstraint(
        ["campaign_id", "response_seq"],
        ["responses.campaign_id", "responses.seq"],
        ondelete="CASCADE",
        name="decisions_response_seq_fkey",
    ),
    Index("decisions_annotator_id_idx", "campaign_id", "annotator_id"),
    Index("decisions_response_seq_idx", "campaign_id", "response_seq"),
    CheckConstraint("kind IN ('exclude', 'include', 'withdraw', 'erased')", name="kind"),
    CheckConstraint("(annotator_id IS NULL) <> (response_seq IS NULL)", name="about_one"),
)
