"""Files that a campaign exports: items, responses, segments, visits, remarks, fitted scores, settings.

`registry.open_export_or_refuse` opens any export by its name; the pages, the API and the command call it. Each export
has a module with a function that returns a `TableStream` (see `app.text.table_formats`): its columns, and its rows,
which are read in batches from one snapshot. `fitted` writes the results of the analysis room's methods. `pages` lists
the downloads of a campaign; `api` also has the posteriors as JSON and the verification. `everything` is a zip of all.
To add an export, write a module, name its function in `registry.TABLE_EXPORTS`, explain it in `codebook_entries`.

Open `registry.py` first, then `annotator_tables.py`, where each export is a single SQL statement.
"""
