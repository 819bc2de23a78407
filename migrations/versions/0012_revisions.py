"""Decisions; posteriors by revision, criterion and subject, of as many numbers as a law keeps; versions of layouts."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

CURRENT_POSTERIORS = """
    CREATE VIEW current_posteriors AS
    SELECT p.campaign_id, p.revision, p.subject AS number, p.state, p.score, p.variance, p.judgments
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision AND p.criterion = 0
"""

PRIORS = """
    CREATE VIEW priors AS
    SELECT i.campaign_id, i.number, coalesce(i.prior, c.prior) AS state
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
"""

# Of a draft that none was chosen for: another law brings another.
LAWS_OWN_PRIOR = """
    UPDATE campaigns SET prior = NULL WHERE status = 'draft'
    AND prior = CASE update_law WHEN 'trueskill' THEN ARRAY[0.5, 1.0 / 12] ELSE ARRAY[1, 1] END::float8[]
"""

# As revision 0011 made it.
PRIORS_BEFORE = """
    CREATE VIEW priors AS
    SELECT i.campaign_id, i.number, coalesce(i.prior_a, c.prior_a) AS a, coalesce(i.prior_b, c.prior_b) AS b
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
"""

# Whose answers, and which, are left out by the decisions up to a number: of all about the same, the last one counts.
EXCLUSIONS = """
    CREATE FUNCTION exclusions(campaign bigint, up_to bigint)
    RETURNS TABLE (annotator_id bigint, response_seq bigint) LANGUAGE sql STABLE AS $$
        SELECT latest.annotator_id, latest.response_seq FROM (
            SELECT DISTINCT ON (d.annotator_id, d.response_seq) d.annotator_id, d.response_seq, d.kind
            FROM decisions d WHERE d.campaign_id = exclusions.campaign AND d.seq <= exclusions.up_to
            ORDER BY d.annotator_id, d.response_seq, d.seq DESC
        ) AS latest WHERE latest.kind <> 'include'
    $$
