"""Selection: decides which items the next HIT shows. Pure: arrays and small sets in, item numbers out.

Main types: `rule.Rule` (a selection rule), `rule.ItemValues` (scores, variances, judgments and status of a
campaign's items), `rule.Index` (the same values, arranged for fast draws) and `rule.Draw` (the items of one HIT).
`registry` lists the rules by name. Open `rule.py` first, then `index.py`, which holds Algorithm 1 of Sakaguchi & Van
Durme 2018; `segments.py` chooses the outputs in a HIT about systems.
"""
