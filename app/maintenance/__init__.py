"""Backups of the whole database.

`backup` dumps the database with PostgreSQL's own `pg_dump` and writes a manifest next to the dump; `restore` loads such
a dump into an empty database, upgrades its schema, and compares it with the manifest. `postgres_programs` finds the
programs that fit the server. The commands are in `app.cli.backups`.
"""
