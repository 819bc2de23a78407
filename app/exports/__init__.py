"""Files that a campaign exports: items, responses, segments, visits, remarks, fitted scores, settings.

`registry.open_export` opens any export by its name; pages, API and command call it. Each export has a module with a
function that returns a `TableStream` (see `app.text.table_formats`): columns, and rows read from one snapshot, many at
a time. `fitted` writes the results of the analysis room's methods. `pages` lists the downloads of a campaign; `api`
also has the posteriors as JSON and the verification. To add an export, write a module and name its function in
`registry.TABLE_EXPORTS`.

Open `registry.py` first, then `annotator_tables.py`, whose exports are a statement each.
"""
