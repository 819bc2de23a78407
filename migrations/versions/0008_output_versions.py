"""Former texts of systems' outputs that were corrected, and the function that reads what a newly leased HIT shows."""

from alembic import op

revision = "0008_output_versions"
down_revision = "0007_shown_items"

# The text of `SHOWN_OUTPUTS_FUNCTION` in app/annotation/hits/lease_sql.py when this migration was written.
SHOWN_OUTPUTS_FUNCTION = """
    CREATE FUNCTION easel_shown_outputs(
        campaign bigint, shown int[], hit bigint, segment int,
        OUT ids text[], OUT texts text[], OUT source text, OUT reference text
    ) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    BEGIN
        SELECT shown.ids, shown.texts, shown.source, shown.reference INTO ids, texts, source, reference
        FROM (
    SELECT shown.ids, shown.texts, s.source, s.reference FROM segments s, LATERAL (
        SELECT array_agg(i.external_id ORDER BY place) AS ids,
               array_agg(coalesce(former.shown, o.shown) ORDER BY place) AS texts
        FROM items i JOIN outputs o ON o.campaign_id = $1 AND o.segment = s.number AND o.item = i.number
        CROSS JOIN array_position(CAST($2 AS int[]), i.number) AS place LEFT JOIN LATERAL (
            SELECT v.shown FROM output_versions v
            WHERE v.campaign_id = o.campaign_id AND v.segment = o.segment AND v.item = o.item AND v.last_hit >= $3
            ORDER BY v.version LIMIT 1
        ) AS former ON true
        WHERE i.campaign_id = $1 AND i.number = ANY(CAST($2 AS int[]))
    ) AS shown
    WHERE s.campaign_id = $1 AND s.number = CAST($4 AS int)) AS shown;
    END
    $$
"""


def upgrade() -> None:
    """Add the table of former outputs, and the function."""
    op.execute("""
        CREATE TABLE output_versions (
            campaign_id bigint NOT NULL,
            segment integer NOT NULL,
            item integer NOT NULL,
            version integer NOT NULL,
            shown text NOT NULL,
            last_hit bigint NOT NULL,
            replaced_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, segment, item, version),
            CONSTRAINT output_versions_output_fkey FOREIGN KEY (campaign_id, segment, item)
                REFERENCES outputs (campaign_id, segment, item) ON DELETE CASCADE
        )
    """)
    op.execute(SHOWN_OUTPUTS_FUNCTION)


def downgrade() -> None:
    """Forget the former outputs; corrections stay."""
    op.execute("DROP FUNCTION easel_shown_outputs")
    op.execute("DROP TABLE output_versions")
