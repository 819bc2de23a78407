"""Imports into a campaign: items, outputs of systems, media, checks, answers given elsewhere, and campaign files.

A file is read row by row by `app.uploads`. `columns.ColumnMapping` says what each column means, and `import_preview`
shows that before anything is stored. `items.import_items_and_return_receipt` is the entry point for items: it passes
tables of systems to `outputs`, rows of checks to `checks_import`, and names of files to `named_media`.
`responses_import` stores answers, read by `imported_hits`. `campaign_file_io` reads and writes campaign files. An
import stores all of its rows or none, except for answers, which are stored HIT by HIT.

Open `items.py` first, then `responses_import.py`.
"""
