"""Refusals for errors of the database that are no bugs: a lost connection or a full disk."""

from app.errors import Conflict

DATABASE_AWAY_TEXT = "The database did not respond. Everything already stored is kept. Try again in a moment."
DATABASE_FULL_TEXT = (
    "The disk of the database is full. Everything already stored is kept. Free some space on it, then try again."
)


def refusal_of_database_error_or_none(error: Exception) -> Conflict | None:
    """Return what to tell the user if an error is a lost connection, a full disk or temporary, and not a bug."""
    from app.database.session import DATABASE_ERRORS, DISK_FULL_CODE, is_database_away, sqlstate_of_error_or_empty

    if not (isinstance(error, DATABASE_ERRORS) and is_database_away(error)):
        return None
    if sqlstate_of_error_or_empty(error) == DISK_FULL_CODE:
        return Conflict(DATABASE_FULL_TEXT, code="database_full")
    return Conflict(DATABASE_AWAY_TEXT, code="database_unavailable")
