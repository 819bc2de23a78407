"""The first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import UserDefinedType


class TransactionId(UserDefinedType[int]):
    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("link_key", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="draft", nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("low_label", sa.Text(), nullable=False),
        sa.Column("middle_label", sa.Text(), nullable=True),
        sa.Column("high_label", sa.Text(), nullable=False),
        sa.Column("items_per_hit", sa.Integer(), nullable=False),
        sa.Column("show_numbers", sa.Boolean(), nullable=False),
        sa.Column("update_law", sa.Text(), nullable=False),
        sa.Column("prior_a", sa.Double(), nullable=False),
        sa.Column("prior_b", sa.Double(), nullable=False),
        sa.Column("gamma", sa.Double(), nullable=False),
        sa.Column("epsilon", sa.Double(), nullable=False),
        sa.Column("tie_margin_points", sa.Integer(), nullable=False),
        sa.Column("selection", sa.Text(), nullable=False),
        sa.Column("hits_per_iteration", sa.Integer(), nullable=True),
        sa.Column("leaders_as_companions", sa.Boolean(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("judgments_per_item", sa.Integer(), nullable=False),
        sa.Column("hits_per_annotator", sa.Integer(), nullable=True),
        sa.Column("repeat_items", sa.Boolean(), nullable=False),
        sa.Column("lease_minutes", sa.Integer(), nullable=False),
        sa.Column("prolific_completion_code", sa.Text(), nullable=True),
        sa.Column("iteration", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("launched_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("finished_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("status IN ('draft', 'running', 'paused', 'finished')", name=op.f("campaigns_status_check")),
        sa.CheckConstraint("items_per_hit BETWEEN 2 AND 10", name=op.f("campaigns_items_per_hit_check")),
        sa.CheckConstraint("judgments_per_item > 0 AND lease_minutes > 0", name=op.f("campaigns_positive_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("campaigns_pkey")),
        sa.UniqueConstraint("link_key", name=op.f("campaigns_link_key_key")),
        sa.UniqueConstraint("slug", name=op.f("campaigns_slug_key")),
    )
    op.create_table(
        "installation",
        sa.Column("single", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("secret_key", sa.Text(), nullable=False),
        sa.CheckConstraint("single", name=op.f("installation_one_row_check")),
        sa.PrimaryKeyConstraint("single", name=op.f("installation_pkey")),
    )
    op.create_table(
        "login_failures",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("failed_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("login_failures_pkey")),
    )
    op.create_index(op.f("login_failures_failed_at_idx"), "login_failures", ["failed_at"], unique=False)
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("users_pkey")),
        sa.UniqueConstraint("name", name=op.f("users_name_key")),
    )
    op.create_table(
        "annotators",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("pseudonym", sa.Text(), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("annotators_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("annotators_pkey")),
        sa.UniqueConstraint(
            "campaign_id", "platform", "worker_id", name=op.f("annotators_campaign_id_platform_worker_id_key")
        ),
        sa.UniqueConstraint("campaign_id", "pseudonym", name=op.f("annotators_campaign_id_pseudonym_key")),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("api_tokens_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("api_tokens_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("api_tokens_token_hash_key")),
    )
    op.create_index(op.f("api_tokens_user_id_idx"), "api_tokens", ["user_id"], unique=False)
    op.create_table(
        "items",
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("prior_a", sa.Double(), nullable=True),
        sa.Column("prior_b", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("items_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "number", name=op.f("items_pkey")),
        sa.UniqueConstraint("campaign_id", "external_id", name=op.f("items_campaign_id_external_id_key")),
    )
    op.create_table(
        "logins",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("logins_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("logins_pkey")),
    )
    op.create_index(op.f("logins_user_id_idx"), "logins", ["user_id"], unique=False)
    op.create_table(
        "one_time_logins",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("one_time_logins_user_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("one_time_logins_pkey")),
    )
    op.create_index(op.f("one_time_logins_user_id_idx"), "one_time_logins", ["user_id"], unique=False)
    op.create_table(
        "planned_hits",
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("iteration", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("leader", sa.Integer(), nullable=False),
        sa.Column("items", sa.ARRAY(sa.Integer()), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("planned_hits_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "iteration", "ordinal", name=op.f("planned_hits_pkey")),
    )
    op.create_table(
        "assignments",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("annotator_id", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("arrival", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("arrived_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("completed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["annotator_id"],
            ["annotators.id"],
            name=op.f("assignments_annotator_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("assignments_pkey")),
        sa.UniqueConstraint("annotator_id", "external_id", name=op.f("assignments_annotator_id_external_id_key")),
    )
    op.create_table(
        "posteriors",
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("a", sa.Double(), nullable=False),
        sa.Column("b", sa.Double(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("variance", sa.Double(), nullable=False),
        sa.Column("judgments", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id", "number"],
            ["items.campaign_id", "items.number"],
            name=op.f("posteriors_campaign_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("campaign_id", "number", name=op.f("posteriors_pkey")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_table(
        "hits",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("annotator_id", sa.BigInteger(), nullable=False),
        sa.Column("assignment_id", sa.BigInteger(), nullable=False),
        sa.Column("leader", sa.Integer(), nullable=False),
        sa.Column("items", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("iteration", sa.Integer(), nullable=True),
        sa.Column("ordinal", sa.Integer(), nullable=True),
        sa.Column("issued_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("closed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("draft", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotators.id"], name=op.f("hits_annotator_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name=op.f("hits_assignment_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("hits_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("hits_pkey")),
    )
    op.create_index("hits_annotator_id_idx", "hits", ["annotator_id"], unique=False)
    op.create_index(op.f("hits_assignment_id_idx"), "hits", ["assignment_id"], unique=False)
    op.create_index(
        "hits_one_open_idx",
        "hits",
        ["assignment_id"],
        unique=True,
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(
        "hits_open_idx",
        "hits",
        ["campaign_id", "expires_at"],
        unique=False,
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(
        "hits_planned_idx",
        "hits",
        ["campaign_id", "iteration", "ordinal"],
        unique=False,
        postgresql_where=sa.text("iteration IS NOT NULL"),
    )
    op.create_table(
        "responses",
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("campaign_id", sa.BigInteger(), nullable=False),
        sa.Column("hit_id", sa.BigInteger(), nullable=False),
        sa.Column("annotator_id", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("items", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("scores", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("first_touch_ms", sa.ARRAY(sa.Integer()), nullable=True),
        sa.Column("changes", sa.ARRAY(sa.Integer()), nullable=True),
        sa.Column("input_kinds", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("viewport", sa.Text(), nullable=True),
        sa.Column("received_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("transaction_id", TransactionId(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotators.id"], name=op.f("responses_annotator_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("responses_campaign_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["hit_id"], ["hits.id"], name=op.f("responses_hit_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("responses_pkey")),
        sa.UniqueConstraint("hit_id", name=op.f("responses_hit_id_key")),
    )
    op.create_index(op.f("responses_annotator_id_idx"), "responses", ["annotator_id"], unique=False)
    op.create_index("responses_campaign_id_seq_idx", "responses", ["campaign_id", "seq"], unique=False)
    op.create_index("responses_transaction_id_idx", "responses", ["transaction_id"], unique=False)


def downgrade() -> None:
    op.drop_index("responses_transaction_id_idx", table_name="responses")
    op.drop_index("responses_campaign_id_seq_idx", table_name="responses")
    op.drop_index(op.f("responses_annotator_id_idx"), table_name="responses")
    op.drop_table("responses")
    op.drop_index("hits_planned_idx", table_name="hits", postgresql_where=sa.text("iteration IS NOT NULL"))
    op.drop_index("hits_open_idx", table_name="hits", postgresql_where=sa.text("closed_at IS NULL"))
    op.drop_index("hits_one_open_idx", table_name="hits", postgresql_where=sa.text("closed_at IS NULL"))
    op.drop_index(op.f("hits_assignment_id_idx"), table_name="hits")
    op.drop_index("hits_annotator_id_idx", table_name="hits")
    op.drop_table("hits")
    op.drop_table("posteriors")
    op.drop_table("assignments")
    op.drop_table("planned_hits")
    op.drop_index(op.f("one_time_logins_user_id_idx"), table_name="one_time_logins")
    op.drop_table("one_time_logins")
    op.drop_index(op.f("logins_user_id_idx"), table_name="logins")
    op.drop_table("logins")
    op.drop_table("items")
    op.drop_index(op.f("api_tokens_user_id_idx"), table_name="api_tokens")
    op.drop_table("api_tokens")
    op.drop_table("annotators")
    op.drop_table("users")
    op.drop_index(op.f("login_failures_failed_at_idx"), table_name="login_failures")
    op.drop_table("login_failures")
    op.drop_table("installation")
    op.drop_table("campaigns")
