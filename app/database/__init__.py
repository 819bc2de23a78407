"""The schema, the transaction, and PostgreSQL itself when no DATABASE_URL names one."""
