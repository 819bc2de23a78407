"""The function that reads what a newly leased HIT shows, after the locks of the lease."""

from alembic import op

revision = "0007_shown_items"
down_revision = "0006_retired_items"

# The text of `SHOWN_ITEMS_FUNCTION` in app/annotation/hits/lease_sql.py when this migration was written.
SHOWN_ITEMS_FUNCTION = """
    CREATE FUNCTION easel_shown_items(items int[], hit bigint, campaign bigint, OUT ids text[], OUT texts text[])
    LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    BEGIN
        SELECT shown.ids, shown.texts INTO ids, texts FROM (
            SELECT array_agg(i.external_id ORDER BY place) AS ids,
                   array_agg(coalesce(former.shown, i.shown) ORDER BY place) AS texts
            FROM items i CROSS JOIN array_position(CAST($1 AS int[]), i.number) AS place LEFT JOIN LATERAL (
                SELECT v.shown FROM item_versions v
                WHERE v.campaign_id = i.campaign_id AND v.item = i.number AND v.last_hit >= $2
                ORDER BY v.version LIMIT 1
            ) AS former ON true
            WHERE i.campaign_id = $3 AND i.number = ANY(CAST($1 AS int[]))) AS shown;
    END
    $$
"""


def upgrade() -> None:
    """Make the function."""
    op.execute(SHOWN_ITEMS_FUNCTION)


def downgrade() -> None:
    """Drop the function; older servers read the texts in the statement of the lease."""
    op.execute("DROP FUNCTION easel_shown_items")
