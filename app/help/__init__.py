"""Help: the documentation of `docs/` inside the product, under `/admin/help`, with search.

`documentation.py` finds the pages and renders them: links and pictures point to pages of the product, and headings have
the same anchors as on the documentation site. `search.py` ranks sections by the words of a query. `pages.py` serves
both.

Open `documentation.py` first.
"""
