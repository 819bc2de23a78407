"""Text: pure functions that parse, check, protect or render texts.

Main types: `PostgresAddress` (a database URL), `Formula` (LaTeX in a text), `RedactedRecord` (a log record without
values), `EmailAddress` (field type).

Each module stands alone; open the one for the kind of text: `email_address.py`, `latex.py`, `markdown.py`,
`postgres_address.py`, `redaction.py`, `spreadsheets.py`, or `result_cache.py` for the cache of rendered texts.
"""
