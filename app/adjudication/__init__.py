"""Adjudication: researchers settle the labels of items on which annotators disagree.

`label_queue` sorts items, those without a majority first. `item_view` collects what a researcher sees of one item:
its text, votes and comments. `pages` has the page Adjudicate and `api` its routes for programs. Labels are stored by
`app.quality.adjudications`, apart from answers and posteriors.

Open `label_queue.py` first, then `pages.py`.
"""
