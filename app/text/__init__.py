"""Text: pure functions that parse, check, protect or write texts and tables.

Main types: `PostgresAddress` (a database URL), `Formula` (LaTeX in a text), `RedactedRecord` (a log record without
values), `EmailAddress` (field type), `TableStream` (columns, and rows in batches).

Each module can be read on its own; open the one for your kind of text: `email_address.py`, `latex.py`, `markdown.py`,
`numbers.py`, `postgres_address.py`, `redaction.py`, `spreadsheets.py`, `table_formats.py` (CSV and JSON lines), or
`result_cache.py` for the cache of rendered texts.
"""
