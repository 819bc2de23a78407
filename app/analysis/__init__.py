"""Analysis of a campaign's answers, while it runs and afterwards: scores, tables and pictures.

`result_types` holds the main types: `Answers` (all judgments as arrays), `Scores`, `ResultTable` and `Comparison`.
`method_types` says what a method is (`ScoreMethod`, `TableMethod`), and `methods` lists all of them by name.
`fit_cache.FitCache` reads the answers and keeps fitted results for `pages`, `api` and `app.exports`. `chart_axes` has
the axes of all charts, including those of the dashboard and of plans. `label_queue` sorts items whose labels
researchers settle. To add a method, write a module in this folder and register it in `methods`.

Open `methods.py` first.
"""
