"""The database: the schema, connections and transactions, and an embedded PostgreSQL if no DATABASE_URL is set.

Main types: `Record` (a row of the serving path), `ServingConnections`, `LimitedConnection`, `Actor` (audit log),
`Postmaster` (the process of the embedded PostgreSQL). The tables are in `tables.py` and the `*_tables.py` modules.

Open `tables.py` first (what is stored), then `session.py` (engines and transactions) and `server_database.py` (which
database a server or command uses).
"""
