"""Criteria: several questions about the same items, each with posteriors and states of its own."""

from alembic import op

revision = "0020"
down_revision = "0019"

CURRENT_POSTERIORS = """
    CREATE VIEW current_posteriors AS
    SELECT p.campaign_id, p.revision, {criterion}p.subject AS number, p.state, p.score, p.variance, p.judgments,
           p.unjudged
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision{which}
"""


def upgrade() -> None:
    """Campaigns that there are ask by their question alone, and what they learned is of that."""
    op.execute("""
        ALTER TABLE campaigns
        ADD criteria jsonb NOT NULL DEFAULT '[]',
        ADD criteria_shown text NOT NULL DEFAULT 'in turn',
        ADD asked_by text NOT NULL DEFAULT '',
        ADD asked_criterion smallint DEFAULT 0
    """)
    op.execute("ALTER TABLE states ADD criterion smallint NOT NULL DEFAULT 0, DROP CONSTRAINT states_pkey")
    op.execute("ALTER TABLE states ADD PRIMARY KEY (campaign_id, revision, criterion, kind, number)")
    op.execute("DROP VIEW current_posteriors")
    op.execute(CURRENT_POSTERIORS.format(criterion="p.criterion, ", which=""))


def downgrade() -> None:
    """The first criterion stays as the campaign's question; of the others, what was answered is forgotten. Drafts of
    HITs that lie open are lost, as the fields of one question have other names.
    """
    op.execute("DROP VIEW current_posteriors")
    op.execute(CURRENT_POSTERIORS.format(criterion="", which=" AND p.criterion = 0"))
    for table in ("states", "posteriors"):
        op.execute(f"DELETE FROM {table} WHERE criterion <> 0")  # noqa: S608  (constants)
    op.execute("ALTER TABLE states DROP CONSTRAINT states_pkey, DROP criterion")
    op.execute("ALTER TABLE states ADD PRIMARY KEY (campaign_id, revision, kind, number)")
    op.execute("""
        UPDATE responses SET
            values = values[1:cardinality(items)],
            telemetry = (
                SELECT jsonb_object_agg(name, CASE jsonb_typeof(told) WHEN 'array' THEN
                    jsonb_path_query_array(told, '$[0 to $end]', jsonb_build_object('end', cardinality(items) - 1))
                    ELSE told END)
                FROM jsonb_each(telemetry) AS known (name, told)
            )
        WHERE cardinality(values) > cardinality(items)
    """)
    op.execute("""
        UPDATE campaigns SET
            question = criteria -> 0 ->> 'question',
            low_label = coalesce(criteria -> 0 ->> 'low_label', low_label),
            middle_label = coalesce(criteria -> 0 ->> 'middle_label', middle_label),
            high_label = coalesce(criteria -> 0 ->> 'high_label', high_label),
            design_settings = design_settings || coalesce(criteria -> 0 -> 'design_settings', '{}')
        WHERE criteria <> '[]'
    """)
    op.execute("""
        ALTER TABLE campaigns DROP criteria, DROP criteria_shown, DROP asked_by, DROP asked_criterion
    """)
