"""An annotator, an assignment or a HIT with answers cannot be deleted by itself; a campaign still goes as a whole."""

from alembic import op

revision = "0055"
down_revision = "0051"

KEPT = (
    ("responses", "annotator_id", "annotators"),
    ("responses", "hit_id", "hits"),
    ("decisions", "annotator_id", "annotators"),
)


def set_on_delete(action: str) -> None:
    """Make the foreign keys of the record react so where a row goes that they name."""
    for table, column, target in KEPT:
        name = f"{table}_{column}_fkey"
        op.execute(f"""
            ALTER TABLE {table} DROP CONSTRAINT {name},
            ADD CONSTRAINT {name} FOREIGN KEY (campaign_id, {column}) REFERENCES {target} (campaign_id, id)
            ON DELETE {action}
        """)


def upgrade() -> None:
    """The record of a campaign that is deleted goes first, since nothing else may take it along; its posteriors, which
    no foreign key ties to it, go with it.
    """
    set_on_delete("RESTRICT")
    op.execute("""
        CREATE FUNCTION delete_record() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM decisions WHERE campaign_id = OLD.id;
            DELETE FROM responses WHERE campaign_id = OLD.id;
            DELETE FROM posteriors WHERE campaign_id = OLD.id;
            RETURN OLD;
        END $$
    """)
    op.execute("""
        CREATE TRIGGER campaigns_delete_record BEFORE DELETE ON campaigns FOR EACH ROW EXECUTE FUNCTION delete_record()
    """)


def downgrade() -> None:
    """Answers go with their annotators again."""
    op.execute("DROP TRIGGER campaigns_delete_record ON campaigns")
    op.execute("DROP FUNCTION delete_record()")
    set_on_delete("CASCADE")
