"""Every key of a table that grows with answers leads with the campaign; what an answer says are its `values`.

`responses` is written anew once.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

KEYS = {"annotators": "id", "assignments": "id", "hits": "id", "responses": "seq"}
PARENTS = {
    "assignments": {"annotators": "annotator_id"},
    "hits": {"annotators": "annotator_id", "assignments": "assignment_id"},
    "responses": {"annotators": "annotator_id", "hits": "hit_id"},
}
PER_ITEM = {"first_touch_ms": "int", "changes": "int", "input_kinds": "text"}


def upgrade() -> None:
    op.execute("DROP INDEX hits_one_open_idx, hits_assignment_id_idx, hits_annotator_id_idx")
    op.execute("DROP INDEX responses_annotator_id_idx, responses_campaign_id_seq_idx, assignments_external_id_idx")
    op.execute("ALTER TABLE assignments DROP CONSTRAINT assignments_annotator_id_external_id_key")
    op.execute("ALTER TABLE responses DROP CONSTRAINT responses_hit_id_key")
    drop_foreign_keys()
    op.execute("ALTER TABLE hits DROP CONSTRAINT hits_campaign_id_fkey")
    op.execute("ALTER TABLE responses DROP CONSTRAINT responses_campaign_id_fkey")

    op.execute("ALTER TABLE campaigns ADD design text DEFAULT 'slider' NOT NULL")
    op.execute("ALTER TABLE assignments ADD campaign_id bigint")
    op.execute("UPDATE assignments s SET campaign_id = a.campaign_id FROM annotators a WHERE a.id = s.annotator_id")
    op.execute("ALTER TABLE assignments ALTER campaign_id SET NOT NULL")
    op.execute("ALTER TABLE hits ALTER leader DROP NOT NULL")
    op.execute("UPDATE hits SET leader = NULL WHERE leader < 0")
    op.execute('ALTER TABLE responses RENAME scores TO "values"')
    op.execute("ALTER TABLE responses ADD extra jsonb, ADD telemetry jsonb")
    op.execute(f"UPDATE responses SET telemetry = {gathered()}")  # noqa: S608  (made of constants)
    for column in (*PER_ITEM, "viewport"):
        op.execute(f"ALTER TABLE responses DROP {column}")

    for table, key in KEYS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (campaign_id, {key})")
    for table, parents in PARENTS.items():
        for parent, column in parents.items():
            op.execute(f"""
                ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_fkey
                FOREIGN KEY (campaign_id, {column}) REFERENCES {parent} (campaign_id, id) ON DELETE CASCADE
            """)
    op.execute("ALTER TABLE assignments ADD UNIQUE (campaign_id, annotator_id, external_id)")
    op.execute("ALTER TABLE responses ADD UNIQUE (campaign_id, hit_id)")
    op.execute("CREATE INDEX assignments_external_id_idx ON assignments (campaign_id, external_id)")
    op.execute("CREATE INDEX hits_annotator_id_idx ON hits (campaign_id, annotator_id)")
    op.execute("CREATE INDEX hits_assignment_id_idx ON hits (campaign_id, assignment_id)")
    op.execute("CREATE INDEX hits_id_idx ON hits (id)")
    op.execute("CREATE UNIQUE INDEX hits_one_open_idx ON hits (campaign_id, assignment_id) WHERE closed_at IS NULL")
    op.execute("CREATE INDEX responses_annotator_id_idx ON responses (campaign_id, annotator_id)")
    op.execute("""
        CREATE VIEW priors AS
        SELECT i.campaign_id, i.number, coalesce(i.prior_a, c.prior_a) AS a, coalesce(i.prior_b, c.prior_b) AS b
        FROM items i JOIN campaigns c ON c.id = i.campaign_id
    """)


def downgrade() -> None:
    op.execute("DROP VIEW priors")
    op.execute("DROP INDEX hits_one_open_idx, hits_id_idx, hits_assignment_id_idx, hits_annotator_id_idx")
    op.execute("DROP INDEX responses_annotator_id_idx, assignments_external_id_idx")
    op.execute("ALTER TABLE assignments DROP CONSTRAINT assignments_campaign_id_annotator_id_external_id_key")
    op.execute("ALTER TABLE responses DROP CONSTRAINT responses_campaign_id_hit_id_key")
    drop_foreign_keys()
    for table, key in KEYS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY ({key})")

    columns = ", ".join(f"ADD {column} {kind}[]" for column, kind in PER_ITEM.items())
    op.execute(f"ALTER TABLE responses {columns}, ADD viewport text")
    spread = ", ".join(f"{column} = {spread_out(column, kind)}" for column, kind in PER_ITEM.items())
    op.execute(f"UPDATE responses SET {spread}, viewport = telemetry ->> 'viewport'")  # noqa: S608  (constants)
    op.execute("ALTER TABLE responses DROP extra, DROP telemetry")
    op.execute('ALTER TABLE responses RENAME "values" TO scores')
    op.execute("UPDATE hits SET leader = -1 WHERE leader IS NULL")
    op.execute("ALTER TABLE hits ALTER leader SET NOT NULL")
    op.execute("ALTER TABLE assignments DROP campaign_id")
    op.execute("ALTER TABLE campaigns DROP design")

    for table, parents in PARENTS.items():
        for parent, column in parents.items():
            op.execute(f"""
                ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_fkey
                FOREIGN KEY ({column}) REFERENCES {parent} (id) ON DELETE CASCADE
            """)
    for table in ("hits", "responses"):
        op.execute(f"""
            ALTER TABLE {table} ADD CONSTRAINT {table}_campaign_id_fkey
            FOREIGN KEY (campaign_id) REFERENCES campaigns (id) ON DELETE CASCADE
        """)
    op.execute("ALTER TABLE assignments ADD UNIQUE (annotator_id, external_id)")
    op.execute("ALTER TABLE responses ADD UNIQUE (hit_id)")
    op.execute("CREATE INDEX assignments_external_id_idx ON assignments (external_id)")
    op.execute("CREATE INDEX hits_annotator_id_idx ON hits (annotator_id)")
    op.execute("CREATE INDEX hits_assignment_id_idx ON hits (assignment_id)")
    op.execute("CREATE UNIQUE INDEX hits_one_open_idx ON hits (assignment_id) WHERE closed_at IS NULL")
    op.execute("CREATE INDEX responses_annotator_id_idx ON responses (annotator_id)")
    op.execute("CREATE INDEX responses_campaign_id_seq_idx ON responses (campaign_id, seq)")


def drop_foreign_keys() -> None:
    for table, parents in PARENTS.items():
        for column in parents.values():
            op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_fkey")


def told(column: str) -> str:
    """SQL for what the page could tell of each item; NULL where it could tell nothing of any."""
    all_of_them = f"to_jsonb({column})"
    return f"(SELECT CASE WHEN bool_or(v IS NOT NULL) THEN {all_of_them} END FROM unnest({column}) AS v)"  # noqa: S608  (constants)


def gathered() -> str:
    columns = ", ".join(f"'{column}', {told(column)}" for column in PER_ITEM)
    return f"nullif(jsonb_strip_nulls(jsonb_build_object({columns}, 'viewport', viewport)), '{{}}')"


def spread_out(column: str, kind: str) -> str:
    return f"""
        (SELECT array_agg(CAST(v AS {kind}) ORDER BY place)
         FROM jsonb_array_elements_text(telemetry -> '{column}') WITH ORDINALITY AS told (v, place))"""  # noqa: S608  (constants)
