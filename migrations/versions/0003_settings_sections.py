"""Settings that no SQL reads move to jsonb columns, a column for each section, so that a new one needs no migration."""

from collections.abc import Iterable

from alembic import op

revision = "0003_settings_sections"
down_revision = "0002_lease_function"

# The settings of each section, with the definition of the column that each of them had.
SECTIONS = {
    "general_settings": {"asked_by": "text DEFAULT '' NOT NULL"},
    "crowd_settings": {
        "prolific_completion_code": "text",
        "return_completed": "text",
        "return_failed_checks": "text",
        "return_screened_out": "text",
        "return_nothing_left": "text",
    },
    "visit_settings": {
        "welcome": "boolean DEFAULT false NOT NULL",
        "consent": "text DEFAULT '' NOT NULL",
        "questions": "text[] DEFAULT '{}' NOT NULL",
        "training": "text DEFAULT '' NOT NULL",
        "qualification": "text DEFAULT '' NOT NULL",
        "pass_percent": "integer DEFAULT 80 NOT NULL",
        "qualification_tries": "integer DEFAULT 1 NOT NULL",
    },
    "quality_settings": {
        "quality_preset": "text DEFAULT 'watch' NOT NULL",
        "quality_rules": "text[] DEFAULT '{}' NOT NULL",
        "false_alarms": "double precision DEFAULT 2 NOT NULL",
    },
    "goal_settings": {
        "goal": "text DEFAULT 'none' NOT NULL",
        "goal_percent": "integer DEFAULT 95 NOT NULL",
        "goal_within": "double precision DEFAULT 5 NOT NULL",
        "goal_width": "double precision DEFAULT 10 NOT NULL",
        "goal_correlation": "double precision DEFAULT 0.9 NOT NULL",
        "when_reached": "text DEFAULT 'tell' NOT NULL",
    },
}
COLUMNS = [(section, name, kind) for section, settings in SECTIONS.items() for name, kind in settings.items()]


def upgrade() -> None:
    """Gather the settings in their sections."""
    run("ALTER TABLE campaigns", (f"ADD {section} jsonb DEFAULT '{{}}' NOT NULL" for section in SECTIONS))
    assignments = []
    for section, settings in SECTIONS.items():
        pairs = (f"'{name}', {json_value_sql(name, kind)}" for name, kind in settings.items())
        assignments.append(f"{section} = jsonb_build_object({', '.join(pairs)})")
    run("UPDATE campaigns SET", assignments)
    run("ALTER TABLE campaigns", (f"DROP {name}" for _, name, _ in COLUMNS))


def downgrade() -> None:
    """Give each setting its column again. One that its section lacks gets the default of the column."""
    run("ALTER TABLE campaigns", (f"ADD {name} {kind}" for _, name, kind in COLUMNS))
    assignments = (
        f"{name} = coalesce({column_value_sql(section, name, kind)}, {name})" for section, name, kind in COLUMNS
    )
    run("UPDATE campaigns SET", assignments)
    run("ALTER TABLE campaigns", (f"DROP {section}" for section in SECTIONS))


def run(statement: str, changes: Iterable[str]) -> None:
    op.execute(f"{statement} {', '.join(changes)}")


def json_value_sql(name: str, kind: str) -> str:
    """Return SQL for a column's value in JSON. Floats keep a decimal place, by which JSON tells them from integers."""
    return f"CAST(CAST({name} AS text) AS numeric) + 0.0" if kind.startswith("double") else name


def column_value_sql(section: str, name: str, kind: str) -> str:
    """Return SQL for the value of a column from its section."""
    if kind.startswith("text[]"):
        return f"ARRAY(SELECT jsonb_array_elements_text({section} -> '{name}'))"
    return f"CAST({section} ->> '{name}' AS {kind.partition(' DEFAULT')[0]})"
