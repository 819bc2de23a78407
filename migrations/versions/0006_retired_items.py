"""Items can be retired and corrected after the launch: the time of the one, and the former texts of the other."""

from alembic import op

revision = "0006_retired_items"
down_revision = "0004_step_versions"


def upgrade() -> None:
    """Add the column of retired items and the table of former texts."""
    op.execute("ALTER TABLE items ADD retired_at timestamptz")
    op.execute("CREATE INDEX items_retired_idx ON items (campaign_id, number) WHERE retired_at IS NOT NULL")
    op.execute("""
        CREATE TABLE item_versions (
            campaign_id bigint NOT NULL,
            item integer NOT NULL,
            version integer NOT NULL,
            shown text NOT NULL,
            last_hit bigint NOT NULL,
            replaced_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, item, version),
            CONSTRAINT item_versions_item_fkey FOREIGN KEY (campaign_id, item)
                REFERENCES items (campaign_id, number) ON DELETE CASCADE ON UPDATE CASCADE
        )
    """)


def downgrade() -> None:
    """Forget both. Retired items are asked about again once a goal unsettles them, and corrections stay."""
    op.execute("DROP TABLE item_versions")
    op.execute("ALTER TABLE items DROP retired_at")
