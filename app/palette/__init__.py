"""Palette: one search over everything that a researcher can open, by Ctrl+K on their pages or at `/admin/search`.

A `PaletteEntry` is one row: a title and the address that it opens. `entries.py` makes the rows that need no database
(pages, settings, help) and joins all groups; `stored_entries.py` finds campaigns, items and annotators. `pages.py`
serves the rows to browsers as a page and as JSON, and `api.py` serves them to programs. Each group requires the same
need (see `app.accounts.roles`) as the pages that its rows open.

Open `entries.py` first.
"""