"""


def upgrade() -> None:
    op.execute("ALTER TABLE campaigns ADD revision int DEFAULT 0 NOT NULL, ADD decided bigint DEFAULT 0 NOT NULL")
    op.execute("ALTER TABLE campaigns ADD rule text DEFAULT 'easl' NOT NULL")

    op.execute("ALTER TABLE posteriors ADD revision int DEFAULT 0 NOT NULL, ADD criterion smallint DEFAULT 0 NOT NULL")
    op.execute("ALTER TABLE posteriors RENAME number TO subject")
    op.execute("ALTER TABLE posteriors ALTER a TYPE float8[] USING ARRAY[a, b]")  # writes the table anew, once
    op.execute("ALTER TABLE posteriors RENAME a TO state")
    op.execute("ALTER TABLE posteriors DROP b, DROP CONSTRAINT posteriors_pkey")
    op.execute("ALTER TABLE posteriors ADD PRIMARY KEY (campaign_id, criterion, subject, revision)")
    op.execute(CURRENT_POSTERIORS)

    op.execute("DROP VIEW priors")
    for table in ("campaigns", "items"):
        op.execute(f"ALTER TABLE {table} ADD prior float8[]")
        op.execute(f"UPDATE {table} SET prior = ARRAY[prior_a, prior_b] WHERE prior_a IS NOT NULL")  # noqa: S608  (constants)
        op.execute(f"ALTER TABLE {table} DROP prior_a, DROP prior_b")
    op.execute(LAWS_OWN_PRIOR)
    op.execute(PRIORS)

    op.execute("ALTER TABLE learned RENAME TO states")
    op.execute("ALTER TABLE states RENAME CONSTRAINT learned_campaign_id_fkey TO states_campaign_id_fkey")
    op.execute("ALTER TABLE states ADD revision int DEFAULT 0 NOT NULL, ADD layout smallint")
    op.execute("UPDATE states SET layout = 1")
    op.execute("ALTER TABLE states ALTER layout SET NOT NULL, DROP CONSTRAINT learned_pkey")
    op.execute("ALTER TABLE states ADD PRIMARY KEY (campaign_id, revision, kind, number)")

    op.execute("CREATE SEQUENCE record_seq")
    op.execute("SELECT setval('record_seq', (SELECT max(seq) FROM responses)) WHERE EXISTS (SELECT FROM responses)")
    op.execute("ALTER TABLE responses ALTER seq DROP IDENTITY")
    op.execute("ALTER TABLE responses ALTER seq SET DEFAULT nextval('record_seq')")
    op.execute("""
        CREATE TABLE decisions (
            campaign_id bigint NOT NULL,
            seq bigint DEFAULT nextval('record_seq') NOT NULL,
            kind text NOT NULL,
            annotator_id bigint,
            response_seq bigint,
            reason text NOT NULL,
            decided_by text NOT NULL,
            decided_at timestamptz NOT NULL,
            PRIMARY KEY (campaign_id, seq),
            CONSTRAINT decisions_annotator_id_fkey FOREIGN KEY (campaign_id, annotator_id)
                REFERENCES annotators (campaign_id, id) ON DELETE CASCADE,
            CONSTRAINT decisions_response_seq_fkey FOREIGN KEY (campaign_id, response_seq)
                REFERENCES responses (campaign_id, seq) ON DELETE CASCADE,
            CONSTRAINT decisions_kind_check CHECK (kind IN ('exclude', 'include', 'withdraw')),
            CONSTRAINT decisions_about_one_check CHECK ((annotator_id IS NULL) <> (response_seq IS NULL))
        )
    """)
    op.execute("CREATE INDEX decisions_annotator_id_idx ON decisions (campaign_id, annotator_id)")
    op.execute("CREATE INDEX decisions_response_seq_idx ON decisions (campaign_id, response_seq)")
    op.execute(EXCLUSIONS)


def downgrade() -> None:
    """Of the posteriors, those of the present revisions stay; decisions are forgotten."""
    op.execute("DROP FUNCTION exclusions")
    op.execute("DROP VIEW current_posteriors")
    op.execute("DROP TABLE decisions")
    op.execute("ALTER TABLE responses ALTER seq DROP DEFAULT")
    op.execute("ALTER TABLE responses ALTER seq ADD GENERATED ALWAYS AS IDENTITY")
    op.execute("""
        SELECT setval(pg_get_serial_sequence('responses', 'seq'), (SELECT max(seq) FROM responses))
        WHERE EXISTS (SELECT FROM responses)
    """)
    op.execute("DROP SEQUENCE record_seq")
    for table in ("states", "posteriors"):
        op.execute(f"""
            DELETE FROM {table} t USING campaigns c WHERE c.id = t.campaign_id AND c.revision <> t.revision
        """)  # noqa: S608  (made of constants)

    op.execute("ALTER TABLE states DROP CONSTRAINT states_pkey, DROP revision, DROP layout")
    op.execute("ALTER TABLE states RENAME CONSTRAINT states_campaign_id_fkey TO learned_campaign_id_fkey")
    op.execute("ALTER TABLE states RENAME TO learned")
    op.execute("ALTER TABLE learned ADD PRIMARY KEY (campaign_id, kind, number)")

    op.execute("DROP VIEW priors")
    for table in ("campaigns", "items"):
        op.execute(f"ALTER TABLE {table} ADD prior_a float8, ADD prior_b float8")
        op.execute(f"UPDATE {table} SET prior_a = prior[1], prior_b = prior[2]")  # noqa: S608  (constants)
        op.execute(f"ALTER TABLE {table} DROP prior")
    op.execute(
        "UPDATE campaigns SET prior_a = coalesce(prior_a, CASE update_law WHEN 'trueskill' THEN 0.5 ELSE 1 END),"
        " prior_b = coalesce(prior_b, CASE update_law WHEN 'trueskill' THEN 1.0 / 12 ELSE 1 END)"
    )
    op.execute("ALTER TABLE campaigns ALTER prior_a SET NOT NULL, ALTER prior_b SET NOT NULL")
    op.execute(PRIORS_BEFORE)

    op.execute("ALTER TABLE posteriors ADD a float8, ADD b float8")
    op.execute("UPDATE posteriors SET a = state[1], b = state[2]")
    op.execute("ALTER TABLE posteriors ALTER a SET NOT NULL, ALTER b SET NOT NULL, DROP CONSTRAINT posteriors_pkey")
    op.execute("ALTER TABLE posteriors DROP state, DROP revision, DROP criterion")
    op.execute("ALTER TABLE posteriors RENAME subject TO number")
    op.execute("ALTER TABLE posteriors ADD PRIMARY KEY (campaign_id, number)")
    op.execute("ALTER TABLE campaigns DROP rule, DROP revision, DROP decided")
