"""Backups of the whole database, and checks of an installation.

`backup` dumps the database with PostgreSQL's own `pg_dump` and writes a manifest next to the dump; `restore` loads such
a dump into an empty database, upgrades its schema, and compares it with the manifest. `postgres_programs` finds the
programs that fit the server. `doctor` runs all checks of `easel doctor`: those of the settings, the machine and its
network in `machine_checks`, those of PostgreSQL in `database_checks`. The commands are in `app.cli.backups` and
`app.cli.doctor`.
"""
